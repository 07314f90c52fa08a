"""What the processes of `live.torture` do until they are killed: writers, and a reader.

Each keeps a journal of its own: a line before a call, saying what is asked for, and a line after it, saying what was told. A line
is one write to a file, which a kill does not take back. What is asked follows from the ids alone (contexts, rewards), so that
whoever checks can say what should be in the store.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

import manyarms as ma
from manyarms.errors import Conflict, InvalidInput, LiveError, Overloaded, StoreUnavailable, UnknownEvent
from manyarms.live import compaction, learned_rows, lease, packing, snapshots
from manyarms.live.learner import Learner
from manyarms.live.live import Live
from manyarms.live.state import State
from manyarms.live.stores.database import Database
from manyarms.live.stores.sqlite import SQLite

DIM, ACTIONS = 3, 12
DEFAULT, WAIT = 0.25, 0.15  # a default that comes before some rewards, and is replaced by them
REWARD_IDS = ("", "click", "purchase")
OTHERS = ("other", "third")  # arms that join
KEEP = 0.2  # seconds of the log that compaction leaves
LEASE = 0.3  # seconds: learners are killed more often than they are in real life


def fresh_agent(thompson: bool = False, seed: int = 11) -> Any:
    """An agent whose actions all hang together, so that one row too many is seen everywhere."""
    weights = np.random.default_rng(7).normal(size=(ACTIONS, 2))
    prior = ma.MixedEffectPrior(weights, np.zeros((2, DIM)), np.eye(2 * DIM), np.eye(DIM))
    if thompson:
        return ma.meTS(prior, seed=seed)
    return ma.agents.Agent(ma.beliefs.belief_of(prior, ma.beliefs.Linear()), ma.agents.EpsilonGreedy(0.25), seed=seed)


def open_live(address: str, **options: Any) -> Live:
    """The store, as everybody opens it."""
    return ma.live.open(address, fresh_agent(), aggregate="sum", default=DEFAULT, wait=WAIT, **options)


def context_of(event: str) -> np.ndarray[Any, Any]:
    """The context of an event."""
    number = int.from_bytes(hashlib.blake2b(event.encode(), digest_size=8).digest(), "little")
    return np.random.default_rng(number).normal(size=DIM)


def value_of(event: str, action: int, reward: str) -> float:
    """The reward of an action, under an id."""
    digest = hashlib.blake2b(f"{event}\0{action}\0{reward}".encode(), digest_size=4).digest()
    return int.from_bytes(digest, "little") / 2**32


def weights_of(number: int) -> list[list[float]]:
    """The mixing weights of a new action."""
    return np.random.default_rng(1000 + number).normal(size=(1, 2)).tolist()


class Journal:
    """What one process asked for and was told."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def note(self, *words: object) -> None:
        """One line, in one write."""
        os.write(self._file, json.dumps(words).encode() + b"\n")


# ---- kills that are aimed


def die() -> NoReturn:
    """As if the power had gone, for this process."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("still here")


def _at(owner: Any, name: str, number: int, *, after: bool) -> None:
    """Die at the so-manieth call of a function, before it or after it."""
    original = getattr(owner, name)
    left = [number]

    def called(*arguments: Any, **options: Any) -> Any:
        left[0] -= 1
        if left[0] <= 0 and not after:
            die()
        result = original(*arguments, **options)
        if left[0] <= 0:
            die()
        return result

    setattr(owner, name, called)


def _database_class(address: str) -> type[Database]:
    if not address.startswith("postgresql"):
        return SQLite
    from manyarms.live.stores.postgresql import PostgreSQL

    return PostgreSQL


AIMS: dict[str, Callable[[str, random.Random], None]] = {
    "between commit and return": lambda a, rng: _at(_database_class(a), "write", rng.randint(3, 60), after=True),
    "between cutting and folding": lambda a, rng: _at(Learner, "_cut", rng.randint(1, 25), after=True),
    "during a fold": lambda a, rng: _at(State, "_teach", rng.randint(1, 40), after=rng.random() < 0.5),
    "while defaults are given": lambda a, rng: _at(learned_rows, "of_due", rng.randint(1, 10), after=True),
    "between a snapshot's parts": lambda a, rng: _at(packing, "_add_part", rng.randint(1, 8), after=False),
    "before a snapshot is named": lambda a, rng: _at(packing, "write_parts", rng.randint(1, 3), after=True),
    "after a snapshot is named": lambda a, rng: _at(snapshots, "write", rng.randint(1, 3), after=True),
    "while a snapshot is read": lambda a, rng: _at(packing, "unpack_state", 1, after=False),
}
# of readers, which compact
COMPACTING: dict[str, Callable[[str, random.Random], None]] = {
    "before the origin moves": lambda a, rng: _at(compaction, "_become_origin", rng.randint(1, 2), after=True),
    "when the origin has moved": lambda a, rng: _at(compaction, "_move", rng.randint(1, 2), after=True),
    "while the log is swept": lambda a, rng: _at(compaction, "_delete_some", rng.randint(1, 3), after=False),
}


def choose_aim(role: str, rng: random.Random) -> str:
    """Where a process shall die."""
    return rng.choice(sorted(COMPACTING if role == "reader" and rng.random() < 0.7 else AIMS))


# ---- what a process does


def writer(address: str, journal: Journal, name: str, seed: int, aim: str | None) -> None:
    """Decide, reward, change the catalogue and erase, in four threads, until the end."""
    rng = random.Random(seed)
    _hurry(address, rng, aim)
    live = _opened(address, journal, fold_every=0.01, snapshot_every=4, propensities=False)
    threads = [
        threading.Thread(target=_write_on, args=(live, journal, f"{name}-{number}", rng.randrange(2**32)), daemon=True)
        for number in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _hurry(address: str, rng: random.Random, aim: str | None) -> None:
    lease.SECONDS = LEASE
    packing.PART = 4096  # so that a snapshot has several
    if aim is not None:
        (AIMS | COMPACTING)[aim](address, rng)


def _opened(address: str, journal: Journal, **options: Any) -> Live:
    """The store, as soon as it can be reached."""
    while True:
        try:
            return open_live(address, **options)
        except StoreUnavailable as error:
            _note_failure(journal, error)
            time.sleep(0.05)


def _write_on(live: Live, journal: Journal, name: str, seed: int) -> None:
    rng, number = random.Random(seed), 0
    while True:
        number += 1
        try:
            _one_call(live, journal, rng, f"{name}-{number}")
        except UnknownEvent:  # somebody has erased it
            pass
        except BaseException as error:
            _note_failure(journal, error)


def _note_failure(journal: Journal, error: BaseException) -> None:
    """A store that cannot be reached may refuse; nothing else may go wrong."""
    kind = "failed" if isinstance(error, StoreUnavailable | Overloaded) else "broken"
    journal.note(kind, type(error).__name__, str(error))


def _one_call(live: Live, journal: Journal, rng: random.Random, event: str) -> None:
    kind = rng.random()
    if kind < 0.5:
        _decide(live, journal, event, rng)
    elif kind < 0.8:
        _reward(live, journal, rng)
    elif kind < 0.95:
        _activate(live, journal, rng)
    elif kind < 0.97:
        _operate(live, journal, rng)
    elif kind < 0.985:
        time.sleep(rng.uniform(0, 2 * WAIT))
    elif found := _somebodys(live, rng):
        journal.note("erasing", found[0])
        live.erase(found[0])
        journal.note("erased", found[0])


def is_deferred(event: str) -> bool:
    """Whether an event is decided as one that may never be shown: one in four."""
    return hashlib.blake2b(f"deferred {event}".encode(), digest_size=1).digest()[0] < 64


def _decide(live: Live, journal: Journal, event: str, rng: random.Random) -> None:
    k = rng.choice([None, 2])
    for _ in range(rng.choice([1, 1, 1, 2])):  # now and then the same question again
        journal.note("asking", event)
        told = live.decide(context_of(event), k=k, id=event, active=not is_deferred(event))
        journal.note("told", event, list(told.actions), told.version)
    if rng.random() < 0.5:
        _give(live, journal, event, rng.choice(told.actions), rng)


def _reward(live: Live, journal: Journal, rng: random.Random) -> None:
    """Of an event of anybody's, perhaps for the second time, perhaps after its default."""
    found = _somebodys(live, rng)
    if found:
        _give(live, journal, found[0], rng.choice(found[1]), rng)


def _activate(live: Live, journal: Journal, rng: random.Random) -> None:
    """Of an event of anybody's, perhaps for the second time, perhaps too late."""
    rows = live.database.read("SELECT id FROM decisions WHERE erased = 0 AND active = 0 ORDER BY position DESC LIMIT 9")
    if rows:
        [event] = rng.choice(rows)
        journal.note("activating", event)
        with suppress(Conflict):  # its waiting time is over
            live.activate(event)
            journal.note("activated", event)


def _give(live: Live, journal: Journal, event: str, action: int, rng: random.Random) -> None:
    reward = rng.choice(REWARD_IDS)
    value = value_of(event, action, reward)
    journal.note("rewarding", event, action, reward, value)
    live.reward(event, value, action=action, id=reward)
    journal.note("rewarded", event, action, reward, value)


def _somebodys(live: Live, rng: random.Random) -> tuple[str, list[int]] | None:
    most = rng.choice([5, 50, 500])
    rows = live.database.read(f"SELECT id, actions FROM decisions WHERE erased = 0 ORDER BY position DESC LIMIT {most}")
    if not rows:
        return None
    event, actions = rng.choice(rows)
    return event, json.loads(actions)


def _operate(live: Live, journal: Journal, rng: random.Random) -> None:
    kind = rng.choice(
        ["add_actions", "retire", "reinstate", "add_arm", "deploy", "roll_back", "cap", "change_settings", "explore"]
    )
    which = rng.randrange(ACTIONS // 2)  # the others always remain
    told: Any = None
    if kind == "add_actions":
        told, call = weights_of(which), lambda: live.add_actions(weights=told)
    elif kind in ("retire", "reinstate"):
        told, call = [which], lambda: getattr(live, kind)(told)
    elif kind == "add_arm":
        told, call = OTHERS[which % 2], lambda: live.add_arm(told, fresh_agent(thompson=told == "third", seed=which))
    elif kind == "deploy":
        told, call = (
            {"agent": 0.5, OTHERS[which % 2]: 0.5},
            lambda: live.deploy(told, shadows=OTHERS[1 - which % 2 :][:1]),
        )
    elif kind == "roll_back":
        call = live.roll_back
    elif kind == "explore":
        told, call = which / 8, lambda: live.explore(told, arm="agent" if which % 2 else None)
    elif kind == "change_settings":
        told, call = DEFAULT + which / 8, lambda: live.change_settings(default=told, wait=WAIT * (1 + which % 3) / 2)
    else:
        told, call = 3 + which, lambda: live.cap(told, window=1.0)
    journal.note("operating", kind, told)
    try:
        call()
    except LiveError as error:  # the fold refuses: it is in the log all the same. Or it was refused before
        if type(error) is not LiveError:
            raise
        return
    except InvalidInput:
        return
    journal.note("operated", kind, told)


def told_of(kind: str, body: dict[str, Any]) -> Any:
    """What `_operate` told of an operation, from its body in the log."""
    names = {"add_actions": "weights", "add_arm": "name", "deploy": "shares", "roll_back": "", "cap": "most"}
    names |= {"change_settings": "default", "explore": "epsilon"}
    return body.get(names.get(kind, "actions"))


def reader(address: str, journal: Journal, name: str, seed: int, aim: str | None) -> None:
    """Read everything again and again; become the learner now and then; compact."""
    rng = random.Random(seed)
    _hurry(address, rng, aim)
    live = _opened(address, journal, fold_every=0.02, snapshot_every=3)
    _archive_first(live.database, journal)
    last = 0
    while True:
        try:
            with live.database.reading() as reading:
                [(position, _)] = reading.execute("SELECT position, at FROM counter")
                [(rows,)] = reading.execute("SELECT COUNT(*) FROM decisions")
                [(largest,)] = reading.execute("SELECT MAX(position) FROM decisions")
            if (largest or 0) > position or rows > position or position < last:
                journal.note(
                    "broken", "reader", f"{rows} decisions up to {largest}, counter at {position} after {last}"
                )
            last = position
            journal.note("looked", position)
            live.status()
            for failure in filter(None, live._failures.values()):  # in the background
                _note_failure(journal, failure)
            if rng.random() < 0.1:
                live.snapshot()
            if rng.random() < 0.3:
                live.compact(KEEP)
            time.sleep(rng.uniform(0, 0.05))
        except BaseException as error:
            _note_failure(journal, error)


def _archive_first(database: Database, journal: Journal) -> None:
    """Before anything is deleted, what may be goes into the journal."""
    move = compaction._move

    def archived(where: Database, target: Any) -> Any:
        with database.reading() as reading:
            for table, columns in COLUMNS.items():
                key = "upto" if table == "chunks" else "position"
                rows = reading.execute(f"SELECT {columns} FROM {table} WHERE {key} <= ?", (target.upto,))
                journal.note("archive", table, [[_plain(value) for value in row] for row in rows])
        return move(where, target)

    compaction._move = archived


def _plain(value: Any) -> Any:
    return bytes(value).hex() if isinstance(value, bytes | memoryview) else value


COLUMNS = {
    "decisions": "position, id, at, version, context, actions, erased, active",
    "rewards": "position, decision, action, id, value, at",
    "activations": "position, decision, at",
    "operations": "position, at, kind, body",
    "chunks": "version, upto, due, at, token",
}
ROLES = {"writer": writer, "reader": reader}
