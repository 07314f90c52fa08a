"""What must be true of a store whose processes were killed, whenever that was.

Against the journals: everything that was told is there, and nothing is there that nobody asked for. Against itself: positions,
times, chunks and tokens. And the state: the same bits from the origin, from every snapshot and in a process that opens the store
now, and the same belief, to 1e-9, as an agent that is told the final rewards in one batch.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from live import tortured
from manyarms.live import lease, packing, snapshots
from manyarms.live.live import Live
from manyarms.live.state import State
from manyarms.live.stores.database import Database

Pair = tuple[int, int]


class Journals:
    """What all processes of a store have asked for and were told."""

    def __init__(self, folder: Path) -> None:
        self.asked: set[str] = set()
        self.told: dict[str, tuple[list[int], int]] = {}
        self.rewarding: set[tuple[str, int, str, float]] = set()
        self.rewarded: set[tuple[str, int, str, float]] = set()
        self.operating: Counter[str] = Counter()
        self.operated: Counter[str] = Counter()
        self.erasing: set[str] = set()
        self.erased: set[str] = set()
        self.failed: Counter[str] = Counter()
        self.wrong: list[str] = []
        for path in sorted(folder.glob("*.journal")):
            for line in path.read_bytes().split(b"\n")[:-1]:  # what comes after the last line's end was cut off
                self._take(json.loads(line))

    def _take(self, line: list[Any]) -> None:
        kind, *words = line
        if kind == "asking":
            self.asked.add(words[0])
        elif kind == "told":
            event, actions, version = words
            if self.told.setdefault(event, (actions, version)) != (actions, version):
                self.wrong.append(f"{event} was told twice, and not the same")
        elif kind in ("rewarding", "rewarded"):
            getattr(self, kind).add(tuple(words))
        elif kind in ("operating", "operated"):
            getattr(self, kind)[json.dumps(words)] += 1
        elif kind in ("erasing", "erased"):
            getattr(self, kind).add(words[0])
        elif kind == "failed":
            self.failed[f"{words[0]}: {words[1][:120]}"] += 1
        else:
            self.wrong.append(f"{kind}: {' '.join(map(str, words))}")


def check(address: str, folder: Path) -> tuple[list[str], dict[str, Any]]:
    """What is wrong, and figures. Nobody else has the store open."""
    lease.SECONDS = tortured.LEASE
    journals = Journals(folder)
    with tortured.open_live(address, background=False) as live:
        with live.database.reading() as reader:
            tables = {
                name: reader.execute(f"SELECT {columns} FROM {name} ORDER BY {columns.split(',')[0]}")
                for name, columns in COLUMNS.items()
            }
            [(position, at)] = reader.execute("SELECT position, at FROM counter")
        wrong = [*journals.wrong]
        wrong += told_and_kept(journals, tables)
        wrong += in_order(tables, position, at)
        wrong += states(live)
    figures = {
        "decisions": len(tables["decisions"]),
        "rewards": len(tables["rewards"]),
        "operations": len(tables["operations"]),
        "chunks": len(tables["chunks"]),
        "learners": max((row[4] for row in tables["chunks"]), default=0),
        "failed": journals.failed,
    }
    return wrong, figures


COLUMNS = {
    "decisions": "position, id, at, version, context, actions, erased",
    "rewards": "position, decision, action, id, value, at",
    "operations": "position, at, kind, body",
    "chunks": "version, upto, due, at, token",
}


def told_and_kept(journals: Journals, tables: dict[str, list[Any]]) -> list[str]:
    """Nothing is lost, and nothing invented."""
    wrong = []
    decisions = {row[1]: row for row in tables["decisions"]}
    names = {row[0]: row[1] for row in tables["decisions"]}
    for event, (actions, version) in journals.told.items():
        row = decisions.get(event)
        if row is None:
            wrong.append(f"lost: decision {event}")
        elif not row[6] and (json.loads(row[5]), row[3]) != (actions, version):
            wrong.append(f"changed: decision {event}, told {actions} of {version}, kept {row[5]} of {row[3]}")
    for event, row in decisions.items():
        if event not in journals.asked:
            wrong.append(f"invented: decision {event}")
        elif row[6] and event not in journals.erasing:
            wrong.append(f"erased, which nobody asked for: {event}")
        elif not row[6] and event in journals.erased:
            wrong.append(f"not erased: {event}")
        elif not row[6] and bytes(row[4]) != tortured.context_of(event).tobytes():
            wrong.append(f"changed: the context of {event}")
    kept = Counter((names.get(row[1]), row[2], row[3], row[4]) for row in tables["rewards"])
    wrong += [f"counted {number} times: reward {reward}" for reward, number in kept.items() if number != 1]
    wrong += [f"invented: reward {reward}" for reward in kept if reward not in journals.rewarding]
    gone = {event for event, row in decisions.items() if row[6]}
    wrong += [f"lost: reward {r}" for r in journals.rewarded if r not in kept and r[0] not in gone]
    wrong += [f"left over: reward {reward} of an event that was erased" for reward in kept if reward[0] in gone]
    return wrong + _operations(journals, tables)


def _operations(journals: Journals, tables: dict[str, list[Any]]) -> list[str]:
    """Operations have no ids: of each kind there are as many as were told, and at most as many as were asked for."""
    kept: Counter[str] = Counter()
    for _, _, kind, text in tables["operations"]:
        body = json.loads(text)
        if kind != "erase":
            kept[json.dumps([kind, body["weights"] if kind == "add_actions" else body["actions"]])] += 1
    wrong = []
    for what in {*kept, *journals.operated}:
        if not journals.operated[what] <= kept[what] <= journals.operating[what]:
            numbers = f"{journals.operated[what]} told, {kept[what]} kept, {journals.operating[what]} asked for"
            wrong.append(f"operation {what}: {numbers}")
    return wrong


def in_order(tables: dict[str, list[Any]], position: int, at: float) -> list[str]:
    """Positions have no gaps (but for rewards of erased events), times never fall, chunks follow each other."""
    wrong = []
    entries = [
        *((row[0], row[2]) for row in tables["decisions"]),
        *((row[0], row[5]) for row in tables["rewards"]),
        *((row[0], row[1]) for row in tables["operations"]),
        *((row[1], row[3]) for row in tables["chunks"]),
    ]
    entries.sort()
    places = [place for place, _ in entries]
    if len(set(places)) != len(places):
        wrong.append("a position was given twice")
    erased = any(row[2] == "erase" for row in tables["operations"])
    if not erased and places and places != list(range(places[0], position + 1)):
        wrong.append("positions have gaps")
    if places and places[-1] > position:
        wrong.append("an entry lies beyond the counter")
    times = [time for _, time in entries]
    if any(b < a for a, b in itertools.pairwise(times)) or (times and times[-1] > at):
        wrong.append("times fall")
    chunks = tables["chunks"]
    if [row[0] for row in chunks] != list(range(chunks[0][0], chunks[0][0] + len(chunks)) if chunks else []):
        wrong.append("versions have gaps")
    for column, name in ((1, "upto"), (2, "due"), (3, "at"), (4, "token")):
        values = [row[column] for row in chunks]
        if any(b < a or (column == 1 and b == a) for a, b in itertools.pairwise(values)):
            wrong.append(f"{name} falls from chunk to chunk")
    return wrong


# ---- the state


def states(live: Live) -> list[str]:
    """The same bits on every way to the newest state; snapshots are what the fold from the origin is at their version."""
    wrong = []
    database = live.database
    live.sync()
    expected = live.state_bytes()
    state = snapshots.from_origin(database)
    if packing.pack_state(state) != expected:
        wrong.append("the state is not what the fold from the origin is")
    with database.reading() as reader:
        [(position,)] = reader.execute("SELECT position FROM counter")
        kept = [
            (version, packing.read_parts(reader, writing), checksum)
            for version, writing, checksum in reader.execute("SELECT version, writing, sha256 FROM snapshots")
        ]
    for version, content, checksum in kept:
        if packing.sha256(content) != checksum:
            wrong.append(f"the snapshot of version {version} is not whole")
            continue
        if content != packing.pack_state(snapshots.from_origin(database, version)):
            wrong.append(f"the snapshot of version {version} is not what the fold from the origin is")
        start = packing.unpack_state(content)
        start.sound_upto = position
        if packing.pack_state(snapshots.fold(database, start)) != expected:
            wrong.append(f"the fold from the snapshot of version {version} is another")
    return wrong + beliefs(database, state)


def final_rewards(database: Database, due: int) -> dict[Pair, tuple[Any, float]]:
    """The context and the reward of every (decision, action) that has one: the sum of its rewards, or the default."""
    found: dict[Pair, tuple[Any, float]] = {}
    decisions = database.read("SELECT position, context, actions FROM decisions WHERE erased = 0")
    sums: dict[Pair, float] = {}
    for decision, action, value in database.read("SELECT decision, action, value FROM rewards"):
        sums[decision, action] = sums.get((decision, action), 0.0) + value
    for position, context, actions in decisions:
        for action in json.loads(actions):
            reward = sums.get((position, action), tortured.DEFAULT if position <= due else None)
            if reward is not None:
                found[position, action] = np.frombuffer(context), reward
    return found


def beliefs(database: Database, state: State) -> list[str]:
    """The belief is that of an agent that was told the final rewards, each once."""
    rows = final_rewards(database, state.chunk.due)
    wrong = []
    if state.counts["learned"] != len(rows):
        wrong.append(f"{state.counts['learned']} rows were learned, and {len(rows)} have a reward")
    if state.counts["rows_refused"]:
        wrong.append(f"{state.counts['rows_refused']} rows were refused")
    [(settled,)] = database.read(
        "SELECT COUNT(*) FROM decisions WHERE erased = 0 AND position <= ?", (state.chunk.due,)
    )
    if state.counts["settled"] != settled:
        wrong.append(f"{state.counts['settled']} events were settled, and {settled} are due")
    agent = tortured.fresh_agent()
    for (text,) in database.read("SELECT body FROM operations WHERE kind = 'add_actions' ORDER BY position"):
        agent.add_actions(weights=json.loads(text)["weights"])
    if rows:
        actions = np.array([action for _, action in rows], dtype=np.int64)
        agent.observe(np.array([x for x, _ in rows.values()]), actions, np.array([r for _, r in rows.values()]))
    arm: Any = state.arms["agent"]
    size = agent.belief.catalogue.size
    if arm.agent.belief.catalogue.size != size:
        return [*wrong, f"{arm.agent.belief.catalogue.size} actions, of {size}"]
    ids = np.arange(size)
    pairs = zip(arm.agent.belief.action_posterior(ids), agent.belief.action_posterior(ids), strict=True)
    if not all(np.allclose(a, b, rtol=1e-9, atol=1e-9) for a, b in pairs):
        wrong.append("the belief is not that of the final rewards")
    return wrong
