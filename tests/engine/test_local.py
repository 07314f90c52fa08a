"""Work on worker processes: everything comes back, messages before it, and nothing is left behind when something goes wrong."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import engine_contract as contract
from manyarms.engine import Engine, Local, cores, local, tell
from manyarms.engine.local import THREAD_VARIABLES
from manyarms.errors import InvalidInput


@pytest.fixture(scope="module")
def engine() -> Iterator[Local]:
    with local(2) as found:
        yield found


@pytest.mark.parametrize("check", contract.CHECKS, ids=lambda check: check.__name__)
def test_the_contract(engine: Local, check: Callable[[Engine, Path], None], tmp_path: Path) -> None:
    check(engine, tmp_path)


def test_messages_come_before_the_outcome_of_their_piece() -> None:
    heard: list[tuple[int, int]] = []
    with local(2, hear=heard.append) as engine:
        for number, _ in engine.map(contract.talkative, range(6)):
            assert [step for n, step in heard if n == number] == [0, 1, 2]
        heard.clear()
        contract.messages_are_heard(engine, heard)  # type: ignore[arg-type]


def test_where_nobody_listens_telling_does_nothing() -> None:
    with local(1) as engine:
        assert dict(engine.map(contract.talkative, [3])) == {3: 3}
    tell("this process is no worker")


def test_workers_have_one_thread_and_the_environment_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    monkeypatch.setenv("MANYARMS_DATA", "/data")
    monkeypatch.delenv("MANYARMS_CACHE", raising=False)
    with local(1) as engine:
        assert dict(engine.map(contract.variables, [0]))[0] == ["1"] * len(THREAD_VARIABLES) + ["/data", None]
    assert os.environ["OMP_NUM_THREADS"] == "3" and "MKL_NUM_THREADS" not in os.environ


def test_an_error_ends_the_block_and_its_workers() -> None:
    before = set(multiprocessing.active_children())
    with pytest.raises(InvalidInput, match="another one"), local(2) as engine:
        list(engine.map(contract.broken, range(10), common="ours"))
    assert set(multiprocessing.active_children()) <= before


def test_a_worker_that_dies_is_named() -> None:
    with local(1) as engine:
        contract.a_worker_that_always_dies_is_named(engine)


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
