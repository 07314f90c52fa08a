"""Where a command reads its log: here, and then one sees how far it is, or on an engine, which all passes of a command share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from manyarms.cli._progress import following_log
from manyarms.engine import On, elsewhere, opened
from manyarms.logs.data import LogSource
from manyarms.logs.shards import shards_of


@contextmanager
def working_on(on: str, log: LogSource, name: str) -> Iterator[tuple[LogSource, On]]:
    """The log to read, and the engine to read it on, for the length of a block."""
    if not elsewhere(on):
        with following_log(log, name) as source:
            yield source, on
        return
    shards_of(log)  # what cannot be divided is refused before a cluster is looked for
    with opened(on) as engine:
        yield log, engine


__all__ = ["working_on"]
