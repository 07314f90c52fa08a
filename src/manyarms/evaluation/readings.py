"""How estimates and their intervals are read from moments; and when an interval can be had at all.

An interval must not mislead. Normal and bootstrap intervals take the spread of an estimate from the rows themselves, and are
infinite where rows say nothing about it:

    fewer than two rows, or groups                          there is no spread
    fewer than two effective rows (sum w)^2 / sum w^2 < 2   one row carries practically all weight, and its own share of the
                                                            spread is 0 in a self-normalised estimate: it agrees with itself
    terms that are all equal, up to rounding                rows like these may still differ from the next one: 1,000 rows
                                                            without a click do not show that there are none
    squares beyond all numbers                              as with propensities of 1e-200

Bernstein's interval has a term for the range, and holds in all these cases. An interval for the value that lies wholly where no
value can be, or whose ends cross, contradicts an assumption (or is the chance that its level leaves): it is left out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from manyarms._base import validate
from manyarms._base.moments import Contrast, Moments, Part
from manyarms._base.typing import Array
from manyarms.errors import LIKELY_REASONS, InvalidInput
from manyarms.estimators.base import Range
from manyarms.evaluation import intervals
from manyarms.evaluation.intervals import Interval
from manyarms.evaluation.passes import Collected, Plan
from manyarms.evaluation.readers import Reader
from manyarms.evaluation.time_blocks import Block, TimeCells
from manyarms.logs.data import LogSource

VALUE = "the policy's value"
OWN_MEAN = "the estimator's mean, its bias left out"
FEW_BLOCKS = 20
REPLICATE = 1024  # bytes that one takes, about: a mean of every column, and the counts of units


@dataclass(frozen=True)
class Wanted:
    """Which intervals, and how."""

    level: float = 0.95
    interval: str = "normal"
    replicates: int = 1000
    seed: int = 0
    block: int | None = None  # the length of a block in cells of time; None: by the dependence that is seen
    shortest: float = 1.0  # and then at least this

    def __post_init__(self) -> None:
        object.__setattr__(self, "level", intervals.confidence("level", self.level))
        validate.one_of("interval", self.interval, intervals.KINDS)
        count = validate.count("replicates", self.replicates, least=1 if self.interval == "block" else 0)
        object.__setattr__(self, "replicates", validate.room("replicates", count, REPLICATE))
        object.__setattr__(self, "seed", validate.seed(self.seed))

    def in_time(self, log: LogSource, block: Block | None, reader: Reader) -> tuple[Wanted, TimeCells | None]:
        """The same, with the blocks of a block bootstrap, and the cells of time that they are made of."""
        if self.interval != "block":
            if block is not None:
                raise InvalidInput("block", validate.describe(block), 'interval="block" as well')
            return self, None
        times = TimeCells.of(log, reader)
        length = None if block is None else times.length(block)
        return replace(self, block=length, shortest=times.shortest()), times

    def length(self, moments: Moments, contrast: Contrast) -> int:
        """The length of the blocks for a contrast, in cells."""
        return self.block or math.ceil(max(self.shortest, moments.dependence(contrast)))


@dataclass(frozen=True)
class Readings:
    """How an estimate is read from moments: the value, what an interval's ends start from, and what it is for."""

    middle: Contrast
    low: Contrast
    high: Contrast
    span: Range | None  # of the terms behind low and high
    covers: str
    weights: tuple[int, ...] = ()  # the columns of importance weights, which all need two effective rows


def readings(todo: Plan, which: int, where: dict[str, int]) -> Readings:
    """The readings of an estimator whose terms lie in the columns `where`."""
    estimator = todo.estimators[which]
    weights = (where["weights"],) if "weights" in where else ()
    middle: Contrast = (Part(where["values"], where["weights"] if estimator.self_normalised else None),)
    if "baseline" in where:
        middle = (*middle, Part(where["baseline"]))
    if "high" in where:
        span = todo.span(which, with_bias=True)
        return Readings(middle, (Part(where["low"]),), (Part(where["high"]),), span, VALUE, weights)
    if estimator.self_normalised:
        covers = f"{VALUE}, up to a bias of about 1/n" if estimator.consistent else OWN_MEAN
        return Readings(middle, middle, middle, None, covers, weights)
    return Readings(middle, middle, middle, todo.span(which), VALUE if estimator.unbiased else OWN_MEAN, weights)


def unknown_spread(moments: Moments, contrast: Contrast, weights: Sequence[int] = ()) -> str | None:
    """Why rows say nothing about the spread of a contrast, or None where they do."""
    unit = "group" if moments.grouped else "row"
    if moments.units < 2:
        return f"a single {unit} has no spread"
    if not all(moments.effective_units(column) > 0 for column in weights):
        return "no row has any weight"
    if any(moments.effective_units(column) < 2 for column in weights):
        return f"one {unit} carries practically all weight (fewer than two effective {unit}s)"
    if not math.isfinite(moments.standard_error(contrast)):
        return "weights are too large to be squared"
    if moments.constant(contrast):
        return f"the terms of all {unit}s are equal, which does not show that the next one's is"
    return None


def error_of(moments: Moments, contrast: Contrast, wanted: Wanted, weights: Sequence[int] = ()) -> float:
    """The standard error, that of blocks where rows depend on each other in time; infinite where rows say nothing about it."""
    if unknown_spread(moments, contrast, weights):
        return math.inf
    if moments.cells is None:
        return moments.standard_error(contrast)
    drawn = block_replicates(moments, contrast, wanted)
    return math.inf if drawn is None else float(drawn.std(ddof=1)) if len(drawn) > 1 else math.inf


def block_replicates(moments: Moments, contrast: Contrast, wanted: Wanted) -> Array | None:
    """The contrast on bootstrap samples of blocks of time; None where fewer than two blocks fit."""
    assert moments.cells is not None
    length = wanted.length(moments, contrast)
    if 2 * length > moments.cells.count or moments.cells.blocks(length) < 2:
        return None
    return moments.block_replicates(contrast, length, wanted.replicates, wanted.seed)


def intervals_of(moments: Moments, read: Readings, wanted: Wanted) -> tuple[list[Interval], list[str]]:
    """Normal, bootstrap or block, and, where terms have a known span, Bernstein; and warnings about those that say nothing."""
    level, delta = wanted.level, 1 - wanted.level
    sides = (read.low, read.high)
    unknown = [unknown_spread(moments, end, read.weights) for end in sides]
    warnings = [f"normal and bootstrap intervals are infinite: {why}" for why in dict.fromkeys(unknown) if why]

    def around(kind: str, ends: Sequence[float]) -> Interval:
        low, high = (-math.inf if unknown[0] else ends[0]), (math.inf if unknown[1] else ends[1])
        met = low == high  # as the quantiles of a single replicate do: they say nothing
        return Interval(-math.inf if met else low, math.inf if met else high, kind, level, read.covers)

    reaches = [intervals.reach(error_of(moments, end, wanted, read.weights), level) for end in sides]
    found = [around("normal", (moments.value(read.low) - reaches[0], moments.value(read.high) + reaches[1]))]
    shares = (delta / 2, 1 - delta / 2)
    if moments.cells is not None:
        drawn = [
            None if why else block_replicates(moments, end, wanted) for why, end in zip(unknown, sides, strict=True)
        ]
        ends = [
            s * math.inf if d is None else float(np.quantile(d, q))
            for d, q, s in zip(drawn, shares, (-1, 1), strict=True)
        ]
        found.append(around("block", ends))
        if not any(unknown):
            warnings += _few_blocks(moments.cells.blocks(max(wanted.length(moments, end) for end in sides)), drawn)
    elif wanted.replicates:
        found.append(
            around(
                "bootstrap",
                [
                    math.nan if why else float(np.quantile(moments.replicates(end, wanted.replicates, wanted.seed), q))
                    for why, end, q in zip(unknown, sides, shares, strict=True)
                ],
            )
        )
    if read.span is not None and moments.independent:
        width = read.span[1] - read.span[0]
        below, above = (
            intervals.bernstein_margin(moments.variance(end), moments.rows, width, delta / 2) for end in sides
        )
        left, right = moments.value(read.low) - below, moments.value(read.high) + above
        found.append(Interval(left, right, "bernstein", level, read.covers))
    return found, warnings


def _few_blocks(blocks: int, drawn: Sequence[Array | None]) -> list[str]:
    if any(one is None for one in drawn):
        return ["the log is shorter than two blocks: its block intervals are infinite"]
    if blocks < FEW_BLOCKS:
        return [f"the log is only {blocks} blocks long: block intervals may be too short"]
    return []


def possible(
    found: Sequence[Interval], limits: Range, cut: Sequence[str] = ()
) -> tuple[list[Interval], list[Interval]]:
    """The intervals that leave room for a value within limits, and those that contradict it; `cut`: kinds cut to the limits."""
    low, high = limits
    kept, wrong = [], []
    for one in found:
        inside = replace(one, low=max(one.low, low), high=min(one.high, high))
        if one.low > one.high or inside.low > inside.high or (one.kind in cut and inside.low == inside.high):
            wrong.append(one)
        else:
            kept.append(inside if one.kind in cut else one)
    return kept, wrong


def contradictions(wrong: Sequence[Interval], limits: Range) -> list[str]:
    """Why intervals are left out: a sentence, or none."""
    if not wrong:
        return []
    ends = ", ".join(f"{one.kind} [{one.low:.4g}, {one.high:.4g}]" for one in wrong)
    crossed = ", and ends cannot cross" if any(one.low > one.high for one in wrong) else ""
    return [
        f"left out, as values lie from {limits[0]:g} to {limits[1]:g}{crossed}: {ends}. Likely reasons: {LIKELY_REASONS}. If "
        f"none of these, chance: probability at most {1 - wrong[0].level:.2g}"
    ]


def ls_ends(collected: Collected, which: int, delta: float) -> tuple[float, float]:
    """Bounds of logarithmic smoothing, each at 1 - delta: for rewards r' in [0, 1], and for 1 - r' turned round.

    Weights of actions that the logging policy leaves out are missing from both, so both bounds hold without them. Ends that
    cross are a contradiction.
    """
    moments, where = collected.sums.moments, collected.sums.where[which]
    smoothing, rewards = collected.plan.estimators[which].log_smoothing, collected.plan.told.reward_range
    assert rewards is not None  # `plan` has refused rewards without a range
    offset, width = rewards[0], rewards[1] - rewards[0]
    inside = (moments.value((Part(where["values"]),)) - offset) / width
    other = moments.value((Part(where["complement"]),))
    low = intervals.ls_lower(inside, smoothing, moments.rows, delta)
    high = 1.0 - intervals.ls_lower(other, smoothing, moments.rows, delta)
    return offset + width * low, offset + width * high


__all__ = [
    "OWN_MEAN", "VALUE", "Readings", "Wanted", "contradictions", "error_of", "intervals_of", "ls_ends", "possible", "readings",
    "unknown_spread",
]  # fmt: skip
