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

import math
from collections.abc import Sequence
from dataclasses import replace

from manyarms._base import validate
from manyarms._base.moments import Moments, Part
from manyarms.engine import On
from manyarms.estimators.base import OBJECTIVES, Estimator, Range
from manyarms.estimators.inputs import require_log
from manyarms.evaluation.diagnostics import DOMINANT, FEW
from manyarms.evaluation.given import Given
from manyarms.evaluation.intervals import Interval
from manyarms.evaluation.paired import AGAINST_THE_LOG, Difference, of_the_log, paired
from manyarms.evaluation.passes import Collected, Survey, collect, plan, ready
from manyarms.evaluation.policy_like import PolicyLike
from manyarms.evaluation.readers import Reader, reader_of
from manyarms.evaluation.readings import (
    VALUE,
    Readings,
    Wanted,
    contradictions,
    error_of,
    intervals_of,
    ls_ends,
    possible,
    readings,
)
from manyarms.evaluation.results import Estimate, Evaluation
from manyarms.evaluation.sketching import row_sketch
from manyarms.evaluation.time_blocks import Block
from manyarms.logs.data import CHUNK, LogSource
from manyarms.logs.row_sketch import RowSketch
from manyarms.policies.base import Policy
from manyarms.rewards.base import RewardModel
from manyarms.weights import CORRECTIONS

NEEDED = {
    "bernstein": "it needs rows that are not grouped, a range of rewards, and a bound on the weights: propensity_floor, "
    "or a correction that gives one; with a model, bounded predictions (Clipped)",
    "bootstrap": "it needs replicates above 0",
    "block": "",
    "ls": "logarithmic smoothing alone has one, on rows that are not grouped",
    "normal": "",
}
SHORT = "normal and bootstrap intervals may be too short"


def estimate_of(collected: Collected, which: int, wanted: Wanted) -> Estimate:
    """The estimate of one estimator, with every interval that can be had."""
    todo, moments, where = collected.plan, collected.sums.moments, collected.sums.where[which]
    estimator = todo.estimators[which]
    read = readings(todo, which, where)
    value, error = moments.value(read.middle), error_of(moments, read.middle, wanted, read.weights)
    found, infinite = intervals_of(moments, read, wanted)
    wrong: list[Interval] = []
    limits = todo.told.reward_range
    if limits is not None and read.covers == VALUE:
        # a value lies in the range of the rewards: a bound beyond it says nothing, nor does a bias
        cut = ("normal", "bootstrap", "bernstein") if "high" in where else ("bernstein",)
        found, wrong = possible(found, limits, cut)
    if "complement" in where and moments.independent and limits is not None:
        both = Interval(*ls_ends(collected, which, (1 - wanted.level) / 2), "ls", wanted.level, VALUE)
        kept, more = possible([both], limits)
        found, wrong = found + kept, wrong + more
    size, warnings = _reliability(collected, which)
    if infinite:
        warnings = [text for text in warnings if SHORT not in text]
    warnings = (contradictions(wrong, limits) if limits is not None else []) + infinite + warnings
    none = Interval(-math.inf, math.inf, "none", wanted.level, read.covers)
    chosen = next((one for one in found if one.kind == wanted.interval), found[0] if found else none)
    if chosen.kind != wanted.interval:
        why = "" if any(one.kind == wanted.interval for one in wrong) else f" ({NEEDED[wanted.interval]})"
        warnings.append(f"no {wanted.interval} interval{why}: {_shown(chosen)}")
    return Estimate(
        estimator.name, estimator.label, value, error, chosen, tuple(found), size, estimator.unbiased, tuple(warnings),
        todo.note(which), _gain(collected, read, wanted), bool(wrong),
    )  # fmt: skip


def _gain(collected: Collected, read: Readings, wanted: Wanted) -> Difference:
    """An estimate less the mean reward of the log, which comes last among the sums."""
    limits = collected.plan.told.reward_range
    theirs = of_the_log(collected.sums.where[-1]["values"], limits)
    return paired(collected.sums.moments, read, theirs, wanted, limits, AGAINST_THE_LOG)


def _shown(interval: Interval) -> str:
    return "there is none of another kind either" if interval.kind == "none" else f"the {interval.kind} one is shown"


def _reliability(collected: Collected, which: int) -> tuple[float, list[str]]:
    """The effective sample size of an estimator's own weights, and warnings about them."""
    moments, where = collected.sums.moments, collected.sums.where[which]
    n = moments.rows
    if "weights" not in where:
        return float(n), []
    total, size = moments.value((Part(where["weights"]),)) * n, moments.effective_rows(where["weights"])
    warnings = []
    if total > 0 and collected.largest[which] / total > DOMINANT:
        warnings.append(f"one row carries {collected.largest[which] / total:.0%} of the weight")
    if total == 0:
        warnings.append("no row has any weight: the policy never plays what was logged")
    elif size < FEW:
        warnings.append(f"an effective sample of {size:.0f} rows: {SHORT}")
    return size, warnings


def evaluate(
    policy: PolicyLike,
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
    block: Block | None = None,
    on: On = "local",
) -> Evaluation:
    """Estimate a policy's value from a log.

    policy: a policy or an agent; or whatever says what yours would have done: "uniform", "logging", the probabilities of the
    logged actions (floats), an action id for each row (integers, texts), a matrix of probabilities (n, K), `Ranked` lists, a
    column of the log (`InColumn`), a function of contexts or `OfColumns`, a classifier with predict_proba (docs/evaluation.md).
    estimators: estimators such as IPS(), or names: "snips", "cips:0.01", and with a `model` also "dm", "dr", "sndr", "switch" and
    "switch-dr" (`manyarms.estimators.names`). By default the IPS family, and with a `model` dm, dr and switch-dr.
    interval: which interval is the estimate's own: normal, bootstrap, block, bernstein or ls; the others are kept beside.
    "block" is for rows that depend on rows near in time: it resamples blocks of time, and standard errors follow it.
    block: how long these are, as a number of rows or a timedelta; by default as the autocorrelation asks, at least n^(1/3) rows.
    reward_range: the range that rewards can have, for bounds and for ls; [0, 1] is noticed by itself.
    propensity_floor: a number that no propensity above 0 falls below, for bernstein; the logging policy's if known.
    bias: add the bias of corrections to intervals, which then hold for the policy's value; needs pi0 of all actions.
    By default where it costs little.
    on: "local", one pass after the other in this process; or an engine whose workers divide the log among themselves, "ray",
    "ray://host:port" or one that is open (`manyarms.engine`): a log in memory, or a Parquet file or folder (open_log).
    """
    require_log(log)
    chunk, wanted = validate.count("chunk", chunk), Wanted(level, interval, replicates, seed)
    with reader_of(log, on) as reader:
        return _evaluated(
            policy, log, reader, estimators, wanted, model=model, reward_range=reward_range, propensity_floor=propensity_floor,
            bias=bias, chunk=chunk, name=name, block=block,
        )  # fmt: skip


def _evaluated(
    policy: PolicyLike,
    log: LogSource,
    reader: Reader,
    estimators: Sequence[Estimator | str] | None,
    wanted: Wanted,
    *,
    model: RewardModel | None,
    reward_range: Range | None,
    propensity_floor: float | None,
    bias: bool | None,
    chunk: int,
    name: str | None,
    block: Block | None,
) -> Evaluation:
    """`evaluate`, with the log read by `reader`."""
    wanted, times = wanted.in_time(log, block, reader)
    (given,), log, known = ready([policy], log, reader)
    name = given.name if name is None else validate.instance("name", name, str, "what to call the policy")
    notes = [*known.first.notes, *given.notes]
    if reward_range is None and not known.unit_rewards:
        notes.append(
            f"rewards run from {known.low:g} to {known.high:g}: there are no bounds, no bias terms and no ls without "
            "reward_range=(low, high), the range that they can have"
        )
    chosen = _default(known, model, reward_range is not None, given.logged_only) if estimators is None else estimators
    todo = plan(
        known, chosen, reward_range=reward_range, propensity_floor=propensity_floor, bias=bias, model=model, times=times,
        logged_only=given.logged_only,
    )  # fmt: skip
    if given.logged_only and estimators is None and model is not None:
        notes.append(
            "of the policy the probabilities of the logged actions alone are known: nothing can be said of it by the model"
        )
    collected, rewards = collect([given], log, todo, reader, chunk=chunk)
    mine = collected[0]
    estimates = tuple(estimate_of(mine, i, wanted) for i in range(len(todo.estimators)))
    logged = _logged(rewards, wanted)
    learned_here = training_rows_warnings(given, log, reader)
    notes.append(_independence(known, times is not None))
    warnings = learned_here
    warnings += tuple(mine.overlap.warnings()) if mine.overlap is not None else ()
    return Evaluation(
        name,
        known.rows,
        given.action_count,
        wanted.level,
        estimates,
        logged,
        mine.overlap,
        warnings,
        tuple(notes),
        None if known.groups is None else known.groups.distinct,
        bool(learned_here),
    )


def _independence(known: Survey, blocks: bool) -> str:
    """What rows are taken to be."""
    if blocks:
        return "rows may depend on rows near in time: intervals and standard errors come from blocks of time"
    if known.groups is not None:
        about = "" if known.groups.exact else "about "
        return f"{about}{known.groups.distinct:,} groups of rows are taken to be independent of each other"
    return (
        "rows are taken to be independent: where several come from one user or session, name the column of groups "
        '(columns.group); where rows depend on rows near in time, interval="block"'
    )


def _logged(rewards: Moments, wanted: Wanted) -> Estimate:
    """The mean reward of the log."""
    mean = (Part(0),)
    read = Readings(mean, mean, mean, None, "the logging policy's value")
    found, warnings = intervals_of(
        rewards, read, wanted if wanted.interval == "block" else replace(wanted, replicates=0)
    )
    chosen = next((one for one in found if one.kind == wanted.interval), found[0])
    return Estimate(
        "logged", "mean reward of the log", rewards.value(mean), error_of(rewards, mean, wanted), chosen, tuple(found),
        float(rewards.rows), True, tuple(warnings), "",
    )  # fmt: skip


def training_rows_warnings(policy: Given | Policy, log: LogSource, reader: Reader | None = None) -> tuple[str, ...]:
    """A warning where the log has rows that the policy was learned from."""
    rows: RowSketch | None = getattr(policy, "training_rows", None)
    overlap = None if rows is None else row_sketch(log, reader).overlap(rows)
    if overlap is None:
        return ()
    if overlap.kind == "groups":
        return (
            f"THE POLICY WAS LEARNED FROM GROUPS (USERS, SESSIONS) OF THIS LOG ({overlap}): rows of one group depend on each "
            "other, and no interval holds; evaluate on other groups (log.split keeps them apart)",
        )
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


def _default(known: Survey, model: RewardModel | None, ranged: bool, logged_only: bool) -> list[Estimator | str]:
    weighted = known.first.propensities is not None or known.first.logging is not None
    chosen: list[Estimator | str] = []
    if weighted:
        chosen += usual_names(ranged=known.unit_rewards or ranged)
    if model is not None and not logged_only:
        for name, kind in OBJECTIVES.items():
            if issubclass(kind, Estimator) and kind.by_default and (weighted or not kind.weighted):
                chosen.append(name)
    if not chosen and logged_only:
        known.first.require("propensities", purpose="a policy of which no more than probabilities are known")
    if not chosen:
        known.first.require(
            "propensities", purpose="importance weights; with a reward model= the direct method needs none"
        )
    return chosen


__all__ = ["estimate_of", "evaluate", "usual_names"]
