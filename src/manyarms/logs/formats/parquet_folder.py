"""A folder of Parquet files as one log: the files in the order of their names, all with the same columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from manyarms.errors import DataError, InvalidInput
from manyarms.logs.files import reading
from manyarms.logs.formats.base import FORMATS, LogFormat
from manyarms.logs.formats.parquet import ParquetTables
from manyarms.logs.tables import Kind, Stated, Table

HIDDEN = (".", "_")  # what names begin with that are no data, such as _SUCCESS


@FORMATS.register("parquet-folder")
class ParquetFolder(LogFormat):
    """The files of a folder that end in .parquet or .pq, but for those whose names begin with a dot or an underscore.

    Folders inside it are not looked at.
    """

    suffixes: ClassVar[tuple[str, ...]] = ()
    folders: ClassVar[bool] = True

    def __init__(self, path: Path | str) -> None:
        super().__init__(path)
        self._files = [ParquetTables(one) for one in _files(self.path)]
        if not self._files:
            raise DataError(f"{self.path}: no file that ends in .parquet or .pq")
        first = self._files[0]
        for one in self._files[1:]:
            self._require_alike(first, one)
        self.row_count = sum(one.row_count or 0 for one in self._files)
        self.stated = _stated([one.stated for one in self._files])
        self._groups = [(file, group) for file in self._files for group in range(len(file.row_groups()))]
        self._row_groups = tuple(rows for file in self._files for rows in file.row_groups())

    @classmethod
    def recognises(cls, path: Path) -> bool:
        return bool(_files(path))

    def kinds(self) -> dict[str, Kind]:
        return self._files[0].kinds()

    def complaint(self, column: str) -> InvalidInput:
        return self._files[0].complaint(column)

    def limits(self, column: str) -> tuple[int, int] | None:
        """From the statistics in the files' footers."""
        found = [one.limits(column) for one in self._files if one.row_count]
        known = [ends for ends in found if ends is not None]
        if not known or len(known) < len(found):
            return None
        return min(low for low, _ in known), max(high for _, high in known)

    def tables(self, columns: Sequence[str], rows: int) -> Iterator[Table]:
        for file in self._files:
            for table in file.tables(columns, rows):
                yield _named(table, file)

    def row_groups(self) -> tuple[int, ...]:
        return self._row_groups

    def group_tables(self, group: int, columns: Sequence[str], rows: int) -> Iterator[Table]:
        file, own = self._groups[group]
        for table in file.group_tables(own, columns, rows):
            yield _named(table, file)

    def _require_alike(self, first: ParquetTables, one: ParquetTables) -> None:
        """The same columns, and the same ids and encoder where the files state them."""
        theirs, ours = one.kinds(), first.kinds()
        for name in sorted(theirs.keys() | ours.keys()):
            if theirs.get(name) != ours.get(name):
                came = _told(theirs.get(name))
                raise DataError(
                    f"{one.path}: {came} {name!r}; {first.path.name} has {_told(ours.get(name))} of that name"
                )
        for field, what in (("catalogue_ids", "ids"), ("encoder", "encoder")):
            if getattr(one.stated, field) != getattr(first.stated, field):
                raise DataError(f"{one.path}: another {what} than {first.path.name} was written with")


def _files(folder: Path) -> list[Path]:
    with reading(folder):
        there = [one for one in folder.iterdir() if one.name.lower().endswith(ParquetTables.suffixes)]
    return sorted((one for one in there if not one.name.startswith(HIDDEN)), key=lambda one: one.name)


def _named(table: Table, file: ParquetTables) -> Table:
    """With rows that messages call by their file."""
    return replace(table, unit=f"{file.path.name}, row")


def _told(kind: Kind | None) -> str:
    if kind is None:
        return "no column"
    width = f" of length {kind.width}" if kind.name == "vector" and kind.width is not None else ""
    return f"a column of {kind.name}s{width}"


def _stated(all_of_them: Sequence[Stated]) -> Stated:
    """What the files say about themselves, together."""
    counts = [one.action_count for one in all_of_them]
    known = [count for count in counts if count is not None]
    return replace(
        all_of_them[0],
        action_count=max(known) if len(known) == len(counts) else None,
        propensities_are_estimates=any(one.propensities_are_estimates for one in all_of_them),
        notes=tuple(dict.fromkeys(note for one in all_of_them for note in one.notes)),
    )


__all__ = ["ParquetFolder"]
