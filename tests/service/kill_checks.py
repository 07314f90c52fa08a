"""What must be true of a store whose server was killed, whenever that was, compared with what its clients were told.

Everything that a client was told is in the store, once, and the same; nothing is there that nobody asked for; whoever asked twice
was told the same twice. Then what must be true of any store (`live.torture_checks`): the state is, to the last bit, what the log
folds to from its beginning and from every snapshot, the belief that of an agent told the final rewards in one go; and
`manyarms replay` finds every decision, propensity and snapshot as the log says.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any
from unittest.mock import patch

import manyarms as ma
from live import torture_checks, tortured
from live.torture_checks import Tables
from manyarms.live import lease

SAME = ("actions", "propensity", "propensity_kind", "arm", "version")
"""What an answer has in common with the answer to the same question."""
COLUMNS = "position, id, unit, arm, version, question, actions, propensity, propensity_kind, erased, active, context"


class Journals:
    """What all clients of a store have asked for and were told."""

    def __init__(self, journals: Iterable[Sequence[tuple[Any, ...]]]) -> None:
        self.asked: dict[str, dict[str, Any]] = {}
        self.nameless: dict[bytes, str] = {}  # questions without an id, by their contexts
        self.told: dict[str, dict[str, Any]] = {}  # by the event's id
        self.rewarding: set[tuple[Any, ...]] = set()
        self.rewarded: set[tuple[Any, ...]] = set()
        self.activating: set[str] = set()
        self.activated: set[str] = set()
        self.erasing: set[str] = set()
        self.erased: set[str] = set()
        self.operating: Counter[str] = Counter()
        self.operated: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.unanswered = self.again = 0
        self.wrong: list[str] = []
        self.archive: dict[str, dict[int, list[Any]]] = {name: {} for name in tortured.COLUMNS}  # nothing is compacted
        for journal in journals:
            for entry in journal:
                self._take(*entry)

    def _take(self, kind: str, *words: Any) -> None:
        if kind == "asking":
            self._asking(*words)
        elif kind == "told":
            self._told(*words)
        elif kind in ("rewarding", "rewarded"):
            getattr(self, kind).add(words)
        elif kind in ("activating", "activated", "erasing", "erased"):
            getattr(self, kind).add(words[0])
        elif kind in ("operating", "operated"):
            getattr(self, kind)[json.dumps(words)] += 1
        elif kind == "refused":
            self.refused[f"{words[0]} {words[1]}"] += 1
        elif kind == "unanswered":
            self.unanswered += 1
        else:
            self.wrong.append(f"{kind}: {' '.join(map(str, words))}")

    def _asking(self, event: str, question: dict[str, Any]) -> None:
        self.asked[event] = question
        if "id" not in question:
            self.nameless[tortured.context_of(event).tobytes()] = event

    def _told(self, event: str, answer: dict[str, Any]) -> None:
        if "id" in self.asked[event] and answer["id"] != event:
            self.wrong.append(f"{event} was answered as {answer['id']}")
        if answer["action"] != answer["actions"][0]:
            self.wrong.append(f"{event}: {answer['action']} is not the first of {answer['actions']}")
        known = self.told.setdefault(answer["id"], answer)
        self.again += known is not answer
        if any(known[name] != answer[name] for name in SAME):
            self.wrong.append(f"{event} was told twice, and not the same: {known} and {answer}")


@patch.object(lease, "SECONDS", tortured.LEASE)  # and as it was for the next test
def check(address: str, entries: Iterable[Sequence[tuple[Any, ...]]]) -> tuple[list[str], dict[str, Any]]:
    """What is wrong, and figures. Nobody else has the store open."""
    journals = Journals(entries)
    with ma.live.open(address, background=False) as live:
        live.sync(timeout=60.0)
        tables, position, at = torture_checks.everything(live.database, journals)  # type: ignore[arg-type]
        wrong = [*journals.wrong]
        wrong += decisions(journals, live.database.read(f"SELECT {COLUMNS} FROM decisions"))
        wrong += rewards_and_the_like(journals, tables)
        wrong += torture_checks._operations(journals, tables)  # type: ignore[arg-type]
        wrong += torture_checks.in_order(tables, position, at)
        wrong += torture_checks.states(live, tables)
    replayed = ma.live.replay(address)
    if not replayed.ok:
        wrong.append(f"replay: {replayed}")
    figures = {
        "decisions": len(tables["decisions"]),
        "of them told": len(journals.told),
        "told again": journals.again,
        "rewards": len(tables["rewards"]),
        "activations": len(tables["activations"]),
        "operations": len(tables["operations"]),
        "chunks": len(tables["chunks"]),
        "unanswered": journals.unanswered,
    }
    return wrong, {**figures, "refused": journals.refused}


def decisions(journals: Journals, rows: list[tuple[Any, ...]]) -> list[str]:
    """Nothing lost, nothing changed, nothing invented, nothing twice."""
    wrong = []
    kept = {row[1]: row for row in rows}
    wrong += [f"lost: decision {event}" for event in journals.told if event not in kept]
    nameless: Counter[str] = Counter()
    for event, row in kept.items():
        _, _, unit, arm, version, question, actions, propensity, kind, erased, active, context = row
        if erased:
            if event not in journals.erasing:
                wrong.append(f"erased, which nobody asked for: {event}")
            continue
        if event in journals.erased:
            wrong.append(f"not erased: {event}")
        tag = event if event in journals.asked else journals.nameless.get(bytes(context))
        if tag is None:
            wrong.append(f"invented: decision {event}")
            continue
        asked = journals.asked[tag]
        if "id" not in asked:
            nameless[tag] += 1
        if bytes(context) != tortured.context_of(tag).tobytes():
            wrong.append(f"changed: the context of {event}")
        if (unit, json.loads(question).get("k"), bool(active)) != (
            asked.get("unit"),
            asked.get("k"),
            not asked["deferred"],
        ):
            wrong.append(f"changed: the question of {event}: asked {asked}, kept {question}, {unit}, {active}")
        told = journals.told.get(event)
        found = dict(zip(SAME, (json.loads(actions), propensity, kind, arm, version), strict=True))
        if told is not None and any(told[name] != found[name] for name in SAME if told[name] is not None):
            wrong.append(f"changed: decision {event}, told {told}, kept {found}")
    wrong += [f"decided {number} times: {tag}" for tag, number in nameless.items() if number > 1]
    return wrong


def untold(journals: Journals, rows: list[tuple[Any, ...]]) -> list[str]:
    """Events that are in the store, and that nobody was told of: there may be some after a kill, and none after SIGTERM."""
    return [row[1] for row in rows if row[1] not in journals.told]


def rewards_and_the_like(journals: Journals, tables: Tables) -> list[str]:
    """The same of rewards and activations; of erased events, none are left."""
    names = {row[0]: row[1] for row in tables["decisions"]}
    gone = {row[1] for row in tables["decisions"] if row[6]}
    kept = Counter((names.get(row[1]), row[2], row[3], row[4]) for row in tables["rewards"])
    wrong = [f"counted {number} times: reward {reward}" for reward, number in kept.items() if number != 1]
    wrong += [f"invented: reward {reward}" for reward in kept if reward not in journals.rewarding]
    wrong += [f"lost: reward {r}" for r in journals.rewarded if r not in kept and r[0] not in gone]
    wrong += [f"left over: reward {reward} of an event that was erased" for reward in kept if reward[0] in gone]
    shown = Counter(names.get(row[1]) for row in tables["activations"])
    wrong += [f"activated {number} times: {event}" for event, number in shown.items() if number != 1]
    wrong += [f"activated, which nobody asked for: {event}" for event in shown if event not in journals.activating]
    wrong += [f"lost: activation of {e}" for e in journals.activated if e not in shown and e not in gone]
    return wrong
