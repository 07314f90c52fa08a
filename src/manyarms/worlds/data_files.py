"""What all readers of data files share: where files are, how they are opened, and which line is bad."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from manyarms._base.files import as_path, write_text_atomically
from manyarms.errors import DataError

VARIABLE = "MANYARMS_DATA"
MADE_UP_NOTE = "MADE-UP.txt"

FileStates = tuple[tuple[Path, int, int], ...]
"""Paths with dates and sizes, which make a changed file another key of a cache."""


def data_folder(name: str, folder: str | Path | None, writer: str | None = None) -> str | Path:
    """`folder`, or else the folder of all data sets; writer: the function that writes made-up files in its place."""
    base = folder if folder is not None else os.environ.get(VARIABLE)
    if not base:
        told = f"{name} is needed: set {VARIABLE} to the folder that holds the folder {name}, or give folder="
        raise DataError(told if writer is None else f"{told}; without the data, {writer}(folder) writes made-up files")
    return base


def plain_or_gzipped(folder: Path, file: str) -> list[Path]:
    """The file, if it is there: gzipped first."""
    return [path for path in (folder / f"{file}.gz", folder / file) if os.path.isfile(path)][:1]


def states_of(paths: Iterable[Path]) -> FileStates:
    """The files as they are now."""
    return tuple((path.resolve(), path.stat().st_mtime_ns, path.stat().st_size) for path in paths)


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """The bytes of a file, plain or gzipped; what cannot be read is a DataError."""
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as stream:
            yield cast(IO[bytes], stream)
    except EOFError as error:
        raise DataError(f"{path}: the gzip file is truncated") from error
    except (OSError, zlib.error) as error:
        raise DataError(f"{path}: cannot be read ({error})") from error


def complaint(
    path: Path,
    lines: Iterable[str],
    first: int,
    separator: str,
    columns: Sequence[str],
    what_is_wrong: Callable[[str, str], str | None],
) -> DataError:
    """An error that names the first bad line, the lines numbered from `first`; what_is_wrong: of a column and its field."""
    for number, line in enumerate(lines, start=first):
        if not line.strip():
            continue
        fields = line.rstrip("\r").split(separator)
        why = [f"expected {len(columns)} columns separated by {separator!r}, got {len(fields)}"]
        if len(fields) == len(columns):
            found = ((column, what_is_wrong(column, field)) for column, field in zip(columns, fields, strict=True))
            why = [f"{column} {wrong}" for column, wrong in found if wrong is not None]
        if why:
            return DataError(f"{path}: line {number}: {why[0]}: {line[:80]!r}")
    return DataError(f"{path}: cannot be read as {separator.join(columns)!r}")


def made_up_folder(folder: str | Path, note: str) -> Path:
    """A folder, made where it is missing, with a note that its files are made up."""
    target = as_path("folder", folder)
    write_text_atomically(target / MADE_UP_NOTE, note)
    return target


def is_made_up(file: Path) -> bool:
    """Whether the note lies beside a file."""
    return (file.parent / MADE_UP_NOTE).exists()


__all__ = [
    "VARIABLE", "FileStates", "complaint", "data_folder", "is_made_up", "made_up_folder", "opened",
    "plain_or_gzipped", "states_of",
]  # fmt: skip
