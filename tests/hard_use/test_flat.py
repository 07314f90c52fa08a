"""Memory stays flat: `make flat` works for long; here is a short part of it, and what it would see."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import tracemalloc
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hard_use import flat

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
TESTS = Path(__file__).resolve().parents[1]


@pytest.fixture
def traced() -> Iterator[None]:
    tracemalloc.start()
    yield
    tracemalloc.stop()


@pytest.mark.slow
def test_what_grows_is_seen(traced: None) -> None:
    kept: list[Any] = []
    done = threading.Event()
    agent = flat.agents()["LinTS"]

    def sleeper() -> None:
        thread = threading.Thread(target=done.wait)
        thread.start()
        kept.append(thread)

    def outside() -> None:  # memory that Python does not allocate itself
        kept.append(os.memfd_create("it"))

    def snapshots() -> None:
        kept.append(agent.snapshot())
        agent.observe(np.ones(flat.D), 0, 1.0)

    leaks = {
        "traced": lambda: kept.append(bytearray(60)),  # an empty one is 57 bytes
        "beliefs": snapshots,
        "files": outside,
        "threads": sleeper,
        "resident": lambda: kept.append(bytearray(1 << 20)),
    }
    try:
        for name, leak in leaks.items():
            _, wrong = flat.grown(flat.Work("it", leak, 50))
            assert any(f"it: {name} grew" in line for line in wrong), (name, wrong)
    finally:
        done.set()
        for one in kept:
            if isinstance(one, threading.Thread):
                one.join()
            elif isinstance(one, int):
                os.close(one)


@pytest.mark.slow
def test_what_does_not_grow_is_not(traced: None) -> None:
    """Also what grows, and says so itself."""
    told, wrong = flat.grown(flat.Work("it", lambda: bytearray(1 << 20), 50))
    assert not wrong and told.startswith("it: 50 rounds")
    kept: list[Any] = []
    _, wrong = flat.grown(flat.Work("it", lambda: kept.append(bytearray(4_000)), 50, lambda: 4_100 * len(kept)))
    assert not wrong


@pytest.mark.parametrize("met", [False, True])
def test_what_only_a_snapshot_held_goes_with_it(met: bool) -> None:
    """At once, whether or not the agent keeps a twin: nothing waits for the collector of cycles."""
    agent = flat.agents()["HierTS"]
    if met:
        held = agent._belief.enter()
        agent.observe(np.ones(flat.D), 0, 1.0)
        agent._belief.leave(held)
        del held
    gc.disable()
    try:
        frozen = agent.snapshot()
        belief = weakref.ref(frozen.belief)
        for action in range(3):
            agent.observe(np.ones(flat.D), action, 1.0)
        assert belief() is not None and belief() is not agent.belief
        del frozen
        assert belief() is None
    finally:
        gc.enable()


@pytest.mark.slow
@pytest.mark.parametrize("part", list(flat.PARTS))
def test_flat(part: str) -> None:
    command = [sys.executable, "-m", "hard_use.flat", "--parts", part, "--scale", "0.1"]
    run = subprocess.run(command, cwd=TESTS, capture_output=True, text=True, timeout=1800)
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-2000:]
