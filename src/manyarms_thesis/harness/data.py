"""Data sets that may be missing: made-up ones take their place, and everything that rests on them says so."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache

from manyarms.errors import DataError
from manyarms_thesis.harness.claims import Claim
from manyarms_thesis.harness.results import Results

MADE_UP = "made-up"


def is_readable(read: Callable[..., object], *arguments: str) -> bool:
    """Whether a data set can be read from where MANYARMS_DATA points."""
    try:
        read(*arguments)
    except DataError:
        return False
    return True


@cache
def made_up_folder(write: Callable[..., object], *arguments: str) -> str:
    """A folder with what `write(folder, *arguments)` writes; the same in every process, gone when the process ends."""
    folder = tempfile.mkdtemp(prefix="manyarms-made-up-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    write(folder, *arguments)
    return folder


def flagged(
    results: Results, claims: Iterable[Claim], words: str, applies: Callable[[Claim], bool] = lambda made: True
) -> list[Claim]:
    """Claims that rest on made-up data begin with [words]; `applies` says which claims of such results do."""
    made_up = any(cell.parameters.get("data") == MADE_UP for cell in results.cells.values())
    return [
        replace(made, statement=f"[{words}] {made.statement}") if made_up and applies(made) else made for made in claims
    ]


def missing_data(names: Sequence[str], is_there: Callable[[str], bool], made_up: str) -> list[str]:
    """A warning about the data sets that were not found; `made_up` says what stands in where none was."""
    missing = [name for name in names if not is_there(name)]
    if not missing:
        return []
    if len(missing) < len(names):
        return [f"Not found under MANYARMS_DATA, and left out where they would be used: {', '.join(missing)}."]
    return [f"{made_up} Set MANYARMS_DATA to the folder that holds {', '.join(names)}, and run again."]


__all__ = ["MADE_UP", "flagged", "is_readable", "made_up_folder", "missing_data"]
