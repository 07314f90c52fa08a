"""Reading any log file: its format is told by its name, and by the formats there are (`manyarms.logs.formats`)."""

from __future__ import annotations

from pathlib import Path

from manyarms.logs.columns import Columns
from manyarms.logs.data import LoggedData
from manyarms.logs.formats.base import tables_in
from manyarms.logs.gaps import EstimateOption
from manyarms.logs.table_log import CatalogueOption, EncoderOption, SpoolOption, TableLog


def open_log(
    path: Path | str,
    columns: Columns | None = None,
    *,
    action_count: int | None = None,
    catalogue: CatalogueOption = None,
    encoder: EncoderOption = None,
    drop_missing: bool = False,
    estimate_missing: EstimateOption = False,
    spool: SpoolOption = False,
) -> TableLog:
    """A log file as a source of chunks; one chunk is in memory at a time. The arguments are those of TableLog.

    Parquet is streamed: every pass reads the file, unless `spool` keeps what was decoded (in memory up to 256 MB, in a temporary
    file beyond). CSV is parsed once and always spooled; dsjson is read into memory.
    """
    return TableLog(
        tables_in(path), columns, action_count=action_count, catalogue=catalogue, encoder=encoder,
        drop_missing=drop_missing, estimate_missing=estimate_missing, spool=spool,
    )  # fmt: skip


def read_log(
    path: Path | str,
    columns: Columns | None = None,
    *,
    action_count: int | None = None,
    catalogue: CatalogueOption = None,
    encoder: EncoderOption = None,
    drop_missing: bool = False,
    estimate_missing: EstimateOption = False,
) -> LoggedData:
    """A log file in memory, its file read once; the arguments are those of TableLog. Tables of others keep their columns."""
    source = tables_in(path)
    return TableLog(
        source, columns, action_count=action_count, catalogue=catalogue, encoder=encoder, drop_missing=drop_missing, spool="fit",
        keep_columns=source.stated.action_count is None,
        estimate_missing=estimate_missing,
    ).collect()  # fmt: skip


__all__ = ["open_log", "read_log"]
