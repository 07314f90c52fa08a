"""What fails, in words for callers: files are called by what they are, and not by where they lie on this machine."""

from __future__ import annotations

import re

from manyarms.live.stores.database import Database
from manyarms.live.stores.sqlite import SQLite
from manyarms.service.keys import Keys


def without_paths(text: str, database: Database, keys: Keys | None = None) -> str:
    """The same sentence, without the paths of the store and of the keys."""
    if keys is not None:
        text = text.replace(str(keys.path), "the file of keys")
    if isinstance(database, SQLite):
        text = text.replace(str(database.path), "the store")
        text = re.sub(rf"{re.escape(str(database.path.parent))}(?=: )", "the store's folder", text)
    return text


__all__ = ["without_paths"]
