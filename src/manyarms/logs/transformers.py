"""TransformerEncoder: a fitted scikit-learn transformer, or a pipeline of them, in the place of a TableEncoder.

It is saved by `skops`, which writes estimators as data: loading makes objects of known types alone and calls nothing that a
file brings along. Types beyond (a function of one's own, a class of another package) are refused, and named, when the encoder is
saved, not when it is too late.
"""

from __future__ import annotations

import base64
import copy
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import numpy as np

from manyarms._base import storage, validate
from manyarms._base import tables as shown
from manyarms._base.private import locked
from manyarms._base.text import counted, shortened
from manyarms._base.typing import JSON, AnyArray, Array, Cell, Spec, TableLike, loose
from manyarms.errors import InvalidInput, MissingExtra, StorageError
from manyarms.logs.checks import Where
from manyarms.logs.encoding import TRANSFORMER, Transformer, names_of
from manyarms.logs.frame_columns import table_of
from manyarms.logs.tables import Column, Table

# types of scikit-learn's own parts that skops does not list: data, or functions without effects
HARMLESS = (
    "numpy.dtype",
    "scipy._lib.array_api_compat.numpy._aliases.asarray",
    "scipy.interpolate._bsplines.BSpline",
    "sklearn.compose._column_transformer._RemainderColsList",
    "sklearn.feature_selection._univariate_selection.chi2",
    "sklearn.feature_selection._univariate_selection.f_classif",
    "sklearn.feature_selection._univariate_selection.f_regression",
)


class TransformerEncoder(shown.Shown):
    """A fitted scikit-learn transformer as the encoder of contexts.

    columns: what it reads, in its order; not needed where it was fitted on a frame (`feature_names_in_`). Sparse results are
    made dense. It is copied: fitting the original again changes nothing here.
    """

    def __init__(self, transformer: Transformer, columns: Sequence[str] | None = None) -> None:
        self.transformer = copy.deepcopy(_fitted(transformer))
        known = getattr(self.transformer, "feature_names_in_", None)
        if columns is None:
            if known is None:
                expected = "the names of its columns, since the transformer was not fitted on a frame"
                raise InvalidInput("columns", "None", expected)
            columns = list(known)
        self.columns: list[str] = list(names_of("columns", columns))
        self._takes_frames = known is not None
        if known is not None and self.columns != list(known):
            raise InvalidInput("columns", ", ".join(self.columns), f"{', '.join(known)}, as the transformer was fitted")
        width = getattr(self.transformer, "n_features_in_", len(self.columns))
        if width != len(self.columns) or len(set(self.columns)) != len(self.columns):
            raise InvalidInput("columns", ", ".join(self.columns), f"{width} different names")
        self.names: list[str] = _names_out(self.transformer, self.columns)
        self._saved: bytes | None = None

    def __repr__(self) -> str:
        kind = type(self.transformer).__name__
        return f"TransformerEncoder({kind}, columns={self.columns!r}, dim={self.dim})"

    def __deepcopy__(self, memo: object) -> TransformerEncoder:
        return self  # it never changes

    @property
    def dim(self) -> int:
        """The length of a context."""
        return len(self.names)

    @property
    def vectors(self) -> frozenset[str]:
        """None: every entry of a column is one value."""
        return frozenset()

    def apply(self, rows: Table | TableLike) -> Array:
        """Contexts (n, d) of the rows of a frame, of a mapping from columns to values, or of a Table.

        A frame of pandas or polars meets the transformer as it is.
        """
        frame: Any = rows
        own = self._takes_frames and type(rows).__module__.partition(".")[0] in ("pandas", "polars")
        if own and hasattr(frame, "__len__") and all(column in frame.columns for column in self.columns):
            given: Any = frame[self.columns]
        else:
            table = rows if isinstance(rows, Table) else table_of(rows, self.columns)
            for column in self.columns:
                if column not in table.columns:
                    raise InvalidInput("table", f"no column {column!r}", "the columns " + ", ".join(self.columns))
            arrays = {column: _entries(column, table[column]) for column in self.columns}
            given = _frame(arrays) if self._takes_frames else _matrix(arrays)
        return self._transformed(given, 0 if not isinstance(rows, Table) else rows.first_row)

    def row(self, values: Mapping[str, object]) -> Array:
        """The context (d,) of one row, which has every column."""
        context: Array = self.apply({column: [cast(Cell, values[column])] for column in self.columns})[0]
        return context

    def _transformed(self, given: Any, first_row: Any) -> Array:
        try:
            made = self.transformer.transform(given)
        except (TypeError, ValueError) as error:
            told = (str(error).strip().splitlines() or [type(error).__name__])[0]
            expected = f"rows that {type(self.transformer).__name__} takes ({told})"
            raise InvalidInput("table", f"a table of {len(given):,} rows", expected) from error
        if hasattr(made, "toarray"):
            validate.room("table", made.shape[0], 8.0 * made.shape[1], "rows, made dense")
            made = made.toarray()
        array: AnyArray = np.asarray(made)
        if array.dtype.kind == "O":
            array = validate.as_floats("transformer", array)
        if array.dtype.kind not in "biuf" or array.shape != (len(given), self.dim):
            came = f"{validate.describe(array)} from {type(self.transformer).__name__}"
            raise InvalidInput("transformer", came, f"numbers of shape ({len(given)}, {self.dim})")
        out: Array = array.astype(np.float64, copy=True)
        bad = ~(np.abs(out) < validate.LARGEST)
        Where(first_row).refuse("contexts", bad, out, f"finite numbers below {validate.LARGEST:g} in size")
        return locked(out)

    def _table(self) -> shown.Table:
        columns, numbers = counted(len(self.columns), "column"), counted(self.dim, "number")
        rows = [("transformer", shortened(repr(self.transformer), 200)), ("columns", shown.text_of(self.columns))]
        return shown.Table(f"{columns} -> {numbers}", rows=rows)

    # ---- keeping

    def state(self) -> tuple[Spec, dict[str, AnyArray]]:
        """A JSON part, and the transformer as bytes of skops; refused where it holds what could not be read again."""
        if self._saved is None:
            self._saved = _dumped(self.transformer)
        spec: Spec = {"kind": TRANSFORMER, "columns": self.columns, "names": self.names}
        return spec, {"skops": np.frombuffer(self._saved, dtype=np.uint8)}

    @classmethod
    def from_state(cls, spec: Mapping[str, JSON], arrays: Mapping[str, AnyArray]) -> TransformerEncoder:
        """The encoder that `state` came from."""
        told = loose(spec)
        try:
            packed = arrays["skops"]
            if packed.dtype != np.uint8 or packed.ndim != 1:
                raise ValueError(f"{validate.describe(packed)} in place of bytes")
            found = cls(_loaded(packed.tobytes()), told["columns"])
            if found.names != told["names"]:
                raise ValueError("its entries have other names than when it was saved")
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, StorageError | MissingExtra):
                raise
            raise StorageError(f"no encoder can be made of this: {error}") from error
        found._saved = packed.tobytes()
        return found

    def as_json(self) -> Spec:
        """All of it in one JSON object."""
        spec, arrays = self.state()
        return {**spec, "skops": base64.b64encode(arrays["skops"].tobytes()).decode("ascii")}

    @classmethod
    def from_json(cls, told: Mapping[str, JSON]) -> TransformerEncoder:
        """The encoder that `as_json` came from."""
        given = loose(told)
        try:
            packed = base64.b64decode(given["skops"], validate=True)
        except (KeyError, TypeError, ValueError) as error:
            raise StorageError(f"no encoder can be made of this: {error!r}") from error
        return cls.from_state(given, {"skops": np.frombuffer(packed, dtype=np.uint8)})

    def save(self, folder: Path | str) -> None:
        """Write the encoder to a folder of its own; `manyarms.load` reads it."""
        spec, arrays = self.state()
        storage.save(folder, TRANSFORMER, spec, arrays)


@storage.LOADERS.register(TRANSFORMER)
def _restore(spec: dict[str, storage.JSON], arrays: dict[str, AnyArray]) -> TransformerEncoder:
    return TransformerEncoder.from_state(spec, arrays)


def _package(name: str, purpose: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingExtra(name.partition(".")[0], "sklearn", purpose) from error


def _fitted(transformer: Any) -> Any:
    """A transformer that has seen its rows."""
    if isinstance(transformer, type) or not callable(getattr(transformer, "transform", None)):
        raise InvalidInput("transformer", validate.describe(transformer), "a fitted scikit-learn transformer")
    check = _package("sklearn.utils.validation", "a scikit-learn transformer as encoder").check_is_fitted
    try:
        check(transformer)
    except (TypeError, ValueError) as error:  # NotFittedError is a ValueError
        came = f"a {type(transformer).__name__} that is not fitted"
        raise InvalidInput("transformer", came, "one that is: transformer.fit(frame)") from error
    return transformer


def _names_out(transformer: Any, columns: list[str]) -> list[str]:
    """What its entries are called, which also tells how many there are."""
    try:
        return [str(name) for name in transformer.get_feature_names_out(columns)]
    except (AttributeError, TypeError, ValueError, NotImplementedError) as error:
        expected = "one that names its entries by get_feature_names_out (FunctionTransformer: feature_names_out=)"
        raise InvalidInput("transformer", f"{type(transformer).__name__} ({error})", expected) from error


def _entries(name: str, column: Column) -> AnyArray:
    """A column as scikit-learn takes it from frames: NaN where a number or a text is missing."""
    if column.kind.name == "vector":
        raise InvalidInput(f"column {name!r}", "vectors", "one value in every row, for a scikit-learn transformer")
    if column.categories is not None:
        known = np.append(column.categories.astype(object), np.nan)
        return known[column.values]
    if column.missing is None or column.kind.name == "time":
        return column.values
    # a column of which nothing is known is neither one of numbers nor one of texts
    values: AnyArray = column.values.astype(object if column.missing.all() else np.float64)
    values[column.missing] = np.nan
    return values


def _frame(arrays: dict[str, AnyArray]) -> Any:
    """A frame for a transformer that was fitted on one."""
    try:
        return import_module("pandas").DataFrame(arrays)
    except ImportError:
        try:
            polars = import_module("polars")
        except ImportError as error:
            raise MissingExtra("pandas", "frames", "a scikit-learn transformer that was fitted on a frame") from error
        return polars.DataFrame({n: polars.Series(n, v.tolist(), nan_to_null=True) for n, v in arrays.items()})


def _matrix(arrays: dict[str, AnyArray]) -> AnyArray:
    """An array for a transformer that was fitted on one: of objects where there are texts."""
    texts = any(array.dtype.kind == "O" for array in arrays.values())
    return np.column_stack([array.astype(object) if texts else array for array in arrays.values()])


def _dumped(transformer: Any) -> bytes:
    skops = _package("skops.io", "saving a scikit-learn transformer without pickle")
    try:
        packed = bytes(skops.dumps(transformer))
        foreign = sorted(set(skops.get_untrusted_types(data=packed)) - set(HARMLESS))
    except Exception as error:  # whatever its parts raise, or skops about them
        raise InvalidInput(
            "transformer", f"{type(transformer).__name__} ({error})", "one that skops can save"
        ) from error
    if foreign:
        expected = "parts of scikit-learn and NumPy alone: nothing else is read from a folder, lest it runs code"
        raise InvalidInput("transformer", ", ".join(foreign), expected)
    return packed


def _loaded(packed: bytes) -> Any:
    skops = _package("skops.io", "loading a scikit-learn transformer")
    try:
        foreign = sorted(set(skops.get_untrusted_types(data=packed)) - set(HARMLESS))
        if foreign:
            raise StorageError("the saved transformer holds types that are not trusted: " + ", ".join(foreign))
        return skops.loads(packed, trusted=list(HARMLESS))
    except StorageError:
        raise
    except Exception as error:  # of bytes that anybody may have written
        raise StorageError(f"the saved transformer cannot be read: {error}") from error


__all__ = ["TransformerEncoder"]
