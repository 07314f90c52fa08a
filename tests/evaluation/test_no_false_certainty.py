"""Intervals that cannot mislead: never of zero width, never crossed, never where no value can be."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from manyarms._base.moments import Moments, Part
from manyarms.errors import InvalidInput
from manyarms.evaluation import choose, difference, evaluate, tune
from manyarms.evaluation.intervals import Interval
from manyarms.evaluation.readings import contradictions, possible
from manyarms.evaluation.tables import as_data
from manyarms.logs.data import LoggedData
from manyarms.policies import FixedPolicy, UniformPolicy

SPREAD = ("normal", "bootstrap")  # what is taken from the spread of the rows
NAMES = ("ips", "snips", "cips:0.01", "es:0.5", "sn-cips:0.01", "ls:0.1", "ips-min:5")


def flat_log(actions, rewards, propensities, K=2, **fields):
    return LoggedData(np.ones((len(actions), 1)), actions, rewards, K, propensities=propensities, **fields)


def assert_nothing_is_certain(found, *, names=NAMES):
    for name in names:
        estimate = found[name.partition(":")[0]]
        for one in estimate.intervals:
            assert one.low < one.high, (name, one)
            if one.kind in SPREAD:
                assert one.low == -math.inf and one.high == math.inf, (name, one)
        assert not math.isnan(estimate.value) and estimate.standard_error == math.inf, name
        assert any("infinite" in text for text in estimate.warnings), name
    assert str(found)
    json.dumps(as_data(found), allow_nan=False)


def test_one_row():
    for reward in (0.0, 0.3, 1.0):
        found = evaluate(FixedPolicy([0.5, 0.5]), flat_log([0], [reward], [0.5]), NAMES)
        assert_nothing_is_certain(found)
        assert found.logged.interval.low == -math.inf and "single row" in found.logged.warnings[0]


def test_one_group():
    n = 50
    rng = np.random.default_rng(0)
    log = flat_log(rng.integers(2, size=n), rng.random(n), np.full(n, 0.5), groups=np.zeros(n, dtype=int))
    found = evaluate(FixedPolicy([0.8, 0.2]), log, NAMES)
    assert_nothing_is_certain(found)
    assert any("single group" in text for text in found["snips"].warnings)


@pytest.mark.parametrize("propensity", [1e-20, 1e-100, 1e-200, 1e-300])
def test_one_row_carries_all_weight(propensity):
    """The self-normalised estimate is that row's reward, and agrees with itself: its standard error used to be 0."""
    rng = np.random.default_rng(1)
    n = 500
    actions = np.concatenate([[1], np.zeros(n - 1, dtype=int)])
    log = flat_log(actions, rng.random(n), np.where(actions == 1, propensity, 1.0))
    found = evaluate(FixedPolicy([0.5, 0.5]), log, NAMES)
    assert_nothing_is_certain(found, names=("ips", "snips", "ls"))
    assert found["snips"].value == pytest.approx(float(log.rewards[0]))
    assert all(math.isfinite(found["cips"].by(kind).low) for kind in SPREAD)  # clipped, it has 500 rows
    gain = difference(FixedPolicy([0.5, 0.5]), None, log, "snips")
    assert gain.interval.low == -math.inf and gain.standard_error == math.inf and not gain.significant
    assert tune(FixedPolicy([0.5, 0.5]), log, "cips").parameter > propensity


def test_a_propensity_without_an_inverse_is_refused():
    log = flat_log([0, 1, 0], [1.0, 0.0, 1.0], [0.5, 5e-324, 0.5])
    with pytest.raises(InvalidInput, match="a propensity of"):
        evaluate(FixedPolicy([0.5, 0.5]), log, ["snips"])


@pytest.mark.parametrize("reward", [0.0, 0.1, 1.0])
def test_constant_rewards(reward):
    """A thousand rows without a click do not show that there are none: the next one may differ."""
    rng = np.random.default_rng(2)
    log = flat_log(rng.integers(2, size=1000), np.full(1000, reward), np.full(1000, 0.5))
    for chunk in (1000, 37):
        found = evaluate(FixedPolicy([0.7, 0.3]), log, ["snips", "sn-cips:0.1"], chunk=chunk)
        assert_nothing_is_certain(found, names=("snips", "sn-cips"))
        assert found.logged.interval.high == math.inf
    # weights vary, and with them the terms of ips, unless rewards are 0
    assert math.isinf(evaluate(FixedPolicy([0.7, 0.3]), log, ["ips"])["ips"].standard_error) == (reward == 0)


def test_bounds_hold_where_terms_are_equal():
    """Bernstein's interval has a term for the range: it is there, finite, and of a width."""
    log = flat_log(np.arange(400) % 2, np.zeros(400), np.full(400, 0.5))
    found = evaluate(UniformPolicy(2), log, ["ips"], propensity_floor=0.5, interval="bernstein")["ips"]
    assert found.kind == "bernstein" and found.interval.low == 0 and 0 < found.interval.high < 0.2


def test_a_policy_that_plays_nothing_that_was_logged():
    log = flat_log(np.zeros(100, dtype=int), np.random.default_rng(0).random(100), np.ones(100))
    assert_nothing_is_certain(evaluate(FixedPolicy([0.0, 1.0]), log, ["ips", "snips"]), names=("ips", "snips"))


def test_large_rewards_with_a_small_spread_are_not_called_constant():
    rng = np.random.default_rng(3)
    log = flat_log(rng.integers(2, size=800), 1e6 + rng.standard_normal(800), np.full(800, 0.5))
    found = evaluate(UniformPolicy(2), log, ["ips"])
    assert found.logged.standard_error == pytest.approx(float(log.rewards.std(ddof=1)) / math.sqrt(800))
    assert found["ips"].standard_error == pytest.approx(found.logged.standard_error)


def test_ends_that_cross_are_left_out():
    """Propensities ten times too small: both bounds of logarithmic smoothing fail, and their ends cross."""
    rng = np.random.default_rng(4)
    log = flat_log(rng.integers(2, size=2000), (rng.random(2000) < 0.5).astype(float), np.full(2000, 0.05))
    found = evaluate(UniformPolicy(2), log, ["ls", "ips", "snips"], interval="ls")
    for name in ("ls", "ips"):  # the mean of w r is 5, where rewards lie in [0, 1]
        assert all(one.low <= one.high for one in found[name].intervals)
        assert found[name].kind != "ls"
        assert any("left out" in text and "propensities" in text for text in found[name].warnings)
    assert found["ips"].intervals == () and found["ips"].kind == "none"
    assert found["ips"].interval.low == -math.inf  # no interval says anything
    assert found["snips"].kind == "normal"
    picked = choose({"a": UniformPolicy(2), "b": FixedPolicy([0.6, 0.4])}, log, kind="ls")
    assert picked.lower == -math.inf and "no bound says anything" in picked.note
    json.dumps(as_data(found), allow_nan=False)


def test_intervals_are_cut_where_they_overlap_with_what_can_be_and_left_out_where_not():
    def interval(low, high, kind="normal"):
        return Interval(low, high, kind, 0.95, "the policy's value")

    kept, wrong = possible([interval(-1, 0.5), interval(0.5, 3), interval(-2, 2)], (0.0, 1.0), ("normal",))
    assert [(one.low, one.high) for one in kept] == [(0, 0.5), (0.5, 1), (0, 1)] and wrong == []
    kept, wrong = possible([interval(1.1, 3), interval(-2, -0.1), interval(1, 0.4)], (0.0, 1.0), ("normal",))
    assert kept == [] and len(wrong) == 3 and "cross" in contradictions(wrong, (0.0, 1.0))[0]


def test_effective_rows_and_units(rng):
    w = rng.exponential(size=(300, 1))
    alone, grouped = Moments(1), Moments(1)
    groups = np.repeat(np.arange(60), 5)
    for part in np.array_split(np.arange(300), 4):
        alone.add(w[part])
        grouped.add(w[part], groups[part])
    assert alone.effective_rows(0) == pytest.approx(w.sum() ** 2 / (w**2).sum())
    assert alone.effective_units(0) == alone.effective_rows(0)
    sums = w.reshape(60, 5).sum(axis=1)
    assert grouped.effective_units(0) == pytest.approx(sums.sum() ** 2 / (sums**2).sum(), rel=0.05)  # hashes may meet
    assert alone.constant((Part(0),)) is False
