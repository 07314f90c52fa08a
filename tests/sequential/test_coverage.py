"""Intervals hold at all times at once, whatever the logging policy does; and a plain one, looked at all the time, does not."""

from __future__ import annotations

import math

import numpy as np
import pytest

from manyarms.errors import Contradiction
from manyarms.sequential import Lift, PairedGain, RunningValue, ValueInterval
from sequential.simulated import KINDS, World, ever, first, log_e_paths, most_misses, reached

RUNS, ROUNDS, ALPHA = 300, 2_000, 0.05


def covers(kind: str, runs: int, rounds: int) -> None:
    world = World(kind, runs, rounds, seed=1)
    w, r, v = world.weights, world.r, world.values[1]
    gain = v - world.live
    better, worse = (1 - r + w * r) / 2, (r + w * (1 - r)) / 2
    sides = [(w * r, v), (w * (1 - r), 1 - v), (better, (1 + gain) / 2), (worse, (1 - gain) / 2)]
    misses = [ever(reached(x, mean, ALPHA)) for x, mean in sides]
    assert max(misses) <= most_misses(runs, ALPHA)


@pytest.mark.parametrize("kind", KINDS)
def test_all_times_at_once(kind: str) -> None:
    """The value and the gain, from both sides: the truth is outside at any time in at most 5 % of the runs."""
    covers(kind, RUNS, ROUNDS)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_all_times_at_once_in_longer_logs(kind: str) -> None:
    covers(kind, 500, 10_000)


def test_the_paths_are_those_of_the_objects() -> None:
    world = World("learning", 3, 400, seed=2)
    paths = log_e_paths(world.weights * world.r, world.values[1])
    for run in range(3):
        value = RunningValue()
        for t, x in enumerate((world.weights * world.r)[run], 1):
            value.update(x)
            if t % 50 == 0:
                assert value.log_e(world.values[1][run, :t].mean()) == pytest.approx(paths[run, t - 1], abs=1e-9)


def test_a_plain_interval_looked_at_all_the_time_does_not_cover() -> None:
    """Mean ± 1.96 standard errors is right at one time that is chosen beforehand: at all times it is wrong far more often."""
    world = World("fixed", RUNS, ROUNDS, seed=3)
    x, t = world.weights * world.r, np.arange(1, ROUNDS + 1)
    mean = np.cumsum(x, axis=1) / t
    error = np.sqrt(np.maximum(np.cumsum(x * x, axis=1) / t - mean**2, 0) / t)
    outside = (np.abs(mean - 0.3) > 1.96 * error)[:, 100:]  # from round 100 on, where the normal law has long set in
    assert ever(outside) > 2 * most_misses(RUNS, ALPHA)


def test_the_lower_end_is_where_the_mixture_reaches_the_threshold() -> None:
    value = RunningValue()
    value.update(np.random.default_rng(0).exponential(0.4, 500))
    for alpha in (0.5, 0.05, 1e-6):
        end = value.lower(alpha)
        assert value.log_e(end) == pytest.approx(-math.log(alpha), abs=1e-9)
    assert 0 == RunningValue().lower(0.5) < value.lower(1e-6) < value.lower(0.05) < value.lower(0.5) < value.mean


def test_lower_ends_close_in_and_units_of_rewards_do_not_matter() -> None:
    """LIVE-FACTS: value 0.3 at propensity 0.5: a lower end of 0.214 after 1,000 and 0.272 after 10,000 rounds."""
    rng = np.random.default_rng(5)
    w, r = np.where(rng.random(10_000) < 0.5, 2.0, 0.0), (rng.random(10_000) < 0.3).astype(float)
    plain, other = ValueInterval(), ValueInterval((-1.0, 3.0))
    plain.update(w[:1000], r[:1000])
    early = plain.lower(0.05)
    plain.update(w[1000:], r[1000:])
    other.update(w, 4 * r - 1)
    assert 0.1 < early < plain.lower(0.05) < 0.3 and plain.lower(0.05) > 0.23
    assert np.allclose(other.interval(0.05), [4 * end - 1 for end in plain.interval(0.05)], atol=1e-12)
    assert plain.interval(0.1) == (plain.lower(0.05), plain.upper(0.05))


def test_ends_that_cross_are_an_error() -> None:
    """Weights with a mean far from 1: propensities that are wrong."""
    wrong = ValueInterval()
    wrong.update(np.full(500, 10.0), np.tile([0.0, 1.0], 250))
    with pytest.raises(Contradiction, match="propensities"):
        wrong.interval()


def test_the_paired_gain_is_certified_where_two_intervals_cannot_tell() -> None:
    """Rewards 0.2 and 0.4, live 50:50, challenger 10:90. LIVE-FACTS: 400 rounds against 3,200."""
    rng = np.random.default_rng(7)
    a = rng.random((100, 1500)) < 0.5
    r = (rng.random(a.shape) < np.where(a, 0.4, 0.2)).astype(float)
    w = np.where(a, 1.8, 0.2)
    median = int(np.median(first(reached((1 - r + w * r) / 2, 0.5, ALPHA))))
    assert median < 700
    apart, certified = 0, 0
    for run in range(100):
        rows = slice(0, 2 * median)
        challenger, live, gain = ValueInterval(), ValueInterval(), PairedGain()
        challenger.update(w[run, rows], r[run, rows])
        live.update(np.ones(2 * median), r[run, rows])
        gain.update(w[run, rows], r[run, rows])
        apart += challenger.lower(ALPHA / 2) > live.upper(ALPHA / 2)
        certified += gain.certified(ALPHA)
        assert gain.certified(ALPHA) is (gain.lower(ALPHA) > 0)
    assert apart < 50 < certified  # a median of more than twice as many rounds


def test_a_policy_that_is_the_live_one_has_no_gain() -> None:
    gain = PairedGain()
    gain.update(np.ones(5000), (np.random.default_rng(0).random(5000) < 0.5).astype(float))
    assert gain.mean == 0.0 and -0.01 < gain.lower(0.05) < 0 < gain.upper(0.05) < 0.01
    assert not gain.certified(0.5) and gain.certified(0.05, margin=-0.01) and gain.certified(0.05, margin=-1.5)
    assert not gain.certified(0.5, margin=1.0)


def test_the_first_round_with_which_a_gain_is_certified() -> None:
    rng = np.random.default_rng(12)
    weights = rng.choice([0.2, 1.8], size=400)
    rewards = (rng.random(400) < np.where(weights > 1, 0.7, 0.3)).astype(float)
    for before, margin in ((0, 0.0), (30, 0.05), (0, -2.0), (0, 1.0)):
        gain, one_by_one = PairedGain(), PairedGain()
        gain.update(weights[:before], rewards[:before])
        one_by_one.update(weights[:before], rewards[:before])
        first = gain.first_certified(weights[before:], rewards[before:], 0.05, margin)
        assert gain.count == before
        found = None
        for place in range(400 - before):
            one_by_one.update(weights[before + place], rewards[before + place])
            if one_by_one.certified(0.05, margin):
                found = place
                break
        assert first == found and (first is None) is (margin == 1.0)


@pytest.mark.parametrize("share", [0.05, 0.5, 0.9])
def test_the_lift_at_all_times_at_once(share: float) -> None:
    """Values of both sides drift; X of the docstring, with a guess that is made beforehand."""
    rng, t = np.random.default_rng(11), np.arange(ROUNDS)
    treated, held = 0.4 + 0.3 * np.sin(t / 200), 0.3 + 0.2 * np.cos(t / 90)
    out = rng.random((RUNS, ROUNDS)) < share
    r = (rng.random(out.shape) < np.where(out, held, treated)).astype(float)
    guess = (0.5 + np.hstack([np.zeros((RUNS, 1)), np.cumsum(r, axis=1)[:, :-1]])) / (t + 1)
    m = min(share, 1 - share)
    part = m * (r - guess) * np.where(out, -1 / share, 1 / (1 - share))
    assert (np.abs(part) <= 1 + 1e-12).all()
    truth = m * (treated - held)
    for x, mean in ((1 + part, 1 + truth), (1 - part, 1 - truth)):
        assert ever(reached(x, mean, ALPHA)) <= most_misses(RUNS, ALPHA)
    lift = Lift(share)
    lift.update(out[0], r[0])
    assert lift.above.log_e(1 + truth.mean()) == pytest.approx(log_e_paths(1 + part[:1], 1 + truth)[0, -1], abs=1e-9)


def test_the_lift_is_tighter_than_an_interval_for_each_side() -> None:
    rng = np.random.default_rng(13)
    out = rng.random(20_000) < 0.1
    r = (rng.random(20_000) < np.where(out, 0.2, 0.25)).astype(float)
    lift, treated, held = Lift(0.1), ValueInterval(), ValueInterval()
    lift.update(out, r)
    treated.update(np.where(out, 0.0, 1 / 0.9), r)
    held.update(np.where(out, 10.0, 0.0), r)
    low, high = lift.interval(0.05)
    apart = treated.upper(0.0125) - held.lower(0.0125) - (treated.lower(0.0125) - held.upper(0.0125))
    assert low < 0.05 < high and high - low < 0.7 * apart
