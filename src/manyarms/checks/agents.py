"""What every agent must satisfy."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt

from manyarms._base.storage import load
from manyarms._base.typing import Array, Ints
from manyarms.agents.agent import Agent
from manyarms.checks.base import refused, require

MakeAgent = Callable[[int], Agent]


def check_agent(make: MakeAgent) -> None:
    """Run every check of an agent; `make(seed)` gives a fresh one with at least four actions."""
    for check in AGENT_CHECKS:
        check(make)


def decisions_have_the_promised_shape(make: MakeAgent) -> None:
    """One context gives an int, a batch an array, k a list of distinct actions."""
    agent = make(0)
    X = _contexts(agent, 5)
    one = agent.decide(X[0])
    require(isinstance(one, int) and 0 <= one < agent.actions, "decide(x) is the id of an action", one)
    for k in (1, 3):
        best = np.asarray(agent.decide(X[0], k=k))
        require(best.shape == (k,) and len(set(best.tolist())) == k, f"decide(x, k={k}) is {k} distinct actions", best)
        require(np.shape(agent.decide(X, k=k)) == (5, k), "decide(X, k) has shape (n, k)")
    require(np.asarray(agent.decide(X)).shape == (5,), "decide(X) has shape (n,)")


def filters_are_honoured(make: MakeAgent) -> None:
    """candidates= and exclude= bind, before and after learning."""
    agent = make(0)
    X = _contexts(agent, 20)
    for _ in range(2):
        some = np.array([3, 0, 2])
        chosen = np.asarray(agent.decide(X, candidates=some, k=2))
        require(bool(np.isin(chosen, some).all()), "only candidates are chosen", chosen)
        chosen = np.asarray(agent.decide(X, exclude=some, k=1))
        require(not np.isin(chosen, some).any(), "no excluded action is chosen", chosen)
        chosen = np.asarray(agent.decide(X, candidates=some, exclude=[3]))
        require(bool(np.isin(chosen, [0, 2]).all()), "exclude binds among candidates", chosen)
        _teach(agent, 10)


def actions_may_have_contexts_of_their_own(make: MakeAgent) -> None:
    """action_contexts= has the promised shapes, binds to its candidates and leaves the belief as it was."""
    agent, some = make(0), np.array([3, 0, 2])
    Z = np.random.default_rng(42).uniform(-1, 1, (5, 3, agent.belief.dim))
    _teach(agent, 12)
    with _unchanged(agent, "deciding with a context for each action"):
        one = agent.decide(action_contexts=Z[0], candidates=some)
        require(isinstance(one, int) and one in some, "decide(action_contexts=Z) is the id of a candidate", one)
        batch = np.asarray(agent.decide(action_contexts=Z, candidates=some, exclude=[3], k=2))
        require(batch.shape == (5, 2) and bool(np.isin(batch, [0, 2]).all()), "a batch is (n, k) of candidates", batch)
        lists = [some, some[:2]]
        ragged = np.asarray(agent.decide(action_contexts=[Z[0], Z[1, :2]], candidates=lists))
        right = all(a in ids for a, ids in zip(ragged.tolist(), lists, strict=True))
        require(ragged.shape == (2,) and right, "each context has candidates of its own", ragged)
        options = {"action_contexts": Z[0], "candidates": some}
        likely = [agent.propensity(None, int(a), draws=50, rng=7, **options) for a in some]
        total, error = sum(p.value for p in likely), sum(p.standard_error for p in likely)
        require(abs(total - 1.0) <= 1e-9 + 5 * error, "propensities sum to one", total)


def same_seed_same_decisions(make: MakeAgent) -> None:
    """A seed fixes the decisions; an explicit generator leaves the agent's own untouched."""
    first, second = make(3), make(3)
    X = _contexts(first, 10)
    second.decide(X[0], rng=99)
    require(_same(first.decide(X), second.decide(X)), "the same seed gives the same decisions")


def decisions_can_be_made_again(make: MakeAgent) -> None:
    """The number of a draw gives the decision again; a snapshot decides as the agent did when it was taken."""
    agent = make(4)
    _teach(agent, 10)
    X = _contexts(agent, 6)
    made, frozen = agent.decide_numbered(X, k=2), agent.snapshot()
    agent.decide(X)
    require(_same(agent.decide(X, k=2, draw=made.draw), made.actions), "a draw's number gives its decision again")
    _teach(agent, 10)
    require(frozen.version == made.version, "a snapshot keeps its version", frozen.version)
    require(_same(frozen.decide(X, k=2, draw=made.draw), made.actions), "a snapshot stays as it was")


def deciding_changes_nothing(make: MakeAgent) -> None:
    """decide and propensity leave the belief as it was."""
    agent = make(0)
    _teach(agent, 12)
    with _unchanged(agent, "deciding"):
        agent.decide(_contexts(agent, 7), k=2)
        agent.propensity(_contexts(agent, 1)[0], 1, draws=5)


def a_batch_is_its_rows(make: MakeAgent) -> None:
    """Rows one by one, in one batch, or in another order give the same belief."""
    rows = _rows(make(0), 40)
    one_by_one, batch, shuffled = make(0), make(0), make(0)
    for x, a, r in zip(*rows, strict=True):
        one_by_one.observe(x, int(a), float(r))
    batch.observe(*rows)
    order = np.random.default_rng(5).permutation(40)
    shuffled.observe(rows[0][order[:15]], rows[1][order[:15]], rows[2][order[:15]])
    shuffled.observe(rows[0][order[15:]], rows[1][order[15:]], rows[2][order[15:]])
    exact = one_by_one.belief.likelihood.exact
    for other, what in ((batch, "one batch"), (shuffled, "another order")):
        for ours, theirs in zip(_posteriors(one_by_one), _posteriors(other), strict=True):
            error = float(np.abs(ours - theirs).max() / max(1.0, float(np.abs(ours).max())))
            require(error < (1e-8 if exact else 1e-4), f"{what} gives the same belief as rows one by one", error)


def a_replaced_reward_is_another_reward(make: MakeAgent) -> None:
    """Replaced there and back, rewards leave the belief as it was, counts and all; an action without rewards is refused."""
    agent, rows = make(0), _rows(make(0), 20)
    agent.observe(*rows)
    before, version, played = _posteriors(agent), agent.version, agent.played
    some = slice(3, 9)
    x, a, was = rows[0][some], rows[1][some], rows[2][some]
    agent.replace_reward(x, a, was, 1.0 - was)
    moved = float(np.abs(_posteriors(agent)[0] - before[0]).max())
    require(moved > 0 or not rows[0].any(), "another reward makes another belief", moved)
    agent.replace_reward(x, a, 1.0 - was, was)
    require((agent.version, agent.played) == (version + 2, played), "it is a change, and no row more", agent.version)
    likelihood = agent.belief.likelihood
    if likelihood.exact or getattr(likelihood, "expansion", "") != "cavity":
        for ours, theirs in zip(_posteriors(agent), before, strict=True):
            error = float(np.abs(ours - theirs).max() / max(1.0, float(np.abs(theirs).max())))
            require(error < (1e-8 if likelihood.exact else 1e-4), "there and back is where it began", error)
    fresh = make(0)
    _refused(fresh, lambda: fresh.replace_reward(x[0], int(a[0]), 1.0, 0.0), "a reward that nobody observed")


def saving_keeps_the_next_decision(make: MakeAgent) -> None:
    """After save and load, and in a copy, the next decisions are the same to the last bit."""
    agent = make(1)
    _teach(agent, 15)
    agent.retire([0])
    X = _contexts(agent, 6)
    with tempfile.TemporaryDirectory() as folder:
        agent.save(folder)
        loaded = load(folder)
    copied = agent.copy()
    for _ in range(2):
        expected = agent.decide(X, k=2)
        require(_same(loaded.decide(X, k=2), expected), "a loaded agent decides the same")
        require(_same(copied.decide(X, k=2), expected), "a copied agent decides the same")
        rows = _rows(agent, 5)
        for one in (agent, loaded, copied):
            one.observe(*rows)


def retired_actions_stay_away(make: MakeAgent) -> None:
    """A retired action is not chosen until it is reinstated, and costs the rest nothing; a late reward of it still teaches."""
    agent = make(0)
    _teach(agent, 20)
    before = agent.actions
    agent.retire([1, 2])
    require(agent.actions == before - 2, "retiring two actions leaves two fewer", agent.actions)
    require(not np.isin(np.asarray(agent.decide(_contexts(agent, 50))), [1, 2]).any(), "retired actions are not chosen")
    for call in (
        lambda: agent.decide(_contexts(agent, 1)[0], candidates=[1, 3]),
        lambda: agent.retire([1]),
        lambda: agent.reinstate([3]),
    ):
        _refused(agent, call, "a retired action, or one that is not")
    agent.observe(_contexts(agent, 1)[0], 2, 1.0)
    require(agent.actions == before - 2, "a late reward leaves its action retired", agent.actions)
    agent.reinstate([1, 2])
    require(agent.actions == before, "reinstated actions are back", agent.actions)


def bad_input_is_refused(make: MakeAgent) -> None:
    """Every bad argument raises InvalidInput and changes nothing."""
    agent = make(0)
    _teach(agent, 8)
    x = _contexts(agent, 1)[0]
    d = agent.belief.dim
    bad: list[tuple[str, Callable[[], object]]] = [
        ("a context of another length", lambda: agent.decide(np.zeros(d + 1))),
        ("NaN in a context", lambda: agent.decide(np.full(d, np.nan))),
        ("infinity in a context", lambda: agent.observe(np.full(d, np.inf), 1, 1.0)),
        ("text as a context", lambda: agent.decide("abc")),
        ("an unknown action", lambda: agent.observe(x, agent.actions + 5, 1.0)),
        ("a negative action", lambda: agent.observe(x, -1, 1.0)),
        ("an unknown candidate", lambda: agent.decide(x, candidates=[0, 10**9])),
        ("the same candidate twice", lambda: agent.decide(x, candidates=[1, 1])),
        ("no candidate", lambda: agent.decide(x, candidates=[])),
        ("candidates that are not numbers", lambda: agent.decide(x, candidates=["a"])),
        ("everything excluded", lambda: agent.decide(x, candidates=[1], exclude=[1])),
        ("k of zero", lambda: agent.decide(x, k=0)),
        (
            "contexts of another number of actions",
            lambda: agent.decide(action_contexts=np.zeros((1, d)), candidates=[0, 1]),
        ),
        ("more places than actions", lambda: agent.decide(x, candidates=[0, 1], k=3)),
        ("NaN as reward", lambda: agent.observe(x, 1, float("nan"))),
        ("rewards of another number", lambda: agent.observe(np.stack([x, x]), [0, 1], [1.0])),
        ("a bad row in a batch", lambda: agent.observe(np.stack([x, x]), [0, 10**9], [1.0, 0.0])),
    ]
    if not agent.belief.likelihood.exact:
        bad.append(("a reward outside the likelihood's range", lambda: agent.observe(x, 1, 0.3)))
    for what, call in bad:
        _refused(agent, call, what)


def propensities_are_probabilities(make: MakeAgent) -> None:
    """They lie in [0, 1], and over all offered actions sum to one, to within their standard errors."""
    agent = make(2)
    _teach(agent, 6)
    x = _contexts(agent, 1)[0]
    offered = np.arange(min(4, agent.actions))
    all_of_them = [agent.propensity(x, int(a), candidates=offered, draws=400, rng=7) for a in offered]
    total = sum(p.value for p in all_of_them)
    error = sum(p.standard_error for p in all_of_them)
    require(abs(total - 1.0) <= 1e-9 + 5 * error, "propensities sum to one", total)
    require(all(0 <= p.value <= p.inclusion + 1e-12 <= 1 + 1e-9 for p in all_of_them), "propensities lie in [0, 1]")
    require(agent.propensity(x, 0, exclude=[0]).value == 0.0, "an excluded action has propensity 0")


AGENT_CHECKS: tuple[Callable[[MakeAgent], None], ...] = (
    decisions_have_the_promised_shape,
    filters_are_honoured,
    actions_may_have_contexts_of_their_own,
    same_seed_same_decisions,
    decisions_can_be_made_again,
    deciding_changes_nothing,
    a_batch_is_its_rows,
    a_replaced_reward_is_another_reward,
    saving_keeps_the_next_decision,
    retired_actions_stay_away,
    bad_input_is_refused,
    propensities_are_probabilities,
)


def _contexts(agent: Agent, n: int) -> Array:
    return np.random.default_rng(42).uniform(-1, 1, (n, agent.belief.dim))


def _rows(agent: Agent, n: int) -> tuple[Array, Ints, Array]:
    """Made-up rows that any likelihood accepts, over few actions so that they repeat."""
    rng = np.random.default_rng(17)
    alive = np.setdiff1d(np.arange(agent.belief.catalogue.size), list(agent.belief.catalogue.retired))
    actions = rng.choice(alive[: min(len(alive), 6)], n)
    return rng.uniform(-1, 1, (n, agent.belief.dim)), actions, rng.integers(2, size=n).astype(np.float64)


def _teach(agent: Agent, n: int) -> None:
    agent.observe(*_rows(agent, n))


def _posteriors(agent: Agent) -> tuple[Array, Array]:
    return agent.belief.action_posterior(np.arange(min(8, agent.belief.catalogue.size)))


def _same(a: npt.ArrayLike, b: npt.ArrayLike) -> bool:
    return bool(np.array_equal(np.asarray(a), np.asarray(b)))


@contextmanager
def _unchanged(agent: Agent, what: str) -> Iterator[None]:
    before = {name: array.copy() for name, array in agent.belief.arrays().items()}
    yield
    after = agent.belief.arrays()
    different = [name for name, array in before.items() if not np.array_equal(array, after[name])]
    require(not different and before.keys() == after.keys(), f"{what} leaves the belief unchanged", different)


def _refused(agent: Agent, call: Callable[[], object], what: str) -> None:
    with _unchanged(agent, f"refusing {what}"):
        error = refused(call, f"{what} raises InvalidInput")
        require(bool(error.argument and error.expected), f"the error about {what} names argument and expectation")


__all__ = ["AGENT_CHECKS", "MakeAgent", "check_agent"]
