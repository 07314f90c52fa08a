"""Ten thousand contexts at once: a decision in a batch beside one alone, and beside the NumPy that somebody would write."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from functools import partial

import numpy as np
from _report import Figures
from _timing import alternate, clock, milliseconds, over, summary

from manyarms._base.typing import Array, Ints
from manyarms.agents.agent import Agent
from manyarms.policies import SoftmaxPolicy
from manyarms.worlds import MixedEffect

Made = Callable[[], tuple[Agent, MixedEffect]]


def batches(agents: dict[str, tuple[Made, int]], contexts: int, turns: int, alone: int) -> Figures:
    """Agents, each with the number of actions that it has played: `contexts` of them together, `alone` one by one, in turns."""
    figures: Figures = {}
    ratios, peaks = [], []
    for name, (make, played) in agents.items():
        agent, world = make()
        teach(agent, world, played)
        X = world.contexts(contexts)
        times = alternate(turns, partial(together, agent, X), partial(one_by_one, agent, X[:alone]))
        tracemalloc.start()
        agent.decide(X)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        ratios.append(over(times, 0, 1))
        figures[f"batch_{name}_us"] = 1e3 * milliseconds(times, 0)
        figures[f"batch_{name}_over_single"] = ratios[-1]
        figures[f"batch_{name}_played"] = agent.played
        print(f"  {name}, {agent.played:,} played: " + summary(("in a batch", "alone"), times))
    return {"batch_over_single": max(ratios), "batch_peak_mb": max(peaks) / 1e6, **figures}


def teach(agent: Agent, world: MixedEffect, played: int) -> None:
    """Rounds of a hundred until so many actions have been played."""
    while agent.played < played:
        X = world.contexts(100)
        chosen = np.asarray(agent.decide(X))
        agent.observe(X, chosen, world.reward(X, chosen))


def together(agent: Agent, X: Array) -> float:
    """Seconds of one decision, all of them in a batch."""
    start = clock()
    agent.decide(X)
    return (clock() - start) / len(X)


def one_by_one(agent: Agent, X: Array) -> float:
    """Seconds of one decision."""
    start = clock()
    for x in X:
        agent.decide(x)
    return (clock() - start) / len(X)


class NumPyInBlocks:
    """LinTS for a batch, in NumPy with some care: 64 contexts and 4,096 actions at a time, all scores of a block in two products.

    Means (K, d) and packed covariances (K, d(d+1)/2) of all actions; every action of every context draws.
    """

    def __init__(self, agent: Agent, seed: int = 0) -> None:
        leaves, size, rng = agent.belief.leaves, agent.belief.catalogue.size, np.random.default_rng(seed)
        self.mean = np.tile(agent.belief.root.mean(), (size, 1))
        self.packed = np.tile(leaves.packing.pack(leaves.covariance), (size, 1))
        ids = leaves.catalogue.played.rows
        self.mean[ids], self.packed[ids] = leaves.c.rows, leaves.S.rows
        self.rng, self.packing = rng, leaves.packing

    def decide(self, X: Array) -> Ints:
        """An action for each context."""
        out = np.empty(len(X), dtype=np.int64)
        for first in range(0, len(X), 64):
            x = X[first : first + 64]
            quadratic = self.packing.bilinear(x, x)
            best = np.full(len(x), -np.inf)
            for start in range(0, len(self.mean), 4096):
                some = slice(start, start + 4096)
                scores = self.rng.standard_normal((len(x), len(self.mean[some])))
                scores *= np.sqrt(quadratic @ self.packed[some].T)
                scores += x @ self.mean[some].T
                top = scores.argmax(axis=1)
                found = scores[np.arange(len(x)), top]
                better = found > best
                best[better] = found[better]
                out[first : first + 64][better] = start + top[better]
        return out


def beside_numpy(make: Made, played: int, contexts: int, turns: int, size: str) -> Figures:
    """LinTS in a batch beside NumPy that scores every action in every context."""
    agent, world = make()
    teach(agent, world, played)
    other = NumPyInBlocks(agent)
    X = world.contexts(contexts)

    def theirs() -> float:
        start = clock()
        other.decide(X[:64])
        return (clock() - start) / len(X[:64])

    times = alternate(turns, partial(together, agent, X), theirs)
    print(f"  {size}: " + summary(("ours", "NumPy in blocks"), times))
    return {f"batch_numpy_{size}_over_ours": over(times, 1, 0), f"batch_numpy_{size}_ms": milliseconds(times, 1)}


def policy_over_scan(actions: int, dim: int, contexts: int, turns: int) -> Figures:
    """A decision of a softmax policy and its propensity, for one context and in a batch, beside the product `actions @ x`."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((actions, dim), dtype=np.float32)
    rows /= np.sqrt(dim)
    policy = SoftmaxPolicy(rows)
    X = rng.standard_normal((contexts, dim))
    held: list[object] = []  # what a turn made is released when no clock runs

    def alone() -> float:
        x = rng.standard_normal(dim)
        start = clock()
        here = policy.in_context(x)
        chosen = here.draw(rng)
        held[:] = [here, here.probabilities(np.array([chosen]))]
        return clock() - start

    def batch() -> float:
        start = clock()
        held[:] = [policy.sample_rows(X, rng)]
        return (clock() - start) / len(X)

    def scan() -> float:
        x = rng.standard_normal(dim, dtype=np.float32)
        start = clock()
        held[:] = [rows @ x]
        return clock() - start

    times = alternate(turns, alone, batch, scan)
    print(f"  a policy over {actions:,} actions: " + summary(("one context", "in a batch", "the scan"), times))
    return {
        "policy_over_scan": over(times, 0, 2),
        "policy_batch_over_single": over(times, 1, 0),
        "policy_ms": milliseconds(times, 0),
    }
