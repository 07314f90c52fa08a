"""What a belief keeps of the past: the rows it learns, at which times, and how they lose their weight."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np

from manyarms._base.registry import Registry
from manyarms._base.typing import AnyArray, Array, Ints, Spec
from manyarms.beliefs.drift.clock import Clock

if TYPE_CHECKING:
    from manyarms.beliefs.belief import Belief
    from manyarms.beliefs.correcting import Corrections
    from manyarms.beliefs.leaves import Leaves

MOST_SIGNAL = 1e4  # how many times the noise a prior's standard deviation may be: posteriors then keep eight digits


class Forgetting(Protocol):
    """What `drift=` takes: `Drift`, `Discount` or `SlidingWindow`."""

    @property
    def leaves_type(self) -> type[Leaves]:
        """What the leaves of such a belief are."""
        ...

    def memory_of(self, belief: Belief) -> Memory:
        """The memory of a belief that has learned nothing."""
        ...


class Memory(ABC):
    """How one belief forgets. It has the belief's clock, and changes the belief's root and leaves."""

    ages: ClassVar[bool] = False
    """Whether what is known changes with the time alone, without a row."""

    clock: Clock

    @property
    @abstractmethod
    def horizon(self) -> float | None:
        """For how many rounds what is learned now counts; None where the time from round to round is not known yet."""

    @abstractmethod
    def learn(self, belief: Belief, X: Array, actions: Ints, rewards: Array, times: Array) -> None:
        """Learn checked rows, each at its time, and move the clock."""

    @abstractmethod
    def correct(self, belief: Belief, rows: Corrections, times: Array | None) -> None:
        """Be as if rows of these times had had other rewards; None: the last times of their actions."""

    def pass_to(self, belief: Belief, time: float) -> None:
        """It is that late now, though no row came."""
        self.clock.now = self.clock.later(time)

    def at(self, belief: Belief, time: float) -> Belief:
        """The belief as it is at a time that is not before its own, to be read."""
        return belief

    @property
    @abstractmethod
    def how(self) -> Forgetting:
        """What it was made with."""

    @property
    @abstractmethod
    def settings(self) -> Spec:
        """What it is to be made with again; "kind" is its name."""

    def arrays(self) -> dict[str, AnyArray]:
        """Its state."""
        return {"clock": self.clock.array()}

    def restore(self, arrays: dict[str, AnyArray], dim: int) -> None:
        """Take over a saved state."""
        self.clock.restore(arrays["clock"])

    @property
    def nbytes(self) -> int:
        """Bytes that it holds."""
        return 0


MEMORIES: Registry[type[Forgetting]] = Registry("memory", package="manyarms.beliefs.drift", group="manyarms.memories")


def in_order(times: Array) -> Ints:
    """The order in which rows are learned: by their times, and of one time as they came."""
    return np.argsort(times, kind="stable")


def rounds_of(rate: float, gap: float | None) -> float | None:
    """rho / (1 - rho), the mean number of later rounds that a row still counts for, with rho = exp(-rate gap)."""
    return None if gap is None else float(1.0 / np.expm1(rate * gap)) if rate * gap < 700 else 0.0


__all__ = ["MEMORIES", "MOST_SIGNAL", "Forgetting", "Memory", "in_order", "rounds_of"]
