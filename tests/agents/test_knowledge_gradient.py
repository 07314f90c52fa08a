"""The online knowledge gradient: the index of the textbook, action by action, whatever the belief and the search."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import integrate, stats

import manyarms as ma
from brute_force import MIXINGS, random_case, random_rows
from every_agent import EVERY, rows_for
from manyarms import checks
from manyarms._base.typing import Array
from manyarms.agents import EpsilonMixed, KnowledgeGradient
from manyarms.agents.agent import Agent
from manyarms.agents.decisions.knowledge_gradient import LONGEST, expected_gain
from manyarms.beliefs.actions import blocks, index_search, search
from manyarms.errors import InvalidInput

K, D = 9, 2
HORIZONS = st.sampled_from((0.0, 0.5, 10.0, 1e3, 1e12))


def textbook(mean: Array, variance: Array, noise: Array, H: float, among: list[int]) -> Array:
    """The index of each action among some, by the definition: NaN for the others."""
    out = np.full(len(mean), np.nan)
    for a in among:
        rest = [float(mean[b]) for b in among if b != a]
        out[a] = mean[a]
        if not rest or variance[a] <= 0:
            continue
        s = variance[a] / math.sqrt(variance[a] + noise[a])
        u = abs(mean[a] - max(rest)) / s
        out[a] += H * max(s * stats.norm.pdf(u) - s * u * stats.norm.cdf(-u), 0.0)
    return out


def agree(found: list[int], index: Array, scale: float) -> None:
    """The best by the index, in its order; rounding may swap what is equal."""
    wanted = np.sort(index[~np.isnan(index)])[::-1][: len(found)]
    assert_allclose(index[found], wanted, rtol=0, atol=1e-9 * scale)


# ---- contexts that vary ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("directions", [2, 3, 5, 20, 1_000])
def test_the_gain_is_averaged_over_the_angle_between_contexts(directions: int) -> None:
    """E[c f(u / c)], c = |cos| of the angle between two directions: by draws of directions, and falling in u."""
    rng = np.random.default_rng(directions)
    square = rng.chisquare(1, 400_000)
    c = np.sqrt(square / (square + rng.chisquare(directions - 1, len(square))))
    for u in (0.0, 0.3, 1.0):
        draws = c * (stats.norm.pdf(u / c) - u / c * stats.norm.cdf(-u / c))
        found = float(expected_gain(np.array([u]), np.array([1.0]), 0.0, directions)[0])
        assert found == pytest.approx(float(draws.mean()), abs=6 * float(draws.std()) / math.sqrt(len(c)) + 1e-6)
    gains = expected_gain(np.linspace(0, 60, 2_001), np.ones(2_001), 0.0, directions)
    assert (np.diff(gains) <= 0).all() and gains[0] > 0 and gains[-1] == 0
    wider = expected_gain(np.ones(500), np.geomspace(1e-8, 1e8, 500), 1.0, directions)
    assert (np.diff(wider) >= 0).all()


def test_as_many_directions_as_contexts_have_numbers() -> None:
    case = random_case(3, "weights", actions=K, dim=D)
    agent = Agent(case.belief, KnowledgeGradient(300), 0)
    agent.observe(*random_rows(3, 12, D, np.array([0, 2, 5])))
    told = Agent(agent.belief, KnowledgeGradient(300, directions=D), 0)
    X = np.random.default_rng(3).uniform(-1, 1, (200, D))
    assert agent.decide(X).tolist() == told.decide(X).tolist()
    once = Agent(agent.belief, KnowledgeGradient(300, directions=1), 0)
    assert agent.decide(X).tolist() != once.decide(X).tolist()


@pytest.mark.parametrize("directions", [0, -1, 1.5, 10**6, "two"])
def test_directions_are_a_count(directions: Any) -> None:
    with pytest.raises(InvalidInput, match="directions"):
        KnowledgeGradient(5.0, directions=directions)


# ---- the index --------------------------------------------------------------------------------------------------------


@given(
    seed=st.integers(0, 10**6),
    mixing=st.sampled_from(MIXINGS),
    root=st.sampled_from(("known", "gaussian")),
    shared=st.booleans(),
    n=st.integers(0, 20),
    few=st.booleans(),
    H=HORIZONS,
)
@settings(max_examples=120)
def test_the_textbook_on_every_mixing(
    seed: int, mixing: str, root: str, shared: bool, n: int, few: bool, H: float
) -> None:
    """Played, unplayed and retired actions, filters, k, batches, with and without blocks."""
    case = random_case(seed, mixing, root, shared=shared, actions=K, dim=D)
    joint, rng = case.joint, np.random.default_rng(seed)
    agent = Agent(case.belief, KnowledgeGradient(H, directions=1), 0)
    if n:
        rows = random_rows(seed, n, D, np.array([0, 2, 5]))
        agent.observe(*rows)
        joint = joint.given(rows, case.noise)
    agent.retire([2, 4])
    alive = [0, 1, 3, 5, 6, 7, 8]
    X = rng.uniform(-1, 1, (3, D))
    some = rng.permutation(alive)[:4].tolist()
    with pytest.MonkeyPatch.context() as patch:
        if not few:
            patch.setattr(search, "FEW", 1)
            patch.setattr(blocks, "BLOCK", 2)
        for options, among in (
            ({}, alive),
            ({"candidates": some}, some),
            ({"exclude": some}, [a for a in alive if a not in some]),
            ({"candidates": some[:1]}, some[:1]),
        ):
            for k in range(1, 1 + min(3, len(among))):
                batch = np.asarray(agent.decide(X, k=k, **options))
                for x, mine in zip(X, batch.tolist(), strict=True):
                    assert np.asarray(agent.decide(x, k=k, **options)).tolist() == mine
                    mean, covariance = joint.scores(x)
                    index = textbook(mean, np.diag(covariance), np.full(K, case.noise**2), H, among)
                    agree(mine, index, max(1.0, H))


@given(seed=st.integers(0, 10**6), H=HORIZONS)
@settings(max_examples=20)
def test_contexts_of_the_actions(seed: int, H: float) -> None:
    case = random_case(seed, "weights", actions=K, dim=D)
    agent = Agent(case.belief, KnowledgeGradient(H, directions=1), 0)
    rows = random_rows(seed, 12, D, np.array([0, 2, 5]))
    agent.observe(*rows)
    Z = np.random.default_rng(seed).uniform(-1, 1, (K, D))
    mean, covariance = case.joint.given(rows, case.noise).scores(Z)
    some = [7, 2, 0, 8, 5]
    index = textbook(mean, np.diag(covariance), np.full(K, case.noise**2), H, some)
    found = agent.decide(action_contexts=Z[some], candidates=some, k=3)
    agree(np.asarray(found).tolist(), index, max(1.0, H))


@pytest.mark.parametrize("name", [name for name in EVERY if "own chains" not in name])
@pytest.mark.parametrize("H", [0.0, 30.0])
def test_every_belief(name: str, H: float) -> None:
    """By the moments that the belief itself states; with clicks and counts the noise is that of one reward about x^T theta."""
    agent = EVERY[name]()
    agent.decision = KnowledgeGradient(H, directions=1)
    agent.observe(*rows_for(agent, 1, 25, [1, 4, 6, 9]))
    Z = np.random.default_rng(5).uniform(-1, 1, (12, agent.dim))
    if agent.belief.per_action:
        Z = np.broadcast_to(Z[0], Z.shape)
    mean, variance = agent.belief.listed_moments(Z[None], np.arange(12), spread=True)
    mean, variance = mean[0], variance[0]
    exact = agent.belief.likelihood.noise_variance
    noise = np.full(12, exact) if exact is not None else 1.0 / agent.belief.likelihood.slope(mean)
    index = textbook(mean, variance, noise, H, list(range(12)))
    found = agent.decide(Z[0] if agent.belief.per_action else Z, k=4)
    agree(np.asarray(found).tolist(), index, max(1.0, H))


def test_beliefs_without_variances_are_refused() -> None:
    agent = EVERY["dTS, own chains"]()
    agent.decision = KnowledgeGradient(10, directions=1)
    with pytest.raises(InvalidInput, match="variances"):
        agent.decide(np.ones(agent.dim))


# ---- what one more look is worth ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("gap", [0.0, 0.3, 2.0, -0.4, -1.5])
@pytest.mark.parametrize("variance", [0.05, 1.0, 9.0])
def test_the_gain_is_the_expected_growth_of_the_best_mean(gap: float, variance: float) -> None:
    """E max(m, m_a + s z) - max(m, m_a), integrated, whether the action is behind or ahead."""
    noise, m = 0.7, 0.2
    s = variance / math.sqrt(variance + noise)
    best = lambda z: max(m, m - gap + s * z) * stats.norm.pdf(z)  # noqa: E731
    wanted = integrate.quad(best, -12, gap / s)[0] + integrate.quad(best, gap / s, 12)[0] - max(m, m - gap)
    found = expected_gain(np.array([abs(gap)]), np.array([variance]), noise)
    assert_allclose(found, wanted, rtol=1e-7, atol=1e-9)


def test_the_gain_at_the_ends_of_floats() -> None:
    """No warning (they are errors here), no NaN; nothing is gained where nothing is unknown, or the noise has no end."""
    gap = np.array([0.0, 0.0, 1e-300, 1.0, 1e300, np.inf, np.inf, 0.0, 1.0])
    variance = np.array([0.0, 1e-320, 1e-320, 1e-200, 1e-300, 0.0, 1.0, 1e60, -1e-18])
    for noise in (1e-100, 1.0, 1e100, np.full(9, np.inf)):
        found = expected_gain(gap, variance, noise)
        assert np.isfinite(found).all() and (found >= 0).all()
        assert not found[[0, 3, 4, 5, 6, 8]].any()
        if isinstance(noise, np.ndarray):
            assert not found.any()
    assert expected_gain(np.zeros(1), np.array([1e60]), 1.0)[0] == pytest.approx(1e30 / math.sqrt(2 * math.pi))


@given(u=st.floats(0, 38), s=st.floats(1e-3, 1e3), H=st.sampled_from((0.5, 10.0, 1e6)))
def test_slopes_of_the_index(u: float, s: float, H: float) -> None:
    """1 + H Phi(-u) in the mean below the best other, 1 - H Phi(-u) above it, H phi(u) in s: as the derivation says."""
    step = 1e-6 * s

    def gain(gap: float, width: float) -> float:
        variance = width**2 / 2 + width * math.sqrt(width**2 / 4 + 1)  # the V that has this s with noise 1
        return float(expected_gain(np.array([gap]), np.array([variance]), 1.0)[0])

    gap = max(u * s, 2 * step)
    u = gap / s
    by_gap = (gain(gap + step, s) - gain(gap - step, s)) / (2 * step)
    by_width = (gain(gap, s + step) - gain(gap, s - step)) / (2 * step)
    assert_allclose(-by_gap, stats.norm.sf(u), atol=1e-7)
    assert_allclose(by_width, stats.norm.pdf(u), atol=1e-7)
    below, above = 1 - H * by_gap, 1 + H * by_gap  # the mean moves against the gap, or with it
    assert_allclose([below, above], [1 + H * stats.norm.sf(u), 1 - H * stats.norm.sf(u)], atol=1e-6 * max(1.0, H))


@pytest.mark.parametrize("H", [0.0, 1.0, 1e12])
@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("few", [True, False])
def test_any_scale_of_rewards_and_horizons(H: float, scale: float, few: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rewards in other units make the same decisions."""
    if not few:
        monkeypatch.setattr(search, "FEW", 1)
        monkeypatch.setattr(blocks, "BLOCK", 4)
    rng = np.random.default_rng(0)
    b, X = rng.uniform(-1, 1, (40, 3)), rng.uniform(-1, 1, (30, D))
    A, r = rng.integers(8, size=30), rng.standard_normal(30)

    def decided(unit: float) -> Array:
        prior = ma.MixedEffectPrior(b, np.zeros((3, D)), unit**2 * np.eye(3 * D), unit**2 * np.eye(D))
        agent = Agent(ma.beliefs.belief_of(prior, ma.Linear(0.5 * unit)), KnowledgeGradient(H, directions=1), 0)
        first = np.asarray(agent.decide(X[:4], k=3))
        agent.observe(X, A, unit * r)
        return np.concatenate([first[:, :1], np.asarray(agent.decide(X, k=3))[:, :1]])

    assert (decided(scale) == decided(1.0)).mean() > 0.99


# ---- ties ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mixing", MIXINGS)
@pytest.mark.parametrize("few", [True, False])
def test_a_context_of_zeros_takes_the_lowest_ids(mixing: str, few: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not few:
        monkeypatch.setattr(search, "FEW", 1)
    case = random_case(3, mixing, actions=K, dim=D)
    agent, zeros = Agent(case.belief, KnowledgeGradient(100), 0), np.zeros(D)
    assert np.asarray(agent.decide(zeros, k=3)).tolist() == [0, 1, 2]
    agent.observe(*random_rows(3, 9, D, np.array([1, 6, 0])))
    assert np.asarray(agent.decide(zeros, k=3)).tolist() == [0, 1, 2]
    agent.retire([1, 2])
    assert np.asarray(agent.decide(zeros, k=4)).tolist() == [0, 3, 4, 5]
    assert np.asarray(agent.decide(zeros, k=3, exclude=[0, 4])).tolist() == [3, 5, 6]
    assert np.asarray(agent.decide(zeros, k=2, candidates=[6, 5, 3])).tolist() == [3, 5]


def test_interchangeable_actions_have_a_rival_that_is_as_good() -> None:
    """Of the best kind every member has the others at its own mean, u = 0, until one of them is left alone."""
    b = np.array([[1.0, 0], [0, 1], [1, 0], [0, 1], [1, 0], [0, 1]])
    prior = ma.MixedEffectPrior(b, np.array([[1.0], [2.0]]), 1e-6 * np.eye(2), np.eye(1))
    x, H = np.ones(1), 100.0
    agent = Agent(ma.beliefs.belief_of(prior, ma.Linear(1.0)), KnowledgeGradient(H, directions=1), 0)
    assert np.asarray(agent.decide(x, k=6)).tolist() == [1, 3, 5, 0, 2, 4]
    # alone at the top, another look at it is worth less than at those behind: its lead may make it uninteresting
    assert np.asarray(agent.decide(x, k=4, exclude=[1, 3])).tolist() == [5, 0, 2, 4]
    mean, variance = np.array([1.0, 2, 1, 2, 1, 2]), np.full(6, 1.000001)
    for among in ([0, 2, 4, 5], [0, 1, 5], [2, 4], [3]):
        index = textbook(mean, variance, np.ones(6), H, among)
        wanted = sorted(among, key=lambda a: (-index[a], a))
        assert np.asarray(agent.decide(x, k=len(among), candidates=among)).tolist() == wanted


def test_a_common_prior_with_a_million_actions() -> None:
    """One unit: the best action is looked at again, or a new one is, and which one follows from the textbook."""
    agent = Agent(
        ma.beliefs.belief_of(ma.ActionPrior(1_000_000, np.zeros(D), np.eye(D)), ma.Linear(1.0)),
        KnowledgeGradient(20),
        0,
    )
    x = np.array([1.0, 0.0])
    assert agent.decide(x) == 0
    agent.observe(x, 0, -5.0)
    assert np.asarray(agent.decide(x, k=3, exclude=[1, 3])).tolist() == [2, 4, 5]
    for number, reward in enumerate((1.0, 9.0, 9.0, 9.0), 1):
        agent.observe(x, 2, reward)
        mean = (1.0 + 9.0 * (number - 1)) / (number + 1)
        index = textbook(np.array([mean, 0.0, 0.0]), np.array([1 / (number + 1), 1.0, 1.0]), np.ones(3), 20, [0, 1, 2])
        wanted = [2, 1, 3] if index[0] > index[1] else [1, 3, 4]
        assert np.asarray(agent.decide(x, k=3)).tolist() == wanted
    assert wanted == [2, 1, 3]


# ---- the horizon ----------------------------------------------------------------------------------------------------------


def drifting(drift: Any, horizon: float | None = None) -> Agent:
    prior = ma.ActionPrior(6, np.zeros(D), np.eye(D))
    return Agent(ma.beliefs.belief_of(prior, ma.Linear(1.0), drift=drift), KnowledgeGradient(horizon, directions=1), 0)


def test_the_horizon_of_drift() -> None:
    agent = drifting(ma.Drift(rho=0.99))
    assert KnowledgeGradient().rounds(agent.belief) == pytest.approx(99.0)
    assert KnowledgeGradient(7).rounds(agent.belief) == 7.0
    rows = random_rows(1, 20, D, np.array([0, 1, 2]))
    agent.observe(*rows)
    given = drifting(ma.Drift(rho=0.99), 99.0)
    given.observe(*rows)
    X = np.random.default_rng(0).uniform(-1, 1, (40, D))
    np.testing.assert_array_equal(agent.decide(X, k=2), given.decide(X, k=2))
    Z = np.random.default_rng(1).uniform(-1, 1, (6, D))
    np.testing.assert_array_equal(agent.decide(action_contexts=Z, k=6), given.decide(action_contexts=Z, k=6))


@pytest.mark.parametrize("few", [True, False])
@pytest.mark.parametrize(
    "drift", [ma.Drift(rho=0.9), ma.beliefs.Discount(half_life=20), ma.beliefs.SlidingWindow(length=15)], ids=str
)
def test_the_textbook_by_moments_that_drift(drift: Any, few: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not few:
        monkeypatch.setattr(search, "FEW", 1)
        monkeypatch.setattr(blocks, "BLOCK", 4)
    rng = np.random.default_rng(2)
    prior = ma.MixedEffectPrior(rng.uniform(-1, 1, (30, 3)), np.zeros((3, D)), np.eye(3 * D), np.eye(D))
    agent = Agent(ma.beliefs.belief_of(prior, ma.Linear(0.5), drift=drift), KnowledgeGradient(directions=1), 0)
    for x in rng.uniform(-1, 1, (40, D)):
        chosen = np.asarray(agent.decide(x, k=2)).tolist()
        mean, variance = agent.belief.predictive(np.tile(x, (30, 1)), np.arange(30))
        assert agent.belief.horizon is not None
        agree(chosen, textbook(mean, variance, np.full(30, 0.25), agent.belief.horizon, list(range(30))), 100.0)
        agent.observe(x, chosen[0], float(rng.standard_normal()))


def test_by_the_clock_the_first_decisions_are_made_before_a_round_has_a_length() -> None:
    agent = drifting(ma.Drift(half_life=1000.0, clock="time"))
    assert agent.belief.horizon is None and KnowledgeGradient().rounds(agent.belief) == 1.0
    assert agent.decide(np.ones(D)) == 0
    agent.observe(np.ones((3, D)), [0, 1, 2], [1.0, 0.0, 1.0], at=[0.0, 10.0, 20.0])
    rho = 2 ** -(10 / 1000)
    assert KnowledgeGradient().rounds(agent.belief) == pytest.approx(rho / (1 - rho))


def test_where_nothing_drifts_a_horizon_must_be_given() -> None:
    agent = drifting(None)
    for ask in (lambda: agent.decide(np.ones(D)), lambda: agent.propensity(np.ones(D), 1)):
        with pytest.raises(InvalidInput, match=r"KnowledgeGradient\(horizon=.*nothing drifts") as refused:
            ask()
        assert refused.value.argument == "horizon"
    agent.decision = KnowledgeGradient(50, directions=1)
    assert agent.decide(np.ones(D)) == 0


@pytest.mark.parametrize("horizon", [-1.0, float("nan"), float("inf"), 2 * LONGEST, "ten", True])
def test_what_cannot_be_a_horizon_is_refused(horizon: Any) -> None:
    with pytest.raises(InvalidInput) as refused:
        KnowledgeGradient(horizon)
    assert refused.value.argument == "horizon"


def test_a_horizon_of_nothing_is_greedy_and_a_long_one_looks_around() -> None:
    case = random_case(5, "weights", actions=K, dim=D)
    agent = Agent(case.belief, KnowledgeGradient(0), 0)
    agent.observe(*random_rows(5, 25, D, np.arange(5)))
    X = np.random.default_rng(0).uniform(-1, 1, (60, D))
    short = np.asarray(agent.decide(X, k=2))
    agent.decision = KnowledgeGradient(1e6)
    far = np.asarray(agent.decide(X, k=2))
    agent.decision = ma.Greedy()
    np.testing.assert_array_equal(short, agent.decide(X, k=2))
    assert (far != short).any()


# ---- an agent like any other ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("decision", [KnowledgeGradient(40), EpsilonMixed(KnowledgeGradient(40), 0.2)], ids=str)
def test_it_is_an_agent_like_any_other(decision: Any, tmp_path: Path) -> None:
    prior = ma.MixedEffectPrior.isotropic(np.random.default_rng(0).uniform(-1, 1, (9, 2)), 3)
    checks.check_agent(lambda seed: Agent(ma.beliefs.belief_of(prior, ma.Linear()), decision, seed, "kg"))
    agent = Agent(ma.beliefs.belief_of(prior, ma.Linear()), decision, 3)
    agent.observe(np.ones((4, 3)), [1, 2, 3, 1], [1.0, 0.0, 2.0, -1.0])
    agent.save(tmp_path)
    again = ma.load(tmp_path)
    assert again.decision == decision
    X = np.random.default_rng(0).uniform(-1, 1, (20, 3))
    np.testing.assert_array_equal(again.decide(X, k=3, draw=4), agent.decide(X, k=3, draw=4))


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("options", [{}, {"candidates": [6, 4, 2, 0, 1]}, {"exclude": [0, 4]}], ids=str)
def test_mixed_with_uniform_play_its_propensities_are_exact(k: int, options: dict[str, Any]) -> None:
    case = random_case(12, "one-hot", actions=K, dim=D)
    rule, epsilon, x = KnowledgeGradient(50), 0.3, np.array([0.8, -0.5])
    agent = Agent(case.belief, EpsilonMixed(rule, epsilon), 7)
    agent.observe(*random_rows(3, 8, D, np.array([1, 4])))
    offered = [a for a in options.get("candidates", range(K)) if a not in options.get("exclude", ())]
    found = {a: agent.propensity(x, a, k=k, **options) for a in offered}
    assert all(p.exact for p in found.values())
    assert sum(p.value for p in found.values()) == pytest.approx(1, abs=1e-14)
    assert sum(p.inclusion for p in found.values()) == pytest.approx(k, abs=1e-13)
    alone = agent.copy()
    alone.decision = rule
    first, *_ = np.asarray(alone.decide(x, k=k, **options)).tolist()
    assert found[first].value == pytest.approx(1 - epsilon + epsilon / len(offered))
    assert alone.propensity(x, first, k=k, **options).value == 1.0


def test_as_a_policy() -> None:
    case = random_case(12, "weights", actions=K, dim=D)
    agent = Agent(case.belief, EpsilonMixed(KnowledgeGradient(50), 0.3), 7)
    agent.observe(*random_rows(3, 8, D, np.array([1, 4])))
    X = np.random.default_rng(0).uniform(-1, 1, (12, D))
    p = agent.as_policy().probabilities_of_many(X, np.tile(np.arange(K), (12, 1)))
    assert_allclose(p.sum(axis=1), 1.0)
    for x, row in zip(X, p, strict=True):
        assert_allclose(row, [agent.propensity(x, a).value for a in range(K)])
    agent.decision = KnowledgeGradient(50, directions=1)
    assert (
        agent.as_policy().probabilities_of_many(X, np.tile(np.arange(K), (12, 1))).argmax(axis=1)
        == np.asarray(agent.decide(X))
    ).all()


# ---- what it is for -----------------------------------------------------------------------------------------------------------


def regret_a_round(rule: str, K: int, rho: float, rounds: int, runs: int) -> Array:
    """(runs,): AR(1) arms of variance 1, noise 1, written out; the first third is not counted."""
    rng = np.random.default_rng(3)
    theta = rng.standard_normal((runs, K))
    mean, variance, each = np.zeros((runs, K)), np.ones((runs, K)), np.arange(runs)
    lost = np.zeros(runs)
    for t in range(rounds):
        if rule == "thompson":
            index = mean + np.sqrt(variance) * rng.standard_normal(mean.shape)
        elif rule == "greedy":
            index = mean
        else:
            ordered = np.sort(mean, axis=1)
            other = np.where(mean == ordered[:, -1:], ordered[:, -2:-1], ordered[:, -1:])
            index = mean + rho / (1 - rho) * expected_gain(np.abs(mean - other), variance, 1.0)
        a = index.argmax(axis=1)
        if t >= rounds // 3:
            lost += theta.max(axis=1) - theta[each, a]
        reward = theta[each, a] + rng.standard_normal(runs)
        gain = variance[each, a] / (variance[each, a] + 1.0)
        mean[each, a] += gain * (reward - mean[each, a])
        variance[each, a] *= 1 - gain
        theta = rho * theta + math.sqrt(1 - rho**2) * rng.standard_normal(theta.shape)
        mean, variance = rho * mean, rho**2 * variance + 1 - rho**2
    return lost / (rounds - rounds // 3)


def test_with_drifting_arms_it_loses_less_than_thompson_and_greedy() -> None:
    """100 arms with a half-life of 693 rounds: about 0.45 a round, against 0.77 and 1.30."""
    found = {rule: regret_a_round(rule, 100, 0.999, 3000, 12) for rule in ("thompson", "greedy", "gradient")}
    ours = found["gradient"]
    for rule in ("thompson", "greedy"):
        more = found[rule] - ours
        assert more.mean() > 4 * more.std(ddof=1) / math.sqrt(len(more))


def test_few_units_are_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 40,000 actions with distinct weights, the exact index of few is needed, before and after anything is learned."""
    rng, asked = np.random.default_rng(0), list[int]()
    prior = ma.MixedEffectPrior(rng.uniform(-1, 1, (40_000, 3)), np.zeros((3, D)), np.eye(3 * D), np.eye(D))
    agent = Agent(ma.beliefs.belief_of(prior, ma.Linear(1.0)), KnowledgeGradient(500), 0)
    moments = index_search.Blocked.moments
    monkeypatch.setattr(
        index_search.Blocked, "moments", lambda self, places: (asked.append(len(places)), moments(self, places))[1]
    )
    for _ in range(3):
        asked.clear()
        action = agent.decide(np.array([1.0, -0.5]))
        assert 0 < sum(asked) < 4000
        agent.observe(np.array([1.0, -0.5]), int(action), 1.0)
