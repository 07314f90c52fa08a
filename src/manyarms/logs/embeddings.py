"""Embeddings of actions from a file: one vector an action, in the catalogue's order or with ids beside them."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from manyarms._base import validate
from manyarms._base.files import as_path, require_regular
from manyarms._base.tables import Shown
from manyarms._base.typing import AnyArray
from manyarms.errors import DataError, InvalidInput
from manyarms.logs.actions import Actions
from manyarms.logs.data import CHUNK
from manyarms.logs.files import HARMLESS, MOST_UNPACKED, reading
from manyarms.logs.formats.parquet import ParquetTables

LARGEST = 1e37  # float32 ends at 3.4e38
IDS = ("id", "ids", "action", "action_id", "item", "item_id", "arm", "arm_id")
VECTORS = ("embedding", "embeddings", "vector", "vectors", "actions")


@dataclass(frozen=True, repr=False)
class Embeddings(Shown):
    """Vectors (K, l) of the actions in float32, and their ids where the file has them; without, row a is action a."""

    vectors: AnyArray
    ids: Actions | None
    source: str


def read_embeddings(path: Path | str, argument: str = "path") -> Embeddings:
    """Embeddings from a file.

    .npy: an array (K, l). .npz: such an array, and one named `ids` beside it if there are any. .parquet: a column of vectors or
    columns of numbers, and a column of ids named id, item, action or the like. argument: what an error message calls the file.
    """
    path = as_path(argument, path)
    suffix = path.suffix.lower()
    if suffix not in (".npy", ".npz", ".parquet", ".pq"):
        raise InvalidInput(argument, str(path), "a .npy, .npz or .parquet file")
    vectors, ids = (_from_parquet if suffix in (".parquet", ".pq") else _from_numpy)(path, argument)
    if vectors.ndim != 2:
        raise InvalidInput(argument, f"an array of shape {vectors.shape} in {path}", "one vector per row: shape (K, l)")
    numbers = validate.as_array(argument, vectors, (None, None))
    largest = max(float(numbers.max()), -float(numbers.min()))
    if largest > LARGEST:
        raise InvalidInput(argument, f"numbers up to {largest:.3g} in {path}", f"numbers up to {LARGEST:g}, in float32")
    checked = np.asarray(numbers, dtype=np.float32)
    if ids is not None and len(ids) != len(checked):
        raise InvalidInput(argument, f"{len(ids)} ids for {len(checked)} vectors in {path}", "one id a vector")
    return Embeddings(checked, None if ids is None else Actions(ids), str(path))


def _from_numpy(path: Path, argument: str) -> tuple[AnyArray, list[str] | None]:
    try:
        with reading(path):
            require_regular(path)
            if path.suffix.lower() == ".npz":
                _refuse_bomb(path)
            loaded = np.load(
                path, mmap_mode="r", allow_pickle=False
            )  # a map cannot be larger than the file, whatever it says
    except (ValueError, zipfile.BadZipFile) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{path}: no readable NumPy file ({str(error).splitlines()[0]})") from error
    if isinstance(loaded, np.ndarray):
        return loaded, None
    with loaded as archive:
        names = [name for name in archive.files if name != "ids"]
        named = [name for name in names if name in VECTORS] or names
        if len(named) != 1:
            raise InvalidInput(argument, f"arrays {', '.join(names) or 'none'} in {path}", "one array named embeddings")
        ids = archive["ids"].astype(np.str_).tolist() if "ids" in archive.files else None
        return archive[named[0]], ids


def _refuse_bomb(path: Path) -> None:
    """Refuse a small file that would unpack to a huge one."""
    with zipfile.ZipFile(path) as archive:
        unpacked = sum(member.file_size for member in archive.infolist())
    if unpacked > HARMLESS and unpacked > MOST_UNPACKED * path.stat().st_size:
        raise DataError(f"{path}: unpacks to {unpacked:,} bytes, more than {MOST_UNPACKED} times its size")


def _from_parquet(path: Path, argument: str) -> tuple[AnyArray, list[str] | None]:
    tables = ParquetTables(path)
    kinds = tables.kinds()
    id_column = next((name for name in kinds if name.lower() in IDS), None)
    vectors = [name for name, kind in kinds.items() if kind.name == "vector"]
    chosen = [name for name in vectors if name.lower() in VECTORS] or vectors
    if not chosen:
        chosen = [name for name, kind in kinds.items() if kind.name == "number" and name != id_column]
    if not chosen or (vectors and len(chosen) > 1):
        raise InvalidInput(
            argument, f"columns {', '.join(kinds)} in {path}", "one column of vectors, or columns of numbers"
        )
    blocks: list[AnyArray] = []
    ids: list[str] = []
    for table in tables.tables([*chosen, *([id_column] if id_column is not None else [])], CHUNK):
        for name in chosen:
            if table[name].missing is not None:
                row = table.row_numbers[int(np.argmax(table[name].absent))]
                raise InvalidInput(
                    f"{argument}, column {name!r}", f"a missing entry at row {row}", "numbers throughout"
                )
        blocks.append(np.concatenate([table[name].values.reshape(table.rows, -1) for name in chosen], axis=1))
        if id_column is not None:
            ids += table[id_column].texts().tolist()
    if not blocks:
        raise InvalidInput(argument, f"no row in {path}", "one row an action")
    return np.concatenate(blocks), ids if id_column is not None else None


__all__ = ["Embeddings", "read_embeddings"]
