"""The shipped check runs over all registered bounds, and finds what is wrong with bad ones."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import pytest

from manyarms._base.arrays import as_float
from manyarms.bounds import BOUNDS, Bound, Budget, Gain, Grid, London, Side, Unified
from manyarms.checks import CheckFailed
from manyarms.checks.bounds import check_bound
from manyarms.errors import InvalidInput
from manyarms.weights import ClipPropensities, ExponentialAlpha, ImplicitExploration

GRID = Grid(lambdas=(0.2,), alphas=(0.7,), taus=(0.2,), gammas=(0.1,), smoothings=(0.1,), strengths=(0.2,)).resolved(
    150
)


@pytest.mark.parametrize("name", BOUNDS)
def test_every_registered_bound(name):
    for bound in BOUNDS[name].over(GRID, 150):
        check_bound(bound)


@pytest.mark.parametrize("bound", [Gain(0.1), London(ImplicitExploration(0.2))], ids=lambda one: one.label)
def test_others(bound):
    check_bound(bound)


@dataclass(frozen=True)
class Bold(London):
    """A thousandth of what it should cost."""

    name: ClassVar[str] = "bold"

    def end(self, estimate, rows, kl, delta):
        return estimate - 1e-3 * (estimate - super().end(estimate, rows, kl, delta))


@dataclass(frozen=True)
class Backwards(London):
    """The sign of the divergence that the thesis prints for Sakhi et al. 1."""

    def end(self, estimate, rows, kl, delta):
        return super().end(estimate, rows, 0.0, delta) + 0.01 * kl


@dataclass(frozen=True)
class Unpaid(London):
    """Costs that do not add up."""

    def lower(self, summary, kl, budget):
        side = super().lower(summary, kl, budget)
        return Side(side.end, side.start, {"confidence": 0.0})


@dataclass(frozen=True)
class Floating(London):
    """A formula that forgets tensors."""

    def end(self, estimate, rows, kl, delta):
        return super().end(as_float(estimate), rows, as_float(kl), delta) + 0.0 * estimate + 0.0 * kl


@pytest.mark.parametrize(
    ("kind", "law"), [(Bold, "cover"), (Backwards, "divergence"), (Unpaid, "costs"), (Floating, "lowers the objective")]
)
def test_what_is_wrong_is_found(kind, law):
    with pytest.raises(CheckFailed, match=law):
        check_bound(kind(ClipPropensities(0.01)))


def test_an_open_bound_cannot_be_checked():
    with pytest.raises(InvalidInput, match="fixed"):
        check_bound(Unified(ExponentialAlpha(0.5)))


def test_the_objective_of_a_bound_is_its_lower_end_with_all_of_delta():
    from manyarms.checks.bounds import _World

    for name in ("london", "sakhi-1", "ls", "ix-tail", "any-lambda", "any-alpha"):
        (bound,) = BOUNDS[name].over(GRID, 150)
        summary = _World(0).summary(bound)
        lower = bound.lower(summary, 1.0, Budget(0.1, sides=1)).end
        near = pytest.approx(
            lower, abs=2e-4 if name == "sakhi-1" else 1e-12
        )  # l from a grid that can be differentiated
        assert bound.objective(summary, 1.0, 0.1) == near and math.isfinite(lower)
        assert isinstance(bound, Bound)
