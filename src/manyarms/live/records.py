"""What a live log holds: decisions, rewards, activations, operations, and the chunks in which they are folded."""

from __future__ import annotations

import hashlib
import json
import math
import zlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from manyarms._base.typing import Array
from manyarms.beliefs.drift.clock import LATEST

MOST_OF_AN_ID = 256  # characters
DECIDED_AT = (
    "decided_at"  # where the details of a decision have its time: at the edge, and where agents decide by the clock
)


def bounded(time: float) -> float:
    """A time that agents can be told, whatever a log of an earlier release has."""
    return max(-LATEST, min(LATEST, time))


@dataclass(frozen=True, slots=True)
class Question:
    """What was asked: the context, which actions were allowed, and how many were wanted.

    context: (d,), or (m, d) with a context for each of the candidates. k: None for a single action. at: the time by which agents
    decide whose rewards drift by the clock; None where no agent asks for it. It is kept in the decision's details.
    """

    context: Array
    candidates: list[int] | None = None
    exclude: list[int] | None = None
    k: int | None = None
    at: float | None = None

    def text(self) -> str:
        """All but the numbers of the context, as JSON."""
        asked: dict[str, Any] = {"shape": list(self.context.shape)}
        for name in ("candidates", "exclude", "k"):
            if (value := getattr(self, name)) is not None:
                asked[name] = value
        return json.dumps(asked, separators=(",", ":"))

    def digest(self, unit: str | None, active: bool = True) -> bytes:
        """16 bytes that tell one request from another."""
        found = hashlib.blake2b(self.text().encode(), digest_size=16)
        found.update(b"" if active else b"\1")
        found.update(b"" if unit is None else b"\0" + unit.encode())
        found.update(self.context.tobytes())
        return found.digest()

    def stored(self) -> bytes:
        """The numbers of the context as the log has them: those of many actions, mostly zeros, packed where that helps."""
        plain = self.context.tobytes()
        if not self.per_action:
            return plain
        packed = zlib.compress(plain, 1)
        return packed if len(packed) < len(plain) else plain

    @classmethod
    def read(cls, context: bytes, text: str, at: float | None = None) -> Question:
        """What was written; at: the time of the decision, which is kept elsewhere."""
        asked = json.loads(text)
        if len(context) < 8 * math.prod(asked["shape"]):
            try:
                context = zlib.decompress(context)
            except zlib.error as error:
                raise ValueError(f"a context that cannot be unpacked: {error}") from error
        numbers = np.frombuffer(context, dtype="<f8").reshape(asked["shape"])
        told = None if at is None else bounded(at)
        return cls(numbers, asked.get("candidates"), asked.get("exclude"), asked.get("k"), told)

    @property
    def per_action(self) -> bool:
        """Whether each candidate has a context of its own."""
        return self.context.ndim == 2

    def arguments(self) -> dict[str, Any]:
        """As keywords of `Agent.decide`."""
        found: dict[str, Any] = {"candidates": self.candidates, "exclude": self.exclude, "k": self.k}
        found["action_contexts" if self.per_action else "x"] = self.context
        if self.at is not None:
            found["at"] = self.at
        return found

    def context_of(self, action: int) -> Array | None:
        """The context in which this action was taken; None where there is none for it."""
        if not self.per_action:
            return self.context
        # without candidates there is a row for every action, by id
        ids = range(len(self.context)) if self.candidates is None else self.candidates
        return self.context[ids.index(action)] if action in ids else None


@dataclass(frozen=True, slots=True)
class DecisionRecord:
    """A decision as the log has it.

    version: of the state that decided. arm: which agent or policy. draw: the number of its random numbers.
    propensity: the chance of the first action when the question came, the share of each arm in it; arm_propensity: the same given
    the arm; inclusion: the chance of a place among the k; None until they are computed. propensity_kind: "exact" or "estimated".
    details: catalogue and encoding versions, the share, and what shadows would have done. active: decided as active, or activated
    by now; activated: the position of its activation, None where it was active from the first, or is not.
    """

    id: str
    unit: str | None
    arm: str
    version: int
    draw: int
    question: Question | None
    actions: list[int]
    digest: bytes = b""
    propensity: float | None = None
    arm_propensity: float | None = None
    inclusion: float | None = None
    propensity_kind: str | None = None
    details: dict[str, Any] = field(default_factory=dict)
    position: int = 0
    at: float = 0.0
    erased: bool = False
    active: bool = True
    activated: int | None = None

    @property
    def decided_at(self) -> float:
        """When it was decided: before it came to the log, whatever another clock says."""
        return min(self.at, bounded(self.details.get(DECIDED_AT, self.at)))

    @property
    def deferred(self) -> bool:
        """Whether it was decided as one that may never be shown."""
        return not self.active or self.activated is not None

    def active_at(self, position: int) -> bool:
        """Whether it was active at a position of the log."""
        return self.active and (self.activated is None or self.activated <= position)


@dataclass(frozen=True, slots=True)
class RewardRecord:
    """A reward: of which decision (by position) and action, under which id of its own."""

    decision: int
    action: int
    id: str
    value: float
    position: int = 0
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class Operation:
    """Something done to the agents: actions added or retired, a deployment, an erasure, ..."""

    position: int
    at: float
    kind: str
    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Chunk:
    """Version v folds the positions after the chunk before up to `upto`, at time `at`; decisions up to `due` need not wait.

    token: of the learner that cut it.
    """

    version: int = 0
    upto: int = 0
    due: int = 0
    at: float = 0.0
    token: int = 0


def hashed(*parts: object, bits: int = 62) -> int:
    """A number of so many bits that follows from these parts, and tells them apart."""
    text = "\0".join(f"{len(str(part))}:{part}" for part in parts)
    digest = hashlib.blake2b(text.encode(), digest_size=8, person=b"manyarms-live").digest()
    return int.from_bytes(digest, "little") >> (64 - bits)


def draw_number(event: str, unit: str | None, version: int, arm: str) -> int:
    """The number of an arm's random numbers: one for each event; with a unit, one for it and each version.

    Each arm has its own, as arms may have the same key: what one of them has drawn then says nothing of what another will.
    """
    return hashed("event", event, arm) if unit is None else hashed("unit", unit, version, arm)


__all__ = ["DECIDED_AT", "Chunk", "DecisionRecord", "Operation", "Question", "RewardRecord", "draw_number", "hashed"]
