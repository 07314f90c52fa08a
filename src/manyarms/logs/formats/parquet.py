"""Parquet in and out, row group by row group: a file may be larger than memory both ways."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from typing import Any, BinaryIO

from manyarms._base import validate
from manyarms._base.files import require_regular, write_atomically
from manyarms.errors import DataError, InvalidInput
from manyarms.logs.arrow import column_of_arrow, kind_of, pyarrow, schema_of, stated_in, table_of_log, unfit
from manyarms.logs.columns import Columns
from manyarms.logs.data import CHUNK, LoggedData, LogSource, a_log
from manyarms.logs.files import reading
from manyarms.logs.formats.base import FORMATS, LogFormat
from manyarms.logs.gaps import EstimateOption
from manyarms.logs.table_log import CatalogueOption, EncoderOption, TableLog
from manyarms.logs.tables import Kind, Table

BUFFER = 1 << 20  # bytes of a column read at a time, so that one huge row group needs no more memory than a small one
HARMLESS_ROWS = 1 << 24  # that any file may have
MOST_ROWS_A_BYTE = 1000  # where nothing changes from row to row, a few bytes may stand for any number of rows
MOST_ROWS = 1 << 26  # that a row group, or a batch of one, can hold


@FORMATS.register("parquet")
class ParquetTables(LogFormat):
    """A Parquet file as tables; only the columns asked for are read."""

    suffixes = (".parquet", ".pq")

    def __init__(self, path: Path | str) -> None:
        super().__init__(path)
        with self._open() as file:
            self._schema, self._metadata = file.schema_arrow, file.metadata
            self._version = self._now()
        self.row_count = int(self._metadata.num_rows)
        sizes = [self._metadata.row_group(group).num_rows for group in range(self._metadata.num_row_groups)]
        self._row_groups, self._firsts = tuple(sizes), tuple(accumulate(sizes, initial=0))
        if self.row_count > HARMLESS_ROWS and self.row_count > MOST_ROWS_A_BYTE * self.path.stat().st_size:
            raise DataError(
                f"{self.path}: states {self.row_count:,} rows in {self.path.stat().st_size:,} bytes, as no log does"
            )
        # beside the schema's own there is what was written last, when it was known
        self.stated = stated_in({**(self._schema.metadata or {}), **(self._metadata.metadata or {})}, self.name)

    def kinds(self) -> dict[str, Kind]:
        return {field.name: kind_of(field.type) for field in self._schema}

    def complaint(self, column: str) -> InvalidInput:
        return unfit(column, self._schema.field(column).type)

    def limits(self, column: str) -> tuple[int, int] | None:
        """From the statistics in the file's footer."""
        found: list[int] = []
        for group in range(self._metadata.num_row_groups):
            row_group = self._metadata.row_group(group)
            for place in range(row_group.num_columns):
                chunk = row_group.column(place)
                if chunk.path_in_schema == column:
                    known = chunk.statistics
                    if known is None or not known.has_min_max or not isinstance(known.max, int):
                        return None
                    found += [known.min, known.max]
        return (min(found), max(found)) if found else None

    def tables(self, columns: Sequence[str], rows: int) -> Iterator[Table]:
        first = 0
        with self._open() as file:
            batches = file.iter_batches(batch_size=min(rows, MOST_ROWS), columns=list(columns), use_threads=False)
            for batch in batches:
                named = zip(batch.schema.names, batch.columns, strict=True)
                yield Table({n: column_of_arrow(n, array, first) for n, array in named}, batch.num_rows, first)
                first += batch.num_rows
                del batch, named
            pyarrow("reading Parquet").default_memory_pool().release_unused()  # it keeps what it may need again

    def row_groups(self) -> tuple[int, ...]:
        return self._row_groups

    def group_tables(self, group: int, columns: Sequence[str], rows: int) -> Iterator[Table]:
        """One row group; refused once the file is another than when it was opened, since its rows would be others."""
        first, size = self._firsts[group], min(rows, MOST_ROWS)
        with self._open() as file:
            if self._now() != self._version:
                raise DataError(f"{self.path}: changed since it was opened; open the log again")
            for batch in file.iter_batches(size, row_groups=[group], columns=list(columns), use_threads=False):
                named = zip(batch.schema.names, batch.columns, strict=True)
                yield Table({n: column_of_arrow(n, array, first) for n, array in named}, batch.num_rows, first)
                first += batch.num_rows

    def _now(self) -> tuple[int, int]:
        told = self.path.stat()
        return told.st_size, told.st_mtime_ns

    @contextmanager
    def _open(self) -> Iterator[Any]:
        pa = pyarrow("reading Parquet")
        import pyarrow.parquet as parquet

        with reading(self.path):
            require_regular(self.path)
            try:
                str(self.path).encode("utf-8")
            except UnicodeEncodeError:  # a name that Linux allows
                raise DataError(f"{validate.describe(str(self.path))}: Arrow opens only names that are UTF-8") from None
            try:
                file = parquet.ParquetFile(self.path, buffer_size=BUFFER, pre_buffer=False)
                with file:
                    yield file
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
                reason = str(error).splitlines()[0]
                raise DataError(f"{self.path}: no readable Parquet file, or a truncated one ({reason})") from error


def read_parquet(
    path: Path | str,
    columns: Columns | None = None,
    *,
    action_count: int | None = None,
    catalogue: CatalogueOption = None,
    encoder: EncoderOption = None,
    drop_missing: bool = False,
    estimate_missing: EstimateOption = False,
) -> LoggedData:
    """A Parquet file in memory; the arguments are those of TableLog."""
    return TableLog(
        ParquetTables(path), columns, action_count=action_count, catalogue=catalogue, encoder=encoder,
        drop_missing=drop_missing,
        estimate_missing=estimate_missing, spool="fit",
    ).collect()  # fmt: skip


def to_parquet(source: LogSource, path: Path | str, *, rows_per_group: int = CHUNK) -> None:
    """Write a log, or a source of any size chunk by chunk; the file appears when it is complete, or not at all.

    Contexts are written as fixed-size lists. The number of actions, the catalogue, the encoder, the notes, and whether
    propensities are estimates travel in the file's metadata: `read_parquet` gives the same log back.
    """
    rows = min(validate.count("rows_per_group", rows_per_group), MOST_ROWS)
    a_log("source", source)
    pyarrow("writing Parquet")
    import pyarrow.parquet as parquet

    def write(stream: BinaryIO) -> None:
        writer: Any = None
        try:
            for chunk in source.chunks(rows):
                if writer is None:
                    schema = schema_of(chunk)
                    writer = parquet.ParquetWriter(stream, schema, compression="zstd", compression_level=1)
                writer.write_table(table_of_log(chunk, schema), row_group_size=rows)
        finally:
            if writer is not None:
                writer.close()

    write_atomically(path, write)


__all__ = ["ParquetTables", "read_parquet", "to_parquet"]
