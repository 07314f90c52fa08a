"""Exposure caps: an action that was taken often enough in a window of time rests until it is taken less.

Takings are counted by twentieths of the window, when chunks are folded: an action leaves with the next version, so that it may be
taken a little more often than its cap, and comes back at most a twentieth of the window late.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

BUCKETS = 20


@dataclass
class Exposure:
    """At most `most` takings of an action in `window` seconds. actions: which have this cap; None: each."""

    most: int
    window: float
    actions: frozenset[int] | None = None
    counts: dict[int, Counter[int]] = field(default_factory=dict)  # by bucket of time

    def count(self, at: float, actions: Iterable[int]) -> None:
        """These actions were taken at this time."""
        taken = [a for a in actions if self.actions is None or a in self.actions]
        if taken:
            self.counts.setdefault(self._bucket(at), Counter()).update(taken)

    def forget(self, at: float) -> None:
        """What has left the window by this time."""
        first = self._bucket(at) - BUCKETS
        for bucket in [b for b in self.counts if b <= first]:
            del self.counts[bucket]

    def capped(self) -> frozenset[int]:
        """The actions that rest."""
        total: Counter[int] = Counter()
        for counts in self.counts.values():
            total.update(counts)
        return frozenset(a for a, number in total.items() if number >= self.most)

    def _bucket(self, at: float) -> int:
        return int(at * BUCKETS // self.window)

    def to_json(self) -> dict[str, Any]:
        """As snapshots have it."""
        counts = [[bucket, sorted(taken.items())] for bucket, taken in sorted(self.counts.items())]
        named = None if self.actions is None else sorted(self.actions)
        return {"most": self.most, "window": self.window, "actions": named, "counts": counts}

    @classmethod
    def from_json(cls, body: dict[str, Any]) -> Exposure:
        """What `to_json` gave."""
        named = body["actions"]
        counts = {bucket: Counter(dict(map(tuple, taken))) for bucket, taken in body.get("counts", [])}
        return cls(body["most"], body["window"], None if named is None else frozenset(named), counts)


__all__ = ["Exposure"]
