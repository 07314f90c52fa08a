"""Who decides: shares of the traffic, a permanent hold-out, and shadows that only look on.

An event (or, sticky, its unit) is hashed to numbers in [0, 1): one for the hold-out, so that a unit stays in it however shares
change, and one for each arm. With -log(u) / share as the time that an arm takes, the fastest wins, each as often as its share
says; a unit moves from one arm to another only if the other's share has grown in proportion to its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import log1p

from manyarms._base import validate
from manyarms._base.tables import Shown, Table
from manyarms._base.text import counted
from manyarms._base.typing import Spec, loose
from manyarms.errors import InvalidInput
from manyarms.live.records import hashed

BASELINE = "baseline"
"""The arm of the caller's own choice: `decide(..., baseline=action)`."""


@dataclass(frozen=True, repr=False)
class Deployment(Shown):
    """Which arms decide, and how often.

    shares: of each arm, together 1. holdout: which part of the traffic goes, for good, to `holdout_arm`.
    shadows: arms that only look on. previous: what was deployed before, to roll back to.
    """

    shares: Mapping[str, float]
    holdout: float = 0.0
    holdout_arm: str | None = None
    shadows: tuple[str, ...] = ()
    previous: Deployment | None = None

    def __post_init__(self) -> None:
        validate.instance("shares", self.shares, Mapping, "a dictionary {name of an arm: its share}")
        shares = {_arm(name): validate.positive(f"shares[{name!r}]", share) for name, share in self.shares.items()}
        if not shares or abs(sum(shares.values()) - 1.0) > 1e-9:
            raise InvalidInput("shares", f"a sum of {sum(shares.values()):g}", "positive shares that sum to 1")
        object.__setattr__(self, "shares", dict(sorted(shares.items())))  # one order for everybody
        holdout = validate.probability("holdout", self.holdout)
        if holdout == 1.0:
            raise InvalidInput("holdout", 1, "a part of the traffic, below 1")
        object.__setattr__(self, "holdout", holdout)
        if holdout and self.holdout_arm is None:
            raise InvalidInput("holdout_arm", None, "the name of the arm that the hold-out gets")
        if self.previous is not None:
            validate.instance("previous", self.previous, Deployment, "a deployment, or None")
        if self.holdout_arm is not None:
            _arm(self.holdout_arm, "holdout_arm")
        if isinstance(self.shadows, str) or not isinstance(self.shadows, Sequence):
            raise InvalidInput("shadows", validate.describe(self.shadows), "a list of names of arms")
        shadows = tuple(dict.fromkeys(_arm(name, "shadows") for name in self.shadows))
        if BASELINE in shadows:
            raise InvalidInput("shadows", BASELINE, "arms of the store: the baseline is the caller's own choice")
        object.__setattr__(self, "shadows", shadows)

    @property
    def champion(self) -> str:
        """The arm with the largest share."""
        return max(self.shares, key=lambda name: self.shares[name])

    @property
    def laws(self) -> list[tuple[float, str]]:
        """The probability of every arm, the hold-out's last."""
        rest = [((1.0 - self.holdout) * share, name) for name, share in self.shares.items()]
        return [*rest, (self.holdout, self.holdout_arm)] if self.holdout_arm and self.holdout else rest

    @property
    def names(self) -> set[str]:
        """Every arm that has a part."""
        return {*self.shares, *self.shadows, *([self.holdout_arm] if self.holdout_arm else [])} - {BASELINE}

    def route(self, salt: str, who: str) -> tuple[str, bool]:
        """The arm of an event or unit, and whether it is held out."""
        if self.holdout and self.holdout_arm and fraction(salt, "holdout", who) < self.holdout:
            return self.holdout_arm, True
        if len(self.shares) == 1:
            return self.champion, False
        # 1 - u, from (0, 1], has the same law as u
        return min(self.shares, key=lambda name: -log1p(-fraction(salt, "arm", name, who)) / self.shares[name]), False

    def cut(self, depth: int) -> Deployment | None:
        """The same, remembering so many deployments at most, itself included."""
        if depth == 0:
            return None
        return self if self.previous is None else replace(self, previous=self.previous.cut(depth - 1))

    def to_json(self) -> Spec:
        """As operations and snapshots have it."""
        return {
            "shares": dict(self.shares),
            "holdout": self.holdout,
            "holdout_arm": self.holdout_arm,
            "shadows": list(self.shadows),
            "previous": None if self.previous is None else self.previous.to_json(),
        }

    @classmethod
    def from_json(cls, body: Spec) -> Deployment:
        """What `to_json` gave."""
        told = loose(body)
        previous = told.get("previous")
        return cls(
            told["shares"], told["holdout"], told["holdout_arm"], tuple(told["shadows"]),
            None if previous is None else cls.from_json(previous),
        )  # fmt: skip

    def _table(self) -> Table:
        rows = [(name, f"{share:.4g}") for name, share in self.shares.items()]
        held = f"; {self.holdout:.4g} of the traffic held out, for {self.holdout_arm}" if self.holdout else ""
        looks = [f"shadows: {', '.join(self.shadows)}"] if self.shadows else []
        return Table(f"{counted(len(rows), 'arm')} decide{'s' * (len(rows) == 1)}{held}", ("arm", "share"), rows, looks)


def _arm(name: object, argument: str = "shares") -> str:
    if not isinstance(name, str):
        raise InvalidInput(argument, validate.describe(name), "names of arms")
    return name


def fraction(*parts: object) -> float:
    """A number in [0, 1) that follows from these parts."""
    return hashed(*parts, bits=53) / 2.0**53


__all__ = ["BASELINE", "Deployment"]
