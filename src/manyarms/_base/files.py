"""Atomic writing: a file appears complete, or not at all.

The content goes to a temporary file in the same folder (so on the same file system), is flushed to the disk, and only then
gets its name in one step. A reader, or a crash, meets the old file or the new one, never half of either.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO


def write_atomically(path: Path | str, write: Callable[[BinaryIO], object]) -> None:
    """Let `write` fill a stream that becomes `path` when it is complete; missing parent folders are made."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    rename(write_temporary(path.parent, path.name, write), path)


def write_bytes_atomically(path: Path | str, data: bytes) -> None:
    """Write `data` to `path`; see `write_atomically`."""
    write_atomically(path, lambda stream: stream.write(data))


def write_text_atomically(path: Path | str, text: str) -> None:
    """Write `text` as UTF-8 to `path`; see `write_atomically`."""
    write_bytes_atomically(path, text.encode("utf-8"))


def write_temporary(folder: Path, name: str, write: Callable[[BinaryIO], object]) -> Path:
    """A new file in `folder`, its content on the disk before this returns; for a name that depends on the content."""
    path = folder / f".{name}.{os.urandom(8).hex()}.tmp"
    try:
        with path.open("xb") as stream:
            write(stream)
            stream.flush()
            os.fsync(stream.fileno())
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return path


def rename(temporary: Path, target: Path) -> None:
    """Give a temporary file its name."""
    try:
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    flush_folder(target.parent)


def flush_folder(folder: Path) -> None:
    """Make a rename durable: the name lives in the folder, not in the file."""
    if os.name == "nt":  # there a folder cannot be opened, and a rename needs no flush
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


__all__ = [
    "flush_folder", "rename", "write_atomically", "write_bytes_atomically", "write_temporary", "write_text_atomically",
]  # fmt: skip
