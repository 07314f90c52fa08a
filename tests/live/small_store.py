"""Small live stores with a clock that tests move, and traffic that follows from a seed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import manyarms as ma
from manyarms.agents import Agent
from manyarms.agents.decisions import DECISIONS
from manyarms.beliefs import belief_of
from manyarms.live import Live
from manyarms.live.stores.opening import open_database
from manyarms.live.stores.sqlite import SQLite

D, K = 3, 6


@pytest.fixture(autouse=True, scope="module")
def quick_disk() -> Iterator[None]:
    """Nothing waits for the disk in modules that import this: what survives a crash is tested elsewhere."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        patch.setattr(SQLite, "synchronous", "OFF")
        yield


class Clock:
    """Seconds since 1970, as the test says."""

    def __init__(self, now: float = 1_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def small_agent(seed: int = 1, decision: str = "thompson") -> Agent:
    """Thompson sampling over a few actions, or the same belief decided by another rule."""
    rng = np.random.default_rng(seed)
    prior = ma.MixedEffectPrior(rng.normal(size=(K, 2)), np.zeros((2, D)), np.eye(2 * D), np.eye(D))
    return Agent(belief_of(prior, ma.Linear()), DECISIONS[decision](), seed)


def small_live(path: Path | str, clock: Clock, agent: Agent | None = None, **settings: Any) -> Live:
    """A store at a path, or the one that is there."""
    settings = {"wait": 60.0, "default": 0.0, "background": False, **settings}
    return ma.live.open(open_database(path, clock=clock), agent, **settings)


def traffic(
    live: Live,
    clock: Clock,
    events: int,
    seed: int = 0,
    *,
    learn_every: int = 5,
    rewards: Callable[[np.random.Generator], float] = lambda rng: float(rng.normal()),
    **options: Any,
) -> list[str]:
    """Decisions with filters, units and several actions now and then; rewards for two in three, some late, some in parts."""
    rng = np.random.default_rng(seed)
    ids, late = [], []
    for number in range(events):
        clock.now += 10.0
        asked: dict[str, Any] = dict(options)
        if number % 4 == 1:
            asked["candidates"] = sorted(rng.choice(K, 4, replace=False).tolist())
        if number % 4 == 2:
            asked["exclude"] = [int(rng.integers(K))]
        if number % 5 == 3:
            asked["unit"] = f"user {number % 3}"
        if number % 7 == 4:
            asked["k"] = 2
        if "baseline" in asked:
            asked |= {"k": None, "baseline": asked.get("candidates", [0, 1])[asked.get("exclude") == [0]]}
        made = live.decide(rng.normal(size=D), id=f"{seed}-{number}", **asked)
        ids.append(made.id)
        if number % 3 == 0:
            live.reward(made.id, rewards(rng))
        elif number % 3 == 1:
            late.append(made.id)
        if len(late) > 9:
            live.reward(late.pop(0), rewards(rng), id="late")
        if number % learn_every == learn_every - 1:
            live.learn()
    return ids
