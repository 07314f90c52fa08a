"""Windows of a log that is larger than memory: the next one is read, prepared and sent while this one is learned from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from manyarms.estimators.base import Objective
from manyarms.learning.prefetching import Ahead
from manyarms.learning.settings import TrainingSettings
from manyarms.learning.survey import StreamedRows
from manyarms.learning.windows import Staging, Window
from manyarms.logs.data import LoggedData
from manyarms.logs.shuffled import ShuffledRows, Span


class Streamed:
    """A source of windows: those of an epoch, and their rows, are a function of the files, the seed and the epoch."""

    def __init__(self, log: StreamedRows, objective: Objective, staging: Staging, settings: TrainingSettings) -> None:
        self.rows, self._objective, self._staging, self._settings = len(log), objective, staging, settings
        self._rising = log.rising
        self._shuffled = ShuffledRows(
            log.source, buffer=log.buffer, batch=settings.batch, seed=settings.seed, rows=log.counts
        )
        self._ahead: Ahead[Window] | None = None

    def windows(self, epoch: int, batch: int) -> Iterator[Window]:
        """From the window with a batch on; windows that lie before it are not read."""
        self.close()
        self._ahead = Ahead(self._made(epoch, batch * self._settings.batch))
        return self._ahead

    def close(self) -> None:
        """End the thread that reads."""
        if self._ahead is not None:
            self._ahead.close()
            self._ahead = None

    def _made(self, epoch: int, row: int) -> Iterator[Window]:
        for number in range(epoch, self._settings.epochs):
            for span, log in self._shuffled.windows(number, row):
                yield self._window(number, span, log)
                del log  # not to be held while the next is read
            row = 0

    def _window(self, epoch: int, span: Span, log: LoggedData) -> Window:
        asked = self._objective.prepare_part(log, self.rows).computed(len(log))
        window = self._staging.window(
            log, replace(asked, rising=self._rising)
        )  # one for all windows, as for a whole log
        window.order = self._shuffled.order(epoch, span)
        window.epoch, window.first_batch = epoch, span.first // self._settings.batch
        return window


__all__ = ["Streamed"]
