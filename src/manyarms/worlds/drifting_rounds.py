"""An agent in a world that drifts, round by round, with its dynamic regret.

`simulate` works regret out after a chunk of rounds, by when a drifting world is another one: here every round is measured before
the world goes on. What is asked of a run afterwards is how much a round loses once the beginning is over, and how soon it is as
good as before when everything has changed at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from manyarms._base import validate
from manyarms._base.tables import Shown, Table
from manyarms._base.text import counted, number
from manyarms._base.typing import Array, Ints
from manyarms.errors import InvalidInput
from manyarms.worlds.drifting import CatalogueChange, Drifting

CHUNK = 1_000


class DriftingActor(Protocol):
    """What the loop needs of an agent; `retire` and `add_actions` only where the catalogue turns over."""

    def decide(self, x: Array) -> Any: ...

    def observe(self, x: Array, a: Any, r: Any) -> None: ...


Tell = Callable[[Any, CatalogueChange], object]
"""Tells an agent which actions went and which came; what it returns are the ids that the agent gave to the new ones."""


@dataclass(frozen=True, repr=False)
class DriftingRun(Shown):
    """One run: dynamic regret (rounds,) and choice (rounds,) of every round, and the agent's own time (decide and observe).

    sudden: the rounds (counted from 0) before which something happened at once.
    """

    regret: Array
    chosen: Ints
    sudden: Ints
    seconds: float

    @property
    def rounds(self) -> int:
        return len(self.regret)

    @property
    def milliseconds_a_round(self) -> float:
        return 1e3 * self.seconds / len(self.regret)

    def regret_a_round(self, burn_in: int = 0) -> float:
        """Mean dynamic regret of a round, after so many rounds of burn-in."""
        burn_in = validate.count("burn_in", burn_in, least=0, most=len(self.regret) - 1)
        return float(self.regret[burn_in:].mean())

    def smoothed(self, window: int) -> Array:
        """The mean regret of each round and the `window` - 1 before it (of as many as there are), (rounds,)."""
        return trailing_mean(self.regret, window)

    def recovery(self, change: int, *, window: int = 100, level: int = 500, factor: float = 1.5) -> int:
        """Rounds from a change until the agent is as good as before, within a factor.

        The level before is the mean regret of the `level` rounds before the change. Recovered is it in the first round in which
        the mean regret of the last `window` rounds, all after the change, is at most `factor` times that. An agent that does not
        recover before the next sudden change, or the end, gets the number of rounds until then: a lower limit.
        """
        change = validate.count("change", change, most=len(self.regret) - 1)
        window, level = validate.count("window", window), validate.count("level", level)
        allowed = validate.positive("factor", factor) * float(self.regret[max(0, change - level) : change].mean())
        later = self.sudden[self.sudden > change]
        after = self.regret[change : int(later[0]) if len(later) else None]
        if len(after) < window:
            return len(after)
        back = trailing_mean(after, window)[window - 1 :] <= allowed
        return int(back.argmax()) + window if back.any() else len(after)

    def _table(self) -> Table:
        places = np.unique(np.linspace(0, len(self.regret), min(10, len(self.regret)) + 1).astype(np.int64))
        rows = [
            (
                f"{first + 1:,} to {last:,}",
                float(self.regret[first:last].mean()),
                len(np.unique(self.chosen[first:last])),
            )
            for first, last in pairwise(places)
        ]
        title = f"dynamic regret {number(self.regret_a_round())} a round over {counted(len(self.regret), 'round')}"
        time = f"{self.milliseconds_a_round:.3g} ms a round in decide and observe"
        return Table(title, ("rounds", "regret a round", "actions played"), rows, [time])


def trailing_mean(values: Array, window: int) -> Array:
    """The mean of each value and the `window` - 1 before it, of fewer at the beginning."""
    window = validate.count("window", window)
    sums = np.concatenate(([0.0], np.cumsum(values)))
    last = np.arange(1, len(values) + 1)
    first = np.maximum(last - window, 0)
    return np.asarray((sums[last] - sums[first]) / (last - first))


def simulate_drifting(
    world: Drifting,
    agent: DriftingActor,
    rounds: int,
    *,
    tell: Tell | None = None,
    progress: Callable[[int, float], None] | None = None,
    chunk: int = CHUNK,
) -> DriftingRun:
    """Let an agent act for some rounds in a world that drifts, and measure what each of them loses:

        max_a r_t(X_t, a) - r_t(X_t, A_t)        with the parameters theta(t) of that very round

    Between two rounds the world advances, and after the last one, too: a second call goes on where the first one stopped.

    tell: how the agent hears that the catalogue was turned over; None for `tell_agent`, which knows the library's own agents.
    The ids that the agent gives to new actions must be the world's. progress: called after each `chunk` of rounds with the rounds
    done and the sum of regret.

    >>> import manyarms as ma
    >>> world = ma.worlds.Drifting(actions=50, dim=2, changes=ma.worlds.Wandering(half_life=200), seed=0)
    >>> run = ma.worlds.simulate_drifting(world, ma.meTS(world.prior(), seed=0), rounds=300)
    >>> run.regret.shape, bool(run.regret_a_round(burn_in=100) > 0)
    ((300,), True)
    """
    rounds = validate.room("rounds", validate.count("rounds", rounds), 24)
    chunk = validate.count("chunk", chunk)
    validate.instance("world", world, Drifting, "a world that drifts, such as Drifting")
    if isinstance(agent, type) or not all(callable(getattr(agent, name, None)) for name in ("decide", "observe")):
        raise InvalidInput("agent", validate.describe(agent), "something with the methods decide, observe")
    for name, function in (("tell", tell), ("progress", progress)):
        if function is not None and not callable(function):
            raise InvalidInput(name, validate.describe(function), "a function, or None")
    regret, chosen, sudden = np.empty(rounds), np.empty(rounds, dtype=np.int64), np.zeros(rounds, dtype=bool)
    seconds, clock, contexts = 0.0, time.perf_counter, np.empty((0, world.dim))
    for t in range(rounds):
        if t % chunk == 0:
            contexts = world.contexts(min(chunk, rounds - t))
        x = contexts[t % chunk]
        sudden[t] = world.sudden(world.round)
        start = clock()
        a = int(agent.decide(x))
        seconds += clock() - start
        regret[t], chosen[t] = world.regret(x, a), a
        r = world.reward(x, a)
        start = clock()
        agent.observe(x, a, r)
        seconds += clock() - start
        news = world.advance()
        if news is not None:
            _hear(agent, news, tell or tell_agent)
        if progress is not None and ((t + 1) % chunk == 0 or t + 1 == rounds):
            progress(t + 1, float(regret[: t + 1].sum()))
    return DriftingRun(regret, chosen, np.flatnonzero(sudden), seconds)


def tell_agent(agent: Any, news: CatalogueChange) -> Ints:
    """Retire what went and add what came, described in the way that the agent's belief asks for; the ids of the new ones.

    An agent with mixing weights gets these, one with a covariance for each action those of the new ones, any other their number.
    """
    agent.retire(news.retired)
    leaves = getattr(getattr(agent, "belief", None), "leaves", None)
    mixing = getattr(getattr(leaves, "mixing", None), "kind", None)
    if mixing == "weights" and news.weights is not None:
        return np.asarray(agent.add_actions(weights=news.weights))
    if leaves is not None and not getattr(leaves, "shared", True):
        return np.asarray(agent.add_actions(len(news.added), covariance=news.covariance))
    return np.asarray(agent.add_actions(len(news.added)))


def _hear(agent: Any, news: CatalogueChange, tell: Tell) -> None:
    """Tell an agent, and make sure that both speak of the same actions afterwards."""
    ids = np.asarray(tell(agent, news))
    if not np.array_equal(ids, news.added):
        raise InvalidInput("agent", f"new actions with the ids {ids[:3]}", f"the world's: {news.added[:3]}")


__all__ = ["DriftingRun", "simulate_drifting", "tell_agent", "trailing_mean"]
