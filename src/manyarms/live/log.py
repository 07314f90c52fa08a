"""The event log in a database: everything that is ever read from it, and written but new decisions and rewards (`new_entries`).

What writes is a function of a transaction (`Work`), so that many callers can share one. Such a function refuses before it writes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from manyarms.errors import LiveError, UnknownEvent
from manyarms.live.records import DECIDED_AT, Chunk, DecisionRecord, Operation, Question, RewardRecord, hashed
from manyarms.live.stores.database import Reader, Row, Transaction, Work

DECISION_COLUMNS = (
    "position, id, at, unit, arm, version, draw, digest, context, question, actions, propensity, arm_propensity, inclusion, "
    "propensity_kind, details, erased, active"
)
_ACTIVATED = "(SELECT a.position FROM activations a WHERE a.decision = decisions.position)"
DECISION = f"{DECISION_COLUMNS}, CASE WHEN active = 0 THEN {_ACTIVATED} END"
AT_A_TIME = 500  # parameters of one statement


_JSON = json.JSONEncoder(separators=(",", ":"), sort_keys=True, allow_nan=False)


def dumped(value: object) -> str:
    """JSON, short and always the same for the same value."""
    return _JSON.encode(value)


# ---- decisions


def remember_units(tx: Transaction, positions: Sequence[int]) -> None:
    """These decisions go: their units are still no new ones, and would be counted again wherever each counts once."""
    marks = ", ".join("?" * len(positions))
    sql = f"SELECT DISTINCT unit FROM decisions WHERE position IN ({marks}) AND unit IS NOT NULL"
    units = sorted({hashed("unit seen", unit) for (unit,) in tx.execute(sql, positions)})
    if units:
        rows = ", ".join(["(?)"] * len(units))
        tx.execute(f"INSERT INTO units (unit) VALUES {rows} ON CONFLICT (unit) DO NOTHING", units)


def read_decision(row: Row) -> DecisionRecord:
    """A decision, of the columns `DECISION`."""
    (
        position, id, at, unit, arm, version, draw, digest, context, question, actions, propensity, arm_propensity, inclusion,
        kind, details, erased, active, activated,
    ) = row  # fmt: skip
    told = json.loads(details)
    asked = None if erased or context is None else Question.read(bytes(context), question, told.get(DECIDED_AT))
    return DecisionRecord(
        id=id, unit=unit, arm=arm, version=version, draw=draw, question=asked, actions=json.loads(actions), digest=bytes(digest),
        propensity=propensity, arm_propensity=arm_propensity, inclusion=inclusion, propensity_kind=kind,
        details=told, position=position, at=at, erased=bool(erased), active=bool(active) or activated is not None,
        activated=activated,
    )  # fmt: skip


def decision(reader: Reader, event: str) -> DecisionRecord:
    """The decision with this id."""
    found = reader.execute(f"SELECT {DECISION} FROM decisions WHERE id = ?", (event,))
    if not found:
        raise UnknownEvent(f"no event {event!r}: never decided here, or compacted since")
    return read_decision(found[0])


def decisions_between(reader: Reader, after: int, upto: int) -> list[DecisionRecord]:
    """Decisions with positions in (after, upto], in order."""
    sql = f"SELECT {DECISION} FROM decisions WHERE position > ? AND position <= ? ORDER BY position"
    return [read_decision(row) for row in reader.execute(sql, (after, upto))]


def decisions_from(reader: Reader, after: int, limit: int) -> list[DecisionRecord]:
    """The next decisions after a position, in order."""
    sql = f"SELECT {DECISION} FROM decisions WHERE position > ? ORDER BY position LIMIT {limit}"
    return [read_decision(row) for row in reader.execute(sql, (after,))]


def without_propensity(reader: Reader, records: Sequence[DecisionRecord]) -> list[DecisionRecord]:
    """Those of them whose propensity is neither known nor computed."""
    open_ones = {record.position: record for record in records if record.propensity is None and not record.erased}
    for some in _some(list(open_ones)):
        marks = ", ".join("?" * len(some))
        for (position,) in reader.execute(f"SELECT decision FROM propensities WHERE decision IN ({marks})", some):
            del open_ones[position]
    return list(open_ones.values())


def decisions_at(reader: Reader, positions: Sequence[int]) -> dict[int, DecisionRecord]:
    """Decisions by position."""
    found: dict[int, DecisionRecord] = {}
    for some in _some(sorted(set(positions))):
        marks = ", ".join("?" * len(some))
        for row in reader.execute(f"SELECT {DECISION} FROM decisions WHERE position IN ({marks})", some):
            found[row[0]] = read_decision(row)
    return found


def due_at(reader: Reader, at: float) -> int:
    """The position of the last decision made at this time or before; 0 where there is none."""
    rows = reader.execute("SELECT position FROM decisions WHERE at <= ? ORDER BY at DESC, position DESC LIMIT 1", (at,))
    return int(rows[0][0]) if rows else 0


def decisions_of_version(reader: Reader, version: int, after: int = 0, limit: int = 1000) -> list[DecisionRecord]:
    """Decisions made by the state of a version, by position."""
    sql = f"SELECT {DECISION} FROM decisions WHERE version = ? AND position > ? ORDER BY position LIMIT {limit}"
    return [read_decision(row) for row in reader.execute(sql, (version, after))]


def _some(values: Sequence[int]) -> Iterator[list[int]]:
    for start in range(0, len(values), AT_A_TIME):
        yield list(values[start : start + AT_A_TIME])


# ---- rewards


REWARD = "decision, action, id, value, position, at"


def rewards_between(reader: Reader, after: int, upto: int) -> list[RewardRecord]:
    """Rewards with positions in (after, upto], in order."""
    sql = f"SELECT {REWARD} FROM rewards WHERE position > ? AND position <= ? ORDER BY position"
    return [RewardRecord(*row) for row in reader.execute(sql, (after, upto))]


def rewards_of(reader: Reader, decisions: Sequence[int], upto: int) -> dict[tuple[int, int], list[RewardRecord]]:
    """The rewards up to a position of some decisions (by position): for each (decision, action), in order."""
    found: dict[tuple[int, int], list[RewardRecord]] = {}
    for some in _some(sorted(set(decisions))):
        marks = ", ".join("?" * len(some))
        sql = f"SELECT {REWARD} FROM rewards WHERE decision IN ({marks}) AND position <= ? ORDER BY position"
        for row in reader.execute(sql, (*some, upto)):
            record = RewardRecord(*row)
            found.setdefault((record.decision, record.action), []).append(record)
    return found


# ---- propensities that were computed afterwards


def propensities_of(reader: Reader, decisions: Sequence[int]) -> dict[int, tuple[float, float, float, float, int]]:
    """By position: propensity, that given the arm, inclusion, standard error (below 0: unknown for good) and draws."""
    found: dict[int, tuple[float, float, float, float, int]] = {}
    for some in _some(sorted(set(decisions))):
        marks = ", ".join("?" * len(some))
        sql = "SELECT decision, propensity, arm_propensity, inclusion, error, draws FROM propensities"
        found |= {row[0]: row[1:] for row in reader.execute(f"{sql} WHERE decision IN ({marks})", some)}
    return found


# ---- operations


def add_operation(kind: str, body: dict[str, Any]) -> Work:
    """Write an operation; its position. What it brings along (`writing`) must still be there."""
    text, brings = dumped(body), body.get("writing")

    def work(tx: Transaction) -> int:
        if brings and not tx.execute("SELECT 1 FROM snapshot_parts WHERE writing = ? LIMIT 1", (brings,)):
            raise LiveError(f"{kind}: what it brings along was removed before it came to be named: do it again")
        position, at = tx.place()
        tx.execute("INSERT INTO operations (position, at, kind, body) VALUES (?, ?, ?, ?)", (position, at, kind, text))
        return position

    return work


def operations_between(reader: Reader, after: int, upto: int) -> list[Operation]:
    """Operations with positions in (after, upto], in order."""
    sql = "SELECT position, at, kind, body FROM operations WHERE position > ? AND position <= ? ORDER BY position"
    rows = reader.execute(sql, (after, upto))
    return [Operation(position, at, kind, json.loads(body)) for position, at, kind, body in rows]


def erase(event: str) -> Work:
    """Blank a decision and its rewards, expire every snapshot that knows of it, and write the operation; its position."""

    def work(tx: Transaction) -> int:
        found = tx.execute("SELECT position, version, erased FROM decisions WHERE id = ?", (event,))
        if not found:
            raise UnknownEvent(f"no event {event!r}: never decided here, or compacted since")
        where, version, erased = found[0]
        if erased:
            raise UnknownEvent(f"event {event!r} was erased before")
        if _in_origin(tx, where):
            raise UnknownEvent(f"event {event!r} was compacted: what was learned from it can no longer be taken back")
        position, at = tx.place()
        tx.execute(
            "UPDATE decisions SET erased = 1, context = NULL, unit = NULL, question = ?, actions = ?, details = ?, digest = ?, "
            "draw = 0, propensity = NULL, arm_propensity = NULL, inclusion = NULL WHERE position = ?",
            ("{}", "[]", "{}", b"", where),
        )
        gone = tx.execute("SELECT position FROM rewards WHERE decision = ? ORDER BY position", (where,))
        shown = tx.execute("SELECT position FROM activations WHERE decision = ?", (where,))
        tx.execute("DELETE FROM rewards WHERE decision = ?", (where,))
        tx.execute("DELETE FROM activations WHERE decision = ?", (where,))
        tx.execute("DELETE FROM propensities WHERE decision = ?", (where,))
        _expire(tx, where)
        body = {"decision": where, "version": version, "rewards": [p for (p,) in gone]}
        body |= {"activations": [p for (p,) in shown]} if shown else {}
        tx.execute(
            "INSERT INTO operations (position, at, kind, body) VALUES (?, ?, ?, ?)",
            (position, at, "erase", dumped(body)),
        )
        return position

    return work


def _in_origin(reader: Reader, decision: int) -> bool:
    """Whether the origin has learned from a decision, which is still there because a reward of it came later."""
    rows = reader.execute(
        "SELECT c.upto, c.due FROM chunks c JOIN snapshots s ON s.version = c.version WHERE s.origin = 1"
    )
    if not rows or decision > rows[0][0]:
        return False
    upto, due = rows[0]
    if not decisions_at(reader, [decision])[decision].active_at(upto):
        return False
    sql = "SELECT 1 FROM rewards WHERE decision = ? AND position <= ? LIMIT 1"
    return decision <= due or bool(reader.execute(sql, (decision, upto)))


def _expire(tx: Transaction, position: int) -> None:
    """Delete the snapshots that have folded what is at this position; the origin has not learned from it."""
    for (writing,) in tx.execute("SELECT writing FROM snapshots WHERE upto >= ? AND origin = 0", (position,)):
        tx.execute("DELETE FROM snapshot_parts WHERE writing = ?", (writing,))
    tx.execute("DELETE FROM snapshots WHERE upto >= ? AND origin = 0", (position,))


# ---- chunks


def last_chunk(reader: Reader) -> Chunk | None:
    """The newest chunk."""
    rows = reader.execute("SELECT version, upto, due, at, token FROM chunks ORDER BY version DESC LIMIT 1")
    return Chunk(*rows[0]) if rows else None


def chunk(reader: Reader, version: int) -> Chunk | None:
    """The chunk of a version."""
    rows = reader.execute("SELECT version, upto, due, at, token FROM chunks WHERE version = ?", (version,))
    return Chunk(*rows[0]) if rows else None


def chunks_after(reader: Reader, version: int, limit: int = 1000) -> list[Chunk]:
    """Chunks after a version, in order."""
    sql = f"SELECT version, upto, due, at, token FROM chunks WHERE version > ? ORDER BY version LIMIT {limit}"
    return [Chunk(*row) for row in reader.execute(sql, (version,))]


ENTRIES = ("decisions", "rewards", "activations", "operations")


# ---- what there is once


def get(reader: Reader, name: str) -> str | None:
    """A value of the table `meta`."""
    rows = reader.execute("SELECT body FROM meta WHERE name = ?", (name,))
    return str(rows[0][0]) if rows else None


def put(tx: Transaction, name: str, body: str) -> None:
    """Set a value of the table `meta`."""
    tx.execute("DELETE FROM meta WHERE name = ?", (name,))
    tx.execute("INSERT INTO meta (name, body) VALUES (?, ?)", (name, body))
