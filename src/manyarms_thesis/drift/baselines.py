"""Published linear bandits that forget, with one parameter for each action (disjoint models).

D-LinUCB (Russac, Vernade, Cappé: Weighted linear bandits for non-stationary environments, 2019). For the rows (x_s, r_s) of an
action until round t, with weights gamma^(t - s) by the age of a row in rounds, whoever was played in them:

    V = sum gamma^(t-s) x x^T + lam I,    V~ = sum gamma^(2(t-s)) x x^T + lam I,    theta = V^-1 sum gamma^(t-s) r x
    index of x:  x^T theta + beta sqrt(x^T V^-1 V~ V^-1 x)
    beta = sqrt(lam) S + sigma sqrt(2 log(1/delta) + d log(1 + L^2 (1 - gamma^(2t)) / (lam d (1 - gamma^2))))

SW-LinUCB (Cheung, Simchi-Levi, Zhu: Learning to optimize under non-stationarity, 2019) has the rows of the last `length` rounds,
all alike:  V = sum x x^T + lam I, width sqrt(x^T V^-1 x), and in beta log(1 + length L^2 / (lam d)).

S bounds ||theta||, L bounds ||x||. Where `width` is given it takes beta's place. Actions without rows have theta = 0 and are one
index for all; of these any alike is played. All actions that were played are scored together.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import deque
from dataclasses import dataclass

import numpy as np

from manyarms._base.typing import Array, Ints


@dataclass(frozen=True)
class Confidence:
    """What beta is made of: lam, S (`size`), L (`longest`), sigma (`noise`), delta; or a fixed `width`."""

    size: float
    longest: float
    noise: float
    delta: float
    lam: float = 1.0
    width: float | None = None

    def beta(self, dim: int, rows: float) -> float:
        """The width where the rows of an action weigh at most as much as `rows` of them."""
        if self.width is not None:
            return self.width
        information = dim * math.log(1.0 + rows * self.longest**2 / (self.lam * dim))
        return math.sqrt(self.lam) * self.size + self.noise * math.sqrt(2.0 * math.log(1.0 / self.delta) + information)


class ForgettingLinUCB(ABC):
    """Tables of the actions that were played, in the order of their first row, and what both algorithms do with them."""

    def __init__(self, actions: int, dim: int, confidence: Confidence, seed: int) -> None:
        self._dim, self._confidence, self._rng = dim, confidence, np.random.default_rng(seed)
        self._count, self.round = actions, 0
        self._slot_of: dict[int, int] = {}
        self._ids, self._barred = np.empty(0, dtype=np.int64), np.empty(0, dtype=bool)
        self._V, self._b = np.empty((0, dim, dim)), np.empty((0, dim))  # without lam I
        self._unplayed, self._gone = list(range(actions)), set[int]()

    # ---- the catalogue ------------------------------------------------------------------------------------------------

    @property
    def played(self) -> int:
        """How many actions have a row."""
        return len(self._ids)

    @property
    def nbytes(self) -> int:
        """Of the tables."""
        return sum(part.nbytes for part in (self._ids, self._barred, self._V, self._b))

    def add_actions(self, number: int) -> Ints:
        """New actions, whose ids continue the count."""
        new = np.arange(self._count, self._count + number)
        self._count += number
        self._unplayed += new.tolist()
        return new

    def retire(self, ids: Ints) -> None:
        """Do not play these any more."""
        self._gone |= set(np.asarray(ids).tolist())
        self._unplayed = [a for a in self._unplayed if a not in self._gone]
        self._barred = np.isin(self._ids, list(self._gone))

    # ---- rounds -------------------------------------------------------------------------------------------------------

    def decide(self, x: Array) -> int:
        """The action with the largest index."""
        best, value = -1, -math.inf
        if len(self._ids):
            index = np.where(self._barred, -np.inf, self.indices(x))
            slot = int(index.argmax())
            best, value = int(self._ids[slot]), float(index[slot])
        if self._unplayed and self.unplayed_index(x) > value:
            best = self._unplayed[int(self._rng.integers(len(self._unplayed)))]
        return best

    def indices(self, x: Array) -> Array:
        """The indices of the actions that were played, in the order of `ids`."""
        lam = self._confidence.lam
        u = np.linalg.solve(
            self._V + lam * np.eye(self._dim), np.broadcast_to(x[:, None], (len(self._V), self._dim, 1))
        )[..., 0]
        squared = np.einsum("pi,pij,pj->p", u, self._spread(), u) + lam * np.einsum("pi,pi->p", u, u)
        return np.asarray(np.einsum("pi,pi->p", u, self._b) + self._beta() * np.sqrt(np.maximum(squared, 0.0)))

    def unplayed_index(self, x: Array) -> float:
        """The index of an action without rows: V = V~ = lam I."""
        return self._beta() * float(np.linalg.norm(x)) / math.sqrt(self._confidence.lam)

    def observe(self, x: Array, a: int, r: float) -> None:
        """One round goes by for all actions, and a has a row more."""
        self.round += 1
        if a not in self._slot_of:
            self._slot_of[a] = len(self._ids)
            self._ids, self._barred = np.append(self._ids, a), np.append(self._barred, False)
            self._unplayed.remove(a)
            self._grow()
        self._learn(self._slot_of[a], np.asarray(x, dtype=np.float64), float(r))

    def _grow(self) -> None:
        """Room for an action more."""
        self._V = np.concatenate((self._V, np.zeros((1, self._dim, self._dim))))
        self._b = np.concatenate((self._b, np.zeros((1, self._dim))))

    @abstractmethod
    def _learn(self, slot: int, x: Array, r: float) -> None: ...

    @abstractmethod
    def _spread(self) -> Array:
        """V~ without lam I, (P, d, d)."""

    @abstractmethod
    def _beta(self) -> float: ...


class DLinUCB(ForgettingLinUCB):
    """Discounted LinUCB."""

    def __init__(self, actions: int, dim: int, confidence: Confidence, seed: int, *, gamma: float) -> None:
        super().__init__(actions, dim, confidence, seed)
        self.gamma, self._squared = gamma, np.empty((0, dim, dim))

    def _grow(self) -> None:
        super()._grow()
        self._squared = np.concatenate((self._squared, np.zeros((1, self._dim, self._dim))))

    def _learn(self, slot: int, x: Array, r: float) -> None:
        self._V *= self.gamma
        self._b *= self.gamma
        self._squared *= self.gamma**2
        square = np.outer(x, x)
        self._V[slot] += square
        self._squared[slot] += square
        self._b[slot] += r * x

    def _spread(self) -> Array:
        return self._squared

    def _beta(self) -> float:
        squared = self.gamma**2
        return self._confidence.beta(self._dim, (1.0 - squared**self.round) / (1.0 - squared))


class SWLinUCB(ForgettingLinUCB):
    """LinUCB on a sliding window."""

    def __init__(self, actions: int, dim: int, confidence: Confidence, seed: int, *, length: int) -> None:
        super().__init__(actions, dim, confidence, seed)
        self.length, self._rows, self._counts = length, deque[tuple[int, Array, float]](), list[int]()

    def _grow(self) -> None:
        super()._grow()
        self._counts.append(0)

    def _learn(self, slot: int, x: Array, r: float) -> None:
        self._rows.append((slot, x, r))
        self._add(slot, x, r, 1)
        if len(self._rows) > self.length:
            self._add(*self._rows.popleft(), -1)

    def _add(self, slot: int, x: Array, r: float, sign: int) -> None:
        self._V[slot] += sign * np.outer(x, x)
        self._b[slot] += sign * r * x
        self._counts[slot] += sign
        if self._counts[slot] == 0:  # what is left is rounding
            self._V[slot], self._b[slot] = 0.0, 0.0

    def _spread(self) -> Array:
        return self._V

    def _beta(self) -> float:
        return self._confidence.beta(self._dim, self.length)


__all__ = ["Confidence", "DLinUCB", "ForgettingLinUCB", "SWLinUCB"]
