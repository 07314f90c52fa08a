"""Rows of a table as contexts, where decisions are made at the edge: what a `TableEncoder` says of itself in JSON, read again.

The same numbers as the encoder's own, bit for bit: (value - mean) / scale, and a 1 in the place of a category.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Real
from typing import Any, Protocol

import numpy as np

from manyarms._base.typing import AnyArray, Array
from manyarms._base.validate import LARGEST, describe
from manyarms.errors import InvalidInput

KIND = "table-encoder"


class RowEncoder(Protocol):
    """What makes the context of a row."""

    def row(self, values: Mapping[str, object], /) -> Array:
        """(d,)."""


class TableRows:
    """The encoder of a bundle; `told` is what its `as_json` gave. Raises KeyError, TypeError or ValueError for anything else."""

    def __init__(self, told: Mapping[str, Any]) -> None:
        if told["kind"] != KIND:
            raise ValueError(f"an encoder of the kind {describe(told['kind'])}")
        self.intercept = bool(told["intercept"])
        self._parts: list[_Numbers | _Texts] = []
        for number, part in enumerate(told["parts"]):
            if part["kind"] == "number":
                arrays = [
                    np.array(told["arrays"][f"{number}/{name}"], np.float64) for name in ("mean", "scale", "fill")
                ]
                self._parts.append(_Numbers(str(part["column"]), arrays, bool(part["tells_missing"])))
            else:
                categories = [str(one) for one in part["categories"]]
                self._parts.append(_Texts(str(part["column"]), categories, bool(part["tells_missing"])))
        self.dim = int(self.intercept) + sum(part.width for part in self._parts)

    def row(self, values: Mapping[str, object]) -> Array:
        """The context (d,) of one row, which has every column; others are not looked at."""
        out = np.zeros(self.dim)
        at = int(self.intercept)
        out[:at] = 1.0
        for part in self._parts:
            if part.column not in values:
                columns = ", ".join(one.column for one in self._parts)
                raise InvalidInput("context", f"no column {part.column!r}", f"the columns {columns}")
            part.put(values[part.column], out[at : at + part.width])
            at += part.width
        return out


class _Numbers:
    """A column of numbers, or of vectors."""

    def __init__(self, column: str, arrays: list[Array], tells_missing: bool) -> None:
        self.column, self.tells_missing = column, tells_missing
        self.mean, self.scale, self.fill = arrays
        fits = self.mean.ndim == 1 and self.mean.shape == self.scale.shape == self.fill.shape and (self.scale > 0).all()
        if not fits or not all(np.isfinite(array).all() for array in arrays):
            raise ValueError(f"column {column!r}")
        self.width = len(self.mean) + tells_missing

    def put(self, value: object, out: Array) -> None:
        wide = len(self.mean)
        values: AnyArray = np.full(wide, np.nan)
        if not _is_missing(value):
            values = self._numbers(value, wide)
        gone = np.isnan(values)
        if gone.any() and not self.tells_missing:
            raise InvalidInput(f"column {self.column!r}", "a missing number", "numbers, as when the encoder was fitted")
        values = np.where(gone, self.fill, values)
        if not (np.abs(values) < LARGEST).all():
            raise InvalidInput(f"column {self.column!r}", describe(value), f"finite numbers below {LARGEST:g} in size")
        out[:wide] = (values - self.mean) / self.scale
        out[wide:] = gone.any()

    def _numbers(self, value: object, wide: int) -> AnyArray:
        if wide == 1:
            if not isinstance(value, Real):
                raise InvalidInput(f"column {self.column!r}", describe(value), "a number")
            value = [value]
        try:
            values = np.asarray(value, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            values = np.empty(0)
        if values.shape != (wide,) or isinstance(value, str):
            raise InvalidInput(f"column {self.column!r}", describe(value), f"{wide} numbers")
        return values


class _Texts:
    """A column of texts: a place for each category, one for others, and one for missing values where these are told apart."""

    def __init__(self, column: str, categories: list[str], tells_missing: bool) -> None:
        self.column = column
        self.places = {category: place for place, category in enumerate(categories)}
        self.other = len(categories)
        self.missing = self.other + tells_missing
        self.width = self.missing + 1
        self.takes_numbers = not categories or any(_is_written_number(one) for one in categories)

    def put(self, value: object, out: Array) -> None:
        if isinstance(value, str):
            place = self.places.get(value, self.other)
        elif _is_missing(value):
            place = self.missing
        elif isinstance(value, Real) and self.takes_numbers and abs(float(value)) < LARGEST:
            place = self.places.get(_written(float(value)), self.other)
        else:
            raise InvalidInput(f"column {self.column!r}", describe(value), "a text")
        out[place] = 1.0


def _is_missing(value: object) -> bool:
    return value is None or (isinstance(value, float | np.floating) and math.isnan(value))


def _written(number: float) -> str:
    return str(int(number)) if number.is_integer() else repr(number)


def _is_written_number(text: str) -> bool:
    try:
        return _written(float(text)) == text
    except (ValueError, OverflowError):
        return False


__all__ = ["KIND", "RowEncoder", "TableRows"]
