"""Sums in chunks give what whole arrays give; units, groups and bootstrap samples are what they claim to be."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from manyarms._base import moments as module
from manyarms._base.moments import Moments, Part, RunningMoments


def filled(columns, parts=1, groups=None):
    out = Moments(columns.shape[1])
    for index in np.array_split(np.arange(len(columns)), parts):
        out.add(columns[index], None if groups is None else groups[index])
    return out


def test_means_and_errors_of_any_chunks(rng):
    data = rng.standard_normal((500, 3)) @ rng.standard_normal((3, 3)) + 1e6  # far from 0: sums of squares would drown
    for parts in (1, 7, 500):
        found = filled(data, parts)
        for column in range(3):
            assert found.value([Part(column)]) == pytest.approx(data[:, column].mean(), rel=1e-14)
            wanted = data[:, column].std(ddof=1) / np.sqrt(500)
            assert found.standard_error([Part(column)]) == pytest.approx(wanted, rel=1e-7)


@pytest.mark.parametrize("covariance", [False, True])
def test_one_update_for_every_stream(rng, covariance):
    """Columns of any chunks, far from 0; entries that are missing count in no column."""
    data = rng.standard_normal((300, 3)) @ rng.standard_normal((3, 3)) + 1e6
    running = RunningMoments(3, covariance=covariance)
    for part in np.array_split(data, 11):
        running.add(part)
    wanted = np.cov(data, rowvar=False)
    np.testing.assert_allclose(running.mean, data.mean(axis=0), rtol=1e-14)
    np.testing.assert_allclose(running.variance, wanted if covariance else np.diag(wanted), rtol=1e-7)


def test_missing_entries_count_in_no_column(rng):
    data, missing = rng.standard_normal((400, 2)) + 1e5, rng.random((400, 2)) < 0.3
    missing[:40, 1] = True  # a chunk without a number
    running = RunningMoments(2)
    for part in np.split(np.arange(400), 10):
        running.add(np.where(missing, np.nan, data)[part], missing[part])
    for column in range(2):
        there = data[~missing[:, column], column]
        assert running.count[column] == len(there)
        assert running.mean[column] == pytest.approx(there.mean(), rel=1e-14)
        assert running.variance[column] == pytest.approx(there.var(ddof=1), rel=1e-8)


def test_contrasts_and_ratios_by_the_delta_method(rng):
    w, r, v = rng.exponential(size=400), rng.random(400), rng.exponential(size=400)
    found = filled(np.column_stack([w * r, w, v * r, v]), 3)
    one = (w * r).sum() / w.sum()
    other = (v * r).sum() / v.sum()
    contrast = [Part(0, 1), Part(2, 3, -1.0)]
    assert found.value(contrast) == pytest.approx(one - other, abs=1e-12)
    influence = w * (r - one) / w.mean() - v * (r - other) / v.mean()
    assert found.standard_error(contrast) == pytest.approx(influence.std(ddof=1) / 20, rel=1e-10)


def test_a_ratio_of_nothing_is_nothing():
    found = filled(np.zeros((10, 2)))
    assert found.value([Part(0, 1)]) == 0 and found.standard_error([Part(0, 1)]) == 0
    assert (found.replicates([Part(0, 1)], 20, 0) == 0).all()


def test_bootstrap_replicates_are_weighted_means(rng):
    """Poisson counts for every row, replayed from the seed."""
    data = rng.random((50, 2))
    found = filled(data, 4)
    counts = np.random.default_rng(9).poisson(1.0, (50, 30)).astype(float)
    wanted = counts.T @ data / counts.sum(axis=0)[:, None]
    np.testing.assert_allclose(found.replicates([Part(0)], 30, 9), wanted[:, 0], rtol=1e-12)
    paired = found.replicates([Part(0), Part(1, None, -1.0)], 30, 9)
    np.testing.assert_allclose(paired, wanted[:, 0] - wanted[:, 1], rtol=1e-9)


def test_beyond_the_units_rows_share_one(rng, monkeypatch):
    monkeypatch.setattr(module, "UNITS", 64)
    data = rng.exponential(size=(3000, 1))
    found = filled(data, 5)
    assert found.units == 64
    spread = found.replicates([Part(0)], 2000, 0).std()
    assert spread == pytest.approx(found.standard_error([Part(0)]), rel=0.35)  # 64 units: an error of sd / sqrt(128)
    assert found.standard_error([Part(0)]) == pytest.approx(data.std(ddof=1) / np.sqrt(3000), rel=1e-10)


@pytest.mark.parametrize("kind", ["numbers", "texts"])
def test_groups_carry_their_dependence(rng, kind):
    """All rows of a group the same: as many independent rows as groups, whatever the chunks."""
    users = np.repeat(np.arange(200), 10)
    data = np.repeat(rng.standard_normal((200, 1)), 10, axis=0)
    shuffle = rng.permutation(2000)
    names = users if kind == "numbers" else np.array([f"user {u}" for u in users])
    found = filled(data[shuffle], 7, names[shuffle])
    whole = filled(data[shuffle], 1, names[shuffle])
    assert found.standard_error([Part(0)]) == pytest.approx(whole.standard_error([Part(0)]), rel=1e-9)
    assert found.standard_error([Part(0)]) == pytest.approx(data[::10].std(ddof=1) / np.sqrt(200), rel=0.05)
    assert found.grouped and found.units > 190  # few of 200 groups share a unit
    spread = found.replicates([Part(0)], 1000, 0).std()
    assert spread == pytest.approx(found.standard_error([Part(0)]), rel=0.2)


def test_group_units_are_spread_evenly():
    units = module._units_of(np.arange(100_000))
    counts = np.bincount(units, minlength=module.UNITS)
    assert stats.chisquare(counts).pvalue > 1e-6 or counts.std() < np.sqrt(
        counts.mean()
    )  # multiplicative hashing: or better
    assert units.min() >= 0 and units.max() < module.UNITS
    assert (module._units_of(np.array([-5, 3])) == module._units_of(np.array([-5, 3, 9]))[:2]).all()


@pytest.mark.parametrize("covariance", [False, True])
@pytest.mark.parametrize("parts", [1, 2, 6])
def test_an_infinite_mean_stays_infinite(covariance, parts):
    """inf - inf is no number: what is beyond all numbers in one chunk must not become NaN in the next."""
    data = np.column_stack([np.arange(12.0), np.where(np.arange(12) == 3, np.inf, 1.0), np.full(12, 1e308)])
    found = RunningMoments(3, covariance=covariance)
    for part in np.array_split(data, parts):
        found.add(part)
    np.testing.assert_array_equal(found.mean[1:], np.inf)
    assert found.mean[0] == pytest.approx(5.5)
    spread = found.variance[0, 0] if covariance else found.variance[0]
    assert spread == pytest.approx(13.0)
    assert not np.isnan(found.variance).any()
