"""What an estimator hands over: one number a row, and what is known about it.

An estimate is the mean of its terms (or, self-normalised, a ratio of two means). Standard errors, intervals and warnings
follow from the terms alone, so they are written once for all estimators.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Protocol, runtime_checkable

import numpy as np

from manyarms._base.typing import AnyArray, Array
from manyarms.errors import InvalidInput
from manyarms.estimators.logging_policy import (
    CellFunction,
    Cells,
    RewardModel,
    WholeLogging,
    logged_propensities,
    require_whole,
    whole_logging,
)
from manyarms.logs.data import LoggedData
from manyarms.policies.base import Policy
from manyarms.weights import Correction

MAX_FREE_CELLS = 20_000_000  # contexts x actions up to which bias terms are added without being asked for


@dataclass(frozen=True)
class Terms:
    """One number a row whose mean is the estimate, and what is known about it."""

    values: Array
    """(n,); the estimate is their mean, or, self-normalised, their sum over the sum of the weights."""

    weights: Array | None
    """(n,) the importance weights that were used, None where there are none."""

    unbiased: bool
    """Whether the mean of the values is the policy's value (under the conditions in the note)."""

    note: str = ""
    self_normalised: bool = False
    consistent: bool = False
    """Whether a biased estimate still tends to the policy's value: snips, where all actions are in support."""

    never_above: bool = False
    """Whether the mean is at most the policy's value where rewards are at least 0, also with actions left out."""

    low: Array | None = None
    """(n,) terms whose mean is at most the policy's value: the values and the least that the bias can be."""

    high: Array | None = None
    """(n,) terms whose mean is at least the policy's value."""

    span: tuple[float, float] | None = None
    """Numbers between which the values lie with certainty, if such are known."""

    span_with_bias: tuple[float, float] | None = None
    """The same for low and high."""

    smoothing: Smoothing | None = None
    """How a bound of logarithmic smoothing is read from these terms."""


@dataclass(frozen=True)
class Smoothing:
    """Logarithmic smoothing of rewards (r - offset) / width and of 1 minus them, for bounds from below and above."""

    parameter: float
    offset: float
    width: float
    complement: Array  # (n,) log(1 + l w (1 - r')) / l


@dataclass(frozen=True)
class Settings:
    """What all estimators of one evaluation are told."""

    reward_range: tuple[float, float] | None = None
    """Numbers between which every reward lies; None if nobody knows."""

    propensity_floor: float = 0.0
    """A number that no propensity above 0 falls below; 0 if nobody knows."""

    bias: bool = False
    """Whether to add the bias of corrections, which needs pi0 of all actions."""

    corrections: tuple[Correction, ...] = ()
    """All corrections of this evaluation, so that their biases come from one pass."""


def settings_for(log: LoggedData) -> Settings:
    """What a log tells by itself: rewards in [0, 1], the logging policy's floor, and pi0 of all actions if it is cheap."""
    inside = bool(log.rewards.min() >= 0 and log.rewards.max() <= 1)
    floor = float(getattr(log.logging, "smallest_probability", 0.0))
    return Settings((0.0, 1.0) if inside else None, floor, bias_is_cheap(log, len(log)))


def bias_is_cheap(log: LoggedData, rows: int) -> bool:
    """Whether the bias of corrections can be had for little beside the estimates."""
    if whole_logging(log) is None:
        return False
    listed = log.logging is None and log.support is not None
    per_row = log.support.shape[1] if listed and log.support is not None else log.action_count
    return listed or rows * per_row <= MAX_FREE_CELLS


@dataclass
class Case:
    """A policy and a part of a log. What several estimators need is computed once and kept."""

    policy: Policy
    log: LoggedData
    settings: Settings
    _kept: dict[tuple[object, ...], tuple[Array, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.policy.action_count != self.log.action_count:
            came = f"a policy over {self.policy.action_count} actions"
            raise InvalidInput("policy", came, f"one over the log's {self.log.action_count}")

    @cached_property
    def pi(self) -> Array:
        """pi(a_i|x_i), (n,)."""
        return self.policy.probabilities_of(self.log.contexts, self.log.actions)

    @cached_property
    def pi0(self) -> Array:
        """pi0(a_i|x_i), (n,)."""
        return logged_propensities(self.log, "estimates from importance weights")

    def whole(self, purpose: str) -> WholeLogging:
        """pi0 of all actions, or the reason why there is none."""
        return require_whole(self.log, purpose)

    def predicted(self, model: RewardModel) -> Array:
        """The model's prediction for the logged actions, (n,)."""
        return self.keep(("predicted", id(model)), lambda: (model.predict(self.log.contexts, self.log.actions),))[0]

    def expected(self, model: RewardModel) -> Array:
        """The model's prediction for the policy, sum over a of pi(a|x_i) r_hat(x_i, a), (n,)."""
        return self.keep(("expected", id(model)), lambda: (self.policy.expectation(self.log.contexts, model.block),))[0]

    def group_masses(self, labels: AnyArray, purpose: str) -> tuple[Array, Array]:
        """pi and pi0 of the logged action's group, (n,) each."""

        def both() -> tuple[Array, Array]:
            wanted = labels[self.log.actions]
            theirs = self.whole(purpose).group_mass(labels, wanted)
            if not theirs.min() > 0:
                row = int(np.argmin(theirs))
                came = f"no probability for the group of the action played in row {row}"
                raise InvalidInput("log", came, "a logging policy that can play what it played")
            return self.policy.group_mass(self.log.contexts, labels, wanted), theirs

        ours, theirs = self.keep(("groups", id(labels)), both)
        return ours, theirs

    def lost(self, correction: Correction) -> tuple[Array, Array] | None:
        """The bias of a correction, by sign: the sums over a of (pi - kept)_+ and of (pi - kept)_-, (n,) each.

        With rewards in [l, h], value - mean lies between l P + h N and h P + l N (thesis, lines 2693-2699). None where
        it was not asked for.
        """
        if not self.settings.bias:
            return None
        key = ("lost", correction)
        if key not in self._kept:
            wanted = list(dict.fromkeys((*self.settings.corrections, correction)))
            functions: list[CellFunction] = [lambda cells: cells.pi]
            for one in wanted:
                functions += [partial(_too_little, one), partial(_too_much, one)]
            sums = self.whole("the bias of a correction").sums(self.policy, functions)
            never_played = np.maximum(1.0 - sums[:, 0], 0.0)
            never_played[never_played < 1e-12] = 0.0  # rounding of a sum that is 1
            for i, one in enumerate(wanted):
                self._kept["lost", one] = (sums[:, 2 * i + 1] + never_played, sums[:, 2 * i + 2])
        positive, negative = self._kept[key]
        return positive, negative

    def keep(self, key: tuple[object, ...], make: Callable[[], tuple[Array, ...]]) -> tuple[Array, ...]:
        """What `make` gives, made once for this case."""
        if key not in self._kept:
            self._kept[key] = make()
        return self._kept[key]


def _too_little(correction: Correction, cells: Cells) -> Array:
    return np.maximum(cells.pi - correction.effective_policy(cells.pi, cells.pi0), 0.0)


def _too_much(correction: Correction, cells: Cells) -> Array:
    return np.minimum(cells.pi - correction.effective_policy(cells.pi, cells.pi0), 0.0)


@runtime_checkable
class Estimator(Protocol):
    """A way to estimate a policy's value from a log."""

    @property
    def name(self) -> str:
        """Short, and the same for every parameter."""

    @property
    def label(self) -> str:
        """The name with its parameters."""

    def resolved(self, rows: int) -> Estimator:
        """The same with the parameters that were left open, for a log of so many rows."""

    def of(self, case: Case) -> Terms:
        """The terms of a case; the parameters must be resolved."""


class Base:
    """What estimators share: `terms` for a single log."""

    name: str

    @property
    def label(self) -> str:
        """The name with its parameters."""
        return self.name

    def resolved(self, rows: int) -> Estimator:
        """The same with the parameters that were left open, for a log of so many rows."""
        return self  # type: ignore[return-value]

    def terms(self, policy: Policy, log: LoggedData, settings: Settings | None = None) -> Terms:
        """One number a row of a log; the estimate is their mean."""
        return self.resolved(len(log)).of(Case(policy, log, settings or settings_for(log)))


__all__ = ["Base", "Case", "Estimator", "Settings", "Smoothing", "Terms", "bias_is_cheap", "settings_for"]
