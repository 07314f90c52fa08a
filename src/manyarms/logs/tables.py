"""Columns as numpy arrays, whatever they were read from: the one form that all readers give and all checks take.

A column is of one kind: numbers, texts, times, or vectors (a row of numbers each). Missing entries are marked, never
mixed up with values. Texts are codes into their distinct values, which is what catalogues and encodings need.
"""

from __future__ import annotations

import datetime
import numbers
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from manyarms._base.typing import AnyArray, Bools, Ints
from manyarms._base.validate import describe
from manyarms.errors import InvalidInput
from manyarms.logs.actions import ActionId
from manyarms.logs.checks import Where

if TYPE_CHECKING:
    from manyarms.logs.columns import Columns
    from manyarms.logs.encoding import Encoding

KindName = Literal["number", "text", "time", "vector", "mixed", "unsupported"]
MOST_SECONDS = 1e11  # unix times above are milliseconds: as seconds they would lie beyond the year 5000


class Kind(NamedTuple):
    """What a column holds; width is the length of its vectors where the source states it, 1 for numbers.

    "mixed": numbers and texts, which can be read as texts only. "unsupported": something that has no place in a log. Both are
    harmless until the column is asked for.
    """

    name: KindName
    width: int | None = 1


@dataclass(frozen=True, eq=False)
class Column:
    """values (n,) or (n, m); missing (n,), or None where nothing is missing; categories: see `texts`."""

    values: AnyArray
    missing: Bools | None = None
    categories: AnyArray | None = None  # texts: the distinct ones; values are then codes into it, -1 where missing

    def __post_init__(self) -> None:
        if self.missing is not None and not self.missing.any():
            object.__setattr__(self, "missing", None)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def kind(self) -> Kind:
        if self.categories is not None:
            return Kind("text")
        if self.values.dtype.kind == "M":
            return Kind("time")
        return Kind("vector", int(self.values.shape[1])) if self.values.ndim == 2 else Kind("number")

    @property
    def absent(self) -> Bools:
        """Where entries are missing, as a mask in any case."""
        return np.zeros(len(self), dtype=np.bool_) if self.missing is None else self.missing

    def texts(self) -> AnyArray:
        """A text column as an array of strings, '' where missing; other columns as numpy writes them."""
        if self.categories is None:
            return np.where(self.absent, "", self.values.astype(np.str_))
        known: AnyArray = np.append(self.categories, "")  # the code -1 takes the last one
        return known[self.values]

    def rows(self, keep: AnyArray | slice) -> Column:
        return Column(self.values[keep], None if self.missing is None else self.missing[keep], self.categories)


@dataclass(frozen=True, eq=False)
class Table:
    """Some rows of named columns."""

    columns: Mapping[str, Column]
    rows: int
    first_row: int | Ints = 0  # for messages: the number of the first row, or of each
    unit: str = (
        "row"  # and what rows are called in the source: lines of a text file, whose numbers are then those of lines
    )

    def __getitem__(self, name: str) -> Column:
        return self.columns[name]

    @property
    def row_numbers(self) -> Ints:
        """The number of each row in its source, for messages."""
        return self.first_row + np.arange(self.rows) if isinstance(self.first_row, int) else self.first_row

    def part(self, index: Bools | Ints | slice) -> Table:
        """The rows of a mask, of integers or of a slice."""
        numbers = self.row_numbers[index]
        return Table({name: c.rows(index) for name, c in self.columns.items()}, len(numbers), numbers, self.unit)

    @property
    def where(self) -> Where:
        """How messages speak of its rows."""
        return Where(self.first_row, unit=self.unit)

    def chunks(self, rows: int) -> Iterator[Table]:
        """The table in parts of at most `rows`."""
        for start in range(0, self.rows, rows):
            yield self.part(slice(start, start + rows))


@dataclass(frozen=True)
class Stated:
    """What a source says about itself beyond its columns.

    catalogue_ids: the ids of the actions, in the order that the numbers in `support` refer to. encoder: how its vectors were
    made, as JSON. columns: which column is what, where the format leaves no choice. encoding: how its columns shall be encoded.
    """

    action_count: int | None = None
    propensities_are_estimates: bool = False
    catalogue_ids: tuple[ActionId, ...] | None = None
    encoder: Mapping[str, Any] | None = None
    notes: tuple[str, ...] = ()
    columns: Columns | None = None
    encoding: Encoding | None = None


class TableSource(ABC):
    """Something that has columns and gives them in chunks of rows, as often as asked."""

    name: str
    stated: Stated = Stated()
    """What it says about itself beyond its columns."""
    row_count: int | None = None
    """How many rows there are, where that is known without reading them."""
    rereads: bool = False
    """Whether every pass over `tables` reads a file; what was decoded is kept otherwise."""

    @abstractmethod
    def kinds(self) -> dict[str, Kind]:
        """What each column holds."""

    @abstractmethod
    def tables(self, columns: Sequence[str], rows: int) -> Iterator[Table]:
        """Some columns in chunks of at most `rows` rows; every call starts anew."""

    def row_groups(self) -> tuple[int, ...] | None:
        """The rows of each part that can be read without the others, in order; None where there are no such parts."""
        return None

    def group_tables(self, group: int, columns: Sequence[str], rows: int) -> Iterator[Table]:
        """Some columns of one of the `row_groups`, in chunks of at most `rows` rows."""
        raise InvalidInput("source", self.name, "a source with row groups, such as a Parquet file")

    def complaint(self, column: str) -> InvalidInput:
        """What is wrong with a column that is mixed or unsupported."""
        return InvalidInput(f"column {column!r}", f"something else in {self.name}", "numbers, texts, times or vectors")

    def as_texts(self, columns: Collection[str]) -> TableSource:
        """The same with these columns as texts, where the source has numbers written out (a postcode 01234)."""
        return self

    def limits(self, column: str) -> tuple[int, int] | None:
        """The smallest and the largest integer of a column where the source states them, without reading the column."""
        return None


@dataclass(eq=False)
class MemoryTables(TableSource):
    """A table that is at hand already."""

    table: Table
    name: str = "the frame"
    stated: Stated = field(default_factory=Stated)
    complaints: Mapping[str, InvalidInput] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.row_count = self.table.rows

    def kinds(self) -> dict[str, Kind]:
        good = {name: column.kind for name, column in self.table.columns.items()}
        return good | {name: Kind("unsupported") for name in self.complaints}

    def complaint(self, column: str) -> InvalidInput:
        return self.complaints[column]

    def tables(self, columns: Sequence[str], rows: int) -> Iterator[Table]:
        chosen = {name: self.table[name] for name in columns}
        yield from Table(chosen, self.table.rows, self.table.first_row, self.table.unit).chunks(rows)


# ---- making columns


def number_column(values: AnyArray, missing: Bools | None = None) -> Column:
    """Numbers (or vectors of them); NaN counts as missing in a column of numbers."""
    if values.dtype.kind == "f" and values.ndim == 1:
        nan = np.isnan(values)
        missing = nan if missing is None else missing | nan
    return Column(values, missing)


def text_column(texts: Iterable[str | None]) -> Column:
    """Texts; None is a missing one."""
    codes: dict[str, int] = {}
    values: Ints = np.array(
        [-1 if text is None else codes.setdefault(text, len(codes)) for text in texts], dtype=np.int64
    )
    categories = np.array(list(codes), dtype=np.str_) if codes else np.empty(0, dtype="U1")
    return Column(values, values < 0, categories)


def column_of(name: str, values: Any, missing: Bools | None = None) -> Column:
    """A column from an array or a list; Python objects are looked at one by one, and must be of one kind."""
    array = values if isinstance(values, np.ndarray) else _array_of(values)
    if np.ma.is_masked(array):
        raise InvalidInput(f"column {name!r}", describe(array), "vectors without masked entries")
    if array.dtype.kind in "biuf" and array.ndim in (1, 2):
        return number_column(array, missing)
    if array.dtype.kind == "M":
        return _times(array.astype("datetime64[us]"), missing)
    if array.dtype.kind in "UT" and array.ndim == 1:
        gone = np.zeros(len(array), dtype=np.bool_) if missing is None else missing
        return text_column(None if m else str(v) for v, m in zip(array, gone, strict=True))
    if array.dtype.kind == "O" and array.ndim == 1:
        return _from_objects(name, array, missing)
    raise InvalidInput(f"column {name!r}", describe(array), "numbers, texts, times, or a row of numbers in each entry")


def _times(values: AnyArray, missing: Bools | None) -> Column:
    absent: Bools = np.isnat(values)
    return Column(values, absent if missing is None else absent | missing)


def _array_of(values: Any) -> AnyArray:
    vectors = all(isinstance(row, (list, tuple)) or (isinstance(row, np.ndarray) and row.ndim) for row in values)
    if len(values) and vectors and len({len(row) for row in values}) == 1:
        with suppress(ValueError):  # lists of different lengths inside of them
            return np.asarray(values)
    array = np.empty(len(values), dtype=object)  # rows may be of different lengths, which is for the next step to say
    for index, value in enumerate(values):
        array[index] = value
    return array


def _from_objects(name: str, array: AnyArray, missing: Bools | None) -> Column:
    gone = np.array([is_missing(value) for value in array], dtype=np.bool_) if missing is None else missing
    present = np.flatnonzero(~gone)
    if not len(present):
        return Column(np.full(len(array), np.nan), gone)
    first = array[present[0]]
    wanted = _family(first)
    if wanted is None:
        raise InvalidInput(
            f"column {name!r}", f"{describe(first)} at row {present[0]}", "numbers, texts, times or lists"
        )
    for index in present:
        if _family(array[index]) != wanted:
            came = f"{describe(array[index])} at row {index}"
            raise InvalidInput(f"column {name!r}", came, f"one kind of entries: {wanted}, as at row {present[0]}")
    if wanted == "texts":
        return text_column(None if m else str(v) for v, m in zip(array, gone, strict=True))
    if wanted == "numbers":
        integral = all(isinstance(value, numbers.Integral) for value in array[present])
        filled = [0 if m else v for v, m in zip(array, gone, strict=True)]
        for index in present:
            bits = 63 if integral else 1023  # an infinite float is a float: whether it may stand there is said later
            if not isinstance(array[index], float | np.floating) and abs(array[index]) >= 2**bits:
                expected = f"numbers below 2**{bits} in size"
                raise InvalidInput(f"column {name!r}", f"{describe(array[index])} at row {index}", expected)
        return number_column(np.array(filled, dtype=np.int64 if integral else np.float64), gone)
    if wanted == "times":
        stamps = [np.datetime64("NaT", "us") if m else utc(v) for v, m in zip(array, gone, strict=True)]
        return _times(np.array(stamps, dtype="datetime64[us]"), gone)
    return _vectors(name, array, gone)


def is_missing(value: object) -> bool:
    """Whether a value stands for nothing: None, NaN, NaT, or pandas' NA, which is known by its name alone."""
    if value is None:
        return True
    if isinstance(value, (float, np.floating, np.datetime64)):
        return bool(value != value)
    if isinstance(value, Decimal):
        return value.is_nan()
    return type(value).__name__ in ("NAType", "NaTType") and type(value).__module__.startswith("pandas.")


def _family(value: object) -> str | None:
    if isinstance(value, str):
        return "texts"
    if isinstance(value, (numbers.Real, Decimal, np.bool_)):
        return "numbers"
    if isinstance(value, (datetime.date, np.datetime64)):
        return "times"
    return "lists" if isinstance(value, (list, tuple, np.ndarray)) else None


def _vectors(name: str, array: AnyArray, gone: Bools) -> Column:
    present = np.flatnonzero(~gone)
    width = len(array[present[0]])
    for index in present:
        if len(array[index]) != width:
            came = f"{len(array[index])} numbers at row {index}"
            raise InvalidInput(f"column {name!r}", came, f"{width} numbers in every row, as at row {present[0]}")
    try:
        values = np.array([np.full(width, np.nan) if m else v for v, m in zip(array, gone, strict=True)])
        values = values if values.dtype.kind in "iuf" else values.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput(
            f"column {name!r}", "lists that hold other things than numbers", "lists of numbers"
        ) from error
    return Column(values, gone)


def utc(value: Any) -> np.datetime64:
    """A time as numpy's datetime64 in UTC; one without a zone is taken to be in UTC."""
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        value = value.astimezone(datetime.UTC).replace(tzinfo=None)
    stamp: np.datetime64 = np.datetime64(value).astype("datetime64[us]")
    return stamp


def as_times(name: str, column: Column, where: Where) -> AnyArray:
    """Times as they are; texts as ISO 8601; numbers as unix seconds, or milliseconds above 1e11. NaT where missing."""
    if column.kind.name == "time":
        return column.values
    if column.categories is not None:
        stamps = np.empty(len(column.categories) + 1, dtype="datetime64[us]")
        stamps[-1] = np.datetime64("NaT", "us")
        for code, text in enumerate(column.categories.tolist()):
            try:
                stamps[code] = utc(datetime.datetime.fromisoformat(text))
            except (ValueError, OverflowError):  # of a time at the end of what is counted, in another zone
                row = where.row(int(np.argmax(column.values == code)))
                raise InvalidInput(f"column {name!r}", f"{describe(text)} at {row}", "times in ISO 8601") from None
        return stamps[column.values]
    if column.values.ndim != 1:
        raise InvalidInput(f"column {name!r}", "vectors", "times")
    values = column.values.astype(np.float64)
    with np.errstate(invalid="ignore"):
        micros = np.where(np.abs(values) > MOST_SECONDS, values * 1e3, values * 1e6)
    beyond = ~column.absent & ~(np.abs(micros) < 2**62)
    if beyond.any():
        first = int(np.argmax(beyond))
        expected = "times as unix seconds, or milliseconds"
        raise InvalidInput(f"column {name!r}", f"{values[first]:g} at {where.row(first)}", expected)
    micros = np.where(column.absent, np.nan, micros)
    result: AnyArray = np.full(len(micros), np.datetime64("NaT", "us"), dtype="datetime64[us]")
    good = np.isfinite(micros)
    result[good] = micros[good].astype(np.int64).astype("datetime64[us]")
    return result


__all__ = [
    "Column", "Kind", "MemoryTables", "Stated", "Table", "TableSource", "as_times", "column_of", "is_missing",
    "number_column", "text_column", "utc",
]  # fmt: skip
