"""What the columns of one table become: numbers, rows of actions, propensities. Every refusal names the column and the row."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from manyarms._base.private import locked
from manyarms._base.typing import AnyArray, Array, Ints
from manyarms._base.validate import describe
from manyarms.errors import InvalidInput, UnknownAction
from manyarms.logs import checks
from manyarms.logs.action_columns import found_in
from manyarms.logs.actions import ActionId, Actions
from manyarms.logs.checks import Where
from manyarms.logs.columns import Resolved
from manyarms.logs.encoding import Encoder, as_codes
from manyarms.logs.gaps import filled, without_gaps
from manyarms.logs.propensity_models import PropensityModel
from manyarms.logs.tables import Column, Kind, Table


class TableColumns(ABC):
    """Reading a table's columns as the parts of a log: what is mapped to what, and which ids there are, is known."""

    columns: Resolved
    kinds: dict[str, Kind]
    catalogue: Actions | None
    action_count: int
    _applied: Encoder | None  # to the columns
    _own_ids: tuple[ActionId, ...] | None  # that the numbers in a support refer to
    _model: PropensityModel | None  # of missing propensities

    @abstractmethod
    def _complain_missing(self, name: str, column: Column, table: Table) -> None:
        """Refuse a column with missing entries."""

    def _propensities(
        self, table: Table, contexts: Array, actions: AnyArray
    ) -> tuple[AnyArray | None, AnyArray | None]:
        """Propensities, and which of them are estimates where that is said or made so row by row."""
        c = self.columns
        said = None if c.estimated is None else self._flags(c.estimated, table[c.estimated], table)
        column = None if c.propensity is None else table[c.propensity]
        if self._model is None:
            return None if column is None else self._numbers(str(c.propensity), column, table), said
        missing = np.ones(table.rows, dtype=np.bool_) if column is None else column.absent
        known = np.ones(table.rows) if column is None else self._numbers(str(c.propensity), without_gaps(column), table)
        checks.action_rows("actions", actions, self.action_count, table.where)
        labels = None if c.group is None else labels_in(table[c.group])[missing]
        own = self._model.own(np.asarray(contexts, dtype=np.float64)[missing], actions[missing], labels)
        before = c.propensities_are_estimates if said is None else said
        return filled(known, missing, own), missing | before

    def _flags(self, name: str, column: Column, table: Table) -> AnyArray:
        """1 and 0, also as the texts True and False."""
        if column.categories is None:
            return self._numbers(name, column, table)
        words = {"true": 1.0, "false": 0.0, "1": 1.0, "0": 0.0}
        known = np.array([words.get(text.lower(), np.nan) for text in column.categories.tolist()] + [np.nan])
        table.where.refuse(name, np.isnan(known[column.values]), column.texts(), "True or False (1 or 0) in every row")
        return known[column.values]

    def _entry_names(self) -> dict[str, str]:
        """The column behind each entry of a context, where every column is one entry: for messages."""
        context = self.columns.context
        if self._applied is not None or any(self.kinds[name].name != "number" for name in context):
            return {}
        return {f"contexts[{entry}]": name for entry, name in enumerate(context)}

    def _matrix(self, names: tuple[str, ...], table: Table) -> Array:
        """Columns of numbers and vectors side by side."""
        parts = [self._numbers(name, table[name], table) for name in names]
        if len(parts) == 1 and parts[0].ndim == 2:
            return parts[0]
        return locked(np.column_stack(parts))

    def _numbers(self, name: str, column: Column, table: Table) -> AnyArray:
        if column.categories is not None:
            for code, text in enumerate(column.categories.tolist()):
                if not is_number(text) and (here := column.values == code).any():
                    row = table.where.row(int(np.argmax(here)))
                    raise InvalidInput(f"column {name!r}", f"{describe(text)} at {row}", "numbers")
        if column.missing is not None:
            self._complain_missing(name, column, table)
        if column.categories is not None:
            return column.categories.astype(np.float64)[column.values]
        if column.kind.name == "time":
            raise InvalidInput(f"column {name!r}", "times", "numbers")
        return column.values

    def _action_rows(self, name: str, column: Column, table: Table) -> AnyArray:
        if self.catalogue is None:
            where = Where(table.first_row, self.columns.names(), table.unit)
            return checks.integers("actions", self._numbers(name, column, table), 1, where)
        if column.missing is not None:
            self._complain_missing(name, column, table)
        return self._looked_up(name, *as_codes(name, column), self.catalogue, table)

    def _support_ids(self, table: Table) -> AnyArray:
        names = self.columns.support
        if len(names) == 1 and table[names[0]].kind.name == "vector":
            support = self._matrix(names, table)
            if self._own_ids is None or self.catalogue is None or self._own_ids == tuple(self.catalogue):
                return support
            codes = checks.integers("support", support, 2, table.where)
            checks.action_rows("support", codes, len(self._own_ids), table.where)
            return self._looked_up(names[0], self._own_ids, codes, self.catalogue, table)
        return np.column_stack([self._action_rows(name, table[name], table) for name in names])

    def _looked_up(self, name: str, ids: Sequence[ActionId], codes: AnyArray, catalogue: Actions, table: Table) -> Ints:
        """Codes into some ids, (n,) or (n, m), as rows of the catalogue."""
        found: Ints = found_in(catalogue, ids)[codes]
        if (found < 0).any():
            first = np.unravel_index(int(np.argmax(found < 0)), found.shape)
            came = f"{describe(ids[codes[first]])} at {table.where.row(int(first[0]))}"
            raise UnknownAction(f"column {name!r}", came, f"an id of the catalogue, which has {len(catalogue)}")
        return found


def labels_in(column: Column) -> AnyArray:
    """Groups: integers as they are, everything else as texts."""
    numbered = column.values.dtype.kind in "iu" and column.categories is None and column.missing is None
    return column.values if numbered else column.texts()


def is_number(text: str) -> bool:
    """Whether a text is a number as Python writes them, without underscores."""
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text


__all__ = ["TableColumns", "is_number", "labels_in"]
