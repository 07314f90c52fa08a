"""Means of estimators: what theory says they are, in exact sums and in simulation with standard errors."""

from __future__ import annotations

import numpy as np
import pytest

from manyarms.estimators import DM, DR, IPS, MIPS, PC, SWITCH, OffCEM, SwitchDR
from manyarms.estimators.logging_policy import lost as lost_by
from manyarms.evaluation import evaluate, row_terms
from manyarms.evaluation.answers import Assumptions, PolicyOnLog
from manyarms.weights import (
    ClipPropensities,
    ClipWeights,
    ExponentialAlpha,
    ExponentialBeta,
    Harmonic,
    ImplicitExploration,
    LinearLogSmoothing,
    LogSmoothing,
    NoCorrection,
    Shrinkage,
)

CORRECTIONS = [
    NoCorrection(),
    ClipPropensities(0.15),
    ClipWeights(1.2),
    ExponentialAlpha(0.7),
    ExponentialBeta(0.5),
    ImplicitExploration(0.1),
    Harmonic(0.4),
    Shrinkage(2.0),
    LogSmoothing(0.7),
    LinearLogSmoothing(0.7),
]
ROWS = 200_000
LABELS = np.array([0, 1, 1, 2, 0, 2, 2])


def theory(correction, pi, pi0, means):
    """E[w_hat r] = sum over a of pi0 w_hat r, for Bernoulli rewards, from the printed formulas."""
    w = np.divide(pi, pi0, out=np.zeros(pi.shape), where=pi0 > 0)
    played = pi0 > 0
    lost = {  # the share of pi that the mean leaves out, as printed in the thesis or derived from the weight
        "ips": 0 * w,
        "cips": np.maximum(1 - pi0 / 0.15, 0),
        "ips-min": np.maximum(1 - 1.2 / np.maximum(w, 1e-300), 0),
        "es": 1 - pi0**0.3,
        "es-beta": 1 - np.where(played, np.maximum(w, 1e-300) ** -0.5, 1),
        "ix": 0.1 / (pi0 + 0.1),
        "harmonic": 1 - 1 / (0.6 + 0.4 * w),
        "shrinkage": w**2 / (2 + w**2),
        "ls": 1 - np.log1p(0.7 * w) / np.maximum(0.7 * w, 1e-300),
        "ls-linear": 1 - pi0 * np.log1p(0.7 / np.where(played, pi0, 1)) / 0.7,
    }[correction.name]
    return (pi * means * (1 - lost) * played).sum(axis=1).mean()


@pytest.fixture(scope="module")
def world(new_problem):
    """One large log with every action in support, and one whose last action is never played."""
    out = []
    for never in (False, True):
        problem = new_problem(11, never=never, gap=0.7)
        rng = np.random.default_rng(5)
        i, a, r = problem.draw(ROWS, rng)
        out.append((problem, i, a, r))
    return out


@pytest.mark.parametrize("correction", CORRECTIONS, ids=[c.name for c in CORRECTIONS])
@pytest.mark.parametrize("never", [False, True], ids=["full support", "an action left out"])
def test_means_are_as_theory_says(world, correction, never):
    problem, i, a, r = world[never]
    terms = correction.terms(problem.pi[i, a], problem.pi0[i, a], r)
    error = terms.std() / np.sqrt(ROWS)
    assert abs(terms.mean() - theory(correction, problem.pi, problem.pi0, problem.means)) < 4 * error
    if correction.name == "ips" and not never:
        assert abs(terms.mean() - problem.truth) < 4 * error
    elif correction.never_above:  # strongly corrected: far below the value, many standard errors
        assert terms.mean() + 4 * error < problem.truth


@pytest.mark.parametrize("correction", CORRECTIONS, ids=[c.name for c in CORRECTIONS])
@pytest.mark.parametrize("never", [False, True], ids=["full support", "an action left out"])
def test_bias_terms_bracket_the_value_exactly(new_problem, rng, correction, never):
    """With rewards in [0, 1] the value lies between E[low] and E[high], and both ends are met by some rewards."""
    problem = new_problem(11, never=never, gap=0.7)
    if never:
        _, log = problem.with_support(40, rng)
    else:
        log = problem.log(40, rng, logging=problem.logging)
    told = Assumptions((0.0, 1.0), 0.0, bias=True)
    on = PolicyOnLog(problem.policy, log, [IPS(one) for one in CORRECTIONS], told)
    positive, negative = lost_by(correction, on.sums({}, "bias"))
    pi, pi0 = problem.pi, problem.pi0
    row = [np.flatnonzero((problem.contexts == x).all(axis=1))[0] for x in log.contexts]
    gap = pi - correction.effective_policy(pi, pi0)
    np.testing.assert_allclose(positive, np.maximum(gap, 0).sum(axis=1)[row], atol=1e-10)
    np.testing.assert_allclose(negative, np.minimum(gap, 0).sum(axis=1)[row], atol=1e-10)
    # the value less the mean is at most P, and P is met by rewards of 1 where something is lost and 0 elsewhere
    worst = (gap > 0).astype(float)
    lost = (pi * worst).sum(axis=1) - (correction.effective_policy(pi, pi0) * worst).sum(axis=1)
    np.testing.assert_allclose(lost[row], positive, atol=1e-10)
    if correction.name == "es":  # thesis, Appendix E.1.1
        np.testing.assert_allclose(positive, (pi * (1 - pi0**0.3)).sum(axis=1)[row], atol=1e-10)
    if correction.name == "cips":
        np.testing.assert_allclose(positive, (pi * np.maximum(1 - pi0 / 0.15, 0)).sum(axis=1)[row], atol=1e-10)


def test_intervals_with_bias_are_for_the_value(problem, rng):
    log = problem.log(500, rng, logging=problem.logging)
    surely = 1 - 1e-6
    found = evaluate(problem.policy, log, ["cips:0.3", "es:0.5", "snips", "ips"], level=surely)
    for name in ("cips", "es", "ips"):
        assert found[name].interval_is_for == "the policy's value"
        assert problem.truth in found[name].interval
    without = evaluate(problem.policy, log, ["cips:0.3", "ips"], bias=False, level=surely)
    assert without["cips"].interval_is_for.startswith("the estimator's mean")
    assert without["cips"].interval.high < found["cips"].interval.high
    assert without["cips"].interval.low == pytest.approx(found["cips"].interval.low)
    assert without["ips"].interval_is_for == "the policy's value"


def test_doubly_robust_is_unbiased_and_switch_is_not(world):
    problem, i, a, r = world[0]
    log = problem.log_of(i, a, r)
    found = evaluate(
        problem.policy,
        log,
        [DR(problem.model), DR(problem.model, 0.15), SwitchDR(problem.model, 1.0), DM(problem.model)],
        replicates=0,
    )
    hat = problem.model.block(problem.contexts, np.arange(7))
    wrong = problem.means - hat
    w = problem.pi / problem.pi0
    dm = (problem.pi * hat).sum(axis=1).mean()
    means = [
        problem.truth,
        dm + (problem.pi * np.minimum(problem.pi0 / 0.15, 1) * wrong).sum(axis=1).mean(),
        dm + (problem.pi * (w <= 1) * wrong).sum(axis=1).mean(),
        dm,
    ]
    for estimate, mean in zip(found.estimates, means, strict=True):
        assert abs(estimate.value - mean) < 4 * estimate.standard_error, estimate.label
    assert [e.unbiased for e in found.estimates] == [True, False, False, False]
    ips = evaluate(problem.policy, log, ["ips"], replicates=0)["ips"]
    assert abs(ips.value - problem.truth) < 4 * ips.standard_error


def test_switch_with_bias_terms_brackets_the_value(new_problem, rng):
    problem = new_problem(4, gap=1.5)
    log = problem.log(20_000, rng, logging=problem.logging)
    for kind in (SWITCH, SwitchDR):
        terms = row_terms(problem.policy, log, kind(problem.model, 1.0))
        se = terms.high.std() / np.sqrt(len(log))
        assert terms.low.mean() - 4 * se < problem.truth < terms.high.mean() + 4 * se


def test_groups_are_unbiased_where_their_assumption_holds_and_biased_as_derived(world):
    """E[w_C r] weighs each cluster's mean reward under pi0 (thesis, Section 7.1.2)."""
    problem, i, a, r = world[0]
    member = LABELS[:, None] == np.arange(3)
    mass, mass0 = problem.pi @ member, problem.pi0 @ member
    w_c = (mass / mass0)[i, LABELS[a]]
    inside = (problem.pi0 * problem.means) @ member / mass0
    mean = (mass * inside).sum(axis=1).mean()
    values = w_c * r
    assert abs(values.mean() - mean) < 4 * values.std() / np.sqrt(ROWS)
    # rewards that depend on the cluster only: unbiased
    flat = problem.means[:, [0, 1, 1, 3, 0, 3, 3]]
    exact = ((problem.pi0 * flat) @ member / mass0 * mass).sum(axis=1).mean()
    assert exact == pytest.approx((problem.pi * flat).sum(axis=1).mean(), abs=1e-12)
    # a model that gets differences within clusters right: OffCEM is unbiased, whatever it says of clusters
    shifted = problem.means + np.array([0.3, -0.2, -0.2, 0.1, 0.3, 0.1, 0.1])
    left = ((problem.pi0 * (problem.means - shifted)) @ member / mass0 * mass).sum(axis=1)
    assert ((problem.pi * shifted).sum(axis=1) + left).mean() == pytest.approx(problem.truth, abs=1e-12)


def test_policy_convolution_has_the_mean_it_should(world):
    problem, i, a, r = world[0]
    few = slice(0, 20_000)
    log = problem.log_of(i[few], a[few], r[few], logging=problem.logging)
    estimator = PC(problem.embeddings, k=2)
    lists = [near for _, near in estimator.neighbours.lists(np.arange(7))]
    ratio = np.stack([problem.pi[:, n].sum(axis=1) / problem.pi0[:, n].sum(axis=1) for n in lists], axis=1)
    mean = (problem.pi0 * ratio * problem.means).sum(axis=1).mean()
    values = row_terms(problem.policy, log, estimator).values
    assert abs(values.mean() - mean) < 4 * values.std() / np.sqrt(len(log))
    for grouped in (MIPS(LABELS), OffCEM(LABELS, problem.model), estimator):
        assert not grouped.unbiased
    assert IPS().unbiased
