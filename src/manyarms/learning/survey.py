"""A log that is larger than memory, as learning sees it: its row groups, and what one pass over it found before the first epoch.

The learning rate, the precision, the rows that a policy was learned from, whether a checkpoint is of the same run: all of these
are about the whole log. So is whether every row can be used at all, which is better said before the first step than hours later.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace

import numpy as np

from manyarms._base import validate
from manyarms._base.typing import AnyArray
from manyarms.errors import InvalidInput
from manyarms.estimators.base import Objective, Request
from manyarms.learning.defaults import ROWS
from manyarms.learning.settings import TrainingSettings
from manyarms.logs.data import CHUNK, LoggedData, LogSource, collect, concatenate
from manyarms.logs.row_groups import SMALLER, GroupedLog, RowGroups, in_row_groups
from manyarms.logs.row_sketch import RowSketch

WINDOW_BYTES = 1 << 27  # of a window's contexts and columns, on the host and on the device
COLUMN_BYTES = 96  # of a row beside its context: action, reward, propensity, what an objective makes of them
MOST_ROWS = 1 << 20
ALIKE = 1e-9  # by which a product of another number of rows may differ


@dataclass(frozen=True)
class StreamedRows:
    """A log in row groups, and what is known of all its rows.

    buffer: the most rows in a window. counts: the rounds of every row group. sample: some ten thousand rows, evenly spread.
    informative: the rows that rewards are as good as. reach: the largest context. grouped: whether rows have groups.
    estimated_share: of the propensities. rising: whether the objective rises with pi at all rows. sketch: of all rows. digest: of
    all that a log in memory would be told by.
    """

    source: GroupedLog
    buffer: int
    counts: tuple[int, ...]
    sample: LoggedData
    informative: float
    reach: float
    grouped: bool
    estimated_share: float
    rising: bool
    sketch: RowSketch
    digest: bytes

    def __len__(self) -> int:
        return sum(self.counts)

    @property
    def action_count(self) -> int:
        """K."""
        return self.sample.action_count

    @property
    def dim(self) -> int:
        """d, the length of a context."""
        return self.sample.dim

    @property
    def propensities_are_estimates(self) -> bool:
        """Whether some are."""
        return self.estimated_share > 0


def usual_buffer(dim: int, batch: int) -> int:
    """As many rows as make a window of 128 MB, and never less than 64 batches."""
    return max(64 * batch, min(MOST_ROWS, WINDOW_BYTES // (12 * dim + COLUMN_BYTES)))


def opened(log: LogSource, settings: TrainingSettings, buffer: int | None) -> LoggedData | GroupedLog:
    """A log that is read from files: in memory where one window would hold all of it, else in row groups."""
    source = in_row_groups(
        "log", log, "LoggedData, with its rows in memory (read_log), or a Parquet file or folder (open_log)"
    )
    rows = sum(source.row_groups or ())
    return collect(source) if rows <= require_buffer(buffer, source.dim, settings.batch) else source


def divided(source: GroupedLog, share: float, seed: int) -> tuple[GroupedLog, LogSource]:
    """Whole row groups held out: what is left to learn from, and those. Rows in groups (users, sessions) may lie in several."""
    if next(iter(source.chunks())).groups is not None:
        raise InvalidInput(
            "validation", "a share of a log with groups (users, sessions), which row groups would cut apart",
            "a log of other groups, written to a file of its own",
        )  # fmt: skip
    whole = source if isinstance(source, RowGroups) else RowGroups(source)
    if len(whole.row_groups) < 2:
        raise InvalidInput(
            "validation", f"{share:g} of a log of one row group", f"a held-out log of its own, or 0; {SMALLER}"
        )
    return whole.split(share, seed)


def survey(source: GroupedLog, objective: Objective, buffer: int) -> StreamedRows:
    """One pass over a source: every row is read, checked and prepared once."""
    stated = sum(source.row_groups or ())
    found = _Found(objective.resolved(max(1, stated)), max(1, stated // ROWS), stated)
    counts = []
    for group in range(len(source.row_groups or ())):
        before = found.rows
        for chunk in source.group_chunks(group, min(CHUNK, buffer)):
            found.see(chunk)
        counts.append(found.rows - before)
    if not found.rows:
        raise InvalidInput("log", "no row that is complete", "at least one round")
    found.sketch.end_of_log()
    found.digest.update(found.sketch.arrays()["logs"].tobytes())
    found.digest.update(np.array([buffer, *counts]).tobytes())
    return StreamedRows(
        source, buffer, tuple(counts), concatenate(found.sample, chunks=True), found.informative, found.reach,
        found.grouped, found.estimated / found.rows, found.rising, found.sketch, found.digest.digest(),
    )  # fmt: skip


@dataclass
class _Found:
    """Sums over the rows seen so far."""

    objective: Objective
    every: int
    stated: int
    rows: int = 0
    sample: list[LoggedData] = field(default_factory=list)
    largest: float = 0.0  # reward; sums are over rewards in units of it
    total: float = 0.0
    squares: float = 0.0
    reach: float = 0.0
    grouped: bool = False
    estimated: int = 0
    rising: bool = True
    sketch: RowSketch = field(default_factory=RowSketch)
    digest: hashlib.blake2b = field(default_factory=lambda: hashlib.blake2b(digest_size=16))

    def see(self, chunk: LoggedData) -> None:
        request = self.objective.prepare_part(chunk, self.stated)
        if not self.rows:
            _require_alike(self.objective, chunk, request, self.stated)
        chosen = np.arange(-self.rows % self.every, len(chunk), self.every)
        if len(chosen):
            some = chunk.rows(chosen)
            self.sample.append(replace(some, origin=None, positions=None))  # which would hold the whole chunk
        self.rows += len(chunk)
        self._sum(np.abs(chunk.rewards))
        self.reach = max(self.reach, float(chunk.contexts.max()), -float(chunk.contexts.min()))
        self.grouped |= chunk.groups is not None
        self.estimated += int(chunk.estimated_rows.sum())
        self.rising &= request.rising
        self.sketch.add(chunk)
        parts: list[AnyArray | None] = [chunk.propensities, chunk.support, chunk.support_probabilities, chunk.estimated]
        parts += [column for _, column in sorted(request.columns.items()) if not callable(column)]
        for part in parts:
            if part is not None:
                self.digest.update(np.ascontiguousarray(part).tobytes())

    @property
    def informative(self) -> float:
        """(sum |r|)^2 / sum r^2, at least 1."""
        return max(1.0, self.total**2 / max(self.squares, 1e-300))

    def _sum(self, sizes: AnyArray) -> None:
        top = max(self.largest, float(sizes.max()))
        if not top:
            return
        shrunk, sizes = self.largest / top, sizes / top
        self.total = self.total * shrunk + float(sizes.sum())
        self.squares = self.squares * shrunk**2 + float((sizes**2).sum())
        self.largest = top


def _require_alike(objective: Objective, chunk: LoggedData, whole: Request, rounds: int) -> None:
    """Refuse a function g, for one, that makes another number of a row among other rows."""
    half = max(1, len(chunk) // 2)
    part = objective.prepare_part(chunk.rows(slice(0, half)), rounds)
    for name, column in whole.columns.items():
        other = part.columns[name]
        if not callable(column) and not callable(other) and not np.allclose(column[:half], other, ALIKE, 0.0):
            raise InvalidInput(
                "objective", f"{objective.label}, whose {name} of a row depends on the other rows",
                "one that looks at rows one by one, or the log in memory (read_log)",
            )  # fmt: skip


def require_buffer(buffer: int | None, dim: int, batch: int) -> int:
    """The rows of a window: as given, or as many as make 128 MB."""
    if buffer is None:
        return usual_buffer(dim, batch)
    found = validate.count("buffer", buffer)
    if found < 2 * batch:
        raise InvalidInput("buffer", found, f"at least two batches, {2 * batch} rows")
    return found


__all__ = ["StreamedRows", "divided", "opened", "require_buffer", "survey", "usual_buffer"]
