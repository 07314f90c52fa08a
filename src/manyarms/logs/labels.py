"""Labels: what rows or actions have in common, as integers or texts. Groups of rounds, clusters of actions, ids of events."""

from __future__ import annotations

import numbers

import numpy as np
import numpy.typing as npt

from manyarms._base.typing import AnyArray
from manyarms._base.validate import describe
from manyarms.errors import InvalidInput

EXPECTED = "a label in every entry: integers, texts, or numbers that are not NaN"


def labels_of(name: str, value: npt.ArrayLike, size: int | None = None, what: str = "entries") -> AnyArray:
    """Labels (n,) that can be compared and sorted: integers, floats, times or texts; nothing masked, missing or of mixed types.

    size: how many there must be, and what of.
    """
    try:
        if np.ma.is_masked(value):
            raise ValueError("entries that are masked have no value")
        array = np.asarray(value)
    except (TypeError, ValueError, OverflowError) as error:  # lists of different lengths are a ValueError
        raise InvalidInput(name, describe(value), EXPECTED) from error
    if array.ndim != 1 or (size is not None and len(array) != size):
        wanted = f"{EXPECTED}, of shape (n,)" if size is None else f"one label for each of the {size} {what}"
        raise InvalidInput(name, f"an array of shape {array.shape}", wanted)
    if array.dtype.kind == "O":
        array = _of_one_type(name, array)
    if array.dtype.kind == "S":
        array = _decoded(name, array)
    if array.dtype.kind == "T":  # texts of any length
        array = array.astype(np.str_)
    if array.dtype.kind not in "biufUMm":
        raise InvalidInput(name, describe(array), EXPECTED)
    missing = np.isnan(array) if array.dtype.kind == "f" else np.isnat(array) if array.dtype.kind in "Mm" else None
    if missing is not None and missing.any():
        raise InvalidInput(name, f"{array[missing][0]} at row {int(np.argmax(missing))}", EXPECTED)
    if array.dtype.kind == "b":
        return array.astype(np.int64)
    return array


def comparable(first: AnyArray, second: AnyArray) -> bool:
    """Whether labels can be equal at all: texts with texts, numbers with numbers, times with times."""
    kinds = ["number" if array.dtype.kind in "iuf" else array.dtype.kind for array in (first, second)]
    return not len(first) or not len(second) or kinds[0] == kinds[1]


def _of_one_type(name: str, array: AnyArray) -> AnyArray:
    """Python objects as an array of texts or of numbers."""
    if all(isinstance(item, str) for item in array):
        return array.astype(np.str_)
    for row, item in enumerate(array):
        if not isinstance(item, numbers.Real):
            raise InvalidInput(name, f"{describe(item)} at row {row}", f"{EXPECTED}, all of one type")
    whole = all(isinstance(item, numbers.Integral) for item in array)
    try:
        return array.astype(np.int64 if whole else np.float64)
    except OverflowError as error:  # an integer of 400 digits
        raise InvalidInput(name, describe(max(array, key=abs)), "integers below 2**63") from error


def _decoded(name: str, array: AnyArray) -> AnyArray:
    try:
        return np.char.decode(array, "utf-8")
    except UnicodeDecodeError as error:
        raise InvalidInput(name, "bytes that are no text in UTF-8", EXPECTED) from error


__all__ = ["comparable", "labels_of"]
