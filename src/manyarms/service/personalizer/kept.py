"""What Personalizer's calls keep beside the log: settings that the live store has no place for, and evaluations."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from manyarms.live import Live, log
from manyarms.live.stores.database import Transaction


class Kept:
    """A JSON object in the store, under a name of its own. Several processes may read and change it."""

    def __init__(self, live: Live, name: str) -> None:
        self._live, self._name = live, f"personalizer.{name}"

    def read(self) -> dict[str, Any]:
        """As it is; empty where nothing was kept."""
        with self._live.database.reading() as reader:
            return _loaded(log.get(reader, self._name))

    def change(self, how: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
        """Change it in one transaction; what it is then. What `how` refuses changes nothing."""

        def work(tx: Transaction) -> dict[str, Any]:
            found = _loaded(log.get(tx, self._name))
            how(found)
            log.put(tx, self._name, json.dumps(found, separators=(",", ":"), allow_nan=False))
            return found

        changed: dict[str, Any] = self._live.database.do(work)
        return changed


def _loaded(text: str | None) -> dict[str, Any]:
    found: dict[str, Any] = {} if text is None else json.loads(text)
    return found


__all__ = ["Kept"]
