"""Consecutive batches of one window: for each the policy's answers, the objective's value, one step up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from torch import Tensor

from manyarms._base.typing import Ints
from manyarms.estimators.base import Batch, Objective, Request
from manyarms.learning.settings import TrainingSettings
from manyarms.learning.trainable import Trainable
from manyarms.learning.windows import Window


class Steps:
    """Takes the steps of a run, batch by batch. A device that gains from several at a time has a class of its own."""

    def __init__(self, trainable: Trainable, objective: Objective, settings: TrainingSettings) -> None:
        self.trainable, self.objective, self.settings = trainable, objective, settings

    preparing: ClassVar[str] = ""
    """What the first call of `take` does that takes a while."""

    notes: tuple[str, ...] = ()
    """What to know of how the steps were taken."""

    def at_once(self, window: Window) -> int:
        """How many batches of a window `take` gains from."""
        return 1

    def take(
        self,
        window: Window,
        batches: Sequence[tuple[Ints, int]],
        epoch: int,
        first_batch: int,
        first_step: int,
        rates: Sequence[float],
    ) -> Tensor | float:
        """One step for each of the batches, in order; the sum over them of size times the value before the step.

        batches: the active rows of each in the window, on the host, and how many rows it has with those that are not active.
        epoch, first_batch, first_step: the numbers of the first of them. rates: a learning rate for each.
        """
        total: Tensor | float = 0.0
        for number, ((index, size), rate) in enumerate(zip(batches, rates, strict=True)):
            rng = self.generator(epoch, first_batch + number) if window.draws else None
            total = total + size * self._step(window, index, size, first_step + number, rate, rng)
        return total

    def generator(self, epoch: int, batch: int) -> np.random.Generator:
        """What a batch draws from: a function of (seed, epoch, batch) alone."""
        return np.random.default_rng([self.settings.seed, epoch, batch])

    def _step(
        self, window: Window, index: Ints, size: int, step: int, rate: float, rng: np.random.Generator | None
    ) -> Tensor | float:
        rows = window.batch(index, size, step, rng)
        self.trainable.begin(rate)
        return self.climb(rows, window.request)

    def climb(self, rows: Batch, request: Request) -> Tensor:
        """One step up on a batch, which has begun; the value before it."""
        trainable = self.trainable
        answers = trainable.engine.forward(rows, request)
        value: Tensor = self.objective.value(answers, rows)
        if value.requires_grad:
            (-value).backward()  # type: ignore[no-untyped-call]
        gradient = trainable.engine.backward(want_h=trainable.learns_encoder)
        if trainable.encoding is not None and gradient is not None and rows.h is not None:
            rows.h.backward(gradient)
            trainable.encoding.step()
        trainable.finish()
        return value.detach()


__all__ = ["Steps"]
