"""A reward that was learned becomes another one: the agent is as if it had observed that one in the first place."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import manyarms as ma
from every_agent import CAVITY, EVERY, GENERALISED, LINEAR, D, K, add_actions, rows_for, same_bits
from manyarms._base.typing import AnyArray, Array, Ints
from manyarms.agents import Agent
from manyarms.beliefs.likelihoods import base as likelihoods
from manyarms.errors import InvalidInput, UnknownAction

UNORDERED = {**LINEAR, **GENERALISED}
Make = Callable[[], Agent]
X = np.arange(1.0, D + 1) / D


def changed(agent: Agent, rewards: Array) -> Array:
    """Other rewards that the likelihood has."""
    return 20 - 2 * rewards if agent.belief.likelihood.exact else 1 - rewards


def observe(agent: Agent, X: Array, A: Ints, r: Array, *, portions: tuple[int, ...] = (1, 1, 1, 14)) -> None:
    """In portions of these sizes, and the rest."""
    cuts = np.cumsum(portions)
    for rows in zip(np.split(X, cuts), np.split(A, cuts), np.split(r, cuts), strict=True):
        agent.observe(*rows)


def differences(first: Agent, second: Agent) -> dict[str, float]:
    """How far the arrays lie apart, in units of their own size."""
    one, other = first.belief.arrays(), second.belief.arrays()
    assert one.keys() == other.keys()
    return {name: apart(array, other[name]) for name, array in one.items() if array.size}


def apart(array: AnyArray, other: AnyArray) -> float:
    size = max(float(np.abs(array).max()), 1e-300)
    return float(np.abs(array.astype(float) - other.astype(float)).max()) / size


def posteriors(agent: Agent) -> tuple[Array, Array]:
    return agent.belief.action_posterior(np.arange(K))


def close(agent: Agent, wanted: Agent, tolerance: float) -> None:
    for ours, theirs in zip(posteriors(agent), posteriors(wanted), strict=True):
        assert_allclose(ours, theirs, rtol=0, atol=tolerance * max(1.0, float(np.abs(theirs).max())))


@pytest.mark.parametrize("batch", [False, True], ids=["one by one", "at once"])
@pytest.mark.parametrize("name", LINEAR)
def test_it_is_as_if_the_other_reward_had_been_observed(name: str, batch: bool) -> None:
    agent, wanted = LINEAR[name](), LINEAR[name]()
    rows = rows_for(agent, 1, 40, [4, 7, 1, 0])
    contexts, A, was = rows
    late = np.arange(3, 30, 4)
    now = was.copy()
    now[late] = changed(agent, was[late])
    # with hardly any noise a batch after rows of the same actions costs a root digits, in whatever is observed
    portions = (1,) * 39 if "noise" in name else (1, 1, 1, 14)
    observe(agent, *rows, portions=portions)
    observe(wanted, contexts, A, now, portions=portions)
    if batch:
        agent.replace_reward(contexts[late], A[late], was[late], now[late])
    else:
        for i in late.tolist():
            agent.replace_reward(contexts[i], int(A[i]), float(was[i]), float(now[i]))
    assert agent.version == wanted.version + (1 if batch else len(late))
    for name, error in differences(agent, wanted).items():
        if name in UNTOUCHED:
            assert error == 0.0, name
        else:
            assert error <= (1e-6 if name == "shares" else 1e-9), (name, error)  # shares are kept in single precision
    close(agent, wanted, 1e-9)


UNTOUCHED = {"leaves.counts", "leaves.played", "leaves.retired", "leaves.sizes", "leaves.G", "leaves.covariance"}


@pytest.mark.parametrize("make", GENERALISED.values(), ids=GENERALISED.keys())
def test_clicks_and_counts_are_fitted_again(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Modes are searched to the last digit, so that where the search began does not show."""
    monkeypatch.setattr(likelihoods, "TOLERANCE", 1e-26)
    agent, wanted, at_once = make(), make(), make()
    contexts, A, was = rows_for(agent, 1, 40, [4, 7, 1, 0])
    late = np.arange(3, 30, 4)
    now = was.copy()
    now[late] = changed(agent, was[late])
    for each, rewards in ((agent, was), (at_once, was), (wanted, now)):
        observe(each, contexts, A, rewards)
    for i in late.tolist():
        agent.replace_reward(contexts[i], int(A[i]), int(was[i]), float(now[i]))
    at_once.replace_reward(contexts[late], A[late], was[late], now[late])
    for each in (agent, at_once):
        close(each, wanted, 1e-7)
        assert (each.belief.arrays()["glm.r"] == wanted.belief.arrays()["glm.r"]).all()
        assert (each.belief.arrays()["glm.X"] == wanted.belief.arrays()["glm.X"]).all()


@pytest.mark.parametrize("make", CAVITY.values(), ids=CAVITY.keys())
def test_a_cavity_is_what_is_known_when_the_action_is_fitted(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one action alone it is the prior, whenever that is; of several it follows from the order, as after every row."""
    monkeypatch.setattr(likelihoods, "TOLERANCE", 1e-26)
    agent, wanted = make(), make()
    contexts, A, was = rows_for(agent, 1, 20, [4])
    now = was.copy()
    now[5:9] = 1 - was[5:9]
    observe(agent, contexts, A, was)
    observe(wanted, contexts, A, now)
    agent.replace_reward(contexts[5:9], A[5:9], was[5:9], now[5:9])
    close(agent, wanted, 1e-7)


@pytest.mark.parametrize("make", UNORDERED.values(), ids=UNORDERED.keys())
def test_in_between_everything_else_may_happen(make: Make, tmp_path: Path) -> None:
    """A default is learned; other rows, retirements, additions and a load later the reward comes. It goes as it came."""
    agent, never = make(), make()
    contexts, A, was = rows_for(agent, 5, 9, [2, 3])
    for each in (agent, never):
        each.observe(contexts, A, was)
    now = changed(agent, was)
    agent.retire([2])
    add_actions(agent, 1)
    agent.replace_reward(contexts[3:7], A[3:7], was[3:7], now[3:7])
    agent.save(tmp_path)
    agent = ma.load(tmp_path)
    agent.replace_reward(contexts[3:7], A[3:7], now[3:7], was[3:7])
    agent.reinstate([2])
    close(agent, never, 1e-9 if agent.belief.likelihood.exact else 1e-4)
    assert agent.played == never.played
    assert agent.version == never.version + 4 + agent.belief.per_action


DRIFTING = ("LinTS", "HierTS", "meTS, mean-field", "meTS, blockwise", "dTS, linear links", "LinTS, hardly any noise")


@pytest.mark.parametrize("pending", [False, True], ids=["rows", "a batch"])
@pytest.mark.parametrize("name", DRIFTING)
def test_nothing_drifts(name: str, pending: bool) -> None:
    """10,000 replacements, there and back."""
    agent = LINEAR[name]()
    contexts, A, was = rows_for(agent, 1, 40, [4, 7, 1, 0])
    observe(agent, contexts, A, was, portions=() if pending else (1,) * 39)
    start, belief = agent.copy(), agent.belief
    there = belief.correction(contexts[:2], A[:2], was[:2], was[:2] + 20.1)
    back = belief.correction(contexts[:2], A[:2], was[:2] + 20.1, was[:2])
    for _ in range(2_500):  # of two rewards each
        belief.correct(*there)
        belief.correct(*back)
    for array, error in differences(agent, start).items():
        assert error < 1e-9, (array, error)
    close(agent, start, 1e-9)


@pytest.mark.parametrize("name", ["LinTS", "GLM-TS"])
def test_a_reward_may_be_replaced_again_and_in_one_call(name: str) -> None:
    """Each replacement finds what the one before it left."""
    one_by_one, at_once, wanted = EVERY[name](), EVERY[name](), EVERY[name]()
    for each, rewards in ((one_by_one, [0, 0, 0]), (at_once, [0, 0, 0]), (wanted, [0, 0, 1])):
        each.observe([X, X, X], [3, 3, 3], rewards)
    for was, now in ((0, 1), (1, 0), (0, 1)):
        one_by_one.replace_reward(X, 3, was, now)
    at_once.replace_reward([X, X, X], [3, 3, 3], [0, 1, 0], [1, 0, 1])
    for each in (one_by_one, at_once):
        close(each, wanted, 1e-9 if each.belief.likelihood.exact else 1e-4)
        assert each.belief.leaves.counts.rows.tolist() == [3]


# ---- what is refused --------------------------------------------------------------------------------------------------


def unchanged(agent: Agent, call: Callable[[], object], argument: str) -> InvalidInput:
    before, version = agent.copy(), agent.version
    with pytest.raises(InvalidInput) as caught:
        call()
    assert caught.value.argument == argument
    assert not same_bits(agent, before) and agent.version == version
    return caught.value


@pytest.mark.parametrize("name", ["LinTS", "HierTS", "dTS, particles", "GLM-TS", "jointTS"])
def test_refusals(name: str) -> None:
    agent = EVERY[name]()
    agent.observe(np.stack([X, X]), [3, 4], [1.0, 0.0])
    both = np.stack([X, X])
    for call, argument in (
        (lambda: agent.replace_reward(X[:-1], 3, 1.0, 0.0), "x"),
        (lambda: agent.replace_reward(X * 1e40, 3, 1.0, 0.0), "x"),
        (lambda: agent.replace_reward(X * np.nan, 3, 1.0, 0.0), "x"),
        (lambda: agent.replace_reward(both, [3], [1.0, 1.0], [0.0, 0.0]), "action"),
        (lambda: agent.replace_reward(X, 3, np.nan, 0.0), "was"),
        (lambda: agent.replace_reward(X, 3, 1.0, np.inf), "now"),
        (lambda: agent.replace_reward(X, 3, "1", 0.0), "was"),
        (lambda: agent.replace_reward(X, 3, [1.0], 0.0), "was"),
        (lambda: agent.replace_reward(both, [3, 4], [1.0, 0.0], [0.0]), "now"),
        (lambda: agent.replace_reward(both, [3, 4], 1.0, [0.0, 1.0]), "was"),
    ):
        unchanged(agent, call, argument)
    for bad in (K, -1):
        assert isinstance(
            unchanged(agent, lambda bad=bad: agent.replace_reward(X, bad, 1.0, 0.0), "action"), UnknownAction
        )
        unchanged(agent, lambda bad=bad: agent.replace_reward(both, [3, bad], [1.0, 0.0], [0.0, 1.0]), "action")
    fewer = "1 were observed" if agent.belief.per_action else "2 were observed"
    error = unchanged(agent, lambda: agent.replace_reward([X] * 3, [3] * 3, [1.0, 0.0, 1.0], [0.0, 1.0, 0.0]), "action")
    assert fewer in str(error)
    if agent.belief.per_action:  # nobody observed anything of action 5
        unchanged(agent, lambda: agent.replace_reward(X, 5, 1.0, 0.0), "action")
        unchanged(agent, lambda: agent.replace_reward(both, [3, 5], [1.0, 0.0], [0.0, 1.0]), "action")
    with pytest.raises(InvalidInput):
        EVERY[name]().replace_reward(X, 3, 1.0, 0.0)


@pytest.mark.parametrize("name", GENERALISED)
def test_rewards_that_were_never_learned_are_refused_where_rows_are_kept(name: str) -> None:
    agent = GENERALISED[name]()
    agent.observe(np.stack([X, X / 2]), [3, 3], [1.0, 0.0])
    for call, argument in (
        (lambda: agent.replace_reward(X, 3, 0.0, 1.0), "was"),
        (lambda: agent.replace_reward(X + 1e-9, 3, 1.0, 0.0), "was"),
        (lambda: agent.replace_reward(X, 3, 0.3, 0.0), "was"),
        (lambda: agent.replace_reward(X, 3, 1.0, 0.3), "reward"),
        (lambda: agent.replace_reward([X, X], [3, 3], [1.0, 1.0], [0.0, 0.0]), "was"),
    ):
        unchanged(agent, call, argument)
    agent.replace_reward(X, 3, 1.0, 0.0)
    unchanged(agent, lambda: agent.replace_reward(X, 3, 1.0, 0.0), "was")


def test_features_of_the_action_taken_are_enough_for_a_joint_agent() -> None:
    """As for `observe`: whole contexts, or the row of the action."""
    agent = LINEAR["jointTS"]()
    phi = np.random.default_rng(0).standard_normal((K, D))
    wanted = agent.copy()
    agent.observe(phi, 3, 1.0)
    wanted.observe(phi[3], 3, 21.0)
    other = agent.copy()
    agent.replace_reward(phi, 3, 1.0, 21.0)
    other.replace_reward(phi[3], 3, 1.0, 21.0)
    assert not same_bits(agent, other)
    close(agent, wanted, 1e-9)


def test_a_feature_map_is_asked_before_anything_changes() -> None:
    asked: list[Array] = []

    def features(x: Array) -> Array:
        asked.append(x)
        return np.outer(np.arange(1.0, 4.0), x)

    prior = ma.ActionPrior(1, np.zeros(2), np.eye(2))
    agent = ma.agents.jointTS(prior, 3, feature_map=features, context_shape=(2,), seed=0)
    agent.observe([1.0, 0.5], 2, 1.0)
    held = agent.snapshot()
    asked.clear()
    agent.replace_reward([1.0, 0.5], 2, 1.0, 21.0)
    assert len(asked) == 1
    assert held.version == 1 and agent.version == 2
    assert (held.posterior(0)[0] != agent.posterior(0)[0]).any()


def test_a_root_of_somebody_elses_learns_a_block_of_no_precision() -> None:
    """`inform` need not be written: a block without precision says the same."""

    class Plain(ma.beliefs.GaussianRoot):
        inform = ma.beliefs.Root.inform

    b = ma.beliefs
    agents = [
        Agent(b.Belief(root, b.Leaves(b.IdentityMixing(), np.eye(D), K), ma.Linear()), ma.agents.Thompson(), 0)
        for root in (Plain(np.zeros(D), np.eye(D)), b.GaussianRoot(np.zeros(D), np.eye(D)))
    ]
    for agent in agents:
        agent.observe(X, 3, 1.0)
        agent.replace_reward(X, 3, 1.0, 21.0)
        agent.observe(X, 4, 1.0)
    close(*agents, 1e-12)


# ---- threads ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["meTS", "HierTS, clicks", "dTS, particles"])
def test_readers_see_one_reward_or_the_other(name: str) -> None:
    """Beside a thread that replaces a reward there and back, no reader sees anything but the two beliefs."""
    agent = EVERY[name]()
    contexts, A, was = rows_for(agent, 1, 6, [4, 7])
    agent.observe(contexts, A, was)
    now = changed(agent, was)
    rows = slice(0, 3)
    there = (contexts[rows], A[rows], was[rows], now[rows])
    back = (contexts[rows], A[rows], now[rows], was[rows])
    stop, seen = threading.Event(), {}

    def read() -> None:
        while not stop.is_set():
            frozen = agent.snapshot()
            seen[frozen.version] = frozen.posterior(4)[0]

    reader = threading.Thread(target=read)
    reader.start()
    serial, expected = agent.copy(), {agent.version: agent.posterior(4)[0]}
    try:
        for n in range(40):
            for each in (agent, serial):
                each.replace_reward(*(back if n % 2 else there))
            expected[serial.version] = serial.posterior(4)[0]
    finally:
        stop.set()
        reader.join()
    assert not same_bits(agent, serial)
    for version, mean in seen.items():
        assert (mean == expected[version]).all(), version
