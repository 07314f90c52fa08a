"""New decisions and rewards, those of many callers in a few statements.

Every statement hands the interpreter over, and threads that decide are slow to give it back: with statements of their own for
each entry whoever writes would wait hundreds of times for one commit.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from manyarms.errors import Conflict, InvalidInput, ManyArmsError, UnknownEvent
from manyarms.live.log import AT_A_TIME, DECISION, DECISION_COLUMNS, dumped, read_decision
from manyarms.live.records import DecisionRecord, RewardRecord, hashed
from manyarms.live.stores.database import Together, Transaction

_REWARD_COLUMNS = "position, decision, action, id, value, at"


@dataclass(frozen=True)
class NewDecision(Together):
    """A decision to be written; one with the same id that answers the same question stands in its place.

    made_up: its id was made for it, and cannot be in the log.
    """

    record: DecisionRecord
    made_up: bool = False

    @classmethod
    def all_of(cls, tx: Transaction, pieces: Sequence[NewDecision]) -> list[Any]:
        """The decisions as the log has them, or why one was refused."""
        tx.following()  # from here on no other process writes
        known = _with_ids(tx, [one.record.id for one in pieces if not one.made_up])
        repeats = _Repeats(tx, [one.record for one in pieces if one.record.id not in known])
        found: list[Any] = []
        rows: list[tuple[Any, ...]] = []
        for piece in pieces:
            record = piece.record
            earlier = known.get(record.id)
            if earlier is None:
                position, at = tx.place()
                details = record.details | repeats.of(record)
                record = known[record.id] = replace(record, position=position, at=at, details=details)
                rows.append(_values(record))
                found.append(record)
            else:
                found.append(_instead(record, earlier))
        _insert(tx, "decisions", DECISION_COLUMNS, rows)
        return found


def _values(record: DecisionRecord) -> tuple[Any, ...]:
    asked = record.question
    assert asked is not None
    return (
        record.position, record.id, record.at, record.unit, record.arm, record.version, record.draw, record.digest,
        asked.stored(), asked.text(), dumped(record.actions), record.propensity, record.arm_propensity, record.inclusion,
        record.propensity_kind, dumped(record.details), 0, int(record.active),
    )  # fmt: skip


def _with_ids(tx: Transaction, ids: Sequence[str]) -> dict[str, DecisionRecord]:
    """The decisions that have these ids."""
    found: dict[str, DecisionRecord] = {}
    for some in _some(ids, 1):
        marks = ", ".join("?" * len(some))
        for row in tx.execute(f"SELECT {DECISION} FROM decisions WHERE id IN ({marks})", some):
            record = read_decision(row)
            found[record.id] = record
    return found


def _instead(record: DecisionRecord, earlier: DecisionRecord) -> DecisionRecord | ManyArmsError:
    """The decision with the same id, if it answers the same question."""
    if earlier.erased:
        return UnknownEvent(f"event {record.id!r} was erased: its id cannot be used again")
    if earlier.digest != record.digest:
        return Conflict(f"event {record.id!r} was decided before, with another context, unit, filter, k or `active`")
    return earlier


class _Repeats:
    """Which units were decided for before: their arms are those that they had, and in the same version their random numbers."""

    def __init__(self, tx: Transaction, records: Sequence[DecisionRecord]) -> None:
        units = sorted({record.unit for record in records if record.unit is not None})
        self._known = self._those(tx, units, "")
        self._drawn: set[tuple[str, int]] = set()
        for version in sorted({record.version for record in records if record.unit is not None}):
            drawn = self._those(tx, sorted(self._known), " AND version = ?", version)
            self._drawn |= {(unit, version) for unit in drawn}
        hashes = {hashed("unit seen", unit): unit for unit in units if unit not in self._known}
        for some in _some(sorted(hashes), 1):
            marks = ", ".join("?" * len(some))
            self._known |= {
                hashes[one] for (one,) in tx.execute(f"SELECT unit FROM units WHERE unit IN ({marks})", some)
            }

    @staticmethod
    def _those(tx: Transaction, units: Sequence[str], also: str, *values: object) -> set[str]:
        """Those of them for which there is a decision."""
        found: set[str] = set()
        for some in _some(units, 1):
            marks = ", ".join(["(?)"] * len(some))
            there = f"SELECT 1 FROM decisions WHERE unit = t.column1{also}"
            sql = f"SELECT column1 FROM (VALUES {marks}) AS t WHERE EXISTS ({there})"
            found |= {unit for (unit,) in tx.execute(sql, (*some, *values))}
        return found

    def of(self, record: DecisionRecord) -> dict[str, str]:
        """What is noted of a record, the next one in the order of the log."""
        if record.unit is None:
            return {}
        known, drawn = record.unit in self._known, (record.unit, record.version) in self._drawn
        self._known.add(record.unit)
        self._drawn.add((record.unit, record.version))
        return {"repeated": "draw" if drawn else "unit"} if known else {}


@dataclass(frozen=True)
class NewReward(Together):
    """A reward to be written; the same one again changes nothing.

    action: None for the first action of the decision. called: what a refusal calls an action by.
    """

    event: str
    action: int | None
    id: str
    value: float
    called: Callable[[int], object] = int

    @classmethod
    def all_of(cls, tx: Transaction, pieces: Sequence[NewReward]) -> list[Any]:
        """The rewards as the log has them, or why one was refused."""
        tx.following()  # from here on no other process writes
        decisions, rewards = _with_rewards(tx, {one.event for one in pieces})
        found: list[Any] = []
        rows: list[tuple[Any, ...]] = []
        for piece in pieces:
            try:
                where, which = piece._place(decisions)
                earlier = rewards.get((where, which, piece.id))
                if earlier is None:
                    position, at = tx.place()
                    earlier = RewardRecord(where, which, piece.id, piece.value, position, at)
                    rewards[where, which, piece.id] = earlier
                    rows.append((position, where, which, piece.id, piece.value, at))
                piece._require_same(earlier)
                found.append(earlier)
            except ManyArmsError as refusal:
                found.append(refusal)
        _insert(tx, "rewards", _REWARD_COLUMNS, rows)
        return found

    def _place(self, decisions: dict[str, tuple[int, str, int]]) -> tuple[int, int]:
        """The decision, by position, and its action."""
        if self.event not in decisions:
            raise UnknownEvent(f"no event {self.event!r}: never decided here, or compacted since")
        where, text, erased = decisions[self.event]
        if erased:
            raise UnknownEvent(f"event {self.event!r} was erased")
        actions: list[int] = json.loads(text)
        which = actions[0] if self.action is None else self.action
        if which not in actions:
            those = ", ".join(str(self.called(one)) for one in actions[:10])
            raise InvalidInput("action", self.called(which), f"one of those of event {self.event!r}: {those}")
        return where, which

    def _require_same(self, earlier: RewardRecord) -> None:
        if earlier.value != self.value:
            name = f"reward {self.id!r}" if self.id else "the reward"
            raise Conflict(
                f"{name} of event {self.event!r}, action {self.called(earlier.action)}, was {earlier.value:g} and is now said to "
                f"be {self.value:g}: the first stands; several rewards of one event have ids of their own (id=)"
            )


def _with_rewards(
    tx: Transaction, events: Iterable[str]
) -> tuple[dict[str, tuple[int, str, int]], dict[tuple[int, int, str], RewardRecord]]:
    """Events (position, actions, erased) by id, and the rewards that they have."""
    decisions: dict[str, tuple[int, str, int]] = {}
    rewards: dict[tuple[int, int, str], RewardRecord] = {}
    for some in _some(sorted(events), 1):
        marks = ", ".join("?" * len(some))
        sql = (
            "SELECT d.id, d.position, d.actions, d.erased, r.action, r.id, r.value, r.position, r.at "
            f"FROM decisions d LEFT JOIN rewards r ON r.decision = d.position WHERE d.id IN ({marks})"
        )
        for event, where, actions, erased, action, id, value, position, at in tx.execute(sql, some):
            decisions[event] = where, actions, erased
            if position is not None:
                rewards[where, action, id] = RewardRecord(where, action, id, value, position, at)
    return decisions, rewards


# ---- statements


def _insert(tx: Transaction, table: str, columns: str, rows: Sequence[tuple[Any, ...]]) -> None:
    width = len(columns.split(", "))
    marks = f"({', '.join('?' * width)})"
    for some in _some(rows, width):
        values = [value for row in some for value in row]
        tx.execute(f"INSERT INTO {table} ({columns}) VALUES {', '.join([marks] * len(some))}", values)


def _some(values: Sequence[Any], width: int) -> Iterator[list[Any]]:
    """As many at a time as one statement has parameters for."""
    step = max(1, AT_A_TIME // width)
    for start in range(0, len(values), step):
        yield list(values[start : start + step])


__all__ = ["NewDecision", "NewReward"]
