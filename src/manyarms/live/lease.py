"""One learner among several processes: a lease in the store, with a fencing token.

Whoever finds the lease free or expired takes it, with the next token. What only the learner may do checks in its own transaction
that its token is still the newest one: a learner that was asleep for longer than its lease finds out there, and changes nothing.
"""

from __future__ import annotations

from manyarms.errors import LiveError
from manyarms.live.stores.database import Transaction, Work

LEARNER = "learner"
SECONDS = 10.0


class NotTheLearner(LiveError):
    """Another process is the learner."""


def take(holder: str, seconds: float = SECONDS, name: str = LEARNER) -> Work:
    """Take or keep the lease; its token, None where somebody else has it."""

    def work(tx: Transaction) -> int | None:
        _, at = tx.following()
        rows = tx.execute("SELECT holder, token, expires FROM leases WHERE name = ?", (name,))
        if not rows:
            tx.execute(
                "INSERT INTO leases (name, holder, token, expires) VALUES (?, ?, 1, ?)", (name, holder, at + seconds)
            )
            return 1
        owner, token, expires = rows[0]
        # an end that is further away than any lease lasts was written by a clock that was ahead
        if owner != holder and at < expires < at + 2 * seconds:
            return None
        token = token if owner == holder else token + 1
        tx.execute(
            "UPDATE leases SET holder = ?, token = ?, expires = ? WHERE name = ?", (holder, token, at + seconds, name)
        )
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


__all__ = ["LEARNER", "NotTheLearner", "give_up", "held", "take"]
