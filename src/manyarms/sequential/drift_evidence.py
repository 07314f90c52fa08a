"""What a row says of a change: numbers E ≥ 0 of mean 1 as long as nothing has changed, for each kind and size of change.

Each family states under what: the model (standard normal residuals), symmetry, or a range of rewards and right means. A kind of
change that a row says nothing of has no number (None): its evidence stays as it is.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from manyarms.errors import InvalidInput
from manyarms.sequential.inputs import RewardRange
from manyarms.sequential.residual_detector import LARGEST_EXPONENT, SHIFTS

SCALES = (1.1, 1.25, 1.5, 2.0)
BETS = (-0.8, -0.4, -0.2, -0.1, -0.05, 0.05, 0.1, 0.2, 0.4, 0.8)  # parts of the largest bet
LARGEST_RESIDUAL = 1e50
LARGEST_WEIGHT = 2.0  # of how far a prediction is from the usual one, in standard deviations
SIDES = ("higher", "lower", "steeper", "flatter", "wider")

Factors = list[float | None]


class Judged(NamedTuple):
    """A row: its standardised residual z; how far its prediction is from the usual ones, w; r − mean in units of the range of
    rewards and how far that can be from 0 (`off`, `largest`; 0 and 1 where there is no range)."""

    z: float
    w: float
    off: float = 0.0
    largest: float = 1.0


class Family(ABC):
    """Kinds of change that are averaged. parts: how many there are; sides: what rewards are than predicted, of each."""

    name: ClassVar[str]
    sides: tuple[str, ...]

    @property
    def parts(self) -> int:
        """How many there are."""
        return len(self.sides)

    @abstractmethod
    def factors(self, row: Judged) -> Factors:
        """E of a row for each of them."""

    def side(self, evidence: Sequence[float]) -> str:
        """What most of the evidence is of."""
        return self.sides[max(range(self.parts), key=evidence.__getitem__)]


def _sides(sizes: Sequence[float]) -> tuple[str, ...]:
    """Of shifts, and then of slopes, of these sizes."""
    shifts = tuple("higher" if one > 0 else "lower" for one in sizes)
    return shifts + tuple("steeper" if one > 0 else "flatter" for one in sizes)


@dataclass(frozen=True)
class GaussianResiduals(Family):
    """N(δ, 1), N(δw, 1) and N(0, s²) against N(0, 1)."""

    name = "model"
    sides = _sides(SHIFTS) + ("wider",) * len(SCALES)

    def factors(self, row: Judged) -> Factors:
        z, found = row.z, []
        for weight in (1.0, row.w):
            found += [_normal(delta * weight, z) if weight else None for delta in SHIFTS]
        square = z * z / 2
        return found + [math.exp(min(square * (1 - 1 / (s * s)), LARGEST_EXPONENT)) / s for s in SCALES]


def _normal(delta: float, z: float) -> float:
    return math.exp(min(delta * z - delta * delta / 2, LARGEST_EXPONENT))


@dataclass(frozen=True)
class SymmetricResiduals(Family):
    """1 + tanh(δz) and 1 + tanh(δwz) for residuals of any law that is symmetric around 0, given the past."""

    name = "model-free"
    sides = _sides(SHIFTS)

    def factors(self, row: Judged) -> Factors:
        found: Factors = [1 + math.tanh(delta * row.z) for delta in SHIFTS]
        leaning = row.w * row.z
        return found + [1 + math.tanh(delta * leaning) if row.w else None for delta in SHIFTS]


@dataclass(frozen=True)
class RangedRewards(Family):
    """1 + b(r − mean)/c, and the same times w/2, for rewards of any law with that mean, given the past; |r − mean| ≤ c and
    |w| ≤ 2 are known before the reward."""

    name = "model-free"
    sides = _sides(BETS)

    def factors(self, row: Judged) -> Factors:
        unit = row.off / row.largest
        found: Factors = [max(0.0, 1 + bet * unit) for bet in BETS]
        leaning = row.w / LARGEST_WEIGHT * unit
        return found + [max(0.0, 1 + bet * leaning) if row.w else None for bet in BETS]


def families(gaussian: bool, rewards: RewardRange | None) -> tuple[Family, ...]:
    """What can be looked for."""
    if rewards is not None:
        return (GaussianResiduals(), RangedRewards()) if gaussian else (RangedRewards(),)
    if not gaussian:
        expected = "a range of rewards: residuals that are not Gaussian need not be symmetric"
        raise InvalidInput("reward_range", None, expected)
    return GaussianResiduals(), SymmetricResiduals()


__all__ = ["LARGEST_RESIDUAL", "SIDES", "Family", "Judged", "families"]
