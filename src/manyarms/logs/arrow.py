"""Arrow's arrays as columns, and a log as an Arrow table. pyarrow is imported when it is needed, and only then."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from manyarms._base.typing import AnyArray
from manyarms.errors import DataError, InvalidInput, MissingExtra
from manyarms.logs.actions import ActionId
from manyarms.logs.data import LoggedData, written_columns
from manyarms.logs.tables import Column, Kind, Stated, number_column

METADATA = b"manyarms"
VERSION = 1


def pyarrow(purpose: str) -> Any:
    """The package pyarrow, or an error that says what to install."""
    try:
        import pyarrow as pa
    except ImportError as error:
        raise MissingExtra("pyarrow", "experiments", purpose) from error
    return pa


def kind_of(type_: Any) -> Kind:
    """The kind of a column of an Arrow type."""
    types = pyarrow("reading Arrow").types
    if types.is_dictionary(type_):
        return kind_of(type_.value_type)
    if types.is_boolean(type_) or types.is_integer(type_) or types.is_floating(type_) or types.is_decimal(type_):
        return Kind("number")
    if types.is_string(type_) or types.is_large_string(type_) or types.is_string_view(type_):
        return Kind("text")
    if types.is_timestamp(type_) or types.is_date(type_):
        return Kind("time")
    if types.is_fixed_size_list(type_) and kind_of(type_.value_type).name == "number":
        return Kind("vector", int(type_.list_size))
    if (types.is_list(type_) or types.is_large_list(type_)) and kind_of(type_.value_type).name == "number":
        return Kind("vector", None)
    return Kind("unsupported")


def column_of_arrow(name: str, array: Any, first_row: int) -> Column:
    """A column from an Arrow array (not a chunked one)."""
    pa = pyarrow("reading Arrow")
    if pa.types.is_dictionary(array.type) and kind_of(array.type).name != "text":
        array = array.dictionary_decode()
    kind = kind_of(array.type).name
    missing = np.asarray(array.is_null()) if array.null_count else None
    if kind == "number":
        if pa.types.is_decimal(array.type) or array.type == pa.float16():
            array = array.cast(pa.float64())
        if missing is not None:
            array = array.fill_null(False if pa.types.is_boolean(array.type) else 0)
        return number_column(array.to_numpy(zero_copy_only=False), missing)
    if kind == "time":
        values = array.cast(pa.timestamp("us", tz=getattr(array.type, "tz", None)), safe=False)
        return Column(values.to_numpy(zero_copy_only=False).astype("datetime64[us]"), missing)
    if kind == "text":
        coded = array if pa.types.is_dictionary(array.type) else array.dictionary_encode()
        texts = coded.dictionary.to_pylist()
        codes = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        return _texts(texts, codes)
    if kind == "vector":
        return _vectors(pa, name, array, missing, first_row)
    raise unfit(name, array.type)


def unfit(name: str, type_: Any) -> InvalidInput:
    """The complaint about a column that has no place in a log."""
    return InvalidInput(f"column {name!r}", f"Arrow's type {type_}", "numbers, texts, times or lists of numbers")


def _texts(texts: list[str | None], codes: AnyArray) -> Column:
    if None in texts or len(set(texts)) < len(texts):  # a dictionary may hold nulls and repeat itself
        first: dict[str, int] = {}
        places = [-1 if text is None else first.setdefault(text, len(first)) for text in texts]
        codes = np.array([*places, -1], dtype=np.int64)[codes]
        texts = list(first)
    return Column(codes, codes < 0, np.array(texts, dtype=np.str_) if texts else np.empty(0, dtype="U1"))


def _vectors(pa: Any, name: str, array: Any, missing: AnyArray | None, first_row: int) -> Column:
    if pa.types.is_fixed_size_list(array.type):
        width = int(array.type.list_size)
    else:
        lengths = np.asarray(array.value_lengths().fill_null(-1))
        known = lengths[lengths >= 0]
        width = int(known[0]) if len(known) else 0
        ragged = (lengths >= 0) & (lengths != width)
        if ragged.any():
            row = int(np.argmax(ragged))
            came = f"{lengths[row]} numbers at row {first_row + row}"
            raise InvalidInput(f"column {name!r}", came, f"{width} numbers in every row, as in the rows before")
    flat = array.flatten().to_numpy(zero_copy_only=False)  # flatten leaves out what is null
    if missing is None:
        return Column(flat.reshape(len(array), width))
    values = np.full((len(array), width), np.nan)
    values[~missing] = flat.reshape(-1, width)
    return Column(values, missing)


# ---- a log as a table


def schema_of(log: LoggedData) -> Any:
    """The schema of the table that `table_of_log` gives, with what a log knows about itself in the metadata."""
    pa = pyarrow("writing Parquet")
    entries = {"f": pa.float64(), "U": pa.string(), "M": pa.timestamp("us"), "b": pa.bool_()}
    fields = []
    for name, values in written_columns(log).items():
        type_ = entries.get(values.dtype.kind, pa.int64())
        if name == "action" and log.catalogue is not None:
            type_ = pa.int64() if log.catalogue.numbered else pa.dictionary(pa.int32(), pa.string())
        elif values.ndim == 2:
            type_ = pa.list_(type_, values.shape[1])
        fields.append(pa.field(name, type_, nullable=name in ("event_id", "timestamp", "group")))
    notes = list(log.notes)
    if log.logging is not None:
        notes.append("the logging policy itself was at hand when this was written, but is not part of the file")
    ids = None if log.catalogue is None else list(log.catalogue)
    encoder = None if log.encoder is None else log.encoder.as_json()
    about = told(log.action_count, log.propensities_are_estimates, notes, ids, encoder)
    return pa.schema(fields, metadata={METADATA: about})


def told(
    action_count: int,
    estimates: bool,
    notes: Sequence[str] = (),
    catalogue: Sequence[ActionId] | None = None,
    encoder: Mapping[str, Any] | None = None,
) -> str:
    """What a file says about itself, for its metadata."""
    about = {
        "version": VERSION,
        "action_count": action_count,
        "propensities_are_estimates": estimates,
        "catalogue": catalogue,
        "encoder": encoder,
        "notes": list(notes),
    }
    return json.dumps(about)


def table_of_log(log: LoggedData, schema: Any) -> Any:
    """A log's rounds as an Arrow table of the schema."""
    pa = pyarrow("writing Parquet")
    columns = written_columns(log)

    def entries(name: str) -> Any:
        values, type_ = columns[name], schema.field(name).type
        if name == "action" and log.catalogue is not None and log.catalogue.numbered:
            return pa.array(log.catalogue.named(values), type_)
        if name == "action" and log.catalogue is not None:
            rows, codes = np.unique(values, return_inverse=True)
            ids = pa.array(log.catalogue.ids(rows), pa.string())
            return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), ids)
        if values.ndim == 2:
            return pa.FixedSizeListArray.from_arrays(pa.array(values.ravel(), type=type_.value_type), values.shape[1])
        if name == "timestamp":
            values = values.astype("datetime64[us]")
        return pa.array(values.tolist() if values.dtype.kind == "U" else values, type_)

    return pa.Table.from_arrays([entries(name) for name in schema.names], schema=schema)


def stated_in(metadata: Mapping[bytes, bytes] | None, source: str) -> Stated:
    """What a file that we wrote says about itself; nothing for a file of somebody else."""
    if not metadata or METADATA not in metadata:
        return Stated()
    try:
        about = json.loads(metadata[METADATA])
        if about["version"] != VERSION:
            raise DataError(
                f"{source}: written as version {about['version']} of our logs; this release reads {VERSION}"
            )
        return Stated(
            action_count=int(about["action_count"]),
            propensities_are_estimates=bool(about["propensities_are_estimates"]),
            catalogue_ids=None if about["catalogue"] is None else tuple(about["catalogue"]),
            encoder=about["encoder"],
            notes=tuple(about["notes"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{source}: what it says about itself cannot be read: {error!r}") from error


__all__ = ["column_of_arrow", "kind_of", "pyarrow", "schema_of", "stated_in", "table_of_log", "told", "unfit"]
