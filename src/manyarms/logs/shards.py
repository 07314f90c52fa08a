"""A log in shards: consecutive rows that can be read without the others, each by another process.

    shards = shards_of(log)                       what lies where; nothing is read
    for part in chunks_of(log, shards[3]):        the rounds of one of them

A log in memory is cut by rows, a Parquet file or folder by its row groups, as many of them together as have about ROWS_EACH rows.
How a log is divided depends on the log alone, never on who reads it: sums over shards are then the same whoever does.

Rows are numbered as a pass over the whole log counts them. Where rows with something missing are left out (`drop_missing`), only
reading tells how many are left: `numbered_shards` has the workers of an engine count them first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from manyarms._base import validate
from manyarms.engine import Engine
from manyarms.errors import InvalidInput
from manyarms.logs.data import CHUNK, LoggedData, LogSource
from manyarms.logs.row_groups import RowGroups, in_row_groups
from manyarms.logs.table_log import TableLog

ROWS_EACH = 4 * CHUNK
DIVIDED = (
    "a log that can be divided: one in memory, or a Parquet file or folder (open_log); manyarms.logs.to_parquet converts "
    "any other"
)


@dataclass(frozen=True)
class Shard:
    """Consecutive rows of a log. first_row: how many come before them. groups: its row groups; None: these rows in memory."""

    first_row: int
    rows: int
    groups: range | None = None


def shards_of(log: LogSource, rows_each: int | None = None, *, argument: str = "log") -> list[Shard]:
    """A log in shards of about `rows_each` rows, in order; rows that are to be left out count like all others."""
    each = validate.count("rows_each", ROWS_EACH if rows_each is None else rows_each)
    if isinstance(log, LoggedData):
        return [Shard(start, min(each, len(log) - start)) for start in range(0, len(log), each)]
    sizes = in_row_groups(argument, log, DIVIDED).row_groups or ()
    shards: list[Shard] = []
    begin = first_row = rows = 0
    for group, size in enumerate(sizes):
        rows += size
        if rows >= each or group == len(sizes) - 1:
            shards.append(Shard(first_row, rows, range(begin, group + 1)))
            begin, first_row, rows = group + 1, first_row + rows, 0
    return shards


def chunks_of(log: LogSource, shard: Shard, rows: int = CHUNK) -> Iterator[LoggedData]:
    """The rounds of a shard in parts of at most `rows`, in order; nothing where all of them are left out."""
    rows = validate.count("rows", rows)
    if isinstance(log, LoggedData):
        end = shard.first_row + shard.rows
        for start in range(shard.first_row, end, rows):
            yield log.rows(slice(start, min(start + rows, end)))
        return
    source = in_row_groups("log", log, DIVIDED)
    for group in shard.groups or ():
        yield from source.group_chunks(group, rows)


def numbered_shards(engine: Engine, log: LogSource, shards: Sequence[Shard] | None = None) -> list[Shard]:
    """The shards of a log, numbered by the rows that are left of them; those without any are left out.

    Where rows may be left out, this takes a pass over the log, by the engine's workers.
    """
    found = shards_of(log) if shards is None else list(shards)
    if not leaves_rows_out(log):
        return found
    rows_of = dict(engine.map(_rows_left, found, common=log))
    left = [rows_of[shard] for shard in found]
    if not any(left):
        raise InvalidInput("log", "no row that is complete", "at least one round")
    firsts = accumulate(left, initial=0)
    numbered = [
        replace(shard, first_row=first, rows=rows) for shard, first, rows in zip(found, firsts, left, strict=False)
    ]
    return [shard for shard in numbered if shard.rows]


def leaves_rows_out(log: LogSource) -> bool:
    """Whether a log may give fewer rows than it states; of a log that is none of ours nobody knows."""
    if isinstance(log, RowGroups):
        return leaves_rows_out(log.source)
    return log.drop_missing if isinstance(log, TableLog) else not isinstance(log, LoggedData)


def _rows_left(shard: Shard, log: LogSource) -> int:
    return sum(map(len, chunks_of(log, shard)))


__all__ = ["ROWS_EACH", "Shard", "chunks_of", "leaves_rows_out", "numbered_shards", "shards_of"]
