"""Discounting and sliding windows: the beliefs of weighted rows, and of the rows of the window alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import manyarms as ma
from drifting_gaussian import PRIORS, Dense, TimedRows, a_prior
from manyarms._base.typing import Array
from manyarms.beliefs import Belief, Discount, SlidingWindow, belief_of
from manyarms.beliefs.drift.window_memory import WindowMemory
from manyarms.errors import InvalidInput

NOISE = 0.7
K, D = 4, 2
seeds = st.integers(0, 10**6)


def close(have: Array, want: Array, to: float = 1e-8) -> None:
    """Equal to that share of the size of what is wanted."""
    assert_allclose(have, want, rtol=0, atol=to * max(1.0, float(np.abs(want).max())))


def forgetful(kind: str, seed: int, how: Discount | SlidingWindow | None) -> Belief:
    return belief_of(a_prior(kind, np.random.default_rng(seed), K, D), ma.Linear(NOISE), drift=how)


def weighted(kind: str, seed: int, rows: TimedRows, weights: Array) -> Dense:
    """The joint Gaussian, conditioned on rows that count so much each."""
    joint = Dense(forgetful(kind, seed, None), np.zeros(1), 0.0)
    some = np.flatnonzero(weights > 1e-300)
    noisy = np.sqrt(weights[some])  # as noise of variance sigma^2 / w
    joint.learn(
        rows.X[some] * noisy[:, None], rows.actions[some], rows.rewards[some] * noisy, np.zeros(len(some)), NOISE**2
    )
    return joint


def agree(belief: Belief, joint: Dense, to: float = 1e-8) -> None:
    mean, spread = joint.root()
    close(belief.root.mean(), mean, to)
    close(belief.root.factor() @ belief.root.factor().T, spread, to)
    means, spreads = belief.action_posterior(np.arange(K))
    for a in range(K):
        mu, S = joint.action(a, 0.0)
        close(means[a], mu, to)
        close(spreads[a], S, to)


# ---- discounting -------------------------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(seeds, st.sampled_from(PRIORS), st.sampled_from((0.5, 3.0, 50.0)), st.sampled_from((1e-3, 0.05, 0.5)))
def test_discounted_rows_count_by_their_age(seed: int, kind: str, half_life: float, lag: float) -> None:
    """Up to the common factor that is not worked off yet, which lies between 1 and 1 - lag."""
    rng = np.random.default_rng(seed)
    rows = TimedRows.drawn(20, K, D, 10.0, rng)
    belief = forgetful(kind, seed, Discount(half_life=half_life, clock="time", lag=lag, tolerance=0.0))
    belief.observe(*rows.some(slice(0, 6)))
    for i in range(6, len(rows)):
        belief.observe(*rows.some(slice(i, i + 1)))
    assert belief.memory is not None
    since = float(belief.memory.arrays()["discount"][0])
    left = 2 ** (-(rows.times[-1] - since) / half_life)
    assert 1 - lag <= left * (1 + 1e-12) <= 1 + 1e-9
    weights = 2 ** ((rows.times - since) / half_life)  # as of the last time that it was worked off
    agree(belief, weighted(kind, seed, rows, weights))


@pytest.mark.parametrize("kind", PRIORS)
def test_time_that_passes_without_rows_discounts_all(kind: str) -> None:
    rng = np.random.default_rng(0)
    rows = TimedRows.drawn(12, K, D, 1.0, rng)
    rows.times[:] = 0.0
    belief = forgetful(kind, 1, Discount(half_life=2.0, clock="time", tolerance=0.0))
    belief.observe(*rows.some(slice(None)))
    belief.pass_to(6.0)
    agree(belief, weighted(kind, 1, rows, np.full(12, 1 / 8)))
    belief.pass_to(1e6)
    agree(belief, weighted(kind, 1, rows, np.zeros(12)), 1e-7)


def test_variances_stay_below_the_priors_where_nothing_is_seen() -> None:
    """Plain exponential forgetting lets the variance of a direction that nobody looks at grow without bound."""
    agent = ma.LinTS(ma.ActionPrior(1, np.zeros(2), np.eye(2)), drift=Discount(half_life=5), seed=0)
    for _ in range(5_000):
        agent.observe([1.0, 0.0], 0, 1.0)
    _, spread = agent.posterior(0)
    assert spread[1, 1] == pytest.approx(1.0)
    assert spread[0, 0] < 0.2


@pytest.mark.parametrize("kind", PRIORS)
def test_replacing_a_discounted_reward(kind: str) -> None:
    rng = np.random.default_rng(2)
    rows = TimedRows.drawn(20, K, D, 10.0, rng)
    how = Discount(half_life=3.0, clock="time", tolerance=0.0)
    right, belief = forgetful(kind, 3, how), forgetful(kind, 3, how)
    right.observe(*rows.some(slice(None)))
    belief.observe(rows.X, rows.actions, rows.rewards + 4.0, at=rows.times)
    belief.correct_at(belief.correction(rows.X, rows.actions, rows.rewards + 4.0, rows.rewards), rows.times)
    for ours, theirs in zip(belief.action_posterior(np.arange(K)), right.action_posterior(np.arange(K)), strict=True):
        close(ours, theirs)


def test_replacing_the_last_reward_of_an_action_that_was_played_long_ago() -> None:
    """By rounds there are no times to give: the last row of the action is meant, with the weight that it has by now."""
    prior = ma.HierarchicalPrior(5, [0.0], [[1.0]], [[1.0]])

    def played(reward: float) -> ma.Agent:
        agent = ma.HierTS(prior, ma.Linear(0.1), drift=Discount(half_life=10), seed=0)
        agent.observe([1.0], 0, reward)
        for _ in range(60):
            agent.observe([1.0], 1, 0.0)
        return agent

    agent, right = played(0.0), played(1.0)
    agent.replace_reward([1.0], 0, was=0.0, now=1.0)
    for a in range(5):
        close(agent.posterior(a)[0], right.posterior(a)[0])


@pytest.mark.parametrize("how", [Discount(half_life=1e6), SlidingWindow(length=1e6)])
def test_decisions_know_of_replaced_rewards(how: Discount | SlidingWindow) -> None:
    """Bounds of played actions, which many of them have, are told: the decisions are those of the same agent, loaded anew."""
    K, d = 6_000, 16
    rng = np.random.default_rng(0)
    agent = ma.LinTS(ma.ActionPrior(K, np.zeros(d), np.eye(d)), drift=how, seed=0)
    X, r = rng.standard_normal((K, d)), rng.standard_normal(K)
    agent.observe(X, np.arange(K), r)
    contexts = rng.standard_normal((40, d))
    for x in contexts:
        agent.decide(x)
    agent.replace_reward(X[:30], np.arange(30), was=r[:30], now=r[:30] + 100.0)
    again = agent.copy()
    again.belief.rebuilt()
    assert [agent.decide(x, draw=n) for n, x in enumerate(contexts)] == [
        again.decide(x, draw=n) for n, x in enumerate(contexts)
    ]


def test_discounted_actions_are_forgotten() -> None:
    agent = ma.HierTS(ma.HierarchicalPrior(500, [0.0], [[1.0]], [[1.0]]), drift=Discount(half_life=10), seed=0)
    for i in range(2_000):
        agent.observe([1.0], i % 500, 1.0)
    assert 0 < agent.played < 400
    assert agent.actions == 500


# ---- windows -----------------------------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(seeds, st.sampled_from(PRIORS), st.sampled_from((0.5, 3.0, 50.0)), st.sampled_from((1, 4, 16)))
def test_the_window_is_a_fold_over_its_rows(seed: int, kind: str, length: float, steps: int) -> None:
    rng = np.random.default_rng(seed)
    rows = TimedRows.drawn(24, K, D, 10.0, rng)
    belief = forgetful(kind, seed, SlidingWindow(length=length, clock="time", steps=steps))
    belief.observe(*rows.some(slice(0, 9)))
    for i in range(9, len(rows)):
        belief.observe(*rows.some(slice(i, i + 1)))
    now = float(rows.times[-1])
    begins = (np.floor(now / (length / steps)) - steps) * (length / steps)
    inside = rows.times >= begins
    assert now - length - length / steps - 1e-9 <= begins <= now - length + 1e-9
    memory = belief.memory
    assert isinstance(memory, WindowMemory)
    assert memory.rows == inside.sum()
    agree(belief, weighted(kind, seed, rows, inside.astype(float)))
    assert set(belief.catalogue.played.rows.tolist()) == set(rows.actions[inside].tolist())


@pytest.mark.parametrize("kind", PRIORS)
def test_the_window_does_not_wear_out(kind: str) -> None:
    """After many times its length it is still a fold over its rows, to the last digits."""
    rng = np.random.default_rng(7)
    number = 3_000
    rows = TimedRows(
        rng.standard_normal((number, D)),
        rng.integers(K, size=number),
        rng.standard_normal(number),
        np.arange(float(number)),
    )
    belief = forgetful(kind, 7, SlidingWindow(length=40, steps=8))
    for i in range(number):
        belief.observe(rows.X[i : i + 1], rows.actions[i : i + 1], rows.rewards[i : i + 1])
    inside = rows.times >= (np.floor(number / 5) - 8) * 5
    agree(belief, weighted(kind, 7, rows, inside.astype(float)), 1e-12)


def test_replacing_a_reward_in_the_window_and_one_that_has_left_it() -> None:
    rng = np.random.default_rng(2)
    rows = TimedRows.drawn(20, K, D, 10.0, rng)
    right, belief = (forgetful("mixed effects", 3, SlidingWindow(length=4.0, clock="time")) for _ in range(2))
    right.observe(*rows.some(slice(None)))
    belief.observe(rows.X, rows.actions, rows.rewards + 4.0, at=rows.times)
    belief.correct_at(belief.correction(rows.X, rows.actions, rows.rewards + 4.0, rows.rewards), rows.times)
    for _ in range(2):  # and what leaves afterwards leaves with the reward that it has now
        for ours, theirs in zip(
            belief.action_posterior(np.arange(K)), right.action_posterior(np.arange(K)), strict=True
        ):
            close(ours, theirs)
        for one in (belief, right):
            one.pass_to(12.5)


def test_a_reward_that_has_left_the_window_is_not_replaced_by_one_that_looks_alike() -> None:
    prior = ma.ActionPrior(3, [0.0], [[1.0]])
    agent = ma.LinTS(prior, ma.Linear(0.5), drift=SlidingWindow(length=10.0, clock="time", steps=10), seed=0)
    agent.observe([1.0], 0, 0.0, at=0.0)
    agent.observe([1.0], 0, 0.0, at=14.0)
    agent.replace_reward([1.0], 0, was=0.0, now=1.0, at=0.0)
    assert agent.posterior(0)[0] == 0.0
    agent.replace_reward([1.0], 0, was=0.0, now=1.0, at=14.0)
    assert agent.posterior(0)[0] == pytest.approx(0.8)


def test_one_parameter_for_all_actions_in_a_window() -> None:
    prior = ma.ActionPrior(1, np.zeros(2), np.eye(2))
    agent = ma.agents.jointTS(prior, 5, drift=SlidingWindow(length=6, steps=3), seed=0)
    rng = np.random.default_rng(0)
    X, r = rng.standard_normal((40, 2)), rng.standard_normal(40)
    for x, reward in zip(X, r, strict=True):
        agent.observe(x, 2, float(reward))
    some = slice(34, 40)  # the window begins at a multiple of 2, 6 before 40
    fresh = ma.LinTS(prior, seed=0)
    fresh.observe(X[some], [0] * 6, r[some])
    Z = rng.standard_normal((5, 2))
    mean, variance = agent.belief.listed_moments(Z[None], np.arange(5), spread=True)
    mu, S = fresh.posterior(0)
    close(mean[0], Z @ mu)
    close(variance[0], np.einsum("ni,ij,nj->n", Z, S, Z))


# ---- refused -----------------------------------------------------------------------------------------------------------


def test_what_discounting_and_windows_are_not_for() -> None:
    prior = ma.ActionPrior(3, [0.0], [[1.0]])
    for how in (Discount(half_life=5), SlidingWindow(length=5)):
        with pytest.raises(InvalidInput, match=r"drift.*Logistic"):
            ma.agents.GLMTS(prior, drift=how)
    for arguments, named in (
        ({"length": 0}, "length"),
        ({"length": 5, "steps": 0}, "steps"),
        ({"length": 5, "clock": 3}, "clock"),
    ):
        with pytest.raises(InvalidInput, match=named):
            SlidingWindow(**arguments)  # type: ignore[arg-type]
    for arguments, named in (({"lag": 0.0}, "lag"), ({"half_life": "x"}, "half_life"), ({"rho": 2.0}, "rho")):
        with pytest.raises(InvalidInput, match=named):
            Discount(**({"half_life": 5} if named == "lag" else {}) | arguments)  # type: ignore[arg-type]
