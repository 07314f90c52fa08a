"""What was said of some rows of a log, checked and turned into a policy at these rows.

floats (n,)               the probabilities of the logged actions
integers or texts (n,)    an action for each row
floats (n, K)             all probabilities; a frame's columns are ids
Ranked(lists, weights)    a list for each row
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from manyarms._base import validate
from manyarms._base.typing import AnyArray, Array, Ints
from manyarms.errors import InvalidInput, UnknownAction
from manyarms.evaluation.forms import SUM_TOLERANCE, Ranked
from manyarms.logs.actions import Actions
from manyarms.logs.data import LoggedData
from manyarms.policies.row_policy import ListedByRow, LoggedProbabilities, MatrixOfProbabilities, RowPolicy

MOST_COLUMNS = 10_000  # of a matrix: beyond, nobody should want one
TOLD = (
    "probabilities of the logged actions (floats), action ids (integers or texts), a matrix of all probabilities (n, K), or "
    "Ranked lists"
)


def is_frame(thing: object) -> bool:
    """Whether something is a table with named columns, of pandas or polars."""
    return hasattr(thing, "columns") and hasattr(thing, "to_numpy") and not isinstance(thing, type)


def as_told(argument: str, said: Any) -> AnyArray:
    """Anything that is like an array, as one: of numbers, or of ids."""
    if np.ma.is_masked(said):
        raise InvalidInput(argument, validate.describe(said), "entries without a mask")
    try:
        array: AnyArray = np.asarray(said)
    except (TypeError, ValueError):  # lists of different lengths
        came, expected = (
            "lists of different lengths",
            f"{TOLD}: Ranked(lists, weights) says how likely each position is",
        )
        raise InvalidInput(argument, came, expected) from None
    if array.ndim not in (1, 2) or array.dtype.kind not in "fiuUOT":
        raise InvalidInput(argument, validate.describe(said), TOLD)
    if array.dtype.kind == "O" and array.ndim == 2:
        array = validate.as_floats(argument, array, TOLD)
    if array.dtype.kind == "O" and all(isinstance(one, float | np.floating) for one in array[:1]):
        array = validate.as_floats(argument, array, TOLD)
    if array.ndim == 2 and array.dtype.kind != "f":
        expected = "a matrix of probabilities as floats; or Ranked(lists, weights), for ranked lists of ids"
        raise InvalidInput(argument, validate.describe(array), expected)
    return array


Place = Callable[[int], str]
"""What a message calls a row of a part of a log."""


def told_policy(
    argument: str, said: Any, part: LoggedData, start: int = 0, holds: str | None = None, place: Place | None = None
) -> RowPolicy:
    """The policy at the rows of a part of a log, the first of which is row `start` of it.

    place: what messages call a row of the part; by default its number in the whole log.
    """
    place = place or (lambda row: f"row {start + row}")
    if isinstance(said, Ranked):
        _require_length(argument, len(said), part)
        return _ranked(said, part, place)
    if is_frame(said):
        _require_length(argument, len(said), part)
        return matrix_policy(argument, as_told(argument, said.to_numpy()), part, place, list(said.columns))
    array = as_told(argument, said)
    _require_length(argument, len(array), part)
    if array.ndim == 2:
        return matrix_policy(argument, array, part, place)
    if array.dtype.kind == "f" if holds is None else holds == "probabilities":
        return _probabilities(argument, array, part, place)
    rows = rows_of_ids(argument, array, part.catalogue, part.action_count, place)
    return ListedByRow(rows[:, None], np.ones((len(rows), 1)), part.action_count)


def _require_length(argument: str, came: int, part: LoggedData) -> None:
    if came != len(part):
        raise InvalidInput(argument, f"{came:,} rows", f"one for each of {len(part):,} rows of the log")


def _probabilities(argument: str, array: AnyArray, part: LoggedData, place: Place) -> RowPolicy:
    p = validate.as_floats(argument, array, "probabilities of the logged actions")
    wrong = (p < 0) | (p > 1 + SUM_TOLERANCE)
    if wrong.any():
        row = int(np.argmax(wrong))
        expected = "probabilities from 0 to 1, as floats; actions are integers or texts"
        raise InvalidInput(argument, f"{p[row]:g} at {place(row)}", expected)
    return LoggedProbabilities(np.minimum(p, 1.0), part.actions, part.action_count)


def matrix_policy(
    argument: str,
    matrix: AnyArray,
    part: LoggedData,
    place: Place,
    names: Sequence[Any] | None = None,
    rows: Ints | None = None,
) -> RowPolicy:
    """All probabilities, column by column those of the log's actions, of the ids in `names`, or of the actions `rows`."""
    columns, count = matrix.shape[1] if matrix.ndim == 2 else 0, part.action_count
    if columns > MOST_COLUMNS:
        expected = (
            f"at most {MOST_COLUMNS:,} columns; for more actions an id or a ranked list for each row, or a policy"
        )
        raise InvalidInput(argument, f"a matrix with {columns:,} columns", expected)
    ids = rows if names is None else rows_of_ids(argument, names, part.catalogue, count)
    if ids is not None and len(np.unique(ids)) < len(ids):
        raise InvalidInput(argument, "an action in two columns", "a column for each action")
    if ids is None and columns != count:
        expected = f"a matrix with a column for each of the log's {count:,} actions"
        raise InvalidInput(argument, f"shape {matrix.shape}", expected)
    p: Array = validate.as_floats(argument, matrix, "probabilities")
    sums = p.sum(axis=1)
    wrong = (p.min(axis=1) < 0) | (np.abs(sums - 1) > SUM_TOLERANCE)
    if wrong.any():
        row = int(np.argmax(wrong))
        came = f"{place(row)} with sum {sums[row]:.9g} and smallest entry {p[row].min():.3g}"
        raise InvalidInput(argument, came, "probabilities from 0 whose rows sum to 1")
    return MatrixOfProbabilities(p / sums[:, None], ids, count)


def _ranked(said: Ranked, part: LoggedData, place: Place) -> RowPolicy:
    positions = len(said.weights)
    if isinstance(said.lists, np.ndarray):
        shown = said.lists[:, :positions]
        lengths = np.full(len(shown), shown.shape[1])
        flat: Iterable[Any] = shown.ravel()
    else:
        cut = [list(one)[:positions] for one in said.lists]
        lengths = np.array([len(one) for one in cut], dtype=np.int64)
        flat = [name for one in cut for name in one]
    there = np.arange(int(lengths.max()))[None, :] < lengths[:, None]
    row_of = np.repeat(np.arange(len(lengths)), lengths)
    ids: Ints = np.zeros(there.shape, dtype=np.int64)
    ids[there] = rows_of_ids("lists", flat, part.catalogue, part.action_count, lambda entry: place(int(row_of[entry])))
    p = np.where(there, said.weights[: there.shape[1]], 0.0)
    twice = np.sort(np.where(there, ids, -1 - np.arange(there.shape[1])), axis=1)
    repeated = (np.diff(twice, axis=1) == 0).any(axis=1)
    if repeated.any():
        raise InvalidInput("lists", f"an id twice at {place(int(np.argmax(repeated)))}", "distinct ids in each list")
    return ListedByRow(ids, p / p.sum(axis=1, keepdims=True), part.action_count)


def rows_of_ids(
    argument: str, ids: Iterable[Any], catalogue: Actions | None, count: int, place: Place | None = None
) -> Ints:
    """Ids as rows of the log's actions; an unknown one is named, with its row of the log where that is known."""
    if catalogue is None:
        return validate.action_ids(argument, ids if isinstance(ids, np.ndarray) else list(ids), count)
    names = ids.tolist() if isinstance(ids, np.ndarray) else list(ids)
    if not catalogue.numbered:  # integers of a table are texts once they are ids
        names = [str(one) if type(one) is int else one for one in names]
    found = catalogue.find_all(names)
    if len(found) and found.min() < 0:
        first = int(np.argmax(found < 0))
        where = "" if place is None else f" at {place(first)}"
        some = ", ".join(map(repr, catalogue.ids(range(min(3, count)))))
        raise UnknownAction(
            argument, validate.describe(names[first]) + where, f"ids of the log's {count:,} actions ({some}, ...)"
        )
    return found


__all__ = ["TOLD", "Place", "as_told", "is_frame", "matrix_policy", "rows_of_ids", "told_policy"]
