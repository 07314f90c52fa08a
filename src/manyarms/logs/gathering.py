"""A source of known length, read into memory: chunk by chunk into arrays of their final size, so that nothing is held twice."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from manyarms._base import validate
from manyarms._base.private import locked
from manyarms._base.typing import AnyArray
from manyarms.errors import InvalidInput
from manyarms.logs.data import PER_ROUND, LoggedData
from manyarms.logs.joining import joined_tables

TEXTS = ("event_ids", "groups")  # whose type may be another one in every chunk


def gathered(chunks: Iterator[LoggedData], rows: int) -> LoggedData:
    """One log of the chunks of one source, which has at most `rows` rounds; a chunk is let go once it is copied."""
    first = next(chunks)
    given = [value for name in PER_ROUND if (value := getattr(first, name)) is not None]
    validate.room("rows", rows, sum(value.nbytes for value in given) / len(first), "rounds in memory")
    arrays: dict[str, AnyArray] = {}
    texts: dict[str, list[AnyArray]] = {}
    for name in PER_ROUND:
        value = getattr(first, name)
        if value is not None and name in TEXTS:
            texts[name] = []
        elif value is not None:
            arrays[name] = np.empty((rows, *value.shape[1:]), dtype=value.dtype)
    joined, chunk, at = first._twin(), first, 0
    originals = [] if first.original is None else [first.original]
    while True:
        if at + len(chunk) > rows:
            raise InvalidInput("rows", f"more than {rows:,} rounds", f"the {rows:,} that the source says it has")
        for name, array in arrays.items():
            part = getattr(chunk, name)
            if part.shape[1:] != array.shape[1:]:
                came = f"{name} of length {part.shape[1]} from row {at} on"
                raise InvalidInput("logs", came, f"length {array.shape[1]}, as in the rows before")
            array[at : at + len(chunk)] = part
        for name, pieces in texts.items():
            pieces.append(getattr(chunk, name))
        at += len(chunk)
        following = next(chunks, None)
        if following is None:
            break
        chunk = following
        originals += [] if chunk.original is None else [chunk.original]
    for name, array in arrays.items():
        joined._set(name, locked(array if at == rows else array[:at].copy()))
    for name, pieces in texts.items():
        joined._set(name, locked(np.concatenate(pieces)))
    joined._set("original", joined_tables(originals) if originals else None)
    if joined.estimated is not None:
        joined._set("propensities_are_estimates", bool(joined.estimated.any()))
    return joined


__all__ = ["gathered"]
