"""How far long work is, told to whoever wants to know."""

from __future__ import annotations

from collections.abc import Callable

from manyarms._base.validate import describe
from manyarms.errors import InvalidInput

Progress = Callable[[int, int, str], None]
"""Called now and then with how much is done, of how much (0 where nobody knows), and what it is."""


def to_whom(progress: Progress | None) -> Progress:
    """A function that can be told; one that listens to nothing where none was given."""
    if progress is None:
        return lambda done, total, words: None
    if not callable(progress):
        raise InvalidInput("progress", describe(progress), "a function of (done, total, words), or None")
    return progress


__all__ = ["Progress", "to_whom"]
