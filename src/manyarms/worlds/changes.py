"""How the actions of a drifting world change from round to round.

A change moves the actions' own parts z_a, which are standard normal vectors at every round, (K, d) in all: each of these laws
keeps the marginal law of z_a as it is, so that changes can be combined, and an agent's prior is right at every round.

Wandering   z <- rho z + sqrt(1 - rho^2) noise, an AR(1) process (Ornstein-Uhlenbeck, seen once a round), with a half-life
Sudden      in given rounds z is drawn anew
Seasons     z turns in a circle, with a phase of its own in every entry
Turnover    every so many rounds some actions go and new ones come in their place
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from manyarms._base import validate
from manyarms._base.typing import Array, Ints
from manyarms.errors import InvalidInput


class Motion(ABC):
    """A change under way in one world: what it keeps between rounds."""

    @abstractmethod
    def step(self, z: Array, round: int, rng: np.random.Generator) -> Ints | None:
        """Move z (K, d), in place, to `round`; the rows that hold a new action from now on, if any."""


class Change(ABC):
    """A law of change; `begin` starts it in a world."""

    @abstractmethod
    def begin(self, actions: int, dim: int, rng: np.random.Generator) -> Motion:
        """The motion of so many actions; `rng` draws what does not change: who moves, the seasons' phases."""

    def sudden(self, round: int) -> bool:
        """Whether something happens at once before this round, from which an agent has to recover."""
        return False


@dataclass(frozen=True)
class Wandering(Change):
    """Slow wandering: corr(z(t), z(s)) = 2^(-|t - s| / half_life), in rounds.

    share: of the actions, chosen at the beginning, that wander; the others stay what they are.

    >>> round(Wandering(half_life=693).rho, 3)
    0.999
    """

    half_life: float
    share: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "half_life", validate.positive("half_life", self.half_life))
        object.__setattr__(self, "share", _share(self.share))

    @property
    def rho(self) -> float:
        """The correlation from one round to the next."""
        return math.exp2(-1.0 / self.half_life)

    def begin(self, actions: int, dim: int, rng: np.random.Generator) -> Motion:
        return _Wander(self, _some(actions, self.share, rng))


class _Wander(Motion):
    def __init__(self, change: Wandering, movers: Ints | None) -> None:
        self._rho, self._movers = change.rho, movers
        # 1 - rho^2 without cancellation, where the half-life is long
        self._fresh = math.sqrt(-math.expm1(-2.0 * math.log(2.0) / change.half_life))

    def step(self, z: Array, round: int, rng: np.random.Generator) -> None:
        if self._movers is None:
            noise = rng.standard_normal(z.shape)
            noise *= self._fresh
            z *= self._rho
            z += noise
        else:
            noise = rng.standard_normal((len(self._movers), z.shape[1]))
            z[self._movers] = self._rho * z[self._movers] + self._fresh * noise


@dataclass(frozen=True)
class Sudden(Change):
    """Sudden change: before each of the given rounds (counted from 0) a share of the actions, chosen anew, is drawn anew."""

    rounds: Sequence[int]
    share: float = 1.0

    def __post_init__(self) -> None:
        rounds = validate.integers("rounds", self.rounds)
        if len(rounds) and rounds.min() < 1:
            raise InvalidInput("rounds", int(rounds.min()), "rounds of at least 1: a world begins with round 0")
        object.__setattr__(self, "rounds", tuple(sorted({int(one) for one in rounds})))
        object.__setattr__(self, "share", _share(self.share))

    def begin(self, actions: int, dim: int, rng: np.random.Generator) -> Motion:
        return _Jump(self)

    def sudden(self, round: int) -> bool:
        return round in self.rounds


class _Jump(Motion):
    def __init__(self, change: Sudden) -> None:
        self._rounds, self._share = frozenset(change.rounds), change.share

    def step(self, z: Array, round: int, rng: np.random.Generator) -> None:
        if round not in self._rounds:
            return
        hit = _some(len(z), self._share, rng)
        if hit is None:
            z[...] = rng.standard_normal(z.shape)
        else:
            z[hit] = rng.standard_normal((len(hit), z.shape[1]))


@dataclass(frozen=True)
class Seasons(Change):
    """Seasons: z(t) = u cos(2 pi t / period) + v sin(2 pi t / period), with u and v independent standard normal vectors.

    Every entry has then a phase and an amplitude of its own, and corr(z(t), z(s)) = cos(2 pi (t - s) / period). period: in
    rounds. share: of the actions, chosen at the beginning, that have seasons.
    """

    period: float
    share: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "period", validate.number("period", self.period, least=2))
        object.__setattr__(self, "share", _share(self.share))

    def begin(self, actions: int, dim: int, rng: np.random.Generator) -> Motion:
        movers = _some(actions, self.share, rng)
        return _Turn(self, movers, rng.standard_normal((actions if movers is None else len(movers), dim)))


class _Turn(Motion):
    """z and a companion w, a quarter of a period ahead of it, turn together by the same angle in every round."""

    def __init__(self, change: Seasons, movers: Ints | None, companion: Array) -> None:
        angle = 2.0 * math.pi / change.period
        self._cos, self._sin, self._movers, self._w = math.cos(angle), math.sin(angle), movers, companion

    def step(self, z: Array, round: int, rng: np.random.Generator) -> None:
        rows: slice | Ints = slice(None) if self._movers is None else self._movers
        before = z[rows].copy()
        z[rows] = self._cos * before + self._sin * self._w
        self._w = self._cos * self._w - self._sin * before


@dataclass(frozen=True)
class Turnover(Change):
    """A catalogue that turns over: before every `every`-th round `number` actions, any alike, go, and as many come."""

    every: int
    number: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "every", validate.count("every", self.every))
        object.__setattr__(self, "number", validate.count("number", self.number))

    def begin(self, actions: int, dim: int, rng: np.random.Generator) -> Motion:
        if self.number > actions:
            raise InvalidInput("number", self.number, f"at most {actions}, the number of actions")
        return _Replace(self)

    def sudden(self, round: int) -> bool:
        return round > 0 and round % self.every == 0


class _Replace(Motion):
    def __init__(self, change: Turnover) -> None:
        self._change = change

    def step(self, z: Array, round: int, rng: np.random.Generator) -> Ints | None:
        if not self._change.sudden(round):
            return None
        rows = np.sort(rng.choice(len(z), size=self._change.number, replace=False, shuffle=False))
        z[rows] = rng.standard_normal((len(rows), z.shape[1]))
        return rows


def _share(value: object) -> float:
    return validate.number("share", value, above=0, most=1)


def _some(actions: int, share: float, rng: np.random.Generator) -> Ints | None:
    """A share of the rows, at least one, in rising order; None for all of them."""
    number = max(1, round(share * actions))
    return None if number == actions else np.sort(rng.choice(actions, size=number, replace=False, shuffle=False))


__all__ = ["Change", "Motion", "Seasons", "Sudden", "Turnover", "Wandering"]
