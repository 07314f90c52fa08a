"""Work on worker processes: everything comes back, messages before it, and nothing is left behind when something goes wrong."""

from __future__ import annotations

import multiprocessing
import os
import signal

import pytest

from manyarms.engine import WorkerDied, cores, local, tell
from manyarms.engine.local import THREAD_VARIABLES
from manyarms.errors import InvalidInput, ManyArmsError


def double(number: int) -> int:
    return 2 * number


def threads(_: int) -> list[str | None]:
    return [os.environ.get(name) for name in THREAD_VARIABLES]


def talkative(number: int) -> int:
    for step in range(3):
        tell((number, step))
    return number


def broken(number: int) -> int:
    if number == 1:
        raise ManyArmsError("number one is broken")
    return number


def dying(number: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return number


def test_every_piece_comes_back_with_its_outcome() -> None:
    with local(2) as engine:
        assert dict(engine.map(double, range(20))) == {n: 2 * n for n in range(20)}
        assert dict(engine.map(double, [])) == {}
        assert dict(engine.map(double, [7])) == {7: 14}  # the workers go on


def test_messages_come_before_the_outcome_of_their_piece() -> None:
    heard: list[tuple[int, int]] = []
    with local(2, hear=heard.append) as engine:
        for number, _ in engine.map(talkative, range(6)):
            assert [step for n, step in heard if n == number] == [0, 1, 2]
    assert len(heard) == 18


def test_where_nobody_listens_telling_does_nothing() -> None:
    with local(1) as engine:
        assert dict(engine.map(talkative, [3])) == {3: 3}
    tell("this process is no worker")


def test_workers_have_one_thread_and_the_environment_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    with local(1) as engine:
        assert dict(engine.map(threads, [0]))[0] == ["1"] * len(THREAD_VARIABLES)
    assert os.environ["OMP_NUM_THREADS"] == "3" and "MKL_NUM_THREADS" not in os.environ


def test_an_error_ends_the_block_and_its_workers() -> None:
    before = set(multiprocessing.active_children())
    with pytest.raises(ManyArmsError, match="number one is broken"), local(2) as engine:
        list(engine.map(broken, range(10)))
    assert set(multiprocessing.active_children()) <= before


def test_a_worker_that_dies_is_named() -> None:
    with pytest.raises(WorkerDied, match="without an answer"), local(1) as engine:
        list(engine.map(dying, [0]))


def test_the_number_of_workers_is_checked() -> None:
    assert cores() >= 1
    with pytest.raises(InvalidInput, match="workers"), local(0):
        pass


def test_a_refusal_leaves_the_environment_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    for options, says in (({"workers": "two"}, "workers"), ({"workers": 1, "hear": 3}, "hear")):
        with pytest.raises(InvalidInput, match=says), local(**options):  # type: ignore[arg-type]
            pass
        assert os.environ["OMP_NUM_THREADS"] == "3" and "MKL_NUM_THREADS" not in os.environ
