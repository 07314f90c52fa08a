"""Self-normalised doubly robust estimation: the formula, the delta method, and what happens over many logs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from manyarms.estimators import DR, SNDR, named
from manyarms.evaluation import difference, evaluate, row_terms


def open_bandit_pipeline(pi, pi0, rewards, predictions, actions):
    """obp.ope.SelfNormalizedDoublyRobust, written out for one position: pi (n, K) and predictions (n, K)."""
    rounds = np.arange(len(rewards))
    iw = pi[rounds, actions] / pi0
    estimated = np.average(predictions, weights=pi, axis=1)  # base: the model averaged under the policy
    shifted = iw * (rewards - predictions[rounds, actions]) / iw.mean()
    return float((shifted + estimated).mean())


def tables(problem, i):
    return problem.pi[i], problem.model.block(problem.contexts, np.arange(7))[i]


def test_it_is_open_bandit_pipelines(problem, rng):
    i, a, r = problem.draw(300, rng)
    log = problem.log_of(i, a, r)
    pi, hat = tables(problem, i)
    wanted = open_bandit_pipeline(pi, log.propensities, r, hat, a)
    for chunk in (300, 41):
        found = evaluate(problem.policy, log, ["sndr"], model=problem.model, chunk=chunk)["sndr"]
        assert found.value == pytest.approx(wanted, rel=1e-12)
    assert found.interval_is_for.startswith("the policy's value, up to a bias") and not found.unbiased


def test_standard_error_is_that_of_the_linearised_ratio(problem, rng):
    i, a, r = problem.draw(500, rng)
    log = problem.log_of(i, a, r)
    pi, hat = tables(problem, i)
    w, left = pi[np.arange(500), a] / log.propensities, r - hat[np.arange(500), a]
    ratio = (w * left).sum() / w.sum()
    influence = w * (left - ratio) / w.mean() + (pi * hat).sum(axis=1)
    found = evaluate(problem.policy, log, [SNDR(problem.model)])["sndr"]
    assert found.standard_error == pytest.approx(influence.std(ddof=1) / np.sqrt(500), rel=1e-9)
    gain = difference(problem.policy, None, log, SNDR(problem.model))
    assert gain.standard_error == pytest.approx((influence - r).std(ddof=1) / np.sqrt(500), rel=1e-7)
    terms = row_terms(problem.policy, log, SNDR(problem.model))
    assert found.value == pytest.approx(terms.values.sum() / terms.weights.sum() + terms.baseline.mean())


def test_consistent_covering_and_steadier_than_dr(new_problem):
    """A large change of policy and a wrong model: the bias falls like 1/n, intervals cover, and the variance is below DR's."""
    problem, rng, runs = new_problem(1, gap=1.2), np.random.default_rng(5), 300
    values, held = [], 0
    for _ in range(runs):
        log = problem.log(400, rng)
        both = evaluate(problem.policy, log, [SNDR(problem.model), DR(problem.model)], level=0.9, replicates=0)
        values.append([one.value for one in both.estimates])
        held += problem.truth in both["sndr"].interval
    ours, theirs = np.array(values).T
    error = ours.std(ddof=1) / np.sqrt(runs)
    assert abs(ours.mean() - problem.truth) < 5 * error + 2 / 400
    assert stats.binomtest(held, runs, 0.85, alternative="less").pvalue > 1e-6
    assert ours.var() < 1.2 * theirs.var()


def test_a_wild_weight_cannot_carry_it_out_of_range(problem, rng):
    """One propensity that is far too small: DR leaves [-1, 2], the self-normalised one cannot."""
    i, a, _ = problem.draw(200, rng)
    log = problem.log_of(i, a, np.ones(200))
    propensities = log.propensities.copy()
    propensities[0] = 1e-6
    wild = evaluate(problem.policy, replace(log, propensities=propensities), ["dr", "sndr"], model=problem.model)
    assert wild["dr"].value > 2 and -1 <= wild["sndr"].value <= 2


def test_by_name(problem):
    made = named("sndr:0.1", {"model": problem.model})
    assert made.label == "sndr, cips (tau=0.1)" and not made.consistent and made.self_normalised
    assert SNDR(problem.model).label == "sndr" and SNDR(problem.model).consistent
