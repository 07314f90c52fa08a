"""Contexts as callers have them, in the form that methods take: arrays of numbers."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from manyarms._base.typing import Array, ContextLike
from manyarms.errors import InvalidInput
from manyarms.logs.encoding import Encoder


def encoded(encoder: Encoder | None, x: ContextLike, name: str = "x") -> npt.ArrayLike:
    """One context (d,) or many (n, d); arrays of numbers are contexts already and pass as they are."""
    if type(x) is np.ndarray:
        return x
    if isinstance(x, Mapping):
        rows: list[Mapping[str, Any]] = [x]
    elif isinstance(x, list | tuple) and len(x) and isinstance(x[0], Mapping):
        rows = list(x)
    else:
        return cast(npt.ArrayLike, x)
    if encoder is None:
        came = "a mapping of columns" if isinstance(x, Mapping) else "a list of mappings"
        raise InvalidInput(name, came, "numbers, or an encoder: give `encoder=` where it was made")
    for row in rows:
        for column in encoder.columns:
            if column not in row:
                raise InvalidInput(name, f"no column {column!r}", "the columns " + ", ".join(encoder.columns))
    if isinstance(x, Mapping) and any(np.ndim(rows[0][column]) for column in encoder.columns):
        return encoder.apply(x)
    made = encoder.apply({column: [row[column] for row in rows] for column in encoder.columns})
    return cast(Array, made[0] if isinstance(x, Mapping) else made)


__all__ = ["encoded"]
