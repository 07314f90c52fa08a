"""CSV in and out; plain or gzipped. A file is parsed once: what its columns hold is known only at its end, so rows are spooled.

A block of cells is a column of numbers where all of them are, and of texts otherwise. Numbers lose how they were written (01234,
1e3, NA), so the spellings that cannot be told from the number are kept beside it: any column can be read as texts afterwards.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from gzip import GzipFile
from itertools import chain, islice
from pathlib import Path
from typing import BinaryIO

import numpy as np

from manyarms._base.files import write_atomically
from manyarms._base.typing import AnyArray, Ints
from manyarms._base.validate import describe
from manyarms.errors import DataError, InvalidInput
from manyarms.logs.columns import Columns
from manyarms.logs.data import CHUNK, LoggedData, LogSource, a_log, written_columns
from manyarms.logs.files import open_text
from manyarms.logs.formats.base import FORMATS, LogFormat
from manyarms.logs.gaps import EstimateOption
from manyarms.logs.spool import Spool
from manyarms.logs.table_columns import is_number
from manyarms.logs.table_log import CatalogueOption, EncoderOption, TableLog
from manyarms.logs.tables import Column, Kind, Table, number_column, text_column

# what stands for a missing number; a missing text is an empty field
MISSING = frozenset({"", "NA", "N/A", "NaN", "nan", "null", "NULL", "None"})
BLOCK = CHUNK // 8  # rows parsed at a time: cells are Python strings, which are large


@dataclass
class _Seen:
    """What a column was found to hold: the first lines with a number and with another text."""

    number: int | None = None
    text: int | None = None
    sample: str = ""
    integer: bool = True

    @property
    def kind(self) -> Kind:
        if self.number is not None and self.text is not None:
            return Kind("mixed")
        return Kind("number" if self.text is None else "text")

    def see(self, column: Column, lines: Ints) -> None:
        """Take note of a block whose rows begin at some lines."""
        if column.categories is None:
            present = ~column.absent
            if present.any():
                self.integer &= column.values.dtype.kind == "i"
                self.number = int(lines[np.argmax(present)]) if self.number is None else self.number
            return
        texts = [text for text in column.categories.tolist() if text.strip() not in MISSING]
        numbers = [text for text in texts if is_number(text)]
        if self.number is None and numbers:
            self.number = int(lines[_first_of(column, numbers)])
        if self.text is None:
            row = _first_of(column, set(texts) - set(numbers))
            self.text, self.sample = int(lines[row]), str(column.categories[column.values[row]])


@FORMATS.register("csv")
class CsvTables(LogFormat):
    """A CSV file with a header as tables. Numbers and texts in one column make it mixed: fine for ids only."""

    suffixes = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
    rereads = False

    def __init__(self, path: Path | str, delimiter: str | None = None) -> None:
        super().__init__(path)
        usual = "\t" if self.path.name.lower().endswith((".tsv", ".tsv.gz")) else ","
        self.delimiter = usual if delimiter is None else delimiter
        if not isinstance(self.delimiter, str) or len(self.delimiter) != 1 or self.delimiter in '"\r\n\0 ':
            raise InvalidInput(
                "delimiter", describe(delimiter), "one character, not a quote, a blank or the end of a line"
            )
        self._told = delimiter is not None
        self.header: list[str] = []
        self._seen: dict[str, _Seen] = {}
        self._texts: frozenset[str] = frozenset()
        self._spool, self._spellings = Spool(), Spool()
        for lines, rows in self._blocks(BLOCK):
            columns, spellings = dict[str, Column](), dict[str, Column]()
            first: int | Ints = int(lines[0]) if lines[-1] - lines[0] == len(lines) - 1 else lines
            for name, cells in zip(self.header, zip(*rows, strict=True), strict=True):
                columns[name], spelled = _parsed(cells)
                if spelled is not None:
                    spellings[name] = spelled
                self._seen.setdefault(name, _Seen()).see(columns[name], lines)
            self._spool.add(Table(columns, len(rows), first, "line"))
            self._spellings.add(Table(spellings, len(rows), first, "line"))
        self.row_count = self._spool.rows

    def kinds(self) -> dict[str, Kind]:
        return {name: self._kind(name) for name in self.header}

    def _kind(self, name: str) -> Kind:
        return self._seen[name].kind if name in self._seen and name not in self._texts else Kind("text")

    def complaint(self, column: str) -> InvalidInput:
        seen = self._seen[column]
        came = f"{describe(seen.sample)} at line {seen.text}, but a number at line {seen.number}"
        expected = "numbers, or texts, not both (Encoding(categorical=...) takes numbers as texts)"
        return InvalidInput(f"column {column!r}", came, expected)

    def as_texts(self, columns: Collection[str]) -> CsvTables:
        again = copy(self)
        again._texts = self._texts | set(columns)
        return again

    def tables(self, columns: Sequence[str], rows: int) -> Iterator[Table]:
        for block, spelled in zip(self._spool.tables(columns), self._spellings.tables(columns), strict=True):
            found = {name: self._column(name, block[name], spelled.columns.get(name)) for name in columns}
            yield from Table(found, block.rows, block.first_row, block.unit).chunks(rows)

    def _column(self, name: str, column: Column, spelled: Column | None) -> Column:
        """A block's column as what the file's column is."""
        if column.categories is not None:
            return column
        if self._kind(name).name == "number":
            return column if self._seen[name].integer else Column(column.values.astype(np.float64), column.missing)
        cells = ["" if gone else repr(v) for v, gone in zip(column.values.tolist(), column.absent, strict=True)]
        if spelled is not None and spelled.categories is not None:
            for row, text in zip(spelled.values.tolist(), spelled.categories.tolist(), strict=True):
                cells[row] = text
        return text_column(cell or None for cell in cells)

    def _blocks(self, size: int) -> Iterator[tuple[Ints, list[list[str]]]]:
        """Rows as lists of cells, all as long as the header, and the lines that they begin at."""
        with open_text(self.path) as stream:
            first = stream.readline()
            if not self._told and self.delimiter not in first:  # spreadsheets write semicolons
                self.delimiter = next((one for one in ";\t,|" if one in first), self.delimiter)
            reader = csv.reader(chain([first] if first else [], stream), delimiter=self.delimiter, strict=True)
            try:
                header = next(reader, None)
                if not header:
                    raise DataError(f"{self.path}: the file is empty")
                if len(set(header)) < len(header):
                    twice = next(name for name in header if header.count(name) > 1)
                    raise DataError(f"{self.path}: the column {twice!r} is there twice")
                self.header = header
                last = reader.line_num
                while read := [(row, reader.line_num) for row in islice(reader, size)]:
                    ends = np.array([last, *(end for _, end in read)])
                    last = int(ends[-1])
                    full = [bool(row) for row, _ in read]  # an empty line is no row
                    numbers, block = ends[:-1][full] + 1, [row for row, _ in read if row]
                    for number, row in zip(numbers, block, strict=True):
                        if len(row) != len(header):
                            raise DataError(
                                f"{self.path}: line {number} has {len(row)} fields, the header has {len(header)}"
                            )
                    if block:
                        yield numbers, block
            except csv.Error as error:
                raise DataError(f"{self.path}: line {reader.line_num}: {error}") from error


def read_csv(
    path: Path | str,
    columns: Columns | None = None,
    *,
    action_count: int | None = None,
    catalogue: CatalogueOption = None,
    encoder: EncoderOption = None,
    drop_missing: bool = False,
    estimate_missing: EstimateOption = False,
    delimiter: str | None = None,
) -> LoggedData:
    """A CSV file (.csv, .tsv, also with .gz) in memory; the other arguments are those of TableLog."""
    return TableLog(
        CsvTables(path, delimiter), columns, action_count=action_count, catalogue=catalogue, encoder=encoder,
        drop_missing=drop_missing, estimate_missing=estimate_missing,
    ).collect()  # fmt: skip


def to_csv(source: LogSource, path: Path | str) -> None:
    """Write a log as CSV (gzipped if the name ends in .gz), complete or not at all; every number comes back bit for bit.

    A CSV file cannot say how many actions there are, nor keep the encoder and the notes: Parquet can. Estimated
    propensities go to a column `propensity_estimate`, so that the file says what they are.
    """
    path = Path(path)
    a_log("source", source)

    def write(stream: BinaryIO) -> None:
        if path.suffix == ".gz":
            with GzipFile(filename="", mode="wb", fileobj=stream, mtime=0) as packed:
                _write_rows(source, packed)  # type: ignore[arg-type]
        else:
            _write_rows(source, stream)

    write_atomically(path, write)


def _write_rows(source: LogSource, stream: BinaryIO) -> None:
    text = io.TextIOWrapper(stream, encoding="utf-8", newline="", write_through=False)
    writer = csv.writer(text, lineterminator="\n")
    header: list[str] = []
    for chunk in source.chunks(CHUNK // 8):
        columns = plain_columns(chunk)
        if not header:
            header = list(columns)
            writer.writerow(header)
        writer.writerows(zip(*(_cells(values) for values in columns.values()), strict=True))
    text.flush()
    text.detach()  # the stream is its owner's to close


def _cells(values: AnyArray) -> list[object]:
    if values.dtype.kind == "M":
        return ["" if np.isnat(value) else str(value) for value in values.astype("datetime64[us]")]
    if values.dtype.kind == "b":
        values = values.astype(np.int8)
    return list(values.tolist())  # csv writes floats by repr, which comes back bit for bit


def plain_columns(log: LoggedData) -> dict[str, AnyArray]:
    """A log as plain columns, vectors spread over numbered ones; actions by their ids where there is a catalogue."""
    columns: dict[str, AnyArray] = {}
    for name, values in written_columns(log).items():
        if log.catalogue is not None and name in ("action", "support"):
            values = log.catalogue.named(values)
            values = values if log.catalogue.numbered else values.astype(np.str_)
        if values.ndim == 1:
            columns[name] = values
        else:
            one = "support_probability" if name == "support_probabilities" else name
            columns |= {f"{one}_{i}": values[:, i] for i in range(values.shape[1])}
    return columns


def _parsed(cells: Sequence[str]) -> tuple[Column, Column | None]:
    """A block of cells as numbers if all are numbers or missing, else as texts; and the rows and spellings that numbers lose."""
    values, missing = _numbers(cells), None
    if values is None or (values.dtype.kind == "f" and np.isnan(values).any()):
        missing = np.array([cell.strip() in MISSING for cell in cells])
        filled = ["0" if gone else cell for cell, gone in zip(cells, missing, strict=True)]
        values = _numbers(filled)
    if values is None:
        return text_column(cell if cell else None for cell in cells), None
    column = number_column(values, missing)
    lost = {
        row: cell
        for row, (cell, value, gone) in enumerate(zip(cells, values.tolist(), column.absent.tolist(), strict=True))
        if cell != ("" if gone else repr(value))
    }
    if not lost:
        return column, None
    return column, Column(np.array(list(lost)), None, np.array(list(lost.values()), dtype=np.str_))


def _numbers(cells: Sequence[str]) -> AnyArray | None:
    """The cells as integers, or else as floats; None where one of them is no number."""
    if "_" in "".join(cells):  # Python would read 1_000 as a number
        return None
    for dtype in (np.int64, np.float64):
        with suppress(ValueError, OverflowError):
            return np.array(cells, dtype=object).astype(dtype)
    return None


def _first_of(column: Column, texts: Collection[str]) -> int:
    """The first row of a text column that holds one of some texts."""
    assert column.categories is not None
    return int(np.argmax(np.isin(column.values, np.flatnonzero(np.isin(column.categories, list(texts))))))


__all__ = ["CsvTables", "plain_columns", "read_csv", "to_csv"]
