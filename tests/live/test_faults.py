"""A live store whose disk is full or read-only, or whose file is gone: it refuses, says so, and goes on when that is over."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

import manyarms as ma
from live.making import X, an_agent, from_origin
from manyarms.errors import ManyArmsError, StoreUnavailable, UnknownEvent
from manyarms.live import Live, lease
from manyarms.live.stores.opening import prepare
from manyarms.live.stores.sqlite import SQLite

WITHIN = 60.0  # seconds; only what hangs waits so long


def wait_for(what: Callable[[], bool]) -> None:
    end = time.monotonic() + WITHIN
    while not what():
        assert time.monotonic() < end, "it does not come"
        time.sleep(0.005)


@contextmanager
def full(live: Live, path: Path) -> Iterator[None]:
    """No file may grow beyond a little: whatever is written to the log fails, as on a disk that is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@contextmanager
def read_only(live: Live, path: Path) -> Iterator[None]:
    """Every connection that there is or will be can only read."""
    database = live.database
    assert isinstance(database, SQLite)
    connect = database._connect

    def connected() -> object:
        connection = connect()
        connection.execute("PRAGMA query_only=ON")
        return connection

    with database._lock:
        database._connect = connected  # type: ignore[assignment, method-assign]
        if database._writer is not None:
            database._writer.execute("PRAGMA query_only=ON")
    try:
        yield
    finally:
        with database._lock:
            del database._connect  # type: ignore[method-assign]
            if database._writer is not None:
                database._writer.execute("PRAGMA query_only=OFF")


@contextmanager
def gone(live: Live, path: Path) -> Iterator[None]:
    """The folder is called otherwise, as when a disk is not mounted any more."""
    elsewhere = path.parent.with_name("elsewhere")
    path.parent.rename(elsewhere)
    try:
        yield
    finally:
        elsewhere.rename(path.parent)


FAULTS: dict[str, Callable[[Live, Path], AbstractContextManager[None]]] = {
    "full": full,
    "read-only": read_only,
    "gone": gone,
}


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(lease, "SECONDS", 0.06)  # the learner writes every third of it, and so meets the fault
    folder = tmp_path / "disk"
    folder.mkdir()
    return folder / "live.db"


def open_live(path: Path, **options: object) -> Live:
    database = SQLite(path, patience=0.5)
    prepare(database)
    return ma.live.open(database, an_agent(), fold_every=0.005, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("fault", FAULTS)
def test_refused_told_and_recovered(path: Path, fault: str) -> None:
    with open_live(path) as live:
        before = live.decide(X, id="before")
        live.reward("before", 1.0)
        live.sync()
        with FAULTS[fault](live, path):
            for _ in range(2):
                with pytest.raises(StoreUnavailable):
                    live.decide(X, id="during")
                with pytest.raises(StoreUnavailable):
                    live.reward("before", 1.0, id="another")
                with pytest.raises(StoreUnavailable):
                    live.retire(3)
            wait_for(lambda: "learner" in live.status()["failures"])
            assert live.version >= 1
        wait_for(lambda: not live.status()["failures"])
        after = live.decide(X, id="after")
        live.reward("after", 1.0)
        live.reward("before", 0.5, id="another")
        live.retire(3)
        live.sync()
        with pytest.raises(UnknownEvent):
            live.event("during")
        assert live.event("before").actions == list(before.actions)
        assert live.event("after").actions == list(after.actions)
        rewards = live.database.read("SELECT value FROM rewards ORDER BY position")
        assert rewards == [(1.0,), (1.0,), (0.5,)]
        assert live.status()["learned"] == 2
        assert live.state_bytes() == from_origin(live)


@pytest.mark.parametrize("fault", FAULTS)
def test_deciding_without_the_store_where_that_is_wanted(path: Path, fault: str) -> None:
    with open_live(path, without_store="decide") as live:
        live.decide(X, id="before")
        live.sync()
        version = live.version
        with FAULTS[fault](live, path):
            decision = live.decide(X, id="during")
            assert not decision.logged
            assert len(decision.actions) == 1
            assert decision.version == version
            with pytest.raises(StoreUnavailable):  # a reward is never told to be kept when it is not
                live.reward("before", 1.0)
        wait_for(lambda: not live.status()["failures"])
        with pytest.raises(UnknownEvent):  # what was not logged cannot be learned
            live.reward("during", 1.0)
        again = live.decide(X, id="during")
        assert again.logged
        if again.version == decision.version:
            assert again.actions == decision.actions


@pytest.mark.parametrize("fault", FAULTS)
def test_closing_while_it_lasts(path: Path, fault: str) -> None:
    live = open_live(path)
    live.decide(X, id="before")
    live.sync()
    with FAULTS[fault](live, path):
        wait_for(lambda: "learner" in live.status()["failures"])
        live.close()
    with open_live(path) as again:
        assert again.event("before").id == "before"
        again.decide(X)
        again.sync()
        assert again.state_bytes() == from_origin(again)


def test_a_fault_in_the_very_moment_of_the_commit(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store has it, and the caller is told that this is not known: asking again with the same id finds it."""
    with open_live(path, background=False) as live:
        write = SQLite.write

        def lost(database: SQLite, work: list[object]) -> list[object]:
            write(database, work)  # type: ignore[arg-type]
            raise StoreUnavailable("the answer does not come")

        monkeypatch.setattr(SQLite, "write", lost)
        for call in (lambda: live.decide(X, id="a"), lambda: live.reward("a", 1.0), lambda: live.retire(2)):
            with pytest.raises(StoreUnavailable):
                call()
        with pytest.raises(StoreUnavailable):  # a lease, and a chunk
            live.learn()
        with pytest.raises(StoreUnavailable):
            live.learn()
        monkeypatch.undo()
        live.decide(X, id="a")
        live.reward("a", 1.0)
        live.sync()
        assert live.database.read("SELECT COUNT(*) FROM decisions") == [(1,)]
        assert live.database.read("SELECT COUNT(*) FROM rewards") == [(1,)]
        assert live.status()["learned"] == 1
        assert live.database.read("SELECT token FROM leases WHERE name = 'learner'") == [(1,)]
        assert live.state_bytes() == from_origin(live)


def test_whatever_breaks_in_the_background_is_told(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_live(path) as live:

        def breaks() -> None:
            raise ZeroDivisionError("by zero")

        monkeypatch.setattr(live._learner, "_cut", breaks)
        live.decide(X)
        wait_for(lambda: "ZeroDivisionError" in live.status()["failures"].get("learner", ""))
        with pytest.raises(ZeroDivisionError):
            live.learn()
        monkeypatch.undo()
        live.sync()
        wait_for(lambda: not live.status()["failures"])


def test_a_fold_that_breaks_off_half_way_is_begun_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_live(path, background=False) as live:
        from manyarms.live.state import State

        for i in range(5):
            live.decide(X, id=str(i))
            live.reward(str(i), i / 5)
        fold = State._settle

        def breaks(*_: object) -> None:
            raise StoreUnavailable("gone in the middle")

        monkeypatch.setattr(State, "_settle", breaks)
        with pytest.raises(ManyArmsError, match="in the middle"):
            live.learn()
        assert live.version == 0
        assert live.decide(X, id="meanwhile").version == 0
        monkeypatch.setattr(State, "_settle", fold)
        live.sync()
        assert live.status()["learned"] == 5
        assert live.state_bytes() == from_origin(live)
