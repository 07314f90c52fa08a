"""Seeds and keys from plain data: the same on every machine, whatever the order of keys or the process."""

from __future__ import annotations

import hashlib
import json


def digest(value: object) -> str:
    """A hash of plain data: numbers, strings, sequences and dictionaries."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def seed_of(*parts: object) -> int:
    """A seed below 2^63 from plain data."""
    return int(digest(list(parts))[:16], 16) >> 1


__all__ = ["digest", "seed_of"]
