"""The terms of every bound against direct dense formulas, and what the terms do when parameters move."""

from __future__ import annotations

import math

import numpy as np
import pytest

from manyarms import bounds, theory
from manyarms.bounds import Budget
from manyarms.bounds.log_smoothing import GainTerms
from manyarms.certificates import PolicyPrior, certify, summarise
from manyarms.certificates.summarise import DrawnCollector, log_rows
from manyarms.errors import InvalidInput
from manyarms.policies import SoftmaxPolicy
from manyarms.policies.randomised import MixedLogitPolicy
from manyarms.weights import (
    ClipPropensities,
    ExponentialAlpha,
    Harmonic,
    ImplicitExploration,
    LinearLogSmoothing,
    LogSmoothing,
    NoCorrection,
)

KL, DELTA, LAM = 3.7, 0.05, 0.04
DENOMINATORS = {
    NoCorrection(): lambda p: p,
    ExponentialAlpha(0.7): lambda p: p**0.7,
    ExponentialAlpha(0.0): lambda p: np.ones_like(p),
    ClipPropensities(0.15): lambda p: np.maximum(p, 0.15),
    ImplicitExploration(0.1): lambda p: p + 0.1,
}


def near(value):
    return pytest.approx(value, abs=1e-10, rel=1e-10)


@pytest.fixture(params=[False, True], ids=["all actions logged", "one never logged"])
def case(request, new_world, learned):
    world = new_world(never=request.param)
    return Dense(world, learned, world.log(300, np.random.default_rng(3)))


class Dense:
    """All rows x actions at once."""

    def __init__(self, world, policy, log):
        self.world, self.policy, self.log = world, policy, log
        where = np.array([np.flatnonzero((world.contexts == x).all(axis=1))[0] for x in log.contexts])
        self.pi, self.pi0 = world.table(policy)[where], world.pi0[where]
        self.row, self.a, self.r = np.arange(len(log)), log.actions, log.rewards

    def terms(self, h):
        """value, Var_n, B_n as printed (thesis, Sections 8.3.3 and 8.6.1), and V_n of Sakhi et al."""
        pi, pi0, some = self.pi, self.pi0, self.pi0 > 0
        over = np.where(some, 1 / h(np.where(some, pi0, 1.0)), 0.0)
        played, p = pi[self.row, self.a], over[self.row, self.a]
        expected = (pi0 * pi * over**2).sum(axis=1)
        return {
            "value": (played * p * self.r).mean(),
            "complement": (played * p * (1 - self.r)).mean(),
            "Var": (expected + played * p**2 * self.r**2).mean(),
            "V": expected.mean(),
            "B": 1 - (pi0 * pi * over).sum(axis=1).mean(),
        }


@pytest.mark.parametrize("correction", DENOMINATORS, ids=lambda one: f"{one.name}-{one.settings}")
def test_one_implementation_gives_the_printed_bound_for_every_h(case, correction):
    dense = case.terms(DENOMINATORS[correction])
    summary = summarise(case.policy, case.log, [correction], chunk=97)
    found = summary.of(correction)
    n = len(case.log)
    assert found.value == near(dense["value"]) and found.complement == near(dense["complement"])
    assert found.second_moment == near(dense["Var"])
    assert found.bias == pytest.approx(dense["B"], abs=1e-7)  # the dense sum takes probabilities to sum to 1 exactly
    bound = bounds.Unified(correction, LAM)
    kl1, kl2 = KL + math.log(4 * math.sqrt(n) / DELTA), KL + math.log(4 / DELTA)
    without = math.sqrt(kl1 / (2 * n)) + kl2 / (n * LAM) + LAM / 2 * dense["Var"]
    assert bound.width(summary, KL, DELTA) == near(without + found.bias)
    assert bound.lower(summary, KL, Budget(DELTA)).end == near(dense["value"] - without)  # the bias has one sign
    upper = bound.upper(summary, KL, Budget(DELTA))
    assert upper.end == near(dense["value"] + without + found.bias)
    assert set(upper.costs) == {"contexts", "divergence", "confidence", "bias", "variance"}


def test_mass_that_is_never_logged_is_bias(new_world, learned):
    world = new_world(never=True)
    log = world.log(200, np.random.default_rng(0))
    dense = Dense(world, learned, log)
    found = summarise(learned, log, [NoCorrection()]).of(NoCorrection())
    assert found.bias == pytest.approx(dense.pi[:, -1].mean(), abs=1e-7)
    assert found.bias > 0.01


def test_alpha_one_is_plain_ips(case):
    one, plain = ExponentialAlpha(1.0), NoCorrection()
    summary = summarise(case.policy, case.log, [one, plain])
    for end in ("lower", "upper"):
        ends = [getattr(bounds.Unified(c, LAM), end)(summary, KL, Budget(DELTA)).end for c in (one, plain)]
        assert ends[0] == near(ends[1])
    clipped = bounds.Unified(ClipPropensities(0.0), LAM)
    again = summarise(case.policy, case.log, clipped.statistics)
    assert clipped.width(again, KL, DELTA) == near(bounds.Unified(plain, LAM).width(summary, KL, DELTA))


def test_bias_falls_and_variance_rises_in_alpha(case):
    alphas = [ExponentialAlpha(a) for a in np.linspace(0, 1, 11)]
    summary = summarise(case.policy, case.log, alphas)
    found = [summary.of(a) for a in alphas]
    assert np.all(np.diff([one.bias for one in found]) < 0)
    assert np.all(np.diff([one.second_moment for one in found]) > 0)
    assert np.all(np.diff([one.value for one in found]) > 0)


def test_any_alpha_as_printed(case):
    bound = bounds.AnyAlpha(0.4, LAM)
    summary, n = summarise(case.policy, case.log, bound.statistics), len(case.log)
    own, doubled = case.terms(lambda p: p**0.4), case.terms(lambda p: p**0.8)
    kl1, kl2 = (KL + math.log(8 * x / (DELTA * 0.4)) for x in (math.sqrt(n), 1))
    bias = summary.of(bound.statistics[0]).bias
    taken = math.sqrt(kl1 / (2 * n)) + bias + kl2 / (n * LAM) + LAM / 2 * doubled["Var"]
    assert bound.lower(summary, KL, Budget(DELTA)).end >= own["value"] - taken  # no bias below, contexts paid once
    assert bounds.AnyAlpha(0.9, LAM).statistics[1] == ExponentialAlpha(1.0)


def test_the_dyadic_ends_are_inside_the_printed_ones(case):
    bound = bounds.AnyLambda(ExponentialAlpha(0.8))
    summary = summarise(case.policy, case.log, bound.statistics)
    n, averages = summary.rows, summary.of(bound.correction)
    value = averages.value

    def printed(lam):
        first = math.sqrt((KL + math.log(8 * math.sqrt(n) / (DELTA * lam))) / (2 * n))
        second = 2 * (KL + math.log(8 / (DELTA * lam))) / (n * lam)
        return first + averages.bias + second + lam / 2 * averages.second_moment

    best = min(map(printed, np.geomspace(1e-3, 0.999, 200)))
    assert bound.upper(summary, KL, Budget(DELTA)).end <= value + best
    assert bound.lower(summary, KL, Budget(DELTA)).end >= value - best
    # and each is the bound at some 2^-j with its share of delta
    ends = []
    for j in range(1, 30):
        lam = 2.0**-j
        first = math.sqrt((KL + math.log(4 * math.sqrt(n) / DELTA)) / (2 * n))
        ends.append(value - first - (KL + math.log(4 / (DELTA * lam))) / (n * lam) - lam / 2 * averages.second_moment)
    assert bound.lower(summary, KL, Budget(DELTA)).end == near(max(ends))


def test_the_baselines(case):
    tau, n = 0.15, len(case.log)
    dense = case.terms(lambda p: np.maximum(p, tau))
    corrections = [ClipPropensities(tau)]
    summary = summarise(case.policy, case.log, corrections)
    each = DELTA / 2
    c = (KL + math.log(n / each)) / (n - 1)
    for estimate, end in ((dense["value"], "lower"), (dense["complement"], "upper")):
        low = estimate - math.sqrt(2 * (1 / tau - estimate) * c / tau) - 2 * c / tau
        side = getattr(bounds.London(ClipPropensities(tau)), end)(summary, KL, Budget(DELTA))
        assert side.end == near(low if end == "lower" else 1 - low)
        spent = (KL + math.log(2 * math.sqrt(n) / each)) / n
        scan = np.geomspace(1e-4, 20, 200_001)
        best = ((np.exp(scan * tau * estimate - spent) - 1) / (tau * np.expm1(scan))).max()
        side = getattr(bounds.Sakhi1(ClipPropensities(tau)), end)(summary, KL, Budget(DELTA))
        assert side.end == pytest.approx(best if end == "lower" else 1 - best, abs=1e-8)
    lam = 12.0
    u = lam / (tau * n)
    first = math.sqrt((KL + math.log(4 * math.sqrt(n) / DELTA)) / (2 * n))
    one_sided = (KL + math.log(2 / DELTA)) / lam
    taken = first + one_sided + lam / n * (math.exp(u) - 1 - u) / u**2 * dense["V"]
    assert bounds.Sakhi2(ClipPropensities(tau), lam).lower(summary, KL, Budget(DELTA, 1)).end == near(
        dense["value"] - taken
    )  # as printed
    added = first + (KL + math.log(4 / DELTA)) / lam + lam / (2 * n) * dense["V"] + summary.of(corrections[0]).bias
    assert bounds.Sakhi2(ClipPropensities(tau), lam).upper(summary, KL, Budget(DELTA)).end == near(
        dense["value"] + added
    )


def test_the_bounds_from_products(case):
    l, gamma, n = 0.07, 0.03, len(case.log)
    ix = ImplicitExploration(gamma)
    summary = summarise(case.policy, case.log, [ix, LogSmoothing(l), GainTerms(l)], all_actions=False)
    played, p, r = case.pi[case.row, case.a], case.pi0[case.row, case.a], case.r
    spent = (KL + math.log(2 / DELTA)) / n
    plain = (played * np.log(1 + l * r / p)).mean() / l
    other = (played * np.log(1 + l * (1 - r) / p)).mean() / l
    bound = bounds.LogSmoothingBound(l)
    assert bound.lower(summary, KL, Budget(DELTA)).end == near((math.exp(l * plain - spent) - 1) / l)
    assert bound.upper(summary, KL, Budget(DELTA)).end == near(1 - (math.exp(l * other - spent) - 1) / l)
    gain = (played * np.log(1 + l * (1 / p - 1) * r) + (1 - played) * np.log(1 - l * r)).mean() / l
    assert bounds.Gain(l).lower(summary, KL, Budget(DELTA)).end == near((math.exp(l * gain - spent) - 1) / l)
    dense = case.terms(lambda p: p + gamma)
    assert bounds.ImplicitExplorationBound(gamma).lower(summary, KL, Budget(DELTA)).end == near(
        dense["value"] - (KL + math.log(2 / DELTA)) / (2 * gamma * n)
    )


def test_a_fixed_policy_has_squares_of_weights(case):
    """The general form for one policy: squares of w, biases by sign, and the evaluation bounds."""
    policy = SoftmaxPolicy(case.world.start * 0.5)
    dense = Dense(case.world, policy, case.log)
    s, tau, l, n = 0.3, 0.15, 0.07, len(case.log)
    corrections = [Harmonic(s), ClipPropensities(tau)]
    summary = summarise(policy, case.log, [*corrections, LogSmoothing(l), GainTerms(l)], chunk=101)
    some = dense.pi0 > 0
    w = np.where(some, dense.pi / ((1 - s) * np.where(some, dense.pi0, 1) + s * dense.pi), 0.0)
    gap = dense.pi - dense.pi0 * w
    mine = w[dense.row, dense.a]
    found = summary.of(corrections[0])
    assert found.second_moment == near(((dense.pi0 * w**2).sum(axis=1) + (mine * dense.r) ** 2).mean())
    assert found.bias == near(np.maximum(gap, 0).sum(axis=1).mean())
    assert found.overshoot == near(np.maximum(-gap, 0).sum(axis=1).mean()) and found.overshoot > 0
    width = bounds.Unified(corrections[0], LAM).width(summary, 0.0, DELTA)
    B = np.abs(gap).sum(axis=1).mean()
    assert width == near(
        math.sqrt(math.log(4 * math.sqrt(n) / DELTA) / (2 * n))
        + B
        + math.log(4 / DELTA) / (n * LAM)
        + LAM / 2 * found.second_moment
    )
    w = dense.pi[dense.row, dense.a] / dense.pi0[dense.row, dense.a]
    z = dense.pi[dense.row, dense.a] / np.maximum(dense.pi0[dense.row, dense.a], tau) * dense.r
    log = math.log(4 / DELTA)
    assert bounds.EmpiricalBernstein(ClipPropensities(tau)).lower(summary, 0.0, Budget(DELTA)).end == near(
        z.mean() - math.sqrt(2 * z.var(ddof=1) * log / n) - 7 * log / (3 * tau * (n - 1))
    )
    smoothed = np.log(1 + l * w * dense.r).mean() / l
    assert bounds.LogSmoothingBound(l).lower(summary, 0.0, Budget(DELTA)).end == near(
        (math.exp(l * smoothed - math.log(2 / DELTA) / n) - 1) / l
    )
    assert summary.of(GainTerms(l)).value == near(np.log(1 + l * (w - 1) * dense.r).mean() / l)
    with pytest.raises(InvalidInput, match="fixed beforehand"):
        bounds.EmpiricalBernstein(ClipPropensities(tau)).lower(summary, 1.0, Budget(DELTA))


def test_the_general_bound_averages_over_drawn_parameters(case):
    policy = MixedLogitPolicy(case.world.start, 0.5)
    corrections = [Harmonic(0.2)]
    collector = DrawnCollector(policy, corrections, 6, seed=1)
    for rows in log_rows(policy, case.log.chunks(111), 1.0):
        collector.add(*rows)
    summary = collector.summary()
    each = [summarise(one, case.log, corrections) for one in collector._drawn()]
    assert len(each) == 6
    assert summary.of(corrections[0]).value == near(np.mean([one.of(corrections[0]).value for one in each]))
    below, above = summary.with_margins(0.01)
    bound = bounds.Unified(corrections[0], LAM)
    assert bound.lower(below, KL, Budget(DELTA)).end < bound.lower(summary, KL, Budget(DELTA)).end
    assert bound.upper(above, KL, Budget(DELTA)).end > bound.upper(summary, KL, Budget(DELTA)).end


ALL = [
    bounds.Unified(ExponentialAlpha(0.8), LAM), bounds.Unified(ClipPropensities(0.15), LAM),
    bounds.Unified(ImplicitExploration(0.1), LAM), bounds.AnyLambda(ExponentialAlpha(0.8)), bounds.AnyAlpha(0.8, LAM),
    bounds.London(ClipPropensities(0.15)), bounds.Sakhi1(ClipPropensities(0.15)), bounds.Sakhi2(ClipPropensities(0.15), 12.0),
    bounds.LogSmoothingBound(0.07),
    bounds.ImplicitExplorationBound(0.1), bounds.Gain(0.07),
]  # fmt: skip


@pytest.mark.parametrize("bound", ALL, ids=lambda one: one.label)
def test_larger_divergence_loosens_more_rows_tighten(case, bound):
    summary = summarise(case.policy, case.log, bound.statistics)
    budget = Budget(DELTA)
    lower = [bound.lower(summary, kl, budget).end for kl in (0.0, 1.0, 5.0, 20.0)]
    upper = [bound.upper(summary, kl, budget).end for kl in (0.0, 1.0, 5.0, 20.0)]
    assert np.all(np.diff(lower) < 0)
    assert upper[0] == math.inf or np.all(np.diff(upper) > 0)
    sizes = (300, 1000, 10_000, 10**6)
    lower = [bound.resized(300, n).lower(summary.at(n), KL, budget).end for n in sizes]
    upper = [bound.resized(300, n).upper(summary.at(n), KL, budget).end for n in sizes]
    assert np.all(np.diff(lower) > 0)
    assert upper[0] == math.inf or np.all(np.diff(upper) < 0)
    # costs lie between start and end, and delta is one of them
    for side, sign in ((bound.lower(summary, KL, budget), -1), (bound.upper(summary, KL, budget), 1)):
        if math.isfinite(side.end):
            assert side.end == near(side.start + sign * sum(side.costs.values()))
    assert bound.lower(summary, KL, Budget(DELTA, 2, 7)).end < bound.lower(summary, KL, budget).end
    assert bound.lower(summary, KL, Budget(DELTA, 1)).end > bound.lower(summary, KL, budget).end
    assert bound.lower(summary, math.inf, budget).end <= max(0.0, *(lower[:1])) and bound.label


def test_what_is_tuned_on_the_data_is_no_certificate(case):
    """With lambda left open a bound is an objective, at the best lambda for these rows; there are no ends of it."""
    alpha = ExponentialAlpha(0.75)
    summary, bound = summarise(case.policy, case.log, [alpha]), bounds.Unified(alpha)
    value = summary.of(alpha).value
    widths = [bounds.Unified(alpha, lam).width(summary, KL, DELTA) for lam in np.geomspace(1e-3, 10, 4001)]
    assert value - bound.objective(summary, KL, DELTA) == pytest.approx(min(widths), rel=1e-5)
    assert value - bound.objective(summary, KL, DELTA) <= min(widths) + 1e-12
    spread = math.sqrt(2 * (KL + math.log(4 / DELTA)) * summary.of(alpha).second_moment / summary.rows)
    first = math.sqrt((KL + math.log(4 * math.sqrt(summary.rows) / DELTA)) / (2 * summary.rows))
    assert bound.width(summary, KL, DELTA) == near(first + summary.of(alpha).bias + spread)
    assert bound.is_open and not bounds.Unified(alpha, 0.1).is_open
    for end in (bound.lower, bound.upper):
        with pytest.raises(InvalidInput, match="no certificate"):
            end(summary, KL, Budget(DELTA))
    with pytest.raises(InvalidInput, match="fixed beforehand"):
        certify(case.policy, case.log, prior=PolicyPrior(case.world.start), bound=bound)


def test_oracle_inequality_and_sample_size(case):
    bound = bounds.Unified(ExponentialAlpha(0.9), LAM)
    summary = summarise(case.policy, case.log, bound.statistics)
    assert theory.oracle_gap(bound, summary, KL, DELTA) == near(
        2 * bound.width(summary, KL, DELTA) - summary.of(bound.correction).bias
    )
    n = theory.uniform_logging_rows(0.5, 10, 0.97, 2.0, 0.05)
    assert (
        theory.uniform_logging_gap(n, 10, 0.97, 2.0, 0.05)
        <= 0.5
        < theory.uniform_logging_gap(n - 1, 10, 0.97, 2.0, 0.05)
    )
    with pytest.raises(InvalidInput, match="gap"):
        theory.uniform_logging_rows(0.1, 10, 0.9, 2.0, 0.05)


def test_refusals_of_parameters(case):
    for make in (
        lambda: bounds.Unified(ExponentialAlpha(1.2), LAM), lambda: bounds.Unified(ClipPropensities(-0.1), LAM),
        lambda: bounds.Unified(NoCorrection(), 0.0), lambda: bounds.London(ClipPropensities(0.0)),
        lambda: bounds.Sakhi1(ClipPropensities(1.5)),
        lambda: bounds.Sakhi2(ClipPropensities(0.1), -1.0), lambda: bounds.AnyAlpha(0.0, LAM),
        lambda: bounds.LogSmoothingBound(0.0),
        lambda: bounds.Gain(1.0), lambda: bounds.ImplicitExplorationBound(-1.0), lambda: Budget(0.0), lambda: Budget(1.0),
    ):  # fmt: skip
        with pytest.raises(InvalidInput):
            make()
    with pytest.raises(InvalidInput, match="not linear"):
        summarise(case.policy, case.log, [Harmonic(0.3)])
    with pytest.raises(InvalidInput, match="smoothing has its own"):
        bounds.Unified(LinearLogSmoothing(0.1), LAM)
    short = summarise(case.policy, case.log, [NoCorrection()], all_actions=False)
    with pytest.raises(InvalidInput, match="all actions"):
        bounds.Unified(NoCorrection(), LAM).lower(short, KL, Budget(DELTA))
    with pytest.raises(InvalidInput, match="kl"):
        bounds.London(ClipPropensities(0.1)).lower(
            summarise(case.policy, case.log, [ClipPropensities(0.1)]), -1.0, Budget(DELTA)
        )
    assert PolicyPrior(case.world.start).divergence(case.policy) > 0
