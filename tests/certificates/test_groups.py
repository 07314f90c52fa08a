"""Rows in groups: the unit is the group, whatever its rows have to do with each other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from manyarms.bounds import Grid, LogSmoothingBound
from manyarms.bounds.log_smoothing import GainTerms
from manyarms.certificates import PolicyPrior, certify, certify_with_improvement, improvement
from manyarms.certificates.groups import GroupSums, power_of_two, share_of, size_limits
from manyarms.errors import InvalidInput
from manyarms.logs import LoggedData
from manyarms.policies import SoftmaxPolicy
from manyarms.policies.randomised import GaussianPolicy, MixedLogitPolicy
from manyarms.weights import LogSmoothing

K, MOST = 3, 6
POLICY = SoftmaxPolicy(np.array([[2.0, 0.0], [0.0, 1.0], [0.0, -1.0]]))
LOGGING = SoftmaxPolicy(np.zeros((K, 2)))


def a_log(groups, rng):
    """Users with one context and one mood: rows of a user are anything but independent."""
    sizes = rng.integers(1, MOST + 1, groups)
    names = np.repeat(np.arange(groups), sizes)
    X = np.abs(rng.standard_normal((groups, 2)))[names]
    good = (rng.random(groups) < 0.3)[names]
    actions = rng.integers(0, K, len(names))
    rewards = np.where(good, 1.0, (actions == 0) * 0.5)
    shuffled = rng.permutation(len(names))
    return LoggedData(
        X[shuffled], actions[shuffled], rewards[shuffled], K, np.full(len(names), 1 / K), groups=names[shuffled]
    )


def true_values():
    rng = np.random.default_rng(123)
    first = POLICY.probabilities_of(np.abs(rng.standard_normal((400_000, 2))), np.zeros(400_000, dtype=int)).mean()
    row = 0.3 + 0.7 * 0.5 * first
    return row * (1 + MOST) / 2, row, (0.3 + 0.7 * 0.5 / K) * (1 + MOST) / 2


def test_the_averages_are_those_of_the_groups(rng):
    log = a_log(40, rng)
    sums = GroupSums(K, MOST)
    for part in log.chunks(17):
        sums.add(part, part.propensities, part.rewards, POLICY)
    smoothing, gain = LogSmoothing(0.3), GainTerms(0.2)
    summary = sums.summary([smoothing, gain])
    w = POLICY.probabilities_of(log.contexts, log.actions) / log.propensities
    Z, C, D = [], [], []
    for group in range(40):
        mine = log.groups == group
        r, v = log.rewards[mine], w[mine]
        Z.append((v * r).sum() / MOST)
        C.append(((v * (1 - r)).sum() + MOST - mine.sum()) / MOST)
        D.append(((v - 1) * r).sum() / MOST)
    assert summary.rows == 40
    np.testing.assert_allclose(summary.of(smoothing).value, np.mean(np.log1p(0.3 * np.array(Z))) / 0.3, rtol=1e-10)
    np.testing.assert_allclose(summary.of(smoothing).complement, np.mean(np.log1p(0.3 * np.array(C))) / 0.3, rtol=1e-10)
    np.testing.assert_allclose(summary.of(gain).value, np.mean(np.log1p(0.2 * np.array(D))) / 0.2, rtol=1e-10)
    np.testing.assert_allclose(np.sort(sums.sizes), np.sort(np.unique(log.groups, return_counts=True)[1]) / MOST)


def test_certificates_of_groups_cover():
    """At delta = 0.2 each statement fails in at most 20 % of logs; 300 logs with 90 failures would have a chance of 2e-5."""
    per_group, per_row, logged = true_values()
    failures = np.zeros(3, dtype=int)
    for seed in range(300):
        log = a_log(150, np.random.default_rng(seed))
        made, better = certify_with_improvement(
            POLICY, log, delta=0.2, largest_group=MOST, grid=Grid(smoothings=(0.3,))
        )
        assert made.rows == 150 and made.unit == "group" and made.per_row is not None
        inside = (per_group in made, made.per_row[0] <= per_row <= made.per_row[1], better.lower <= per_group - logged)
        failures += ~np.array(inside)
    assert (failures <= 90).all()


def test_certificates_cover_where_nobody_knows_how_large_groups_are():
    """The statements for all powers of 2 hold together with probability 0.8, and those that are read off are among them."""
    per_group, per_row, logged = true_values()  # of groups of up to 6 rows: their first 8 are all of them
    failures = np.zeros(3, dtype=int)
    for seed in range(150):
        log = a_log(150, np.random.default_rng([7, seed]))
        made, better = certify_with_improvement(POLICY, log, delta=0.2, grid=Grid(smoothings=(0.3,)))
        assert made.delta == 0.2 and made.unit == "group" and made.largest_reward == 8
        inside = (per_group in made, made.per_row[0] <= per_row <= made.per_row[1], better.lower <= per_group - logged)
        failures += ~np.array(inside)
    assert (failures <= 60).all()  # of 150: 61 would have a chance of 1e-8


def test_the_size_read_off_costs_its_share_of_delta(rng):
    log = a_log(400, rng)
    whole = certify(POLICY, log, delta=0.2 / 20, largest_group=8, bound="ls")  # 8 = 2^3: 1 / (4 * 5)
    read = certify(POLICY, log, delta=0.2, bound="ls")
    assert (read.lower, read.upper, read.per_row) == (whole.lower, whole.upper, whole.per_row)
    assert any("first 8 rows" in note and "0.05 of delta" in note for note in read.notes)
    assert "first 8 rows" in str(read)
    assert sum(share_of(2**j) for j in range(60)) <= 1
    assert [power_of_two(size) for size in (1, 2, 3, 4, 5, 9)] == [1, 2, 4, 4, 8, 16]


def test_ends_come_near_the_value_with_many_groups(rng):
    per_group, per_row, logged = true_values()
    made, better = certify_with_improvement(POLICY, a_log(40_000, rng), largest_group=MOST)
    assert made.lower > 0.8 * per_group and made.upper < 1.2 * per_group
    assert made.per_row[0] > 0.75 * per_row and made.per_row[1] < 1.25 * per_row
    assert better.certified and better.lower < per_group - logged
    assert "per group" in str(made) and "per row" in str(made) and "40,000 groups" in str(made)


def test_without_groups_the_rows_are_said_to_be_independent(rng):
    log = a_log(50, rng)
    plain = certify(POLICY, replace(log, groups=None), bound="ls")
    assert any("rows are taken to be independent" in note for note in plain.notes)
    same = certify(POLICY, log, bound="ls", independent=True)
    assert (same.lower, same.upper, same.unit, same.per_row) == (plain.lower, plain.upper, "row", None)


def test_one_row_in_each_group_is_the_certificate_of_rows(rng):
    log = a_log(200, rng)
    log = replace(log, groups=np.arange(len(log)))
    grouped = certify(POLICY, log, largest_group=1, bound=LogSmoothingBound(0.2))
    plain = certify(POLICY, log, independent=True, bound=LogSmoothingBound(0.2))
    np.testing.assert_allclose([grouped.lower, grouped.upper], [plain.lower, plain.upper], rtol=1e-12)
    gain = improvement(POLICY, log, largest_group=1).lower
    np.testing.assert_allclose(gain, improvement(POLICY, log, independent=True).lower, rtol=1e-12)


def test_what_groups_cannot_have(rng):
    log = a_log(30, rng)
    for arguments, message in (
        ({"largest_group": 2}, "largest_group: .*the most rows that a group can have.*2, and a group of [3-6] rows"),
        ({"largest_group": 0}, "largest_group"),
        ({"largest_group": MOST, "bound": "london"}, "bound: expected 'ls'"),
    ):
        with pytest.raises(InvalidInput, match=message):
            certify(POLICY, log, **arguments)
    with pytest.raises(InvalidInput, match=r"prior: .*log\.split"):
        certify(GaussianPolicy(POLICY.actions, 1.0), log, prior=PolicyPrior(POLICY.actions), largest_group=MOST)
    with pytest.raises(InvalidInput, match=r"policy: .*exact probabilities"):
        certify(MixedLogitPolicy(POLICY.actions, 1.0), log, largest_group=MOST)


def test_limits_of_sizes():
    sizes = np.full(1000, 0.5)
    low, high = size_limits(sizes, 0.05, two_sided=True)
    assert 0.47 < low < 0.5 < high < 0.53
    assert size_limits(sizes[:1], 0.05, two_sided=True) == (0.0, 1.0)


def test_a_limit_of_groups_needs_groups(rng):
    log = a_log(30, rng)
    with pytest.raises(InvalidInput, match=r"largest_group: .*columns\.group.* a log without groups"):
        certify(POLICY, replace(log, groups=None), largest_group=MOST)
    with pytest.raises(InvalidInput, match=r"largest_group: .*independent=True"):
        certify(POLICY, log, largest_group=MOST, independent=True)


def test_users_in_common_are_refused_unless_rows_are_independent(rng):
    log = a_log(60, rng)
    half = np.arange(len(log)) % 2 == 0
    train, rest = log.rows(half), log.rows(~half)
    with pytest.raises(InvalidInput, match=r"learned_from: .*log\.split.*users"):
        certify(POLICY, rest, largest_group=MOST, learned_from=train)
    assert certify(POLICY, rest, independent=True, bound="ls", learned_from=train).unit == "row"
