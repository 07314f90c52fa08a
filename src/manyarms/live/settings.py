"""What is agreed: how rewards count, and when an event is settled. It may be agreed anew, for what is decided from then on."""

from __future__ import annotations

import json
from bisect import bisect_left
from dataclasses import asdict, dataclass
from typing import Any, Literal

from manyarms._base import validate
from manyarms._base.tables import Shown
from manyarms.errors import InvalidInput

Aggregate = Literal["first", "sum", "max"]
AGGREGATES = ("first", "sum", "max")


@dataclass(frozen=True, repr=False)
class Settings(Shown):
    """How the rewards of an event become one number, and when there is one.

    aggregate: of several rewards of one event: the first, their sum, or the largest. default: the reward of an event that has
    none after `wait` seconds; None: such an event teaches nothing. A reward that comes after the default takes its place.
    reward_range: the smallest and the largest reward there can be, refused otherwise; certificates need it.
    """

    aggregate: Aggregate = "first"
    default: float | None = None
    wait: float = 600.0
    reward_range: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        set_field = object.__setattr__
        set_field(self, "aggregate", validate.one_of("aggregate", self.aggregate, AGGREGATES))
        set_field(self, "wait", validate.not_negative("wait", self.wait))
        if self.default is not None:
            set_field(self, "default", validate.number("default", self.default))
        if self.reward_range is not None:
            low, high = validate.as_array("reward_range", self.reward_range, (2,)).tolist()
            if not low < high:
                raise InvalidInput("reward_range", f"{low:g} to {high:g}", "the smallest reward, then the largest")
            set_field(self, "reward_range", (low, high))
            if self.default is not None and not low <= self.default <= high:
                raise InvalidInput("default", self.default, f"a reward in the range, {low:g} to {high:g}")

    def check(self, value: object) -> float:
        """A reward, as a number in the range."""
        number = validate.number("value", value)
        if self.reward_range is not None and not self.reward_range[0] <= number <= self.reward_range[1]:
            low, high = self.reward_range
            raise InvalidInput("value", f"{number:g}", f"a reward in the range of this store, {low:g} to {high:g}")
        return number

    def combined(self, values: list[float]) -> float:
        """One number of several rewards, in the order in which they came."""
        if self.aggregate == "first":
            return values[0]
        return sum(values) if self.aggregate == "sum" else max(values)

    def scaled(self, value: float) -> float:
        """A reward in units of the range, between 0 and 1: a sum of several that leaves the range is cut off at its end."""
        assert self.reward_range is not None
        low, high = self.reward_range
        return min(1.0, max(0.0, (value - low) / (high - low)))

    @property
    def span(self) -> float:
        """How far apart rewards can be; 1 where nobody said."""
        return 1.0 if self.reward_range is None else self.reward_range[1] - self.reward_range[0]

    def shrunk(self, difference: float) -> float:
        """A difference of rewards in units of the range."""
        return difference / self.span

    def to_json(self) -> str:
        """As a store keeps them."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Settings:
        """What a store kept."""
        kept: dict[str, Any] = json.loads(text)
        return cls(**kept)


@dataclass(frozen=True)
class SettingsInTime:
    """All settings that a store has had: an event counts by those that held when it was decided.

    now: those that hold. former: (position, settings), in order: decisions up to that position of the log, and after the one
    before, count by these.
    """

    now: Settings
    former: tuple[tuple[int, Settings], ...] = ()

    def of(self, decision: int) -> Settings:
        """The settings of the decision at this position."""
        place = bisect_left(self.former, decision, key=lambda period: period[0])
        return self.former[place][1] if place < len(self.former) else self.now

    def changed(self, position: int, settings: Settings) -> SettingsInTime:
        """With others from this position on."""
        return SettingsInTime(settings, (*self.former, (position, self.now)))


__all__ = ["AGGREGATES", "Settings", "SettingsInTime"]
