"""Data frames in and out: pandas, polars, Arrow tables, what else narwhals knows, and plain mappings from names to arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from manyarms._base import validate
from manyarms._base.typing import AnyArray, FrameLike
from manyarms.errors import InvalidInput, MissingExtra
from manyarms.logs.arrow import column_of_arrow, kind_of, pyarrow, schema_of, stated_in, table_of_log, unfit
from manyarms.logs.columns import Columns
from manyarms.logs.data import LoggedData, LogSource, collect
from manyarms.logs.formats.csv import plain_columns
from manyarms.logs.frame_columns import eager, frame_tables
from manyarms.logs.gaps import EstimateOption
from manyarms.logs.table_log import CatalogueOption, EncoderOption, TableLog
from manyarms.logs.tables import Column, MemoryTables, Table, TableSource

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow as pyarrow_


def from_frame(
    frame: FrameLike,
    columns: Columns | None = None,
    *,
    action_count: int | None = None,
    catalogue: CatalogueOption = None,
    encoder: EncoderOption = None,
    drop_missing: bool = False,
    estimate_missing: EstimateOption = False,
) -> LoggedData:
    """A log from a frame; the other arguments are those of TableLog.

    >>> frame = {"age": [31.0, 47.0], "item": ["pear", "fig"], "click": [0, 1], "propensity": [0.5, 0.25]}
    >>> log = from_frame(frame, Columns(context=["age"], action="item"))
    >>> log.actions, list(log.catalogue), log.notes
    (array([0, 1]), ['pear', 'fig'], ("guessed from the names in the frame: reward is the column 'click'",))
    """
    return TableLog(
        tables_of_frame(frame), columns, action_count=action_count, catalogue=catalogue, encoder=encoder,
        drop_missing=drop_missing, estimate_missing=estimate_missing,
    ).collect()  # fmt: skip


def tables_of_frame(frame: Any) -> TableSource:
    """A frame as a source of tables; Arrow tables keep what `to_arrow` wrote into their metadata."""
    if isinstance(frame, Mapping):
        return _owned(frame_tables(frame))
    frame = eager(frame)
    if not (hasattr(frame, "schema") and hasattr(frame, "combine_chunks")):
        return _owned(frame_tables(frame))
    pa = pyarrow("reading Arrow")
    columns: dict[str, Column] = {}
    complaints: dict[str, InvalidInput] = {}
    for field in frame.schema:
        if kind_of(field.type).name == "unsupported":
            complaints[field.name] = unfit(field.name, field.type)
        else:
            chunks = frame.column(field.name).chunks
            array = chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks or [pa.array([], field.type)])
            columns[field.name] = column_of_arrow(field.name, array, 0)
    stated = stated_in(frame.schema.metadata, "the table")
    return MemoryTables(Table(columns, frame.num_rows), "the table", stated, complaints)


def _owned(source: MemoryTables) -> MemoryTables:
    """The same tables in arrays that do not change with the caller's: a log keeps its original columns."""
    columns = {name: replace(one, values=_locked(one.values)) for name, one in source.table.columns.items()}
    return replace(source, table=replace(source.table, columns=columns))


def _locked(values: AnyArray) -> AnyArray:
    """An array that nobody can write to: a copy, unless there is no writable array under it (Arrow's and polars' have none)."""
    under: object = values
    while isinstance(under, np.ndarray):
        if under.flags.writeable:
            return validate.owned(values)
        under = under.base
    return values


def to_arrow(source: LogSource) -> pyarrow_.Table:
    """A log as an Arrow table, contexts as fixed-size lists, with all that a log knows about itself in the metadata."""
    log = collect(source)
    return table_of_log(log, schema_of(log))


def to_pandas(source: LogSource) -> pandas.DataFrame:
    """A log as a pandas frame with one column for each entry of a context; see `to_csv` for what that leaves out."""
    return cast("pandas.DataFrame", _library("pandas").DataFrame(plain_columns(collect(source))))


def to_polars(source: LogSource) -> polars.DataFrame:
    """A log as a polars frame with one column for each entry of a context; see `to_csv` for what that leaves out."""
    columns = {name: np.ascontiguousarray(v) for name, v in plain_columns(collect(source)).items()}
    return cast("polars.DataFrame", _library("polars").DataFrame(columns))


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingExtra(name, "frames", f"making a {name} frame") from error


__all__ = ["from_frame", "tables_of_frame", "to_arrow", "to_pandas", "to_polars"]
