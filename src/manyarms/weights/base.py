"""What a correction is, the registry of corrections by name, and plain importance weights, which correct nothing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from manyarms._base import validate
from manyarms._base.arrays import exp, log
from manyarms._base.policy_tables import greedy
from manyarms._base.registry import Registry
from manyarms._base.text import labelled
from manyarms._base.typing import Array
from manyarms.errors import InvalidInput


@dataclass(frozen=True)
class Rule:
    """How a parameter follows from the number n of rows."""

    words: str
    default: Callable[[int], float]
    grid: Callable[[int], tuple[float, ...]]
    """Parameters worth trying, from the strongest correction to (nearly) none."""

    def __post_init__(self) -> None:
        validate.instance("words", self.words, str, "the rule in words")
        for name in ("default", "grid"):
            if not callable(getattr(self, name)):
                raise InvalidInput(name, validate.describe(getattr(self, name)), "a function of the number of rows")


def powers(rows: int, steps: int = 9) -> tuple[float, ...]:
    """n^0 down to n^-1: from weights of at most 1 to weights of at most n."""
    return tuple(float(max(rows, 2) ** (-i / (steps - 1))) for i in range(steps))


class Correction(ABC):
    """A map of (pi, pi0, r) to regularised weights w_hat, elementwise, for pi0 > 0. `weight` is all that one must define.

    What a correction promises is stated here and asked nowhere else; a promise that is not made is not relied on. Formulas use
    arithmetic, comparisons and `manyarms._base.arrays`, so that they hold for NumPy arrays and torch tensors alike and can be
    differentiated by pi. `@CORRECTIONS.register(name)` makes a correction known by its name wherever estimators are named.
    """

    name: ClassVar[str]
    """What it was registered as."""

    summary: ClassVar[str] = ""
    """What IPS with this correction is, in one line, for lists."""

    parameter: ClassVar[str | None] = None
    """The name of its parameter, the first field; None where it has none."""

    plain_at: ClassVar[float | None] = None
    """The value of the parameter that gives plain IPS, where there is one."""

    rule: ClassVar[Rule | None] = None
    """How it follows from the number of rows where none is given."""

    by_default: ClassVar[bool] = False
    """Whether `evaluate` shows it where no estimators are named."""

    linear_in_policy: ClassVar[bool] = False
    """w_hat is pi times something that does not depend on pi (what PAC-Bayes needs; thesis, Section 8.6.1)."""

    never_above: ClassVar[bool] = False
    """w_hat * r <= w * r wherever r >= 0: then the estimate's mean is at most the policy's value."""

    rising: ClassVar[bool] = False
    """For r >= 0, w_hat * r never falls as pi grows."""

    depends_on_reward: ClassVar[bool] = False
    """w_hat is a function of (pi, pi0, r) and not of (pi, pi0) alone; rewards must then lie in [0, 1]."""

    # ---- parameters

    @classmethod
    def make(cls, parameter: float | None = None, *, rows: int | None = None) -> Correction:
        """With this parameter; without one, with that of the rule for n rows."""
        rows = None if rows is None else validate.count("rows", rows)
        if cls.parameter is None:
            if parameter is not None:
                raise InvalidInput("parameter", validate.describe(parameter), f"none: {cls.name} has no parameter")
            return cls()
        if parameter is None:
            if rows is None or cls.rule is None:
                rule = f"it has no rule for {cls.parameter}" if cls.rule is None else f"rows= for {cls.rule.words}"
                raise InvalidInput(cls.parameter, "nothing", f"a number for {cls.name}: {rule}")
            parameter = cls.rule.default(rows)
        return cls(parameter)  # type: ignore[call-arg]

    @property
    def settings(self) -> dict[str, float]:
        """The parameters by name."""
        return {name: float(value) for name, value in vars(self).items()}

    @property
    def label(self) -> str:
        """The name with its parameters."""
        return labelled(self.name, self.settings)

    @property
    def is_none(self) -> bool:
        """Whether the parameter is the one that gives plain IPS."""
        return self.parameter is not None and getattr(self, self.parameter) == self.plain_at

    # ---- formulas

    @abstractmethod
    def weight(self, pi: Array, pi0: Array, reward: Array | None = None) -> Array:
        """w_hat."""

    def terms(self, pi: Array, pi0: Array, reward: Array) -> Array:
        """w_hat * reward."""
        return self.weight(pi, pi0, reward) * reward

    def terms_from_log(self, log_pi: Array, pi0: Array, reward: Array) -> Array:
        """w_hat * reward from log pi: for weights that have no slope where pi is too small to be told from 0."""
        return self.terms(exp(log_pi), pi0, reward)

    def log_weight(self, log_pi: Array, pi0: Array) -> Array:
        """log w_hat from log pi, without leaving the logarithms where w_hat is linear in pi."""
        if self.linear_in_policy:
            return log_pi + log(self.weight(0.0 * pi0 + 1.0, pi0))
        return log(self.weight(exp(log_pi), pi0))

    def effective_policy(self, pi: Array, pi0: Array) -> Array:
        """pi0 * w_hat, the part of pi that the estimate's mean counts (for a reward of 1); pi0 may be 0 here.

        The bias of the mean of w_hat * r at x is the sum over a of (pi0 w_hat - pi) r(x, a) (thesis, Section 8.6.1).
        """
        if self.is_none:
            return pi * (pi0 > 0)
        return pi0 * self.terms(pi, pi0 + (pi0 == 0), 1.0 + 0.0 * pi)

    # ---- what follows from them

    def bound(self, pi0_min: float = 0.0) -> float | None:
        """A number that w_hat (w_hat * r, where it depends on r) never exceeds where pi0 >= pi0_min; None if none is known."""
        return None

    @property
    def log_smoothing(self) -> float:
        """An l > 0 with l w_hat r <= log(1 + l w r) for rewards in [0, 1]; 0 where none is known.

        Then the product over rows of exp(l w_hat r) has an expectation of at most (1 + l E[w r])^n, and Markov's inequality
        gives a confidence bound that needs no bound on the weights (Sakhi et al., 2024).
        """
        return 0.0

    def best_policy(self, rewards: Array, logging: Array) -> Array | None:
        """The policy (nx, K) that maximises the mean of w_hat r, from mean rewards and pi0 (nx, K); None without a closed form.

        Where w_hat is linear in pi it plays the action with the largest r(x, a) pi0 w_hat / pi.
        """
        if not (self.linear_in_policy or self.is_none):
            return None
        return greedy(rewards * self.effective_policy(np.ones(logging.shape), logging))


CORRECTIONS: Registry[type[Correction]] = Registry(
    "correction", package="manyarms.weights", group="manyarms.corrections", named=True
)
"""Corrections by the name that users write."""


class Ratio(Correction):
    """pi / h(pi0) for an h(pi0) >= pi0, the `denominator`."""

    linear_in_policy: ClassVar[bool] = True
    never_above: ClassVar[bool] = True
    rising: ClassVar[bool] = True

    @abstractmethod
    def denominator(self, pi0: Array) -> Array:
        """h, which rises with pi0."""

    def weight(self, pi: Array, pi0: Array, reward: Array | None = None) -> Array:
        return pi / self.denominator(pi0)

    def effective_policy(self, pi: Array, pi0: Array) -> Array:
        return pi * (pi0 > 0) if self.is_none else pi * (pi0 / self.denominator(pi0))

    def bound(self, pi0_min: float = 0.0) -> float | None:
        lowest = float(self.denominator(np.asarray(max(pi0_min, 0.0))))
        return 1.0 / lowest if lowest > 0 else None


@CORRECTIONS.register("ips")
@dataclass(frozen=True)
class NoCorrection(Ratio):
    """w = pi / pi0: unbiased where pi0 plays whatever pi plays; the variance grows with w (thesis, Section 7.1.1)."""

    summary: ClassVar[str] = "inverse propensity scoring: unbiased, with a large variance"
    by_default: ClassVar[bool] = True

    @property
    def is_none(self) -> bool:
        return True

    def denominator(self, pi0: Array) -> Array:
        return pi0

    def log_weight(self, log_pi: Array, pi0: Array) -> Array:
        return log_pi - log(pi0)


__all__ = ["CORRECTIONS", "Correction", "NoCorrection", "Ratio", "Rule", "powers"]
