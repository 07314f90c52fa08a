"""Known ranges of terms: what empirical Bernstein rests on must hold for every row, for every estimator that states one."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from manyarms.errors import InvalidInput
from manyarms.estimators import DM, DR, IPS, MIPS, PC, SWITCH, OffCEM, SwitchDR, named
from manyarms.evaluation import evaluate, row_terms
from manyarms.evaluation.passes import plan, survey
from manyarms.rewards import Clipped, LinearModel

LABELS = np.array([0, 0, 1, 1, 2, 2, 2])
CORRECTED = (
    "ips", "cips:0.1", "ips-min:3", "es:0.5", "es-beta:0.5", "ix:0.1", "harmonic:0.2", "shrinkage:2", "ls:0.5", "ls-linear:0.5",
)  # fmt: skip


def estimators(model, embeddings):
    return [
        *(named(name) for name in CORRECTED), DM(model), DR(model), DR(model, 0.1), SWITCH(model, 2.0), SwitchDR(model, 2.0),
        MIPS(LABELS), OffCEM(LABELS, model), PC(embeddings, k=3),
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
        told = {"reward_range": rewards, "propensity_floor": float(problem.pi0.min()), "bias": bias}
        for estimator in estimators(model, problem.embeddings):
            terms = row_terms(problem.policy, log, estimator, **told)
            todo = plan(survey(log), [estimator], **told)
            span, wide = todo.span(0), todo.span(0, with_bias=True)
            assert span is not None, estimator.label
            slack = 1e-9 * (1 + max(map(abs, span)))
            assert span[0] - slack <= terms.values.min(), estimator.label
            assert terms.values.max() <= span[1] + slack, estimator.label
            assert (terms.high is None) == (not bias or not estimator.bias_sums())
            if terms.low is not None and terms.high is not None and wide is not None:
                assert wide[0] - slack <= terms.low.min(), estimator.label
                assert terms.high.max() <= wide[1] + slack, estimator.label


def test_nothing_is_known_of_the_terms_without_a_floor_or_bounds(problem, rng):
    log = problem.log(50, rng, logging=problem.logging)
    free = LinearModel(rng.standard_normal((7, log.dim)))
    for estimator in (DM(free), DR(free), OffCEM(LABELS, free)):
        assert estimator.span((0.0, 1.0), 0.1) is None
    for estimator in (IPS(), MIPS(LABELS), PC(problem.embeddings, k=3)):
        assert estimator.span((0.0, 1.0), 0.0) is None
        assert estimator.span(None, 0.1) is None


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
    assert stats.binomtest(held, runs, 0.9, alternative="less").pvalue > 1e-6


def test_estimators_with_a_model_go_by_names(problem, rng):
    log = problem.log(200, rng, logging=problem.logging)
    found = evaluate(problem.policy, log, ["dm", "dr", "dr:0.1", "switch:2", "switch-dr"], model=problem.model)
    same = [
        DM(problem.model), DR(problem.model), DR(problem.model, 0.1), SWITCH(problem.model, 2.0),
        SwitchDR(problem.model),
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
