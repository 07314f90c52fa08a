"""An agent in a world, round by round, with its exact expected regret."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from manyarms._base import validate
from manyarms._base.tables import Shown, Table
from manyarms._base.text import counted, number
from manyarms._base.typing import Array, Ints
from manyarms.errors import InvalidInput

CHUNK = 1_000


class Simulator(Protocol):
    """What a simulation needs of a world."""

    def contexts(self, n: int) -> Array: ...

    def reward(self, x: Array, a: Any) -> Any: ...

    def regret(self, X: Array, A: Ints) -> Array: ...


@runtime_checkable
class OfferingSimulator(Simulator, Protocol):
    """What it needs of a world where actions have contexts of their own, or only some of them are on offer."""

    @property
    def actions(self) -> int: ...

    def candidates(self, number: int) -> Ints: ...

    def mean_reward(self, x: Array, a: Any) -> Any: ...


class Actor(Protocol):
    """What a simulation needs of an agent; with `candidates` or `action_contexts`, that it takes arguments of these names."""

    def decide(self, x: Array) -> Any: ...

    def observe(self, x: Array, a: Any, r: Any) -> None: ...


@dataclass(frozen=True, repr=False)
class OnlineRun(Shown):
    """One run: cumulative expected regret at the checkpoints, and the agent's own time (decide and observe)."""

    rounds: Ints
    regret: Array
    seconds: float

    @property
    def milliseconds_a_round(self) -> float:
        return 1e3 * self.seconds / int(self.rounds[-1])

    def _table(self) -> Table:
        places = np.unique(np.linspace(0, len(self.rounds) - 1, min(10, len(self.rounds))).astype(np.int64))
        rounds, regret = self.rounds[places], self.regret[places]
        title = f"regret {number(float(self.regret[-1]))} after {counted(int(self.rounds[-1]), 'round')}"
        rows = [(int(t), float(r), float(r) / int(t)) for t, r in zip(rounds, regret, strict=True)]
        time = f"{self.milliseconds_a_round:.3g} ms a round in decide and observe"
        return Table(title, ("round", "cumulative regret", "regret a round"), rows, [time])


def checkpoints_of(rounds: int, count: int = 100) -> Ints:
    """About `count` rounds, evenly spaced, the last one among them."""
    rounds, count = validate.count("rounds", rounds), validate.count("count", count)
    return np.unique(np.ceil(np.linspace(rounds / min(rounds, count), rounds, min(rounds, count))).astype(np.int64))


def simulate(
    world: Simulator,
    agent: Actor,
    rounds: int,
    checkpoints: npt.ArrayLike | None = None,
    *,
    action_contexts: bool = False,
    candidates: int | None = None,
    progress: Callable[[int, float], None] | None = None,
    chunk: int = CHUNK,
) -> OnlineRun:
    """Let an agent act for some rounds and measure the Bayes regret's summand

        sum_t  max_a r(X_t, a; theta) - r(X_t, A_t; theta)            (thesis, Chapter 1)

    with the true theta, so without the noise of realised rewards. Regret is worked out after each chunk of contexts
    and never inside the agent's own time. `progress` is called after each chunk with the rounds done and the regret.

    action_contexts: every action has a context Z_ta of its own in every round, drawn as the shared X_t would be.
    candidates: in every round only so many actions, drawn uniformly, are on offer; the maximum is over them.

    >>> import manyarms as ma
    >>> world = ma.worlds.MixedEffect(actions=20, effects=2, dim=3, seed=0)
    >>> run = ma.worlds.simulate(world, ma.meTS(world.prior(), seed=0), rounds=50)
    >>> run.rounds[-1], run.regret.shape
    (np.int64(50), (50,))
    """
    rounds = validate.room("rounds", validate.count("rounds", rounds), 16)
    chunk = validate.count("chunk", chunk)
    needs = {"world": (world, ("contexts", "reward", "regret")), "agent": (agent, ("decide", "observe"))}
    for name, (thing, methods) in needs.items():
        if isinstance(thing, type) or not all(callable(getattr(thing, method, None)) for method in methods):
            raise InvalidInput(name, validate.describe(thing), "something with the methods " + ", ".join(methods))
    action_contexts = validate.flag("action_contexts", action_contexts)
    if progress is not None and not callable(progress):
        raise InvalidInput("progress", validate.describe(progress), "a function of the rounds and the regret, or None")
    marks = checkpoints_of(rounds) if checkpoints is None else _marks(checkpoints, rounds)
    play = _Clocked(world, agent)
    cumulative, total = np.empty(rounds), 0.0
    for first in range(0, rounds, chunk):
        number = min(chunk, rounds - first)
        if action_contexts or candidates is not None:
            regret = np.cumsum(_offered(world, play, number, action_contexts, candidates))
        else:
            contexts = world.contexts(number)
            chosen = np.array([play.observe(x, play.decide(x)) for x in contexts], dtype=np.int64)
            regret = np.cumsum(world.regret(contexts, chosen))
        cumulative[first : first + number] = total + regret
        total += float(regret[-1])
        if progress is not None:
            progress(first + number, total)
    return OnlineRun(marks, cumulative[marks - 1], play.seconds)


def _marks(checkpoints: npt.ArrayLike, rounds: int) -> Ints:
    """Rounds at which regret is told, checked."""
    marks = validate.owned(validate.integers("checkpoints", checkpoints))
    if not len(marks) or marks.min() < 1 or marks.max() > rounds:
        raise InvalidInput("checkpoints", validate.describe(checkpoints), f"rounds from 1 to {rounds}, at least one")
    return marks


class _Clocked:
    """Rounds of an agent in a world, and how long its part of them took."""

    def __init__(self, world: Simulator, agent: Any) -> None:
        self.world, self.agent, self.seconds = world, agent, 0.0

    def decide(self, *asked: Any, **options: Any) -> int:
        """What the agent chooses."""
        start = time.perf_counter()
        a = self.agent.decide(*asked, **options)
        self.seconds += time.perf_counter() - start
        return int(a)

    def observe(self, x: Array, a: int) -> int:
        """The agent sees what comes of its choice, which is returned."""
        r = self.world.reward(x, a)
        start = time.perf_counter()
        self.agent.observe(x, a, r)
        self.seconds += time.perf_counter() - start
        return a


def _offered(world: Simulator, play: _Clocked, rounds: int, action_contexts: bool, candidates: int | None) -> Array:
    """Regret of each round where actions have contexts of their own, or only some of them are on offer."""
    if not isinstance(world, OfferingSimulator):
        raise InvalidInput("world", validate.describe(world), "one with `actions`, `candidates` and `mean_reward`")
    if candidates is not None:
        candidates = validate.count("candidates", candidates)
        if candidates > world.actions:
            raise InvalidInput("candidates", candidates, f"at most {world.actions}, the number of actions")
    lost, ids, options = np.empty(rounds), np.arange(world.actions), dict[str, Any]()
    for t in range(rounds):
        if candidates is not None:
            ids = options["candidates"] = np.sort(world.candidates(candidates))
        if action_contexts:
            Z = world.contexts(len(ids))
            a = play.decide(action_contexts=Z, **options)
        else:
            x = world.contexts(1)[0]
            a = play.decide(x, **options)
            Z = np.broadcast_to(x, (len(ids), len(x)))
        place = np.searchsorted(ids, a)
        play.observe(Z[place], a)
        means = world.mean_reward(Z, ids)
        lost[t] = means.max() - means[place]
    return lost


__all__ = ["OnlineRun", "checkpoints_of", "simulate"]
