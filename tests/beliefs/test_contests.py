"""The chance of one action against all others, given what they share, is what dense quadrature and enumeration make it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from manyarms.beliefs import contests
from manyarms.beliefs.contests import Contest, Rivals, binned, chance, few, rivals
from manyarms.beliefs.joint_chances import along_a_line


def by_quadrature(contest: Contest, k: int) -> float:
    """The integral on a fine grid around the mode."""
    mean, sd, others = contest
    found = chance(contest, k, 0.5)
    z = found.mode + max(found.width, 0.2) * np.linspace(-25, 25, 20_001)
    return float(np.trapezoid(stats.norm.pdf(z) * np.exp(others.log_fewer(mean + sd * z, k)), z))


def some_rivals(number: int, spread: float, seed: int = 0) -> Rivals:
    rng = np.random.default_rng(seed)
    return rivals([(rng.normal(size=number), spread * rng.uniform(0.3, 1, number), np.ones(number))])


@pytest.mark.parametrize("k", [1, 2, 5])
@pytest.mark.parametrize("mean", [-3.0, 0.0, 3.0])
@pytest.mark.parametrize(("number", "spread"), [(1, 1.0), (3, 0.05), (50, 1.0), (50, 10.0), (400, 0.3)])
def test_one_uniform_gives_an_unbiased_estimate(number: int, spread: float, mean: float, k: int) -> None:
    """Over the uniform the average is the integral: by the midpoints of 64 equal parts, up to the error of that rule."""
    contest = Contest(mean, 1.0, some_rivals(number, spread))
    if k > number:
        assert chance(contest, k, 0.3).log == 0.0
        return
    found = np.exp([chance(contest, k, (i + 0.5) / 64).log for i in range(64)])
    assert found.mean() == pytest.approx(by_quadrature(contest, k), rel=0.02 if spread < 0.1 else 5e-4)
    assert found.min() > 0


def test_far_tails_keep_their_logarithms() -> None:
    """One rival: P(N(mu, 1) > N(0, 1)) is a normal tail, far below what a float holds."""
    for mean in (-2.0, -30.0, -300.0):
        contest = Contest(mean, 1.0, rivals([(np.zeros(1), np.ones(1), np.ones(1))]))
        logs = [chance(contest, 1, u).log for u in (0.1, 0.35, 0.6, 0.85)]
        assert np.mean(logs) == pytest.approx(stats.norm.logcdf(mean / np.sqrt(2)), rel=1e-3, abs=5e-3)


def test_how_many_are_ahead_has_the_law_of_a_sum_of_coins() -> None:
    rng = np.random.default_rng(3)
    q = np.concatenate([rng.uniform(0, 1, 6), rng.uniform(0, 0.1, 40), [1e-12]])
    numbers = np.ones(len(q))
    numbers[[2, 30]] = 3.0
    law = np.ones(1)
    for p in np.repeat(q, numbers.astype(int)):
        law = np.convolve(law, [1 - p, p])
    found = np.exp(few(np.log1p(-q)[None], numbers, 12))[0]
    np.testing.assert_allclose(found, np.cumsum(law)[:12], rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("range_", [0.1, 5.0, 300.0])
def test_bins_leave_the_best_of_many_as_it_is(range_: float) -> None:
    """Also where the means spread over many sds, or all but a few lie on a grid."""
    rng = np.random.default_rng(1)
    for mean in (rng.uniform(-range_, 0, 20_000), -range_ * rng.integers(0, 40, 20_000) / 40.0):
        counts = rng.integers(1, 4, 20_000).astype(np.float64)
        plain = Rivals(mean, np.ones(len(mean)), counts)
        less = Rivals(*binned(mean, np.ones(1), counts))
        assert len(less.mean) <= contests.BINS + 1 and less.counts.sum() == counts.sum()
        s = np.linspace(-1, 7, 33)
        # where log F matters to a chance at all
        want, have = plain.log_best(s), less.log_best(s)
        np.testing.assert_allclose(have[want > -50], want[want > -50], rtol=1e-3)


def test_bins_are_laid_around_those_that_are_left() -> None:
    """One far ahead of the others that is gone leaves them as they are; and few are not binned at all."""
    mean, counts = np.append(np.random.default_rng(0).uniform(-1, 0, 5000), 100.0), np.append(np.ones(5000), 0.0)
    s = np.linspace(1, 6, 9)
    want = Rivals(mean[:-1], np.ones(5000), counts[:-1]).log_best(s)
    np.testing.assert_allclose(Rivals(*binned(mean, np.ones(1), counts)).log_best(s), want, rtol=1e-4)
    few_left = binned(mean[-5:], np.ones(1), counts[-5:])
    np.testing.assert_array_equal(few_left[0], mean[-5:-1])
    assert binned(mean, np.ones(1), np.zeros(5001))[0].size == 0


def test_a_cloud_is_a_mixture() -> None:
    means = np.array([-1.0, 0.5, 2.0])
    cloud = rivals([(np.zeros(0), np.zeros(0), np.zeros(0))], (means, 0.7, 4))
    s = np.array([0.0, 1.5, 3.0])
    each = stats.norm.cdf((s[:, None] - means) / 0.7).mean(axis=1)
    np.testing.assert_allclose(np.exp(cloud.log_best(s)), each**4, rtol=1e-12)
    np.testing.assert_allclose(np.exp(cloud.log_fewer(s, 3)), stats.binom.cdf(2, 4, 1 - each), rtol=1e-10)
    assert cloud.total == 4


def test_one_parameter_along_a_line_agrees_with_draws() -> None:
    rng = np.random.default_rng(5)
    Z, mean = rng.normal(size=(9, 3)), rng.normal(size=3)
    Z[4] = Z[7]  # a tie, broken by chance
    factor = np.tril(rng.normal(size=(3, 3)))
    draws = 60_000
    scores = (mean + rng.standard_normal((draws, 3)) @ factor.T) @ Z.T
    for action in range(9):
        found = along_a_line(Z, action, np.broadcast_to(mean, (1000, 3)), factor, 3, rng)
        # of a pair that ties the other is taken out: it is neither ahead nor behind
        twin = {4: 7, 7: 4}.get(action)
        others = [b for b in range(9) if b not in (action, twin)]
        ahead, tied = (scores[:, others] > scores[:, [action]]).sum(axis=1), 1 if twin is None else 2
        for logs, share in (
            (found.first, (ahead == 0) / tied),
            (found.inside, np.clip(3 - ahead, 0, tied) / tied),
        ):
            p = np.exp(logs)
            error = np.hypot(p.std() / np.sqrt(len(p)), share.std() / np.sqrt(draws)) + 1e-12
            assert abs(p.mean() - share.mean()) < 5.5 * error
    alone = along_a_line(np.ones((4, 3)), 1, np.zeros((2, 3)), factor, 3, rng)
    np.testing.assert_allclose(np.exp(alone.first), 0.25)
    np.testing.assert_allclose(np.exp(alone.inside), 0.75)
