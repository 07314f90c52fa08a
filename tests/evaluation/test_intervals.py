"""Intervals: their formulas, and that they cover as often as they say (or where they do not)."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from manyarms.errors import InvalidInput
from manyarms.evaluation import evaluate, intervals
from manyarms.policies import FixedPolicy

RUNS = 400


def test_formulas():
    low, high = intervals.normal(1.0, 0.5, 0.95)
    assert (low, high) == (pytest.approx(1 - 1.959964 * 0.5), pytest.approx(1 + 1.959964 * 0.5))
    margin = intervals.bernstein_margin(0.04, 100, 2.0, 0.1)
    assert margin == pytest.approx(math.sqrt(2 * 0.04 * math.log(20) / 100) + 7 * 2 * math.log(20) / (3 * 99))
    assert intervals.bernstein_margin(0.04, 1, 2.0, 0.1) == math.inf
    bound = intervals.ls_lower(0.4, 0.1, 100, 0.05)
    assert bound == pytest.approx((math.exp(0.1 * 0.4 - math.log(20) / 100) - 1) / 0.1)
    assert intervals.ls_lower(0.0, 0.1, 100, 0.05) == 0.0
    with pytest.raises(InvalidInput, match="level"):
        intervals.confidence("level", 1.0)


def test_ls_interval_of_an_estimate(problem, rng):
    log = problem.log(300, rng)
    w = problem.policy.probabilities_of(log.contexts, log.actions) / log.propensities
    found = evaluate(problem.policy, log, ["ls:0.2"], interval="ls")["ls"]
    below = intervals.ls_lower(np.mean(np.log1p(0.2 * w * log.rewards) / 0.2), 0.2, 300, 0.025)
    above = 1 - intervals.ls_lower(np.mean(np.log1p(0.2 * w * (1 - log.rewards)) / 0.2), 0.2, 300, 0.025)
    assert (found.interval.low, found.interval.high) == (pytest.approx(below), pytest.approx(above))
    assert found.kind == "ls" and found.interval_is_for == "the policy's value"


def test_bernstein_needs_a_bound(problem, rng):
    log = problem.log(300, rng)
    found = evaluate(problem.policy, log, ["ips", "ips-min:5", "snips"], interval="bernstein")
    assert found["ips"].by("bernstein") is None and found["ips"].kind == "normal"
    assert any("no bernstein" in text for text in found["ips"].warnings)
    assert found["ips-min"].kind == "bernstein" and found["snips"].by("bernstein") is None
    floor = evaluate(problem.policy, log, ["ips"], propensity_floor=float(problem.pi0.min()), interval="bernstein")
    assert floor["ips"].kind == "bernstein"


def coverage(new_problem, names, *, rows, gap, runs=RUNS, seed=0, whole=False, never=False, level=0.9, **options):
    """The share of logs on which each interval holds the truth: {(estimator, kind): share}."""
    problem = new_problem(seed, gap=gap, never=never)
    rng = np.random.default_rng(seed + 1)
    held: dict[tuple[str, str], int] = {}
    for run in range(runs):
        if never:
            _, log = problem.with_support(rows, rng)
        else:
            log = problem.log(rows, rng, logging=problem.logging if whole else None)
        found = evaluate(problem.policy, log, names, level=level, replicates=300, seed=run, **options)
        for estimate in found.estimates:
            for interval in estimate.intervals:
                key = estimate.name, interval.kind
                held[key] = held.get(key, 0) + (problem.truth in interval)
    return held


def at_least(held, level, runs=RUNS):
    """Not refuted at 1e-4 by a binomial test."""
    return stats.binomtest(held, runs, level, alternative="less").pvalue > 1e-6


def near(held, level, runs=RUNS):
    return stats.binomtest(held, runs, level).pvalue > 1e-6


def test_unbiased_estimators_cover_at_their_level(new_problem):
    """A moderate change of policy, 400 rows: normal and bootstrap intervals at 90 %."""
    held = coverage(new_problem, ["ips", "snips"], rows=400, gap=0.5)
    for name in ("ips", "snips"):
        for kind in ("normal", "bootstrap"):
            assert near(held[name, kind], 0.9), (name, kind, held[name, kind] / RUNS)


def test_bounds_cover_at_any_size_with_heavy_weights(new_problem):
    """30 rows and a large change of policy: approximations fail here, bounds must not."""
    problem = new_problem(2, gap=2.5)
    floor = float(problem.pi0.min())
    names = ["ips", "ips-min:20", "ls"]
    held = coverage(new_problem, names, rows=30, gap=2.5, seed=2, whole=True, propensity_floor=floor)
    for key in (("ips", "bernstein"), ("ips-min", "bernstein"), ("ls", "ls")):
        assert at_least(held[key], 0.9), (key, held[key] / RUNS)
    # the docs of intervals say so: with an effective sample of a few rows these cover less than their level
    assert held["ips", "normal"] < 0.85 * RUNS


def test_bias_terms_make_biased_estimators_cover(new_problem):
    names = ["cips:0.3", "ips-min:1", "es:0.4", "harmonic:0.5", "es-beta:0.5", "ix:0.2", "shrinkage:1", "ls:2"]
    held = coverage(new_problem, names, rows=200, gap=1.0, seed=3, whole=True, runs=120)
    for (name, kind), count in held.items():
        assert at_least(count, 0.9, 120), (name, kind, count)


def test_an_action_left_out_is_covered_by_bias_terms_and_by_ls(new_problem):
    held = coverage(new_problem, ["ips", "ls"], rows=200, gap=1.0, seed=5, never=True, runs=120)
    for (name, kind), count in held.items():
        assert at_least(count, 0.9, 120), (name, kind, count)
    problem = new_problem(5, gap=1.0, never=True)
    _, log = problem.with_support(5000, np.random.default_rng(0))
    blind = evaluate(problem.policy, log, ["ips"], bias=False)["ips"]
    assert problem.truth > blind.interval.high  # and without them it is not


def test_ls_lower_bound_is_sharp_enough_to_fail_without_its_margin():
    """Without log(1/delta)/n the same expression is exceeded far too often: the coverage above is not idle."""
    rng = np.random.default_rng(0)
    failures = bare = 0
    n, delta, smoothing = 50, 0.1, 0.2
    for _ in range(2000):
        w = 2.0 * (rng.random(n) < 0.5)  # weights 0 or 2 with mean 1, rewards 1: value 1
        estimate = float(np.mean(np.log1p(smoothing * w) / smoothing))
        failures += intervals.ls_lower(estimate, smoothing, n, delta) > 1
        bare += math.expm1(smoothing * estimate) / smoothing > 1
    assert failures <= stats.binom.ppf(1 - 1e-4, 2000, delta)
    assert bare > 2000 * delta


def test_groups_widen_intervals_and_leave_bounds_out(problem, rng):
    i, a, r = problem.draw(100, rng)
    ten = np.repeat(np.arange(100), 10)
    log = problem.log_of(i[ten], a[ten], r[ten], groups=ten)
    alone = evaluate(problem.policy, problem.log_of(i, a, r), ["ips", "ls"])
    found = evaluate(problem.policy, log, ["ips", "ls"])
    assert found["ips"].standard_error == pytest.approx(alone["ips"].standard_error, rel=0.03)
    assert found["ls"].by("ls") is None
    assert any("groups" in text for text in found.warnings)


def test_two_actions_by_hand():
    """K = 2 without contexts, where everything is a sum of two numbers."""
    from manyarms.logs.data import LoggedData

    a = np.array([0, 0, 0, 1])
    r = np.array([1.0, 0.0, 1.0, 1.0])
    log = LoggedData(np.ones((4, 1)), a, r, 2, propensities=np.where(a == 0, 0.75, 0.25))
    found = evaluate(FixedPolicy([0.5, 0.5]), log, ["ips", "snips"])
    w = np.array([2 / 3, 2 / 3, 2 / 3, 2])
    assert found["ips"].value == pytest.approx((w * r).mean())
    assert found["snips"].value == pytest.approx((w * r).sum() / w.sum())
    assert found.logged.value == 0.75
