"""How the store and the learners are, looked up now and then: size, lag, who learns; and what there is to complain of."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from manyarms.live import lease
from manyarms.live.stores.database import Database, Reader
from manyarms.live.stores.sqlite import SQLite

LONG_LAG = 30.0  # seconds that an entry waits to be folded
NO_LEARNER = 30.0  # seconds after the end of a lease


def store_bytes(database: Database) -> int | None:
    """What the store takes: SQLite's file and what is beside it, PostgreSQL's database; None where it cannot be told."""
    if isinstance(database, SQLite):
        sizes = []
        for suffix in ("", "-wal"):
            try:
                sizes.append(os.stat(f"{database.path}{suffix}").st_size)
            except OSError:
                continue
        return sum(sizes) if sizes else None
    return int(database.read("SELECT pg_database_size(current_database())")[0][0])


def oldest_waiting(reader: Reader, folded: int) -> float | None:
    """The time of the first decision or reward that is not folded yet."""
    found = [
        rows[0][0]
        for table in ("decisions", "rewards")
        if (rows := reader.execute(f"SELECT at FROM {table} WHERE position > ? ORDER BY position LIMIT 1", (folded,)))
    ]
    return min(found, default=None)


def lease_ends(reader: Reader) -> float | None:
    """When the learner's lease ends; None where nobody has ever learned."""
    rows = reader.execute("SELECT expires FROM leases WHERE name = ?", (lease.LEARNER,))
    return float(rows[0][0]) if rows else None


def complaints(
    status: Mapping[str, Any],
    warnings: Sequence[str],
    lag: Mapping[str, Any],
    now: float,
    own_failure: str | None,
    day: Mapping[str, int],
) -> list[dict[str, str]]:
    """What is wrong, the worst first: level "red" for what needs somebody now, "amber" for what should be looked at."""
    red = [("alarm", text) for text in status["alarms"]]
    red += [("failure", f"{name}: {text}") for name, text in status["failures"].items()]
    if own_failure is not None and "store" not in status["failures"]:
        red.append(("failure", f"statistics: {own_failure}"))
    if lag["seconds"] is not None and lag["seconds"] > LONG_LAG:
        red.append(("lag", f"{lag['entries']:,} entries wait to be learned, the oldest for {lag['seconds']:,.0f} s"))
    ends = lag["lease_ends"]
    if lag["entries"] and (ends is None or ends < now - NO_LEARNER):
        red.append(("learner", "no process learns: nothing that comes is folded into the agents"))
    amber = [("drift", f"{text}: the world has changed, or the model is wrong") for text in status["warnings"]]
    amber += [("features", text) for text in warnings]
    never, deferred = day["never_activated"], day["deferred"]
    if deferred >= 20 and never > 0.5 * deferred:
        amber.append(("deferred", f"{never:,} of {deferred:,} deferred decisions were never activated"))
    return [{"level": "red", "kind": kind, "text": text} for kind, text in red] + [
        {"level": "amber", "kind": kind, "text": text} for kind, text in amber
    ]


__all__ = ["complaints", "lease_ends", "oldest_waiting", "store_bytes"]
