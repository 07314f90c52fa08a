"""An agent in a world, round by round, with its exact expected regret."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from manyarms._base import validate
from manyarms._base.typing import Array, Ints

CHUNK = 1_000


class Simulator(Protocol):
    """What a simulation needs of a world."""

    def contexts(self, n: int) -> Array: ...

    def reward(self, x: Array, a: Any) -> Any: ...

    def regret(self, X: Array, A: Ints) -> Array: ...


class Actor(Protocol):
    """What a simulation needs of an agent."""

    def decide(self, x: Array) -> Any: ...

    def observe(self, x: Array, a: Any, r: Any) -> None: ...


@dataclass(frozen=True)
class OnlineRun:
    """One run: cumulative expected regret at the checkpoints, and the agent's own time (decide and observe)."""

    rounds: Ints
    regret: Array
    seconds: float

    @property
    def milliseconds_a_round(self) -> float:
        return 1e3 * self.seconds / int(self.rounds[-1])


def checkpoints_of(rounds: int, count: int = 100) -> Ints:
    """About `count` rounds, evenly spaced, the last one among them."""
    validate.count("rounds", rounds)
    return np.unique(np.ceil(np.linspace(rounds / min(rounds, count), rounds, min(rounds, count))).astype(np.int64))


def simulate(
    world: Simulator,
    agent: Actor,
    rounds: int,
    checkpoints: npt.ArrayLike | None = None,
    *,
    progress: Callable[[int, float], None] | None = None,
    chunk: int = CHUNK,
) -> OnlineRun:
    """Let an agent act for some rounds and measure the Bayes regret's summand

        sum_t  max_a r(X_t, a; theta) - r(X_t, A_t; theta)            (thesis, Chapter 1)

    with the true theta, so without the noise of realised rewards. Regret is worked out after each chunk of contexts
    and never inside the agent's own time. `progress` is called after each chunk with the rounds done and the regret.

    >>> import manyarms as ma
    >>> world = ma.worlds.MixedEffect(actions=20, effects=2, dim=3, seed=0)
    >>> run = ma.worlds.simulate(world, ma.meTS(world.prior(), seed=0), rounds=50)
    >>> run.rounds[-1], run.regret.shape
    (np.int64(50), (50,))
    """
    validate.count("rounds", rounds)
    marks = checkpoints_of(rounds) if checkpoints is None else np.asarray(checkpoints, dtype=np.int64)
    cumulative = np.empty(rounds)
    total, seconds, clock = 0.0, 0.0, time.perf_counter
    for first in range(0, rounds, chunk):
        contexts = world.contexts(min(chunk, rounds - first))
        chosen = np.empty(len(contexts), dtype=np.int64)
        for i, x in enumerate(contexts):
            start = clock()
            a = agent.decide(x)
            decided = clock()
            r = world.reward(x, a)
            rewarded = clock()
            agent.observe(x, a, r)
            seconds += clock() - rewarded + decided - start
            chosen[i] = a
        regret = np.cumsum(world.regret(contexts, chosen))
        cumulative[first : first + len(contexts)] = total + regret
        total += float(regret[-1])
        if progress is not None:
            progress(first + len(contexts), total)
    return OnlineRun(marks, cumulative[marks - 1], seconds)


__all__ = ["OnlineRun", "checkpoints_of", "simulate"]
