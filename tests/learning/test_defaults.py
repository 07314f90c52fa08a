"""What `learn` does where nothing is said: small logs reach the logging policy's value, and an unfinished run says so."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")

from manyarms.estimators import cLPI
from manyarms.learning import learn
from manyarms.learning.defaults import epochs_of, informative_rows, rate_of
from manyarms.learning.results import Epoch
from manyarms.learning.rising import STILL_RISING, still_rising
from manyarms.logs import LoggedData
from manyarms.policies import SoftmaxPolicy


def shop(seed: int, K: int, n: int, scale: float = 1.0) -> tuple[LoggedData, np.ndarray, np.ndarray, float]:
    """A log by a policy that knows half of the truth; contexts and mean rewards to judge by, and the logging policy's value."""
    rng, d = np.random.default_rng([seed, K]), 6
    theta, other = rng.normal(size=(2, K, d)) / np.sqrt(d)

    def draw(rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        X = np.column_stack([rng.normal(size=(rows, d - 1)), np.ones(rows)])
        scores = 0.75 * X @ (theta + other).T
        pi0 = np.exp(scores - scores.max(axis=1, keepdims=True))
        return X, 1 / (1 + np.exp(2 - 1.5 * X @ theta.T)), pi0 / pi0.sum(axis=1, keepdims=True)

    X, mean, pi0 = draw(n)
    rows, actions = np.arange(n), (pi0.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    rewards = (rng.random(n) < mean[rows, actions]).astype(float)
    log = LoggedData(scale * X, actions, rewards, K, propensities=np.maximum(pi0[rows, actions], 1e-9))
    T, judged, own = draw(2000)
    return log, scale * T, judged, float((own * judged).sum(axis=1).mean())


@pytest.mark.parametrize(
    ("K", "n", "scale"),
    [
        (30, 2000, 1.0),
        pytest.param(30, 2000, 30.0, marks=pytest.mark.slow),
        pytest.param(1000, 2000, 1.0, marks=pytest.mark.slow),
        pytest.param(300, 20_000, 1.0, marks=pytest.mark.slow),
    ],
)
def test_small_logs_reach_the_logging_policys_value(K: int, n: int, scale: float) -> None:
    """Over six logs, the mean gain is above 0 by five of its standard errors."""
    gains = []
    for seed in range(6):
        log, T, judged, logged = shop(seed, K, n, scale)
        policy = learn(log, SoftmaxPolicy(np.zeros((K, log.dim))), cLPI(), device="cpu").policy
        p = policy.probabilities_of_many(T, np.tile(np.arange(K), (len(T), 1)))
        gains.append(float((p * judged).sum(axis=1).mean()) - logged)
    assert np.mean(gains) > 5 * np.std(gains, ddof=1) / np.sqrt(len(gains))


def test_what_was_chosen_is_told_and_what_was_given_is_kept() -> None:
    log = shop(0, 30, 500)[0]
    start = SoftmaxPolicy(np.zeros((30, log.dim)))
    chosen = learn(log, start, cLPI(), device="cpu").settings
    assert chosen["epochs"] == epochs_of(500, 256) == 100 and chosen["schedule"] == "linear"
    few = log.rewards.sum() / 1000  # rewards are 0 or 1
    assert informative_rows(log) == pytest.approx(log.rewards.sum()) and few < 1
    assert chosen["learning_rate"] == rate_of(log, start, None, "adam") == pytest.approx(0.1 * few)
    given = learn(log, start, cLPI(), epochs=2, learning_rate=0.02, device="cpu").settings
    assert (given["epochs"], given["learning_rate"], given["schedule"]) == (2, 0.02, "constant")
    longer = LoggedData(100 * log.contexts, log.actions, log.rewards, 30, log.propensities)
    assert rate_of(longer, start, None, "adam") == pytest.approx(few * 0.8 / np.abs(longer.contexts).sum(axis=1).mean())
    paid = LoggedData(np.ones((3000, 1)), np.arange(3000) % 2, np.full(3000, 7.0), 2)
    assert informative_rows(paid) == pytest.approx(3000)
    assert rate_of(paid, SoftmaxPolicy(np.zeros((2, 1))), None, "adam") == pytest.approx(0.1)
    assert rate_of(log, start, None, "sgd") == 1e-3
    assert epochs_of(1_000_000, 256) == 10 and epochs_of(10_240, 256) == 10 and epochs_of(5_120, 256) == 20


def test_an_unfinished_run_says_so_and_a_finished_one_does_not() -> None:
    log = shop(1, 30, 2000)[0]
    start = SoftmaxPolicy(np.zeros((30, log.dim)))
    assert STILL_RISING in learn(log, start, cLPI(), epochs=10, learning_rate=1e-3, device="cpu").notes
    done = learn(log, start, cLPI(0.1), epochs=150, learning_rate=0.05, schedule="linear", device="cpu")
    assert STILL_RISING not in done.notes


def history(values: np.ndarray, rates: np.ndarray) -> list[Epoch]:
    pairs = zip(values.tolist(), rates.tolist(), strict=True)
    return [Epoch(i + 1, value, None, None, 1.0, rate) for i, (value, rate) in enumerate(pairs)]


def test_noise_is_no_rise() -> None:
    """A run that has settled, with noise: at level 0.001, 15 alarms in 2,000 would have a chance below 1e-8."""
    rng = np.random.default_rng(0)
    for epochs in (10, 40):
        steps = np.arange(epochs)
        alarms = 0
        for _ in range(2000):
            values = 1 - np.exp(-2.0 * steps) + 0.01 * rng.normal(size=epochs)
            alarms += still_rising(history(values, np.full(epochs, 0.1)))
        assert alarms < 15
    for rates in (np.full(20, 0.1), 0.1 * (1 - np.arange(20) / 20)):
        done = np.cumsum(rates)
        assert still_rising(
            history(done + 0.001 * rng.normal(size=20), rates)
        )  # flat in epochs at the end, not in learning
        assert not still_rising(history(-done, rates))
    assert not still_rising(history(np.arange(4.0), np.ones(4)))  # too short to tell
    assert not still_rising(history(np.full(9, np.nan), np.ones(9)))


@pytest.mark.parametrize("epochs", [40, 100])
def test_a_settled_policy_that_wanders_is_no_rise(epochs: int) -> None:
    """Noise that resembles that of the epoch before: epoch by epoch a test would call a fourth of such runs a rise.

    By blocks it is one in thirty; of 500 runs more than 50 would then have a chance below 1e-10.
    """
    rng = np.random.default_rng(0)
    rates = 0.1 * (1 - np.arange(epochs) / epochs)
    alarms = 0
    for _ in range(500):
        noise = [0.0]
        for step in rng.normal(size=epochs - 1):
            noise.append(0.99 * noise[-1] + step)
        alarms += still_rising(history(np.array(noise), rates))
    assert alarms <= 50
