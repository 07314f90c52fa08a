"""How rewards are taken to change: the three things that `drift=` may be."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from manyarms._base import validate
from manyarms._base.typing import Spec
from manyarms.beliefs.drift.clock import CLOCKS, length_of_time
from manyarms.beliefs.drift.memory import MEMORIES, Memory
from manyarms.errors import InvalidInput

if TYPE_CHECKING:
    from manyarms.beliefs.belief import Belief
    from manyarms.beliefs.leaves import Leaves

LN2 = math.log(2.0)


def _half_life(half_life: float | timedelta | None, rho: float | None, counts: bool) -> float:
    """The half-life that one of the two says."""
    if (half_life is None) == (rho is None):
        came = "nothing" if rho is None else f"{validate.describe(half_life)} and rho={validate.describe(rho)}"
        raise InvalidInput("half_life", came, "a half-life, or rho, what is left after one round (or one unit of time)")
    if rho is None:
        return length_of_time("half_life", half_life, counts)
    kept = validate.number("rho", rho, above=0.0, below=1.0)
    return LN2 / -math.log(kept)


@MEMORIES.register("drift")
@dataclass(frozen=True, kw_only=True)
class Drift:
    """A model: every action wanders around what it takes from the root, and forgets where it was.

        theta_a(t) - W_a m  is stationary with covariance Sigma_a, and its correlation over a time s is 2^(-s / half_life)

    The prior is the law of the actions at any time, so that nothing but the half-life is new. Posteriors are exact with linear
    rewards and a root that stays; other likelihoods are expanded row by row, at the mode (approximate).

    half_life, or rho (the correlation after one round, or one unit of time): how fast actions change. clock: "rounds", counted
    by the rows that are learned, or "time", as `at=` of observe and decide says, in the unit of the half-life. late: for how
    long rows are kept, so that rewards that come late, or are replaced, among others of their action are exact within it;
    beyond, and by default, they are approximate (docs/drift.md). root_half_life: the root drifts, too, and what is known of it
    loses half its weight in so long (approximate: past evidence is taken as weaker evidence about the present root). tolerance:
    an action whose posterior is within this total variation of its prior, given the root, counts as never played again.

    >>> import manyarms as ma
    >>> agent = ma.LinTS(ma.ActionPrior(1000, [0.0], [[1.0]]), drift=ma.Drift(half_life=10), seed=0)
    >>> agent.observe([1.0], 7, 2.0)
    >>> agent.posterior(7)[0].round(3)  # a round later: a little less than 2 / (1 + 1)
    array([0.933])
    """

    half_life: float | timedelta | None = None
    rho: float | None = field(default=None, repr=False)  # once checked, it is in the half-life
    clock: str = "rounds"
    late: float | timedelta | None = None
    root_half_life: float | timedelta | None = None
    tolerance: float = 1e-3

    def __post_init__(self) -> None:
        counts = validate.one_of("clock", self.clock, CLOCKS) == "rounds"
        object.__setattr__(self, "half_life", _half_life(self.half_life, self.rho, counts))
        object.__setattr__(self, "rho", None)
        if self.late is not None:
            object.__setattr__(self, "late", length_of_time("late", self.late, counts))
        if self.root_half_life is not None:
            length = length_of_time("root_half_life", self.root_half_life, counts)
            object.__setattr__(self, "root_half_life", length)
        object.__setattr__(self, "tolerance", validate.number("tolerance", self.tolerance, least=0.0, most=0.1))

    @property
    def rate(self) -> float:
        """The correlation over a time s is exp(-rate s)."""
        return LN2 / _number(self.half_life)

    @property
    def kept(self) -> float:
        """For how long rows are kept."""
        return 0.0 if self.late is None else _number(self.late)

    @property
    def root_rate(self) -> float:
        """Likewise of the root; 0 where it stays."""
        return 0.0 if self.root_half_life is None else LN2 / _number(self.root_half_life)

    @property
    def leaves_type(self) -> type[Leaves]:
        """Leaves that wander."""
        from manyarms.beliefs.drift.leaves import DriftingLeaves

        return DriftingLeaves

    def memory_of(self, belief: Belief) -> Memory:
        """The memory of a belief that has learned nothing, whose leaves begin to drift."""
        from manyarms.beliefs.drift.drift_memory import DriftMemory

        return DriftMemory(self, belief)

    def options(self) -> Spec:
        """What is needed to build it again."""
        return {
            "half_life": _number(self.half_life),
            "clock": self.clock,
            "late": None if self.late is None else _number(self.late),
            "root_half_life": None if self.root_half_life is None else _number(self.root_half_life),
            "tolerance": self.tolerance,
        }


@MEMORIES.register("discount")
@dataclass(frozen=True, kw_only=True)
class Discount:
    """Discounting: a row of age s counts 2^(-s / half_life) of a new one, and the prior stays as it is.

        Lambda <- gamma Lambda + (1 - gamma) Lambda_0     for the joint precision of root and actions, by the clock

    Nothing is ever known less than beforehand, whatever is observed or not (stabilised forgetting, Kulhavy and Zarrop 1993);
    plain exponential forgetting, without the second term, lets variances grow without bound.

    half_life, rho, clock: as in `Drift`. lag: the discount is worked off when it has grown to this share, since it changes what
    every action tells the root; until then all rows count too much by at most that, among each other they are right. tolerance:
    as in `Drift`. For linear rewards.
    """

    half_life: float | timedelta | None = None
    rho: float | None = field(default=None, repr=False)  # once checked, it is in the half-life
    clock: str = "rounds"
    lag: float = 0.05
    tolerance: float = 1e-3

    def __post_init__(self) -> None:
        counts = validate.one_of("clock", self.clock, CLOCKS) == "rounds"
        object.__setattr__(self, "half_life", _half_life(self.half_life, self.rho, counts))
        object.__setattr__(self, "rho", None)
        object.__setattr__(self, "lag", validate.number("lag", self.lag, above=0.0, most=0.9))
        object.__setattr__(self, "tolerance", validate.number("tolerance", self.tolerance, least=0.0, most=0.1))

    @property
    def rate(self) -> float:
        """A row of age s counts exp(-rate s)."""
        return LN2 / _number(self.half_life)

    @property
    def leaves_type(self) -> type[Leaves]:
        """Leaves that stay."""
        from manyarms.beliefs.leaves import Leaves

        return Leaves

    def memory_of(self, belief: Belief) -> Memory:
        """The memory of a belief that has learned nothing."""
        from manyarms.beliefs.drift.discount_memory import DiscountMemory

        return DiscountMemory(self, belief)

    def options(self) -> Spec:
        """What is needed to build it again."""
        return {
            "half_life": _number(self.half_life), "clock": self.clock, "lag": self.lag, "tolerance": self.tolerance,
        }  # fmt: skip


@MEMORIES.register("window")
@dataclass(frozen=True, kw_only=True)
class SlidingWindow:
    """A sliding window: what is older than `length` is as if it had never been observed.

    The belief is exactly the one that has learned the rows of the window and nothing else. Rows leave some at a time, when the
    window has moved on by length / steps: it holds between length and length + length / steps. The rows are kept: d + 3
    numbers each. clock: as in `Drift`. For linear rewards.
    """

    length: float | timedelta
    clock: str = "rounds"
    steps: int = 16

    def __post_init__(self) -> None:
        counts = validate.one_of("clock", self.clock, CLOCKS) == "rounds"
        object.__setattr__(self, "length", length_of_time("length", self.length, counts))
        object.__setattr__(self, "steps", validate.count("steps", self.steps, most=10_000))

    @property
    def step(self) -> float:
        """How far it moves at a time."""
        return _number(self.length) / self.steps

    @property
    def leaves_type(self) -> type[Leaves]:
        """Leaves that stay."""
        from manyarms.beliefs.leaves import Leaves

        return Leaves

    def memory_of(self, belief: Belief) -> Memory:
        """The memory of a belief that has learned nothing."""
        from manyarms.beliefs.drift.window_memory import WindowMemory

        return WindowMemory(self, belief)

    def options(self) -> Spec:
        """What is needed to build it again."""
        return {"length": _number(self.length), "clock": self.clock, "steps": self.steps}


def _number(value: float | timedelta | None) -> float:
    assert isinstance(value, float)  # the constructor has made it one
    return value


__all__ = ["Discount", "Drift", "SlidingWindow"]
