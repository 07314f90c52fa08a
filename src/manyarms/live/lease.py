"""One learner among several processes: a lease in the store, with a fencing token.

Whoever finds the lease free or expired takes it, with the next token. What only the learner may do checks in its own transaction
that its token is still the newest one: a learner that was asleep for longer than its lease finds out there, and changes nothing.

When a lease has expired is told by the log's time, which stands still while a clock that jumped back catches up; so whoever waits
also looks whether the holder gives any sign of life, by a clock of its own that never jumps.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from manyarms.errors import LiveError
from manyarms.live.stores.database import Transaction, Work

LEARNER = "learner"
SECONDS = 10.0


class NotTheLearner(LiveError):
    """Another process is the learner."""


class Sighting:
    """How long a lease has looked as it looks now, to one process that waits for it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: object = None
        self._since = clock()

    def unchanged_for(self, row: object) -> float:
        """Seconds since it was first seen like this."""
        if row != self._seen:
            self._seen, self._since = row, self._clock()
        return self._clock() - self._since


def take(holder: str, sighting: Sighting | None = None, seconds: float | None = None, name: str = LEARNER) -> Work:
    """Take or keep the lease; its token, None where somebody else has it. seconds: `SECONDS` unless said."""
    lasts = SECONDS if seconds is None else seconds

    def work(tx: Transaction) -> int | None:
        _, at = tx.following()
        rows = tx.execute("SELECT holder, token, expires FROM leases WHERE name = ?", (name,))
        if not rows:
            tx.execute(
                "INSERT INTO leases (name, holder, token, expires) VALUES (?, ?, 1, ?)", (name, holder, at + lasts)
            )
            return 1
        owner, token, expires = rows[0]
        if owner != holder and at < expires and (sighting is None or sighting.unchanged_for(rows[0]) < lasts):
            return None
        token = token if owner == holder else token + 1
        # a sign of life for those who wait, even where the log's time stands still
        end = max(at + lasts, math.nextafter(expires, math.inf))
        tx.execute("UPDATE leases SET holder = ?, token = ?, expires = ? WHERE name = ?", (holder, token, end, name))
        return int(token)

    return work


def held(holder: str, token: int, name: str = LEARNER) -> Work:
    """Refuse unless this is still the newest holder."""

    def work(tx: Transaction) -> None:
        rows = tx.execute("SELECT holder, token FROM leases WHERE name = ?", (name,))
        if not rows or tuple(rows[0]) != (holder, token):
            raise NotTheLearner(f"the lease of the {name} went to another process")

    return work


def give_up(holder: str, token: int, name: str = LEARNER) -> Work:
    """End the lease now, so that another process need not wait."""

    def work(tx: Transaction) -> None:
        tx.execute(
            "UPDATE leases SET expires = 0, holder = '' WHERE name = ? AND holder = ? AND token = ?",
            (name, holder, token),
        )

    return work


__all__ = ["LEARNER", "NotTheLearner", "Sighting", "give_up", "held", "take"]
