"""Steps of any objective on a GPU, captured once as a CUDA graph and replayed: many small launches for the price of one.

A batch is copied to where the captured step reads it. A step that cannot be captured, since it looks at numbers on the way or
draws some, is taken as it is; so are the first few, and batches of another size, such as the last one of an epoch.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from manyarms._base.typing import Ints
from manyarms.estimators.base import Batch, Objective, Request
from manyarms.learning.settings import TrainingSettings
from manyarms.learning.steps import Steps
from manyarms.learning.trainable import Trainable
from manyarms.learning.windows import Window

AT_ONCE = 16  # batches between two looks at the loss
WARM = 3  # steps that are taken as they are before one is captured: libraries set themselves up in them
FEW = 1 << 28  # scores of a batch up to which rows without weight cost less than leaving them out gains


class CapturedSteps(Steps):
    """`Steps` by replays, where the policy, the objective and the batch allow it."""

    def __init__(self, trainable: Trainable, objective: Objective, settings: TrainingSettings) -> None:
        super().__init__(trainable, objective, settings)
        self._taken, self._refused = 0, False
        self._graph: torch.cuda.CUDAGraph | None = None
        self._rows: Batch | None = None
        self._request: Request | None = None
        self._idle: tuple[Window, int] | None = None  # a row of a window that no objective gives weight

    def at_once(self, window: Window) -> int:
        return AT_ONCE

    def _step(
        self, window: Window, index: Ints, size: int, step: int, rate: float, rng: np.random.Generator | None
    ) -> Tensor | float:
        whole = None if self._refused or not _can_be(window) else self._whole(window, index, size)
        if whole is None or self._taken < WARM:
            self._taken += whole is not None
            return super()._step(window, index if whole is None else whole, size, step, rate, rng)
        rows = self._copied(window.batch(whole, size, step, rng))
        self.trainable.begin(rate)
        if self._graph is None and not self._capture(rows, window.request):
            return self.climb(rows, window.request)
        assert self._graph is not None
        self._graph.replay()
        return self._value

    def _capture(self, rows: Batch, request: Request) -> bool:
        """Record a step on these rows, without taking it; whether that could be done."""
        graph = torch.cuda.CUDAGraph()
        version = self.trainable.table.version
        try:
            with torch.cuda.graph(graph, capture_error_mode="thread_local"):  # a thread that reads ahead may allocate
                if self.trainable.encoding is not None:  # its features are part of what is recorded
                    rows = replace(rows, h=self.trainable.features(rows.x))
                self._value = self.climb(rows, request)
        except RuntimeError:
            self._refused = True
            self.trainable.table.version = version
            torch.cuda.synchronize()
            return False
        self._graph = graph
        self._request = request  # what the graph reads of it must stay where it is, after the window
        return True

    def _whole(self, window: Window, index: Ints, size: int) -> Ints | None:
        """As many rows as every batch has, those without weight among them; None where a batch is best taken as it is."""
        if size != self.settings.batch:
            return None
        if len(index) == size:
            return index
        if size * len(self.trainable.table.beta) > FEW or window.asked.active is None:
            return None
        if self._idle is None or self._idle[0] is not window:
            self._idle = window, int(np.argmin(window.asked.active))
        return np.concatenate([index, np.full(size - len(index), self._idle[1])])

    def _copied(self, batch: Batch) -> Batch:
        """The batch in the memory that the captured step reads; that of the first batch."""
        if self._rows is None:
            encoded = self.trainable.encoding is not None
            self._rows = batch if not encoded else replace(batch, h=batch.h.detach())
            return self._rows
        kept = self._rows
        for name, column in batch.columns.items():
            kept.columns[name].copy_(column)
        for ours, theirs in ((kept.x, batch.x), (kept.ids, batch.ids), (kept.wanted, batch.wanted)):
            if ours is not None:
                ours.copy_(theirs)
        if kept.h is not kept.x:
            kept.h.copy_(batch.h.detach())
        return kept


def _can_be(window: Window) -> bool:
    """Whether nothing that a batch of a window needs is made on the host, or drawn."""
    asked = window.asked
    made = callable(asked.ids) or bool(asked.negatives) or window.lists is not None or window.logging is not None
    return not (made or window.draws)


__all__ = ["CapturedSteps"]
