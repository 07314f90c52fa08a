"""The parts of a TableEncoder: a column of numbers, or of texts, and the entries of a context that it becomes.

Each part writes its entries twice over: for all rows of a column at once (`write`), and for the one value of one row (`put`), in
Python's own numbers, which for a single row is ten times faster than arrays of length 1. Both give the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from numbers import Real

import numpy as np

from manyarms._base import validate
from manyarms._base.typing import AnyArray, Array
from manyarms.errors import InvalidInput
from manyarms.logs.checks import Where
from manyarms.logs.tables import Column, is_missing

FINITE = f"finite numbers below {validate.LARGEST:g} in size"


@dataclass(frozen=True, eq=False)
class NumberPart:
    """A column of numbers, or of vectors of `width`."""

    column: str
    mean: Array  # (width,), as are the next two
    scale: Array
    fill: Array  # what a missing number becomes, before it is scaled
    tells_missing: bool

    @property
    def names(self) -> list[str]:
        width = len(self.mean)
        own = [self.column] if width == 1 else [f"{self.column}[{i}]" for i in range(width)]
        return own + ([f"{self.column} is missing"] if self.tells_missing else [])

    @cached_property
    def _one(self) -> tuple[float, float, float]:
        """Mean, scale and fill of a column of numbers."""
        return float(self.mean[0]), float(self.scale[0]), float(self.fill[0])

    def write(self, column: Column, out: Array, where: Where) -> None:
        """Fill the entries `out` (n, entries) of all rows."""
        if column.kind.name not in ("number", "vector"):
            raise InvalidInput(f"column {self.column!r}", f"a column of {column.kind.name}s", "numbers")
        width = len(self.mean)
        values = column.values.astype(np.float64).reshape(len(column), -1)
        if values.shape[1] != width:
            raise InvalidInput(f"column {self.column!r}", f"vectors of length {values.shape[1]}", f"length {width}")
        gone = column.absent[:, None] | np.isnan(values)
        if gone.any():
            if not self.tells_missing:
                raise self._complete(f"a missing number at {where.row(int(np.argmax(gone.any(axis=1))))}")
            values = np.where(gone, self.fill, values)
        bad = ~(np.abs(values) < validate.LARGEST)
        where.refuse(self.column, bad, values, FINITE)
        out[:, :width] = (values - self.mean) / self.scale
        if self.tells_missing:
            out[:, width] = gone.any(axis=1)

    def put(self, value: object, out: Array, at: int) -> None:
        """Fill the entries of one row, from `at` on; they are 0 until now."""
        if len(self.mean) != 1:
            self._put_vector(value, out, at)
            return
        mean, scale, fill = self._one
        number: float
        if is_missing(value):
            if not self.tells_missing:
                raise self._complete("a missing number")
            out[at + 1] = 1.0
            number = fill
        else:
            number = _number(self.column, value, "a number")
        out[at] = (number - mean) / scale

    def _put_vector(self, value: object, out: Array, at: int) -> None:
        width = len(self.mean)
        values: AnyArray = np.full(width, np.nan)
        if not is_missing(value):
            try:
                values = np.asarray(value, dtype=None if isinstance(value, np.ndarray) else np.float64)
            except (TypeError, ValueError, OverflowError):
                values = np.empty(0, dtype=np.str_)
            if values.dtype.kind not in "biuf" or values.shape != (width,):
                raise InvalidInput(f"column {self.column!r}", validate.describe(value), f"{width} numbers")
        self.write(Column(values[None, :]), out[None, at : at + len(self.names)], Where())

    def _complete(self, came: str) -> InvalidInput:
        return InvalidInput(f"column {self.column!r}", came, "numbers, as when the encoder was fitted")


@dataclass(frozen=True, eq=False)
class TextPart:
    """A column of texts with its known categories."""

    column: str
    categories: tuple[str, ...]
    tells_missing: bool

    @property
    def names(self) -> list[str]:
        known = [f"{self.column}={category}" for category in self.categories]
        return [*known, f"{self.column}: other"] + ([f"{self.column}: missing"] if self.tells_missing else [])

    @cached_property
    def places(self) -> dict[str, int]:
        """The entry of each category."""
        return {category: index for index, category in enumerate(self.categories)}

    @cached_property
    def takes_numbers(self) -> bool:
        """Whether numbers may stand for its texts: some category is a number written out, or none is known at all."""
        return not self.categories or any(_is_written_number(category) for category in self.categories)

    @property
    def _missing(self) -> int:
        return len(self.categories) + self.tells_missing

    def write(self, column: Column, out: Array, where: Where) -> None:
        """Fill the entries `out` (n, entries) of all rows."""
        other = len(self.categories)
        if column.kind.name == "number" and not self.takes_numbers and not column.absent.all():
            first = int(np.argmax(~column.absent))
            raise self._no_number(f"the number {column.values[first]} at {where.row(first)}")
        categories, codes = as_codes(self.column, column)
        places = np.array([self.places.get(text, other) for text in categories] + [self._missing], dtype=np.int64)
        out[:] = 0.0
        out[np.arange(len(column)), places[codes]] = 1.0  # the code -1 takes the last place

    def put(self, value: object, out: Array, at: int) -> None:
        """Fill the entries of one row, from `at` on; they are 0 until now."""
        if isinstance(value, str):
            place = self.places.get(value, len(self.categories))
        elif is_missing(value):
            place = self._missing
        elif isinstance(value, Real | Decimal | np.bool_):
            if not self.takes_numbers:
                raise self._no_number(f"the number {validate.describe(value)}")
            _number(self.column, value, "a text")
            place = self.places.get(written(value), len(self.categories))  # type: ignore[arg-type]
        else:
            raise InvalidInput(f"column {self.column!r}", _told(value), "a text")
        out[at + place] = 1.0

    def _no_number(self, came: str) -> InvalidInput:
        some = ", ".join(map(repr, self.categories[:3]))
        return InvalidInput(f"column {self.column!r}", came, f"texts, such as {some}")


def as_codes(name: str, column: Column) -> tuple[list[str], AnyArray]:
    """The distinct texts and the code of each row, -1 where missing; numbers are written out, whole ones without .0"""
    if column.categories is not None:
        return column.categories.tolist(), column.values
    if column.values.ndim != 1 or column.kind.name != "number":
        raise InvalidInput(f"column {name!r}", f"a column of {column.kind.name}s", "texts or numbers as categories")
    distinct, codes = np.unique(np.where(column.absent, 0, column.values), return_inverse=True)
    return [written(number) for number in distinct.tolist()], np.where(column.absent, -1, codes)


def written(number: float | Decimal | np.bool_) -> str:
    """A number as a category: a whole one without .0"""
    return str(int(number)) if float(number).is_integer() else repr(float(number))


def _is_written_number(text: str) -> bool:
    try:
        return written(float(text)) == text
    except (ValueError, OverflowError):  # of an infinite number
        return False


def _number(column: str, value: object, expected: str) -> float:
    """A number that is there, as Python's own."""
    if type(value) is not float and type(value) is not int and not isinstance(value, Real | Decimal | np.bool_):
        raise InvalidInput(f"column {column!r}", _told(value), expected)
    if not abs(value) < validate.LARGEST:  # type: ignore[operator]
        raise InvalidInput(f"column {column!r}", validate.describe(value), FINITE)
    return float(value)


def _told(value: object) -> str:
    return f"the text {validate.describe(value)}" if isinstance(value, str) else validate.describe(value)


__all__ = ["NumberPart", "TextPart", "as_codes", "written"]
