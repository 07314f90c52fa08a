"""Lengths of time, and of blocks of rows, as they are written on the command line."""

from __future__ import annotations

from datetime import timedelta

from manyarms._base.durations import seconds
from manyarms.errors import InvalidInput
from manyarms.evaluation.time_blocks import Block


def read(text: str | None, option: str = "--block") -> Block | None:
    """A number of rows, or a time."""
    if text is None:
        return None
    if text.strip().isdigit():
        return int(text)
    length = seconds(text)
    if length is None or length > timedelta.max.total_seconds() / 2:
        raise InvalidInput(option, repr(text), "a number of rows, or a time such as 90min, 6h or 1d")
    return timedelta(seconds=length)


__all__ = ["read", "seconds"]
