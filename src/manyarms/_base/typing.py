"""Types used across the package: arrays, float64 everywhere a belief is concerned, and what callers may give."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias, cast, runtime_checkable

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
AnyArray = npt.NDArray[Any]

JSON: TypeAlias = "bool | int | float | str | Sequence[JSON] | Mapping[str, JSON] | None"
"""What a file of JSON gives back unchanged."""

Spec: TypeAlias = dict[str, JSON]
"""What is saved of an object beside its arrays."""

Vector: TypeAlias = np.ndarray[tuple[int], np.dtype[Any]]
"""An array that is known to have one axis."""

Matrix: TypeAlias = np.ndarray[tuple[int, int], np.dtype[Any]]
"""An array that is known to have two axes."""

SomeArray: TypeAlias = np.ndarray[tuple[int, int, int, int, int, int, int, int], np.dtype[Any]]
"""In overloads, before `Vector` and `Matrix`: an array whose number of axes a type checker does not know (NDArray) counts as one
of any number, so that it fits this one first; one that is known to have one or two axes does not."""

Cell = str | float | bool | None
"""A value of a table: a number or a text; None where it is missing."""

Row = Mapping[str, Cell]
"""A row of a table by the names of its columns."""

Columns = Mapping[str, Sequence[Cell] | AnyArray]
"""Columns of a table by their names."""


@runtime_checkable
class FrameLike(Protocol):
    """A data frame: pandas', polars', pyarrow's."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""

    @property
    def columns(self) -> object:
        """Names of the columns, or the columns."""


TableLike = FrameLike | Columns
"""Rows of a table: a frame, or a mapping from columns to values."""

ContextLike = npt.ArrayLike | Row | Columns | FrameLike | Sequence[Row]
"""One context or many: numbers; or, where there is an encoder, a mapping, a frame or a list of mappings."""

ActionContexts = npt.ArrayLike | Sequence[npt.ArrayLike]
"""A context for each action, (m, d), of many contexts (n, m, d), or a list of n arrays (m_i, d)."""

TimeLike = npt.ArrayLike | datetime.datetime | Sequence[datetime.datetime] | None
"""A time or times: numbers, or dates as seconds since 1970 (UTC where they do not say); None where nobody says."""


def loose(spec: Mapping[str, JSON]) -> dict[str, Any]:
    """What was saved, to be read without a type for every entry: whoever makes an object of it checks what it gets."""
    return cast("dict[str, Any]", spec)


__all__ = [
    "JSON",
    "ActionContexts",
    "AnyArray",
    "Array",
    "Bools",
    "Cell",
    "Columns",
    "ContextLike",
    "FrameLike",
    "Ints",
    "Matrix",
    "Row",
    "SomeArray",
    "Spec",
    "TableLike",
    "TimeLike",
    "Vector",
    "loose",
]
