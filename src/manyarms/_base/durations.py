"""Lengths of time as people write them: 30d, 12h, 90min, 600s."""

from __future__ import annotations

import re

UNITS = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}


def seconds(text: str) -> float | None:
    """A number and a unit of time, as seconds; None for anything else."""
    found = re.fullmatch(r"\s*(\d{1,12}(?:\.\d{1,9})?)\s*(s|m|min|h|d|w)\s*", text)
    return None if found is None else float(found[1]) * UNITS[found[2]]


__all__ = ["UNITS", "seconds"]
