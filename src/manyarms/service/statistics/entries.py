"""What the log has got since, in bounded steps: decisions, rewards, waiting times that are over, propensities.

Only what is counted is read. A context of more than `LONGEST_CONTEXT` bytes, one for each of many actions, stays in the store.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from manyarms._base.typing import Array
from manyarms.live import log
from manyarms.live.activations import activated_between
from manyarms.live.propensities import CURSOR
from manyarms.live.records import Question, RewardRecord
from manyarms.live.settings import SettingsInTime
from manyarms.live.stores.database import Reader

STEP = 250  # positions read at a time: a few milliseconds' work
CHUNKS = 200
LONGEST_CONTEXT = 65_536
LONGEST_UNPACKED = 16 * LONGEST_CONTEXT  # contexts of many actions, mostly zeros, are packed in the store
_DECISION = (
    "SELECT position, at, unit, arm, actions, propensity, propensity_kind, details, active, question, "
    f"CASE WHEN LENGTH(context) <= {LONGEST_CONTEXT} THEN context END "
    "FROM decisions WHERE position > ? AND position <= ? AND erased = 0 ORDER BY position"
)


@dataclass(frozen=True, slots=True)
class Decided:
    """A decision. active: it counts from the beginning. context: that of its first action; None where it was too long to read."""

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
class Played:
    """A decision that counts from a position of the log on (`since`): its own, or that of its activation."""

    decision: int
    since: int
    at: float
    arm: str
    actions: list[int]


@dataclass(frozen=True, slots=True)
class Rewarded:
    """The reward of an action of a decision is `now`, and was `was`, None where there was none that counts."""

    decision: Played
    action: int
    was: float | None
    now: float


@dataclass(frozen=True, slots=True)
class Step:
    """The log in (after, upto]. played: what counts since, in order. arrivals: when rewards came. last: the log's last position,
    and its time."""

    upto: int
    last: int
    at: float
    decisions: list[Decided] = field(default_factory=list)
    played: list[Played] = field(default_factory=list)
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


def next_step(reader: Reader, agreed: SettingsInTime, after: int, most: int = STEP) -> Step:
    """What came after a position."""
    [(last, at)] = reader.execute("SELECT position, at FROM counter")
    upto = min(last, after + most)
    if upto <= after:
        return Step(after, last, at)
    decisions = [_decided(row) for row in reader.execute(_DECISION, (after, upto))]
    came = log.rewards_between(reader, after, upto)
    activated = activated_between(reader, after, upto)
    of = _playing(reader, [*(one.decision for one in came), *activated], upto)
    played = [Played(one.position, one.position, one.at, one.arm, one.actions) for one in decisions if one.active]
    played += [of[decision] for decision in activated if decision in of]
    played.sort(key=lambda one: one.since)
    rewards = _rewarded(reader, agreed, after, upto, came, activated, of)
    return Step(upto, last, at, decisions, played, rewards, [one.at for one in came])


def _decided(row: tuple[Any, ...]) -> Decided:
    position, at, unit, arm, actions, propensity, kind, details, active, question, context = row
    rows: list[int] = json.loads(actions)
    seen = None if context is None or not rows else _context(bytes(context), question, rows[0])
    return Decided(position, at, unit, arm, rows, propensity, kind, json.loads(details), bool(active), seen)


def _context(body: bytes, question: str, action: int) -> Array | None:
    """The context of an action; None where there is none for it, or unpacking it would take too long."""
    if 8 * math.prod(json.loads(question)["shape"]) > LONGEST_UNPACKED:
        return None
    return Question.read(body, question).context_of(action)


def _rewarded(
    reader: Reader,
    agreed: SettingsInTime,
    after: int,
    upto: int,
    came: Sequence[RewardRecord],
    activated: Sequence[int],
    of: dict[int, Played],
) -> list[Rewarded]:
    """How the rewards of decisions that count differ between two positions."""
    known = log.rewards_of(reader, [*(one.decision for one in came), *activated], upto)
    pairs = [(one.decision, one.action) for one in came] + [pair for pair in known if pair[0] in activated]
    found = []
    for decision, action in dict.fromkeys(pairs):
        if decision not in of:  # erased, compacted, or not active
            continue
        settings, rewards = agreed.of(decision), known[decision, action]
        before = [one.value for one in rewards if one.position <= after] if of[decision].since <= after else []
        was = settings.combined(before) if before else None
        found.append(Rewarded(of[decision], action, was, settings.combined([one.value for one in rewards])))
    return found


def _playing(reader: Reader, positions: Sequence[int], upto: int) -> dict[int, Played]:
    """Decisions that count at a position, by their own."""
    found: dict[int, Played] = {}
    wanted = sorted(set(positions))
    for start in range(0, len(wanted), log.AT_A_TIME):
        some = wanted[start : start + log.AT_A_TIME]
        marks = ", ".join("?" * len(some))
        sql = (
            "SELECT d.position, d.at, d.arm, d.actions, d.active, a.position FROM decisions d "
            f"LEFT JOIN activations a ON a.decision = d.position WHERE d.position IN ({marks}) AND d.erased = 0"
        )
        for position, at, arm, actions, active, activation in reader.execute(sql, some):
            since = position if active else activation
            if since is not None and since <= upto:
                found[position] = Played(position, since, at, arm, json.loads(actions))
    return found


@dataclass(frozen=True, slots=True)
class Due:
    """Up to where waiting times are over: all decisions up to a position, and all chunks up to a version."""

    position: int = 0
    version: int = 0


def next_settled(
    reader: Reader, agreed: SettingsInTime, folded: int, after: Due, counted: int, *, rewards: bool, most: int = STEP
) -> tuple[Due, list[Settled]]:
    """Decisions up to a position whose waiting time is over, with the rewards that they had in the chunk that said so.

    agreed: the settings, by the operations up to the version `folded`: what chunks after it settle may count by others. rewards:
    whether their rewards are wanted; else only those are given that were not active at first.
    """
    chunks = [one for one in log.chunks_after(reader, after.version, CHUNKS) if one.version <= folded]
    if not chunks:
        return after, []
    end = min(after.position + most, counted, chunks[-1].due)
    version = max((one.version for one in chunks if one.due <= end), default=after.version)
    if end <= after.position:
        return Due(after.position, version), []
    sql = (
        "SELECT d.position, d.at, d.actions, d.active, a.position FROM decisions d LEFT JOIN activations a "
        "ON a.decision = d.position WHERE d.position > ? AND d.position <= ? AND d.erased = 0"
    )
    rows = reader.execute(f"{sql}{'' if rewards else ' AND d.active = 0'} ORDER BY d.position", (after.position, end))
    known = log.rewards_of(reader, [row[0] for row in rows], chunks[-1].upto) if rewards else {}
    dues = [one.due for one in chunks]
    found = []
    for position, at, text, active, activation in rows:
        upto, settings = chunks[bisect_left(dues, position)].upto, agreed.of(position)
        came = {
            action: [one.value for one in known.get((position, action), []) if one.position <= upto]
            for action in json.loads(text)
        }
        combined = [(action, settings.combined(given) if given else None) for action, given in came.items()]
        shown = bool(active) or (activation is not None and activation <= upto)
        found.append(Settled(position, at, shown, combined))
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
    "Decided", "Due", "Played", "Rewarded", "Settled", "Step", "first_position", "next_propensities", "next_settled", "next_step",
]  # fmt: skip
