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


def number(value: float) -> str:
    """Four digits that count: 0.04127, 12.5, 1,234,568; 2e+99 where that would fill lines."""
    value += 0.0  # a zero has no sign
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e9 else f"{value:.4g}"


def interval_text(low: float, high: float) -> str:
    """Two ends: [0.41, 0.4275]."""
    return f"[{number(low)}, {number(high)}]"


def counted(count: int, one: str, several: str | None = None) -> str:
    """So many of something: 1 row, 2 rows, 1,000 policies (where `several` is given, that in place of an s)."""
    return f"{count:,} {one if count == 1 else several or one + 's'}"


def in_words(value: object) -> str:
    """A size, or several: 1,000; 10, 100 and 1,000; K=30, d=5; (100, 5) and (20, 4).

    >>> in_words([10, 100, 1_000]), in_words({"K": 30, "d": 5}), in_words([[100, 5], [20, 4]])
    ('10, 100 and 1,000', 'K=30, d=5', '(100, 5) and (20, 4)')
    """
    if isinstance(value, Mapping):
        return ", ".join(f"{key}={in_words(one)}" for key, one in value.items())
    if isinstance(value, list | tuple):
        nested = any(isinstance(one, list | tuple) for one in value)
        texts = [f"({', '.join(in_words(part) for part in one)})" if nested else in_words(one) for one in value]
        return " and ".join(filter(None, (", ".join(texts[:-1]), *texts[-1:])))
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return f"{value:g}" if isinstance(value, float) else str(value)


def shortened(text: str, most: int) -> str:
    """On one line, of at most so many letters."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: max(0, most - 3)].rstrip() + "..."


def labelled(name: str, settings: Mapping[str, float]) -> str:
    """A name with its parameters behind it: es (alpha=0.5)."""
    inside = ", ".join(f"{key}={value:.3g}" for key, value in settings.items())
    return f"{name} ({inside})" if inside else name


__all__ = ["counted", "decimals", "duration", "in_words", "interval_text", "labelled", "number", "shortened"]
