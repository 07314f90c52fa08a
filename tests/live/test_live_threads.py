"""Threads that share a live store, and its end."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import manyarms as ma
from live.making import DIM, X, a_live, agent_of, an_agent, from_origin, same_belief
from manyarms.errors import LiveError, ManyArmsError, Overloaded, StoreUnavailable
from manyarms.live.stores.opening import prepare
from manyarms.live.stores.sqlite import SQLite

THREADS, EACH = 8, 12


def test_nothing_is_lost_and_versions_never_fall(tmp_path: Path) -> None:
    live = ma.live.open(tmp_path / "a.db", an_agent(), fold_every=0.005, snapshot_every=5)
    rows: list[list[tuple[np.ndarray, int, float]]] = [[] for _ in range(THREADS)]
    wrong: list[object] = []

    def one(thread: int) -> None:
        rng = np.random.default_rng(thread)
        seen = 0
        try:
            for i in range(EACH):
                x, reward = rng.standard_normal(DIM), float(rng.normal())
                d = live.decide(x, id=f"{thread}-{i}")
                if d.version < seen or live.version < d.version:
                    wrong.append((seen, d.version))
                seen = d.version
                live.reward(d.id, reward)
                live.reward(d.id, reward)
                rows[thread].append((x, d.action, reward))
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=one, args=(thread,)) for thread in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert wrong == []
    live.sync()
    status = live.status()
    assert status["learned"] == THREADS * EACH and status["failures"] == {} and status["waiting"] == 0
    reference = an_agent()
    for row in itertools.chain(*rows):
        reference.observe(*row)
    same_belief(agent_of(live), reference)
    assert from_origin(live) == live.state_bytes()
    live.close()
    assert not [t.name for t in threading.enumerate() if t.name.startswith("manyarms") and not t.daemon]
    with a_live(path=tmp_path / "a.db") as again:
        assert again.event("3-5").actions and again.status()["learned"] == THREADS * EACH


def test_after_the_end_everything_is_refused(tmp_path: Path) -> None:
    live = ma.live.open(tmp_path / "a.db", an_agent(), fold_every=0.01)
    d = live.decide(X)
    before = {t.name for t in threading.enumerate()}
    live.close()
    live.close()
    assert {"manyarms-learner", "manyarms-propensities", "manyarms-group-commit"} <= before
    calls: list[Any] = [
        lambda: live.decide(X), lambda: live.reward(d.id), lambda: live.learn(), lambda: live.sync(),
        lambda: live.event(d.id), lambda: live.retire(1), lambda: live.erase(d.id), lambda: live.add_arm("b", an_agent()),
        lambda: live.snapshot(), lambda: live.status(), lambda: live.state_bytes(),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(ManyArmsError):
            call()
    with pytest.raises(LiveError, match="closed"):
        live.decide(X)


class Stuck(SQLite):
    """A store whose writes wait until they may."""

    may_write: threading.Event
    writing: threading.Event
    broken = False

    def write(self, work: Sequence[Any]) -> list[Any]:
        if threading.current_thread().name == "manyarms-group-commit":
            self.writing.set()
            assert self.may_write.wait(60)
            if self.broken:
                raise StoreUnavailable("gone")
        return super().write(work)


def stuck(path: Path) -> Stuck:
    store = Stuck(path)
    store.may_write, store.writing = threading.Event(), threading.Event()
    prepare(store)
    return store


def test_a_store_that_does_not_keep_up_refuses(tmp_path: Path) -> None:
    store = stuck(tmp_path / "a.db")
    live = ma.live.open(store, an_agent(), background=False, most_waiting=2, patience=0.0)
    answers: list[Any] = []
    threads = [threading.Thread(target=lambda: answers.append(live.decide(X))) for _ in range(3)]
    for number, thread in enumerate(threads):
        thread.start()  # one is being written, two wait
        assert store.writing.wait(60)
        while live._commits.waiting < number:
            threading.Event().wait(0.001)
    with pytest.raises(Overloaded):
        live.decide(X)
    store.may_write.set()
    for thread in threads:
        thread.join(60)
    assert len(answers) == 3 and all(live.event(d.id).position for d in answers)
    assert live.decide(X).logged
    live.close()


def test_without_a_store_decisions_go_on_where_that_was_wished(tmp_path: Path) -> None:
    for wish in ("refuse", "decide"):
        store = stuck(tmp_path / f"{wish}.db")
        store.may_write.set()
        live = ma.live.open(store, an_agent(), background=False, without_store=wish)  # type: ignore[arg-type]
        store.broken = True
        if wish == "refuse":
            with pytest.raises(StoreUnavailable):
                live.decide(X)
        else:
            d = live.decide(X)
            assert not d.logged and d.action in range(6)
            with pytest.raises(StoreUnavailable):
                live.reward(d.id)
        store.broken = False
        assert live.decide(X).logged
        live.close()
