"""CSV in and out; plain or gzipped, read in chunks after one pass that finds out what each column holds."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from gzip import GzipFile
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import numpy as np

from manyarms._base.typing import AnyArray
from manyarms._base.validate import describe
from manyarms.errors import DataError, InvalidInput
from manyarms.logs.assemble import CatalogueOption, EncoderOption, TableLog
from manyarms.logs.columns import ESTIMATE, Columns
from manyarms.logs.data import CHUNK, LoggedData, LogSource
from manyarms.logs.files import open_text, write_atomically
from manyarms.logs.tables import Column, Kind, Stated, Table, number_column, text_column

# what stands for a missing number; a missing text is an empty field
MISSING = frozenset({"", "NA", "N/A", "NaN", "nan", "null", "NULL", "None"})


@dataclass
class _Seen:
    """What a column was found to hold: the first rows with a number and with another text."""

    number: int | None = None
    text: int | None = None
    sample: str = ""
    whole: bool = True

    @property
    def kind(self) -> Kind:
        if self.number is not None and self.text is not None:
            return Kind("mixed")
        return Kind("number" if self.text is None else "text")


class CsvTables:
    """A CSV file with a header as tables. Numbers and texts in one column make it mixed: fine for ids only."""

    def __init__(self, path: Path | str, delimiter: str | None = None) -> None:
        self.path = Path(path)
        plain = self.path.with_suffix("") if self.path.suffix == ".gz" else self.path
        self.delimiter = delimiter or ("\t" if plain.suffix == ".tsv" else ",")
        if len(self.delimiter) != 1:
            raise InvalidInput("delimiter", describe(delimiter), "one character")
        self.header: list[str] = []
        self._rows = 0
        self._seen: dict[str, _Seen] = {}
        self._texts: frozenset[str] = frozenset()
        for rows in self._blocks(CHUNK // 8):
            for name, cells in zip(self.header, zip(*rows, strict=True), strict=True):
                self._look(self._seen.setdefault(name, _Seen()), cells, self._rows)
            self._rows += len(rows)

    @property
    def name(self) -> str:
        return str(self.path)

    @property
    def row_count(self) -> int | None:
        return self._rows

    @property
    def stated(self) -> Stated:
        return Stated()

    def kinds(self) -> dict[str, Kind]:
        return {name: self._kind(name) for name in self.header}

    def _kind(self, name: str) -> Kind:
        return self._seen[name].kind if name in self._seen and name not in self._texts else Kind("text")

    def complaint(self, column: str) -> InvalidInput:
        seen = self._seen[column]
        came = f"{describe(seen.sample)} at row {seen.text}, but a number at row {seen.number}"
        expected = "numbers, or texts, not both (Encoding(categorical=...) takes numbers as texts)"
        return InvalidInput(f"column {column!r}", came, expected)

    def as_texts(self, columns: Collection[str]) -> CsvTables:
        again = copy(self)
        again._texts = self._texts | set(columns)
        return again

    def largest(self, column: str) -> int | None:
        return None

    def tables(self, columns: Sequence[str], rows: int) -> Iterator[Table]:
        places = [self.header.index(name) for name in columns]
        first = 0
        for block in self._blocks(rows):
            cells = {name: [row[place] for row in block] for name, place in zip(columns, places, strict=True)}
            yield Table({name: self._column(name, texts) for name, texts in cells.items()}, len(block), first)
            first += len(block)

    def _column(self, name: str, cells: list[str]) -> Column:
        seen = self._seen[name]
        if self._kind(name).name != "number":
            return text_column(cell if cell else None for cell in cells)
        missing = np.array([cell.strip() in MISSING for cell in cells])
        filled = ["0" if gone else cell for cell, gone in zip(cells, missing, strict=True)]
        values = np.array(filled, dtype=object).astype(np.int64 if seen.whole else np.float64)
        return number_column(values, missing if missing.any() else None)

    def _look(self, seen: _Seen, cells: Sequence[str], first: int) -> None:
        if seen.text is None and (whole := _all_numbers(cells, seen.whole)) is not None:
            seen.whole = whole
            seen.number = first if seen.number is None else seen.number
            return
        for row, cell in enumerate(cells, start=first):
            kind = _kind_of_cell(cell)
            if kind == "text" and seen.text is None:
                seen.text, seen.sample = row, cell
            elif kind in ("whole", "number"):
                seen.whole &= kind == "whole"
                seen.number = row if seen.number is None else seen.number
            if seen.text is not None and seen.number is not None:
                return

    def _blocks(self, size: int) -> Iterator[list[list[str]]]:
        """Rows as lists of cells, all as long as the header."""
        with open_text(self.path) as stream:
            reader = csv.reader(stream, delimiter=self.delimiter, strict=True)
            try:
                header = next(reader, None)
                if not header:
                    raise DataError(f"{self.path}: the file is empty")
                if len(set(header)) < len(header):
                    twice = next(name for name in header if header.count(name) > 1)
                    raise DataError(f"{self.path}: the column {twice!r} is there twice")
                self.header = header
                done = 0
                while lines := list(islice(reader, size)):
                    block = [row for row in lines if row]  # an empty line is no row
                    for number, row in enumerate(block, start=done):
                        if len(row) != len(header):
                            raise DataError(
                                f"{self.path}: row {number} has {len(row)} fields, the header has {len(header)}"
                            )
                    if block:
                        yield block
                    done += len(block)
            except csv.Error as error:
                raise DataError(f"{self.path}: line {reader.line_num}: {error}") from error


class CsvLog(TableLog):
    """A LogSource over a CSV file of any size; the arguments are those of TableLog."""

    def __init__(
        self,
        path: Path | str,
        columns: Columns | None = None,
        *,
        action_count: int | None = None,
        catalogue: CatalogueOption = None,
        encoder: EncoderOption = None,
        drop_missing: bool = False,
        delimiter: str | None = None,
    ) -> None:
        super().__init__(
            CsvTables(path, delimiter), columns, action_count=action_count, catalogue=catalogue, encoder=encoder,
            drop_missing=drop_missing,
        )  # fmt: skip


def read_csv(
    path: Path | str,
    columns: Columns | None = None,
    *,
    action_count: int | None = None,
    catalogue: CatalogueOption = None,
    encoder: EncoderOption = None,
    drop_missing: bool = False,
    delimiter: str | None = None,
) -> LoggedData:
    """A CSV file (.csv, .tsv, also with .gz) in memory; the other arguments are those of TableLog."""
    return CsvLog(
        path, columns, action_count=action_count, catalogue=catalogue, encoder=encoder, drop_missing=drop_missing,
        delimiter=delimiter,
    ).collect()  # fmt: skip


def to_csv(source: LogSource, path: Path | str) -> None:
    """Write a log as CSV (gzipped if the name ends in .gz), whole or not at all; every number comes back bit for bit.

    A CSV file cannot say how many actions there are, nor keep the encoder and the notes: Parquet can. Estimated
    propensities go to a column `propensity_estimate`, so that the file says what they are.
    """
    path = Path(path)

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
    return list(values.tolist())  # csv writes floats by repr, which comes back bit for bit


def plain_columns(log: LoggedData) -> dict[str, AnyArray]:
    """A log as plain columns, vectors spread over numbered ones; actions by their ids where there is a catalogue."""
    columns: dict[str, AnyArray] = {f"context_{i}": log.contexts[:, i] for i in range(log.dim)}

    def ids(rows: AnyArray) -> AnyArray:
        return rows if log.catalogue is None else np.array(log.catalogue.ids(rows), dtype=np.str_)

    columns |= {"action": ids(log.actions), "reward": log.rewards}
    if log.propensities is not None:
        columns[ESTIMATE if log.propensities_are_estimates else "propensity"] = log.propensities
    if log.support is not None:
        columns |= {f"support_{i}": ids(log.support[:, i]) for i in range(log.support.shape[1])}
    if log.support_probabilities is not None:
        width = log.support_probabilities.shape[1]
        columns |= {f"support_probability_{i}": log.support_probabilities[:, i] for i in range(width)}
    for name, value in (("event_id", log.event_ids), ("timestamp", log.timestamps), ("group", log.groups)):
        if value is not None:
            columns[name] = value
    return columns


def _all_numbers(cells: Sequence[str], whole: bool) -> bool | None:
    """The usual case, fast: None unless every cell is a number; else whether all are whole."""
    array = np.array(cells, dtype=object)
    if "_" in "".join(cells):  # Python would read 1_000 as a number
        return None
    if whole:
        try:
            array.astype(np.int64)
            return True
        except (ValueError, OverflowError):
            pass
    try:
        return None if np.isnan(array.astype(np.float64)).any() else False
    except ValueError:
        return None


def _kind_of_cell(cell: str) -> str:
    if cell.strip() in MISSING:
        return "missing"
    if "_" in cell:
        return "text"
    try:
        int(cell)
        return "whole" if abs(int(cell)) < 2**63 else "number"
    except ValueError:
        pass
    try:
        float(cell)
        return "number"
    except ValueError:
        return "text"


__all__ = ["CsvLog", "CsvTables", "plain_columns", "read_csv", "to_csv"]
