"""Columns of frames: pandas, polars, Arrow and whatever else narwhals knows, and plain mappings from names to values.

narwhals is imported when the first frame comes; mappings of lists and arrays need nothing of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from manyarms._base.typing import Bools
from manyarms._base.validate import describe
from manyarms.errors import InvalidInput
from manyarms.logs.tables import Column, MemoryTables, Table, column_of, text_column


def table_of(frame: Any, columns: Sequence[str]) -> Table:
    """Some columns of a pandas or polars frame, of an Arrow table, or of a mapping from names to values."""
    source = frame_tables(frame, columns)
    for error in source.complaints.values():
        raise error
    return source.table


def frame_tables(frame: Any, columns: Sequence[str] | None = None) -> MemoryTables:
    """The columns of a frame, all unless some are named; what is no column of a log is only complained of when used."""
    frame = frame if isinstance(frame, Mapping) else eager(frame)
    names = frame if isinstance(frame, Mapping) else getattr(frame, "column_names", getattr(frame, "columns", None))
    if names is None or not hasattr(frame, "__getitem__"):
        raise InvalidInput("frame", f"a {type(frame).__name__}", "a data frame, an Arrow table or a mapping of columns")
    found: dict[str, Column] = {}
    complaints: dict[str, InvalidInput] = {}
    for key in list(names):
        name = str(key)
        if name in found or name in complaints:
            raise InvalidInput("frame", f"the column {name!r} twice", "columns of different names")
        if columns is None or name in columns:
            try:
                found[name] = _series(name, frame[key])
            except InvalidInput as error:
                complaints[name] = error
    lengths = {name: len(column) for name, column in found.items()}
    for name, length in lengths.items():
        if length != next(iter(lengths.values())):
            came = f"{length} rows in column {name!r}"
            raise InvalidInput("frame", came, f"{next(iter(lengths.values()))} rows, as in the first column")
    return MemoryTables(Table(found, next(iter(lengths.values()), 0)), complaints=complaints)


def _series(name: str, series: Any) -> Column:
    if isinstance(series, np.ma.MaskedArray):
        return column_of(name, series.data, np.ma.getmaskarray(series)) if series.ndim == 1 else column_of(name, series)
    if isinstance(series, (np.ndarray, list, tuple, range)):
        return column_of(name, np.asarray(series) if isinstance(series, range) else series)
    if isinstance(series, str | bytes) or not (hasattr(series, "to_numpy") or isinstance(series, Iterable)):
        raise InvalidInput(f"column {name!r}", describe(series), "an entry for every row, in an array or a list")
    return _column_of_series(name, series)


def eager(frame: Any) -> Any:
    """A frame whose columns can be taken one by one: what is only a plan of one (polars' lazy frames, DuckDB) is carried out."""
    import narwhals as nw

    try:
        found = nw.from_native(frame, pass_through=True)
    except Exception:  # a frame that its library allows and narwhals does not: what is wrong with it is said later
        return frame
    if isinstance(found, nw.LazyFrame):
        return found.collect().to_native()
    if not isinstance(found, nw.DataFrame) and (
        hasattr(frame, "__arrow_c_stream__") or hasattr(frame, "__arrow_c_array__")
    ):
        from manyarms.logs.arrow import pyarrow

        return pyarrow("reading Arrow").table(frame)
    return frame


def _column_of_series(name: str, series: Any) -> Column:
    """A column of a frame; every library has its own idea of a missing entry, and narwhals knows them."""
    import narwhals as nw

    found = nw.from_native(series, series_only=True, pass_through=True)
    if not isinstance(found, nw.Series):
        if hasattr(series, "to_pylist"):  # an array of Arrow, without chunks
            return column_of(name, series.to_pylist())
        return column_of(name, series.to_numpy() if hasattr(series, "to_numpy") else list(series))
    kind = found.dtype
    missing: Bools = np.asarray(found.is_null().to_numpy(), dtype=np.bool_)
    if kind.is_numeric() or kind == nw.Boolean:
        return column_of(name, found.fill_null(kind != nw.Boolean and 0).to_numpy(), missing)
    if kind in (nw.Datetime, nw.Date):
        if getattr(kind, "time_zone", None) is not None:
            found = found.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
        return column_of(name, found.to_numpy(), missing)
    entries = [None if gone else value for value, gone in zip(found.to_list(), missing.tolist(), strict=True)]
    # where pandas has Python objects and all are missing, nothing says that they were texts
    texts = kind == nw.String and not (missing.all() and getattr(series, "dtype", None) == np.dtype(object))
    return text_column(entries) if texts else column_of(name, entries, missing)


__all__ = ["eager", "frame_tables", "table_of"]
