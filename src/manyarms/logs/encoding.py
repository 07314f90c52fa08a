"""TableEncoder: from columns of numbers and texts to context vectors, the same way every time.

The context of a row is the concatenation, in this order, of

    1                                        the intercept, where it was asked for
    for a column of numbers (or vectors)     (v - mean) / scale, with mean 0 and scale 1 where nothing is standardised;
                                             a missing number becomes the mean, and one further entry tells: 1 where
                                             it was missing, else 0. That entry is there only if something was missing
                                             when the encoder was fitted; otherwise a missing number is refused.
    for a column of texts                    one entry a category (sorted), 1 for the row's own, else 0;
                                             then `other`, for categories that were rare when the encoder was fitted
                                             or that are new; then `missing`, only if something was missing at the fit
                                             (otherwise a missing text counts as other)

`other` is always there, also where every fitted row has 0 in it: a model then knows nothing about new categories but
its prior, which is the truth. All entries of a text column sum to 1, so with an intercept they are collinear: harmless
under a prior or a ridge, which is how everything here learns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from manyarms._base import storage, validate
from manyarms._base import tables as shown
from manyarms._base.moments import RunningMoments
from manyarms._base.private import locked
from manyarms._base.typing import JSON, AnyArray, Array, Spec, TableLike, loose
from manyarms.errors import InvalidInput, StorageError
from manyarms.logs.encoded_columns import NumberPart, TextPart, as_codes
from manyarms.logs.frame_columns import table_of
from manyarms.logs.tables import Column, Table

KIND = "table-encoder"
TRANSFORMER = "transformer-encoder"
MOST_DISTINCT = 1_000_000  # texts remembered while fitting; a column with more is no category


@runtime_checkable
class Encoder(Protocol):
    """From the columns of a table to contexts; fitted once, and saved with whatever learned from its contexts."""

    @property
    def columns(self) -> list[str]:
        """The columns that it reads."""
        ...

    @property
    def vectors(self) -> frozenset[str]:
        """Those of them whose every entry is a vector."""
        ...

    @property
    def names(self) -> list[str]:
        """What each entry of a context is."""
        ...

    @property
    def dim(self) -> int:
        """The length of a context."""
        ...

    def apply(self, rows: Table | TableLike) -> Array:
        """Contexts (n, d) of a frame, of a mapping from columns to values, or of a Table."""
        ...

    def row(self, values: Mapping[str, object]) -> Array:
        """The context (d,) of one row; every column is there."""
        ...

    def state(self) -> tuple[Spec, dict[str, AnyArray]]:
        """A JSON part, whose "kind" is that of its loader (`manyarms._base.storage`), and arrays, which give it back."""
        ...

    def as_json(self) -> Spec:
        """All of it in one JSON object, which `encoder_of_json` reads."""
        ...


@runtime_checkable
class Transformer(Protocol):
    """What is used of a fitted scikit-learn transformer; `TransformerEncoder` makes an encoder of it."""

    def transform(self, X: TableLike | AnyArray, /) -> object:
        """Numbers (n, d) for the rows of a frame."""
        ...


EncoderLike = Encoder | Transformer
"""What `encoder` takes: an encoder, such as that of a log, or a fitted scikit-learn transformer."""


@dataclass(frozen=True, eq=False, repr=False)
class TableEncoder(shown.Shown):
    """A fitted encoding; `Encoding(...).fit(...)` makes one, `apply` uses it, `save` and `manyarms.load` keep it."""

    parts: tuple[NumberPart | TextPart, ...]
    intercept: bool

    @property
    def names(self) -> list[str]:
        """What each entry of a context is."""
        return (["intercept"] if self.intercept else []) + [name for part in self.parts for name in part.names]

    @cached_property
    def dim(self) -> int:
        """The length of a context."""
        return int(self.intercept) + sum(len(part.names) for part in self.parts)

    @cached_property
    def columns(self) -> list[str]:
        """The columns that it reads."""
        return [part.column for part in self.parts]

    @cached_property
    def vectors(self) -> frozenset[str]:
        """The columns whose every entry is a vector."""
        return frozenset(p.column for p in self.parts if isinstance(p, NumberPart) and len(p.mean) != 1)

    @cached_property
    def _places(self) -> list[tuple[NumberPart | TextPart, int]]:
        """Every part, and the first of its entries."""
        ends = np.cumsum([int(self.intercept)] + [len(part.names) for part in self.parts])
        return list(zip(self.parts, ends.tolist(), strict=False))

    def row(self, values: Mapping[str, object]) -> Array:
        """The context (d,) of one row, which has every column: what `apply` gives for it, bit for bit.

        >>> encoder = Encoding().fit({"age": [20.0, 40.0], "town": ["Ulm", "Bonn"]}, ["age", "town"])
        >>> encoder.row({"age": 50, "town": "Bonn"})
        array([1., 2., 1., 0., 0.])
        """
        out: Array = np.zeros(self.dim)
        if self.intercept:
            out[0] = 1.0
        for part, at in self._places:
            part.put(values[part.column], out, at)
        return out

    def apply(self, rows: Table | TableLike) -> Array:
        """Contexts (n, d) of the rows of a frame, of a mapping from columns to values, or of a Table.

        >>> encoder = Encoding().fit({"age": [20.0, 40.0], "town": ["Ulm", "Bonn"]}, ["age", "town"])
        >>> encoder.names
        ['intercept', 'age', 'town=Bonn', 'town=Ulm', 'town: other']
        >>> encoder.apply({"age": [50.0], "town": ["Rome"]})
        array([[1., 2., 0., 0., 1.]])
        """
        table = rows if isinstance(rows, Table) else table_of(rows, self.columns)
        out = np.empty((table.rows, self.dim))
        out[:, : int(self.intercept)] = 1.0
        at = int(self.intercept)
        where = table.where
        for part in self.parts:
            if part.column not in table.columns:
                raise InvalidInput("table", f"no column {part.column!r}", "the columns " + ", ".join(self.columns))
            width = len(part.names)
            part.write(table[part.column], out[:, at : at + width], where)
            at += width
        return locked(out)

    def state(self) -> tuple[Spec, dict[str, AnyArray]]:
        """A JSON part and arrays that give the encoder back bit for bit; to be saved with whatever is learned."""
        spec: list[dict[str, Any]] = []
        arrays: dict[str, AnyArray] = {}
        for number, part in enumerate(self.parts):
            common = {"column": part.column, "tells_missing": part.tells_missing}
            if isinstance(part, NumberPart):
                spec.append({"kind": "number", **common})
                arrays |= {f"{number}/{name}": getattr(part, name) for name in ("mean", "scale", "fill")}
            else:
                spec.append({"kind": "text", **common, "categories": list(part.categories)})
        return {"kind": KIND, "intercept": self.intercept, "parts": spec}, arrays

    @classmethod
    def from_state(cls, spec: Mapping[str, JSON], arrays: Mapping[str, AnyArray]) -> TableEncoder:
        """The encoder that `state` came from."""
        saved = loose(spec)
        try:
            parts: list[NumberPart | TextPart] = []
            for number, told in enumerate(saved["parts"]):
                name, tells = str(told["column"]), bool(told["tells_missing"])
                if told["kind"] == "number":
                    own = [arrays[f"{number}/{a}"] for a in ("mean", "scale", "fill")]
                    parts.append(NumberPart(name, *_checked_numbers(*own), tells))
                elif told["kind"] == "text":
                    parts.append(TextPart(name, _checked_categories(told["categories"]), tells))
                else:
                    raise InvalidInput("kind", validate.describe(told["kind"]), "'number' or 'text'")
            return cls(tuple(parts), bool(saved["intercept"]))
        except (KeyError, TypeError, ValueError) as error:
            raise StorageError(f"no encoder can be made of this: {error!r}") from error

    def as_json(self) -> Spec:
        """All of it in one JSON object; Python writes floats so that they come back bit for bit."""
        spec, arrays = self.state()
        return {**spec, "arrays": {name: array.tolist() for name, array in arrays.items()}}

    @classmethod
    def from_json(cls, told: Mapping[str, JSON]) -> TableEncoder:
        """The encoder that `as_json` came from."""
        given = loose(told)
        return cls.from_state(given, given.get("arrays", {}))

    @classmethod
    def unchanged(cls, widths: Mapping[str, int]) -> TableEncoder:
        """The encoder of columns that are contexts as they are: it knows their names, order and lengths, and refuses gaps."""
        parts = (NumberPart(name, np.zeros(n), np.ones(n), np.zeros(n), False) for name, n in widths.items())
        return cls(tuple(parts), False)

    def save(self, folder: Path | str) -> None:
        """Write the encoder to a folder of its own; `manyarms.load` reads it."""
        spec, arrays = self.state()
        storage.save(folder, KIND, spec, arrays)

    def _table(self) -> shown.Table:
        from manyarms.logs.printing import encoder_table

        return encoder_table(self)


def _checked_numbers(*given: npt.ArrayLike) -> tuple[Array, Array, Array]:
    """Mean, scale and fill of a saved part: vectors of one length, the scale above 0."""
    mean, scale, fill = (validate.as_floats("mean, scale, fill", one) for one in given)
    if mean.ndim != 1 or not mean.shape == scale.shape == fill.shape or not (scale > 0).all():
        raise InvalidInput("scale", validate.describe(scale), "numbers above 0, as many as there are means and fills")
    return mean, scale, fill


def _checked_categories(given: object) -> tuple[str, ...]:
    """Categories of a saved part: different texts."""
    if not isinstance(given, list) or not all(isinstance(one, str) for one in given) or len(set(given)) < len(given):
        raise InvalidInput("categories", validate.describe(given), "a list of different texts")
    return tuple(given)


@storage.LOADERS.register(KIND)
def _restore(spec: dict[str, storage.JSON], arrays: dict[str, AnyArray]) -> TableEncoder:
    return TableEncoder.from_state(spec, arrays)


def encoder_of_json(told: Mapping[str, Any]) -> Encoder:
    """The encoder that `as_json` came from; earlier releases, which had one kind alone, did not name it."""
    kind = told.get("kind", KIND)
    if kind == KIND:
        return TableEncoder.from_json(told)
    if kind == TRANSFORMER:
        from manyarms.logs.transformers import TransformerEncoder  # here: it needs scikit-learn

        return TransformerEncoder.from_json(told)
    raise StorageError(f"no encoder is of the kind {validate.describe(kind)}")


def as_encoder(name: str, given: object) -> Encoder | None:
    """An encoder, from itself or from a fitted scikit-learn transformer; None stays None."""
    if given is None or (isinstance(given, Encoder) and not isinstance(given, type)):
        return given
    if not isinstance(given, Transformer) or isinstance(given, type):
        expected = "an encoder, such as log.encoder, a fitted scikit-learn transformer, or None"
        raise InvalidInput(name, validate.describe(given), expected)
    from manyarms.logs.transformers import TransformerEncoder  # here: it needs scikit-learn

    return TransformerEncoder(given)


@dataclass(frozen=True)
class Encoding:
    """How columns shall be encoded; `fit` looks at rows and gives an TableEncoder.

    standardise      numbers to mean 0 and deviation 1 over the fitted rows (a constant column keeps scale 1)
    intercept        a leading 1
    categorical      columns whose numbers are names (a postcode): one entry a value, as for texts
    most_categories  keep at most this many categories of a column, the most frequent ones (ties by name)
    least_count      a category with fewer rows is rare, and counts as `other`
    """

    standardise: bool = True
    intercept: bool = True
    categorical: tuple[str, ...] = ()
    most_categories: int = 200
    least_count: int = 1

    def __post_init__(self) -> None:
        for name in ("most_categories", "least_count"):
            object.__setattr__(self, name, validate.count(name, getattr(self, name)))
        for name in ("standardise", "intercept"):
            object.__setattr__(self, name, validate.flag(name, getattr(self, name)))
        object.__setattr__(self, "categorical", names_of("categorical", self.categorical))

    def fit(self, rows: Table | Iterable[Table] | TableLike, columns: Sequence[str]) -> TableEncoder:
        """One pass over a frame, a mapping from columns to values, or Tables.

        The order of chunks changes nothing but the last digits of mean and scale.
        """
        tables: Iterable[Table]
        columns = names_of("columns", columns)
        if isinstance(rows, Table):
            tables = [rows]
        elif isinstance(rows, Mapping) or hasattr(rows, "columns") or hasattr(rows, "column_names"):
            tables = [table_of(rows, columns)]
        elif isinstance(rows, Iterable):
            tables = rows
        else:
            raise InvalidInput("rows", validate.describe(rows), "a frame, a mapping from columns to values, or Tables")
        if unknown := set(self.categorical) - set(columns):
            raise InvalidInput("categorical", sorted(unknown)[0], "columns of the context: " + ", ".join(columns))
        fits: dict[str, _NumberFit | _TextFit] = {}
        for table in tables:
            for name in columns:
                if name not in table.columns:
                    raise InvalidInput("columns", repr(name), "columns of the table: " + ", ".join(table.columns))
                column = table[name]
                if name not in fits:
                    texts = column.categories is not None or name in self.categorical
                    fits[name] = _TextFit(name) if texts else _NumberFit(name)
                fits[name].see(column)
        if columns and not fits:
            raise InvalidInput("tables", "no rows", "at least one row")
        parts = tuple(fits[name].part(self) for name in columns)
        if not parts and not self.intercept:
            raise InvalidInput("columns", "none, and no intercept", "a context with at least one entry")
        return TableEncoder(parts, self.intercept)


class _NumberFit:
    """The moments of a column of numbers, and whether any were missing."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.moments: RunningMoments | None = None
        self.missing = False

    def see(self, column: Column) -> None:
        if column.kind.name not in ("number", "vector"):
            raise InvalidInput(f"column {self.name!r}", f"a column of {column.kind.name}s", "numbers or texts")
        values = column.values.astype(np.float64).reshape(len(column), -1)
        if not (np.abs(np.nan_to_num(values, nan=0.0, posinf=np.inf, neginf=np.inf)) < validate.LARGEST).all():
            expected = f"finite numbers below {validate.LARGEST:g} in size"
            raise InvalidInput(f"column {self.name!r}", "an infinite number, or one as good as that", expected)
        gone = column.absent[:, None] | np.isnan(values)
        self.missing |= bool(gone.any())
        self.moments = self.moments or RunningMoments((values.shape[1],))
        self.moments.add(values, gone)

    def part(self, how: Encoding) -> NumberPart:
        moments = self.moments
        if moments is None or not moments.count.all():
            raise InvalidInput(f"column {self.name!r}", "nothing but missing numbers", "a column with numbers in it")
        mean, scale = moments.mean, moments.deviation
        # a column that is constant up to rounding has no scale of its own
        scale[scale <= 1e-12 * np.abs(mean)] = 1.0
        scale[scale == 0] = 1.0
        if how.standardise:
            return NumberPart(self.name, mean, scale, mean, self.missing)
        return NumberPart(self.name, np.zeros_like(scale), np.ones_like(scale), mean, self.missing)


class _TextFit:
    """How often each text was there."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.counts: dict[str, int] = {}
        self.missing = False

    def see(self, column: Column) -> None:
        categories, codes = as_codes(self.name, column)
        found = np.bincount(codes + 1, minlength=len(categories) + 1)
        self.missing |= bool(found[0])
        for text, count in zip(categories, found[1:].tolist(), strict=True):
            if count:
                self.counts[text] = self.counts.get(text, 0) + count
        if len(self.counts) > MOST_DISTINCT:
            came = f"more than {MOST_DISTINCT:,} different texts"
            raise InvalidInput(f"column {self.name!r}", came, "a column of categories, not of ids")

    def part(self, how: Encoding) -> TextPart:
        enough = [text for text, count in self.counts.items() if count >= how.least_count]
        frequent = sorted(enough, key=lambda text: (-self.counts[text], text))[: how.most_categories]
        return TextPart(self.name, tuple(sorted(frequent)), self.missing)


def names_of(argument: str, names: Iterable[str]) -> tuple[str, ...]:
    """Names of columns; a text alone is no list of them."""
    if isinstance(names, str | bytes) or not isinstance(names, Iterable):
        raise InvalidInput(argument, validate.describe(names), "a list of names of columns")
    found = tuple(names)
    for name in found:
        if not isinstance(name, str):
            raise InvalidInput(argument, validate.describe(name), "a list of names of columns")
    return found


__all__ = [
    "KIND",
    "TRANSFORMER",
    "Encoder",
    "EncoderLike",
    "Encoding",
    "NumberPart",
    "TableEncoder",
    "TableLike",
    "TextPart",
    "Transformer",
    "as_codes",
    "as_encoder",
    "encoder_of_json",
    "names_of",
]  # fmt: skip
