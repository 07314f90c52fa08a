"""Paired differences, choices with the union bound paid, and parameters by a stated rule."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from manyarms import weights
from manyarms.errors import InvalidInput
from manyarms.estimators import IPS
from manyarms.evaluation import choose, difference, evaluate, intervals, tune
from manyarms.policies import FixedPolicy, SoftmaxPolicy, UniformPolicy


def near(policy, rng, size=0.05):
    """A policy close to another."""
    return SoftmaxPolicy(policy.actions + size * rng.standard_normal(policy.actions.shape))


def test_difference_is_that_of_the_rows(problem, rng):
    log = problem.log(400, rng)
    other = near(problem.policy, rng)
    p, q = (one.probabilities_of(log.contexts, log.actions) / log.propensities for one in (problem.policy, other))
    gap = (p - q) * log.rewards
    found = difference(problem.policy, other, log, "ips")
    assert found.value == pytest.approx(gap.mean(), abs=1e-10)
    assert found.standard_error == pytest.approx(gap.std(ddof=1) / 20, abs=1e-10)
    apart = [evaluate(one, log, ["ips"])["ips"].standard_error for one in (problem.policy, other)]
    assert found.standard_error < 0.3 * np.hypot(*apart) and found.correlation > 0.9
    against_itself = difference(problem.policy, problem.policy, log)
    assert against_itself.value == pytest.approx(0, abs=1e-12)
    # equal terms in all rows of a log do not show that two policies are equal: no interval of zero width
    assert against_itself.interval.low == -np.inf and against_itself.interval.high == np.inf
    assert "all rows are equal" in against_itself.warnings[0] and not against_itself.significant
    assert not difference(problem.policy, other, log).significant or abs(found.value) > found.standard_error


def test_difference_to_the_logging_policy(problem, rng):
    log = problem.log(400, rng)
    w = problem.policy.probabilities_of(log.contexts, log.actions) / log.propensities
    gap = w * log.rewards - log.rewards
    found = difference(
        problem.policy, None, log, "ips", propensity_floor=float(problem.pi0.min()), interval="bernstein"
    )
    assert found.value == pytest.approx(gap.mean(), abs=1e-10)
    width = 1 / problem.pi0.min() + 1
    margin = intervals.bernstein_margin(gap.var(ddof=1), 400, width, 0.025)
    assert found.interval.high == pytest.approx(gap.mean() + margin, rel=1e-9)


def test_paired_intervals_cover_the_difference(new_problem):
    problem, other = new_problem(1, gap=0.5), new_problem(1, gap=0.8)
    truth = problem.truth - float((other.pi * problem.means).sum(axis=1).mean())
    rng = np.random.default_rng(3)
    runs = 300
    held = {"normal": 0, "bootstrap": 0}
    for run in range(runs):
        log = problem.log(300, rng)
        found = difference(problem.policy, other.policy, log, level=0.9, replicates=200, seed=run)
        for one in found.intervals:
            held[one.kind] += truth in one
    for kind, count in held.items():
        assert stats.binomtest(count, runs, 0.9).pvalue > 1e-6, (kind, count)


def test_bias_of_both_sides_is_added(problem, rng):
    log = problem.log(300, rng, logging=problem.logging)
    other = near(problem.policy, rng, 1.0)
    found = difference(problem.policy, other, log, "cips:0.2")
    assert found.interval.covers == "the difference of the policies' values"
    blind = difference(problem.policy, other, log, "cips:0.2", bias=False)
    assert blind.interval.covers.startswith("the difference of the estimators' means")
    assert found.interval.low < blind.interval.low < blind.interval.high < found.interval.high


def test_choice_pays_the_union_bound(problem, rng):
    log = problem.log(500, rng)
    candidates = {"a": problem.policy, "b": UniformPolicy(7), "c": near(problem.policy, rng, 2.0)}
    found = choose(candidates, log, delta=0.06)
    lower = {}
    for name, policy in candidates.items():
        w = policy.probabilities_of(log.contexts, log.actions) / log.propensities
        smoothing = 500**-0.5
        lower[name] = intervals.ls_lower(
            np.mean(np.log1p(smoothing * w * log.rewards) / smoothing), smoothing, 500, 0.02
        )
    assert {c.name: c.lower for c in found.candidates} == pytest.approx(lower)
    assert found.best == max(lower, key=lower.get) and found.lower == pytest.approx(max(lower.values()))
    alone = choose([problem.policy], log, delta=0.06)
    assert alone.best == "0" and alone.lower > lower["a"]
    for kind, estimator in (("normal", "snips"), ("bootstrap", "ips"), ("bernstein", "ips-min:10"), ("normal", "es")):
        bound = choose(candidates, log, kind=kind, estimator=estimator, delta=0.06).candidates[0]
        assert bound.lower < bound.estimate.value


def test_chosen_value_is_at_least_its_bound(new_problem):
    """Twelve policies and few rows: the best estimate promises too much, the best lower bound keeps its word."""
    problem = new_problem(6)
    rng = np.random.default_rng(0)
    policies = [FixedPolicy(rng.dirichlet(np.full(7, 0.2))) for _ in range(12)]
    truths = [float((one.probabilities * problem.means).sum(axis=1).mean()) for one in policies]
    runs, broken, too_good = 80, 0, 0
    for _ in range(runs):
        log = problem.log(60, rng)
        found = choose(policies, log, delta=0.1)
        broken += truths[int(found.best)] < found.lower
        plain = choose(policies, log, kind="normal", estimator="ips")
        best = max(plain.candidates, key=lambda c: c.estimate.value)
        too_good += truths[int(best.name)] < best.estimate.value
    assert stats.binomtest(broken, runs, 0.1, alternative="greater").pvalue > 1e-6
    assert too_good > 0.6 * runs


def test_choices_that_cannot_be_are_refused(problem, rng):
    log = problem.log(100, rng)
    for options, what in (
        ({"kind": "luck"}, "kind"),
        ({"delta": 0.7}, "delta"),
        ({"kind": "ls", "estimator": "ips"}, "estimator"),
        ({"kind": "bernstein", "estimator": "ips"}, "kind"),
        ({"kind": "normal", "estimator": "harmonic"}, "estimator"),
        ({"kind": "bootstrap", "estimator": "ips", "replicates": 0}, "kind"),
    ):
        with pytest.raises(InvalidInput, match=what):
            choose([problem.policy], log, **options)
    with pytest.raises(InvalidInput, match="policies"):
        choose([], log)
    grouped = problem.log(100, rng, groups=np.arange(100) // 5)
    with pytest.raises(InvalidInput, match="groups"):
        choose([problem.policy], grouped, kind="ls")
    assert choose([problem.policy], grouped, kind="normal").lower < 1


# ---- tuning --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", [name for name, kind in weights.CORRECTIONS.items() if kind.parameter])
@pytest.mark.parametrize("whole", [False, True], ids=["logged propensities", "pi0 of all actions"])
def test_tuning_follows_its_rule(problem, rng, family, whole):
    log = problem.log(400, rng, logging=problem.logging if whole else None)
    p = problem.policy.probabilities_of(log.contexts, log.actions)
    slope, mse = tune(problem.policy, log, family, rule="slope"), tune(problem.policy, log, family)
    assert slope.trials == mse.trials
    kind = weights.CORRECTIONS[family]
    assert sorted(t.parameter for t in slope.trials) == pytest.approx(sorted(kind.rule.grid(400)))
    for trial in slope.trials:
        correction = kind.make(trial.parameter)
        terms = correction.terms(p, log.propensities, log.rewards)
        assert trial.value == pytest.approx(terms.mean(), abs=1e-10)
        assert trial.standard_error == pytest.approx(terms.std(ddof=1) / 20, abs=1e-10)
        if whole:
            row = [np.flatnonzero((problem.contexts == x).all(axis=1))[0] for x in log.contexts]
            bound = np.abs(problem.pi - correction.effective_policy(problem.pi, problem.pi0)).sum(axis=1)[row].mean()
        else:
            bound = np.abs(p / log.propensities - correction.terms(p, log.propensities, np.ones(400))).mean()
        assert trial.bias_bound == pytest.approx(bound, abs=1e-10)
    best = min(mse.trials, key=lambda t: t.bias_bound**2 + t.standard_error**2)
    assert mse.parameter == best.parameter
    chosen = [t.parameter for t in slope.trials].index(slope.parameter)
    ends = [(t.value - t.standard_error / 2, t.value + t.standard_error / 2) for t in slope.trials]
    meets = [max(e[0] for e in ends[: i + 1]) <= min(e[1] for e in ends[: i + 1]) for i in range(len(ends))]
    assert all(meets[: chosen + 1]) and (chosen + 1 == len(ends) or not meets[chosen + 1])
    assert slope.estimator.name == family


def test_more_rows_ask_for_less_correction(new_problem):
    """With few rows variance rules and weights are tamed; with many, bias rules and they are left alone."""
    rng = np.random.default_rng(2)
    limits = [1.0, 3.0, 10.0, 30.0, 100.0, 1000.0]
    few, many = [], []
    for seed in range(10):
        problem = new_problem(seed, gap=2.5)
        few.append(tune(problem.policy, problem.log(50, rng), "ips-min", limits).parameter)
        many.append(tune(problem.policy, problem.log(20_000, rng), "ips-min", limits).parameter)
    assert np.log(few).mean() + 0.5 < np.log(many).mean()


def test_tuned_estimates_beat_plain_ones_where_weights_are_heavy(new_problem):
    rng = np.random.default_rng(4)
    tuned, plain = [], []
    for seed in range(60):
        problem = new_problem(seed, gap=2.5)
        log = problem.log(100, rng)
        found = tune(problem.policy, log, "ips-min")
        chosen, ips = evaluate(problem.policy, log, [found.estimator, IPS()], replicates=0).estimates
        tuned.append(chosen.value - problem.truth)
        plain.append(ips.value - problem.truth)
    assert np.square(tuned).mean() < 0.8 * np.square(plain).mean()


def test_bad_tuning_is_refused(problem, rng):
    log = problem.log(50, rng)
    for options, what in (({"family": "ips"}, "family"), ({"rule": "guess"}, "rule"), ({"grid": []}, "grid")):
        with pytest.raises(InvalidInput, match=what):
            tune(problem.policy, log, **{"family": "es", **options})
    i, a, r = problem.draw(50, rng)
    with pytest.raises(InvalidInput, match="rewards"):
        tune(problem.policy, problem.log_of(i, a, 5 * r), "ls")
