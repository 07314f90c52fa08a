"""The corrections themselves; `manyarms.weights` lists them side by side."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np

from manyarms._base import validate
from manyarms._base.typing import Array
from manyarms.errors import InvalidInput


class Correction(ABC):
    """A map of (pi, pi0, r) to regularised weights w_hat, elementwise, for pi0 > 0.

    What a correction promises is stated here and asked nowhere else; a promise that is not made is not relied on. Formulas use
    arithmetic and comparisons only, so that they hold for NumPy arrays and torch tensors alike and can be differentiated by pi.
    """

    name: ClassVar[str]
    linear_in_policy: ClassVar[bool] = False
    """w_hat is pi times something that does not depend on pi (what PAC-Bayes needs; thesis, lines 2702-2711)."""

    never_above: ClassVar[bool] = False
    """w_hat * r <= w * r wherever r >= 0: then the estimate's mean is at most the policy's value."""

    rising: ClassVar[bool] = False
    """For r >= 0, w_hat * r never falls as pi grows."""

    depends_on_reward: ClassVar[bool] = False
    """w_hat is a function of (pi, pi0, r) and not of (pi, pi0) alone; rewards must then lie in [0, 1]."""

    @property
    @abstractmethod
    def is_none(self) -> bool:
        """Whether the parameter is the one that gives plain IPS."""

    @property
    def settings(self) -> dict[str, float]:
        """The parameters by name."""
        return {name: float(value) for name, value in vars(self).items()}

    @abstractmethod
    def weight(self, pi: Array, pi0: Array, reward: Array | None = None) -> Array:
        """w_hat."""

    def terms(self, pi: Array, pi0: Array, reward: Array) -> Array:
        """w_hat * reward."""
        return self.weight(pi, pi0, reward) * reward

    @abstractmethod
    def effective_policy(self, pi: Array, pi0: Array) -> Array:
        """pi0 * w_hat, the part of pi that the estimate's mean counts (for a reward of 1); pi0 may be 0 here.

        The bias of the mean of w_hat * r at x is the sum over a of (pi0 w_hat - pi) r(x, a) (thesis, lines 2693-2699).
        """

    def bound(self, pi0_min: float = 0.0) -> float | None:
        """A number that w_hat never exceeds where pi0 >= pi0_min; None if none is known."""
        return None


@dataclass(frozen=True)
class NoCorrection(Correction):
    """w = pi / pi0: unbiased where pi0 plays whatever pi plays; the variance grows with w (thesis, lines 2050-2054)."""

    name: ClassVar[str] = "ips"
    linear_in_policy: ClassVar[bool] = True
    never_above: ClassVar[bool] = True
    rising: ClassVar[bool] = True

    @property
    def is_none(self) -> bool:
        return True

    def weight(self, pi: Array, pi0: Array, reward: Array | None = None) -> Array:
        return pi / pi0

    def effective_policy(self, pi: Array, pi0: Array) -> Array:
        return pi * (pi0 > 0)

    def bound(self, pi0_min: float = 0.0) -> float | None:
        return 1.0 / pi0_min if pi0_min > 0 else None


@dataclass(frozen=True)
class ClipPropensities(Correction):
    """pi / max(pi0, tau), "IPS-max" or "cIPS", 0 <= tau <= 1; tau = 0 is IPS (thesis, lines 2061-2069, 2401).

    Bias at x: minus the sum over a of pi(a|x) r(x, a) (1 - pi0(a|x) / tau)_+.
    """

    tau: float
    name: ClassVar[str] = "cips"
    linear_in_policy: ClassVar[bool] = True
    never_above: ClassVar[bool] = True
    rising: ClassVar[bool] = True

    def __post_init__(self) -> None:
        validate.probability("tau", self.tau)

    @property
    def is_none(self) -> bool:
        return self.tau == 0

    def weight(self, pi: Array, pi0: Array, reward: Array | None = None) -> Array:
        return pi / _at_least(pi0, self.tau)

    def effective_policy(self, pi: Array, pi0: Array) -> Array:
        if self.tau == 0:
            return pi * (pi0 > 0)
        return pi * (pi0 / _at_least(pi0, self.tau))

    def bound(self, pi0_min: float = 0.0) -> float | None:
        floor = max(self.tau, pi0_min)
        return 1.0 / floor if floor > 0 else None


@dataclass(frozen=True)
class ClipWeights(Correction):
    """min(w, M), "IPS-min", M > 0; a large M is IPS (thesis, lines 2400, 2405-2412).

    Bias at x: minus the sum over a of pi(a|x) r(x, a) (1 - M / w(a|x))_+.
    """

    limit: float
    name: ClassVar[str] = "ips-min"
    never_above: ClassVar[bool] = True
    rising: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.limit != math.inf:
            validate.positive("limit", self.limit)

    @property
    def is_none(self) -> bool:
        return self.limit == math.inf

    def weight(self, pi: Array, pi0: Array, reward: Array | None = None) -> Array:
        return _at_most(pi / pi0, self.limit)

    def effective_policy(self, pi: Array, pi0: Array) -> Array:
        if self.is_none:
            return pi * (pi0 > 0)
        return pi0 * _at_most(pi / (pi0 + (pi0 == 0)), self.limit)

    def bound(self, pi0_min: float = 0.0) -> float | None:
        limit = min(self.limit, 1.0 / pi0_min) if pi0_min > 0 else self.limit
        return limit if limit < math.inf else None


@dataclass(frozen=True)
class ExponentialAlpha(Correction):
    """pi / pi0^alpha, exponential smoothing, 0 <= alpha <= 1; alpha = 1 is IPS (thesis, lines 2071-2078, 2424-2428).

    Bias at x: minus the sum over a of pi(a|x) r(x, a) (1 - pi0(a|x)^(1 - alpha)) (thesis, lines 5684-5712).
    """

    alpha: float
    name: ClassVar[str] = "es"
    linear_in_policy: ClassVar[bool] = True
    never_above: ClassVar[bool] = True
    rising: ClassVar[bool] = True

    def __post_init__(self) -> None:
        validate.probability("alpha", self.alpha)

    @property
    def is_none(self) -> bool:
        return self.alpha == 1

    def weight(self, pi: Array, pi0: Array, reward: Array | None = None) -> Array:
        return pi / pi0**self.alpha

    def effective_policy(self, pi: Array, pi0: Array) -> Array:
        return pi * (pi0 > 0) * pi0 ** (1 - self.alpha)

    def bound(self, pi0_min: float = 0.0) -> float | None:
        if self.alpha == 0:
            return 1.0
        return float(pi0_min**-self.alpha) if pi0_min > 0 else None


@dataclass(frozen=True)
class ExponentialBeta(Correction):
    """w^beta, 0 <= beta <= 1; beta = 1 is IPS (thesis, lines 2079, 2425-2428). Raises weights below 1: the bias has two signs."""

    beta: float
    name: ClassVar[str] = "es-beta"
    rising: ClassVar[bool] = True

    def __post_init__(self) -> None:
        validate.probability("beta", self.beta)

    @property
    def is_none(self) -> bool:
        return self.beta == 1

    def weight(self, pi: Array, pi0: Array, reward: Array | None = None) -> Array:
        return (pi / pi0) ** self.beta

    def effective_policy(self, pi: Array, pi0: Array) -> Array:
        return pi**self.beta * (pi0 > 0) * pi0 ** (1 - self.beta)

    def bound(self, pi0_min: float = 0.0) -> float | None:
        if self.beta == 0:
            return 1.0
        return float(pi0_min**-self.beta) if pi0_min > 0 else None


@dataclass(frozen=True)
class ImplicitExploration(Correction):
    """pi / (pi0 + gamma), "IX", gamma >= 0; gamma = 0 is IPS (thesis, line 2675).

    Bias at x: minus the sum over a of pi(a|x) r(x, a) gamma / (pi0(a|x) + gamma).
    """

    gamma: float
    name: ClassVar[str] = "ix"
    linear_in_policy: ClassVar[bool] = True
    never_above: ClassVar[bool] = True
    rising: ClassVar[bool] = True

    def __post_init__(self) -> None:
        validate.not_negative("gamma", self.gamma)

    @property
    def is_none(self) -> bool:
        return self.gamma == 0

    def weight(self, pi: Array, pi0: Array, reward: Array | None = None) -> Array:
        return pi / (pi0 + self.gamma)

    def effective_policy(self, pi: Array, pi0: Array) -> Array:
        if self.gamma == 0:
            return pi * (pi0 > 0)
        return pi * (pi0 / (pi0 + self.gamma))

    def bound(self, pi0_min: float = 0.0) -> float | None:
        floor = self.gamma + pi0_min
        return 1.0 / floor if floor > 0 else None


@dataclass(frozen=True)
class Harmonic(Correction):
    """w / (1 - s + s w), 0 <= s <= 1, "Har": strength s = 0 is IPS and s = 1 ignores the weights (w_hat = 1).

    The thesis prints it both ways round: s is lambda_2 of line 2431, and 1 - lambda of line 2676. Raises weights
    below 1: the bias has two signs.
    """

    strength: float
    name: ClassVar[str] = "harmonic"
    rising: ClassVar[bool] = True

    def __post_init__(self) -> None:
        validate.probability("strength", self.strength)

    @property
    def is_none(self) -> bool:
        return self.strength == 0

    def weight(self, pi: Array, pi0: Array, reward: Array | None = None) -> Array:
        # in this form pi0 is multiplied and not divided by, and a weight of 0 stays 0 up to s = 1
        return cast(Array, pi / ((1 - self.strength) * pi0 + self.strength * pi + (pi == 0)))

    def effective_policy(self, pi: Array, pi0: Array) -> Array:
        nowhere = (pi == 0) | (pi0 == 0)
        return cast(Array, pi * (pi0 / ((1 - self.strength) * pi0 + self.strength * pi + nowhere)))

    def bound(self, pi0_min: float = 0.0) -> float | None:
        lowest = (1 - self.strength) * pi0_min + self.strength  # increasing in w: the largest is at pi = 1
        return 1.0 / lowest if lowest > 0 else None


@dataclass(frozen=True)
class Shrinkage(Correction):
    """l w / (l + w^2), l > 0; a large l is IPS (thesis, line 2431). Weights beyond sqrt(l) shrink towards 0.

    Bias at x: minus the sum over a of pi(a|x) r(x, a) w^2 / (l + w^2).
    """

    scale: float
    name: ClassVar[str] = "shrinkage"
    never_above: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.scale != math.inf:
            validate.positive("scale", self.scale)

    @property
    def is_none(self) -> bool:
        return self.scale == math.inf

    def weight(self, pi: Array, pi0: Array, reward: Array | None = None) -> Array:
        w = pi / pi0
        return w / (1 + w * (w / self.scale))

    def effective_policy(self, pi: Array, pi0: Array) -> Array:
        w = pi / (pi0 + (pi0 == 0))
        return cast(Array, pi * (pi0 > 0) / (1 + w * (w / self.scale)))

    def bound(self, pi0_min: float = 0.0) -> float | None:
        turn = math.sqrt(self.scale)  # w_hat rises up to here, to sqrt(l) / 2
        if pi0_min > 0 and 1.0 / pi0_min < turn:
            w = 1.0 / pi0_min
            return w / (1 + w * w / self.scale)
        return turn / 2 if turn < math.inf else None


@dataclass(frozen=True)
class LogSmoothing(Correction):
    """Logarithmic smoothing: the mean of log(1 + l w r) / l, l >= 0, for rewards of at least 0; l = 0 is IPS.

    Thesis, lines 746-752; Sakhi et al. (2024). As a weight it is log(1 + l w r) / (l r), and it depends on r. Its mean
    is at most the policy's value, and `evaluation.intervals.ls_lower` turns it into a lower confidence bound that
    needs no bound on the weights.
    """

    smoothing: float
    name: ClassVar[str] = "ls"
    never_above: ClassVar[bool] = True
    rising: ClassVar[bool] = True
    depends_on_reward: ClassVar[bool] = True

    def __post_init__(self) -> None:
        validate.not_negative("smoothing", self.smoothing)

    @property
    def is_none(self) -> bool:
        return self.smoothing == 0

    def weight(self, pi: Array, pi0: Array, reward: Array | None = None) -> Array:
        if reward is None:
            raise InvalidInput("reward", "nothing", "rewards: logarithmic smoothing acts on w * r, not on w alone")
        nothing = reward == 0  # there the weight is its limit w
        safe = reward + nothing
        return cast(Array, self.terms(pi, pi0, safe) / safe * ~nothing + pi / pi0 * nothing)

    def terms(self, pi: Array, pi0: Array, reward: Array) -> Array:
        if self.smoothing == 0:
            return pi / pi0 * reward
        return _log1p(self.smoothing * (pi / pi0) * reward) / self.smoothing

    def effective_policy(self, pi: Array, pi0: Array) -> Array:
        """At r = 1, where what is lost, r - terms / w, is largest on [0, 1]: its derivative in r is not negative."""
        some = pi0 > 0
        safe = pi0 + ~some
        return safe * self.terms(pi, safe, 1.0 + 0.0 * pi) * some

    def bound(self, pi0_min: float = 0.0) -> float | None:
        """Of w_hat * r for rewards in [0, 1]."""
        if pi0_min <= 0:
            return None
        return math.log1p(self.smoothing / pi0_min) / self.smoothing if self.smoothing else 1.0 / pi0_min


@dataclass(frozen=True)
class LinearLogSmoothing(LogSmoothing):
    """pi / l * log(1 + l r / pi0): never above LogSmoothing (log is concave), and linear in pi, for learning."""

    name: ClassVar[str] = "ls-linear"
    linear_in_policy: ClassVar[bool] = True

    def terms(self, pi: Array, pi0: Array, reward: Array) -> Array:
        if self.smoothing == 0:
            return pi / pi0 * reward
        return pi * _log1p(self.smoothing * reward / pi0) / self.smoothing


def _at_least(values: Array, low: float) -> Array:
    below = values < low
    return values * ~below + (0.0 * values + low) * below  # in the values' own precision, which torch would lower


def _at_most(values: Array, high: float) -> Array:
    if high == math.inf:
        return values
    above = values > high
    return values * ~above + (0.0 * values + high) * above


def _log1p(values: Array) -> Array:
    own: Any = getattr(values, "log1p", None)  # torch tensors bring their own
    return cast(Array, np.log1p(values) if own is None else own())


__all__ = [
    "ClipPropensities", "ClipWeights", "Correction", "ExponentialAlpha", "ExponentialBeta", "Harmonic",
    "ImplicitExploration", "LinearLogSmoothing", "LogSmoothing", "NoCorrection", "Shrinkage",
]  # fmt: skip
