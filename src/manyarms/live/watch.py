"""What is watched while events settle: placeholder until the monitors are in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from manyarms.live.deployment import Deployment
from manyarms.live.learned_rows import SettledEvent
from manyarms.live.settings import Settings


@dataclass
class Watch:
    """Monitors of the live traffic."""

    events: int = 0

    def settle(self, events: Sequence[SettledEvent], settings: Settings, deployment: Deployment) -> Deployment:
        """Take in settled events; what is deployed after them."""
        self.events += len(events)
        return deployment

    def to_json(self) -> dict[str, Any]:
        """As snapshots have it."""
        return {"events": self.events}

    @classmethod
    def from_json(cls, body: dict[str, Any]) -> Watch:
        """What `to_json` gave."""
        return cls(body["events"])
