"""Row by row checks of a log's columns; every refusal names the column and the first bad row.

Rows are counted from 0, as everywhere in numpy; where only a part of a log is at hand, `first_row` is the number of its
first row, or an array with the numbers of all. In a text file they are lines, counted from 1 as editors do, header and all.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from numbers import Real

import numpy as np
import numpy.typing as npt

from manyarms._base import validate
from manyarms._base.private import kept
from manyarms._base.typing import AnyArray, Array, Bools, Ints
from manyarms._base.validate import LARGEST, describe
from manyarms.errors import InvalidInput, UnknownAction

# probabilities written in single precision sum to 1 only so far
SUM_TOLERANCE = 1e-4
BLOCK = 65_536


PROBABILITIES = (
    "probabilities above 0 and at most 1; where they are not known leave the column out and use "
    "manyarms.logs.estimate_propensities"
)


def row_numbers(first_row: int | Ints) -> int | Ints:
    """The number of the first row, or those of all rows."""
    if isinstance(first_row, np.ndarray):
        return validate.integers("first_row", first_row)
    return validate.count("first_row", first_row, 0)


class Where:
    """How a message speaks of a column and of a row of it."""

    def __init__(self, first_row: int | Ints = 0, names: Mapping[str, str] | None = None, unit: str = "row") -> None:
        self.first_row = first_row
        self.unit = validate.instance("row_unit", unit, str, "what a row is called, such as line")
        if not isinstance(names, Mapping | None):
            raise InvalidInput("column_names", describe(names), "a mapping from fields to columns, or None")
        self.names = {} if names is None else names

    def name(self, field: str) -> str:
        """The field, and the file's own name for it where that is another one."""
        column = self.names.get(field)
        return field if column is None or column == field else f"{field} (column {column!r})"

    def row(self, index: int) -> str:
        return f"{self.unit} {self.first_row + index if isinstance(self.first_row, int) else self.first_row[index]}"

    def refuse(self, field: str, wrong: Bools | np.bool_, values: AnyArray, expected: str) -> None:
        """Raise for the first row where `wrong` (n,) or (n, m) holds, if there is one."""
        if np.any(wrong):
            first = np.unravel_index(int(np.argmax(wrong)), np.shape(wrong))
            place = self.row(int(first[0]))
            own = self.names.get(f"{field}[{first[1]}]") if len(first) > 1 else None
            if own is not None:  # each entry was a column of its own
                raise InvalidInput(f"column {own!r}", f"{values[first]} at {place}", expected)
            place += f", entry {first[1]}" if len(first) > 1 else ""
            raise InvalidInput(self.name(field), f"{values[first]} at {place}", expected)


def place(log: object, row: int, before: int = 0) -> str:
    """What a message calls a row of a log: as its file does, where it came from one; `before`: the rows of the chunks before."""
    where = vars(log).get("_where")
    told = where is not None and (where.unit != "row" or isinstance(where.first_row, np.ndarray) or where.first_row)
    return where.row(row) if where is not None and told else f"row {before + row}"


def length_of(field: str, array: AnyArray, rows: int, where: Where) -> None:
    if len(array) != rows:
        raise InvalidInput(where.name(field), f"{len(array)} rows", f"{rows} rows, as contexts has")


def numbers(field: str, value: npt.ArrayLike, ndim: int, where: Where, expected: str = "") -> Array:
    """A private float64 array of `ndim` axes, finite and below 1e100 in size."""
    array = _regular(field, value, ndim, where)
    if array.dtype.kind == "O":
        _refuse_misfits(field, array, where)
    elif array.dtype.kind not in "biuf":
        raise InvalidInput(where.name(field), describe(array), "numbers")
    try:
        with np.errstate(over="ignore"):  # of what is longer than 64 bits: infinite, and refused below
            array = np.ascontiguousarray(array, dtype=np.float64)
    except OverflowError as error:
        raise InvalidInput(
            where.name(field), "an integer of hundreds of digits", f"numbers below {LARGEST:g}"
        ) from error
    if not np.vdot(array, array) < LARGEST**2:  # one cheap pass in the usual case
        bad = ~(np.abs(array) < LARGEST)
        where.refuse(field, bad, array, expected or f"finite numbers below {LARGEST:g} in size")
    return kept(array, value)


def integers(field: str, value: npt.ArrayLike, ndim: int, where: Where, *, floats: bool = True) -> Ints:
    """A private int64 array. floats: those that are integers are accepted, as of a table's column that had gaps."""
    array = _regular(field, value, ndim, where)
    if array.dtype.kind == "f":
        bad = ~(np.isfinite(array) & (array == np.rint(array)) & (np.abs(array) < 2**53))
        where.refuse(field, bad, array, "integers")
        if not floats:
            raise InvalidInput(where.name(field), describe(array), "integers (whole floats by .astype(int))")
    elif array.dtype.kind == "u" and array.dtype.itemsize == 8:
        where.refuse(field, array > validate.MOST, array, "integers below 2**63")
    elif array.dtype.kind not in "iu":
        came = _first_misfit(array, where) if array.dtype.kind == "O" else describe(array)
        raise InvalidInput(where.name(field), came, "integers (string ids need a catalogue)")
    return kept(np.ascontiguousarray(array, dtype=np.int64), value)


def flags(field: str, value: npt.ArrayLike, where: Where) -> Bools:
    """A private array (n,) of truth values, or of numbers that are 0 or 1."""
    array = _regular(field, value, 1, where)
    if array.dtype.kind not in "biuf":
        raise InvalidInput(where.name(field), describe(array), "True or False in every row")
    if array.dtype.kind != "b":
        where.refuse(field, ~((array == 0) | (array == 1)), array, "True or False (1 or 0) in every row")
    return kept(np.ascontiguousarray(array, dtype=np.bool_), value)


def times(field: str, value: npt.ArrayLike, where: Where) -> AnyArray:
    """Times (n,), NaT where one is missing."""
    array = _regular(field, value, 1, where)
    if array.dtype.kind != "M":
        raise InvalidInput(where.name(field), describe(array), "an array of numpy's datetime64")
    return array


def action_rows(field: str, array: Ints, action_count: int, where: Where) -> None:
    """Every entry must be the row of an action."""
    if array.size and (array.min() < 0 or array.max() >= action_count):
        bad = (array < 0) | (array >= action_count)
        index = int(np.argmax(bad if array.ndim == 1 else bad.any(axis=1)))
        wrong = array[index] if array.ndim == 1 else array[index][bad[index]][0]
        raise UnknownAction(
            where.name(field),
            f"{int(wrong)} at {where.row(index)}",
            f"actions from 0 to {action_count - 1} (action_count is {action_count}; integers that are ids need a catalogue)",
        )


def propensities(field: str, array: Array, where: Where) -> None:
    """What was played had a probability above 0, and at most 1 (up to the rounding of single precision)."""
    where.refuse(field, ~((array > 0) & (array <= 1 + 1e-6)), array, PROBABILITIES)


def support(ids: Ints, probabilities: Array | None, action_count: int, where: Where) -> None:
    """Distinct actions in each row; probabilities that are none below 0 and together at most 1."""
    action_rows("support", ids, action_count, where)
    for start in range(0, len(ids), BLOCK):
        part = np.sort(ids[start : start + BLOCK], axis=1)
        twice = (part[:, 1:] == part[:, :-1]).any(axis=1)
        if twice.any():
            row = start + int(np.argmax(twice))
            raise InvalidInput(
                where.name("support"), f"an action twice at {where.row(row)}", "distinct actions in every row"
            )
    if probabilities is None:
        return
    field = "support_probabilities"
    if probabilities.shape != ids.shape:
        raise InvalidInput(where.name(field), f"shape {probabilities.shape}", f"shape {ids.shape}, as support has")
    where.refuse(field, probabilities < 0, probabilities, "probabilities of at least 0")
    sums = probabilities.sum(axis=1)
    where.refuse(field, sums > 1 + SUM_TOLERANCE, sums, "probabilities that sum to at most 1 in each row")


def _regular(field: str, value: npt.ArrayLike, ndim: int, where: Where) -> AnyArray:
    """An array with the right number of axes; rows of unequal length are found and named."""
    if np.ma.is_masked(value):
        raise InvalidInput(where.name(field), describe(value), "entries that all have a value: none may be masked")
    try:
        array = np.asarray(value)
    except ValueError:  # numpy refuses lists of unequal length
        array = np.empty(len(value), dtype=object)  # type: ignore[arg-type]
        for index, row in enumerate(value):  # type: ignore[arg-type]
            array[index] = row
    if array.dtype.kind == "O" and array.ndim == 1 and ndim == 2 and len(array):
        array = _stacked(field, array, where)
    if array.ndim != ndim:
        shape = "(n,)" if ndim == 1 else "(n, d)"
        raise InvalidInput(where.name(field), f"an array of shape {array.shape}", f"an array of shape {shape}")
    return array


def _stacked(field: str, rows: AnyArray, where: Where) -> AnyArray:
    sizes = [np.size(row) if not isinstance(row, str) else -1 for row in rows]
    for index, size in enumerate(sizes):
        if size != sizes[0]:
            came = f"{size} numbers at {where.row(index)}"
            raise InvalidInput(where.name(field), came, f"{sizes[0]} numbers in every row, as in {where.row(0)}")
    return np.array([np.asarray(row).ravel() for row in rows])


def _refuse_misfits(field: str, array: AnyArray, where: Where) -> None:
    """Numpy would read numbers from texts, and take None for one that is missing."""
    for place, value in np.ndenumerate(array):
        if not isinstance(value, Real | Decimal):
            raise InvalidInput(where.name(field), f"{describe(value)} at {where.row(place[0])}", "numbers")


def _first_misfit(array: AnyArray, where: Where) -> str:
    """The first entry of an array of Python objects that is no number."""
    for index, value in enumerate(array):
        if not isinstance(value, (int, float, np.number, np.ndarray)):
            return f"{describe(value)} at {where.row(index)}"
    return describe(array)


__all__ = [
    "PROBABILITIES",
    "SUM_TOLERANCE",
    "Where",
    "action_rows",
    "flags",
    "integers",
    "length_of",
    "numbers",
    "propensities",
    "row_numbers",
    "support",
    "times",
]
