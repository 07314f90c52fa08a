"""Reading files, plain or gzipped, with errors that name the file."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO, TextIO, cast

from manyarms._base.files import open_regular, reason, require_regular
from manyarms.errors import DataError

BUFFER = 1 << 17
HARMLESS = 1 << 26  # bytes that may be unpacked from anything
MOST_UNPACKED = 200  # times the packed size: logs shrink 3 to 30 times, and the same byte for ever 1,000 times


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn whatever goes wrong while a file is read into a DataError that names it."""
    try:
        yield
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except EOFError as error:
        raise DataError(f"{path}: the gzip file is truncated") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not text in UTF-8 ({error.reason} at byte {error.start} of a block)") from error
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({reason(error)})") from error
    except zlib.error as error:
        raise DataError(f"{path}: cannot be read ({error})") from error


@contextmanager
def open_bytes(path: Path) -> Iterator[BinaryIO]:
    """A regular file, unpacked if its name ends in .gz; a link may lead to it, but no pipe or device is opened."""
    with reading(path), open_regular(path, follow=True) as raw:
        if path.suffix == ".gz":
            unpacked = gzip.GzipFile(fileobj=raw)
            with unpacked, io.BufferedReader(_Unpacked(path, raw, unpacked), BUFFER) as stream:
                yield cast(BinaryIO, stream)
        else:
            yield raw


@contextmanager
def open_text(path: Path) -> Iterator[TextIO]:
    """The same as text; line ends are left for the reader."""
    with open_bytes(path) as raw, io.TextIOWrapper(raw, encoding="utf-8-sig", newline="") as stream, reading(path):
        yield stream


class _Unpacked(io.RawIOBase):
    """What a gzip file unpacks to, until it is known to be a bomb: much more than a log ever shrinks to its packed size.

    The packed bytes counted are those read so far, so that a bomb behind honest rows is found as well.
    """

    def __init__(self, path: Path, packed: BufferedReader, unpacked: gzip.GzipFile) -> None:
        self._path, self._packed, self._unpacked, self._bytes = path, packed, unpacked, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        with memoryview(buffer) as room:
            piece = self._unpacked.read1(len(room))
            room[: len(piece)] = piece
        self._bytes += len(piece)
        if self._bytes > HARMLESS and self._bytes > MOST_UNPACKED * self._packed.tell():
            raise DataError(
                f"{self._path}: unpacks to more than {MOST_UNPACKED} times its size, as no log does; unpack it first if it is one"
            )
        return len(piece)


def require_log_file(path: Path) -> None:
    """Refuse what is no file, before anything opens it."""
    with reading(path):
        require_regular(path)


__all__ = ["open_bytes", "open_text", "reading", "require_log_file"]
