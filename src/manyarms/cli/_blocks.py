"""Lengths of time, and of blocks of rows, as they are written on the command line."""

from __future__ import annotations

import re
from datetime import timedelta

from manyarms.errors import InvalidInput
from manyarms.evaluation.time_blocks import Block

UNITS = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}


def seconds(text: str) -> float | None:
    """A number and a unit of time, as seconds; None for anything else."""
    found = re.fullmatch(r"\s*(\d{1,12}(?:\.\d{1,9})?)\s*(s|m|min|h|d|w)\s*", text)
    return None if found is None else float(found[1]) * UNITS[found[2]]


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
