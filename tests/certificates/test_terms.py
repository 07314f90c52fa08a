"""The terms of every bound against direct dense formulas, and what the terms do when parameters move."""

from __future__ import annotations

import math

import numpy as np
import pytest

from manyarms.certificates import Budget, Prior, bounds, summarise, tuned
from manyarms.certificates.draws import averaged, drawn_policies, reach_of
from manyarms.errors import InvalidInput
from manyarms.policies import SoftmaxPolicy
from manyarms.policies.randomised import MixedLogitPolicy
from manyarms.theory import pac_bayes as theory
from manyarms.weights import (
    ClipPropensities,
    ExponentialAlpha,
    Harmonic,
    ImplicitExploration,
    LinearLogSmoothing,
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
        """value, Var_n, B_n as printed (thesis, lines 2514-2520, 2718-2724), and V_n of Sakhi et al."""
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
    assert found.lost == pytest.approx(dense["B"], abs=1e-7)  # the dense sum takes probabilities to sum to 1 exactly
    bound = bounds.Unified(correction, LAM)
    kl1, kl2 = KL + math.log(4 * math.sqrt(n) / DELTA), KL + math.log(4 / DELTA)
    without = math.sqrt(kl1 / (2 * n)) + kl2 / (n * LAM) + LAM / 2 * dense["Var"]
    assert bound.width(summary, KL, DELTA) == near(without + found.lost)
    assert bound.lower(summary, KL, Budget(DELTA)).end == near(dense["value"] - without)  # the bias has one sign
    upper = bound.upper(summary, KL, Budget(DELTA))
    assert upper.end == near(dense["value"] + without + found.lost)
    assert set(upper.costs) == {"contexts", "divergence", "confidence", "bias", "variance"}
    printed = bounds.AnyLambda(correction).printed(summary, KL, DELTA, 0.3)
    first = math.sqrt((KL + math.log(8 * math.sqrt(n) / (DELTA * 0.3))) / (2 * n))
    second = 2 * (KL + math.log(8 / (DELTA * 0.3))) / (n * 0.3)
    assert printed == near(first + second + found.lost + 0.15 * dense["Var"])


def test_mass_that_is_never_logged_is_bias(new_world, learned):
    world = new_world(never=True)
    log = world.log(200, np.random.default_rng(0))
    dense = Dense(world, learned, log)
    found = summarise(learned, log, [NoCorrection()]).of(NoCorrection())
    assert found.lost == pytest.approx(dense.pi[:, -1].mean(), abs=1e-7)
    assert found.lost > 0.01


def test_alpha_one_is_plain_ips(case):
    one, plain = ExponentialAlpha(1.0), NoCorrection()
    summary = summarise(case.policy, case.log, [one, plain])
    for end in ("lower", "upper"):
        ends = [getattr(bounds.Unified(c, LAM), end)(summary, KL, Budget(DELTA)).end for c in (one, plain)]
        assert ends[0] == near(ends[1])
    clipped = bounds.Unified(ClipPropensities(0.0), LAM)
    again = summarise(case.policy, case.log, clipped.corrections)
    assert clipped.width(again, KL, DELTA) == near(bounds.Unified(plain, LAM).width(summary, KL, DELTA))


def test_bias_falls_and_variance_rises_in_alpha(case):
    alphas = [ExponentialAlpha(a) for a in np.linspace(0, 1, 11)]
    summary = summarise(case.policy, case.log, alphas)
    found = [summary.of(a) for a in alphas]
    assert np.all(np.diff([one.lost for one in found]) < 0)
    assert np.all(np.diff([one.second_moment for one in found]) > 0)
    assert np.all(np.diff([one.value for one in found]) > 0)


def test_any_alpha_as_printed(case):
    bound = bounds.AnyAlpha(0.4, LAM)
    summary, n = summarise(case.policy, case.log, bound.corrections), len(case.log)
    own, doubled = case.terms(lambda p: p**0.4), case.terms(lambda p: p**0.8)
    kl1, kl2 = (KL + math.log(8 * x / (DELTA * 0.4)) for x in (math.sqrt(n), 1))
    bias = summary.of(bound.corrections[0]).lost
    taken = math.sqrt(kl1 / (2 * n)) + bias + kl2 / (n * LAM) + LAM / 2 * doubled["Var"]
    assert bound.printed(summary, KL, DELTA) == near(taken)
    assert bound.lower(summary, KL, Budget(DELTA)).end >= own["value"] - taken  # no bias below, contexts paid once
    assert bounds.AnyAlpha(0.9, LAM).corrections[1] == ExponentialAlpha(1.0)


def test_the_dyadic_ends_are_inside_the_printed_ones(case):
    bound = bounds.AnyLambda(ExponentialAlpha(0.8))
    summary = summarise(case.policy, case.log, bound.corrections)
    value = summary.of(bound.correction).value
    best = min(bound.printed(summary, KL, DELTA, lam) for lam in np.geomspace(1e-3, 0.999, 200))
    assert bound.upper(summary, KL, Budget(DELTA)).end <= value + best
    assert bound.lower(summary, KL, Budget(DELTA)).end >= value - best
    # and each is the bound at some 2^-j with its share of delta
    ends = []
    n, averages = summary.rows, summary.of(bound.correction)
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
        side = getattr(bounds.London(tau), end)(summary, KL, Budget(DELTA))
        assert side.end == near(low if end == "lower" else 1 - low)
        spent = (KL + math.log(2 * math.sqrt(n) / each)) / n
        scan = np.geomspace(1e-4, 20, 200_001)
        best = ((np.exp(scan * tau * estimate - spent) - 1) / (tau * np.expm1(scan))).max()
        side = getattr(bounds.Sakhi1(tau), end)(summary, KL, Budget(DELTA))
        assert side.end == pytest.approx(best if end == "lower" else 1 - best, abs=1e-8)
    lam = 12.0
    u = lam / (tau * n)
    first = math.sqrt((KL + math.log(4 * math.sqrt(n) / DELTA)) / (2 * n))
    one_sided = (KL + math.log(2 / DELTA)) / lam
    taken = first + one_sided + lam / n * (math.exp(u) - 1 - u) / u**2 * dense["V"]
    assert bounds.Sakhi2(tau, lam).lower(summary, KL, Budget(DELTA, 1)).end == near(
        dense["value"] - taken
    )  # as printed
    added = first + (KL + math.log(4 / DELTA)) / lam + lam / (2 * n) * dense["V"] + summary.of(corrections[0]).lost
    assert bounds.Sakhi2(tau, lam).upper(summary, KL, Budget(DELTA)).end == near(dense["value"] + added)


def test_the_bounds_from_products(case):
    l, gamma, n = 0.07, 0.03, len(case.log)
    ix = ImplicitExploration(gamma)
    summary = summarise(case.policy, case.log, [ix], [l], whole=False)
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
    summary = summarise(policy, case.log, corrections, [l], linear=False, chunk=101)
    some = dense.pi0 > 0
    w = np.where(some, dense.pi / ((1 - s) * np.where(some, dense.pi0, 1) + s * dense.pi), 0.0)
    gap = dense.pi - dense.pi0 * w
    mine = w[dense.row, dense.a]
    found = summary.of(corrections[0])
    assert found.second_moment == near(((dense.pi0 * w**2).sum(axis=1) + (mine * dense.r) ** 2).mean())
    assert found.lost == near(np.maximum(gap, 0).sum(axis=1).mean())
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
    assert bounds.EmpiricalBernstein(tau).lower(summary, 0.0, Budget(DELTA)).end == near(
        z.mean() - math.sqrt(2 * z.var(ddof=1) * log / n) - 7 * log / (3 * tau * (n - 1))
    )
    smoothed = np.log(1 + l * w * dense.r).mean() / l
    assert bounds.LogSmoothingBound(l).lower(summary, 0.0, Budget(DELTA)).end == near(
        (math.exp(l * smoothed - math.log(2 / DELTA) / n) - 1) / l
    )
    assert summary.smoothing(l).gain == near(np.log(1 + l * (w - 1) * dense.r).mean() / l)
    with pytest.raises(InvalidInput, match="fixed beforehand"):
        bounds.EmpiricalBernstein(tau).lower(summary, 1.0, Budget(DELTA))


def test_the_general_bound_averages_over_drawn_parameters(case):
    policy = MixedLogitPolicy(case.world.start, 0.5)
    corrections = [Harmonic(0.2)]
    each = [summarise(one, case.log, corrections, linear=False) for one in drawn_policies(policy, 6, 1)]
    summary = averaged(each, reach_of(case.log, corrections))
    assert summary.of(corrections[0]).value == near(np.mean([one.of(corrections[0]).value for one in each]))
    below, above = summary.worst(0.01)
    bound = bounds.Unified(corrections[0], LAM)
    assert bound.lower(below, KL, Budget(DELTA)).end < bound.lower(summary, KL, Budget(DELTA)).end
    assert bound.upper(above, KL, Budget(DELTA)).end > bound.upper(summary, KL, Budget(DELTA)).end


ALL = [
    bounds.Unified(ExponentialAlpha(0.8), LAM), bounds.Unified(ClipPropensities(0.15), LAM),
    bounds.Unified(ImplicitExploration(0.1), LAM), bounds.AnyLambda(ExponentialAlpha(0.8)), bounds.AnyAlpha(0.8, LAM),
    bounds.London(0.15), bounds.Sakhi1(0.15), bounds.Sakhi2(0.15, 12.0), bounds.LogSmoothingBound(0.07),
    bounds.ImplicitExplorationBound(0.1), bounds.Gain(0.07),
]  # fmt: skip


@pytest.mark.parametrize("bound", ALL, ids=lambda one: one.label)
def test_larger_divergence_loosens_more_rows_tighten(case, bound):
    summary = summarise(case.policy, case.log, bound.corrections, bound.smoothings)
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
    alphas = [ExponentialAlpha(a) for a in np.linspace(0, 1, 21)]
    summary = summarise(case.policy, case.log, alphas)
    found = tuned.objective(summary, KL, DELTA, alphas[15])
    averages = summary.of(alphas[15])
    widths = [bounds.Unified(alphas[15], lam).width(summary, KL, DELTA) for lam in np.geomspace(1e-3, 10, 4001)]
    assert averages.value - found.objective == pytest.approx(min(widths), rel=1e-5)
    assert averages.value - found.objective <= min(widths) + 1e-12
    best = tuned.adaptive(summary, KL, DELTA, alphas)
    cost = [
        one.lost + math.sqrt(2 * (KL + math.log(4 / DELTA)) * one.second_moment / summary.rows)
        for one in summary.weighted.values()
    ]
    assert best.correction == alphas[int(np.argmin(cost))]
    assert not hasattr(best, "lower") and not hasattr(best, "upper")


def test_oracle_inequality_and_sample_size(case):
    bound = bounds.Unified(ExponentialAlpha(0.9), LAM)
    summary = summarise(case.policy, case.log, bound.corrections)
    assert theory.oracle_gap(bound, summary, KL, DELTA) == near(
        2 * bound.width(summary, KL, DELTA) - summary.of(bound.correction).lost
    )
    n = theory.uniform_rows(0.5, 10, 0.97, 2.0, 0.05)
    assert theory.uniform_gap(n, 10, 0.97, 2.0, 0.05) <= 0.5 < theory.uniform_gap(n - 1, 10, 0.97, 2.0, 0.05)
    with pytest.raises(InvalidInput, match="gap"):
        theory.uniform_rows(0.1, 10, 0.9, 2.0, 0.05)


def test_refusals_of_parameters(case):
    for make in (
        lambda: bounds.Unified(ExponentialAlpha(1.2), LAM), lambda: bounds.Unified(ClipPropensities(-0.1), LAM),
        lambda: bounds.Unified(NoCorrection(), 0.0), lambda: bounds.London(0.0), lambda: bounds.Sakhi1(1.5),
        lambda: bounds.Sakhi2(0.1, -1.0), lambda: bounds.AnyAlpha(0.0, LAM), lambda: bounds.LogSmoothingBound(0.0),
        lambda: bounds.Gain(1.0), lambda: bounds.ImplicitExplorationBound(-1.0), lambda: Budget(0.0), lambda: Budget(1.0),
    ):  # fmt: skip
        with pytest.raises(InvalidInput):
            make()
    with pytest.raises(InvalidInput, match="not linear"):
        summarise(case.policy, case.log, [Harmonic(0.3)])
    with pytest.raises(InvalidInput, match="smoothing has its own"):
        summarise(case.policy, case.log, [LinearLogSmoothing(0.1)])
    short = summarise(case.policy, case.log, [NoCorrection()], whole=False)
    with pytest.raises(InvalidInput, match="all actions"):
        bounds.Unified(NoCorrection(), LAM).lower(short, KL, Budget(DELTA))
    with pytest.raises(InvalidInput, match="kl"):
        bounds.London(0.1).lower(summarise(case.policy, case.log, [ClipPropensities(0.1)]), -1.0, Budget(DELTA))
    assert Prior(case.world.start).divergence(case.policy) > 0
