"""Several processes on one store: all decide, one learns, and another one when that is gone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from live.making import X, a_live, from_origin
from live.one_process import TESTS, Process
from manyarms.errors import LiveError
from manyarms.live.stores.opening import open_database

Start = Callable[[int, float], list[Process]]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "live.db"


@pytest.fixture
def start(path: Path) -> Iterator[Start]:
    """Starts some processes at once, which end with the test."""
    started: list[Process] = []

    def processes(number: int, lease: float) -> list[Process]:
        new = [Process(str(path), lease) for _ in range(number)]
        started.extend(new)
        for process in new:
            assert process.answer() == "ready"
        return new

    yield processes
    for process in started:
        process.end()


def chunks(path: Path) -> list[tuple[int, int]]:
    """Version and token of every chunk."""
    with open_database(path) as database:
        return [(v, t) for v, t in database.read("SELECT version, token FROM chunks ORDER BY version")]


def test_two_processes_decide_at_once_and_see_what_is_learned(start: Start) -> None:
    one, two = start(2, 10.0)
    one.ask("decide", "one", 40)
    two.ask("decide", "two", 40)
    events = one.answer() + two.answer()
    one.ask("reward", events[20:])  # late, and from the other process
    two.ask("reward", events[:60])  # some of them twice
    one.answer(), two.answer()
    first = one.do("sync")
    second = two.do("sync")
    assert [first["learner"], second["learner"]] == [True, False]
    assert first["learned"] == second["learned"] == 80
    assert (first["version"], first["state"]) == (second["version"], second["state"])


def test_the_lease_passes_on_and_a_learner_that_slept_cuts_nothing(start: Start, path: Path) -> None:
    one, two = start(2, 0.3)
    one.do("decide", "one", 3)
    assert one.do("learn")["learner"]
    one.do("believe")
    one.send(signal.SIGSTOP)  # asleep, for longer than its lease
    two.do("decide", "two", 3)
    assert two.do("sync")["learner"]
    two.do("decide", "three", 3)
    one.send(signal.SIGCONT)
    told = one.do("learn")  # it still believes that it is the learner
    assert not told["learner"]
    assert told["waiting"] > 0, "only the new learner folds what is new"
    assert [token for _, token in chunks(path)] == [1, 2]
    second = two.do("sync")
    two.send(signal.SIGKILL)  # and now it is killed
    one.do("decide", "four", 3)
    last = one.do("sync")
    assert last["learner"]
    assert last["version"] == second["version"] + 1
    assert chunks(path) == [(1, 1), (2, 2), (3, 2), (4, 3)]


def test_a_forked_child_is_refused_at_once_and_does_its_parent_no_harm(path: Path) -> None:
    script = f"""
import os, threading
import manyarms as ma
from live.making import X, an_agent
from manyarms.errors import StorageError

live = ma.live.open({str(path)!r}, an_agent(), fold_every=0.001)
event = live.decide(X).id
held, done = threading.Event(), threading.Event()

def hold():  # a thread of the parent is in the midst of folding when it forks
    with live._learner._lock, live._worker._lock:
        held.set()
        done.wait()

threading.Thread(target=hold).start()
held.wait()
child = os.fork()
if child == 0:
    refused = 0
    for work in (
        lambda: live.decide(X), lambda: live.reward(event), live.learn, live.sync, live.snapshot, live.state_bytes,
        lambda: live.event(event), lambda: live.erase(event), lambda: live.retire(1), live.close,
    ):
        try:
            work()
        except StorageError:
            refused += 1
    os._exit(refused)
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
done.set()
assert code == 10, code
live.reward(event)
assert live.sync() >= 1
live.close()
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS.parent / "src"), str(TESTS)])}
    subprocess.run([sys.executable, "-W", "ignore", "-c", script], check=True, env=environment, timeout=120)


def test_closing_while_threads_decide_loses_nothing(path: Path) -> None:
    live = a_live(path=path, background=True, fold_every=0.001)
    told: list[str] = []
    wrong: list[BaseException] = []

    def decide() -> None:
        while True:
            try:
                event = live.decide(X).id
                told.append(event)
                live.reward(event, 1.0)
            except LiveError:
                return
            except BaseException as error:
                wrong.append(error)
                return

    threads = [threading.Thread(target=decide) for _ in range(4)]
    for thread in threads:
        thread.start()
    while len(told) < 20 and not wrong:
        time.sleep(0.001)
    live.close()
    for thread in threads:
        thread.join()
    assert not wrong
    with a_live(path=path) as again:
        assert {again.event(event).id for event in told} == set(told)
        again.sync()
        assert again.state_bytes() == from_origin(again)
