"""What delta is spent on: families, points, sides and simulation together never cost more than delta."""

from __future__ import annotations

import math

import numpy as np
import pytest

from manyarms import bounds
from manyarms.bounds import Budget, Grid, Summary
from manyarms.bounds.concentration import bernstein_margin
from manyarms.bounds.log_smoothing import GainTerms
from manyarms.certificates import PolicyPrior, certify, improvement, summarise
from manyarms.certificates.certify import MONTE_CARLO
from manyarms.certificates.summarise import DrawnCollector, log_rows
from manyarms.policies import SoftmaxPolicy
from manyarms.policies.randomised import MixedLogitPolicy
from manyarms.weights import ClipPropensities, ExponentialAlpha, Harmonic, LogSmoothing

DELTA, LAM, TAU, SMOOTHING, DRAWS, SEED = 0.1, 0.05, 0.1, 0.05, 256, 3
GRID = Grid(lambdas=(LAM,), alphas=(0.8,), taus=(TAU,), smoothings=(SMOOTHING,), strengths=(0.2,))


@pytest.fixture
def log(world, rng):
    return world.log(800, rng)


@pytest.fixture
def prior(world):
    return PolicyPrior(world.start, 1.0)


@pytest.fixture
def drawn(world):
    """A policy with simulated probabilities, with the draws that a certificate of SEED makes."""
    return MixedLogitPolicy(world.start, 0.5, draws=DRAWS, seed=SEED)


def certified(world, log, prior, **choices):
    return certify(
        MixedLogitPolicy(world.start, 0.5), log, prior=prior, delta=DELTA, grid=GRID, draws=DRAWS, seed=SEED, **choices
    )


def test_families_share_delta(log, learned, prior):
    """Two families with one point each: a quarter of delta for each end of London's."""
    made = certify(learned, log, prior=prior, delta=DELTA, bound=("es", "london"), grid=GRID)
    below, above = summarise(learned, log, [ExponentialAlpha(0.8), ClipPropensities(TAU)]).with_margins(DELTA)
    for ends, bound in zip(
        made.candidates, (bounds.Unified(ExponentialAlpha(0.8), LAM), bounds.London(ClipPropensities(TAU))), strict=True
    ):
        assert ends.lower == pytest.approx(bound.lower(below, made.kl, Budget(DELTA / 2)).end, abs=1e-12)
        assert ends.upper == pytest.approx(bound.upper(above, made.kl, Budget(DELTA / 2)).end, abs=1e-12)


def test_simulation_takes_its_part_of_delta(world, log, prior, drawn):
    """The ends are those of averages that were moved against them, at what is left of delta."""
    spent, left = DELTA * MONTE_CARLO, DELTA * (1 - MONTE_CARLO)
    kl = prior.divergence(drawn)
    made = certified(world, log, prior, bound="ls")
    below, _ = summarise(drawn, log, [LogSmoothing(SMOOTHING)]).with_margins(spent)
    bound = bounds.LogSmoothingBound(SMOOTHING)
    assert made.candidates[0].lower == pytest.approx(bound.lower(below, kl, Budget(left)).end, abs=1e-12)
    gain = improvement(
        MixedLogitPolicy(world.start, 0.5), log, prior=prior, delta=DELTA, grid=GRID, draws=DRAWS, seed=SEED
    )
    below, _ = summarise(drawn, log, [GainTerms(SMOOTHING)]).with_margins(spent)
    expected = bounds.Gain(SMOOTHING).lower(below, kl, Budget(left, 1)).end
    assert gain.lower == pytest.approx(expected, abs=1e-12)
    clip = certified(world, log, prior, bound="clip").candidates[0]
    below, above = summarise(drawn, log, [ClipPropensities(TAU)]).with_margins(spent)
    unified = bounds.Unified(ClipPropensities(TAU), LAM)
    assert below.of(ClipPropensities(TAU)).value < above.of(ClipPropensities(TAU)).value
    assert clip.lower == pytest.approx(unified.lower(below, kl, Budget(left)).end, abs=1e-12)
    assert clip.upper == pytest.approx(unified.upper(above, kl, Budget(left)).end, abs=1e-12)


def test_two_simulations_share_their_part(world, log, prior, monkeypatch):
    """The general bound draws parameters of its own, beside the draws of the others."""
    seen = []
    with_margins = Summary.with_margins

    def watched(self, delta):
        seen.append(delta)
        return with_margins(self, delta)

    monkeypatch.setattr(Summary, "with_margins", watched)
    certified(world, log, prior, bound=("harmonic", "ls"))
    assert len(seen) == 2 and sum(seen) == pytest.approx(DELTA * MONTE_CARLO)


def test_the_margins_of_simulation(log, drawn):
    """Empirical Bernstein over the draws' own averages, at a share of delta for either side of every average."""
    one = ClipPropensities(TAU)
    summary = summarise(drawn, log, [one, LogSmoothing(SMOOTHING)])
    slopes = log.rewards / np.maximum(log.propensities, TAU)
    each = slopes @ drawn.rows(log.contexts).draws_at(log.actions) / len(log)
    assert summary.of(one).value == pytest.approx(each.mean())
    share = DELTA / (2 * (6 + 3))
    margin = bernstein_margin(each.var(ddof=1), DRAWS, slopes.mean(), share)
    below, above = summary.with_margins(DELTA)
    assert below.of(one).value == pytest.approx(each.mean() - margin)
    assert above.of(one).value == pytest.approx(each.mean() + margin)
    # a bias lies between 0 and 1 in every draw
    reach = math.sqrt(math.log(1 / share) / (2 * DRAWS))
    for moved in (below, above):
        assert moved.of(one).bias == pytest.approx(min(1.0, summary.of(one).bias + reach))
        assert moved.of(one).second_moment > summary.of(one).second_moment


def test_the_general_bound_pays_for_what_counts_too_much_below_and_too_little_above(world, log):
    summary = summarise(SoftmaxPolicy(-world.start), log, [Harmonic(0.3)], mixture=False)
    found, bound = summary.of(Harmonic(0.3)), bounds.Unified(Harmonic(0.3), LAM)
    assert found.overshoot > 0 and found.bias > 0 and found.overshoot != pytest.approx(found.bias, rel=1e-12)
    below, above = bound.lower(summary, 0.0, Budget(DELTA)), bound.upper(summary, 0.0, Budget(DELTA))
    assert below.costs["bias"] == found.overshoot and above.costs["bias"] == found.bias
    assert below.end == pytest.approx(found.value - sum(below.costs.values()))


def test_any_alpha_pays_for_its_share_and_for_twice_alpha(learned, log):
    """log(2 / (alpha delta')) with delta' a quarter of delta, and the variance at 2 alpha; no bias from below."""
    own, doubled, kl, n = ExponentialAlpha(0.4), ExponentialAlpha(0.8), 2.0, len(log)
    summary = summarise(learned, log, [own, doubled])
    expected = (
        summary.of(own).value
        - math.sqrt((kl + math.log(4 * math.sqrt(n) / DELTA)) / (2 * n))
        - (kl + math.log(8 / (DELTA * 0.4))) / (n * LAM)
        - LAM / 2 * summary.of(doubled).second_moment
    )
    assert bounds.AnyAlpha(0.4, LAM).lower(summary, kl, Budget(DELTA)).end == pytest.approx(expected, abs=1e-12)


def test_no_draw_goes_beyond_its_reach(world, log, drawn):
    """Monte Carlo's margins rest on it: for squares the largest of an action, bounded by a norm that is a little larger."""
    one = ClipPropensities(TAU)
    reach = summarise(drawn, log, [one]).ranges[one]
    where = np.array([np.flatnonzero((world.contexts == x).all(axis=1))[0] for x in log.contexts])
    squares = world.pi0[where] / np.maximum(world.pi0[where], TAU) ** 2  # (n, K)
    largest = squares.max(axis=1).mean()
    assert largest <= reach.expected_square <= largest * world.actions ** (1 / 8)
    assert reach.value == pytest.approx((log.rewards / np.maximum(log.propensities, TAU)).mean())
    assert reach.undershoot == 1.0 and reach.overshoot == 0.0


def test_no_drawn_parameter_goes_beyond_its_reach(world, log):
    """Harmonic weights rise with pi: the largest are those at pi = 1."""
    one = Harmonic(0.3)
    collector = DrawnCollector(MixedLogitPolicy(world.start, 0.5), [one], draws=2, seed=0)
    for rows in log_rows(collector.policy, log.chunks(300), 1.0):
        collector.add(*rows)
    reach = collector.summary().ranges[one]
    w = 1 / (0.7 * log.propensities + 0.3)
    assert reach.value == pytest.approx((w * log.rewards).mean())
    assert reach.logged_square == pytest.approx(((w * log.rewards) ** 2).mean())
    where = np.array([np.flatnonzero((world.contexts == x).all(axis=1))[0] for x in log.contexts])
    pi0 = world.pi0[where]
    assert reach.expected_square == pytest.approx((pi0 / (0.7 * pi0 + 0.3) ** 2).sum(axis=1).mean())


def test_the_margins_of_quadrature(log, learned):
    """Every probability may be off by the tolerance: one of them in sums over played actions, all K in sums over actions."""
    one, off = ClipPropensities(TAU), learned.tolerance
    summary = summarise(learned, log, [one])
    below, above = (moved.of(one) for moved in summary.with_margins(DELTA))
    own, reach = summary.of(one), summary.ranges[one]
    assert own.value - below.value == pytest.approx(off * reach.value, rel=1e-6)
    assert above.value - own.value == pytest.approx(off * reach.value, rel=1e-6)
    assert below.bias - own.bias == pytest.approx(off * learned.action_count, rel=1e-6)
    assert below.expected_square - own.expected_square == pytest.approx(
        off * learned.action_count * reach.expected_square, rel=1e-5
    )


def test_an_improvement_is_in_the_units_of_the_rewards(world, learned, prior):
    plain, scaled = (
        improvement(learned, world.log(500, np.random.default_rng(1), scale=b), prior=prior, largest_reward=b)
        for b in (1.0, 8.0)
    )
    assert plain.lower != 0 and scaled.rows_needed == plain.rows_needed
    assert (scaled.lower, scaled.estimate, scaled.logged) == pytest.approx(
        (8 * plain.lower, 8 * plain.estimate, 8 * plain.logged)
    )


def test_a_softmax_with_a_temperature_is_a_prior_around_its_scores(world):
    np.testing.assert_array_equal(PolicyPrior.of(SoftmaxPolicy(world.start, temperature=0.5)).mean, 2 * world.start)
