"""From counts to advice: what an analyst would say on seeing them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

import numpy as np

from manyarms._base.text import counted, decimals
from manyarms.logs.inspection.statistics import BadRows, LogStatistics
from manyarms.logs.inspection.summary import HEAVY, Finding, Inspection, Level

FEW_SUCCESSES = 100
LOW_SHARE = 0.1  # an effective sample size below this share of the rows is called low
MANY_TEXTS = 200


def findings(statistics: LogStatistics, found: Inspection) -> tuple[Finding, ...]:
    """Everything worth saying of what was found, problems first."""
    said = [
        *_about_actions(statistics, found),
        *_about_rewards(statistics),
        *_about_propensities(statistics, found.estimated_share),
        *_about_overlap(statistics, found),
        *_about_support(statistics),
        *_about_duplicates(statistics),
        *_about_missing(statistics, found),
        *_about_contexts(statistics),
        *_about_times(statistics),
    ]
    return tuple(sorted(said, key=lambda finding: get_args(Level).index(finding.level)))


def _about_rows(level: Level, what: str, bad: BadRows, advice: str, unit: str) -> Iterator[Finding]:
    """What is wrong with some rows, if there are any; unit: what the source calls a row."""
    if bad.count:
        shown = f" ({bad.example})" if bad.example else ""
        where = f"the first at {unit} {bad.first_row}{shown}"
        yield Finding(level, f"{what}: {counted(bad.count, 'row')}, {where}", advice)


def _about_actions(m: LogStatistics, found: Inspection) -> Iterator[Finding]:
    action_count, seen = found.action_count, found.actions_seen
    advice = 'use integers from 0, or read the column as ids (catalogue="build")'
    yield from _about_rows("problem", "actions that are not rows of a catalogue", m.bad_actions, advice, m.unit)
    if m.actions.ids is None and m.actions.size > action_count:
        first = int(np.flatnonzero(m.actions["rows"][action_count:])[0]) + action_count
        yield Finding(
            "problem", f"the action {first} is beyond the {action_count:,} that there are said to be",
            "correct the number of actions, or the rows",
        )  # fmt: skip
    if seen == 1:
        yield Finding(
            "problem", "only one action was ever played",
            "nothing can be learned about any other action from this log; collect rounds that vary the action",
        )  # fmt: skip
    elif seen < action_count:
        yield Finding(
            "warning" if seen < 0.5 * action_count else "note",
            f"{action_count - seen:,} of {action_count:,} actions were never played",
            "importance weighting is blind to them; a policy that plays them can only be judged by a model of the "
            "reward that shares between actions (sDM), or after some exploration",
        )  # fmt: skip
    if not found.action_count_is_known:
        yield Finding(
            "note", f"the log does not say how many actions there are; {action_count:,} is what it shows",
            "give the number of actions, or the catalogue, if there are more",
        )  # fmt: skip
    if m.actions.ids is None and seen > 1 and m.actions.size > 20 * seen:
        yield Finding(
            "warning", f"actions go up to {m.actions.size - 1:,}, but only {seen:,} different ones were played",
            'if these numbers are ids rather than rows, read them with catalogue="build"',
        )  # fmt: skip
    if found.rarely_played > 0.2 * seen:
        yield Finding(
            "note", f"{found.rarely_played:,} of {seen:,} played actions have fewer than 5 rows",
            "there is too little data for a separate model per action; use a prior that shares information between actions",
        )  # fmt: skip


def _about_rewards(m: LogStatistics) -> Iterator[Finding]:
    r = m.rewards
    yield from _about_rows(
        "problem", "rewards that are not finite numbers", r.infinite, "correct or drop these rows", m.unit
    )
    if not r.moments.count:
        return
    if r.moments.least == r.moments.largest:
        yield Finding(
            "problem", f"every reward is {r.moments.least:g}", "nothing tells good actions from bad; check the column"
        )
        return
    if r.counts is not None and len(r.counts) == 2:
        rarer = min(r.counts, key=lambda value: r.counts[value])  # type: ignore[index]
        if r.counts[rarer] < FEW_SUCCESSES:
            yield Finding(
                "warning", f"only {r.counts[rarer]:,} rows have the reward {rarer:g}",
                "every estimate rests on these few: expect wide intervals, and compare only policies that differ much",
            )  # fmt: skip
    if r.moments.least < 0 or r.moments.largest > 1:
        yield Finding(
            "note", f"rewards go from {r.moments.least:g} to {r.moments.largest:g}",
            "estimators with bounds need [0, 1]: log.with_unit_rewards(low, high) moves them there",
        )  # fmt: skip


def _about_propensities(m: LogStatistics, estimates: float) -> Iterator[Finding]:
    if m.columns.propensity is None:
        yield Finding(
            "warning", "the log has no propensities",
            "have the logger write the probability of what it plays; until then estimate_propensities(log, ...) makes "
            "estimates with a calibration check, and direct methods (DM, sDM) need none",
        )  # fmt: skip
        return
    infinite, advice = m.propensities.infinite, "correct the rows"
    yield from _about_rows("problem", "propensities that are not numbers", infinite, advice, m.unit)
    advice = "what was played had a positive probability: find out what was written, or drop the column and estimate"
    yield from _about_rows("problem", "propensities outside (0, 1]", m.bad_propensities, advice, m.unit)
    if estimates:
        which = "the" if estimates == 1 else f"{estimates:.1%} of the"
        yield Finding(
            "warning", f"{which} propensities are estimates",
            "importance-weighted values inherit their error, and intervals do not show it; compare with a direct method",
        )  # fmt: skip
    p = m.propensities.moments
    if p.count and p.least > 0.999:
        yield Finding(
            "problem", "every action was played with probability 1",
            "a logger that leaves nothing to chance says nothing about other policies; use a direct method with care",
        )  # fmt: skip


def _about_overlap(m: LogStatistics, found: Inspection) -> Iterator[Finding]:
    overlap, action_count, seen = found.overlap, found.action_count, found.actions_seen
    if overlap is None:
        return
    rows = int(m.inverse.count)
    share = overlap.effective_sample_size / rows
    if share < LOW_SHARE:
        yield Finding(
            "warning",
            f"for a uniform policy the {rows:,} rows are worth {overlap.effective_sample_size:,.0f} ({share:.1%})",
            "weights are uneven: use clipped or smoothed weights (ES, IX, LS) or DR, and look at the weights' tail",
        )
    if overlap.heavy_share > 0:
        yield Finding(
            "warning" if overlap.heavy_share > 0.001 else "note",
            f"{overlap.heavy_share:.2%} of the rows have a propensity below {1 / (HEAVY * action_count):.2g}, "
            f"a hundredth of 1/K; the largest weight of a uniform policy is {decimals(overlap.largest_weight)}",
            "single rows can move an importance-weighted estimate; clip, and report the interval",
        )
    distance = overlap.mean_weight - 1.0
    surprise = 4 * overlap.mean_weight_error + 0.01
    mean, error = decimals(overlap.mean_weight, 3), decimals(overlap.mean_weight_error, 3)
    average = f"the weights of a uniform policy average {mean} ± {error}"
    if distance > surprise:
        yield Finding(
            "warning", f"{average}, above 1",
            "the propensities are smaller than what was played: they may be of another policy, of several positions "
            "together, or of fewer actions than there are",
        )  # fmt: skip
    elif distance < -surprise:
        unseen = 1 - seen / action_count
        why = (
            f"{unseen:.0%} of the actions were never played, which explains a mean near {seen / action_count:.3f}"
            if unseen > 0.01
            else "the propensities are larger than what was played, or some actions cannot be played in some contexts"
        )
        advice = f"{why}; importance weighting undervalues policies that play what cannot be seen here"
        yield Finding("warning", f"{average}, below 1", advice)
    best = overlap.best
    if best is not None and best.effective_sample_size is not None and best.effective_sample_size < 100:
        yield Finding(
            "note",
            f"always playing {best.name!r}, the best by weighted reward, rests on {best.rows:,} rows worth "
            f"{best.effective_sample_size:,.0f}",
            "the best of many noisy values is partly luck: choose by lower bounds, not by estimates",
        )


def _about_support(m: LogStatistics) -> Iterator[Finding]:
    advice = "correct the support's probabilities, or leave these columns out"
    yield from _about_rows(
        "problem", "supports whose probabilities are negative or sum above 1", m.bad_support, advice, m.unit
    )
    advice = (
        "fine if the logger also explores beyond its top actions; otherwise supports and actions do not belong together"
    )
    yield from _about_rows("warning", "actions that are not in their row's support", m.outside_support, advice, m.unit)
    advice = "one of the two columns is wrong: find out which before weighting"
    yield from _about_rows(
        "warning", "propensities that differ from the support's probability", m.disagreeing, advice, m.unit
    )


def _about_duplicates(m: LogStatistics) -> Iterator[Finding]:
    c = m.columns
    if c.event_id is not None and m.events.count:
        about = "" if m.events.exact else "about "
        yield Finding(
            "problem", f"{about}{m.events.count:,} event ids are repeated, the first at {m.unit} {m.events.first_row}",
            "keep one row per event: duplicated rounds make intervals too narrow",
        )  # fmt: skip
    if m.duplicate_rows.count:
        about = "" if m.duplicate_rows.exact else "about "
        apart = c.event_id is not None and not m.events.count
        telling = c.timestamp is not None and not apart
        if apart:
            advice = "the event ids differ: rounds that look alike, not copies"
        elif telling:
            advice = "same time, context, action and reward: most likely written twice, so drop them"
        else:
            advice = "no wonder where contexts are coarse; with event ids or timestamps one could tell"
        yield Finding(
            "warning" if telling else "note",
            f"{about}{m.duplicate_rows.count:,} rows repeat an earlier one"
            + (" but for the event id" if apart else " entirely")
            + f", the first at {m.unit} {m.duplicate_rows.first_row}",
            advice,
        )


def _about_missing(m: LogStatistics, found: Inspection) -> Iterator[Finding]:
    c = m.columns
    for column in found.missing:
        entries = counted(column.count, "missing entry", "missing entries")
        what = f"{entries} ({column.share:.2%}) in {column.column!r}, the first at {m.unit} {column.first_row}"
        if column.column == c.reward:
            advice = "rewards may still come, or never: wait, count them as 0 if that is what silence means, or drop_missing=True"
            yield Finding("problem", what, advice)
        elif column.column == c.propensity:
            advice = "estimate_missing=True estimates them and marks the rows, drop_missing=True leaves these rows out"
            yield Finding("problem", what, f"{advice}; first ask why they are missing")
        elif column.column == c.action:
            yield Finding("problem", what, "drop_missing=True leaves these rows out; first ask why they are missing")
        elif column.column in m.context:
            advice = (
                "an Encoding keeps such rows: it fills in the mean, or a category of its own, and tells that it did"
            )
            yield Finding("warning", what, advice)
        else:
            yield Finding("note", what, "harmless unless splits or joins use this column")


def _about_contexts(m: LogStatistics) -> Iterator[Finding]:
    if not m.columns.context:
        yield Finding(
            "note", "the log has no contexts", "policies that look at nothing can still be judged and learned"
        )
    constant = [name for name, column in m.context.items() if column.constant and column.kind.name != "vector"]
    if constant and m.rows > 1:
        shown = ", ".join(map(repr, constant[:5])) + (" ..." if len(constant) > 5 else "")
        many = (
            "1 context column never changes" if len(constant) == 1 else f"{len(constant)} context columns never change"
        )
        yield Finding("note", f"{many}: {shown}", "one intercept is enough")
    for name, column in m.context.items():
        if column.kind.name == "vector" and column.constant > 1:
            yield Finding(
                "note",
                f"{column.constant} entries of the vectors in {name!r} never change",
                "one intercept is enough",
            )
        if len(column.widths) > 1:
            yield Finding(
                "problem",
                f"vectors of different lengths in {name!r}: {sorted(column.widths)}",
                "one length for all rows",
            )
        advice = "correct or drop these rows"
        yield from _about_rows("problem", f"infinite numbers in {name!r}", column.infinite, advice, m.unit)
        if column.kind.name == "mixed":
            yield Finding(
                "problem", f"numbers and texts in {name!r}: {m.mixed[name]}",
                "correct the rows; or, if its numbers are names too, Encoding(categorical=...) takes all of it as texts",
            )  # fmt: skip
        if column.kind.name in ("text", "mixed") and (column.texts is None or len(column.texts) > MANY_TEXTS):
            many = "more than 1,000" if column.texts is None else f"{len(column.texts):,}"
            yield Finding(
                "warning", f"{many} different texts in {name!r}",
                "one-hot encoding would make long contexts: is it an id? else Encoding(most_categories=...) keeps "
                "the frequent ones",
            )  # fmt: skip


def _about_times(m: LogStatistics) -> Iterator[Finding]:
    advice = "sort by time before anything that learns in order, and before a split into past and future"
    yield from _about_rows("note", "timestamps are out of order", m.earlier, advice, m.unit)


__all__ = ["findings"]
