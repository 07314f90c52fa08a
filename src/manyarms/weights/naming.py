"""Weightings by name, as users write them, and the parameter that n rows get where none is given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from manyarms._base import validate
from manyarms.errors import InvalidInput
from manyarms.weights.corrections import (
    ClipPropensities,
    ClipWeights,
    Correction,
    ExponentialAlpha,
    ExponentialBeta,
    Harmonic,
    ImplicitExploration,
    LinearLogSmoothing,
    LogSmoothing,
    NoCorrection,
    Shrinkage,
)


@dataclass(frozen=True)
class Weighting:
    """A correction and how its terms are averaged: the mean of w_hat r, or (self-normalised) sum w_hat r / sum w_hat."""

    correction: Correction
    self_normalised: bool = False

    @property
    def name(self) -> str:
        """The name it is found under: "snips", "cips", ..., or "sn-cips" for another that is self-normalised."""
        if not self.self_normalised:
            return self.correction.name
        return "snips" if self.correction.name == "ips" else f"sn-{self.correction.name}"


@dataclass(frozen=True)
class Family:
    """Corrections of one kind: how one is made from its parameter, and which parameter n rows get by default."""

    make: Callable[[float], Correction]
    parameter: str
    default: Callable[[int], float]
    rule: str
    grid: Callable[[int], tuple[float, ...]]
    """Parameters worth trying on n rows, from the strongest correction to (nearly) none."""


def _powers(n: int, steps: int = 9) -> tuple[float, ...]:
    """n^0 down to n^-1: from weights of at most 1 to weights of at most n."""
    return tuple(float(max(n, 2) ** (-i / (steps - 1))) for i in range(steps))


FAMILIES: dict[str, Family] = {
    "cips": Family(ClipPropensities, "tau", lambda n: n**-0.5, "tau = 1/sqrt(n), so that weights stay below sqrt(n)", _powers),
    "ips-min": Family(
        ClipWeights, "limit", lambda n: n**0.5, "M = sqrt(n) (thesis, line 2412)", lambda n: tuple(1 / t for t in _powers(n))
    ),
    "es": Family(
        ExponentialAlpha, "alpha", lambda n: 1 - n**-0.25, "alpha = 1 - n^(-1/4) (thesis, line 2642)",
        lambda n: tuple(i / 10 for i in range(11)),
    ),
    "es-beta": Family(
        ExponentialBeta, "beta", lambda n: 1 - n**-0.25, "beta = 1 - n^(-1/4)", lambda n: tuple(i / 10 for i in range(11))
    ),
    "ix": Family(ImplicitExploration, "gamma", lambda n: n**-0.5, "gamma = 1/sqrt(n)", _powers),
    "harmonic": Family(Harmonic, "strength", lambda n: n**-0.5, "strength = 1/sqrt(n)", _powers),
    "shrinkage": Family(
        Shrinkage, "scale", lambda n: 4.0 * n, "scale = 4n, so that weights stay below sqrt(n)",
        lambda n: tuple(4 / t**2 for t in _powers(n)),
    ),
    "ls": Family(LogSmoothing, "smoothing", lambda n: n**-0.5, "smoothing = 1/sqrt(n)", _powers),
    "ls-linear": Family(LinearLogSmoothing, "smoothing", lambda n: n**-0.5, "smoothing = 1/sqrt(n)", _powers),
}  # fmt: skip

NAMES = ("ips", "snips", *FAMILIES)


def named(name: str, parameter: float | None = None, *, rows: int | None = None) -> Weighting:
    """The weighting that goes by `name`: one of NAMES, "ips-max" for "cips", with "sn-" before it self-normalised.

    Its parameter is given, or follows the family's rule for so many rows.

    >>> named("cips", 0.01).correction
    ClipPropensities(tau=0.01)
    >>> named("snips")
    Weighting(correction=NoCorrection(), self_normalised=True)
    """
    plain = {"snips": "sn-ips", "ips-max": "cips", "clip": "cips"}.get(name, name)
    self_normalised = plain.startswith("sn-")
    kind = plain.removeprefix("sn-")
    if kind == "ips":
        if parameter is not None:
            raise InvalidInput("parameter", validate.describe(parameter), f"none: {name} has no parameter")
        return Weighting(NoCorrection(), self_normalised)
    if kind not in FAMILIES or (self_normalised and kind.startswith("ls")):
        raise InvalidInput("name", repr(name), f"one of {', '.join(NAMES)}")
    family = FAMILIES[kind]
    if parameter is None:
        if rows is None:
            raise InvalidInput(family.parameter, "nothing", f"a number, or rows= for the rule {family.rule}")
        parameter = family.default(validate.count("rows", rows))
    return Weighting(family.make(parameter), self_normalised)


__all__ = ["FAMILIES", "NAMES", "Family", "Weighting", "named"]
