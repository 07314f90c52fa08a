"""What the log has got since, in bounded steps: decisions, rewards, waiting times that are over, propensities.

Only what is counted is read. A context of more than `LONGEST_CONTEXT` bytes, one for each of many actions, stays in the store.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from manyarms._base.typing import Array
from manyarms.live import log
from manyarms.live.propensities import CURSOR
from manyarms.live.records import RewardRecord
from manyarms.live.settings import Settings
from manyarms.live.stores.database import Reader

STEP = 500  # positions read at a time
CHUNKS = 200
LONGEST_CONTEXT = 65_536
_DECISION = (
    "SELECT position, at, unit, arm, actions, propensity, propensity_kind, details, active, question, "
    f"CASE WHEN LENGTH(context) <= {LONGEST_CONTEXT} THEN context END "
    "FROM decisions WHERE position > ? AND position <= ? AND erased = 0 ORDER BY position"
)


@dataclass(frozen=True, slots=True)
class Decided:
    """A decision. context: that of its first action; None where it was too long to be read."""

    position: int
    at: float
    unit: str | None
    arm: str
    actions: list[int]
    propensity: float | None
    kind: str | None
    details: dict[str, Any]
    active: bool
    context: Array | None


@dataclass(frozen=True, slots=True)
class Rewarded:
    """The reward of an action of a decision is `now`, and was `was`, None where there was none. at, arm: of the decision."""

    decision: int
    at: float
    arm: str
    action: int
    first: bool
    was: float | None
    now: float


@dataclass(frozen=True, slots=True)
class Step:
    """The log in (after, upto]. arrivals: when rewards came. last: the log's last position, and its time."""

    upto: int
    last: int
    at: float
    decisions: list[Decided] = field(default_factory=list)
    rewards: list[Rewarded] = field(default_factory=list)
    arrivals: list[float] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Settled:
    """A decision whose waiting time is over: the combined reward of each of its actions by then, None where none came."""

    position: int
    at: float
    active: bool
    rewards: list[tuple[int, float | None]]


def first_position(reader: Reader, since: float, most: int) -> int:
    """The position after which there are the decisions since a time, at most so many."""
    rows = reader.execute("SELECT position FROM decisions ORDER BY position DESC LIMIT 1 OFFSET ?", (most,))
    return max(log.due_at(reader, since), int(rows[0][0]) if rows else 0)


def next_step(reader: Reader, settings: Settings, after: int, most: int = STEP) -> Step:
    """What came after a position."""
    [(last, at)] = reader.execute("SELECT position, at FROM counter")
    upto = min(last, after + most)
    if upto <= after:
        return Step(after, last, at)
    decisions = [_decided(row) for row in reader.execute(_DECISION, (after, upto))]
    came = log.rewards_between(reader, after, upto)
    return Step(upto, last, at, decisions, _rewarded(reader, settings, after, upto, came), [one.at for one in came])


def _decided(row: tuple[Any, ...]) -> Decided:
    position, at, unit, arm, actions, propensity, kind, details, active, question, context = row
    rows: list[int] = json.loads(actions)
    seen = None if context is None or not rows else _context(bytes(context), json.loads(question), rows[0])
    return Decided(position, at, unit, arm, rows, propensity, kind, json.loads(details), bool(active), seen)


def _context(body: bytes, question: dict[str, Any], action: int) -> Array | None:
    """The context of an action."""
    numbers = np.frombuffer(body, dtype="<f8").reshape(question["shape"])
    if numbers.ndim == 1:
        return numbers
    listed = question.get("candidates") or range(len(numbers))
    return numbers[listed.index(action)] if action in listed else None


def _rewarded(
    reader: Reader, settings: Settings, after: int, upto: int, came: Sequence[RewardRecord]
) -> list[Rewarded]:
    """How the rewards of decisions differ between two positions."""
    pairs = list(dict.fromkeys((one.decision, one.action) for one in came))
    known = log.rewards_of(reader, [decision for decision, _ in pairs], upto)
    of = _about(reader, [decision for decision, _ in pairs])
    found = []
    for decision, action in pairs:
        if decision not in of:  # erased, or compacted
            continue
        at, arm, actions = of[decision]
        rewards = known[decision, action]
        before = [one.value for one in rewards if one.position <= after]
        was = settings.combined(before) if before else None
        now = settings.combined([one.value for one in rewards])
        found.append(Rewarded(decision, at, arm, action, bool(actions) and actions[0] == action, was, now))
    return found


def _about(reader: Reader, positions: Sequence[int]) -> dict[int, tuple[float, str, list[int]]]:
    """Time, arm and actions of decisions, by position."""
    found: dict[int, tuple[float, str, list[int]]] = {}
    wanted = sorted(set(positions))
    for start in range(0, len(wanted), log.AT_A_TIME):
        some = wanted[start : start + log.AT_A_TIME]
        marks = ", ".join("?" * len(some))
        sql = f"SELECT position, at, arm, actions FROM decisions WHERE position IN ({marks}) AND erased = 0"
        found |= {row[0]: (row[1], row[2], json.loads(row[3])) for row in reader.execute(sql, some)}
    return found


@dataclass(frozen=True, slots=True)
class Due:
    """Up to where waiting times are over: all decisions up to a position, and all chunks up to a version."""

    position: int = 0
    version: int = 0


def next_settled(
    reader: Reader, settings: Settings, after: Due, counted: int, *, rewards: bool, most: int = STEP
) -> tuple[Due, list[Settled]]:
    """Decisions up to a position whose waiting time is over, with the rewards that they had in the chunk that said so.

    rewards: whether their rewards are wanted; else only those are given that were never activated.
    """
    chunks = log.chunks_after(reader, after.version, CHUNKS)
    if not chunks:
        return after, []
    end = min(after.position + most, counted, chunks[-1].due)
    version = max((one.version for one in chunks if one.due <= end), default=after.version)
    if end <= after.position:
        return Due(after.position, version), []
    sql = "SELECT position, at, actions, active FROM decisions WHERE position > ? AND position <= ? AND erased = 0"
    rows = reader.execute(f"{sql}{'' if rewards else ' AND active = 0'} ORDER BY position", (after.position, end))
    known = log.rewards_of(reader, [row[0] for row in rows], chunks[-1].upto) if rewards else {}
    dues = [one.due for one in chunks]
    found = []
    for position, at, text, active in rows:
        upto = chunks[bisect_left(dues, position)].upto
        came = {
            action: [one.value for one in known.get((position, action), []) if one.position <= upto]
            for action in json.loads(text)
        }
        combined = [(action, settings.combined(given) if given else None) for action, given in came.items()]
        found.append(Settled(position, at, bool(active), combined))
    return Due(end, version), found


def next_propensities(reader: Reader, after: int, most: int = STEP) -> tuple[int, list[tuple[float, float]]]:
    """Times and propensities of decisions whose propensities were computed since; the position to go on from."""
    end = min(after + most, int(log.get(reader, CURSOR) or 0))
    if end <= after:
        return after, []
    sql = (
        "SELECT d.at, p.propensity FROM propensities p JOIN decisions d ON d.position = p.decision "
        "WHERE p.decision > ? AND p.decision <= ? AND p.error >= 0 ORDER BY p.decision"
    )
    return end, [(at, propensity) for at, propensity in reader.execute(sql, (after, end))]


__all__ = [
    "Decided", "Due", "Rewarded", "Settled", "Step", "first_position", "next_propensities", "next_settled", "next_step",
]  # fmt: skip
