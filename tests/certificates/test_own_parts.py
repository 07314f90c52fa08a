"""A bound and a correction of one's own: a few lines, no other file touched, then available everywhere."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import torch

from manyarms.bounds import BOUNDS, Budget, FromBelow, Grid, LogSmoothingBound, London, Unified
from manyarms.certificates import PolicyPrior, certify, summarise
from manyarms.checks.bounds import check_bound
from manyarms.errors import InvalidInput
from manyarms.estimators import ES, IPS, LS, PACBayes, cIPS
from manyarms.estimators.pessimism import batch_summary
from manyarms.learning import learn
from manyarms.policies import SoftmaxPolicy
from manyarms.policies.randomised import GaussianPolicy
from manyarms.weights import ClipPropensities, Correction


@dataclass(frozen=True)
class Mild(Correction):
    """pi / (pi0^2 + c)^(1/2): between clipping and implicit exploration."""

    c: float
    name: ClassVar[str] = "mild"
    linear_in_policy: ClassVar[bool] = True
    never_above: ClassVar[bool] = True
    rising: ClassVar[bool] = True

    @property
    def is_none(self):
        return self.c == 0

    def weight(self, pi, pi0, reward=None):
        return pi / (pi0**2 + self.c) ** 0.5

    def effective_policy(self, pi, pi0):
        return pi * pi0 / (pi0**2 + self.c) ** 0.5

    def bound(self, pi0_min=0.0):
        return (pi0_min**2 + self.c) ** -0.5


@dataclass(frozen=True)
class Squared(Correction):
    """w / (1 + c w): not linear, and promises nothing but not to be above."""

    c: float
    name: ClassVar[str] = "squared"
    never_above: ClassVar[bool] = True

    @property
    def is_none(self):
        return self.c == 0

    def weight(self, pi, pi0, reward=None):
        return pi / (pi0 + self.c * pi)

    def effective_policy(self, pi, pi0):
        return pi0 * pi / (pi0 + self.c * pi + (pi0 == 0))


@dataclass(frozen=True)
class Hoeffding(FromBelow):
    """V >= V_hat - sqrt((KL + log(2 sqrt(n)/delta)) / (2 n)) / tau: Pinsker in place of `London`'s argument."""

    tau: float
    name: ClassVar[str] = "hoeffding"
    grid = (("taus", float),)

    @property
    def statistics(self):
        return (ClipPropensities(self.tau),)

    def end(self, estimate, rows, kl, delta):
        return estimate - ((kl + math.log(2 * math.sqrt(rows) / delta)) / (2 * rows)) ** 0.5 / self.tau


@pytest.fixture
def log(world, rng):
    return world.log(600, rng)


@pytest.fixture
def prior(world):
    return PolicyPrior(world.start, 1.0)


@pytest.fixture
def registered():
    BOUNDS.register("hoeffding")(Hoeffding)
    yield
    del BOUNDS._parts["hoeffding"]


def test_a_correction_of_ones_own_is_certified(log, learned, prior):
    """As a bound with it, as itself, and inside an estimator: the unified bound over the grid's lambdas."""
    grid = Grid(lambdas=(0.05, 0.2))
    points = [Unified(Mild(0.01), lam) for lam in (0.05, 0.2)]
    below, _ = summarise(learned, log, [Mild(0.01)]).with_margins(0.05)
    wanted = max(one.lower(below, prior.divergence(learned), Budget(0.05, 2, 2)).end for one in points)
    for declared in (points, Mild(0.01), IPS(Mild(0.01))):
        made = certify(learned, log, prior=prior, bound=declared, grid=grid)
        assert made.candidates[0].lower == pytest.approx(wanted, abs=1e-12)
        assert made.candidates[0].label.startswith("mild (c=0.01, lambda=")
    check_bound(Unified(Mild(0.01), 0.2))
    check_bound(London(Mild(0.04)))
    clip = certify(learned, log, prior=prior, bound=[IPS(Mild(0.01)), "ls", London(Mild(0.04))])
    assert [one.family for one in clip.candidates] == ["mild", "ls", "london"]


def test_what_a_correction_does_not_promise_is_not_relied_on(world, log, learned, prior):
    fixed = certify(SoftmaxPolicy(world.start * 0.5), log, bound=Squared(0.1))
    assert 0 < fixed.candidates[0].lower < world.value(SoftmaxPolicy(world.start * 0.5)) < fixed.candidates[0].upper
    with pytest.raises(InvalidInput, match="not linear"):
        certify(learned, log, prior=prior, bound=Squared(0.1))
    with pytest.raises(InvalidInput, match="at most some 1/tau"):
        London(Squared(0.1))  # bounded by 1/c, but it does not say so
    with pytest.raises(InvalidInput, match="general"):
        PACBayes(IPS(Squared(0.1)))


def test_estimators_are_certified_by_the_bound_that_is_theirs(log, learned, prior):
    by_name = certify(learned, log, prior=prior, bound="ls", grid=Grid(smoothings=(0.1,)))
    by_estimator = certify(learned, log, prior=prior, bound=LS(0.1))
    assert by_estimator.lower == pytest.approx(by_name.lower, abs=1e-12)
    es = certify(learned, log, prior=prior, bound=ES(0.8), grid=Grid(lambdas=(0.1,)))
    assert es.lower == pytest.approx(
        certify(learned, log, prior=prior, bound="es", grid=Grid(alphas=(0.8,), lambdas=(0.1,))).lower, abs=1e-12
    )


def test_a_bound_of_ones_own_is_found_by_its_name(registered, log, learned, prior, world):
    made = certify(learned, log, prior=prior, bound=("hoeffding", "ls"))
    assert made.candidates[0].family == "hoeffding" and set(made.grid) == {"taus", "smoothings"}
    bound = PACBayes(cIPS(0.2), bound="hoeffding")
    assert bound.bound == Hoeffding(0.2)
    result = learn(log, GaussianPolicy(world.start), bound, epochs=1, device="cpu")
    assert result.certificate is not None
    check_bound(Hoeffding(0.2))
    with pytest.raises(InvalidInput, match="is about"):
        PACBayes(ES(0.2), bound="hoeffding")


def test_learning_and_certifying_evaluate_the_same_bound(log, learned, prior):
    """On a batch that is the whole log, an objective is what the bound says of the log's own summary."""
    from manyarms.estimators import Answers, Batch

    ids = np.tile(np.arange(log.action_count), (len(log), 1))
    pi = torch.tensor(learned.probabilities_of_many(log.contexts, ids))
    pi0 = torch.tensor(log.logging.probabilities_of_many(log.contexts, ids))
    at = torch.tensor(log.actions)[:, None]
    terms = Answers(pi.log().gather(1, at), probabilities=pi)
    terms.divergence = torch.tensor(prior.divergence(learned), dtype=torch.float64)
    columns = {"reward": log.rewards, "propensity": log.propensities, "rounds": np.full(len(log), float(len(log)))}
    batch = Batch({name: torch.tensor(column) for name, column in columns.items()}, len(log), pi0)
    kl = prior.divergence(learned)
    for value, name in (
        (ES(0.7), "es"),
        (cIPS(0.1), "clip"),
        (cIPS(0.1), "london"),
        (cIPS(0.1), "sakhi-2"),
        (LS(0.1), "ls"),
    ):
        objective = PACBayes(value, 0.1, bound=name)
        summary = summarise(learned, log, objective.bound.statistics)
        found = batch_summary(objective.bound.statistics, terms, batch, mixture=True)
        for one in objective.bound.statistics:
            assert float(found.of(one).complement) == pytest.approx(summary.of(one).complement, abs=1e-6)
        wanted = objective.bound.objective(summary, kl, 0.1)
        assert float(objective.value(terms, batch)) == pytest.approx(wanted, abs=1e-6)


def test_a_bound_object_must_be_about_the_estimate():
    assert PACBayes(cIPS(0.1), bound=London(ClipPropensities(0.1))).bound == London(ClipPropensities(0.1))
    assert PACBayes(LS(0.1), bound=LogSmoothingBound(0.1)).settings["smoothing"] == 0.1
    for make in (
        lambda: PACBayes(cIPS(0.2), bound=London(ClipPropensities(0.1))),
        lambda: PACBayes(ES(0.5), bound=LogSmoothingBound(0.1)),
        lambda: PACBayes(cIPS(0.1), bound="bernstein"),
        lambda: PACBayes(cIPS(0.1), bound="london", lam=0.1),
        lambda: PACBayes(ES("adaptive"), bound="any-lambda"),
    ):
        with pytest.raises(InvalidInput):
            make()
    assert PACBayes(cIPS(0.1), bound="sakhi1").bound == PACBayes(cIPS(0.1), bound="sakhi-1").bound


def test_every_bound_has_an_objective_by_its_name_alone():
    n = 10_000
    for name, kind in BOUNDS.items():
        if not kind.for_fixed_only:
            assert isinstance(PACBayes.by_bound(name, n).bound, kind)
    assert PACBayes.by_bound("london", n).settings["tau"] == pytest.approx(n**-0.25)
    assert PACBayes.by_bound("sakhi-2", n).bound.is_open
    assert PACBayes.by_bound("ls", n).settings["smoothing"] == pytest.approx(2 * n**-0.5)
    assert PACBayes.by_bound("es", n, grid=Grid(alphas=(0.3,))).settings["alpha"] == 0.3


def test_other_refusals_of_what_is_declared(log, learned, prior):
    from manyarms.bounds import Gain

    for declared, text in (((), "none"), (Gain(0.1), "gain"), (object(), "a bound"), ("ess", "did you mean")):
        with pytest.raises(InvalidInput, match=text):
            certify(learned, log, prior=prior, bound=declared)
