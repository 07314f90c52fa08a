"""The grids of parameters that are declared before a log is looked at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace

from manyarms._base import validate
from manyarms.errors import InvalidInput
from manyarms.weights.parameters import zero_or_positive

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
            "lambdas": validate.positive, "alphas": validate.probability, "taus": _threshold,
            "gammas": validate.positive, "smoothings": validate.positive, "strengths": _strength,
        }  # fmt: skip
        for name, check in checks.items():
            given = getattr(self, name)
            if given is None:
                continue
            values = tuple(
                dict.fromkeys(check(name, value) for value in validate.as_array(name, given, (None,)).tolist())
            )
            object.__setattr__(self, name, values)

    def resolved(self, rows: int) -> Grid:
        """With the usual parameters for n rows where none were given: lambda around 1/sqrt(n), tau around n^(-1/4)."""
        rows = validate.count("rows", rows)
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
        known = [one.name for one in fields(self)]
        given = getattr(self, validate.one_of("name", name, known))
        if given is None:
            raise InvalidInput("grid", f"one whose {name} were left out", "grid.resolved(rows)")
        return tuple(given)


def _threshold(name: str, tau: float) -> float:
    """Above 0, since bounds divide by it."""
    if validate.probability(name, tau) < validate.SMALLEST:
        raise InvalidInput(name, tau, f"numbers above 0 (of at least {validate.SMALLEST:g}) and at most 1")
    return tau


def _strength(name: str, strength: float) -> float:
    return zero_or_positive(name, strength, most=1)


__all__ = ["BELOW_ONE", "Grid"]
