"""Many callers, one transaction: who is told what, and what waits for whom."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from manyarms.errors import Conflict, InvalidInput, LiveError, ManyArmsError, Overloaded, StorageError, StoreUnavailable
from manyarms.live import group_commit as module
from manyarms.live.group_commit import GroupCommit
from manyarms.live.stores.database import Database, Reader, Transaction, Work
from manyarms.live.stores.opening import open_database


class Recording(Database):
    """A database that keeps a list, one transaction at a time, and writes only when it may."""

    kind = "recording"

    def __init__(self) -> None:
        super().__init__()
        self.may_write = threading.Event()
        self.may_write.set()
        self.writing = threading.Event()
        self.kept: list[str] = []
        self.sizes: list[int] = []
        self.fails: BaseException | None = None

    def write(self, work: Sequence[Work]) -> list[Any]:
        self.writing.set()
        assert self.may_write.wait(60)
        self.sizes.append(len(work))
        before = list(self.kept)
        results: list[Any] = []
        try:
            if self.fails is not None:
                raise self.fails
            for piece in work:
                try:
                    results.append(piece(self))  # type: ignore[arg-type]
                except ManyArmsError as error:
                    results.append(error)
        except BaseException:
            self.kept = before
            raise
        return results

    def reading(self) -> Any: ...
    def close(self) -> None: ...
    def tables(self, reader: Reader) -> set[str]: ...  # type: ignore[empty-body]


@pytest.fixture
def database() -> Iterator[Recording]:
    database = Recording()
    yield database
    database.may_write.set()


def keep(name: str) -> Work:
    def work(tx: Any) -> str:
        tx.kept.append(name)
        return name.upper()

    return work


def poison(tx: Any) -> None:
    tx.kept.append("poison")
    raise ZeroDivisionError


class Caller(threading.Thread):
    """A thread that calls, and keeps what it was told."""

    def __init__(self, call: Callable[[], Any]) -> None:
        super().__init__(daemon=True)
        self._call = call
        self.told: Any = None
        self.start()

    def run(self) -> None:
        try:
            self.told = self._call()
        except BaseException as error:
            self.told = error

    def answer(self) -> Any:
        self.join(60)
        assert not self.is_alive()
        return self.told


def waiting(group: GroupCommit, database: Recording, work: Sequence[Work]) -> list[Caller]:
    """Callers of this work, all waiting in this order behind a transaction that is being written."""
    database.may_write.clear()
    database.writing.clear()
    callers = [Caller(lambda: group.submit(keep("first")))]
    assert database.writing.wait(60)
    for i, piece in enumerate(work):
        callers.append(Caller(lambda piece=piece: group.submit(piece)))
        while group.waiting <= i:
            threading.Event().wait(0.001)
    return callers


def test_what_waits_is_written_together_in_order(database: Recording) -> None:
    group = GroupCommit(database)
    callers = waiting(group, database, [keep(name) for name in "abcde"])
    database.may_write.set()
    assert [caller.answer() for caller in callers] == ["FIRST", *"ABCDE"]
    assert database.sizes == [1, 5] and database.kept == ["first", *"abcde"]
    group.close()


def test_a_transaction_is_bounded(database: Recording, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_TOGETHER", 3)
    group = GroupCommit(database)
    callers = waiting(group, database, [keep(str(i)) for i in range(7)])
    database.may_write.set()
    assert [caller.answer() for caller in callers] == ["FIRST", *map(str, range(7))]
    assert database.sizes == [1, 3, 3, 1]
    group.close()


def test_a_refusal_is_raised_where_it_was_asked_for(database: Recording) -> None:
    def refuse(tx: object) -> None:
        raise Conflict("used before")

    group = GroupCommit(database)
    callers = waiting(group, database, [keep("a"), refuse, keep("b")])
    database.may_write.set()
    _, a, refused, b = (caller.answer() for caller in callers)
    assert (a, b) == ("A", "B") and isinstance(refused, Conflict)
    assert database.sizes == [1, 3]
    group.close()


def test_poison_harms_nobody_else(database: Recording) -> None:
    group = GroupCommit(database)
    callers = waiting(group, database, [keep(str(i)) if i != 11 else poison for i in range(20)])
    database.may_write.set()
    told = [caller.answer() for caller in callers][1:]
    assert isinstance(told.pop(11), ZeroDivisionError)
    assert told == [str(i) for i in range(20) if i != 11]
    assert database.kept == ["first", *told]  # each once, and in order
    assert database.sizes == [1, 20, 10, 10, 5, 2, 1, 1, 3, 5]  # halves, then halves of the half that fails
    with pytest.raises(ZeroDivisionError):
        group.submit(poison)
    group.close()


def test_a_store_that_fails_is_told_to_all_and_used_again(database: Recording) -> None:
    group = GroupCommit(database)
    callers = waiting(group, database, [keep("a"), keep("b")])
    database.fails = StoreUnavailable("the disk is full")
    database.may_write.set()
    told = [caller.answer() for caller in callers]
    assert all(type(error) is StoreUnavailable and str(error) == "the disk is full" for error in told)
    assert len({id(error) for error in told}) == 3
    assert database.kept == [] and database.sizes == [1, 2]
    database.fails = None
    assert group.submit(keep("c")) == "C"
    group.close()


def test_a_full_queue_makes_callers_wait_and_then_refuses(database: Recording) -> None:
    group = GroupCommit(database, most_waiting=2, patience=0.0)
    callers = waiting(group, database, [keep("a"), keep("b")])
    with pytest.raises(Overloaded, match="2 pieces of work wait to be written, and none was taken for 0 s"):
        group.submit(keep("c"))
    database.may_write.set()
    assert [caller.answer() for caller in callers] == ["FIRST", "A", "B"]
    assert group.submit(keep("d")) == "D"
    assert database.kept == ["first", "a", "b", "d"]
    group.close()


def test_whoever_waits_for_room_gets_it(database: Recording) -> None:
    group = GroupCommit(database, most_waiting=1, patience=60.0)
    callers = waiting(group, database, [keep("a")])
    late = [Caller(lambda: group.submit(keep("b"))), Caller(lambda: group.submit(keep("b")))]
    database.may_write.set()
    assert [caller.answer() for caller in callers + late] == ["FIRST", "A", "B", "B"]
    group.close()


def test_closing_writes_what_was_accepted_and_refuses_the_rest(database: Recording) -> None:
    group = GroupCommit(database, most_waiting=2, patience=60.0)
    callers = waiting(group, database, [keep("a"), keep("b")])
    for_room = Caller(lambda: group.submit(keep("c")))
    closing = Caller(group.close)
    assert isinstance(for_room.answer(), LiveError)
    assert closing.is_alive()
    database.may_write.set()
    assert [caller.answer() for caller in callers] == ["FIRST", "A", "B"]
    assert closing.answer() is None
    with pytest.raises(LiveError, match="closed"):
        group.submit(keep("d"))
    group.close()
    assert database.kept == ["first", "a", "b"]


def test_an_interrupted_caller_takes_back_what_has_not_begun(
    database: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = GroupCommit(database)
    callers = waiting(group, database, [keep("a")])

    def interrupt(self: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(module._Waiting, "wait", interrupt)
        with pytest.raises(KeyboardInterrupt):
            group.submit(keep("b"))
    assert group.waiting == 1
    database.may_write.set()
    assert [caller.answer() for caller in callers] == ["FIRST", "A"]
    with monkeypatch.context() as patch:
        patch.setattr(module._Waiting, "wait", interrupt)
        with pytest.raises(KeyboardInterrupt):
            group.submit(keep("may be written"))
    assert group.submit(keep("c")) == "C"
    group.close()
    assert set(database.kept) - {"may be written"} == {"first", "a", "c"}


def test_work_cannot_wait_for_itself(database: Recording) -> None:
    group = GroupCommit(database)
    with pytest.raises(LiveError, match="cannot wait for other work"):
        group.submit(lambda tx: group.submit(keep("inner")))
    assert group.submit(keep("a")) == "A"
    group.close()


def test_a_forked_process_is_refused_before_any_lock(database: Recording) -> None:
    group = GroupCommit(database)
    database._process, process = -1, database._process
    with group._lock:  # as a thread of the parent may have left it
        for call in (lambda: group.submit(keep("a")), group.close):
            with pytest.raises(StorageError, match="open the store again after the fork"):
                call()
    database._process = process
    group.close()


def test_bad_arguments_are_refused(database: Recording) -> None:
    for wrong in ({"most_waiting": 0}, {"most_waiting": 1.5}, {"patience": -1.0}, {"patience": float("nan")}):
        with pytest.raises(InvalidInput):
            GroupCommit(database, **wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput):
        GroupCommit(None)  # type: ignore[arg-type]


def test_sixteen_threads_on_sqlite(tmp_path: Any) -> None:
    """Everybody is told a position of their own, and finds it in the store."""

    def work(name: str) -> Work:
        def piece(tx: Transaction) -> int:
            position, at = tx.place()
            tx.execute("INSERT INTO operations VALUES (?, ?, 'test', ?)", (position, at, name))
            return position

        return piece

    with open_database(tmp_path / "live.db") as database:
        group = GroupCommit(database)
        told: dict[str, int] = {}

        def call(k: int) -> None:
            for i in range(25):
                position = told[f"{k} {i}"] = group.submit(work(f"{k} {i}"))
                assert database.read("SELECT body FROM operations WHERE position = ?", (position,)) == [(f"{k} {i}",)]

        callers = [Caller(lambda k=k: call(k)) for k in range(16)]
        assert [caller.answer() for caller in callers] == [None] * 16
        group.close()
        assert dict(database.read("SELECT body, position FROM operations")) == told
        assert sorted(told.values()) == list(range(1, 401))


def test_the_first_few_wait_for_others_where_they_are_told_to(
    database: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are written together with what came meanwhile; a future tells each, and what is refused its own caller."""
    asleep, go_on = threading.Event(), threading.Event()

    def pause(seconds: float) -> None:
        assert seconds == 0.25
        asleep.set()
        assert go_on.wait(60.0)

    monkeypatch.setattr(module, "time", SimpleNamespace(sleep=pause))  # of this module: other threads go on sleeping
    group = GroupCommit(database, gather=0.25)
    told = [group.promise(keep("a"))]
    assert asleep.wait(60.0)
    told += [group.promise(keep(name)) for name in "bcd"]
    go_on.set()
    assert [one.result(60.0) for one in told] == list("ABCD")
    assert database.sizes == [4] and database.kept == list("abcd")
    group.close()
    with pytest.raises(LiveError):
        group.promise(keep("late"))
    with pytest.raises(InvalidInput):
        GroupCommit(database, gather=-1.0)


def test_a_promise_never_waits_for_room(database: Recording) -> None:
    group = GroupCommit(database, most_waiting=1)
    database.may_write.clear()
    database.writing.clear()
    pending = [group.promise(keep("a"))]
    assert database.writing.wait(60.0)  # it is being written, and the next one waits
    pending.append(group.promise(keep("b")))
    with pytest.raises(Overloaded):
        group.promise(keep("c"))
    database.may_write.set()
    assert [one.result(60.0) for one in pending] == ["A", "B"]
    group.close()
