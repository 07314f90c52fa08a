"""The block bootstrap by time: its samples, its length, and coverage where rows depend on each other."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pytest
from scipy import stats

from manyarms._base.cells import CellSums
from manyarms._base.moments import Moments, Part
from manyarms.errors import InvalidInput
from manyarms.evaluation import difference, evaluate
from manyarms.evaluation.time_blocks import TimeCells
from manyarms.logs.data import LoggedData, concatenate
from manyarms.policies import FixedPolicy

POLICY = FixedPolicy([0.7, 0.3])
START = np.datetime64("2026-01-01T00:00:00", "s")


def ar1(n, rho, rng, runs=1):
    """Standard normal in each round, with autocorrelation rho^lag."""
    noise = rng.standard_normal((n, runs))
    out = np.empty((n, runs))
    out[0] = noise[0]
    for t in range(1, n):
        out[t] = rho * out[t - 1] + np.sqrt(1 - rho**2) * noise[t]
    return out


def timed_log(level, rng, **fields):
    """Two actions alike likely, a reward that drifts with time, one row a minute."""
    n = len(level)
    actions = rng.integers(2, size=n)
    rewards = 0.4 + 0.1 * actions + 0.2 * level
    times = START + np.arange(n).astype("timedelta64[m]")
    return LoggedData(np.ones((n, 1)), actions, rewards, 2, np.full(n, 0.5), timestamps=times, **fields)


def test_samples_of_blocks_are_means_of_the_cells_in_them(rng):
    """Blocks of one cell resample cells; means and variances are those of the circular block bootstrap."""
    m, length = 60, 7
    sums, rows = rng.standard_normal((m, 2)), rng.integers(1, 4, m)
    cells = CellSums(m, 2)
    for part in np.array_split(np.arange(m), 5):
        columns = np.repeat(sums[part] / rows[part, None], rows[part], axis=0)
        cells.add(columns, np.repeat(part, rows[part]))
    means = cells.means(length, 40_000, 0)
    around = np.array([[(s + j) % m for j in range(length)] for s in range(m)])
    blocks, counts = sums[around].sum(axis=1), rows[around].sum(axis=1)
    middle = sums.sum(axis=0) / rows.sum()
    influence = (blocks - counts[:, None] * middle) / counts.mean()
    deviation = influence.std(axis=0) / np.sqrt(round(m / length))
    np.testing.assert_allclose(means.mean(axis=0), middle, atol=0.1 * deviation.max())
    np.testing.assert_allclose(means.std(axis=0), deviation, rtol=0.1)
    assert cells.means(length, 40_000, 0) is means


def test_longer_dependence_asks_for_longer_blocks(rng):
    found = []
    for rho in (0.0, 0.5, 0.9):
        x = ar1(4000, rho, rng)
        moments = Moments(1, 4000)
        moments.add(x, None, np.arange(4000))
        found.append(moments.dependence((Part(0),)))
    assert found[0] < found[1] < found[2] and found[0] < 10
    # the best length for an AR(1): (2 G^2 / D)^(1/3) n^(1/3) with G / g(0) = 2 rho / (1 - rho^2)
    best = (2 * (2 * 0.9 / (1 - 0.81)) ** 2 / (4 / 3)) ** (1 / 3) * 4000 ** (1 / 3)
    assert best / 3 < found[2] < 3 * best
    constant = Moments(1, 50)
    constant.add(np.ones((50, 1)), None, np.arange(50))
    assert constant.dependence((Part(0),)) == 1.0


def test_cells_of_time(rng):
    log = timed_log(np.zeros(10_000), rng)
    times = TimeCells.of(log)
    assert (times.cells, times.rows) == (4096, 10_000)
    cell = times.of_rows(log)
    assert cell.min() == 0 and cell.max() == 4095 and (np.diff(cell) >= 0).all()
    assert np.bincount(cell).max() <= 3
    assert times.length(1000) == pytest.approx(410, abs=1) and times.length(1) == 1
    assert times.length(timedelta(minutes=1000)) == pytest.approx(410, abs=1)
    assert times.length(np.timedelta64(1000, "m")) == times.length(timedelta(minutes=1000))
    few = timed_log(np.zeros(30), rng)
    assert np.abs(TimeCells.of(few).of_rows(few) - np.arange(30)).max() <= 1


def test_coverage_where_rows_depend_on_each_other_in_time():
    """An AR(1) level with correlation 0.8 of neighbours: 1,500 rows say as much as 170. The bootstrap of rows does not see it."""
    rng, runs, n, truth = np.random.default_rng(7), 80, 1500, 0.4 + 0.1 * 0.3
    levels = ar1(n, 0.8, rng, runs)
    held = {"block": 0, "bootstrap": 0}
    for run in range(runs):
        log = timed_log(levels[:, run], rng)
        block = evaluate(POLICY, log, ["snips"], interval="block", replicates=150, seed=run)["snips"]
        plain = evaluate(POLICY, log, ["snips"], interval="bootstrap", replicates=150, seed=run)["snips"]
        held["block"] += truth in block.interval
        held["bootstrap"] += truth in plain.interval
        assert block.kind == "block" and block.value == pytest.approx(plain.value)
    assert held["bootstrap"] < 0.8 * runs, held
    assert stats.binomtest(held["block"], runs, 0.88, alternative="less").pvalue > 1e-6, held
    assert held["block"] > held["bootstrap"]


def test_without_dependence_it_agrees_with_independent_rows(rng):
    log = timed_log(rng.standard_normal(3000), rng)
    block = evaluate(POLICY, log, ["ips", "snips"], interval="block")
    plain = evaluate(POLICY, log, ["ips", "snips"])
    for name in ("ips", "snips"):
        assert block[name].standard_error == pytest.approx(plain[name].standard_error, rel=0.35)
    assert block.logged.kind == "block"


def test_order_chunks_and_pairs(rng):
    """Rows in any order and any chunks; the difference to the log; bounds for independent rows are left out."""
    log = timed_log(ar1(2000, 0.9, rng)[:, 0], rng)
    whole = evaluate(POLICY, log, ["snips", "ips"], interval="block", block=100)
    mixed = log.rows(rng.permutation(2000))
    for other, chunk in ((log, 77), (mixed, 2000), (concatenate([mixed]), 300)):
        again = evaluate(POLICY, other, ["snips", "ips"], interval="block", block=100, chunk=chunk)
        assert again["snips"].interval.low == pytest.approx(whole["snips"].interval.low, abs=1e-9)
    by_time = evaluate(POLICY, log, ["snips", "ips"], interval="block", block=timedelta(minutes=100))
    assert by_time["snips"].interval.low == pytest.approx(whole["snips"].interval.low, abs=1e-3)
    assert {one.kind for one in whole["ips"].intervals} == {"normal", "block"}
    gain = difference(POLICY, None, log, interval="block", block=100)
    assert gain.interval.kind == "block" and gain.standard_error > 0


def test_what_is_refused_and_what_is_warned_of(rng):
    log = timed_log(rng.standard_normal(500), rng)
    bare = LoggedData(log.contexts, log.actions, log.rewards, 2, log.propensities)
    for arguments, named in (
        ({"interval": "block", "block": 0}, "block"),
        ({"interval": "block", "block": 501}, "block"),
        ({"interval": "block", "block": timedelta(days=9)}, "block"),
        ({"interval": "block", "block": "1 day"}, "block"),
        ({"block": 10}, "block"),
        ({"interval": "block", "replicates": 0}, "replicates"),
    ):
        with pytest.raises(InvalidInput, match=named):
            evaluate(POLICY, log, ["snips"], **arguments)
    with pytest.raises(InvalidInput, match="timestamps"):
        evaluate(POLICY, bare, ["snips"], interval="block")
    times = log.timestamps.copy()
    times[3] = np.datetime64("NaT", "us")
    with pytest.raises(InvalidInput, match="timestamp"):
        evaluate(POLICY, LoggedData(log.contexts, log.actions, log.rewards, 2, log.propensities, timestamps=times),
                 ["snips"], interval="block")  # fmt: skip
    few = evaluate(POLICY, log, ["snips"], interval="block", block=100)["snips"]
    assert any("only 5 blocks" in text for text in few.warnings)
    one = evaluate(POLICY, log, ["snips"], interval="block", block=300)["snips"]
    assert one.interval.low == -np.inf and one.standard_error == np.inf
    same = LoggedData(log.contexts, log.actions, log.rewards, 2, log.propensities, timestamps=np.full(500, START))
    assert evaluate(POLICY, same, ["snips"], interval="block")["snips"].interval.high == np.inf
