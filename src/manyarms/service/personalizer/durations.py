"""Durations of ISO 8601 (PT10M, P1DT12H) and times of RFC 3339, as Personalizer writes them."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime

_DURATION = re.compile(
    r"P(?:(?P<days>\d{1,6})D)?(?:T(?:(?P<hours>\d{1,8})H)?(?:(?P<minutes>\d{1,8})M)?(?:(?P<seconds>\d{1,9}(?:\.\d{1,9})?)S)?)?",
    re.ASCII,
)


def seconds_of(text: object) -> float | None:
    """The seconds of a duration, or None where it is none. Weeks, months and years are no part of it."""
    found = _DURATION.fullmatch(text) if isinstance(text, str) else None
    if found is None or not any(found.groupdict().values()) or str(text).endswith("T"):
        return None
    part = {name: float(value or 0) for name, value in found.groupdict().items()}
    return ((part["days"] * 24 + part["hours"]) * 60 + part["minutes"]) * 60 + part["seconds"]


def duration_of(seconds: float) -> str:
    """A duration, in the largest units that fit."""
    whole, rest = int(seconds), seconds - int(seconds)
    days, whole = divmod(whole, 86_400)
    hours, whole = divmod(whole, 3600)
    minutes, whole = divmod(whole, 60)
    parts = f"{hours}H" * (hours > 0) + f"{minutes}M" * (minutes > 0)
    if rest:
        parts += f"{whole + rest:.6f}".rstrip("0").rstrip(".") + "S"
    elif whole or not (days or parts):
        parts += f"{whole}S"
    return "P" + f"{days}D" * (days > 0) + ("T" + parts if parts else "")


def time_of(text: object) -> float | None:
    """Seconds since 1970 of a time with a date, or None where it is none; without a zone it is UTC."""
    if not isinstance(text, str) or len(text) > 40 or "T" not in text.upper():
        return None
    try:
        found = datetime.fromisoformat(text)
        found = found if found.tzinfo is not None else found.replace(tzinfo=UTC)
        seconds = found.timestamp()
    except (ValueError, OverflowError):
        return None
    return seconds if math.isfinite(seconds) else None


def text_of(seconds: float) -> str:
    """A time as JSON has it."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


__all__ = ["duration_of", "seconds_of", "text_of", "time_of"]
