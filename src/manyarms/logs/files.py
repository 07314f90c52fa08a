"""Reading files, plain or gzipped, with errors that name the file."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from manyarms.errors import DataError


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
    except (OSError, zlib.error) as error:
        raise DataError(f"{path}: cannot be read ({error})") from error


@contextmanager
def open_text(path: Path) -> Iterator[TextIO]:
    """A text file, gzipped if its name ends in .gz; line ends are left for the reader."""
    with reading(path):
        opened = gzip.open if path.suffix == ".gz" else open
        with opened(path, "rb") as raw, io.TextIOWrapper(raw, encoding="utf-8-sig", newline="") as stream:
            yield stream


__all__ = ["open_text", "reading"]
