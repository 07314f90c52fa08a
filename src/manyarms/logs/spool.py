"""Spool: tables that were decoded once, for as many passes as are needed.

What a log must know before its first round (the ids, the encoder) takes a pass of its own, and what reads a log may take several.
Files that are slow to decode are therefore decoded once: small ones stay in memory, large ones go to a temporary file of plain
arrays, so that memory does not grow with the file.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from tempfile import SpooledTemporaryFile

import numpy as np

from manyarms._base.typing import AnyArray, Ints
from manyarms.logs.tables import Column, Kind, Table, TableSource

IN_MEMORY = 256 << 20  # bytes; beyond, the spool moves to the folder for temporary files (TMPDIR)


@dataclass(frozen=True)
class _Block:
    places: Mapping[str, tuple[int, bool, bool]]  # where a column begins; has it a mask, has it categories
    rows: int
    first_row: int | Ints
    unit: str


class Spool:
    """Tables, written once and read as often as asked, each column on its own."""

    def __init__(self, in_memory: int = IN_MEMORY) -> None:
        self._file = SpooledTemporaryFile(max_size=in_memory)  # noqa: SIM115 (open as long as the spool is used)
        weakref.finalize(self, self._file.close)
        self._blocks: list[_Block] = []
        self.rows = 0

    def add(self, table: Table) -> None:
        """Append the rows of a table."""
        self._file.seek(0, 2)
        places = {}
        for name, column in table.columns.items():
            places[name] = (self._file.tell(), column.missing is not None, column.categories is not None)
            for array in (column.values, column.missing, column.categories):
                if array is not None:
                    np.lib.format.write_array(self._file, array, allow_pickle=False)
        self._blocks.append(_Block(places, table.rows, table.first_row, table.unit))
        self.rows += table.rows

    def tables(self, columns: Sequence[str]) -> Iterator[Table]:
        """The tables as they were added, with some of their columns; a column that a table lacks is left out."""
        for block in self._blocks:
            found = {name: self._column(*block.places[name]) for name in columns if name in block.places}
            yield Table(found, block.rows, block.first_row, block.unit)

    def _column(self, place: int, masked: bool, coded: bool) -> Column:
        self._file.seek(place)
        values, missing = self._array(), self._array() if masked else None
        return Column(values, missing, self._array() if coded else None)

    def _array(self) -> AnyArray:
        array: AnyArray = np.lib.format.read_array(self._file, allow_pickle=False)
        return array


class SpooledTables(TableSource):
    """Some columns of another source, decoded when this is made and spooled for all further passes."""

    def __init__(self, source: TableSource, columns: Sequence[str], rows: int) -> None:
        self.name, self.stated, self._kinds = source.name, source.stated, source.kinds()
        self._spool = Spool()
        for table in source.tables(columns, rows):
            self._spool.add(table)
        self.row_count = self._spool.rows

    def kinds(self) -> dict[str, Kind]:
        return self._kinds

    def tables(self, columns: Sequence[str], rows: int) -> Iterator[Table]:
        for table in self._spool.tables(columns):
            yield from table.chunks(rows)


__all__ = ["Spool", "SpooledTables"]
