"""What a certificate is asked to look at: families of bounds, each with the points of a grid that is declared beforehand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Protocol, TypeAlias, runtime_checkable

from manyarms._base import validate
from manyarms.bounds import BOUNDS, Bound, Grid, LogSmoothingBound, Unified
from manyarms.bounds.unified import AUTHORS
from manyarms.errors import InvalidInput
from manyarms.weights import Correction


@runtime_checkable
class Corrected(Protocol):
    """An estimator of the IPS family: its correction is what a bound is about."""

    @property
    def correction(self) -> Correction:
        """How weights are regularised."""


Declared: TypeAlias = str | Bound | Correction | Corrected
"""A bound by its name, a bound, or a correction or estimator, which the unified bound certifies."""


@dataclass(frozen=True)
class Family:
    """Bounds that share a part of delta."""

    name: str
    bounds: tuple[Bound, ...]
    points: int
    """Among how many of them delta is shared out."""

    grids: tuple[str, ...] = ()
    """The fields of `Grid` that were looked at."""


def listed(declared: Declared | Sequence[Declared]) -> list[Declared]:
    """One bound, or several, as a list."""
    return list(declared) if isinstance(declared, Sequence) and not isinstance(declared, str) else [declared]


def families_of(declared: Declared | Sequence[Declared], grid: Grid, rows: int) -> list[Family]:
    """The families that were declared, for n rows; bounds of one name that are given one by one are one family."""
    grid = grid.resolved(rows)
    found: dict[str, Family] = {}
    for one in listed(declared):
        family = _family(one, grid, rows)
        known = found.get(family.name)
        if known is not None and isinstance(one, Bound):
            bounds = tuple(dict.fromkeys((*known.bounds, one)))
            family = Family(family.name, bounds, len(bounds))
        found[family.name] = family
    return list(found.values())


def grid_values(families: Sequence[Family], grid: Grid, rows: int) -> dict[str, tuple[float, ...]]:
    """The declared parameters that some family looks at."""
    used = {name for family in families for name in family.grids}
    return {one.name: grid.resolved(rows).values(one.name) for one in fields(Grid) if one.name in used}


def _family(one: Declared, grid: Grid, rows: int) -> Family:
    if one == AUTHORS if isinstance(one, str) else not getattr(one, "certifies", True):
        expected = "a bound, such as 'es': this is a heuristic to learn by, whose lambda follows from the rows"
        raise InvalidInput("bound", repr(AUTHORS), expected)
    if isinstance(one, str):
        kind = BOUNDS[one]
        bounds = kind.over(grid, rows)
        paid = len(bounds) // (len(grid.values(kind.free)) if kind.free else 1)
        return Family(kind.name, tuple(bounds), paid, tuple(name for name, _ in kind.grid))
    if isinstance(one, Bound):
        if one.is_open:
            raise InvalidInput("bound", one.label, "a bound with lambda fixed beforehand: an open one is an objective")
        if one.of_gain:
            raise InvalidInput("bound", one.label, "a bound on the value; `improvement` is about the gain")
        return Family(one.name, (one,), 1)
    if any(getattr(one, name, False) for name in ("self_normalised", "adaptive", "model")):
        expected = "an estimator that is the mean of corrected weights times rewards: of others there is no bound here"
        raise InvalidInput("bound", validate.describe(one), expected)
    correction = one.correction if isinstance(one, Corrected) else one
    if not isinstance(correction, Correction):
        raise InvalidInput("bound", validate.describe(one), f"a bound, a correction, or one of {', '.join(BOUNDS)}")
    if correction.depends_on_reward:
        return Family(correction.name, (LogSmoothingBound.for_estimate(correction),), 1)
    lambdas = grid.values("lambdas")
    return Family(correction.name, tuple(Unified(correction, lam) for lam in lambdas), len(lambdas), ("lambdas",))


__all__ = ["Declared", "Family", "families_of", "grid_values", "listed"]
