"""Warnings in plain words, each on a log that deserves it and silent on one that does not."""

from __future__ import annotations

import numpy as np
import pytest

from manyarms.evaluation import evaluate
from manyarms.evaluation.diagnostics import PolicyOverlap, effective_sample_size
from manyarms.logs.data import LoggedData
from manyarms.policies import FixedPolicy, UniformPolicy


def flat_log(a, r, K, propensities, **fields):
    return LoggedData(np.ones((len(a), 1)), a, r, K, propensities=propensities, **fields)


def test_a_good_log_gets_no_warning(problem, new_problem, rng):
    close = new_problem(0, gap=0.2)
    found = evaluate(close.policy, close.log(2000, rng))
    assert found.warnings == () and all(e.warnings == () for e in found.estimates)


def test_effective_sample_size():
    assert effective_sample_size(10.0, 10.0) == 10
    assert effective_sample_size(3.0, 9.0) == 1
    assert effective_sample_size(0.0, 0.0) == 0


def test_one_weight_dominates_and_propensities_are_tiny():
    a = np.array([1] + [0] * 999)
    p = np.where(a == 1, 1e-5, 0.99999)
    log = flat_log(a, np.ones(1000), 2, p)
    found = evaluate(FixedPolicy([0.9, 0.1]), log, ["ips", "snips"])
    text = " ".join(found.warnings)
    assert "row 0 alone carries" in text and "below 1/n" in text and "rows of 1,000" in text
    assert any("one row carries" in warning for warning in found["ips"].warnings)


def test_support_that_is_missing_is_seen_with_and_without_the_policy(rng):
    a = rng.integers(2, size=5000)
    r = rng.random(5000)
    target = FixedPolicy([0.4, 0.3, 0.3])
    blind = evaluate(target, flat_log(a, r, 3, np.full(5000, 0.5)), ["ips"])
    assert any("about 30%" in warning for warning in blind.warnings)
    seeing = evaluate(target, flat_log(a, r, 3, np.full(5000, 0.5), logging=FixedPolicy([0.5, 0.5, 0.0])), ["ips"])
    assert any("carry 30.0%" in warning for warning in seeing.warnings)
    assert seeing["ips"].interval.high > blind["ips"].interval.high + 0.25  # its rewards could all be 1


def test_propensities_too_small_or_estimated_or_never_met(rng):
    a = rng.integers(2, size=2000)
    found = evaluate(
        UniformPolicy(2),
        flat_log(a, rng.random(2000), 2, np.full(2000, 0.25), propensities_are_estimates=True),
        ["ips"],
    )
    text = " ".join(found.warnings)
    assert "propensities seem too small" in text and "estimates" in text
    never = evaluate(FixedPolicy([0, 0, 1.0]), flat_log(a, rng.random(2000), 3, np.full(2000, 0.5)), ["ips", "snips"])
    assert any("never plays" in warning for warning in never.warnings)
    assert never["snips"].value == 0 and any("no row has any weight" in w for w in never["snips"].warnings)


def test_few_rewards_are_told(rng):
    r = np.zeros(3000)
    r[:7] = 1.0
    found = evaluate(UniformPolicy(2), flat_log(rng.integers(2, size=3000), r, 2, np.full(3000, 0.5)), ["ips"])
    assert any("only 7 rows" in warning for warning in found.warnings)


def test_tail_and_shares_are_those_of_the_rows(rng):
    pi, pi0 = rng.beta(0.5, 5, 4000), rng.beta(0.5, 5, 4000)
    overlap = PolicyOverlap()
    for part in np.array_split(np.arange(4000), 3):
        overlap.add(pi[part], pi0[part], np.ones(len(part)), None)
    w = pi / pi0
    t, share = overlap.tail()
    np.testing.assert_allclose(share, [(w > x).mean() for x in t], atol=2 / 4000)
    assert overlap.largest == w.max() and w[overlap.largest_row] == w.max()
    assert pi0[overlap.smallest_row] == overlap.smallest == pi0.min()
    assert overlap.effective_sample_size == pytest.approx(w.sum() ** 2 / (w**2).sum())
    assert overlap.mean_weight_error == pytest.approx(w.std(ddof=1) / np.sqrt(4000), rel=1e-3)
    assert overlap.shares("logging")[1].sum() == pytest.approx(1)
    assert overlap.shares("policy")[1].sum() == pytest.approx(1)


def test_a_log_of_one_action_says_so():
    for actions, told in ((np.zeros(40, dtype=int), True), (np.arange(40) % 3, False)):
        log = LoggedData(np.ones((40, 1)), actions, np.arange(40) % 2, 3, propensities=np.full(40, 1 / 3))
        found = evaluate(FixedPolicy([0.2, 0.3, 0.5]), log, ["ips"], chunk=7)
        assert any("the one action 0" in text for text in found.warnings) is told


def test_equal_weights_miss_their_mean_by_rounding_only():
    """1/80 is no binary fraction: weights of a uniform policy average 1 up to rounding, with no error to hide it in."""
    n = 8_000
    log = LoggedData(np.ones((n, 1)), np.arange(n) % 80, np.arange(n) % 2, 80, propensities=np.full(n, 0.0125))
    found = evaluate(FixedPolicy(np.full(80, 1 / 80)), log, ["ips"])
    assert found.overlap is not None and found.overlap.mean_weight_error < 1e-9
    assert not any("weights average" in text for text in found.warnings)
