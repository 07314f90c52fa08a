"""What time it is for a belief: rounds that are counted, or times that callers give."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from manyarms._base import validate
from manyarms._base.typing import AnyArray, Array
from manyarms.errors import InvalidInput, StorageError

CLOCKS = ("rounds", "time")
LATEST = 1e15  # thirty million years, in seconds: sums and differences of times are far from the ends of a double


@dataclass
class Clock:
    """The time, and what is known of the time from one row to the next.

    counts: every row is a round, which has the time `now` and advances it by 1. Otherwise the time is the latest that was told.
    first: the time of the first row; rows: how many there were.
    """

    counts: bool
    now: float = 0.0
    first: float = 0.0
    rows: int = 0

    def times(self, at: object, number: int) -> Array:
        """The times of so many rows, checked: those given, or the next rounds, or the latest time that is known."""
        self._refuse(at)
        if self.counts:
            return self.now + np.arange(number, dtype=np.float64)
        if at is None:
            return np.full(number, self.now)
        times = as_times("at", at)
        if times.ndim and times.shape != (number,):
            raise InvalidInput("at", f"shape {times.shape}", f"one time, or one for each of the {number} rows")
        return np.broadcast_to(times, (number,)).copy()

    def moment(self, at: object) -> float:
        """The time of a decision, checked: never before what is known."""
        self._refuse(at)
        if at is None:
            return self.now
        time = as_times("at", at)
        if time.ndim:
            raise InvalidInput("at", f"shape {time.shape}", "one time")
        return self.later(float(time))

    def _refuse(self, at: object) -> None:
        if self.counts and at is not None:
            raise InvalidInput(
                "at", validate.describe(at), "nothing: this agent counts rounds; clock='time' takes times"
            )

    def later(self, time: float) -> float:
        """A time, or what is known already if that is later."""
        return max(time, self.now) if self.rows else time

    def advance(self, times: Array) -> None:
        """Rows of these times, at least one, have been learned."""
        if not self.rows:
            self.first = float(times.min())
        last = float(times.max()) + (1.0 if self.counts else 0.0)
        self.now = self.later(last)
        self.rows += len(times)

    @property
    def gap(self) -> float | None:
        """The mean time from one row to the next; None where it is not known yet."""
        if self.counts:
            return 1.0
        span = self.now - self.first
        return span / (self.rows - 1) if self.rows > 1 and span > 0 else None

    def array(self) -> Array:
        """Its state; whether it counts is a setting."""
        return np.array([self.now, self.first, float(self.rows)])

    def restore(self, array: AnyArray) -> None:
        """Take over a saved state."""
        if array.shape != (3,) or array.dtype != np.float64 or not (np.abs(array) <= LATEST).all() or array[2] < 0:
            raise StorageError("the clock is not three numbers that can be times and a count")
        self.now, self.first, self.rows = float(array[0]), float(array[1]), int(array[2])


def as_times(name: str, value: object) -> Array:
    """Times as numbers: as they are, or the seconds since 1970 of dates, which are UTC where they do not say."""
    if isinstance(value, list | tuple) and any(isinstance(one, datetime.datetime) for one in value):
        value = [_seconds(one) for one in value]
    elif isinstance(value, datetime.datetime):
        value = _seconds(value)
    elif isinstance(value, np.datetime64) or getattr(getattr(value, "dtype", None), "kind", "") == "M":
        dates = np.asarray(value)  # of pandas, too, whose times with a zone come as UTC
        if np.isnat(dates).any():
            raise InvalidInput(name, "a date that is missing (NaT)", "times")
        value = dates.astype("datetime64[us]").astype(np.int64) / 1e6
    times = validate.as_floats(name, cast(npt.ArrayLike, value), "a time, or times: numbers or dates")
    if times.ndim > 1 or (np.abs(times) > LATEST).any():
        came = f"shape {times.shape}" if times.ndim > 1 else f"{float(np.abs(times).max()):.3g}"
        raise InvalidInput(name, came, f"a time, or a list of them, within {LATEST:g}")
    return times


def _seconds(date: object) -> object:
    if not isinstance(date, datetime.datetime):
        return date
    return (date if date.tzinfo is not None else date.replace(tzinfo=datetime.UTC)).timestamp()


def length_of_time(name: str, value: Any, counts: bool) -> float:
    """A length of time: a number, or where the clock shows times also a timedelta (as seconds)."""
    if isinstance(value, datetime.timedelta) and not counts:
        value = value.total_seconds()
    return validate.number(name, value, least=1e-9, most=LATEST)


__all__ = ["CLOCKS", "LATEST", "Clock", "as_times", "length_of_time"]
