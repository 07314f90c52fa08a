"""Finished work on disk, one npz file a piece, so that an interrupted experiment goes on where it stopped."""

from __future__ import annotations

import io
import os
from pathlib import Path

import numpy as np

from manyarms._base.files import open_regular, write_bytes_atomically
from manyarms._base.npz import read_npz
from manyarms._base.typing import AnyArray
from manyarms.errors import StorageError
from manyarms_thesis.harness.results import Outcomes
from manyarms_thesis.harness.spec import Item

# run number and column name share an npz entry's name: "3/regret"
SEPARATOR = "/"


class Finished:
    """The folder of finished pieces; a piece's file is named by the hash of its spec and the library's version."""

    def __init__(self, folder: Path, version: str) -> None:
        self.folder = folder
        self.version = version

    def path(self, item: Item) -> Path:
        """Where the outcome of a piece of work lies."""
        return self.folder / f"{item.key(self.version)}.npz"

    def read(self, item: Item) -> Outcomes | None:
        """The outcome of a piece of work by run, or None when it is absent, damaged or incomplete."""
        try:
            with open_regular(self.path(item), follow=True) as stream:
                entries = read_npz(stream, os.fstat(stream.fileno()).st_size)
        except (OSError, StorageError):
            return None
        runs: dict[int | str, dict[str, AnyArray]] = {}
        for name, value in entries.items():
            run, _, column = name.partition(SEPARATOR)
            runs.setdefault(int(run) if run.isdecimal() else run, {})[column] = value
        return {run: runs[run] for run in item.runs} if set(runs) == set(item.runs) else None

    def write(self, item: Item, outcome: Outcomes) -> None:
        """Store the outcome of a piece of work, atomically."""
        entries = {
            f"{run}{SEPARATOR}{column}": value for run, columns in outcome.items() for column, value in columns.items()
        }
        buffer = io.BytesIO()
        # numbers and texts only; NumPy 2.0 would save allow_pickle=False as an array
        np.savez(buffer, **entries)  # type: ignore[arg-type]
        write_bytes_atomically(self.path(item), buffer.getvalue())


__all__ = ["Finished"]
