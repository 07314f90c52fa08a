"""Windows: the rows that training has at hand, on the device, with what the objective made of them.

A log in memory is one window, which serves all epochs; only the order of its rows changes:

    epoch e:  a permutation of the rows by (seed, e)

A log that is read as it is learned from (`streaming.py`) is a sequence of windows an epoch. Batches are taken from a window's
order one after another, and never from two windows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import count
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from manyarms._base.typing import AnyArray, Ints
from manyarms.estimators.base import Batch, ModelValues, Request
from manyarms.learning.dense import seed_of
from manyarms.learning.engines import AllActions, ListedActions, ModelOnDevice
from manyarms.learning.logging_rows import LoggingRows, logging_rows
from manyarms.learning.settings import TrainingSettings
from manyarms.learning.sharded import DividedRows, ShardedActions
from manyarms.learning.trainable import Trainable, require_precision
from manyarms.logs.data import LoggedData

MANY = 1 << 16  # rows whose order takes a while


class Window:
    """Rows of a log on a device, and the order in which batches take them.

    log, asked: the rows and what the objective asks of them, on the host. contexts (n, d), columns {name: (n,)}, ids (n, m),
    wanted (n,), lists (n, k), logging: the same on the device; request: what engines see of it there. order (n,): the rows in
    the order of the epoch, on the host. epoch, first_batch: of which epoch, and the number of its first batch there.
    """

    def __init__(
        self,
        log: LoggedData,
        asked: Request,
        trainable: Trainable,
        request: Request,
        *,
        contexts: Tensor,
        columns: dict[str, Tensor],
        ids: Tensor,
        wanted: Tensor | None,
        lists: Tensor | None,
        logging: LoggingRows | None,
    ) -> None:
        self.log, self.asked, self.trainable, self.request = log, asked, trainable, request
        self.contexts, self.columns, self.ids, self.wanted = contexts, columns, ids, wanted
        self.lists, self.logging = lists, logging
        self.order: Ints = np.arange(len(log))
        self.epoch, self.first_batch = 0, 0
        # the exact softmax, over all actions or over lists, draws nothing; whoever else there is may
        engine_draws = not isinstance(trainable.engine, AllActions | ListedActions | DividedRows)
        self.draws = bool(asked.negatives) or trainable.sampler is not None or engine_draws

    def __len__(self) -> int:
        return len(self.order)

    def batches(self, size: int) -> int:
        """How many batches it has."""
        return math.ceil(len(self.order) / size)

    def rows_of(self, index: Ints) -> tuple[Ints, int]:
        """Rows less those that are not active, and how many there were."""
        return (index if self.asked.active is None else index[self.asked.active[index]]), len(index)

    def taken(self, first: int, count: int, size: int) -> list[tuple[Ints, int]]:
        """`count` batches from number `first` of the epoch on: their active rows, and their sizes."""
        starts = range((first - self.first_batch) * size, (first - self.first_batch + count) * size, size)
        return [self.rows_of(self.order[start : start + size]) for start in starts]

    def batch(self, index: Ints, size: int, step: int, rng: np.random.Generator | None) -> Batch:
        """The rows `index` on the device, with the actions that are asked for; rng: needed where something `draws`."""
        rows = self._sent(index)
        x = self.contexts.index_select(0, rows)
        h = self.trainable.batch_features(x)
        ids = self.ids.index_select(0, rows)
        if callable(self.asked.ids):
            ids = torch.cat([ids, self._tensor(self.asked.ids(index))], dim=1)
        if self.asked.negatives:
            assert rng is not None
            extra = self.asked.drawn(index, self.log.action_count, rng)
            ids = torch.cat([ids, self._tensor(extra)], dim=1)
        columns = {name: column.index_select(0, rows) for name, column in self.columns.items()}
        batch = Batch(columns, size, x=x, h=h, ids=ids)
        if self.logging is not None:
            batch.logging_ids, batch.logging = self.logging(rows, x)
        batch.wanted = None if self.wanted is None else self.wanted.index_select(0, rows)
        if rng is not None:
            batch.seed = seed_of(rng)
        if self.lists is not None:
            batch.lists = self.lists.index_select(0, rows)
        elif self.trainable.sampler is not None:
            assert rng is not None
            batch.lists, batch.offsets = self.trainable.sampler.draw(h, self.trainable.table.beta, ids, step, rng)
        return batch

    def _sent(self, index: Ints) -> Tensor:
        """Row numbers on the device; to a GPU without waiting for what it is doing."""
        rows, device = torch.as_tensor(index), self.contexts.device
        return rows if device.type == "cpu" else rows.pin_memory().to(device, non_blocking=True)

    def _tensor(self, array: AnyArray) -> Tensor:
        return torch.tensor(array, dtype=torch.int64, device=self.contexts.device)


class Staging:
    """How rows become a window: what does not depend on the rows is sent to the device once."""

    def __init__(self, trainable: Trainable) -> None:
        self.trainable = trainable
        self._labels: tuple[AnyArray, Tensor] | None = None
        self._model: tuple[ModelValues, ModelOnDevice] | None = None
        # of a softmax over all actions a process needs what belongs to its own rows; a list may name any action
        shared = isinstance(trainable.engine, ShardedActions)
        self._own = trainable.own if shared else slice(0, None)

    def window(self, log: LoggedData, asked: Request) -> Window:
        """The rows of a log, of which an objective asked this, on the device."""
        trainable = self.trainable
        self.require_reach(max(float(log.contexts.max()), -float(log.contexts.min())))
        lists = trainable.lists_of(log)
        # what engines see of it, on the device
        request = replace(asked, columns={}, labels=self._labels_of(asked), model=self._model_of(asked.model))
        return Window(
            log, asked, trainable, request,
            contexts=self.tensor(log.contexts),
            columns={name: self.tensor(column) for name, column in asked.columns.items() if not callable(column)},
            ids=self._ids(log, asked),
            wanted=None if asked.wanted is None else self.tensor(asked.wanted),
            lists=None if lists is None else self.tensor(lists),
            logging=logging_rows(log, trainable.device, trainable.dtype) if asked.all_actions else None,
        )  # fmt: skip

    def require_reach(self, reach: float) -> None:
        """Refuse contexts that are too large for the precision; reach: of the largest."""
        largest = reach / self.trainable.temperature
        require_precision("log", "contexts over the temperature", largest, self.trainable.dtype)

    def tensor(self, array: AnyArray) -> Tensor:
        """An array on the device, its floats in the precision that is learned in."""
        kind, device = np.asarray(array).dtype.kind, self.trainable.device
        floats = np.float64 if self.trainable.dtype == torch.float64 else np.float32
        # by NumPy, which takes one thread, while another one may be learning; what is infinite then, the objective's value shows
        with np.errstate(over="ignore"):
            own = np.array(array, dtype=floats if kind == "f" else np.int64 if kind in "iu" else None)
        made = torch.from_numpy(own)
        return made if device.type == "cpu" else made.pin_memory().to(device, non_blocking=True)

    def _ids(self, log: LoggedData, asked: Request) -> Tensor:
        """(n, m): the actions that are asked for, where they are known beforehand."""
        ids = log.actions[:, None] if asked.logged else np.empty((len(log), 0), dtype=np.int64)
        if asked.ids is not None and not callable(asked.ids):
            ids = np.concatenate([ids, asked.ids], axis=1)
        return self.tensor(ids)

    def _labels_of(self, asked: Request) -> Tensor | None:
        if asked.labels is None:
            return None
        if self._labels is None or self._labels[0] is not asked.labels:
            self._labels = asked.labels, torch.tensor(asked.labels[self._own], device=self.trainable.device)
        return self._labels[1]

    def _model_of(self, model: ModelValues | None) -> ModelOnDevice | None:
        if model is None:
            return None
        if self._model is None or self._model[0] is not model:
            weights, own = getattr(model, "weights", None), self._own
            held = None if weights is None else self.tensor(weights[own])
            self._model = model, ModelOnDevice(model, held, own.start)
        return self._model[1]


class WindowSource(Protocol):
    """Where windows come from."""

    @property
    def rows(self) -> int:
        """How many rows an epoch has."""

    def windows(self, epoch: int, batch: int) -> Iterator[Window]:
        """The windows from the one with batch number `batch` of an epoch on, to the end of the last epoch."""

    def close(self) -> None:
        """Nothing more is wanted."""


class InMemory:
    """A log in memory: one window."""

    def __init__(self, window: Window, settings: TrainingSettings) -> None:
        self.window, self.settings, self.rows = window, settings, len(window.log)

    def windows(self, epoch: int, batch: int) -> Iterator[Window]:
        """The same window once an epoch, in the epoch's order."""
        for number, order in zip(range(epoch, self.settings.epochs), self._orders(epoch), strict=False):
            self.window.epoch, self.window.order = number, order
            yield self.window

    def _orders(self, epoch: int) -> Iterator[Ints]:
        """The orders of the epochs from this one on. A GPU does not wait for them: the next is made while one is used."""
        if self.window.contexts.device.type == "cpu" or self.rows < MANY:
            yield from (self._order(number) for number in count(epoch))  # as many as are asked for
        with ThreadPoolExecutor(1) as aside:
            following = aside.submit(self._order, epoch)
            for number in count(epoch + 1):
                order = following.result()
                following = aside.submit(self._order, number)
                yield order

    def _order(self, epoch: int) -> Ints:
        return np.random.default_rng([self.settings.seed, epoch]).permutation(self.rows)

    def close(self) -> None:
        """Nothing to do."""


__all__ = ["InMemory", "Staging", "Window", "WindowSource"]
