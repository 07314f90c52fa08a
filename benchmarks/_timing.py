"""How the benchmarks measure: CPU time of one thread, sides taking turns, medians.

A figure compares two things that ran side by side: in every turn each side plays a few rounds, and the figure is the median
over the turns of the quotient of their times. A neighbour who slows the machine down then slows both sides of a turn.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Protocol, cast

import numpy as np

from manyarms._base.typing import Array, Ints
from manyarms.worlds import MixedEffect

# CPU time of this process: what others do with the cores does not count, what a peer's own threads do does
clock = time.process_time

Side = Callable[[], float]  # does some work and returns the seconds that one round of it took


class Learner(Protocol):
    """What is compared: decides in a context and learns from the reward."""

    def decide(self, x: Array) -> int | Ints:
        """The action to take."""

    def observe(self, x: Array, action: int, reward: float) -> None:
        """What came of it."""


class Play:
    """A learner at work in a world. Only its own two calls are timed, not the world's contexts and rewards."""

    def __init__(self, learner: Learner, world: MixedEffect, seed: int = 0) -> None:
        self.learner = learner
        self.world = world.replay(seed)

    def rounds(self, number: int) -> float:
        """Play so many rounds; seconds of one, on average."""
        spent = 0.0
        decide, observe, reward = self.learner.decide, self.learner.observe, self.world.reward
        for x in self.world.contexts(number):
            start = clock()
            decided = decide(x)
            middle = clock()
            action = cast(int, decided)  # one context, one action
            seen = reward(x, action)
            again = clock()
            observe(x, action, seen)
            spent += clock() - again + middle - start
        return spent / number

    def decisions(self, number: int) -> float:
        """Decide so many times without learning; seconds of one decision, on average."""
        spent = 0.0
        for x in self.world.contexts(number):
            start = clock()
            self.learner.decide(x)
            spent += clock() - start
        return spent / number

    def until(self, enough: Callable[[], bool], rounds: int) -> int:
        """Play until `enough` says so, `rounds` at a time; how many rounds it took."""
        number = 0
        while not enough():
            self.rounds(rounds)
            number += rounds
        return number


def alternate(turns: int, *sides: Side) -> Array:
    """(turns, sides) seconds of a round: all sides play in every turn, after one turn that is not counted."""
    for side in sides:
        side()
    return np.array([[side() for side in sides] for _ in range(turns)])


def over(times: Array, above: int, below: int) -> float:
    """How many times longer side `above` took than side `below`: the median over turns."""
    return float(np.median(times[:, above] / times[:, below]))


def milliseconds(times: Array, side: int) -> float:
    """A side's median."""
    return 1e3 * float(np.median(times[:, side]))


def floor_of_scoring(weights: Array, rng: np.random.Generator) -> Side:
    """The least that scoring every action takes: c @ b, with b stored by column (L, K), and K standard normals.

    Nothing is added up and no maximum is taken: a sampler that looks at every action needs more than this.
    """
    columns = np.ascontiguousarray(weights.T)
    coefficients = rng.standard_normal(len(columns))
    held: list[object] = []  # what a turn made is released when no clock runs

    def work() -> float:
        start = clock()
        means = coefficients @ columns
        noise = rng.standard_normal(columns.shape[1])
        spent = clock() - start
        held[:] = [means, noise]
        return spent

    return work


def label(number: int) -> str:
    """1000000 as 1e6, for the names of figures; numbers that are no power of ten as they are.

    >>> label(1_000_000), label(2_500)
    ('1e6', '2500')
    """
    power = len(str(number)) - 1
    return f"1e{power}" if power > 0 and number == 10**power else str(number)


def summary(sides: Sequence[str], times: Array) -> str:
    """One line that tells each side's time and its spread (the middle half of the turns)."""
    low, middle, high = np.quantile(1e3 * times, [0.25, 0.5, 0.75], axis=0)
    parts = zip(sides, middle, low, high, strict=True)
    return ", ".join(f"{name} {m:.4g} ms ({a:.4g} to {b:.4g})" for name, m, a, b in parts)
