"""What `manyarms learn --actions FILE` reads: vectors, or a table of items, in which one column has the ids."""

from __future__ import annotations

from pathlib import Path

from manyarms.errors import InvalidInput
from manyarms.items import Catalogue
from manyarms.items.reading import USUAL_IDS
from manyarms.logs import Embeddings, read_embeddings
from manyarms.logs.formats.base import suffixes, tables_in

VECTORS = (".npy", ".npz")
PARQUET = (".parquet", ".pq")


def read_items(path: Path, id: str | None, columns: list[str] | None) -> Embeddings:
    """Embeddings of the actions. id: the column of the ids; columns: those that describe an item.

    A Parquet file without a column of ids has its rows in the order of the catalogue.
    """
    name = path.name.lower()
    if name.endswith(VECTORS):
        for option, given in (("--id", id), ("--features", columns)):
            if given:
                raise InvalidInput(option, str(given), f"a table of items for --actions: {path} holds arrays")
        return read_embeddings(path, "--actions")
    if not name.endswith(suffixes()):
        raise InvalidInput(
            "--actions", str(path), f"a file of vectors ({', '.join(VECTORS)}) or a table (.csv, .parquet, ...)"
        )
    if name.endswith(PARQUET) and id is None and not columns:
        kinds = tables_in(path, "--actions").kinds()
        if not any(one.lower() in USUAL_IDS for one in kinds):
            return read_embeddings(path, "--actions")
    try:
        items = Catalogue(path, id, features=columns or None)
        return Embeddings(items.embeddings(normalise=False), items.actions, str(path))
    except InvalidInput as error:  # in the words of the command line
        called = {"items": "--actions", "id": "--id", "features": "--features", "columns": "--features"}
        raise type(error)(called.get(error.argument, error.argument), error.came, error.expected) from error


__all__ = ["read_items"]
