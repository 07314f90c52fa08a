"""The model of drift is exact: the joint Gaussian of the root and of the actions at all times, conditioned by brute force."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import manyarms as ma
from drifting_gaussian import PRIORS, Dense, TimedRows, a_prior
from manyarms._base.typing import Array
from manyarms.beliefs import Belief, belief_of
from manyarms.beliefs.drift import expiry
from manyarms.beliefs.drift.leaves import DriftingLeaves
from manyarms.errors import InvalidInput

NOISE = 0.7
K, D = 4, 2


def close(have: Array, want: Array) -> None:
    """Equal to 1e-8 of the size of what is wanted."""
    assert_allclose(have, want, rtol=0, atol=1e-8 * max(1.0, float(np.abs(want).max())))


def drifting(kind: str, seed: int, half_life: float, **more: object) -> Belief:
    drift = ma.Drift(half_life=half_life, clock="time", tolerance=0.0, **more)  # type: ignore[arg-type]
    return belief_of(a_prior(kind, np.random.default_rng(seed), K, D), ma.Linear(NOISE), drift=drift)


def dense(kind: str, seed: int, half_life: float, rows: TimedRows, *times: float) -> Dense:
    joint = Dense(drifting(kind, seed, half_life), np.append(rows.times, times), np.log(2) / half_life)
    joint.learn(*rows.some(slice(None)), NOISE**2)
    return joint


def agree(belief: Belief, joint: Dense, time: float) -> None:
    """Root, actions, scores given the root, and moments are those of the joint Gaussian at that time."""
    mean, spread = joint.root()
    close(belief.root.mean(), mean)
    close(belief.root.factor() @ belief.root.factor().T, spread)
    view = belief if time == belief.now else belief.at(time)
    means, spreads = view.action_posterior(np.arange(K))
    X = np.random.default_rng(5).standard_normal((3, D))
    offer = view.catalogue.offer()
    moments = view.played_moments(X, offer, spread=True)
    one_by_one = view.listed_moments(np.repeat(X[:, None], K, axis=1), np.arange(K), spread=True)
    predicted = view.predictive(np.repeat(X, K, axis=0), np.tile(np.arange(K), 3))
    for a in range(K):
        mu, S = joint.action(a, time)
        close(means[a], mu)
        close(spreads[a], S)
        scores, variances = X @ mu, np.einsum("ni,ij,nj->n", X, S, X)
        for found in (one_by_one, tuple(part.reshape(3, K) for part in predicted)):
            close(found[0][:, a], scores)
            close(found[1][:, a], variances)
        slot = view.catalogue.slot(a)
        if slot >= 0:
            close(moments[0][:, slot], scores)
            close(moments[1][:, slot], variances)


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.sampled_from(PRIORS), st.sampled_from((0.3, 3.0, 40.0, 1e6)))
def test_rows_in_order_give_the_conditioned_joint_gaussian(seed: int, kind: str, half_life: float) -> None:
    rng = np.random.default_rng(seed)
    rows = TimedRows.drawn(14, K, D, 10.0, rng)
    belief = drifting(kind, seed, half_life)
    belief.observe(*rows.some(slice(0, 5)))
    for i in range(5, len(rows)):
        belief.observe(*rows.some(slice(i, i + 1)))
    agree(belief, dense(kind, seed, half_life, rows, 12.5), 12.5)


@pytest.mark.parametrize("kind", PRIORS)
def test_a_batch_is_its_rows_one_by_one_in_the_order_of_times(kind: str) -> None:
    rng = np.random.default_rng(3)
    rows = TimedRows.drawn(14, K, D, 10.0, rng)
    shuffled = rng.permutation(14)
    whole = drifting(kind, 3, 2.0)
    whole.observe(*rows.some(shuffled))
    agree(whole, dense(kind, 3, 2.0, rows, 11.0), 11.0)


@pytest.mark.parametrize("kind", PRIORS)
def test_rounds_are_counted(kind: str) -> None:
    """The i-th row has the time i, and the next decision the time after it."""
    rng = np.random.default_rng(4)
    rows = TimedRows.drawn(9, K, D, 10.0, rng)
    rows.times = np.arange(9.0)
    prior = a_prior(kind, np.random.default_rng(4), K, D)
    belief = belief_of(prior, ma.Linear(NOISE), drift=ma.Drift(rho=0.8, tolerance=0.0))
    belief.observe(rows.X[:4], rows.actions[:4], rows.rewards[:4])
    belief.observe(rows.X[4:], rows.actions[4:], rows.rewards[4:])
    assert belief.now == 9.0
    assert belief.horizon == pytest.approx(0.8 / 0.2)
    agree(belief, dense(kind, 4, np.log(2) / -np.log(0.8), rows, 9.0), 9.0)


@pytest.mark.parametrize("kind", PRIORS)
def test_without_time_between_rows_nothing_drifts(kind: str) -> None:
    rng = np.random.default_rng(6)
    rows = TimedRows.drawn(12, K, D, 1.0, rng)
    static = belief_of(a_prior(kind, np.random.default_rng(6), K, D), ma.Linear(NOISE))
    belief = drifting(kind, 6, 1.0)
    static.observe(rows.X, rows.actions, rows.rewards)
    belief.observe(rows.X, rows.actions, rows.rewards, at=3.0)
    for ours, theirs in zip(belief.action_posterior(np.arange(K)), static.action_posterior(np.arange(K)), strict=True):
        close(ours, theirs)


# ---- late rows ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", PRIORS)
def test_a_late_row_is_exact_where_its_action_has_none_later(kind: str) -> None:
    rng = np.random.default_rng(8)
    rows = TimedRows.drawn(12, K, D, 10.0, rng)
    last = np.flatnonzero(rows.actions == 0)[-1]
    others = np.delete(np.arange(12), last)
    belief = drifting(kind, 8, 3.0)
    belief.observe(*rows.some(others))
    belief.observe(*rows.some(slice(last, last + 1)))
    agree(belief, dense(kind, 8, 3.0, rows, 12.0), 12.0)


def late_errors(half_life: float, delay: float, between: int, seed: int) -> tuple[float, float]:
    """Errors of the mean, in standard deviations, where a row comes after later ones of its action: folded, left out."""
    rng = np.random.default_rng(seed)
    number = 20 + between
    rows = TimedRows(
        rng.standard_normal((number, D)),
        np.zeros(number, np.int64),
        rng.standard_normal(number),
        np.arange(float(number)),
    )
    late = number - 1 - between
    rows.times[late + 1 :] = rows.times[late] + np.linspace(0, delay, between + 1)[1:]
    end = float(rows.times[-1])
    order = np.append(np.delete(np.arange(number), late), late)
    belief = drifting("independent", 1, half_life)
    for i in order:
        belief.observe(*rows.some(slice(i, i + 1)))
    without = drifting("independent", 1, half_life)
    without.observe(*rows.some(order[:-1]))
    mean, spread = dense("independent", 1, half_life, rows, end).action(0, end)
    sd = np.sqrt(np.diag(spread))
    return tuple(
        float(np.abs((b.at(end).action_posterior(np.array([0]))[0][0] - mean) / sd).max()) for b in (belief, without)
    )  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("half_life", "delay", "between"), [(200.0, 1.0, 1), (200.0, 4.0, 4), (200.0, 16.0, 4), (20.0, 4.0, 4)]
)
def test_the_error_of_a_late_row_among_later_ones_is_small(half_life: float, delay: float, between: int) -> None:
    """A small part of a standard deviation (0.01 to 0.08 were seen), and far less than what leaving it out would cost."""
    found = np.array([late_errors(half_life, delay, between, seed) for seed in range(60)])
    folded, left_out = found.mean(axis=0)
    assert folded < 0.75 * left_out
    assert folded < 0.2


def test_the_covariance_with_an_earlier_time_is_that_of_the_smoother() -> None:
    """Equal steps in a steady state: where the formula has no approximation left."""
    half_life, gap, number = 30.0, 2.0, 400
    rng = np.random.default_rng(0)
    belief = drifting("independent", 1, half_life)
    joint_times = np.arange(number) * gap
    rows = TimedRows(
        np.tile([1.0, 0.5], (number, 1)), np.zeros(number, np.int64), rng.standard_normal(number), joint_times
    )
    belief.observe(*rows.some(slice(None)))
    leaves = belief.leaves
    assert isinstance(leaves, DriftingLeaves)
    recent = rows.some(slice(number - 60, number))  # what is earlier does not matter any more
    joint = Dense(drifting("independent", 1, half_life), recent[3], leaves.rate)
    joint.learn(*recent, NOISE**2)
    state = leaves.state(0)
    for steps in (1, 3, 10):
        then = joint.place(0, float(joint_times[-1 - steps]))
        want = joint.covariance[joint.place(0, float(joint_times[-1])), then]
        g = leaves.correlation(steps * gap)
        assert_allclose(state.look_back(g, leaves.covariance, steps).covariance, want, atol=1e-5)


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.sampled_from(PRIORS), st.sampled_from((1.0, 5.0, 100.0)))
def test_late_rows_are_exact_where_rows_are_kept(seed: int, kind: str, keep: float) -> None:
    """Each row comes up to `keep` later than it was decided, others of its action in between."""
    rng = np.random.default_rng(seed)
    rows = TimedRows.drawn(16, K, D, 10.0, rng)
    order = np.argsort(rows.times + rng.uniform(0, keep, 16), kind="stable")
    belief = drifting(kind, seed, 3.0, late=keep)
    for i in order.tolist():
        belief.observe(*rows.some(slice(i, i + 1)))
    agree(belief, dense(kind, seed, 3.0, rows, 12.0), 12.0)


def test_rows_that_are_kept_are_let_go() -> None:
    agent = ma.LinTS(ma.ActionPrior(9, [0.0], [[1.0]]), drift=ma.Drift(half_life=500, clock="time", late=10.0), seed=0)
    for t in range(4_000):
        agent.observe([1.0], t % 3, 1.0, at=float(t))
    leaves = agent.belief.leaves
    assert isinstance(leaves, DriftingLeaves)
    assert sum(len(kept.rows) for kept in leaves.kept.values()) <= 15


def test_two_rows_that_swapped_their_order_are_exact() -> None:
    """Of an action that has had one row in all, nothing is known of then but what is known now."""
    for kind in PRIORS:
        rows = TimedRows(
            np.array([[1.0, 0.5], [-0.3, 1.0]]), np.zeros(2, np.int64), np.array([0.3, 2.0]), np.array([9.0, 10.0])
        )
        belief = drifting(kind, 1, 5.0)
        belief.observe(*rows.some(slice(1, 2)))
        belief.observe(*rows.some(slice(0, 1)))
        agree(belief, dense(kind, 1, 5.0, rows, 12.0), 12.0)


def test_a_backlog_of_late_rows_does_not_make_the_root_too_sure() -> None:
    """They say together, and not each for itself, what they say of an earlier time."""
    prior = ma.HierarchicalPrior(5, [0.0], [[1.0]], [[1.0]])
    for gap in (10.0, 100.0):
        number = 100
        times = np.concatenate([-gap - 0.01 * np.arange(number)[::-1], [0.0]])
        rows = TimedRows(
            np.ones((number + 1, 1)), np.zeros(number + 1, np.int64), np.append(np.full(number, 2.0), 0.0), times
        )
        drift = ma.Drift(half_life=10.0, clock="time", tolerance=0.0)
        belief = belief_of(prior, ma.Linear(0.5), drift=drift)
        belief.observe(*rows.some(slice(number, number + 1)))
        belief.observe(*rows.some(slice(0, number)))
        joint = Dense(belief_of(prior, ma.Linear(0.5)), times, drift.rate)
        joint.learn(*rows.some(slice(None)), 0.25)
        mean, spread = joint.root()
        assert 0.8 * spread[0, 0] < belief.root.factor()[0, 0] ** 2 < 1.3 * spread[0, 0]
        assert abs(belief.root.mean()[0] - mean[0]) < 0.5 * np.sqrt(spread[0, 0])


def test_a_row_from_before_those_that_are_kept_stays_learned() -> None:
    prior = ma.HierarchicalPrior(5, [0.0], [[1.0]], [[1.0]])
    agent = ma.HierTS(prior, ma.Linear(0.3), drift=ma.Drift(half_life=1000.0, clock="time", late=2.0), seed=0)
    for t in (0.0, 10.0, 20.0):
        agent.observe([1.0], 0, 1.0, at=t)
    agent.observe([1.0], 0, -20.0, at=5.0)
    before = agent.posterior(0, at=20.0)[0][0]
    agent.observe([1.0], 0, 1.0, at=19.0)  # which filters the kept rows again
    assert before < -1.5 and agent.posterior(0, at=20.0)[0][0] < -1.5
    agent.replace_reward([1.0], 0, was=1.0, now=11.0, at=0.0)
    moved = agent.posterior(0, at=20.0)[0][0]
    agent.observe([1.0], 0, 1.0, at=19.5)
    assert moved > -1.0 and agent.posterior(0, at=20.0)[0][0] > -1.0


def test_late_rows_that_are_kept_are_its_own() -> None:
    agent = ma.LinTS(ma.ActionPrior(3, [0.0], [[1.0]]), drift=ma.Drift(half_life=10.0, clock="time", late=50.0), seed=0)
    x = np.array([1.0])
    agent.observe(x, 0, 1.0, at=8.0)
    agent.observe(x, 0, 1.0, at=5.0)
    x[0] = -7.0
    leaves = agent.belief.leaves
    assert isinstance(leaves, DriftingLeaves)
    assert [float(row.x[0]) for row in leaves.kept[0].rows] == [1.0, 1.0]


@pytest.mark.parametrize("gap", [1.0, 50.0, 50_000.0, 1e14])
def test_late_clicks_leave_a_sane_belief(gap: float) -> None:
    prior = ma.HierarchicalPrior(5, [0.0], [[1.0]], [[1.0]])
    agent = ma.HierTS(prior, ma.Logistic(), drift=ma.Drift(half_life=10.0, clock="time"), seed=0)
    agent.observe([[1.0], [1.0]], [0, 0], [1.0, 1.0], at=gap)
    agent.observe([1.0], 0, 0.0, at=0.0)
    assert abs(agent.posterior(0)[0][0]) < 2
    assert np.abs(agent.belief.root.mean()).max() < 2


# ---- rewards that are replaced ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", PRIORS)
def test_replacing_the_last_reward_of_an_action_is_exact(kind: str) -> None:
    rng = np.random.default_rng(9)
    rows = TimedRows.drawn(12, K, D, 10.0, rng)
    last = int(np.flatnonzero(rows.actions == 1)[-1])
    belief = drifting(kind, 9, 3.0)
    first = rows.rewards.copy()
    first[last] = 40.0
    belief.observe(rows.X, rows.actions, first, at=rows.times)
    x, a, r, t = rows.some(slice(last, last + 1))
    belief.correct_at(belief.correction(x, a, np.array([40.0]), r), t)
    agree(belief, dense(kind, 9, 3.0, rows, 12.0), 12.0)


@pytest.mark.parametrize("kind", PRIORS)
def test_replacing_any_reward_is_exact_where_rows_are_kept(kind: str) -> None:
    rng = np.random.default_rng(10)
    rows = TimedRows.drawn(16, K, D, 10.0, rng)
    belief = drifting(kind, 9, 3.0, late=100.0)
    belief.observe(rows.X, rows.actions, 5.0 - rows.rewards, at=rows.times)
    for i in rng.permutation(16).tolist():
        x, a, r, t = rows.some(slice(i, i + 1))
        belief.correct_at(belief.correction(x, a, 5.0 - r, r), t)
    agree(belief, dense(kind, 9, 3.0, rows, 12.0), 12.0)


@pytest.mark.parametrize("gap", [1.0, 10.0, 100.0])
def test_replacing_an_old_reward_tells_the_root_no_more_than_it_was_worth(gap: float) -> None:
    prior = ma.HierarchicalPrior(5, [0.0], [[1.0]], [[1.0]])
    drift = ma.Drift(half_life=10.0, clock="time", tolerance=0.0)
    agent = ma.HierTS(prior, ma.Linear(0.1), drift=drift, seed=0)
    agent.observe([1.0], 0, 0.0, at=0.0)
    agent.observe([1.0], 0, 0.0, at=gap)
    agent.replace_reward([1.0], 0, was=0.0, now=1.0, at=0.0)
    joint = Dense(belief_of(prior, ma.Linear(0.1)), np.array([0.0, gap]), drift.rate)
    joint.learn(np.ones((2, 1)), np.zeros(2, np.int64), np.array([1.0, 0.0]), np.array([0.0, gap]), 0.01)
    mean, _ = joint.root()
    assert 0 <= agent.belief.root.mean()[0] < 1.1 * mean[0]


def test_a_replaced_reward_tells_a_root_that_drifts_what_is_left_of_it() -> None:
    prior = ma.HierarchicalPrior(5, [0.0], [[100.0]], [[1.0]])
    drift = ma.Drift(half_life=1000.0, clock="time", root_half_life=1.0)
    agent = ma.HierTS(prior, ma.Linear(0.5), drift=drift, seed=0)
    agent.observe([1.0], 0, 0.0, at=0.0)
    agent.advance(at=50.0)
    agent.replace_reward([1.0], 0, was=0.0, now=1.0)
    assert abs(agent.belief.root.mean()[0]) < 1e-6


def test_what_was_forgotten_is_not_replaced() -> None:
    agent = ma.LinTS(ma.ActionPrior(50, [0.0], [[1.0]]), drift=ma.Drift(half_life=1.0, clock="time"), seed=0)
    agent.observe([1.0], 3, 5.0, at=0.0)
    agent.advance(at=1_000.0)
    assert agent.played == 0
    agent.replace_reward([1.0], 3, was=5.0, now=7.0, at=0.0)
    assert agent.posterior(3)[0] == 0.0


# ---- actions that are forgotten -----------------------------------------------------------------------------------------


def total_variation(mean: float, variance: float) -> float:
    """Between N(mean, variance) and N(0, 1), by quadrature."""
    x = np.linspace(-12, 12, 200_001)
    density = np.exp(-0.5 * (x - mean) ** 2 / variance) / np.sqrt(2 * np.pi * variance)
    return float(np.trapezoid(np.abs(density - np.exp(-0.5 * x**2) / np.sqrt(2 * np.pi)), x)) / 2


@pytest.mark.parametrize("tolerance", [1e-2, 1e-3])
def test_an_action_is_let_go_where_it_is_within_the_tolerance_of_its_prior(tolerance: float) -> None:
    for seed in range(5):
        rng = np.random.default_rng(seed)
        drift = ma.Drift(half_life=1.0, clock="time", tolerance=tolerance)
        agent = ma.LinTS(ma.ActionPrior(1_000, [0.0], [[1.0]]), ma.Linear(0.3), drift=drift, seed=0)
        for _ in range(20):
            agent.observe([1.0], 7, float(rng.normal(2.0)), at=0.0)
        time = 0.0
        while agent.played:
            mean, spread = agent.posterior(7, at=time)
            time += 0.05
            agent.advance(at=time)
        assert total_variation(float(mean[0]), float(spread[0, 0])) <= 1.1 * tolerance  # one step before it was let go
        assert time > 5  # not at once


def test_divergence_is_that_of_gaussians() -> None:
    rng = np.random.default_rng(0)
    rows = TimedRows.drawn(20, K, D, 10.0, rng)
    belief = drifting("own covariances", 2, 4.0)
    belief.observe(*rows.some(slice(None)))
    leaves = belief.leaves
    assert isinstance(leaves, DriftingLeaves)
    slots = np.arange(len(leaves.counts))
    found = expiry.divergences(belief.root, leaves, slots)
    for slot, value in zip(slots, found, strict=True):
        a = int(leaves.catalogue.played.rows[slot])
        mean, S = (part[0] for part in belief.action_posterior(np.array([a])))
        own = leaves.prior_covariance(np.array([a]))[0]
        away = mean - leaves.mixing.apply(np.array([a]), belief.root.mean())[0]
        inverse = np.linalg.inv(own)
        want = np.trace(inverse @ S) - D - np.log(np.linalg.det(inverse @ S)) + away @ inverse @ away
        assert value == pytest.approx(want / 2, rel=1e-9)


def test_divergence_takes_in_what_is_open_about_the_root() -> None:
    """In expectation over the root, by quadrature over draws of it."""
    rng = np.random.default_rng(1)
    rows = TimedRows.drawn(20, K, D, 10.0, rng)
    belief = drifting("hierarchical", 2, 4.0)
    belief.observe(*rows.some(slice(None)))
    leaves = belief.leaves
    assert isinstance(leaves, DriftingLeaves)
    slots = np.arange(len(leaves.counts))
    S, c = leaves.posterior(slots)
    inverse = np.linalg.inv(leaves.covariance)
    M = belief.root.draw(rng, 200_000)
    for slot, value in zip(slots, expiry.divergences(belief.root, leaves, slots), strict=True):
        full, pull = leaves.packing.unpack(S[slot]), leaves.pulls(slots)[slot]
        away = c[slot] + M @ (pull - np.eye(D)).T
        squares = np.einsum("ni,ij,nj->n", away, inverse, away)
        want = np.trace(inverse @ full) - D - np.log(np.linalg.det(inverse @ full)) + squares.mean()
        assert value == pytest.approx(want / 2, abs=6 * float(squares.std()) / np.sqrt(len(M)))


def test_a_catalogue_forgets_whom_it_played_long_ago() -> None:
    """Decisions cost what was played lately: the others are counted among those that nobody has played."""
    prior = ma.MixedEffectPrior(np.eye(3)[np.arange(600) % 3], np.zeros((3, 2)), np.eye(6), np.eye(2))
    agent = ma.meTS(prior, drift=ma.Drift(half_life=20), seed=0)
    rng = np.random.default_rng(0)
    for i in range(3_000):
        agent.observe(rng.standard_normal(2), i % 600, float(rng.standard_normal()))
    assert agent.played < 600
    assert agent.actions == 600
    catalogue = agent.belief.catalogue
    assert int(catalogue.units.counts.sum()) + agent.played == 600
    assert sorted(catalogue.slot_of.values()) == list(range(agent.played))
    chosen = {int(a) for a in agent.decide(rng.standard_normal((4_000, 2)))}
    assert len(chosen) > 250  # all kinds of actions come


def test_a_retired_action_that_is_forgotten_stays_retired() -> None:
    agent = ma.LinTS(ma.ActionPrior(10, [0.0], [[1.0]]), drift=ma.Drift(half_life=1.0, clock="time"), seed=0)
    for a in range(5):
        agent.observe([1.0], a, 3.0, at=0.0)
    agent.retire([2, 7])
    agent.advance(at=500.0)
    assert agent.played == 0
    assert agent.actions == 8
    assert not {int(a) for a in agent.decide(np.ones((500, 1)))} & {2, 7}
    agent.reinstate([2])
    assert 2 in {int(a) for a in agent.decide(np.ones((500, 1)))}


# ---- other likelihoods, the root, one parameter for all -----------------------------------------------------------------


def test_logistic_rewards_follow_a_change() -> None:
    prior = ma.ActionPrior(3, [0.0], [[4.0]])
    agent = ma.agents.GLMTS(prior, drift=ma.Drift(half_life=50), seed=0)
    static = ma.agents.GLMTS(prior, seed=0)
    rng = np.random.default_rng(0)
    for i in range(600):
        reward = float(rng.random() < (0.9 if i < 400 else 0.1))
        agent.observe([1.0], 1, reward)
        static.observe([1.0], 1, reward)
    assert agent.posterior(1)[0][0] < -0.5
    assert static.posterior(1)[0][0] > 0.2


def test_one_logistic_row_is_laplace_at_the_mode() -> None:
    """Without drift in between, the first row of a leaf is the expansion at the posterior's mode, as without `drift=`."""
    prior = ma.ActionPrior(3, [0.3, -0.2], [[2.0, 0.3], [0.3, 1.0]])
    x = [1.0, 0.7]
    agents = [
        ma.agents.GLMTS(prior, seed=0),
        ma.agents.GLMTS(prior, drift=ma.Drift(half_life=1.0, clock="time"), seed=0),
    ]
    for agent in agents:
        agent.observe(x, 1, 1.0)
    for ours, theirs in zip(agents[1].posterior(1), agents[0].posterior(1), strict=True):
        assert_allclose(ours, theirs, atol=1e-6)


def test_a_root_that_drifts_relaxes_towards_its_prior() -> None:
    prior = a_prior("hierarchical", np.random.default_rng(0), K, D)
    drift = ma.Drift(half_life=5.0, clock="time", root_half_life=2.0)
    agent = ma.HierTS(prior, ma.Linear(NOISE), drift=drift, seed=0)  # type: ignore[arg-type]
    rng = np.random.default_rng(1)
    for t in range(40):
        agent.observe(rng.standard_normal(D), int(rng.integers(K)), 3.0, at=float(t) / 10)
    before = agent.belief.root.factor()
    agent.advance(at=500.0)
    fresh = belief_of(prior, ma.Linear(NOISE)).root
    close(agent.belief.root.mean(), fresh.mean())
    close(agent.belief.root.factor() @ agent.belief.root.factor().T, fresh.factor() @ fresh.factor().T)
    assert np.trace(before @ before.T) < np.trace(fresh.factor() @ fresh.factor().T)


def test_relaxing_weighs_the_evidence_of_a_root() -> None:
    """left Lambda + (1 - left) Lambda_0, of precision and information alike."""
    prior = a_prior("hierarchical", np.random.default_rng(0), K, D)
    rng = np.random.default_rng(1)
    X, A, r = rng.standard_normal((30, D)), rng.integers(K, size=30), rng.standard_normal(30)
    belief, fresh = belief_of(prior, ma.Linear(NOISE)), belief_of(prior, ma.Linear(NOISE)).root
    belief.observe(X, A, r)
    root = belief.root
    assert isinstance(root, ma.beliefs.GaussianRoot)
    assert isinstance(fresh, ma.beliefs.GaussianRoot)
    P0, P = fresh.precision(), root.precision()
    want = 0.3 * P + 0.7 * P0
    information = 0.3 * P @ root.mean() + 0.7 * P0 @ fresh.mean()
    root.relax(0.3)
    close(root.precision(), want)
    close(root.mean(), np.linalg.solve(want, information))


def test_one_parameter_for_all_actions_may_drift() -> None:
    prior = ma.ActionPrior(1, np.zeros(2), np.eye(2))
    agent = ma.agents.jointTS(prior, 5, drift=ma.Drift(half_life=10), seed=0)
    joint = Dense(belief_of(prior, ma.Linear(1.0)), np.arange(7.0), np.log(2) / 10)
    rng = np.random.default_rng(0)
    X, r = rng.standard_normal((6, 2)), rng.standard_normal(6)
    for x, reward in zip(X, r, strict=True):
        agent.observe(x, 2, float(reward))
    joint.learn(X, np.zeros(6, np.int64), r, np.arange(6.0), 1.0)
    Z = rng.standard_normal((5, 2))
    mean, variance = agent.belief.at(None).listed_moments(Z[None], np.arange(5), spread=True)
    mu, S = joint.action(0, 6.0)
    close(mean[0], Z @ mu)
    close(variance[0], np.einsum("ni,ij,nj->n", Z, S, Z))


# ---- what is refused ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({}, "half_life"),
        ({"half_life": 3.0, "rho": 0.5}, "half_life"),
        ({"half_life": -1.0}, "half_life"),
        ({"half_life": float("nan")}, "half_life"),
        ({"rho": 1.0}, "rho"),
        ({"rho": 0.0}, "rho"),
        ({"half_life": 3.0, "clock": "days"}, "clock"),
        ({"half_life": 3.0, "root_half_life": 0.0}, "root_half_life"),
        ({"half_life": 3.0, "tolerance": 1.0}, "tolerance"),
    ],
)
def test_settings_that_mean_nothing_are_refused(arguments: dict[str, object], named: str) -> None:
    with pytest.raises(InvalidInput, match=named):
        ma.Drift(**arguments)  # type: ignore[arg-type]


def test_dates_are_seconds_since_1970_and_utc_where_they_do_not_say() -> None:
    from datetime import UTC, datetime, timedelta, timezone

    agent = ma.LinTS(
        ma.ActionPrior(3, [0.0], [[1.0]]), drift=ma.Drift(half_life=timedelta(hours=1), clock="time"), seed=0
    )
    noon = datetime(2026, 11, 18, 12, 0)
    east = timezone(timedelta(hours=2))
    for at in (
        noon,
        noon.replace(tzinfo=UTC),
        datetime(2026, 11, 18, 14, 0, tzinfo=east),
        np.datetime64("2026-11-18T12:00"),
    ):
        agent.observe([1.0], 0, 1.0, at=at)
        assert agent.now == 1_795_003_200.0
    agent.observe([[1.0], [1.0]], [0, 1], [1.0, 1.0], at=[noon, noon + timedelta(hours=1)])
    agent.observe(
        [[1.0], [1.0]], [0, 1], [1.0, 1.0], at=np.array(["2026-11-18T12:00", "2026-11-18T13:00"], dtype="M8[s]")
    )
    assert agent.now == 1_795_003_200.0 + 3600
    with pytest.raises(InvalidInput, match="NaT"):
        agent.decide([1.0], at=np.datetime64("NaT"))


def test_times_are_refused_where_rounds_count_and_where_they_are_no_times() -> None:
    prior = ma.ActionPrior(3, [0.0], [[1.0]])
    counting = ma.LinTS(prior, drift=ma.Drift(half_life=5), seed=0)
    timed = ma.LinTS(prior, drift=ma.Drift(half_life=5, clock="time"), seed=0)
    static = ma.LinTS(prior, seed=0)
    for agent in (counting, timed, static):
        with pytest.raises(InvalidInput, match="at"):
            agent.observe([[1.0], [1.0]], [0, 1], [1.0, 2.0], at=[1.0, 2.0, 3.0])
    with pytest.raises(InvalidInput, match="at"):
        counting.observe([1.0], 0, 1.0, at=3.0)
    with pytest.raises(InvalidInput, match="at"):
        counting.decide([1.0], at=3.0)
    for value in (float("nan"), "soon", 1e300, [1.0, 2.0]):
        with pytest.raises(InvalidInput, match="at"):
            timed.decide([1.0], at=value)
    assert timed.version == counting.version == 0
    static.decide([1.0], at=12.0)  # of no consequence


def test_drift_is_refused_where_it_is_not_built() -> None:
    prior = ma.MixedEffectPrior([[1.0, 0.0], [0.0, 1.0]], [[0.0], [0.0]], np.eye(2), [[1.0]])
    agent = ma.meTS(prior, drift=ma.Drift(half_life=5), seed=0)
    agent.observe([1.0], 0, 1.0)
    with pytest.raises(InvalidInput, match="weights"):
        agent.update_actions([0], weights=[[0.0, 1.0]])
    with pytest.raises(InvalidInput, match="drift"):
        ma.LinTS(ma.ActionPrior(3, [0.0], [[1.0]]), drift=0.5)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="noise"):
        ma.LinTS(ma.ActionPrior(3, [0.0], [[1.0]]), ma.Linear(1e-6), drift=ma.Drift(half_life=5))
