"""Numbers as a reader wants them."""

from __future__ import annotations

from collections.abc import Mapping


def duration(seconds: float) -> str:
    """Seconds in words: 8 s, 3 min, 2 h 5 min."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


def decimals(value: float, places: int = 0) -> str:
    """With thousands marked and so many decimals; 2e+99 where it would fill lines."""
    return f"{value:,.{places}f}" if abs(value) < 1e9 else f"{value:.4g}"


def labelled(name: str, settings: Mapping[str, float]) -> str:
    """A name with its parameters behind it: es (alpha=0.5)."""
    inside = ", ".join(f"{key}={value:.3g}" for key, value in settings.items())
    return f"{name} ({inside})" if inside else name


__all__ = ["decimals", "duration", "labelled"]
