"""Ways to say what a policy does that need a word of their own: a column of the log, a function of columns, ranked lists."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from manyarms._base import validate
from manyarms._base.typing import AnyArray, Array
from manyarms.errors import InvalidInput

SUM_TOLERANCE = 1e-5  # of probabilities that were computed in single precision


class Classifier(Protocol):
    """Anything that gives probabilities of classes; with `classes_`, the ids of actions that they are of."""

    def predict_proba(self, X: Any, /) -> Any:
        """(n, m)."""


class FrameOfProbabilities(Protocol):
    """A frame of pandas or polars with a column for each action, named by its id."""

    @property
    def columns(self) -> Any:
        """The ids."""

    def to_numpy(self) -> Any:
        """(n, m)."""


ColumnFunction = Callable[..., object]
"""A function of columns by name, or of these and the logged actions."""


@dataclass(frozen=True)
class InColumn:
    """A column of the log's table: the policy's probability of each logged action, or the action that it would take.

    holds: "probabilities" or "actions"; by default told by the entries: numbers with a fraction (floats) are probabilities,
    integers and texts are ids of actions.

    >>> InColumn("p_new")
    InColumn(name='p_new', holds=None)
    """

    name: str
    holds: Literal["probabilities", "actions"] | None = None

    def __post_init__(self) -> None:
        validate.instance("name", self.name, str, "the name of a column")
        if self.holds is not None:
            validate.one_of("holds", self.holds, ("probabilities", "actions"))


@dataclass(frozen=True)
class OfColumns:
    """A policy as a function of the log's original columns, which it gets as a dictionary of arrays, some rows at a time.

    function(columns) gives an action id for every row, the probabilities of the logged actions, a matrix of all probabilities
    (rows, K), or `Ranked` lists; function(columns, actions) the probabilities of the logged actions, which it is told by their
    ids. Numbers are float or integer arrays (NaN where missing), texts are strings (None), times are datetime64 (NaT).

    >>> young = OfColumns(lambda columns: np.where(columns["age"] < 30, "fig", "pear"))
    """

    function: ColumnFunction

    def __post_init__(self) -> None:
        arguments_of("function", self.function)


class Ranked:
    """A ranked list for each row, of which position j is shown with probability weights[j]; the weights sum to 1.

    lists: ids (n, m), or n lists of different lengths, each without repetition. A list that is shorter than the weights shares
    its missing positions' weight among those that it has, in proportion; what is longer is never shown beyond the weights.

    >>> Ranked([["fig", "pear"], ["pear", "plum"]], [0.8, 0.2])
    Ranked(2 lists, 2 positions)
    """

    def __init__(self, lists: npt.ArrayLike | Sequence[Sequence[str | int]], weights: npt.ArrayLike) -> None:
        self.weights: Array = validate.owned(validate.as_array("weights", weights, (None,)))
        if self.weights.min() < 0 or abs(self.weights.sum() - 1) > SUM_TOLERANCE:
            came = f"sum {self.weights.sum():.9g}, smallest {self.weights.min():.3g}"
            raise InvalidInput("weights", came, "probabilities of positions, numbers from 0 that sum to 1")
        if not self.weights[0] > 0:
            raise InvalidInput("weights", "a first position that is never shown", "a first weight above 0")
        self.lists: AnyArray | list[Sequence[str | int]] = _lists(lists)

    def __len__(self) -> int:
        return len(self.lists)

    def __repr__(self) -> str:
        return f"Ranked({len(self)} lists, {len(self.weights)} positions)"

    def part(self, rows: slice) -> Ranked:
        """The lists of some rows."""
        some = object.__new__(Ranked)
        some.weights, some.lists = self.weights, self.lists[rows]
        return some


def _lists(given: Any) -> AnyArray | list[Sequence[str | int]]:
    """Ids (n, m) as an array, or a list of ids for each row."""
    expected = "ids (n, m), or a list of ids for each row"
    if isinstance(given, np.ndarray) and given.ndim == 2:
        if np.ma.is_masked(given) or not given.size or given.dtype.kind not in "iuUO":
            raise InvalidInput("lists", validate.describe(given), expected)
        return validate.owned(given)
    listed = hasattr(given, "__len__") and hasattr(given, "__iter__") and not isinstance(given, type)
    if (
        not listed
        or isinstance(given, str | bytes | Mapping)
        or np.ndim(given if isinstance(given, np.ndarray) else 1) > 1
    ):
        raise InvalidInput("lists", validate.describe(given), expected)
    found = list(given)
    if not found:
        raise InvalidInput("lists", "no list", expected)
    for row, one in enumerate(found):
        if not isinstance(one, Sequence | np.ndarray) or isinstance(one, str | bytes) or not np.size(one):
            raise InvalidInput("lists", f"{validate.describe(one)} at row {row}", "a list of ids, at least one")
    return [tuple(one) for one in found]


def arguments_of(argument: str, function: object) -> int:
    """How many arguments a function takes: one, or two."""
    expected = "a function of one argument (contexts, or columns), or of two (and the logged actions)"
    if isinstance(function, type) or not callable(function):
        raise InvalidInput(argument, validate.describe(function), expected)
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        raise InvalidInput(
            argument, f"{validate.describe(function)}, whose arguments are not known", expected
        ) from None
    places = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    needed = [p for p in places if p.default is p.empty]
    named = [p for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty]
    found = len(needed) or min(1, len(places)) or int(any(p.kind is p.VAR_POSITIONAL for p in parameters))
    if named or found not in (1, 2):
        raise InvalidInput(argument, f"a function of {len(needed) + len(named)} arguments", expected)
    return found


__all__ = ["Classifier", "ColumnFunction", "FrameOfProbabilities", "InColumn", "OfColumns", "Ranked", "arguments_of"]
