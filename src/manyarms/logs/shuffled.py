"""The rows of a log larger than memory in a random order, by a buffer of bounded size.

    epoch e:   the row groups one after another, in an order by (seed, e)
    window w:  consecutive rows of that sequence, as many as the buffer holds, permuted by (seed, e, w)

A window ends between two row groups where it can, so that none is read twice, and always at a multiple of `batch` rows but at the
end of the epoch: what is left over of a row group comes first in the next window. So all that is needed to know which rows a
window has is arithmetic on the sizes of the row groups, and a run goes on in the middle of an epoch without reading what came
before. Every row comes once an epoch. Neighbours in the file meet in the same window; the larger the buffer, the less that means.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from manyarms._base import validate
from manyarms._base.typing import Ints
from manyarms.errors import DataError, InvalidInput
from manyarms.logs.data import CHUNK, LoggedData
from manyarms.logs.gathering import gathered
from manyarms.logs.row_groups import GroupedLog, in_row_groups

GROUPS, ROWS = 1, 2  # what an order is of, apart from other draws of a seed


@dataclass(frozen=True)
class Span:
    """A window's number in its epoch, and its rows in the epoch's sequence: from `first` to before `last`."""

    number: int
    first: int
    last: int

    def __len__(self) -> int:
        return self.last - self.first


class ShuffledRows:
    """Windows of a source, epoch by epoch.

    buffer: the most rows of a window. batch: what the rows of all windows but the last are a multiple of; a buffer holds two at
    least. rows: the rounds that each row group gives, where that is less than its size (rows are left out); all unless given.
    """

    def __init__(
        self, source: GroupedLog, *, buffer: int, batch: int = 1, seed: int = 0, rows: Sequence[int] | None = None
    ) -> None:
        self.source = in_row_groups("source", source)
        self.seed, self.batch = validate.seed(seed), validate.count("batch", batch)
        self.buffer = validate.count("buffer", buffer)
        if self.buffer < 2 * self.batch:
            raise InvalidInput("buffer", self.buffer, f"at least two batches, {2 * self.batch} rows")
        self._sizes = np.array(self.source.row_groups if rows is None else rows, dtype=np.int64)
        self.rows = int(self._sizes.sum())

    def spans(self, epoch: int) -> list[Span]:
        """The windows of an epoch."""
        ends, found, first = np.cumsum(self._sizes[self._groups(epoch)]), list[Span](), 0
        while first < self.rows:
            last = first + self.buffer
            if last >= self.rows:
                last = self.rows
            else:
                fitting = int(np.searchsorted(ends, last, side="right"))
                whole = int(ends[fitting - 1]) if fitting else 0
                # at the end of a row group, unless half of the buffer would stay empty
                last = (whole if 2 * (whole - first) >= self.buffer else last) // self.batch * self.batch
            found.append(Span(len(found), first, last))
            first = last
        return found

    def order(self, epoch: int, span: Span) -> Ints:
        """The permutation of a window's rows."""
        return np.random.default_rng([self.seed, epoch, span.number, ROWS]).permutation(len(span))

    def windows(self, epoch: int, row: int = 0) -> Iterator[tuple[Span, LoggedData]]:
        """The windows of an epoch from the one with row number `row` of the sequence on; their rows as in the file."""
        spans = [span for span in self.spans(epoch) if span.last > row]
        if not spans:
            return
        portions = _Portions(self._from(epoch, spans[0].first))
        for span in spans:
            yield span, portions.take(len(span))

    def _groups(self, epoch: int) -> Ints:
        return np.random.default_rng([self.seed, epoch, 0, GROUPS]).permutation(len(self._sizes))

    def _from(self, epoch: int, row: int) -> Iterator[LoggedData]:
        """The epoch's sequence in chunks, from a row on; row groups that lie before it are not read."""
        for group in self._groups(epoch).tolist():
            size = int(self._sizes[group])
            if row < size:
                yield from self._rest(group, row, size)
            row = max(0, row - size)

    def _rest(self, group: int, skipped: int, size: int) -> Iterator[LoggedData]:
        """A row group from a row on."""
        seen = 0
        for chunk in self.source.group_chunks(group, min(CHUNK, self.buffer)):
            left_out = max(0, skipped - seen)
            seen += len(chunk)
            if seen > size:
                break
            if left_out < len(chunk):
                yield chunk if not left_out else chunk.rows(slice(left_out, None))
        if seen != size:
            raise DataError(f"row group {group} of the log has other rows than when it was read before; open it again")


class _Portions:
    """Chunks of any size, handed out in portions of another."""

    def __init__(self, chunks: Iterator[LoggedData]) -> None:
        self._chunks, self._left = chunks, list[LoggedData]()

    def take(self, rows: int) -> LoggedData:
        """The next rows."""
        portion = gathered(self._parts(rows), rows)
        for name in ("origin", "positions"):  # of a chunk that it begins with a part of
            portion._set(name, None)
        return portion

    def _parts(self, rows: int) -> Iterator[LoggedData]:
        while rows:
            chunk = self._left.pop() if self._left else next(self._chunks)
            if len(chunk) > rows:
                self._left.append(chunk.rows(slice(rows, None)))
                chunk = chunk.rows(slice(0, rows))
            rows -= len(chunk)
            yield chunk


__all__ = ["ShuffledRows", "Span"]
