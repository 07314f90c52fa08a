"""Objectives by name, as the command line and configurations write them."""

from __future__ import annotations

import inspect
from typing import Any

from manyarms.errors import InvalidInput
from manyarms.estimators.base import Objective
from manyarms.estimators.grouped import MIPS, PC, OffCEM
from manyarms.estimators.likelihoods import BPR, ESLPI, LPI, RegKL, RegKLLinear, cLPI
from manyarms.estimators.values import DM, DR, ES, IPS, IX, LS, ESBeta, SelfNormalisedIPS, cIPS

KINDS: dict[str, type[Objective]] = {
    kind.name: kind
    for kind in (
        cLPI, LPI, ESLPI, RegKL, RegKLLinear, BPR,
        IPS, cIPS, ES, ESBeta, IX, LS, SelfNormalisedIPS, DM, DR, MIPS, OffCEM, PC,
    )
}  # fmt: skip

LINES: dict[str, str] = {
    "clpi": "log-likelihood weighted by r / max(p0, tau): concave, and the first to try",
    "lpi": "log-likelihood weighted by r; needs no propensities",
    "es-lpi": "log-likelihood weighted by r / p0^alpha",
    "regkl": "log-likelihood weighted by exp(r / beta); needs no propensities",
    "regkl-lin": "regkl without its logarithm, for comparison",
    "bpr": "ranks what was rewarded above random actions; needs no propensities and no normaliser",
    "ips": "inverse propensity scoring: unbiased, with a large variance",
    "cips": "inverse propensity scoring, propensities clipped at tau",
    "es": "exponential smoothing: propensities to the power alpha",
    "es-beta": "exponential smoothing: weights to the power beta",
    "ix": "implicit exploration: gamma is added to propensities",
    "ls": "logarithmic smoothing of weighted rewards",
    "snips": "self-normalised inverse propensity scoring",
    "dm": "direct method: a reward model's value; needs no propensities",
    "dr": "doubly robust: a reward model, and clipped inverse propensities for its errors",
    "mips": "inverse propensity scoring of clusters of actions",
    "offcem": "doubly robust at the level of clusters; with a two-stage policy this is POTEC",
    "pc": "inverse propensity scoring of neighbourhoods of actions",
}

ALIASES = {"potec": "offcem", "regkl-linear": "regkl-lin", "ips-max": "cips", "eslpi": "es-lpi"}

NAMES = tuple(KINDS)


def parameters_of(name: str) -> dict[str, Any]:
    """What an objective can be told, and its defaults (`inspect.Parameter.empty` where it must be told)."""
    signature = inspect.signature(_kind(name))
    return {key: parameter.default for key, parameter in signature.parameters.items()}


def named(name: str, **parameters: Any) -> Objective:
    """The objective that goes by `name` (one of NAMES), with its parameters.

    >>> named("clpi", tau=0.01)
    <objective clpi (tau=0.01)>
    """
    kind, known = _kind(name), parameters_of(name)
    for key in parameters:
        if key not in known:
            raise InvalidInput(key, "a parameter", f"one of {name}'s: {', '.join(known) or 'it has none'}")
    missing = [key for key, default in known.items() if default is inspect.Parameter.empty and key not in parameters]
    if missing:
        raise InvalidInput(missing[0], "nothing", f"{', '.join(missing)} for {name}: {LINES[kind.name]}")
    return kind(**parameters)


def _kind(name: str) -> type[Objective]:
    plain = name.lower().replace("_", "-")
    plain = ALIASES.get(plain, plain)
    if plain not in KINDS:
        raise InvalidInput("objective", repr(name), f"one of {', '.join(NAMES)}")
    return KINDS[plain]


__all__ = ["ALIASES", "KINDS", "LINES", "NAMES", "named", "parameters_of"]
