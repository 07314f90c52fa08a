"""Which bounds go by which name, and the grids of parameters that are declared before a log is looked at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from manyarms._base import validate
from manyarms.certificates.bounds import (
    AnyAlpha,
    AnyLambda,
    Bound,
    EmpiricalBernstein,
    ImplicitExplorationBound,
    LogSmoothingBound,
    London,
    Sakhi1,
    Sakhi2,
    Unified,
)
from manyarms.certificates.bounds.baselines import check_tau
from manyarms.errors import InvalidInput
from manyarms.weights import ClipPropensities, ExponentialAlpha, Harmonic, ImplicitExploration, NoCorrection

BELOW_ONE = 0.9


@dataclass(frozen=True)
class Grid:
    """Parameters that a certificate may choose among, and pays for: fixed before the rows were seen, or by their number alone.

    lambdas: of es, ips, clip, ix, harmonic, any-alpha (and, times n, of sakhi-2). alphas: of es and its relatives. taus: of
    clip, london, sakhi-1, sakhi-2, bernstein. gammas: of ix, ix-tail. smoothings: of ls. strengths: of harmonic. What is left
    out follows from the number of rows.
    """

    lambdas: Sequence[float] | None = None
    alphas: Sequence[float] | None = None
    taus: Sequence[float] | None = None
    gammas: Sequence[float] | None = None
    smoothings: Sequence[float] | None = None
    strengths: Sequence[float] | None = None

    def __post_init__(self) -> None:
        checks: dict[str, Callable[[str, float], float]] = {
            "lambdas": validate.positive, "alphas": validate.probability, "taus": lambda _, tau: check_tau(tau),
            "gammas": validate.positive, "smoothings": validate.positive, "strengths": validate.probability,
        }  # fmt: skip
        for name, check in checks.items():
            given = getattr(self, name)
            if given is None:
                continue
            values = tuple(dict.fromkeys(check(name, float(value)) for value in given))
            if not values:
                raise InvalidInput(name, "none", "at least one")
            object.__setattr__(self, name, values)

    def resolved(self, rows: int) -> Grid:
        """With the usual parameters for so many rows where none were given: lambda around 1/sqrt(n), tau around n^(-1/4)."""
        root = rows**-0.5
        usual = {
            "lambdas": [c * root for c in (0.5, 1, 2, 4, 8, 16)],
            "alphas": [0.5, 0.6, 0.7, 0.8, 0.9, 1.0],
            "taus": [rows**-0.5, rows**-0.375, rows**-0.25],
            "gammas": [min(1.0, c * root) for c in (0.25, 0.5, 1, 2, 4)],
            "smoothings": [min(BELOW_ONE, c * root) for c in (0.25, 0.5, 1, 2, 4, 8)],
            "strengths": [min(1.0, c * root) for c in (0.25, 1, 4)],
        }
        missing = {name: values for name, values in usual.items() if getattr(self, name) is None}
        return replace(self, **missing)

    def values(self, name: str) -> tuple[float, ...]:
        """The parameters of a name, once resolved."""
        given = getattr(self, name)
        assert given is not None
        return tuple(given)


@dataclass(frozen=True)
class Family:
    """The bounds of one name over a grid, and how many of its points must be paid for."""

    line: str
    make: Callable[[Grid, int], list[Bound]]
    free: str | None = field(default=None)
    """The parameter that the bound holds for all values of at once."""

    def points(self, grid: Grid, rows: int) -> tuple[list[Bound], int]:
        """Bounds, and the number among which delta is shared."""
        bounds = self.make(grid, rows)
        return bounds, len(bounds) // (len(grid.values(self.free)) if self.free else 1)


FAMILIES: dict[str, Family] = {
    "es": Family(
        "exponential smoothing, pi / pi0^alpha: two-sided, needs pi0 of all actions",
        lambda g, n: [Unified(ExponentialAlpha(a), l) for a in g.values("alphas") for l in g.values("lambdas")],
    ),
    "ips": Family(
        "plain IPS by the same bound", lambda g, n: [Unified(NoCorrection(), l) for l in g.values("lambdas")]
    ),
    "clip": Family(
        "clipping, pi / max(pi0, tau), by the same bound",
        lambda g, n: [Unified(ClipPropensities(t), l) for t in g.values("taus") for l in g.values("lambdas")],
    ),
    "ix": Family(
        "implicit exploration, pi / (pi0 + gamma), by the same bound",
        lambda g, n: [Unified(ImplicitExploration(c), l) for c in g.values("gammas") for l in g.values("lambdas")],
    ),
    "harmonic": Family(
        "harmonic weights by the general bound: a fixed policy, or softmax parameters that are drawn",
        lambda g, n: [Unified(Harmonic(s), l) for s in g.values("strengths") for l in g.values("lambdas")],
    ),
    "any-lambda": Family(
        "exponential smoothing for all lambda in (0, 1) at once",
        lambda g, n: [AnyLambda(ExponentialAlpha(a)) for a in g.values("alphas")],
    ),
    "any-alpha": Family(
        "exponential smoothing for all alpha in (0, 1] at once, from below only",
        lambda g, n: [AnyAlpha(a, l) for a in g.values("alphas") for l in g.values("lambdas")],
        free="alphas",
    ),
    "london": Family("London and Sandler, for clipping", lambda g, n: [London(t) for t in g.values("taus")]),
    "sakhi-1": Family("Sakhi et al. by Catoni, for clipping", lambda g, n: [Sakhi1(t) for t in g.values("taus")]),
    "sakhi-2": Family(
        "Sakhi et al. by Bernstein, for clipping: needs pi0 of all actions",
        lambda g, n: [Sakhi2(t, n * l) for t in g.values("taus") for l in g.values("lambdas")],
    ),
    "ls": Family(
        "logarithmic smoothing: needs propensities only",
        lambda g, n: [LogSmoothingBound(l) for l in g.values("smoothings")],
    ),
    "ix-tail": Family(
        "implicit exploration by its own bound: needs propensities only",
        lambda g, n: [ImplicitExplorationBound(c) for c in g.values("gammas")],
    ),
    "bernstein": Family(
        "empirical Bernstein for clipped weights: only for a policy that was fixed beforehand",
        lambda g, n: [EmpiricalBernstein(t) for t in g.values("taus")],
    ),
}  # fmt: skip
NAMES = tuple(FAMILIES)

__all__ = ["FAMILIES", "NAMES", "Family", "Grid"]
