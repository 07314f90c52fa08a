"""A real Ray runtime does what every engine must do, and hands the environment of this process to those who work for it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

import engine_contract as contract
from manyarms.engine import Engine, opened
from manyarms.engine.local import THREAD_VARIABLES


@pytest.mark.parametrize("check", contract.CHECKS, ids=lambda check: check.__name__)
def test_the_contract(ray_engine: Engine, check: Callable[[Engine, Path], None], tmp_path: Path) -> None:
    check(ray_engine, tmp_path)


def test_messages_are_heard(ray_engine: Engine) -> None:
    heard: list[object] = []
    with opened("ray", hear=heard.append) as engine:
        contract.messages_are_heard(engine, heard)
        heard.clear()
        assert engine.train(contract.ranks_added, 2, common=1.0) == (2, 3.0)
        assert sorted(heard) == [0, 1]  # type: ignore[type-var]
    assert dict(ray_engine.map(contract.talkative, [3])) == {3: 3}  # nobody listens any more


def test_a_worker_that_dies_is_named(ray_engine: Engine) -> None:
    contract.a_worker_that_always_dies_is_named(ray_engine)
    assert dict(ray_engine.map(contract.double, [1])) == {1: 2}  # others take its place


def test_who_works_has_one_thread_and_the_folders_of_this_process(
    ray_engine: Engine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The runtime was started before: it has inherited nothing of this."""
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.setenv("MANYARMS_DATA", os.path.relpath(tmp_path))
    monkeypatch.delenv("MANYARMS_CACHE", raising=False)
    expected = ["1"] * len(THREAD_VARIABLES) + [str(tmp_path), ""]
    assert dict(ray_engine.map(contract.variables, [0]))[0] == expected
    assert ray_engine.train(contract.variables, 2, common=0) == expected
    monkeypatch.delenv("MANYARMS_DATA")
    monkeypatch.setenv("MANYARMS_CACHE", str(tmp_path))
    assert dict(ray_engine.map(contract.variables, [0]))[0] == ["1"] * len(THREAD_VARIABLES) + ["", str(tmp_path)]
