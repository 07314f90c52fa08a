"""Policies that are functions of somebody else's: of contexts, of the log's original columns, and classifiers.

They are asked for the rows of a chunk, matrices of probabilities for a few of them at a time. Which of contexts and columns they
get never depends on what they do with it: a plain function gets contexts, one inside `OfColumns` gets columns, a classifier that
was fitted on a frame (`feature_names_in_`) gets those columns, and any other one contexts.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from manyarms._base import validate
from manyarms._base.typing import AnyArray, Ints
from manyarms.errors import InvalidInput, MissingExtra
from manyarms.evaluation.forms import ColumnFunction, arguments_of
from manyarms.evaluation.given import Given
from manyarms.evaluation.told import Place, as_told, matrix_policy, rows_of_ids, told_policy
from manyarms.logs.data import LoggedData, LogSource
from manyarms.logs.original import column_in, original_columns, plain, plain_columns
from manyarms.policies.base import Policy
from manyarms.policies.row_policy import ComputedRows, LoggedProbabilities, MatrixOfProbabilities, RowPolicy

CELLS = 1 << 22  # numbers in a matrix of probabilities that is held at once
LEAST_ROWS = 256  # but never fewer rows than these
LOOKED_AT = 16  # rows that a function is shown first, to see what it gives


class _Asked(Given):
    """Something that answers for any rows of the log, told by the first few what its answers are like."""

    _wide = True  # whether answers are matrices

    def look(self, first: LoggedData) -> None:
        """Ask about the first rows, to see what the answers are."""
        answer = self._answer(first.rows(slice(0, LOOKED_AT)), 0)
        self.logged_only = answer.logged_only
        self._wide = isinstance(answer, MatrixOfProbabilities)

    def on(self, part: LoggedData, start: int) -> Policy:
        if not self._wide:
            return self._answer(part, start)
        step = max(LEAST_ROWS, CELLS // self.action_count)
        asked: Callable[[Ints], RowPolicy] = lambda index: self._answer(_rows(part, index), start + int(index[0]))  # noqa: E731
        return ComputedRows(asked, np.arange(len(part)), self.action_count, step, logged_only=self.logged_only)

    @abstractmethod
    def _answer(self, part: LoggedData, start: int) -> RowPolicy:
        """What it says of some rows of a chunk, the first of which is row `start` of the log."""


def _rows(part: LoggedData, index: Ints) -> LoggedData:
    """Some rows of a chunk; as views where they follow each other, as they mostly do."""
    together = len(index) == index[-1] - index[0] + 1 and bool((np.diff(index) == 1).all())
    return part.rows(slice(int(index[0]), int(index[-1]) + 1) if together else index)


class _Columns(dict[str, AnyArray]):
    """Columns by name, which name each other where one is not there."""

    def __init__(self, argument: str, columns: dict[str, AnyArray]) -> None:
        super().__init__(columns)
        self._argument = argument

    def __missing__(self, name: object) -> AnyArray:
        came = f"a function that asks for the column {name!r}"
        raise InvalidInput(self._argument, came, f"one of the log's columns: {', '.join(map(repr, self))}")


class FromFunction(_Asked):
    """A function of contexts (b, d), or of original columns; and of the logged actions, where it takes two arguments."""

    def __init__(self, function: ColumnFunction, log: LogSource, argument: str, *, of_columns: bool) -> None:
        self._both = arguments_of(argument, function) == 2
        name = getattr(function, "__name__", type(function).__name__)
        super().__init__(argument, "a function" if name == "<lambda>" else f"the function {name}", log.action_count)
        self._function, self._of_columns = function, of_columns
        self.columns_for = "a function of columns" if of_columns else ""

    def _answer(self, part: LoggedData, start: int) -> RowPolicy:
        rows: Any = part.contexts
        place: Place | None = None
        if self._of_columns:
            table = original_columns(part, self.columns_for)
            rows, place = _Columns(self.argument, plain_columns(table)), table.where.row
        if not self._both:
            return told_policy(self.argument, self._function(rows), part, start, place=place)
        logged: AnyArray = part.actions if part.catalogue is None else part.catalogue.named(part.actions)
        answer = as_told(self.argument, self._function(rows, logged))
        made = told_policy(self.argument, answer, part, start, "probabilities", place)
        if not isinstance(made, LoggedProbabilities):
            expected = "the probabilities of the logged actions (n,), from a function of two arguments"
            raise InvalidInput(self.argument, f"shape {answer.shape}", expected)
        return made


class FromClassifier(_Asked):
    """predict_proba of anything; its classes are ids of the log's actions, and what is no class is never played."""

    def __init__(self, model: Any, log: LogSource, argument: str) -> None:
        super().__init__(argument, type(model).__name__, log.action_count)
        self._model = model
        self._ids = self._classes(log)
        names = getattr(model, "feature_names_in_", None)
        self._names = None if names is None else [str(name) for name in names]
        encoder = getattr(log, "encoder", None)
        self._encoded = self._names is None or (encoder is not None and self._names == list(encoder.names))
        self.columns_for = "" if self._encoded else f"{self.name}, which was fitted on columns"
        wanted = getattr(model, "n_features_in_", None)
        if self._names is None and wanted is not None and wanted != log.dim:
            came = f"a classifier of {wanted} features"
            expected = (
                f"one of the log's contexts, of length {log.dim}, or one fitted on a frame of its original columns"
            )
            raise InvalidInput(argument, came, expected)

    def _classes(self, log: LogSource) -> Ints | None:
        """The actions of the classifier's columns; None where they are all of the log's, in order."""
        classes = getattr(self._model, "classes_", None)
        if classes is None:
            return None
        if not isinstance(classes, np.ndarray) or classes.ndim != 1:
            raise InvalidInput(self.argument, f"classes_: {validate.describe(classes)}", "the ids of actions, (m,)")
        return rows_of_ids(self.argument, classes, getattr(log, "catalogue", None), self.action_count)

    def _answer(self, part: LoggedData, start: int) -> RowPolicy:
        found = self._model.predict_proba(self._features(part))
        if isinstance(found, list) or np.ndim(found) != 2 or len(found) != len(part):
            came = "answers for several outputs" if isinstance(found, list) else f"shape {np.shape(found)}"
            raise InvalidInput(self.argument, came, f"predict_proba of shape ({len(part)}, m)")
        matrix = as_told(self.argument, found)
        if self._ids is not None and matrix.shape[1] != len(self._ids):
            raise InvalidInput(self.argument, f"shape {matrix.shape}", f"a column for each of {len(self._ids)} classes")
        return matrix_policy(self.argument, matrix, part, lambda row: f"row {start + row}", rows=self._ids)

    def _features(self, part: LoggedData) -> Any:
        if self._names is None:
            return part.contexts
        try:
            pandas = import_module("pandas")
        except ImportError as error:
            raise MissingExtra("pandas", "frames", "a classifier that was fitted on a frame") from error
        if self._encoded:
            return pandas.DataFrame(part.contexts, columns=self._names)
        table = original_columns(part, self.columns_for)
        return pandas.DataFrame({name: plain(column_in(table, name, self.argument)) for name in self._names})


__all__ = ["LOOKED_AT", "FromClassifier", "FromFunction"]
