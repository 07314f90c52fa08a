"""What a bound is: a lower and an upper end for the value of a policy, and what each part of it costs.

A bound has its parameters (lambda, and those of its correction) fixed when it is made. It is a statement about rows that do
not exist yet: with probability at least 1 - delta over logs, it holds for all posteriors at once, so that a policy may be
learned from the very rows that the bound is computed on. That is no longer so if lambda, alpha or tau are picked by looking
at the bound: a `Budget` says over how many points, and on how many sides, delta is shared out.

All numbers are for rewards in [0, 1].
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from manyarms._base import validate
from manyarms.certificates.summaries import Summary
from manyarms.errors import InvalidInput
from manyarms.weights import Correction


def confidence(delta: float) -> float:
    """delta strictly between 0 and 1."""
    if not 0 < validate.probability("delta", delta) < 1:
        raise InvalidInput("delta", delta, "a number above 0 and below 1")
    return float(delta)


@dataclass(frozen=True)
class Budget:
    """How delta is spent: on one side or both, and on how many points of a grid that was declared beforehand."""

    delta: float
    sides: int = 2
    points: int = 1

    def __post_init__(self) -> None:
        confidence(self.delta)

    @property
    def each(self) -> float:
        """What one statement gets, where every statement is about one side and one point."""
        return self.delta / (self.sides * self.points)

    @property
    def common(self) -> float:
        """What a statement gets that all points and sides share, the others taking the other half."""
        return self.delta / 2

    @property
    def rest(self) -> float:
        """What each of the others then gets."""
        return self.delta / (2 * self.sides * self.points)


@dataclass(frozen=True)
class Side:
    """An end of an interval: the estimate it starts from, and the costs by name, which lie between the two."""

    end: float
    start: float
    costs: Mapping[str, float]


class Bound(ABC):
    """Ends for the value of a policy from a summary, the divergence of posterior and prior, and a budget."""

    name: ClassVar[str]
    needs_logging: ClassVar[bool] = False
    """Whether pi0 of all actions is needed, and not only of those that were played."""

    for_fixed_only: ClassVar[bool] = False
    """Whether it holds for a policy that was fixed beforehand, and for no learned one."""

    @property
    def corrections(self) -> tuple[Correction, ...]:
        """Whose averages it reads."""
        return ()

    @property
    def smoothings(self) -> tuple[float, ...]:
        """Whose smoothed averages it reads."""
        return ()

    @abstractmethod
    def lower(self, summary: Summary, kl: float, budget: Budget) -> Side:
        """The value is at least this."""

    @abstractmethod
    def upper(self, summary: Summary, kl: float, budget: Budget) -> Side:
        """The value is at most this."""

    def resized(self, before: int, after: int) -> Bound:
        """The same bound with what follows from the number of rows adapted."""
        return self

    @property
    def settings(self) -> dict[str, float]:
        """The parameters by name."""
        found: dict[str, float] = {}
        for name, value in vars(self).items():
            key = "lambda" if name == "lam" else name
            found.update(value.settings if isinstance(value, Correction) else {key: float(value)})
        return found

    @property
    def label(self) -> str:
        """The name with its parameters."""
        shown = ", ".join(f"{name}={value:.3g}" for name, value in self.settings.items())
        return f"{self.name} ({shown})" if shown else self.name


def divergence(kl: float) -> float:
    """A divergence: at least 0, perhaps infinite."""
    if not kl >= 0:
        raise InvalidInput("kl", kl, "a divergence of at least 0")
    return float(kl)


def complement(side: Side) -> Side:
    """An upper end for the mean of r from a lower end for the mean of 1 - r."""
    return Side(1.0 - side.end, 1.0 - side.start, side.costs)


def over_contexts(summary: Summary, kl: float, delta: float) -> float:
    """How far the mean over n contexts of V(pi_Q|X_i) can be from V(pi_Q), for all posteriors Q at once.

    The value of a rule h at a context lies in [0, 1], and for such variables E exp(n kl(mean, expectation)) <= 2 sqrt(n)
    (Maurer, 2004; Germain et al., 2015, for all n). A change of measure from the prior to Q, Jensen's inequality for the
    convex kl, and Pinsker's 2 (p - q)^2 <= kl(p, q) give sqrt((KL + log(2 sqrt(n) / delta)) / (2 n)), on both sides (thesis,
    lines 5738-5741).
    """
    return math.sqrt((kl + math.log(2 * math.sqrt(summary.rows) / delta)) / (2 * summary.rows))


__all__ = ["Bound", "Budget", "Side", "complement", "confidence", "divergence", "over_contexts"]
