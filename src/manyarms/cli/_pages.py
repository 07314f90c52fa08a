"""The pages of `compare`, `choose` and `tune`: a sentence with the answer, a picture, a table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from manyarms._base import html as report
from manyarms._base.text import counted, number
from manyarms.evaluation import Choice, Difference, Evaluation, Tuning, Verdict, pictures
from manyarms.evaluation.intervals import Interval
from manyarms.evaluation.page import verdict_card

Named = Mapping[str, Evaluation]


def of_comparison(verdict: Verdict, difference: Difference, judged: Named, estimator: str) -> str:
    """Two policies on the same rows; the second may be the logging policy, which needs no estimate."""
    first = next(iter(judged.values()))
    ends = difference.interval
    shown = [(name, one[estimator].value, one[estimator].interval) for name, one in judged.items()]
    shown += [("difference", difference.value, ends)]
    blocks = [
        verdict_card(verdict),
        report.figure(
            pictures.whiskers(shown, first.logged.value, title="both policies and their difference"),
            f"The value of each policy and their difference, with intervals at {ends.level:.4g}. The difference is paired row by "
            "row: it is better known than either value.",
        ),
        report.heading("Difference"),
        report.table(
            ("interval", "low", "high", "level", "is for"),
            [
                (one.kind, number(one.low), number(one.high), f"{one.level:.4g}", one.covers)
                for one in difference.intervals
            ],
            numbers=("low", "high", "level"),
        ),
        report.facts(
            {
                "difference": f"{difference.value:+.4g} [{number(ends.low)}, {number(ends.high)}]",
                "standard error": number(difference.standard_error),
                "correlation of the two policies' terms": f"{difference.correlation:.3f}",
                "rows": counted(first.rows, "row"),
            }
        ),
        *_notes([*difference.warnings, *_warnings(judged)], [difference.note, *first.notes]),
    ]
    names = " and ".join(judged)
    return report.page(f"{names} compared", f"{counted(first.rows, 'row')}, by {estimator}.", *blocks)


def of_choice(found: Choice, warnings: Sequence[str] = ()) -> str:
    """Several policies, by lower bounds that hold for all at once."""
    ordered = sorted(found.candidates, key=lambda one: -one.lower)
    sure = 1 - found.delta
    useful = math.isfinite(found.lower)
    better = useful and found.lower > found.logged
    answer = (
        f"Its value is at least {number(found.lower)} with probability {sure:.4g}, whichever of "
        f"{counted(len(ordered), 'policy', 'policies')} had been chosen; the log's mean reward is {number(found.logged)}."
    )
    blocks = [
        report.card(found.best, [answer], "good" if better else "open")
        if useful
        else report.card("no choice", ["No bound says anything: the rows are too few, or too far from the policies."], "open"),
        report.figure(
            pictures.whiskers(
                [(one.name, one.estimate.value, _from_below(one.lower, one.estimate.value)) for one in ordered],
                found.logged, title="lower bounds of all policies",
            ),
            "Each policy from its lower bound to its estimate. Chosen is the largest lower bound, not the largest estimate: that "
            "is lucky among many policies.",
        ),
        report.heading("Policies"),
        report.table(
            ("policy", "lower bound", "estimate", "std. error", "effective rows"),
            [
                (
                    one.name, number(one.lower), number(one.estimate.value), number(one.estimate.standard_error),
                    f"{one.estimate.effective_sample_size:,.0f}",
                )
                for one in ordered
            ],
            numbers=("lower bound", "estimate", "std. error", "effective rows"),
        ),
        *_notes([*warnings, *(f"{one.name}: {text}" for one in ordered for text in one.estimate.warnings)], [found.note]),
    ]  # fmt: skip
    return report.page(f"The best of {counted(len(ordered), 'policy', 'policies')}", found.note + ".", *blocks)


def of_tuning(found: Tuning, policy: str) -> str:
    """A grid of parameters, and the one that was taken."""
    name = str(found.correction.parameter)
    shown = [
        (f"{name} = {one.parameter:.4g}", one.value, Interval(
            one.value - one.standard_error - one.bias_bound, one.value + one.standard_error + one.bias_bound, found.rule, 0.0,
            "the policy's value",
        ))
        for one in found.trials
    ]  # fmt: skip
    blocks = [
        report.card(f"{name} = {found.parameter:.4g}", [f"chosen by the rule {found.rule}"], "good"),
        report.figure(
            pictures.whiskers(shown, found.trials[0].value, title="estimates over the grid"),
            "Estimates from the weakest correction to the strongest, each with its standard error and the bound on its bias on "
            "both sides. Dashed: the weakest correction.",
        ),
        report.heading("The grid"),
        report.table(
            (name, "estimate", "std. error", "bias bound", "chosen"),
            [
                (
                    f"{one.parameter:.4g}", number(one.value), number(one.standard_error), number(one.bias_bound),
                    "yes" if one.parameter == found.parameter else "",
                )
                for one in found.trials
            ],
            numbers=(name, "estimate", "std. error", "bias bound"),
        ),
        *_notes([], [found.note, "intervals on the same rows do not know of the choice: evaluate on other rows"]),
    ]  # fmt: skip
    return report.page(f"{name} for {policy}", f"{counted(len(found.trials), 'value')} of {name} tried.", *blocks)


def _from_below(low: float, value: float) -> Interval:
    """From a lower bound to an estimate; what is infinite is cut where the estimate is."""
    return Interval(low if math.isfinite(low) else value, max(low, value), "lower", 0.0, "the policy's value")


def _warnings(judged: Named) -> list[str]:
    return [f"{name}: {text}" for name, one in judged.items() for text in one.warnings]


def _notes(warnings: Sequence[str], notes: Sequence[str]) -> list[str]:
    found = [report.warning(text) for text in dict.fromkeys(warnings)]
    told = [text for text in dict.fromkeys(notes) if text]
    return found + ([report.heading("Notes"), report.bullets(told)] if told else [])


__all__ = ["of_choice", "of_comparison", "of_tuning"]
