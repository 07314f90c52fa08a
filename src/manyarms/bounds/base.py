"""What a bound is: a lower and an upper end for the value of a policy, as a function of a `Summary`, and what each part costs.

A bound has its parameters (lambda, and those of its correction) fixed when it is made. It is a statement about rows that do
not exist yet: with probability at least 1 - delta over logs, it holds for all posteriors at once, so that a policy may be
learned from the very rows that the bound is computed on. That is no longer so if lambda, alpha or tau are picked by looking
at the bound: a `Budget` says over how many points, and on how many sides, delta is shared out.

`lower` and `upper` make certificates. `objective` is the same formula as something to be maximised: its numbers may be torch
scalars, and what was left open (lambda) is then chosen on the very rows. That is fine for an objective and forbidden for a
certificate, so that `lower` and `upper` refuse a bound with anything left open.

A new bound is a file with a frozen dataclass,

    @BOUNDS.register("name")
    @dataclass(frozen=True)
    class MyBound(Bound):
        tau: float
        grid = (("taus", float),)       # of `Grid`: what `certify(bound="name")` looks at
        ...

All numbers are for rewards in [0, 1].
"""

from __future__ import annotations

import math
import numbers
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from itertools import product
from typing import Any, ClassVar, TypeAlias, cast

from manyarms._base import validate
from manyarms._base.registry import Registry
from manyarms._base.text import labelled
from manyarms.bounds.concentration import confidence
from manyarms.bounds.grid import Grid
from manyarms.bounds.summary import Statistic, Summary
from manyarms.errors import InvalidInput
from manyarms.weights import Correction

BOUNDS: Registry[type[Bound]] = Registry("bound", package="manyarms.bounds", group="manyarms.bounds", named=True)
"""The bounds by name: what `certify`, `PACBayes` and the command line know."""


GridArguments: TypeAlias = tuple[tuple[str, Callable[[float], object]], ...]
"""For each argument of a bound, the field of `Grid` that it comes from, and what is made of a number."""


@dataclass(frozen=True)
class Budget:
    """How delta is spent: on one side or both, and on how many points of a grid that was declared beforehand."""

    delta: float
    sides: int = 2
    points: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "delta", confidence("delta", self.delta))
        object.__setattr__(self, "sides", validate.count("sides", self.sides, most=2))
        object.__setattr__(self, "points", validate.count("points", self.points))

    @property
    def each(self) -> float:
        """What one statement gets, where every statement is about one side and one point."""
        return self.delta / (self.sides * self.points)

    @property
    def common(self) -> float:
        """What a statement gets that all points and sides share, the others taking the other half."""
        return self.delta / 2

    @property
    def rest(self) -> float:
        """What each of the others then gets."""
        return self.delta / (2 * self.sides * self.points)


@dataclass(frozen=True)
class Side:
    """An end of an interval: the estimate it starts from, and the costs by name, which lie between the two."""

    end: float
    start: float
    costs: Mapping[str, float]


class Bound(ABC):
    """Ends for the value of a policy from a summary, the divergence of posterior and prior, and a budget."""

    name: ClassVar[str]
    """What it was registered as, unless it says so itself."""

    description: ClassVar[str] = ""
    """A line for help texts."""

    needs_logging_policy: ClassVar[bool] = False
    """Whether pi0 of all actions is needed, and not only of those that were played."""

    for_fixed_only: ClassVar[bool] = False
    """Whether it holds for a policy that was fixed beforehand, and for no learned one."""

    over_draws: ClassVar[bool] = False
    """Whether it reads expectations over drawn parameters, even where the mixture's averages would do."""

    of_gain: ClassVar[bool] = False
    """Whether it bounds V(pi) - V(pi0), and not V(pi)."""

    grid: ClassVar[GridArguments] = ()
    """What `over` makes its points of."""

    free: ClassVar[str | None] = None
    """The field of `Grid` for all of whose values the bound holds at once, so that they cost nothing."""

    @property
    @abstractmethod
    def statistics(self) -> tuple[Statistic, ...]:
        """Whose averages it reads."""

    @abstractmethod
    def lower(self, summary: Summary, kl: float, budget: Budget) -> Side:
        """The value is at least this."""

    @abstractmethod
    def upper(self, summary: Summary, kl: float, budget: Budget) -> Side:
        """The value is at most this."""

    def objective(self, summary: Summary, kl: float, delta: float) -> float:
        """What learning maximises: the lower end, with all of delta on it and open parameters chosen on these rows."""
        return self.lower(summary, kl, Budget(delta, sides=1)).end

    @property
    def mixture(self) -> bool:
        """Whether, for a randomised policy, it reads averages over the rules that the policy draws from."""
        return all(
            not isinstance(one, Correction) or (one.linear_in_policy and one.never_above) for one in self.statistics
        )

    @classmethod
    def over(cls, grid: Grid, rows: int) -> list[Bound]:
        """The bound at all points of a resolved grid, for n rows."""
        validate.instance("grid", grid, Grid, "a Grid")
        points = product(*([make(x) for x in grid.values(name)] for name, make in cls.grid))
        return [cast(Callable[..., Bound], cls)(*point) for point in points]

    @classmethod
    def for_estimate(cls, correction: Correction, lam: float | None = None) -> Bound:
        """The bound around an estimate with this correction, for learning; lambda may be left open."""
        correction, lam = require_correction(correction), positive_or_open(lam)
        arguments = [one.name for one in fields(cast(Any, cls))]
        if lam is not None and "lam" not in arguments:
            raise InvalidInput("lam", lam, f"none: the bound {cls.name!r} has no lambda")
        known: dict[str, object] = {"lam": lam, "correction": correction, **correction.settings}
        if set(arguments) <= set(known):
            made = cast(Callable[..., Bound], cls)(**{name: known[name] for name in arguments})
            if correction in made.statistics:
                return made
        raise InvalidInput(
            "value", f"an estimate by {correction.name}", f"the one that the bound {cls.name!r} is about"
        )

    @classmethod
    def usual(cls, grid: Grid, rows: int) -> Bound:
        """The one point of a grid that learning takes where nothing was chosen, with lambda left open if that can be."""
        points = cls.over(validate.instance("grid", grid, Grid, "a Grid").resolved(rows), rows)
        bound = cast(Any, points[len(points) // 2])
        has_default = any(one.name == "lam" and one.default is None for one in fields(bound))
        return cast(Bound, replace(bound, lam=None) if has_default else bound)

    @property
    def estimated_by(self) -> Correction:
        """The correction of the estimate that learning by this bound climbs."""
        return cast(Correction, self.statistics[0])

    def resized(self, before: int, after: int) -> Bound:
        """The same bound with what follows from the number of rows adapted."""
        return self

    @property
    def is_open(self) -> bool:
        """Whether a parameter was left to be chosen on the rows: then it is an objective, and no certificate."""
        return getattr(self, "lam", 0.0) is None

    @property
    def settings(self) -> dict[str, float]:
        """The parameters by name."""
        found: dict[str, float] = {}
        for name, value in vars(self).items():
            key = "lambda" if name == "lam" else name
            if value is not None:
                found.update(value.settings if isinstance(value, Correction) else {key: float(value)})
        return found

    @property
    def label(self) -> str:
        """The name with its parameters."""
        return labelled(self.name, self.settings)


@dataclass(frozen=True)
class OfCorrection(Bound):
    """A bound that reads the averages of one correction."""

    correction: Correction
    name: ClassVar[str]

    def __post_init__(self) -> None:
        require_correction(self.correction)

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        return (self.correction,)


class FromBelow(Bound):
    """A bound that the mean of one statistic decides: a lower end for R, and, for 1 - R, an upper end."""

    @abstractmethod
    def end(self, estimate: float, rows: int, kl: float, delta: float) -> float:
        """The lower end from the mean of n terms."""

    def start(self, estimate: float) -> float:
        """The estimate of the value that the end starts from."""
        return estimate

    def lower(self, summary: Summary, kl: float, budget: Budget) -> Side:
        return self._side(summary.of(self.statistics[0]).value, summary.rows, divergence(kl), budget.each)

    def upper(self, summary: Summary, kl: float, budget: Budget) -> Side:
        side = self._side(summary.of(self.statistics[0]).complement, summary.rows, divergence(kl), budget.each)
        return complement(side)

    def _side(self, estimate: float, rows: int, kl: float, delta: float) -> Side:
        start, without = self.start(estimate), self.end(estimate, rows, 0.0, delta)
        end = self.end(estimate, rows, kl, delta)
        spent = 0.0 if without == end else without - end  # also where both are infinite
        return Side(end, start, {"divergence": spent, "confidence": start - without})


def divergence(kl: float) -> float:
    """A divergence: at least 0, perhaps infinite. Tensors, which learning computes, are taken as they are."""
    if hasattr(kl, "detach") or (isinstance(kl, numbers.Real) and kl == math.inf):
        return kl
    return validate.number("kl", kl, least=0, most=math.inf)


def fixed_lambda(lam: float | None) -> float:
    """lambda, refused where it was left open."""
    if lam is None:
        raise InvalidInput(
            "lambda",
            "none",
            "one that was fixed beforehand: chosen on the rows it makes an objective, and no certificate",
        )
    return lam


def positive_or_open(lam: float | None) -> float | None:
    """A lambda that may be left open."""
    return None if lam is None else validate.positive("lambda", lam)


def require_correction(correction: object) -> Correction:
    """A correction, which a bound is about."""
    if not isinstance(correction, Correction):
        raise InvalidInput("correction", validate.describe(correction), "a correction of manyarms.weights")
    return correction


def complement(side: Side) -> Side:
    """An upper end for the mean of r from a lower end for the mean of 1 - r."""
    return Side(1.0 - side.end, 1.0 - side.start, side.costs)


__all__ = [
    "BOUNDS", "Bound", "Budget", "FromBelow", "GridArguments", "OfCorrection", "Side", "complement", "divergence", "fixed_lambda",
    "positive_or_open", "require_correction",
]  # fmt: skip
