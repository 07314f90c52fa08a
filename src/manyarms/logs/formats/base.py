"""What a file format is: one class in one file of this package, found by the suffixes it names.

    @FORMATS.register("rows")
    class RowsOfJson(LogFormat):
        suffixes = (".ndjson",)

        def kinds(self) -> dict[str, Kind]: ...
        def tables(self, columns: Sequence[str], rows: int) -> Iterator[Table]: ...

or a `MemoryFormat` with `read` alone, where files are small. `open_log`, `inspect` and the command line then read such files.
Another distribution names its module in the entry-point group "manyarms.log_formats".
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar

from manyarms._base.files import as_path
from manyarms._base.registry import Registry
from manyarms.errors import DataError, InvalidInput
from manyarms.logs.files import reading, require_log_file
from manyarms.logs.tables import Kind, MemoryTables, Table, TableSource


class LogFormat(TableSource):
    """A file as a source of tables; made from its path alone, and a subclass says how it is read.

    A format that keeps what it decoded says `rereads = False`; one that knows more than its columns sets `row_count` or `stated`.
    """

    suffixes: ClassVar[tuple[str, ...]]
    """What names of such files end in."""
    folders: ClassVar[bool] = False
    """Whether it reads folders, and no files."""
    rereads = True

    def __init__(self, path: Path | str) -> None:
        self.path = as_path("path", path)
        self.name = str(self.path)

    @classmethod
    def recognises(cls, path: Path) -> bool:
        """Whether a file, which is there, is of this format; a format may look into it."""
        return path.name.lower().endswith(cls.suffixes)


class MemoryFormat(LogFormat):
    """A format whose files are decoded as they are opened, and then lie in memory; a subclass says how, in `read`."""

    rereads = False

    def __init__(self, path: Path | str) -> None:
        super().__init__(path)
        self._tables = self.read()
        self.stated, self.row_count = self._tables.stated, self._tables.row_count

    @abstractmethod
    def read(self) -> MemoryTables:
        """The file as one table, for instance `frame_tables({"column": values, ...})`."""

    def kinds(self) -> dict[str, Kind]:
        return self._tables.kinds()

    def tables(self, columns: Sequence[str], rows: int) -> Iterator[Table]:
        return self._tables.tables(columns, rows)


FORMATS: Registry[type[LogFormat]] = Registry(
    "log format", package="manyarms.logs.formats", group="manyarms.log_formats"
)


def suffixes() -> tuple[str, ...]:
    """What the names of log files end in, over all formats."""
    return tuple(suffix for made in FORMATS.values() for suffix in made.suffixes)


def format_of(path: Path | str, argument: str = "path") -> type[LogFormat]:
    """The format that recognises a log, a file or a folder; argument: what an error calls the path."""
    path = as_path(argument, path)
    with reading(path):
        folder = path.is_dir()
    for made in FORMATS.values() if folder else ():
        if made.folders and made.recognises(path):
            return made
    if folder:
        raise DataError(
            f"{path}: a folder without a file that ends in .parquet or .pq; folders inside it are not looked at"
        )
    require_log_file(path)
    for made in FORMATS.values():
        if not made.folders and made.recognises(path):
            return made
    raise InvalidInput(argument, str(path), "a file that ends in " + ", ".join(suffixes()))


def tables_in(path: Path | str, argument: str = "path") -> LogFormat:
    """A log file as tables, by the format that recognises it; argument: what an error calls the path."""
    return format_of(path, argument)(path)


__all__ = ["FORMATS", "LogFormat", "MemoryFormat", "format_of", "suffixes", "tables_in"]
