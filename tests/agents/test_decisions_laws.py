"""Thompson sampling with all its shortcuts has the law of the textbook sampler, which draws every theta_a.

Each belief is taken through each search that it can meet: small values of the constants that choose between them make
eight actions go through what otherwise needs thousands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import manyarms as ma
from brute_force import Case, Joint, covariance_of_root, random_case, random_rows, same_law
from manyarms._base.typing import Ints
from manyarms.agents.agent import Agent
from manyarms.beliefs.actions import blocks, search

K, D = 8, 2
X = np.array([0.8, -0.5])
DRAWS, TEXTBOOK = 3000, 40_000
FEWER = 1500  # where a belief is asked many times


def learned(case: Case, actions: tuple[int, ...] = (1, 4, 6), n: int = 9) -> tuple[Agent, Joint]:
    """The case after rows of some of its actions, as an agent and in full."""
    agent, joint = case.agent(seed=7), case.joint
    if actions:
        rows = random_rows(3, n, D, np.array(actions))
        agent.observe(*rows)
        joint = joint.given(rows, case.noise)
        if not case.belief.root.known:  # a factored root keeps the conditionals, but has a law of its own
            joint = joint.with_root(case.belief.root.mean(), covariance_of_root(case.belief))
    return agent, joint


def made(
    mixing: str, root: str = "gaussian", *, shared: bool = True, factored: str | None = None
) -> Callable[[], Case]:
    return lambda: random_case(
        12, mixing, root, shared=shared, actions=K, dim=D, noise=0.5, factored=factored, spread=0.4
    )


def repeated_weights() -> Case:
    """Three kinds of actions in eight, so that units have several members."""
    made = random_case(12, "weights", actions=3, dim=D, noise=0.5, spread=0.4)
    kinds = np.array([0, 1, 1, 2, 0, 1, 2, 0])
    leaves = made.belief.leaves
    assert leaves.mixing.features is not None
    W = np.stack([np.kron(row, np.eye(D)) for row in leaves.mixing.features[kinds]])
    belief = ma.beliefs.Belief(
        made.belief.root,
        ma.beliefs.Leaves(ma.beliefs.MixingWeights(leaves.mixing.features[kinds]), leaves.covariance),
        made.belief.likelihood,
    )
    mean, covariance = made.joint.root()
    return Case(belief, Joint.prior(mean, covariance, W, np.broadcast_to(leaves.covariance, (K, D, D))), made.noise)


CASES = {
    "LinTS, common prior": made("identity", "known"),
    "LinTS, own covariances": made("identity", "known", shared=False),
    "LinTS, own means": made("matrices", "known"),
    "HierTS": made("identity"),
    "HierTS, own covariances": made("identity", shared=False),
    "HierTS, two levels": made("common"),
    "meTS, one-hot": made("one-hot"),
    "meTS, distinct weights": made("weights"),
    "meTS, repeated weights": repeated_weights,
    "meTS, own covariances": made("weights", shared=False),
    "meTS, mean-field": made("weights", factored="mean-field"),
    "meTS, blockwise": made("weights", factored="blockwise"),
    "any W": made("matrices"),
    "any W, own covariances": made("matrices", shared=False),
}


@pytest.fixture(params=["few", "many"])
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """few: units are drawn directly. many: they go through blocks of two, or scans in pieces of three."""
    if request.param == "many":
        monkeypatch.setattr(search, "FEW", 1)
        monkeypatch.setattr(search, "PIECE", 3)
        monkeypatch.setattr(blocks, "BLOCK", 2)
    yield request.param


def assert_same_law(
    agent: Agent,
    joint: Joint,
    k: int = 1,
    among: Ints | None = None,
    draws: int = FEWER,
    *,
    singly: bool = False,
    **options: Any,
) -> None:
    """The ordered best k of many decisions, in one batch or one by one, against the textbook's."""
    if singly:
        ours = np.array([agent.decide(X, k=k, **options) for _ in range(draws)])
    else:
        ours = np.asarray(agent.decide(np.tile(X, (draws, 1)), k=k, **options))
    textbook = joint.thompson(X, TEXTBOOK, np.random.default_rng(99), among, k)
    assert ours.shape == (draws, k)
    if k > 1:
        assert (np.diff(np.sort(ours, axis=1), axis=1) > 0).all()
    assert same_law(ours, textbook) > 1e-6


@pytest.mark.parametrize("singly", [True, False])
@pytest.mark.parametrize("make", CASES.values(), ids=CASES.keys())
def test_the_chosen_action(make: Callable[[], Case], path: str, singly: bool) -> None:
    agent, joint = learned(make())
    assert_same_law(agent, joint, draws=DRAWS, singly=singly)


@pytest.mark.parametrize("singly", [True, False])
@pytest.mark.parametrize("make", CASES.values(), ids=CASES.keys())
def test_the_best_three_in_order(make: Callable[[], Case], path: str, singly: bool) -> None:
    """The order of three tells how scores hang together: the correlation that a shared root makes must be there."""
    agent, joint = learned(make())
    assert_same_law(agent, joint, 3, draws=DRAWS, singly=singly)


NAMES = ("LinTS, common prior", "HierTS", "meTS, repeated weights", "meTS, distinct weights", "any W, own covariances")


@pytest.mark.parametrize("name", NAMES)
def test_nothing_played_and_everything_played(name: str, path: str) -> None:
    for singly in (False, True):
        agent, joint = learned(CASES[name](), ())
        assert_same_law(agent, joint, k=2, singly=singly)
        agent, joint = learned(CASES[name](), tuple(range(K)), 40)
        assert agent.played == K
        assert_same_law(agent, joint, k=2, singly=singly)


@pytest.mark.parametrize("name", NAMES)
def test_with_candidates_and_exclusions(name: str, path: str) -> None:
    agent, joint = learned(CASES[name]())
    some = np.array([7, 4, 1, 2, 5])
    for singly in (False, True):
        assert_same_law(agent, joint, 2, some, candidates=some, singly=singly)
        assert_same_law(agent, joint, 1, np.array([7, 1, 2]), candidates=some, exclude=[4, 5, 0], singly=singly)
        assert_same_law(agent, joint, 2, np.array([0, 2, 3, 4, 6, 7]), exclude=[1, 5], singly=singly)
    assert_same_law(agent, joint, 1, np.array([6]), candidates=[6])
    assert_same_law(agent, joint, 1, np.array([3]), candidates=[3])
    assert_same_law(agent, joint, 3, np.array([0, 2, 7]), candidates=[2, 7, 0])


@pytest.mark.parametrize("name", NAMES)
def test_after_retirements(name: str, path: str) -> None:
    """A played and three unplayed ones, before and after the tables of the search were made."""
    agent, joint = learned(CASES[name]())
    agent.retire(0)
    assert_same_law(agent, joint, 2, np.array([1, 2, 3, 4, 5, 6, 7]))
    agent.retire([4, 2, 7])
    assert_same_law(agent, joint, 2, np.array([1, 3, 5, 6]))
    assert_same_law(agent, joint, 2, np.array([1, 3, 5, 6]), singly=True)
    assert_same_law(agent, joint, 1, np.array([3, 5]), exclude=[6, 1, 0])
    agent.retire([1, 3, 6])
    assert set(np.asarray(agent.decide(np.tile(X, (20, 1)))).tolist()) == {5}


@pytest.mark.parametrize("looked", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_after_adding_actions(name: str, looked: bool, path: str) -> None:
    """Three latecomers, before and after the search has made its tables; some of them played."""
    whole = CASES[name]()
    leaves = whole.belief.leaves
    features, prior = leaves.mixing.features, leaves.prior_covariance(np.arange(K))
    first = 5
    mixing: ma.beliefs.IdentityMixing | ma.beliefs.MixingWeights | ma.beliefs.MixingMatrices = (
        ma.beliefs.IdentityMixing()
    )
    if isinstance(leaves.mixing, ma.beliefs.MixingWeights):
        mixing = ma.beliefs.MixingWeights(leaves.mixing.features[:first])
    elif isinstance(leaves.mixing, ma.beliefs.MixingMatrices):
        mixing = ma.beliefs.MixingMatrices(leaves.mixing.features[:first].reshape(first, D, -1))
    covariance = prior[0] if leaves.shared else prior[:first]
    belief = ma.beliefs.Belief(whole.belief.root, ma.beliefs.Leaves(mixing, covariance, first), whole.belief.likelihood)
    agent = Agent(belief, ma.Thompson(), 7)
    early = random_rows(3, 6, D, np.array([1, 4]))
    agent.observe(*early)
    if looked:
        agent.decide(X)  # the search makes its tables
    late = None if features is None else features[first:]
    if late is not None and isinstance(leaves.mixing, ma.beliefs.MixingMatrices):
        late = late.reshape(K - first, D, -1)
    agent.add_actions(K - first, weights=late, covariance=None if leaves.shared else prior[first:])
    joint = whole.joint.given(early, whole.noise)
    assert_same_law(agent, joint, 2)
    more = random_rows(4, 4, D, np.array([6, 2]))
    agent.observe(*more)
    joint = joint.given(more, whole.noise)
    assert_same_law(agent, joint, 2)
    agent.retire([5, 0])
    assert_same_law(agent, joint, 2, np.array([1, 2, 3, 4, 6, 7]))
    some = np.array([7, 6, 3, 1])
    assert_same_law(agent, joint, 2, some, candidates=some)


def test_latecomers_join_their_kind_or_make_a_new_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few units, then more than are drawn directly: equal rows join at once, others go into the blocks."""
    monkeypatch.setattr(search, "FEW", 5)
    monkeypatch.setattr(blocks, "BLOCK", 2)
    rng = np.random.default_rng(0)
    rows = rng.uniform(-2, 2, (7, 2))
    prior = ma.MixedEffectPrior(rows[:5], rng.standard_normal((2, D)), 0.3 * np.eye(4), 0.2 * np.eye(D))
    agent = ma.meTS(prior, seed=0)
    agent.decide(X)
    for late, kinds in (([0, 1], 5), ([2, 3], 5), ([5, 5], 6), ([6, 5], 7)):
        agent.add_actions(weights=rows[late])
        assert len(agent.belief.leaves.catalogue.units.counts) == kinds
        weights = agent.belief.leaves.mixing.features
        assert weights is not None
        W = np.stack([np.kron(row, np.eye(D)) for row in weights])
        own = np.broadcast_to(prior.action_covariance, (len(W), D, D))
        assert_same_law(agent, Joint.prior(prior.effect_mean.ravel(), prior.effect_covariance, W, own), 2)


@pytest.mark.parametrize("name", [*NAMES, "LinTS, own covariances", "LinTS, own means"])
def test_a_churned_catalogue_decides_as_one_that_was_made_of_what_is_left(name: str, path: str) -> None:
    """Retired and reinstated, played or not, with late rewards: the law is that of the actions alive and of all rewards."""
    whole = CASES[name]()
    agent, joint = learned(whole)
    rng = np.random.default_rng(1)
    alive = np.ones(K, dtype=bool)
    for step in range(60):
        action = int(rng.integers(K))
        if alive[action] and alive.sum() > 2:
            agent.retire(action)
            alive[action] = False
        elif not alive[action]:
            agent.reinstate(action)
            alive[action] = True
        if step in (20, 40):  # late rewards of whatever is retired then, played before or not
            late = random_rows(step, 3, D, np.flatnonzero(~alive)[:2])
            agent.observe(*late)
            joint = joint.given(late, whole.noise)
            assert agent.actions == alive.sum()
        if step % 15 == 0:
            agent.decide(X)
    assert_same_law(agent, joint, 2, np.flatnonzero(alive))
    agent.reinstate(np.flatnonzero(~alive))
    assert_same_law(agent, joint, 2)


@pytest.mark.parametrize(("actions", "founders"), [(3_000, 3_000), (9_000, 9_000), (9_000, 2_000)])
def test_thousands_of_distinct_actions(actions: int, founders: int) -> None:
    """At the sizes that the constants are made for, below and above where blocks begin: where the winner's weights lie."""
    rng = np.random.default_rng(2)
    b = rng.standard_normal((actions, 2))
    prior = ma.MixedEffectPrior(b[:founders], rng.standard_normal((2, D)), 0.2 * np.eye(4), 0.5 * np.eye(D))
    agent = ma.meTS(prior, ma.Linear(0.5), seed=0)
    for start in range(founders, actions, 3_500):  # the blocks are made after the first of them have come
        agent.add_actions(weights=b[start : start + 3_500])
        agent.decide(X)
    played = np.argsort(-b @ (prior.effect_mean @ X))[: 2 * FEWER : 40]  # some of the likely winners
    agent.observe(rng.uniform(-1, 1, (len(played), D)), played, rng.standard_normal(len(played)))
    agent.retire(np.setdiff1d(np.arange(0, actions, 3), played))
    belief = agent.belief
    alive = np.setdiff1d(np.arange(actions), list(belief.catalogue.retired))
    variance = np.full(actions, X @ prior.action_covariance @ X)
    slots = np.array([belief.catalogue.slot_of[a] for a in played.tolist()])
    variance[played] = belief.leaves.packing.unpack(belief.leaves.S.rows[slots]) @ X @ X
    plain = np.empty(FEWER, dtype=np.int64)
    for i, m in enumerate(belief.root.draw(rng, FEWER)):
        mean = b @ (m.reshape(2, D) @ X)
        mean[played] = belief.leaves.c.rows[slots] @ X + belief.leaves.pulled(X, slots) @ m
        scores = mean + np.sqrt(variance) * rng.standard_normal(actions)
        plain[i] = alive[np.argmax(scores[alive])]
    ours = np.asarray(agent.decide(np.tile(X, (FEWER, 1))))
    assert np.isin(ours, alive).all()

    def where(ids: Ints) -> Ints:
        """Played or not, and in which cell of the plane of weights."""
        cells = np.column_stack([np.digitize(b[ids, j], [-2.0, -1, 0, 1, 2]) for j in (0, 1)])
        return np.column_stack([np.isin(ids, played), cells]).astype(np.int64)

    assert same_law(where(ours), where(plain)) > 1e-6


def test_the_test_sees_a_missing_correlation() -> None:
    """A sampler that draws a root for every action on its own has the right margins, and must be told apart."""
    agent, joint = learned(CASES["HierTS"]())
    mean, covariance = joint.scores(X)
    apart = mean + np.sqrt(np.diag(covariance)) * np.random.default_rng(5).standard_normal((TEXTBOOK, K))
    ours = agent.decide(np.tile(X, (DRAWS, 1)), k=2)
    assert isinstance(ours, np.ndarray)
    assert same_law(ours, np.argsort(-apart, axis=1)[:, :2]) < 1e-6


@pytest.mark.parametrize("name", ["HierTS", "meTS, distinct weights"])
def test_scores_given_draws_of_the_root_are_correlated_as_they_should(name: str) -> None:
    """Played scores: mean and covariance of c + P m + noise over draws of the root, against the joint Gaussian's."""
    agent, joint = learned(CASES[name](), tuple(range(K)), 30)
    belief, n = agent.belief, 40_000
    rng = np.random.default_rng(1)
    M = belief.root.draw(rng, n)
    mean, variance = belief.played_scores(np.tile(X, (n, 1)), M, belief.leaves.catalogue.offer())
    drawn = mean + np.sqrt(variance) * rng.standard_normal(mean.shape)
    order = [belief.leaves.catalogue.slot_of[a] for a in range(K)]
    wanted_mean, wanted = joint.scores(X)
    sd = np.sqrt(np.diag(wanted))
    assert np.abs((drawn[:, order].mean(axis=0) - wanted_mean) / sd).max() < 5 / np.sqrt(n)
    correlation = np.cov(drawn[:, order].T) / np.outer(sd, sd)
    assert np.abs(correlation - wanted / np.outer(sd, sd)).max() < 6 * np.sqrt(2 / n)
    assert np.abs(wanted / np.outer(sd, sd) - np.eye(K)).max() > 0.1  # there is something to see


def test_every_context_of_a_batch_has_its_own_draw_and_its_own_law() -> None:
    """Contexts in one batch, interleaved: each has the law that it has alone; neighbours are independent."""
    agent, joint = learned(CASES["meTS, distinct weights"]())
    other = np.array([-0.3, 0.9])
    ours = agent.decide(np.tile(np.stack([X, other]), (DRAWS, 1)))
    assert isinstance(ours, np.ndarray)
    for x, mine in ((X, ours[::2]), (other, ours[1::2])):
        assert same_law(mine, joint.thompson(x, TEXTBOOK, np.random.default_rng(99))[:, 0]) > 1e-6
    pairs = np.column_stack([ours[:-2:4], ours[2::4]])  # two decisions in the same context
    shuffled = np.column_stack([ours[:-2:4], np.random.default_rng(0).permutation(ours[2::4])])
    assert same_law(pairs, shuffled) > 1e-6


def test_large_batches_go_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    import manyarms.agents.decisions.base as module

    monkeypatch.setattr(module, "SCORES_AT_A_TIME", 20)
    agent, joint = learned(CASES["HierTS"]())
    assert_same_law(agent, joint, 2)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("k", [1, 3])
def test_a_context_of_zeros_makes_all_scores_equal_and_any_choice_alike(name: str, k: int, path: str) -> None:
    agent, _ = learned(CASES[name]())
    agent.retire([2, 6])
    alive = np.array([0, 1, 3, 4, 5, 7])
    zeros = np.zeros((FEWER, D))
    rng = np.random.default_rng(0)
    for among, options in ((alive, {}), (alive[1:], {"exclude": [0]}), (alive[2:], {"candidates": alive[2:]})):
        ours = agent.decide(zeros, k=k, **options)
        assert isinstance(ours, np.ndarray)
        uniform = np.argsort(rng.random((TEXTBOOK, len(among))), axis=1)[:, :k]
        assert same_law(ours, among[uniform]) > 1e-6


def test_equal_actions_are_equally_likely(path: str) -> None:
    """All actions alike, some played with the same rows: nobody is favoured inside his kind."""
    agent = ma.HierTS(ma.HierarchicalPrior(6, np.zeros(D), np.eye(D), np.eye(D)), seed=3)
    for action in (1, 4):
        agent.observe(X, action, 0.3)
    ours = agent.decide(np.tile(X, (DRAWS, 1)))
    assert isinstance(ours, np.ndarray)
    counts = np.bincount(ours, minlength=6)
    for kind in ([0, 2, 3, 5], [1, 4]):
        assert np.ptp(counts[kind]) < 6 * np.sqrt(counts[kind].mean())


def test_one_action() -> None:
    agent = ma.LinTS(ma.ActionPrior(1, np.zeros(D), np.eye(D)), seed=0)
    assert agent.decide(X) == 0
    agent.observe(X, 0, 1.0)
    assert agent.decide(X) == 0 and agent.decide(np.zeros(D)) == 0
    assert agent.decide(X, k=1).tolist() == [0]  # type: ignore[union-attr]


def test_an_explicit_generator_or_seed_leaves_the_agents_own_alone() -> None:
    agent, _ = learned(CASES["HierTS"]())
    before = agent.draws
    first = agent.decide(np.tile(X, (50, 1)), rng=5)
    assert isinstance(first, np.ndarray)
    assert (first == agent.decide(np.tile(X, (50, 1)), rng=np.random.default_rng(5))).all()
    assert agent.draws == before
    assert len(np.unique(first)) > 1
