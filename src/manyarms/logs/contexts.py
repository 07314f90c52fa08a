"""Contexts as people have them: a dict, a row of a frame, a frame, a list of dicts; and as arrays, which stay as they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from manyarms._base.typing import AnyArray
from manyarms._base.validate import describe
from manyarms.errors import InvalidInput
from manyarms.logs.encoding import Encoder
from manyarms.logs.tables import Table, is_missing

NO_ENCODER = (
    "an array of numbers, of shape (d,) or (n, d): nothing is known here about columns. With encoder= (log.encoder of a log, "
    "manyarms.logs.Encoding(...).fit(frame, columns), or a fitted scikit-learn transformer) columns can be given"
)


def encoded(encoder: Encoder | None, x: Any, name: str = "x") -> Any:
    """Contexts as numbers: (d,) for one, (n, d) for several.

    x: arrays, and lists of numbers, which count as encoded already and come back as they are. With an encoder also
    one context     a mapping from columns to values, a named tuple, a pandas Series with the columns as its index
    several         a frame (pandas, polars, pyarrow, ...), a mapping from columns to lists of values, a list of mappings
    name: what an error calls it. Columns that the encoder does not read are ignored.
    """
    if type(x) is np.ndarray:
        return x
    if type(x) is dict:
        return _one_or_many(_needed(encoder, x, name), x, name)
    if hasattr(x, "as_py"):  # a struct of Arrow
        return encoded(encoder, x.as_py(), name)
    if isinstance(x, Mapping) or _is_record(x):
        return _one_or_many(_needed(encoder, x, name), x if isinstance(x, Mapping) else dict(x), name)
    if isinstance(x, list | tuple):
        if encoder is not None and hasattr(x, "_asdict"):
            return _one_or_many(encoder, x._asdict(), name)
        first = x[0] if x else None
        if isinstance(first, Mapping) or _is_record(first) or (encoder is not None and hasattr(first, "_asdict")):
            return _applied(_needed(encoder, x, name), _columns(_needed(encoder, x, name), x, name), len(x))
        return x
    if getattr(x, "ndim", None) == 1 and hasattr(x, "index") and hasattr(x, "to_dict"):  # a Series of pandas
        labels = list(x.index)
        if not labels or not all(isinstance(label, str) for label in labels):
            return x
        return _one_or_many(_needed(encoder, x, name), x.to_dict(), name)
    if hasattr(type(x), "columns") or hasattr(
        type(x), "column_names"
    ):  # of the class: a lazy frame would look for them
        return _applied(_needed(encoder, x, name), x, len(x) if hasattr(x, "__len__") else 0)
    return x


def _is_record(x: object) -> bool:
    """Rows of databases have keys, but are no mappings."""
    return (
        hasattr(x, "keys") and hasattr(x, "__getitem__") and not hasattr(x, "ndim") and not hasattr(type(x), "columns")
    )


def _needed(encoder: Encoder | None, x: object, name: str) -> Encoder:
    if encoder is None:
        raise InvalidInput(name, describe(x) if isinstance(x, dict) else f"a {type(x).__name__}", NO_ENCODER)
    return encoder


def _one_or_many(encoder: Encoder, x: Mapping[str, Any], name: str) -> AnyArray:
    """A mapping is a row where its values are single ones, and a table where they are lists of them."""
    columns = encoder.columns
    for column in columns or list(x)[:1]:
        if column not in x:
            raise _absent(name, f"no column {column!r}", columns)
        value = x[column]
        if isinstance(value, str | float | int) or _depth(value) == (1 if column in encoder.vectors else 0):
            break  # one context
        return _applied(encoder, x, len(value))
    try:
        return encoder.row(x)
    except KeyError as error:
        missing = next((column for column in columns if column not in x), None)
        if missing is None:  # an error inside the encoder
            raise
        raise _absent(name, f"no column {missing!r}", columns) from error


def _applied(encoder: Encoder, table: Any, rows: int) -> AnyArray:
    """Contexts of a table; what reads no column (an intercept alone) is told the number of rows."""
    return encoder.apply(table if encoder.columns else Table({}, rows))


def _depth(value: Any) -> int:
    """0 for a single value, 1 for a list of them or a vector, 2 for a list of vectors; a missing entry is a single value."""
    if isinstance(value, str | bytes) or is_missing(value):
        return 0
    if isinstance(value, np.ndarray) and value.dtype.kind != "O":
        return value.ndim
    if not hasattr(value, "__len__") or not hasattr(value, "__iter__"):
        return 0
    present = next((entry for entry in value if not is_missing(entry)), None)
    return 2 if present is not None and _depth(present) else 1


def _columns(encoder: Encoder, rows: Sequence[Any], name: str) -> dict[str, list[Any]]:
    """A list of rows as a mapping from columns to lists."""
    found: dict[str, list[Any]] = {column: [] for column in encoder.columns}
    for number, given in enumerate(rows):
        row = given._asdict() if hasattr(given, "_asdict") else given
        if not isinstance(row, Mapping) and not _is_record(row):
            raise InvalidInput(
                f"{name}[{number}]", describe(given), "a mapping from columns to values, as the first row"
            )
        for column, values in found.items():
            try:
                values.append(row[column])
            except (KeyError, IndexError):  # the latter from sqlite3's rows
                raise _absent(f"{name}[{number}]", f"no column {column!r}", encoder.columns) from None
    return found


def _absent(name: str, came: str, columns: Sequence[str]) -> InvalidInput:
    return InvalidInput(name, came, "the columns " + ", ".join(columns))


__all__ = ["encoded"]
