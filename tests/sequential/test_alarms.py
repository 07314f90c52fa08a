"""Alarms: false ones as rarely as stated, true ones soon."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special

from manyarms.sequential import EDetector, PropensityCheck, ResidualDetector, SampleRatio, spent_alpha
from sequential.simulated import first, most_misses

# ---- propensities


def alarms(
    logged: np.ndarray, greedy: np.ndarray, least: float | None = None, alpha: float = 0.05
) -> list[tuple[str, int]]:
    found = []
    for p, played in zip(logged, greedy, strict=True):
        check = PropensityCheck(alpha, least)
        check.update(p, played)
        if check.alarm is not None:
            found.append(tuple(check.alarm))
    return found


@pytest.mark.parametrize("least", [None, 0.9])
def test_right_propensities_give_no_alarm(least: float | None) -> None:
    rng = np.random.default_rng(0)
    chance = rng.uniform(0.9, 1.0, (400, 1000))  # of the greedy action, which changes
    greedy = rng.random(chance.shape) < chance
    logged = np.where(greedy, chance, np.maximum(1 - chance, 1e-9))
    assert len(alarms(logged, greedy, least)) <= most_misses(400, 0.05)


def test_one_over_n_under_a_nearly_greedy_rule_is_caught_within_dozens_of_rounds() -> None:
    greedy = np.random.default_rng(1).random((100, 100)) < 0.9
    found = alarms(np.full(greedy.shape, 0.1), greedy, alpha=0.001)
    assert len(found) == 100 and all(side == "too small" and when < 60 for side, when in found)


def test_too_large_ones_are_caught_where_weights_are_bounded() -> None:
    greedy = np.random.default_rng(2).random((50, 1500)) < 0.9
    logged = np.where(greedy, 0.99, 0.01)
    found = alarms(logged, greedy, least=0.9, alpha=0.001)
    assert len(found) == 50 and all(side == "too large" for side, _ in found)
    assert alarms(logged, greedy, alpha=0.001) == []  # not to be seen from the other side


def test_the_round_of_an_alarm_is_the_first_that_reached_the_threshold() -> None:
    greedy = np.random.default_rng(3).random(200) < 0.6
    check, whole = PropensityCheck(), PropensityCheck()
    whole.update(np.full(200, 0.25), greedy)
    log_e = []
    for played in greedy.tolist():
        check.update(0.25, played)
        log_e.append(check.log_e)
    assert whole.alarm is not None and check.alarm == whole.alarm
    assert whole.alarm.round == 1 + int(np.argmax(np.array(log_e) >= -math.log(0.001)))


# ---- change


def run_lengths(factors: np.ndarray, mean_time: float) -> np.ndarray:
    """First alarms of (parts, runs, rounds) factors E, by the recursion itself."""
    m = np.zeros(factors.shape[:2])
    path = np.empty(factors.shape[1:])
    for t in range(factors.shape[2]):
        m = np.minimum((1 + m) * factors[:, :, t], 1e300)
        path[:, t] = m.mean(axis=0)
    return first(path >= mean_time)


def bets_of(detector: EDetector, x: np.ndarray) -> np.ndarray:
    lams = np.array(detector.bets) / (1 - detector.mean)
    return 1 + lams[:, None, None] * (detector.mean - x)


def at_least_on_average(lengths: np.ndarray, cut: int, mean_time: float) -> bool:
    """A mean below mean_time is not refuted at 1e-6; what is cut only makes it smaller."""
    lengths = np.minimum(lengths, cut).astype(float)
    return bool(lengths.mean() + 4.75 * lengths.std() / math.sqrt(len(lengths)) >= mean_time)


def dependent_rewards(runs: int, rounds: int, mean: float, seed: int) -> np.ndarray:
    """Numbers in [0, 1] with that conditional mean, whose spread depends on what came before."""
    rng = np.random.default_rng(seed)
    x = np.empty((runs, rounds))
    calm = np.zeros(runs, dtype=bool)
    for t in range(rounds):
        coin = (rng.random(runs) < mean).astype(float)
        x[:, t] = np.where(calm, mean, coin)
        calm = (coin < mean) & (rng.random(runs) < 0.5)
    return x


def test_mean_time_between_false_alarms() -> None:
    detector = EDetector(0.4, 100)
    x = dependent_rewards(400, 2000, 0.4, seed=4)
    assert at_least_on_average(run_lengths(bets_of(detector, x), 100), 2000, 100)
    z = np.random.default_rng(5).standard_normal((400, 2000))
    shifts = np.array(ResidualDetector().shifts)[:, None, None]
    lengths = run_lengths(np.exp(shifts * z - shifts**2 / 2), 100)
    assert at_least_on_average(lengths, 2000, 100)
    assert np.median(lengths) < 2000  # it does give alarms: the statement is not an empty one


def test_the_recursion_is_that_of_the_objects() -> None:
    x = np.random.default_rng(6).random((5, 600)) * 0.9
    lengths = run_lengths(bets_of(EDetector(0.5, 1000), x), 1000)
    z = np.random.default_rng(7).normal(0.3, 1, (5, 600))
    shifts = np.array(ResidualDetector().shifts)[:, None, None]
    others = run_lengths(np.exp(shifts * z - shifts**2 / 2), 1000)
    for run in range(5):
        detector, residual = EDetector(0.5, 1000), ResidualDetector(1000)
        detector.update(x[run])
        residual.update(z[run])
        assert (detector.alarm or 10**9, residual.alarm or 10**9) == (lengths[run], others[run])


@pytest.mark.parametrize("to", [0.25, 0.4])
def test_a_fall_is_found(to: float) -> None:
    """From 0.5, with false alarms every 10,000 rounds at most."""
    rng = np.random.default_rng(8)
    x = (rng.random((60, 3000)) < to).astype(float)
    delays = run_lengths(bets_of(EDetector(0.5), x), 10_000)
    assert np.median(delays) < (200 if to == 0.25 else 1200)


def test_shifts_of_residuals_are_found() -> None:
    """LIVE-FACTS: after 180, 57 and 19 rounds for shifts by 0.25, 0.5 and 1."""
    rng = np.random.default_rng(9)
    shifts = np.array(ResidualDetector().shifts)[:, None, None]
    for shift, limit in ((0.25, 360), (-0.5, 120), (1.0, 40)):
        z = rng.normal(shift, 1, (100, 1000))
        assert run_lengths(np.exp(shifts * z - shifts**2 / 2), 10_000).mean() < limit


def test_after_an_alarm_it_begins_anew_or_stays() -> None:
    again, stays = EDetector(0.5, 100, restart=True), EDetector(0.5, 100)
    for detector in (again, stays):
        detector.update(np.zeros(5000))
    assert stays.alarms == 1 and stays.alarm is not None and stays.alarm < 20 and np.isfinite(stays.statistic)
    assert again.alarms == 5000 // stays.alarm and again.alarm == again.alarms * stays.alarm


def test_evidence_is_never_below_zero_and_its_mean_is_one_at_the_edge() -> None:
    """For every law of X in [0, 1] with the mean m₀, here with two values."""
    for mean in (0.01, 0.5, 0.999):
        detector = EDetector(mean, bets=[0.1, 1.0])
        none, all_of_it = np.array(detector._factors(0.0)), np.array(detector._factors(1.0))
        assert (all_of_it >= 0).all() and np.allclose(mean * all_of_it + (1 - mean) * none, 1.0)


# ---- shares


def test_the_mixture_of_shares_is_the_dirichlet_integral() -> None:
    shares, c = np.array([0.1, 0.3, 0.6]), 7.0
    ratio = SampleRatio(shares.tolist(), concentration=c)
    arms = np.random.default_rng(10).integers(3, size=500)
    largest = 0.0
    for t, arm in enumerate(arms.tolist(), 1):
        ratio.update(arm)
        n = np.bincount(arms[:t], minlength=3)
        want = special.gammaln(c) - special.gammaln(c + t) - (n * np.log(shares)).sum()
        want += (special.gammaln(c * shares + n) - special.gammaln(c * shares)).sum()
        largest = max(largest, want)
        assert ratio.log_e == pytest.approx(want, abs=1e-8)
    assert ratio.p_value == pytest.approx(math.exp(-largest), rel=1e-6)


def test_two_arms_against_quadrature() -> None:
    ratio = SampleRatio([0.3, 0.7], concentration=10.0)
    ratio.update([0] * 12 + [1] * 8)
    q = (np.arange(200_000) + 0.5) / 200_000
    density = q**2 * (1 - q) ** 6 / special.beta(3, 7)
    want = np.mean(density * (q / 0.3) ** 12 * ((1 - q) / 0.7) ** 8)
    assert ratio.log_e == pytest.approx(math.log(want), abs=1e-8)


def test_right_shares_give_no_alarm_and_wrong_ones_do() -> None:
    rng = np.random.default_rng(11)
    shares = [0.05, 0.45, 0.5]
    false = 0
    for _ in range(300):
        ratio = SampleRatio(shares, alpha=0.05)
        ratio.update(rng.choice(3, size=1000, p=shares))
        assert (ratio.alarm is not None) is (ratio.p_value <= 0.05)
        false += ratio.alarm is not None
    assert false <= most_misses(300, 0.05)
    wrong = SampleRatio([0.5, 0.5])
    wrong.update((rng.random(20_000) < 0.55).astype(int))
    assert wrong.alarm is not None and wrong.alarm < 10_000


def test_no_end_of_challengers_spends_alpha_and_no_more() -> None:
    spent = math.fsum(spent_alpha(0.05, k) for k in range(1, 20_001))
    assert spent < 0.05 and spent == pytest.approx(0.05, rel=1e-4)
