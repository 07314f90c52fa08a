"""Blocks of time: where a row's timestamp lies among the cells that the time of a log is cut into, and how long a block is."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import numpy as np

from manyarms._base import validate
from manyarms._base.cells import CELLS
from manyarms._base.typing import AnyArray, Ints
from manyarms.errors import InvalidInput
from manyarms.evaluation.readers import Here, Pass, Reader
from manyarms.logs.data import LoggedData, LogSource

_FUTURE, _PAST = (np.datetime64(sign * (2**63 - 1), "us") for sign in (1, -1))

Block = int | timedelta | np.timedelta64
"""How long a block is: as long as so many rows take on average, or a time."""


@dataclass
class TimeRange:
    """The first and the last time of some rows."""

    rows: int = 0
    first: np.datetime64 = _FUTURE
    last: np.datetime64 = _PAST

    def merge(self, later: TimeRange) -> None:
        """The rows of another one."""
        self.rows += later.rows
        self.first, self.last = min(self.first, later.first), max(self.last, later.last)


class _TimePass(Pass[TimeRange]):
    def start(self, first_row: int) -> TimeRange:
        return TimeRange()

    def add(self, sums: TimeRange, part: LoggedData, row: int) -> None:
        part.require("timestamps", purpose='interval="block", which needs to know which rows are near in time')
        times = _microseconds(part.timestamps)
        if np.isnat(times).any():
            raise InvalidInput("log", "a row without a timestamp", 'timestamps of all rows, for interval="block"')
        sums.merge(TimeRange(len(part), times.min(), times.max()))


@dataclass(frozen=True)
class TimeCells:
    """The time from the first row to the last, cut into cells of equal length; of rows that come evenly, one each where few."""

    first: np.datetime64
    span: float  # microseconds
    cells: int
    rows: int

    @classmethod
    def of(cls, log: LogSource, reader: Reader | None = None) -> TimeCells:
        """From one pass over the timestamps, at once over those of a log in memory."""
        if isinstance(log, LoggedData):
            found = _TimePass().over(iter([log]))
        else:
            found = (reader or Here()).read(_TimePass(), log)
        if not found.rows:
            raise InvalidInput("log", "no rows", "at least one")
        span = float((found.last - found.first).astype(np.int64))
        return cls(found.first, span, min(CELLS, found.rows), found.rows)

    def of_rows(self, log: LoggedData) -> Ints:
        """The cell of each row."""
        since = (_microseconds(log.timestamps) - self.first).astype(np.int64)
        place = since * (self.cells / self.span) if self.span > 0 else np.zeros(len(log))
        return np.clip(place.astype(np.int64), 0, self.cells - 1)

    def length(self, block: Block) -> int:
        """The cells of a block, at least one."""
        if isinstance(block, timedelta | np.timedelta64):
            try:
                asked = float(np.timedelta64(block, "us").astype(np.int64))
            except (TypeError, OverflowError):  # months and years have no length
                raise InvalidInput("block", repr(block), "a time in weeks, days, hours, ..., microseconds") from None
            if not 0 < asked <= self.span:
                whole = np.timedelta64(round(self.span), "us").item()
                raise InvalidInput("block", block, f"a time above 0, and at most the log's {whole}")
            share = asked / self.span
        else:
            share = validate.count("block", block) / self.rows
            if share > 1:
                raise InvalidInput("block", validate.describe(block), f"at most the log's {self.rows} rows")
        return max(1, round(share * self.cells))

    def shortest(self) -> float:
        """n^(1/3) rows, in cells."""
        return float(self.rows ** (1 / 3) / self.rows * self.cells)


def _microseconds(timestamps: AnyArray | None) -> AnyArray:
    assert timestamps is not None  # `of` has refused logs without
    return timestamps.astype("datetime64[us]")


__all__ = ["Block", "TimeCells"]
