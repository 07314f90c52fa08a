"""The prequential likelihood is the joint density of the rewards; planted half-lives are found again; order and clocks."""

from __future__ import annotations

import math
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import manyarms as ma
from drifting_gaussian import PRIORS, Dense, TimedRows, a_prior
from manyarms._base.typing import Array
from manyarms.beliefs import Poisson, belief_of
from manyarms.errors import InvalidInput
from manyarms.logs import LoggedData, open_log, to_csv
from manyarms.rewards import DriftChoice, choose_drift, fit_prior
from manyarms.rewards.timed_log import TimedLog

K, D, NOISE = 5, 2, 0.5
STAMP = np.datetime64("2026-03-01T12:00:00", "us")


def stamps(seconds: Array) -> Any:
    return STAMP + np.round(seconds * 1e6).astype("timedelta64[us]")


def drifting_log(half_life: float, rows: int, seed: int, common: float = 1.0, actions: int = K) -> LoggedData:
    """Rewards of the model: parameters around a common mean, that keep their covariance and forget at this pace."""
    rng = np.random.default_rng(seed)
    rho = 2 ** (-1 / half_life)
    middle = common * rng.standard_normal(D)
    away = rng.standard_normal((actions, D))
    X, A = rng.standard_normal((rows, D)), rng.integers(actions, size=rows)
    rewards = np.empty(rows)
    for t in range(rows):
        rewards[t] = X[t] @ (middle + away[A[t]]) + NOISE * rng.standard_normal()
        away = rho * away + math.sqrt(1 - rho**2) * rng.standard_normal((actions, D))
    return LoggedData(X, A, rewards, actions)


PRIOR = ma.HierarchicalPrior(K, np.zeros(D), np.eye(D), np.eye(D))


# ---- exactness --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", PRIORS)
def test_the_sum_is_the_log_density_of_all_rewards_together(kind: str) -> None:
    """Of the joint Gaussian of root and actions at all times, in full; no drift is that of actions that stay."""
    prior = a_prior(kind, np.random.default_rng(3), K, D)
    rows = TimedRows.drawn(50, K, D, 40.0, np.random.default_rng(4))
    log = LoggedData(rows.X, rows.actions, rows.rewards, K, timestamps=stamps(rows.times))
    found = choose_drift(log, prior, ma.Linear(NOISE), half_lives=[3, 20, 400])
    assert found.half_lives == (3, 20, 400, math.inf) and found.rows == 50
    for half_life, mean in zip(found.half_lives, found.log_likelihoods, strict=True):
        joint = Dense(belief_of(prior, ma.Linear(NOISE)), rows.times, math.log(2) / half_life)
        H = joint.rows(rows.X, rows.actions, rows.times)
        law = multivariate_normal(H @ joint.mean, H @ joint.covariance @ H.T + NOISE**2 * np.eye(50))
        assert mean * 50 == pytest.approx(law.logpdf(rows.rewards), abs=1e-8)


def test_the_standard_error_is_paired_and_over_blocks() -> None:
    """With a row in each block it is the usual one of a mean of differences, and rows that are copies do not make it smaller."""
    rng = np.random.default_rng(0)
    scores = rng.standard_normal((3, 40)) + rng.standard_normal(40)
    about: dict[str, Any] = {"clock": "rounds", "ordered": False, "prior": PRIOR, "likelihood": ma.Linear()}
    found = DriftChoice.of_sums((1.0, 2.0, math.inf), scores, np.ones(40), **about)
    best = int(scores.mean(axis=1).argmax())
    gaps = scores - scores[best]
    np.testing.assert_allclose(found.differences, gaps.mean(axis=1), atol=1e-14)
    np.testing.assert_allclose(found.standard_errors, gaps.std(axis=1, ddof=1) / math.sqrt(40), rtol=1e-12)
    repeated = DriftChoice.of_sums((1.0, 2.0, math.inf), 7 * scores, np.full(40, 7.0), **about)  # all rows seven times
    np.testing.assert_allclose(repeated.standard_errors, found.standard_errors, rtol=1e-12)


# ---- planted half-lives -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_a_planted_half_life_is_found(seed: int) -> None:
    """The true one or a neighbour: what is a factor of 16 away is worse by many standard errors."""
    log, grid = drifting_log(100, 1500, seed), [100 / 16, 25, 100, 400, 1600]
    found = choose_drift(log, PRIOR, ma.Linear(NOISE), half_lives=grid)
    assert found.best in (25, 100, 400)
    far = [i for i, one in enumerate(found.half_lives) if not 25 <= one <= 400]
    assert (found.differences[far] < -5 * found.standard_errors[far]).all()
    assert found.drift is not None and found.drift.half_life == found.best and found.drift.clock == "rounds"
    assert math.inf not in found.plausible and "rewards drift" in found.sentence


@pytest.mark.parametrize("seed", range(3))
def test_without_drift_none_is_found(seed: int) -> None:
    """No drift is chosen, or cannot be told from the best; half-lives that forget most of the log are worse."""
    found = choose_drift(drifting_log(1e12, 1200, seed), PRIOR, ma.Linear(NOISE))
    assert math.inf in found.plausible
    assert (found.differences[:4] < -5 * found.standard_errors[:4]).all()  # up to 1,200 / 16 rounds
    assert found.best is None or found.best >= 1200


def test_the_default_grid_is_refined_around_the_best() -> None:
    found = choose_drift(drifting_log(60, 1000, 0), PRIOR, ma.Linear(NOISE))
    assert found.best is not None and {found.best, math.inf} <= set(found.half_lives)
    coarse = [1000 * 4.0**step for step in range(-5, 2)]
    inside = [one for one in found.half_lives if not any(math.isclose(one, c, rel_tol=0.01) for c in coarse)]
    assert len(inside) == 3 and math.inf in inside  # the two around the best of the grid
    assert 15 <= found.best <= 240


def test_noise_and_spread_are_fitted_together_with_the_half_life() -> None:
    """A fit that takes rewards to stay calls drift noise, and under too much noise half-lives come out several times too long."""
    log = drifting_log(40, 2000, 1)
    start = ma.HierarchicalPrior(K, np.zeros(D), 4 * np.eye(D), 4 * np.eye(D))
    static = fit_prior(log, start, ma.Linear(1.0), held_out=0.0)
    assert static.likelihood.noise_variance is not None and static.likelihood.noise_variance > 4 * NOISE**2
    found = choose_drift(log, start, ma.Linear(1.0), fit=True)
    variance = found.likelihood.noise_variance
    # 2,000 rows determine log noise to about 1 / sqrt(2 * 2,000) and more, since actions are never known: five times that
    assert variance is not None and math.sqrt(variance) == pytest.approx(NOISE, rel=0.15)
    assert isinstance(found.prior, ma.HierarchicalPrior) and 0.4 < found.prior.action_covariance[0, 0] < 2.5
    assert found.best is not None and 20 <= found.best <= 80
    told = choose_drift(log, static.prior, static.likelihood)
    assert told.log_likelihoods.max() < found.log_likelihoods.max()


# ---- order, clocks, sources -------------------------------------------------------------------------------------------


def test_rows_are_taken_in_the_order_of_their_timestamps(tmp_path: Path) -> None:
    log = drifting_log(50, 400, 0)
    timed = log.with_notes(timestamps=stamps(60.0 * np.arange(400)))
    shuffled = timed.rows(np.random.default_rng(1).permutation(400))
    grid = [600, 3000, 60_000]
    found = choose_drift(timed, PRIOR, ma.Linear(NOISE), half_lives=grid)
    assert found.clock == "time" and found.ordered
    np.testing.assert_array_equal(
        choose_drift(shuffled, PRIOR, ma.Linear(NOISE), half_lives=grid).log_likelihoods, found.log_likelihoods
    )
    # a minute from row to row: the same in rounds, with and without timestamps
    for other in (timed, shuffled, log):
        rounds = choose_drift(other, PRIOR, ma.Linear(NOISE), half_lives=[10, 50, 1000], clock="rounds")
        np.testing.assert_allclose(rounds.log_likelihoods, found.log_likelihoods, rtol=1e-9)
        assert rounds.ordered == (other is not log)
    # rows as they stand are not in order
    plain = shuffled.with_notes(timestamps=None)
    assert choose_drift(plain, PRIOR, ma.Linear(NOISE), half_lives=[50]).log_likelihoods[0] < rounds.log_likelihoods[1]
    # from a file, in chunks
    to_csv(shuffled, tmp_path / "log.csv")
    read = choose_drift(open_log(tmp_path / "log.csv"), PRIOR, ma.Linear(NOISE), half_lives=grid)
    np.testing.assert_allclose(read.log_likelihoods, found.log_likelihoods, rtol=1e-9)


def test_the_first_rows_and_the_parts_that_a_log_comes_in() -> None:
    log = drifting_log(50, 500, 0)

    class Streamed:
        action_count, dim = K, D

        def chunks(self, rows: int = 0) -> Any:
            return log.chunks(37)

    short = choose_drift(log.rows(slice(0, 300)), PRIOR, ma.Linear(NOISE), half_lives=[20, 80])
    for source in (log, Streamed()):
        found = choose_drift(source, PRIOR, ma.Linear(NOISE), half_lives=np.array([80, 20]), rows=300)
        np.testing.assert_array_equal(found.log_likelihoods, short.log_likelihoods)
        assert found.rows == 300
    first = TimedLog.of(Streamed(), None, None).first(100)
    np.testing.assert_array_equal(first.source.rewards, log.rewards[:100])  # type: ignore[attr-defined]
    assert len(first) == 100


def test_lengths_of_time_and_what_is_told_on_the_way() -> None:
    log = drifting_log(50, 300, 0).with_notes(timestamps=stamps(3600.0 * np.arange(300)))
    told: list[tuple[int, int, str]] = []
    grid = [timedelta(hours=50), timedelta(days=30), 3600.0, math.inf, 3600]
    found = choose_drift(
        log, PRIOR, ma.Linear(NOISE), half_lives=grid, progress=lambda *news: told.append(news)
    )  # fmt: skip
    assert found.half_lives == (3600.0, 180_000.0, 2_592_000.0, math.inf)
    assert [done for done, _, _ in told] == sorted(done for done, _, _ in told) and told[-1][0] == told[-1][1] == 1200
    assert found.best == 180_000 and found.drift == ma.Drift(half_life=180_000, clock="time")
    assert "2.08 days" in str(found) and "half_life=180000, clock='time'" in str(found)


# ---- other likelihoods ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("likelihood", [ma.Logistic(), Poisson()])
def test_clicks_and_counts(likelihood: Any) -> None:
    """Two actions that change places halfway: whoever forgets predicts better; without changes no drift is plausible."""
    rng = np.random.default_rng(0)
    n, prior = 1000, ma.ActionPrior(2, [0.0], [[1.0]])
    A = rng.integers(2, size=n)
    for flips in (True, False):
        score = np.where((A == 0) != (flips & (np.arange(n) >= n // 2)), 1.2, -1.2)
        mean = likelihood.mean(score)
        rewards = (rng.random(n) < mean).astype(float) if likelihood.binary else rng.poisson(mean).astype(float)
        log = LoggedData(np.ones((n, 1)), A, rewards, 2)
        found = choose_drift(log, prior, likelihood, half_lives=[30, 300, 3000])
        assert (math.inf in found.plausible) != flips
        assert np.isfinite(found.log_likelihoods).all()
        if likelihood.binary:
            assert (found.log_likelihoods < 0).all()


def test_scales_of_clicks_are_fitted_without_a_noise() -> None:
    rng = np.random.default_rng(0)
    A = rng.integers(2, size=300)
    log = LoggedData(np.ones((300, 1)), A, (rng.random(300) < np.where(A == 0, 0.8, 0.2)).astype(float), 2)
    found = choose_drift(log, ma.ActionPrior(2, [0.0], [[50.0]]), ma.Logistic(), half_lives=[1000], fit=True)
    assert isinstance(found.prior, ma.ActionPrior) and 0 < found.prior.covariance[0, 0] < 50


# ---- words and pages --------------------------------------------------------------------------------------------------


def a_choice(differences: list[float], errors: list[float], clock: str = "rounds") -> DriftChoice:
    half_lives = (100.0, 1000.0, 16_000.0, math.inf)
    gaps = np.array(differences)
    return DriftChoice(half_lives, gaps - 1.0, gaps, np.array(errors), 5000, clock, False, PRIOR, ma.Linear())


def test_what_came_out_is_said_in_words(tmp_path: Path) -> None:
    found = a_choice([-0.1, 0.0, -0.001, -0.021], [0.01, 0.0, 0.002, 0.002])
    assert found.best == 1000 and found.plausible == (1000, 16_000)
    assert found.sentence == (
        "rewards drift with a half-life of about 1,000 rounds (1,000 to 16,000 rounds); without drift the log is predicted worse "
        "by 0.0210 ± 0.0020 a row"
    )
    unsure = a_choice([-0.1, 0.0, -0.001, -0.002], [0.01, 0.0, 0.002, 0.002])
    assert "cannot be told" in unsure.sentence and unsure.best == 1000 and unsure.drift is None
    static = a_choice([-0.1, -0.05, -0.001, 0.0], [0.01, 0.01, 0.002, 0.0])
    assert static.best is None and static.drift is None and "16,000 rounds or longer" in static.sentence
    assert "no drift: the nearest" in a_choice([-0.1, -0.05, -0.01, 0.0], [0.01, 0.01, 0.001, 0.0]).sentence
    edge = a_choice([0.0, -0.2, -0.3, -0.4], [0.0, 0.01, 0.01, 0.01])
    assert any("try shorter" in note for note in edge.notes)
    for one in (found, unsure, static, edge, a_choice([0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0], "time")):
        one.write_page(tmp_path / "page.html", "a log & more")
        text = (tmp_path / "page.html").read_text()
        assert "a log &amp; more" in text and text.count("<svg") == 2 and "no drift" in text and "nan" not in text
        assert "<- best" in str(one)


# ---- refusals ---------------------------------------------------------------------------------------------------------

LOG = drifting_log(50, 20, 0)
BAD: dict[str, tuple[dict[str, Any], str]] = {
    "time without timestamps": ({"clock": "time"}, "timestamps"),
    "another clock": ({"clock": "days"}, "clock"),
    "no half-lives": ({"half_lives": []}, "half_lives"),
    "only infinity": ({"half_lives": [math.inf]}, "half_lives"),
    "below zero": ({"half_lives": [-1.0]}, "half_lives"),
    "no number": ({"half_lives": ["day"]}, "half_lives"),
    "not a list": ({"half_lives": 5.0}, "half_lives"),
    "a set": ({"half_lives": {5.0}}, "half_lives"),
    "a table": ({"half_lives": np.ones((2, 2))}, "half_lives"),
    "a text": ({"half_lives": "5"}, "half_lives"),
    "not a number": ({"half_lives": [math.nan]}, "half_lives"),
    "a time in rounds": ({"half_lives": [timedelta(days=1)]}, "half_lives"),
    "one row": ({"rows": 1}, "rows"),
    "no function": ({"progress": 3}, "progress"),
    "no flag": ({"fit": "yes"}, "fit"),
    "another length": ({"prior": ma.ActionPrior(K, np.zeros(3), np.eye(3))}, "length"),
    "too few actions": ({"prior": ma.ActionPrior(2, np.zeros(D), np.eye(D))}, "actions"),
    "clicks": ({"likelihood": ma.Logistic()}, "reward"),
    "no log": ({"log": "log.csv"}, "log"),
    "no prior": ({"prior": None}, "prior"),
    "a log of one row": ({"log": LOG.rows(slice(0, 1))}, "at least 2"),
    "one time": ({"log": LOG.with_notes(timestamps=stamps(np.zeros(20)))}, "one time"),
    "a missing time": (
        {"log": LOG.with_notes(timestamps=np.append(stamps(np.arange(19.0)), np.datetime64("NaT")))},
        "timestamp",
    ),
}


@pytest.mark.parametrize("bad", BAD)
def test_bad_input_is_refused(bad: str) -> None:
    changed, words = BAD[bad]
    arguments: dict[str, Any] = {"log": LOG, "prior": PRIOR, "likelihood": ma.Linear(NOISE)} | changed
    with pytest.raises(InvalidInput, match=words):
        choose_drift(**arguments)
