"""Known ranges of terms: what empirical Bernstein rests on must hold for every row, for every estimator that states one."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from manyarms.errors import InvalidInput
from manyarms.evaluation import DM, DR, IPS, MIPS, PC, SWITCH, OffCEM, evaluate
from manyarms.evaluation.terms import Settings
from manyarms.rewards import Clipped, LinearModel

LABELS = np.array([0, 0, 1, 1, 2, 2, 2])


def estimators(model, embeddings):
    return [
        IPS("ips"), IPS("cips", 0.1), IPS("ips-min", 3.0), IPS("es", 0.5), IPS("ix", 0.1), IPS("harmonic", 0.2),
        IPS("shrinkage", 2.0), IPS("ls", 0.5), DM(model), DR(model), DR(model, 0.1), SWITCH(model, 2.0),
        SWITCH(model, 2.0, doubly_robust=True), MIPS(LABELS), OffCEM(LABELS, model), PC(embeddings, k=3),
    ]  # fmt: skip


@pytest.mark.parametrize("rewards", [(0.0, 1.0), (-2.0, 3.0)])
@pytest.mark.parametrize("bias", [False, True])
def test_every_term_lies_in_the_span_that_is_stated(new_problem, rewards, bias):
    low, high = rewards
    for seed in range(5):
        problem = new_problem(seed, gap=2.0)
        rng = np.random.default_rng(seed)
        log = problem.log(300, rng, logging=problem.logging)
        log = log.with_notes(rewards=low + (high - low) * rng.beta(0.3, 0.3, size=300))
        model = Clipped(LinearModel(3 * rng.standard_normal((7, log.dim))), low, high)
        settings = Settings(rewards, float(problem.pi0.min()), bias)
        for estimator in estimators(model, problem.embeddings):
            terms = estimator.terms(problem.policy, log, settings)
            assert terms.span is not None, estimator.label
            slack = 1e-9 * (1 + max(map(abs, terms.span)))
            assert terms.span[0] - slack <= terms.values.min(), estimator.label
            assert terms.values.max() <= terms.span[1] + slack, estimator.label
            if terms.low is not None and terms.high is not None and terms.span_with_bias is not None:
                assert terms.span_with_bias[0] - slack <= terms.low.min(), estimator.label
                assert terms.high.max() <= terms.span_with_bias[1] + slack, estimator.label


def test_nothing_is_known_of_the_terms_without_a_floor_or_bounds(problem, rng):
    log = problem.log(50, rng, logging=problem.logging)
    free = LinearModel(rng.standard_normal((7, log.dim)))
    for estimator in (DM(free), DR(free), OffCEM(LABELS, free)):
        assert estimator.terms(problem.policy, log, Settings((0.0, 1.0), 0.1)).span is None
    for estimator in (IPS("ips"), MIPS(LABELS), PC(problem.embeddings, k=3)):
        assert estimator.terms(problem.policy, log, Settings((0.0, 1.0), 0.0)).span is None
        assert estimator.terms(problem.policy, log, Settings(None, 0.1)).span is None


def test_a_clipped_model_is_the_model_inside_its_bounds(rng):
    model = LinearModel(rng.standard_normal((7, 3)))
    clipped = Clipped(model, -0.5, 0.5)
    X, ids = rng.standard_normal((40, 3)), np.arange(7)
    np.testing.assert_array_equal(clipped.block(X, ids), np.clip(model.block(X, ids), -0.5, 0.5))
    actions = rng.integers(7, size=40)
    np.testing.assert_array_equal(clipped.predict(X, actions), np.clip(model.predict(X, actions), -0.5, 0.5))
    np.testing.assert_array_equal(clipped.decide(X), model.decide(X))
    assert (clipped.action_count, clipped.dim, clipped.bounds) == (7, 3, (-0.5, 0.5))
    with pytest.raises(InvalidInput, match="lower first"):
        Clipped(model, 1.0, 0.0)


def test_bernstein_intervals_of_dr_cover_with_a_wrong_model_and_few_rows(new_problem):
    """30 rows, a large change of policy, a model of pure noise: DR is unbiased all the same, and its bound holds."""
    problem = new_problem(2, gap=2.5)
    rng = np.random.default_rng(0)
    model = Clipped(LinearModel(rng.standard_normal((7, problem.contexts.shape[1]))))
    held, runs = 0, 200
    for run in range(runs):
        log = problem.log(30, rng)
        found = evaluate(
            problem.policy, log, ["dr"], model=model, level=0.9, interval="bernstein", replicates=0, seed=run,
            propensity_floor=float(problem.pi0.min()),
        )["dr"]  # fmt: skip
        assert found.kind == "bernstein" and found.interval_is_for == "the policy's value"
        held += problem.truth in found.interval
    assert stats.binomtest(held, runs, 0.9, alternative="less").pvalue > 1e-4


def test_estimators_with_a_model_go_by_names(problem, rng):
    log = problem.log(200, rng, logging=problem.logging)
    found = evaluate(problem.policy, log, ["dm", "dr", "dr:0.1", "switch:2", "switch-dr"], model=problem.model)
    same = [
        DM(problem.model), DR(problem.model), DR(problem.model, 0.1), SWITCH(problem.model, 2.0),
        SWITCH(problem.model, doubly_robust=True),
    ]  # fmt: skip
    direct = evaluate(problem.policy, log, same)
    assert [e.value for e in found.estimates] == [e.value for e in direct.estimates]
    assert [e.label for e in found.estimates] == [e.label for e in direct.estimates]
    with pytest.raises(InvalidInput, match="'dr' without a reward model"):
        evaluate(problem.policy, log, ["dr"])
    with pytest.raises(InvalidInput, match="dm has no parameter"):
        evaluate(problem.policy, log, ["dm:3"], model=problem.model)
    with pytest.raises(InvalidInput, match=r"cips:0\.01"):
        evaluate(problem.policy, log, ["cips:much"])
