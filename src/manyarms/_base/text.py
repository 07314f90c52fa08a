"""Numbers as a reader wants them."""

from __future__ import annotations


def duration(seconds: float) -> str:
    """Seconds in words: 8 s, 3 min, 2 h 5 min."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


__all__ = ["duration"]
