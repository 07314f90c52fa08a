"""The shipped checks hold for every part that is registered, and find what is broken in parts of one's own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import manyarms as ma
from manyarms.checks import CheckFailed
from manyarms.checks import estimators as checks
from manyarms.estimators import OBJECTIVES, Estimator, named, names
from manyarms.estimators.base import Request, some_rows
from manyarms.estimators.logging_policy import logged_propensities
from manyarms.estimators.naming import parameters_of
from manyarms.weights import CORRECTIONS, Correction


@pytest.mark.parametrize("name", list(CORRECTIONS))
def test_every_correction(name):
    kind = CORRECTIONS[name]
    for parameter in (None,) if kind.parameter is None else (None, *kind.rule.grid(100)):
        checks.check_correction(kind.make(parameter, rows=100))


def of_name(name):
    def make(problem):
        known = {"model": problem.model, "labels": problem.labels, "embeddings": problem.embeddings, "k": 2}
        return named(name, {key: value for key, value in known.items() if key in parameters_of(name)})

    return make


@pytest.mark.parametrize(
    "name", [*names(), "sn-cips:0.2", "sn-harmonic:0.3", "dr:0.3", "sndr:0.3", "switch-dr:1.2", "switch:1.2"]
)
def test_every_objective_and_estimator(name):
    made = of_name(name)(checks.a_problem())
    (checks.check_estimator if isinstance(made, Estimator) else checks.check_objective)(of_name(name))


@pytest.mark.parametrize(
    "make",
    [
        lambda p: ma.estimators.SampleVariance(ma.estimators.cIPS(0.1), 0.3),
        lambda p: ma.estimators.Distance(ma.cLPI(0.1), 0.3),
        lambda p: ma.estimators.Heuristic(ma.estimators.ES(0.7)),
        lambda p: ma.estimators.PWLL(lambda r, p: r + p),
        lambda p: ma.estimators.PC(p.embeddings, radius=1.0),
    ],
)
def test_objectives_around_others(make):
    checks.check_objective(make)


# ---- parts of one's own -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Hump(Correction):
    """w exp(-l w): large weights count for nothing. Not rising, and never above w."""

    rate: float
    name: ClassVar[str] = "hump"
    parameter: ClassVar[str | None] = "rate"
    never_above: ClassVar[bool] = True

    def weight(self, pi, pi0, reward=None):
        from manyarms._base.arrays import exp

        return pi / pi0 * exp(-self.rate * pi / pi0)


@pytest.fixture
def registered():
    CORRECTIONS.register("hump")(Hump)
    yield
    del CORRECTIONS._parts["hump"]


def test_a_correction_of_ones_own_is_an_estimator_everywhere(registered, tmp_path):
    """One class, one line that registers it: evaluate, tune, learn, bounds and the command line know it."""
    checks.check_correction(Hump(0.1))
    checks.check_estimator(lambda problem: ma.IPS(Hump(0.1)))
    problem = checks.a_problem()
    log, policy = problem.log, problem.policy
    found = ma.evaluate(policy, log, ["hump:0.1", "sn-hump:0.1"])
    w = policy.probabilities_of(log.contexts, log.actions) / log.propensities
    assert found["hump"].value == pytest.approx((w * np.exp(-0.1 * w) * log.rewards).mean(), abs=1e-12)
    assert ma.evaluation.tune(policy, log, "hump", grid=[0.1, 0.2]).correction == Hump(0.1)
    with pytest.raises(ma.errors.InvalidInput, match="no rule"):
        ma.evaluate(policy, log, ["hump"])
    learned = ma.learn(log, policy, named("hump:0.1"), epochs=1, device="cpu")
    assert learned.objective == "hump (rate=0.1)"
    request = ma.IPS(Hump(0.1)).prepare(log)
    assert not request.rising  # so that no engine leaves out signs
    general = ma.PACBayes(ma.IPS(Hump(0.1)), bound="general")
    start = ma.policies.MixedLogitPolicy(np.zeros((log.action_count, log.dim)), draws=8)
    assert ma.learn(log, start, general, epochs=1, device="cpu", certified=False).objective.endswith("hump (rate=0.1)")
    assert "hump" in names(learnable=True)


def test_broken_corrections_are_found():
    class Bold(Hump):
        rising: ClassVar[bool] = True

    class Negative(Hump):
        def weight(self, pi, pi0, reward=None):
            return -pi / pi0

    class Double(Hump):
        never_above: ClassVar[bool] = False

        def weight(self, pi, pi0, reward=None):
            return 2.0 * pi / pi0

    class Bounded(Hump):
        def bound(self, pi0_min=0.0):
            return 0.1

    for kind, law in ((Bold, "rising"), (Negative, "at least 0"), (Double, "at most 1"), (Bounded, "bound")):
        with pytest.raises(CheckFailed, match=law):
            checks.check_correction(kind(0.1))


class Halved(Estimator):
    """Half of IPS, which says that it is unbiased."""

    name = "halved"
    unbiased = True

    def prepare(self, log):
        return Request(
            {"reward": log.rewards, "propensity": logged_propensities(log, self.name)}, active=some_rows(log.rewards)
        )

    def terms(self, answers, columns):
        return answers.pi[:, 0] / columns["propensity"] * columns["reward"] / 2


def test_broken_estimators_are_found():
    with pytest.raises(CheckFailed, match="unbiased"):
        checks.check_estimator(lambda problem: Halved())

    class Torn(Halved):
        unbiased = False

        def terms(self, answers, columns):
            if answers.probability is not None:
                return super().terms(answers, columns)
            return 2 * super().terms(answers, columns)

    with pytest.raises(CheckFailed, match="one value"):
        checks.check_estimator(lambda problem: Torn())
    with pytest.raises(ma.errors.InvalidInput, match="not an estimator"):
        checks.check_estimator(lambda problem: ma.cLPI())


def test_an_estimator_of_ones_own_is_known_by_its_name():
    OBJECTIVES.register("halved")(Halved)
    try:
        problem = checks.a_problem()
        found = ma.evaluate(problem.policy, problem.log, ["halved", "ips"])
        assert found["halved"].value == pytest.approx(found["ips"].value / 2)
        assert ma.learn(problem.log, problem.policy, named("halved"), epochs=1, device="cpu").objective == "halved"
    finally:
        del OBJECTIVES._parts["halved"]
