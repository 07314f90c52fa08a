"""The columns that a log was made from, for whoever wants to read them as they were (functions of columns, other encoders).

A log in memory that came from a frame keeps the frame's columns: copies, where somebody could write to the frame's own. A file is
read again: `with_original_columns` gives a source whose chunks have all columns of their rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from manyarms._base import validate
from manyarms._base.typing import AnyArray
from manyarms.errors import InvalidInput
from manyarms.logs.data import LoggedData, LogSource
from manyarms.logs.tables import Column, Table


def original_columns(log: LoggedData, purpose: str) -> Table:
    """The columns of a log's rounds, or the reason why there are none."""
    if log.original is None:
        raise InvalidInput(
            "log", "a log without its original columns", f"for {purpose}, one that has them: from_frame(...), read_log(...) or "
            "open_log(...) of a table",
        )  # fmt: skip
    return log.original


def with_original_columns(log: LogSource, purpose: str) -> LogSource:
    """A log whose chunks have their original columns: itself, or a source that reads them beside what it read anyway."""
    if isinstance(log, LoggedData):
        original_columns(log, purpose)
        return log
    also = getattr(log, "with_original_columns", None)
    if not callable(also):
        raise InvalidInput(
            "log", validate.describe(log), f"for {purpose}, a log in memory with its columns, or open_log(...)"
        )
    found: LogSource = also()
    return found


def column_in(table: Table, name: str, argument: str) -> Column:
    """A column by its name."""
    if name not in table.columns:
        some = ", ".join(map(repr, list(table.columns)[:12])) + (", ..." if len(table.columns) > 12 else "")
        raise InvalidInput(argument, f"no column {name!r} in the log", f"one of {some}")
    return table.columns[name]


def plain(column: Column) -> AnyArray:
    """A column as an array: numbers (NaN where missing), times (NaT), or Python strings (None)."""
    if column.categories is not None:
        known: AnyArray = np.array([*column.categories.tolist(), None], dtype=object)  # the code -1 takes the last one
        return known[column.values]
    if column.missing is None:
        return column.values
    values = column.values.astype(np.float64) if column.values.dtype.kind in "biu" else column.values.copy()
    values[column.missing] = np.datetime64("NaT", "us") if values.dtype.kind == "M" else np.nan
    return values


def plain_columns(table: Table, names: Sequence[str] | None = None) -> dict[str, AnyArray]:
    """Columns as arrays by name, all unless some are named."""
    return {name: plain(column) for name, column in table.columns.items() if names is None or name in names}


__all__ = ["column_in", "original_columns", "plain", "plain_columns", "with_original_columns"]
