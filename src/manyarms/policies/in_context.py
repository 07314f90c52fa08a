"""A policy in one context: draws and probabilities of any actions from one pass over all of them.

A draw needs the masses of all actions, and so does the normaliser of a probability. Whoever wants both, or several draws until
one is allowed, asks a policy for itself in a context (`StreamedPolicy.in_context`): what the first answer needed is kept for the
next. A draw is the one that `sample_rows` makes of the same random numbers, and a probability that of `probabilities_of_many`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from manyarms._base.typing import Array, Ints
from manyarms.policies.edge import first_above

TOGETHER = 8  # blocks whose masses at one context are formed in one product

if TYPE_CHECKING:
    from manyarms.policies.base import Policy, PolicyRows, StreamedPolicy


class BlockSums:
    """The masses of a policy at b contexts, summed by blocks of actions: a draw takes a block first, and then an action of it."""

    def __init__(self, rows: PolicyRows, blocks: list[tuple[int, int]], *, one: bool = False) -> None:
        """`one`: b is 1. Blocks, of one length but for the last, are then small beside the cache: several are asked at once."""
        self._rows, self._blocks = rows, blocks
        if one:
            parts = [_sums_together(rows, blocks[i : i + TOGETHER]) for i in range(0, len(blocks), TOGETHER)]
            self._sums = np.concatenate(parts)[None]
        else:
            self._sums = np.stack([rows.mass(first, last).sum(axis=1) for first, last in blocks], axis=1)
        self._upto = self._sums.cumsum(axis=1)
        if rows.total is None:  # as `normaliser` sums it
            rows.total = self._upto[:, -1].astype(np.float64)
        self.total: Array = rows.total

    def draw(self, rng: np.random.Generator) -> Ints:
        """An action for each context, (b,)."""
        upto = self._upto
        point = rng.random(len(upto)) * upto[:, -1]
        chosen = first_above(upto, point, self._sums)
        rest = point - np.where(chosen > 0, upto[np.arange(len(upto)), chosen - 1], 0.0)
        found = np.empty(len(upto), dtype=np.int64)
        for block in np.unique(chosen):
            index = np.flatnonzero(chosen == block)
            first, last = self._blocks[block]
            mass = self._rows.only(index).mass(first, last)
            found[index] = first + first_above(mass.cumsum(axis=1), rest[index], mass)
        return found


def _sums_together(rows: PolicyRows, blocks: list[tuple[int, int]]) -> Array:
    """Sums of consecutive blocks at one context, each added up on its own."""
    start, length = blocks[0][0], blocks[0][1] - blocks[0][0]
    mass = rows.mass(start, blocks[-1][1])
    whole = mass.shape[1] // length
    sums = mass[0, : whole * length].reshape(whole, length).sum(axis=1)
    return sums if whole == len(blocks) else np.append(sums, mass[:, whole * length :].sum(axis=1))


class InContext(ABC):
    """A policy in one context."""

    @abstractmethod
    def draw(self, rng: np.random.Generator) -> int:
        """An action, by its row."""

    @abstractmethod
    def probabilities(self, ids: Ints) -> Array:
        """(m,): how likely it plays each of these actions (m,)."""

    def draw_allowed(self, rng: np.random.Generator, barred: Collection[int]) -> int:
        """An action that is not barred, with the law of the policy given that: drawn until one is allowed."""
        while (found := self.draw(rng)) in barred:
            pass
        return found


class AskedAnew(InContext):
    """Any policy, asked by its own methods every time."""

    def __init__(self, policy: Policy, X: Array) -> None:
        self._policy, self._X = policy, X

    def draw(self, rng: np.random.Generator) -> int:
        return int(self._policy.sample_rows(self._X, rng)[0])

    def probabilities(self, ids: Ints) -> Array:
        return np.asarray(self._policy.probabilities_of_many(self._X, ids[None])[0])


class Summed(InContext):
    """A policy that is drawn from by the sums of its blocks."""

    def __init__(self, rows: PolicyRows, blocks: list[tuple[int, int]]) -> None:
        self._rows, self._blocks = rows, blocks

    @cached_property
    def _sums(self) -> BlockSums:
        return BlockSums(self._rows, self._blocks, one=True)

    def draw(self, rng: np.random.Generator) -> int:
        return int(self._sums.draw(rng)[0])

    def probabilities(self, ids: Ints) -> Array:
        return np.asarray(self._rows.mass_at(ids[None])[0] / self._sums.total[0], dtype=np.float64)


class Listed(InContext):
    """A policy that lists its actions."""

    def __init__(self, rows: PolicyRows, ids: Ints, probabilities: Array) -> None:
        self._rows, self._ids, self._probabilities = rows, ids, probabilities

    def draw(self, rng: np.random.Generator) -> int:
        upto = self._probabilities.cumsum(axis=1)
        return int(self._ids[0, first_above(upto, rng.random(1) * upto[:, -1], self._probabilities)[0]])

    def probabilities(self, ids: Ints) -> Array:
        assert self._rows.total is not None
        return np.asarray(self._rows.mass_at(ids[None])[0] / self._rows.total[0], dtype=np.float64)


class Mixed(InContext):
    """A policy that explores: with probability epsilon any of K actions."""

    def __init__(self, own: InContext, epsilon: float, actions: int) -> None:
        self._own, self._epsilon, self._actions = own, epsilon, actions

    def draw(self, rng: np.random.Generator) -> int:
        any_action = int(rng.integers(self._actions, size=1)[0])
        return self._own.draw(rng) if rng.random(1)[0] >= self._epsilon else any_action

    def probabilities(self, ids: Ints) -> Array:
        return (1 - self._epsilon) * self._own.probabilities(ids) + self._epsilon * (1.0 / self._actions)


def in_context(policy: Policy | StreamedPolicy, x: Array) -> InContext:
    """Any policy in one context (d,)."""
    found = getattr(policy, "in_context", None)
    return AskedAnew(policy, x[None]) if found is None else found(x)


__all__ = ["AskedAnew", "BlockSums", "InContext", "Listed", "Mixed", "Summed", "in_context"]
