"""Estimates with their standard errors, intervals and warnings: `evaluate(policy, log)`.

    evaluation = evaluate(policy, log)
    print(evaluation)                         # a table
    evaluation["snips"].interval              # one estimate
    evaluation.report("report.html")          # a page with pictures

One pass over the log, in chunks; pi(a_i|x_i) is computed once for all estimators, and nothing is kept that grows with the
number of rows. A policy must not have been learned from the same rows: then estimates are too good, and no interval here
knows of it (log.split gives two parts).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from manyarms._base import validate
from manyarms._base.moments import Contrast, Moments, Part
from manyarms.errors import InvalidInput
from manyarms.estimators.base import OBJECTIVES, Estimator, Range
from manyarms.evaluation import intervals
from manyarms.evaluation.diagnostics import DOMINANT, FEW, effective_sample_size
from manyarms.evaluation.intervals import Interval
from manyarms.evaluation.passes import Collected, Plan, Survey, collect, plan, survey
from manyarms.evaluation.results import Estimate, Evaluation
from manyarms.logs.data import CHUNK, LogSource
from manyarms.logs.row_sketch import RowSketch
from manyarms.policies.base import Policy
from manyarms.rewards.base import RewardModel
from manyarms.weights import CORRECTIONS

VALUE = "the policy's value"
OWN_MEAN = "the estimator's mean, its bias left out"
NEEDED = {
    "bernstein": "it needs rows that are not grouped, a range of rewards, and a bound on the weights: propensity_floor, "
    "or a correction that gives one; with a model, bounded predictions (Clipped)",
    "bootstrap": "it needs replicates above 0",
    "ls": "logarithmic smoothing alone has one, on rows that are not grouped",
    "normal": "",
}


@dataclass(frozen=True)
class Wanted:
    """Which intervals, and how."""

    level: float = 0.95
    interval: str = "normal"
    replicates: int = 1000
    seed: int = 0

    def __post_init__(self) -> None:
        intervals.confidence("level", self.level)
        if self.interval not in intervals.KINDS:
            raise InvalidInput("interval", repr(self.interval), f"one of {', '.join(intervals.KINDS)}")
        validate.count("replicates", self.replicates, least=0)


def estimate_of(collected: Collected, which: int, wanted: Wanted) -> Estimate:
    """The estimate of one estimator, with every interval that can be had."""
    todo, moments, where = collected.plan, collected.sums.moments, collected.sums.where[which]
    estimator = todo.estimators[which]
    read = readings(todo, which, where)
    value, error = moments.value(read.middle), moments.standard_error(read.middle)
    found = intervals_of(moments, read, wanted)
    limits = todo.told.reward_range
    if limits is not None and read.covers == VALUE:
        # a value lies in the range of the rewards: a bound beyond it says nothing, nor does a bias
        cut = ("normal", "bootstrap", "bernstein") if "high" in where else ("bernstein",)
        found = [_within(one, *limits) if one.kind in cut else one for one in found]
    if "complement" in where and not moments.grouped:
        found.append(Interval(*ls_ends(collected, which, (1 - wanted.level) / 2), "ls", wanted.level, VALUE))
    chosen = next((one for one in found if one.kind == wanted.interval), found[0])
    size, warnings = _reliability(collected, which)
    if chosen.kind != wanted.interval:
        warnings.append(f"no {wanted.interval} interval ({NEEDED[wanted.interval]}): the {chosen.kind} one is shown")
    return Estimate(
        estimator.name, estimator.label, value, error, chosen, tuple(found), size, estimator.unbiased, tuple(warnings),
        todo.note(which),
    )  # fmt: skip


def _within(interval: Interval, low: float, high: float) -> Interval:
    left, right = (min(max(end, low), high) for end in (interval.low, interval.high))
    return replace(interval, low=left, high=right)


@dataclass(frozen=True)
class Readings:
    """How an estimate is read from moments: the value, what an interval's ends start from, and what it is for."""

    middle: Contrast
    low: Contrast
    high: Contrast
    span: Range | None  # of the terms behind low and high
    covers: str


def readings(todo: Plan, which: int, where: dict[str, int]) -> Readings:
    """The readings of an estimator whose terms lie in the columns `where`."""
    estimator = todo.estimators[which]
    middle = (Part(where["values"], where["weights"] if estimator.self_normalised else None),)
    if "high" in where:
        span = todo.span(which, with_bias=True)
        return Readings(middle, (Part(where["low"]),), (Part(where["high"]),), span, VALUE)
    if estimator.self_normalised:
        covers = f"{VALUE}, up to a bias of about 1/n" if estimator.consistent else OWN_MEAN
        return Readings(middle, middle, middle, None, covers)
    return Readings(middle, middle, middle, todo.span(which), VALUE if estimator.unbiased else OWN_MEAN)


def intervals_of(moments: Moments, read: Readings, wanted: Wanted) -> list[Interval]:
    """Normal, bootstrap, and, where terms have a known span, Bernstein."""
    level, delta = wanted.level, 1 - wanted.level
    left = intervals.normal(moments.value(read.low), moments.standard_error(read.low), level)[0]
    right = intervals.normal(moments.value(read.high), moments.standard_error(read.high), level)[1]
    found = [Interval(left, right, "normal", level, read.covers)]
    if wanted.replicates:
        left, right = (
            float(np.quantile(moments.replicates(end, wanted.replicates, wanted.seed), share))
            for end, share in ((read.low, delta / 2), (read.high, 1 - delta / 2))
        )
        found.append(Interval(left, right, "bootstrap", level, read.covers))
    if read.span is not None and not moments.grouped:
        width = read.span[1] - read.span[0]
        below, above = (
            intervals.bernstein_margin(moments.variance(end), moments.rows, width, delta / 2)
            for end in (read.low, read.high)
        )
        left, right = moments.value(read.low) - below, moments.value(read.high) + above
        found.append(Interval(left, right, "bernstein", level, read.covers))
    return found


def ls_ends(collected: Collected, which: int, delta: float) -> tuple[float, float]:
    """Bounds of logarithmic smoothing, each at 1 - delta: for rewards r' in [0, 1], and for 1 - r' turned round.

    Weights of actions that the logging policy leaves out are missing from both, so both bounds hold without them.
    """
    moments, where = collected.sums.moments, collected.sums.where[which]
    smoothing, rewards = collected.plan.estimators[which].log_smoothing, collected.plan.told.reward_range
    assert rewards is not None  # `plan` has refused rewards without a range
    offset, width = rewards[0], rewards[1] - rewards[0]
    inside = (moments.value((Part(where["values"]),)) - offset) / width
    other = moments.value((Part(where["complement"]),))
    low = intervals.ls_lower(inside, smoothing, moments.rows, delta)
    high = 1.0 - intervals.ls_lower(other, smoothing, moments.rows, delta)
    return offset + width * min(low, 1.0), offset + width * high


def _reliability(collected: Collected, which: int) -> tuple[float, list[str]]:
    """The effective sample size of an estimator's own weights, and warnings about them."""
    moments, where = collected.sums.moments, collected.sums.where[which]
    n = moments.rows
    if "weights" not in where:
        return float(n), []
    total = moments.value((Part(where["weights"]),)) * n
    squares = moments.value((Part(where["squares"]),)) * n
    size = effective_sample_size(total, squares)
    warnings = []
    if total > 0 and collected.largest[which] / total > DOMINANT:
        warnings.append(f"one row carries {collected.largest[which] / total:.0%} of the weight")
    if total == 0:
        warnings.append("no row has any weight: the policy never plays what was logged")
    elif size < FEW:
        warnings.append(f"an effective sample of {size:.0f} rows: normal and bootstrap intervals may be too short")
    return size, warnings


def evaluate(
    policy: Policy,
    log: LogSource,
    estimators: Sequence[Estimator | str] | None = None,
    *,
    model: RewardModel | None = None,
    level: float = 0.95,
    interval: str = "normal",
    reward_range: Range | None = None,
    propensity_floor: float | None = None,
    bias: bool | None = None,
    replicates: int = 1000,
    seed: int = 0,
    chunk: int = CHUNK,
    name: str | None = None,
) -> Evaluation:
    """Estimate a policy's value from a log.

    estimators: estimators such as IPS(), or names: "snips", "cips:0.01", and with a `model` also "dm", "dr", "switch" and
    "switch-dr" (`manyarms.estimators.names`). By default the IPS family, and with a `model` dm, dr and switch-dr.
    interval: which interval is the estimate's own: normal, bootstrap, bernstein or ls; the others are kept beside.
    reward_range: the range that rewards can have, for bounds and for ls; [0, 1] is noticed by itself.
    propensity_floor: a number that no propensity above 0 falls below, for bernstein; the logging policy's if known.
    bias: add the bias of corrections to intervals, which then hold for the policy's value; needs pi0 of all actions.
    By default where it costs little.
    """
    wanted = Wanted(level, interval, replicates, seed)
    known = survey(log)
    notes = list(known.first.notes)
    if reward_range is None and not known.unit_rewards:
        notes.append(
            f"rewards run from {known.low:g} to {known.high:g}: there are no bounds, no bias terms and no ls without "
            "reward_range=(low, high), the range that they can have (--low and --high on the command line)"
        )
    chosen = _default(known, model, reward_range is not None) if estimators is None else estimators
    todo = plan(known, chosen, reward_range=reward_range, propensity_floor=propensity_floor, bias=bias, model=model)
    collected, rewards = collect([policy], log, todo, chunk=chunk)
    mine = collected[0]
    estimates = tuple(estimate_of(mine, i, wanted) for i in range(len(todo.estimators)))
    error = rewards.standard_error((Part(0),))
    mean = rewards.value((Part(0),))
    around = Interval(*intervals.normal(mean, error, level), "normal", level, "the logging policy's value")
    logged = Estimate(
        "logged", "mean reward of the log", mean, error, around, (around,), float(known.rows), True, (), ""
    )
    warnings = training_rows_warnings(policy, log)
    warnings += tuple(mine.overlap.warnings()) if mine.overlap is not None else ()
    return Evaluation(
        name or repr(policy),
        known.rows,
        policy.action_count,
        level,
        estimates,
        logged,
        mine.overlap,
        warnings,
        tuple(notes),
    )


def training_rows_warnings(policy: Policy, log: LogSource) -> tuple[str, ...]:
    """A warning where the log has rows that the policy was learned from."""
    rows = getattr(policy, "training_rows", None)
    overlap = None if rows is None else RowSketch.of(log).overlap(rows)
    if overlap is None:
        return ()
    if overlap.certain:
        return (
            f"THE POLICY WAS LEARNED FROM THIS LOG ({overlap}): estimates are too good, and no interval holds; evaluate on "
            "other rows (log.split before learning)",
        )
    return (f"the log looks like the one that the policy was learned from, more than chance explains: {overlap}",)


def usual_names(*, ranged: bool = True) -> list[str]:
    """The IPS family as it is shown unless estimators are named; ranged: whether rewards lie in a known range."""
    found = [name for name, kind in CORRECTIONS.items() if kind.by_default and (ranged or not kind.depends_on_reward)]
    return ["ips", "snips", *(name for name in found if name != "ips")]


def _default(known: Survey, model: RewardModel | None, ranged: bool) -> list[Estimator | str]:
    weighted = known.first.propensities is not None or known.first.logging is not None
    chosen: list[Estimator | str] = []
    if weighted:
        chosen += usual_names(ranged=known.unit_rewards or ranged)
    if model is not None:
        for name, kind in OBJECTIVES.items():
            if issubclass(kind, Estimator) and kind.by_default and (weighted or not kind.weighted):
                chosen.append(name)
    if not chosen:
        known.first.require(
            "propensities", purpose="importance weights; with a reward model= the direct method needs none"
        )
    return chosen


__all__ = ["Readings", "Wanted", "estimate_of", "evaluate", "intervals_of", "ls_ends", "readings", "usual_names"]
