"""Inspection: what is in a log, what is wrong with it, and what to do about it, before anything is learned from it.

    found = inspect("rounds.parquet")
    for finding in found.findings:
        print(finding.level, finding.what, finding.advice, sep=": ")
    write_page(found, "inspection.html")

A log that `read_parquet` would refuse is inspected all the same: that is the point. One pass, in bounded memory.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from manyarms._base import validate
from manyarms._base.files import write_text_atomically
from manyarms._base.html import require_page
from manyarms._base.typing import FrameLike
from manyarms.errors import InvalidInput
from manyarms.logs.action_columns import are_ids, ids_note
from manyarms.logs.actions import ActionId
from manyarms.logs.columns import Columns, Resolved
from manyarms.logs.data import CHUNK, LoggedData, written_columns
from manyarms.logs.formats.base import tables_in
from manyarms.logs.frames import tables_of_frame
from manyarms.logs.inspection.findings import findings
from manyarms.logs.inspection.page import page
from manyarms.logs.inspection.statistics import LogStatistics
from manyarms.logs.inspection.summary import (
    MOST_SHOWN,
    ActionRow,
    Distribution,
    DuplicateCount,
    Finding,
    Histogram,
    Inspection,
    LogOverlap,
    MissingColumn,
    action_row,
    distribution,
    duplicate_count,
    missing_columns,
    overlap,
)
from manyarms.logs.table_log import TableLog
from manyarms.logs.tables import Column, MemoryTables, Stated, Table, TableSource, text_column
from manyarms.logs.usual_names import ESTIMATE


def inspect(
    source: Path | str | LoggedData | TableLog | TableSource | FrameLike,
    columns: Columns | None = None,
    *,
    action_count: int | None = None,
    rows_per_chunk: int = CHUNK,
) -> Inspection:
    """Look through a log once.

    source        a file of one of `manyarms.logs.FORMATS`, a log in memory, what `open_log` gives, or a data frame
    columns       which column is what, as for reading; guessed where not said
    action_count  how many actions there are, where the log does not say
    """
    if not isinstance(columns, Columns | None):
        raise InvalidInput("columns", validate.describe(columns), "Columns(...), or None")
    action_count = None if action_count is None else validate.count("action_count", action_count)
    rows_per_chunk = validate.count("rows_per_chunk", rows_per_chunk)
    tables, notes = _tables(source)
    if isinstance(source, TableLog):
        resolved, action_count = source.columns, action_count or source.action_count
    else:
        resolved = (Columns() if columns is None else columns).resolve(tables)
    kinds = tables.kinds()
    for name in resolved.all:
        if kinds[name].name == "unsupported":
            raise tables.complaint(name)
    statistics = LogStatistics(resolved, kinds)
    if kinds[resolved.action].name == "number":
        note = _ids_note(source, tables, resolved.action, action_count, rows_per_chunk)
        statistics.actions_are_ids = note is not None
        notes += (note,) if note else ()
    statistics.mixed = {
        name: str(tables.complaint(name).came) for name in resolved.context if kinds[name].name == "mixed"
    }
    for table in tables.tables(resolved.all, rows_per_chunk):
        statistics.see(table)
    if not statistics.rows:
        raise InvalidInput(tables.name, "no row", "at least one round")
    return _inspection(tables, resolved, statistics, action_count, notes)


def write_page(found: Inspection, path: Path | str) -> None:
    """The inspection as one HTML file."""
    write_text_atomically(require_page("path", path), page(found))


def _ids_note(source: Any, tables: TableSource, action: str, action_count: int | None, rows: int) -> str | None:
    """None where the integers of the action column are rows; what is said of it, or nothing, where they are ids."""
    if isinstance(source, TableLog):
        return None if source.catalogue is None else ""
    if tables.stated.catalogue_ids is not None:
        return ""
    if action_count is not None or tables.stated.action_count is not None:
        return None
    limits, rounds = tables.limits(action), tables.row_count
    if limits is None or rounds is None:
        columns = [table[action] for table in tables.tables([action], rows)]
        here = [column.values[~column.absent & (np.abs(column.values) < 2**63)] for column in columns]
        ends = [int(end) for some in here if some.size for end in (some.min(), some.max())]
        limits, rounds = (min(ends, default=0), max(ends, default=0)), sum(len(column) for column in columns)
    return ids_note(action, *limits, rounds) if are_ids(*limits, rounds) else None


def _tables(source: Any) -> tuple[TableSource, tuple[str, ...]]:
    if isinstance(source, TableLog):
        return source.source, source.notes
    if isinstance(source, (str, Path)):
        tables = tables_in(source, "source")
        return tables, tables.stated.notes
    if isinstance(source, LoggedData):
        return _tables_of_log(source, "the log"), source.notes
    if isinstance(source, TableSource):
        return source, ()
    return tables_of_frame(source), ()


def _tables_of_log(log: LoggedData, name: str) -> MemoryTables:
    """A log in memory as a table under the usual names."""
    ids = log.catalogue
    found: dict[str, Column] = {}
    for written, values in written_columns(log).items():
        column = "propensity" if written == ESTIMATE else written
        if values.dtype.kind != "U":
            found[column] = Column(values)
        elif column == "group":
            found[column] = text_column(values.tolist())
        elif values.any():
            found[column] = text_column(text or None for text in values.tolist())
    if ids is not None:
        found["action"] = Column(log.actions, None, np.array(list(ids), dtype=np.str_))
        found = {column: values for column, values in found.items() if not column.startswith("support")}
    stated = Stated(log.action_count, log.propensities_are_estimates, None if ids is None else tuple(ids))
    return MemoryTables(Table(found, len(log)), name, stated)


def _inspection(
    tables: TableSource, columns: Resolved, m: LogStatistics, action_count: int | None, notes: tuple[str, ...]
) -> Inspection:
    stated = tables.stated
    played = m.actions["rows"]
    seen = int((played > 0).sum())
    known = action_count if action_count is not None else stated.action_count
    count = known if known is not None else max(m.actions.size, 1)
    names = None if m.actions.ids is None else list(m.actions.ids)
    shares = played[played > 0] / max(played.sum(), 1)
    order = np.argsort(-played, kind="stable")[:MOST_SHOWN]
    dim = sum(max(c.widths) if c.widths else 1 for c in m.context.values())
    found = Inspection(
        source=tables.name,
        rows=m.rows,
        parts=_parts(columns),
        dim=dim,
        action_count=count,
        action_count_is_known=known is not None,
        actions_seen=seen,
        unseen=_unseen(m, count, stated.catalogue_ids),
        rarely_played=int(((played > 0) & (played < 5)).sum()),
        effective_actions=float(np.exp(-(shares * np.log(shares)).sum())) if seen else 0.0,
        most_played=tuple(action_row(m, int(slot), names) for slot in order if played[slot] > 0),
        rewards=distribution(m.rewards),
        propensities=None if columns.propensity is None else distribution(m.propensities, log_counts=m.log_counts),
        propensities_are_estimates=columns.propensities_are_estimates if columns.estimated is None else m.estimated > 0,
        estimated_share=float(columns.propensities_are_estimates)
        if columns.estimated is None
        else m.estimated / m.rows,
        overlap=None if columns.propensity is None else overlap(m, count, names),
        duplicate_events=None if columns.event_id is None else duplicate_count(m.events),
        duplicate_rows=duplicate_count(m.duplicate_rows),
        missing=missing_columns(m),
        first_time=None if m.first_time is None else str(m.first_time),
        last_time=None if m.last_time is None else str(m.last_time),
        out_of_order=None if columns.timestamp is None else m.earlier.count,
        groups=None if columns.group is None else m.groups.distinct,
        groups_are_exact=m.groups.exact,
        findings=(),
        notes=(*notes, *(() if any(map(_tells_guesses, notes)) else _guesses(columns, stated))),
    )
    return replace(found, findings=findings(m, found))


def _guesses(columns: Resolved, stated: Stated) -> tuple[str, ...]:
    """What was guessed, in one sentence; nothing in a file of ours."""
    guessed = "; ".join(columns.guesses) if not stated.action_count else ""
    return (f"guessed from the names: {guessed}",) if guessed else ()


def _tells_guesses(note: str) -> bool:
    """Whether a note of the source says already what was guessed, as those of an open log do."""
    return note.startswith("guessed from the names")


def _unseen(m: LogStatistics, count: int, ids: tuple[ActionId, ...] | None) -> tuple[str, ...]:
    if m.actions.ids is None:
        here = m.actions["rows"][:count] > 0
        never = np.flatnonzero(~here)[:MOST_SHOWN].tolist()
        beyond = range(len(here), min(count, len(here) + MOST_SHOWN - len(never)))  # above the largest that was played
        return tuple(str(row) for row in [*never, *beyond])
    unplayed = (name for name in ids or () if str(name) not in m.actions.ids)
    return tuple(str(name) for name, _ in zip(unplayed, range(MOST_SHOWN), strict=False))


def _parts(columns: Resolved) -> dict[str, str]:
    several = {"context": columns.context, "support": columns.support}
    single = ("action", "reward", "propensity", "event_id", "timestamp", "group")
    parts = {name: getattr(columns, name) for name in single if getattr(columns, name) is not None}
    for name, names in several.items():
        if names:
            parts[name] = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    return parts


__all__ = [
    "ActionRow", "Distribution", "DuplicateCount", "Finding", "Histogram", "Inspection", "LogOverlap", "MissingColumn",
    "inspect", "page", "write_page",
]  # fmt: skip
