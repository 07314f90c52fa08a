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
from unittest.mock import patch

import numpy as np

from live import tortured
from manyarms.live import lease, packing, snapshots
from manyarms.live.live import Live
from manyarms.live.state import State
from manyarms.live.stores.database import Database

Pair = tuple[int, int]
Tables = dict[str, list[list[Any]]]


class Journals:
    """What all processes of a store have asked for and were told."""

    def __init__(self, folder: Path) -> None:
        self.asked: set[str] = set()
        self.told: dict[str, tuple[list[int], int]] = {}
        self.rewarding: set[tuple[str, int, str, float]] = set()
        self.rewarded: set[tuple[str, int, str, float]] = set()
        self.operating: Counter[str] = Counter()
        self.operated: Counter[str] = Counter()
        self.activating: set[str] = set()
        self.activated: set[str] = set()
        self.erasing: set[str] = set()
        self.erased: set[str] = set()
        self.failed: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.archive: dict[str, dict[int, list[Any]]] = {name: {} for name in tortured.COLUMNS}
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
        elif kind in ("erasing", "erased", "activating", "activated"):
            getattr(self, kind).add(words[0])
        elif kind == "archive":
            table, rows = words
            for row in rows:
                if table == "decisions" and row[4] is not None:
                    row[4] = bytes.fromhex(row[4])
                known = self.archive[table].setdefault(row[0], row)
                if table == "decisions" and row[6]:
                    known[6] = 1
        elif kind == "failed":
            self.failed[f"{words[0]}: {words[1][:120]}"] += 1
        elif kind != "looked":
            self.wrong.append(f"{kind}: {' '.join(map(str, words))}")


@patch.object(lease, "SECONDS", tortured.LEASE)  # and as it was for the next test
def check(address: str, folder: Path) -> tuple[list[str], dict[str, Any]]:
    """What is wrong, and figures. Nobody else has the store open."""
    journals = Journals(folder)
    with tortured.open_live(address, background=False) as live:
        live.sync()
        tables, position, at = everything(live.database, journals)
        wrong = [*journals.wrong]
        wrong += told_and_kept(journals, tables)
        wrong += in_order(tables, position, at)
        wrong += states(live, tables)
    figures = {
        "decisions": len(tables["decisions"]),
        "rewards": len(tables["rewards"]),
        "activations": len(tables["activations"]),
        "operations": len(tables["operations"]),
        "chunks": len(tables["chunks"]),
        "learners": max((row[4] for row in tables["chunks"]), default=0),
        "failed": journals.failed,
    }
    return wrong, figures


def everything(database: Database, journals: Journals) -> tuple[Tables, int, float]:
    """The tables, with what compaction has deleted; and the counter."""
    tables: Tables = {}
    with database.reading() as reader:
        for name, columns in tortured.COLUMNS.items():
            found = dict(journals.archive[name])
            found |= {row[0]: list(row) for row in reader.execute(f"SELECT {columns} FROM {name}")}
            tables[name] = [found[key] for key in sorted(found)]
        [(position, at)] = reader.execute("SELECT position, at FROM counter")
    erased = {json.loads(row[3])["decision"] for row in tables["operations"] if row[2] == "erase"}
    for row in tables["decisions"]:  # erased after it had gone into the archive, and deleted then
        row[6] = int(row[0] in erased or row[6])
    for name in ("rewards", "activations"):
        gone = journals.archive[name]
        tables[name] = [row for row in tables[name] if row[0] not in gone or row[1] not in erased]
    return tables, position, at


def told_and_kept(journals: Journals, tables: Tables) -> list[str]:
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
        elif row[7] is not int(not tortured.is_deferred(event)):
            wrong.append(f"changed: whether {event} may never be shown")
    kept = Counter((names.get(row[1]), row[2], row[3], row[4]) for row in tables["rewards"])
    wrong += [f"counted {number} times: reward {reward}" for reward, number in kept.items() if number != 1]
    wrong += [f"invented: reward {reward}" for reward in kept if reward not in journals.rewarding]
    gone = {event for event, row in decisions.items() if row[6]}
    wrong += [f"lost: reward {r}" for r in journals.rewarded if r not in kept and r[0] not in gone]
    wrong += [f"left over: reward {reward} of an event that was erased" for reward in kept if reward[0] in gone]
    shown = Counter(names.get(row[1]) for row in tables["activations"])
    wrong += [f"activated {number} times: {event}" for event, number in shown.items() if number != 1]
    wrong += [f"activated, which nobody asked for: {event}" for event in shown if event not in journals.activating]
    wrong += [
        f"lost: activation of {event}" for event in journals.activated if event not in shown and event not in gone
    ]
    wrong += [f"left over: activation of {event}, which was erased" for event in shown if event in gone]
    return wrong + _operations(journals, tables)


def _operations(journals: Journals, tables: Tables) -> list[str]:
    """Operations have no ids: of each kind there are as many as were told, and at most as many as were asked for."""
    kept: Counter[str] = Counter()
    for _, _, kind, text in tables["operations"]:
        body = json.loads(text)
        if kind != "erase":
            kept[json.dumps([kind, tortured.told_of(kind, body)])] += 1
    wrong = []
    for what in {*kept, *journals.operated}:
        if not journals.operated[what] <= kept[what] <= journals.operating[what]:
            numbers = f"{journals.operated[what]} told, {kept[what]} kept, {journals.operating[what]} asked for"
            wrong.append(f"operation {what}: {numbers}")
    return wrong


def in_order(tables: Tables, position: int, at: float) -> list[str]:
    """Positions have no gaps (but for rewards and activations of erased events), times never fall, chunks follow each other."""
    wrong = []
    entries = [
        *((row[0], row[2]) for row in tables["decisions"]),
        *((row[0], row[5]) for row in tables["rewards"]),
        *((row[0], row[2]) for row in tables["activations"]),
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


def states(live: Live, tables: Tables) -> list[str]:
    """The same bits on every way to the newest state; snapshots are what the fold from the origin is at their version."""
    wrong = []
    database = live.database
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
    return wrong + beliefs(tables, state)


def were_shown(tables: Tables) -> list[list[Any]]:
    """The decisions that count: not erased, and active."""
    activated = {row[1] for row in tables["activations"]}
    return [row for row in tables["decisions"] if not row[6] and (row[7] or row[0] in activated)]


def final_rewards(tables: Tables, due: int) -> dict[Pair, tuple[Any, float]]:
    """The context and the reward of every (decision, action) that was shown and has one: the sum, or the default."""
    found: dict[Pair, tuple[Any, float]] = {}
    changes = [(row[0], json.loads(row[3])["default"]) for row in tables["operations"] if row[2] == "change_settings"]
    sums: dict[Pair, float] = {}
    for _, decision, action, _, value, _ in tables["rewards"]:
        sums[decision, action] = sums.get((decision, action), 0.0) + value
    for position, _, _, _, context, actions, _, _ in were_shown(tables):
        default = [tortured.DEFAULT, *(value for change, value in changes if change < position)][-1]
        for action in json.loads(actions):
            reward = sums.get((position, action), default if position <= due else None)
            if reward is not None:
                found[position, action] = np.frombuffer(context), reward
    return found


def beliefs(tables: Tables, state: State) -> list[str]:
    """The belief is that of an agent that was told the final rewards, each once."""
    rows = final_rewards(tables, state.chunk.due)
    wrong = []
    if state.counts["learned"] != len(rows):
        wrong.append(f"{state.counts['learned']} rows were learned, and {len(rows)} have a reward")
    if state.counts["rows_refused"]:
        wrong.append(f"{state.counts['rows_refused']} rows were refused")
    settled = sum(row[0] <= state.chunk.due for row in were_shown(tables))
    if state.counts["settled"] != settled:
        wrong.append(f"{state.counts['settled']} events were settled, and {settled} are due")
    agent = tortured.fresh_agent()
    for _, _, kind, text in tables["operations"]:
        if kind == "add_actions":
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
