"""Tables one after the other: the columns of a log that was read in chunks, in one piece."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from manyarms._base.typing import AnyArray
from manyarms.logs.tables import Column, Table, text_column


def joined_tables(tables: Sequence[Table]) -> Table:
    """The rows of several tables one after the other, of the columns that all of them have."""
    names = [name for name in tables[0].columns if all(name in one.columns for one in tables)]
    found = {name: _joined([one.columns[name] for one in tables]) for name in names}
    rows = np.concatenate([one.row_numbers for one in tables])
    return Table(found, len(rows), rows, tables[0].unit)


def _joined(columns: Sequence[Column]) -> Column:
    missing = np.concatenate([one.absent for one in columns])
    if all(one.categories is None for one in columns):
        return Column(np.concatenate([one.values for one in columns]), missing)
    codes: dict[str, int] = {}
    values: list[AnyArray] = []
    for one in columns:
        texts = one if one.categories is not None else text_column(one.texts().tolist())
        assert texts.categories is not None
        here = [codes.setdefault(text, len(codes)) for text in texts.categories.tolist()]
        values.append(np.array([*here, -1], dtype=np.int64)[texts.values])
    joined = np.where(missing, -1, np.concatenate(values))
    return Column(joined, missing, np.array(list(codes) or [""], dtype=np.str_))


__all__ = ["joined_tables"]
