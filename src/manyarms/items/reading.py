"""Items as one table in memory, from a file, a frame or a mapping; longer tables; and tables as arrays that are saved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from manyarms._base import storage
from manyarms._base.typing import AnyArray, FrameLike
from manyarms._base.validate import describe
from manyarms.errors import InvalidInput, StorageError
from manyarms.logs.action_columns import built
from manyarms.logs.actions import Actions
from manyarms.logs.data import CHUNK
from manyarms.logs.formats.base import tables_in
from manyarms.logs.frames import tables_of_frame
from manyarms.logs.tables import Column, Table

ItemsLike = FrameLike | Mapping[str, Sequence[object] | AnyArray] | Path | str
"""What a catalogue is made of: a frame, columns by their names, or the path of a file."""

# as names of the column of ids, the surest first
USUAL_IDS = (
    "id", "item_id", "sku", "product_id", "article_id", "action_id", "movie_id", "arm_id", "item", "product", "article", "action",
    "arm", "ids",
)  # fmt: skip


def read(items: ItemsLike, wanted: str | None) -> tuple[Table, str, Actions, list[str]]:
    """All items: their table, the column of their ids, the ids, and notes about what was guessed or left out."""
    source = tables_in(items, "items") if isinstance(items, str | Path) else tables_of_frame(items)
    kinds = source.kinds()
    name, notes = id_column(list(kinds), wanted)
    written = source.as_texts([name, *(other for other, kind in kinds.items() if kind.name == "mixed")])
    good = [other for other, kind in written.kinds().items() if kind.name not in ("mixed", "unsupported")]
    if name not in good:
        raise written.complaint(name)
    if len(good) < len(kinds):
        notes.append("left out: " + ", ".join(other for other in kinds if other not in good))
    parts = list(written.tables(good, CHUNK))
    if not parts:
        raise InvalidInput("items", f"no row in {source.name}", "at least one item")
    table = Table({one: joined(one, [part[one] for part in parts]) for one in good}, sum(p.rows for p in parts))
    return table, name, _ids(name, table[name], kinds[name].name == "number"), notes


def id_column(names: Sequence[str], wanted: str | None) -> tuple[str, list[str]]:
    """The column of ids, and a note where it was guessed."""
    there = ", ".join(names)
    if wanted is not None:
        if not isinstance(wanted, str) or wanted not in names:
            raise InvalidInput("id", describe(wanted), f"one of the columns {there}")
        return wanted, []
    by_lower = {name.lower(): name for name in reversed(names)}
    for usual in USUAL_IDS:
        if usual in by_lower:
            found = by_lower[usual]
            return found, [f"ids are in the column {found!r}: guessed from its name, and id= names another"]
    raise InvalidInput("id", "None", f"the name of the column with the ids of the items, one of {there}")


def _ids(name: str, column: Column, numbers: bool) -> Actions:
    """Ids as they are written: whole numbers as integers, texts as they are."""
    if column.missing is not None:
        row = int(np.argmax(column.absent))
        raise InvalidInput(f"column {name!r}", f"a missing id at row {row}", "an id for every item")
    if column.categories is not None:
        return built((str(text) for text in column.texts().tolist()), numbers=numbers)
    values = column.values
    whole = column.kind.name == "number" and (
        values.dtype.kind in "iu" or (values.dtype.kind == "f" and (np.abs(values) < 2**53).all())
    )
    if not whole or not (values == np.rint(values)).all():
        raise InvalidInput(f"column {name!r}", f"a column of {column.kind.name}s", "ids: texts, or whole numbers")
    return Actions(int(value) for value in values.tolist())


def joined(name: str, columns: Sequence[Column]) -> Column:
    """Columns of the same kind, one below the other; where nothing is known of one, it takes the kind of the others."""
    telling = [column for column in columns if not column.absent.all()] or list(columns[:1])
    kind = telling[0].kind
    for column in telling:
        if column.kind != kind:
            came = f"{_told(column.kind)} below {_told(kind)}"
            raise InvalidInput(f"column {name!r}", came, f"{_told(kind)} in every row")
    missing = np.concatenate([column.absent for column in columns])
    if kind.name == "text":
        places: dict[str, int] = {}
        codes = []
        for column in columns:
            known = [] if column.categories is None else column.categories.tolist()
            table = np.array([places.setdefault(text, len(places)) for text in known] + [-1], dtype=np.int64)
            codes.append(table[column.values] if column.categories is not None else np.full(len(column), -1))
        texts = np.array(list(places), dtype=np.str_) if places else np.empty(0, dtype="U1")
        return Column(np.concatenate(codes).astype(np.int64), missing, texts)
    empty = np.zeros((1, *telling[0].values.shape[1:]), dtype=telling[0].values.dtype)
    parts = [c.values if not c.absent.all() or c.kind == kind else np.repeat(empty, len(c), axis=0) for c in columns]
    return Column(np.concatenate(parts), missing)


def _told(kind: Any) -> str:
    return f"vectors of length {kind.width}" if kind.name == "vector" else f"{kind.name}s"


def appended(table: Table, new: Table) -> Table:
    """A table with more rows below."""
    for name in table.columns:
        if name not in new.columns:
            raise InvalidInput("items", f"no column {name!r}", "the columns " + ", ".join(table.columns))
    columns = {name: joined(name, [column, new[name]]) for name, column in table.columns.items()}
    return Table(columns, table.rows + new.rows)


# ---- saved


def table_state(table: Table) -> tuple[list[dict[str, storage.JSON]], dict[str, AnyArray]]:
    """What a table is saved as."""
    spec: list[dict[str, storage.JSON]] = []
    arrays: dict[str, AnyArray] = {}
    for number, (name, column) in enumerate(table.columns.items()):
        kind = column.kind.name
        spec.append({"name": name, "kind": kind})
        arrays[f"{number}/values"] = column.values.astype(np.int64) if kind == "time" else column.values
        if column.missing is not None:
            arrays[f"{number}/missing"] = column.missing
        if column.categories is not None:
            texts = [text.encode("utf-8", "surrogatepass") for text in column.categories.tolist()]
            arrays[f"{number}/utf8"] = np.frombuffer(b"".join(texts), dtype=np.uint8)
            arrays[f"{number}/ends"] = np.cumsum([len(text) for text in texts], dtype=np.int64)
    return spec, arrays


def table_of_state(spec: Sequence[Mapping[str, Any]], arrays: Mapping[str, AnyArray]) -> Table:
    """The table that `table_state` came from, checked: anybody may have written it."""
    columns: dict[str, Column] = {}
    for number, told in enumerate(spec):
        values, missing = arrays[f"{number}/values"], arrays.get(f"{number}/missing")
        categories = None
        if told["kind"] == "text":
            ends, packed = arrays[f"{number}/ends"].tolist(), arrays[f"{number}/utf8"].tobytes()
            starts = [0, *ends[:-1]]
            if sorted(ends) != ends or (ends[-1] if ends else 0) != len(packed):
                raise StorageError("the texts of a saved table are damaged")
            found = [packed[a:b].decode("utf-8", "surrogatepass") for a, b in zip(starts, ends, strict=False)]
            categories = np.array(found, dtype=np.str_) if found else np.empty(0, dtype="U1")
            fits = values.dtype.kind == "i" and values.ndim == 1
            fits = fits and bool(((values >= -1) & (values < len(found))).all())
            missing = values < 0
        elif told["kind"] == "time":
            fits = values.dtype == np.int64 and values.ndim == 1
            values = values.astype("datetime64[us]")
        else:
            fits = values.dtype.kind in "biuf" and values.ndim == (2 if told["kind"] == "vector" else 1)
        fits = fits and (missing is None or (missing.dtype == np.bool_ and missing.shape == values.shape[:1]))
        if not fits or not isinstance(told["name"], str):
            raise StorageError(f"the saved column {told['name']!r} is damaged")
        columns[told["name"]] = Column(values, missing, categories)
    rows = {len(column) for column in columns.values()}
    if len(rows) != 1:
        raise StorageError("the columns of a saved table are of different lengths")
    return Table(columns, rows.pop())


__all__ = ["ItemsLike", "appended", "joined", "read", "table_of_state", "table_state"]
