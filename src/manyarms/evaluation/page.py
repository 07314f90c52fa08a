"""The page of an evaluation: the table, estimates with their intervals, the weights' tail, the overlap of both policies."""

from __future__ import annotations

from pathlib import Path

from manyarms._base import html as report
from manyarms._base.files import write_text_atomically
from manyarms.evaluation import pictures
from manyarms.evaluation.results import Estimate, Evaluation
from manyarms.evaluation.tables import number, shared_warnings, size, tail_words
from manyarms.evaluation.verdicts import DO_NOT_SHIP, SHIP, Verdict

COLUMNS = ("estimator", "value", "std. error", "low", "high", "interval", "is for", "effective rows")


def write(evaluation: Evaluation, path: Path) -> Path:
    """Write the page; its path (report.html inside, if a folder was given)."""
    return written(html(evaluation), path)


def written(document: str, path: Path) -> Path:
    """Write any page; its path (report.html inside, if a folder was given)."""
    if path.suffix.lower() not in (".html", ".htm"):
        path = path / "report.html"
    write_text_atomically(path, document)
    return path


def html(evaluation: Evaluation) -> str:
    """The whole document: the verdict, the estimates drawn, the estimates in numbers, and what they rest on."""
    about = f"{size(evaluation)}; intervals at {evaluation.level:.4g}."
    top = verdict_card(evaluation.verdict())
    return report.page(f"Off-policy evaluation of {evaluation.policy}", about, top, *blocks(evaluation))


def verdict_card(found: Verdict) -> str:
    """A verdict, why, and what would be needed."""
    tone = {SHIP: "good", DO_NOT_SHIP: "bad"}.get(found.verdict, "open")
    return report.card(found.verdict.capitalize(), [found.reason, *(f"Needed: {text}." for text in found.needed)], tone)


def estimates_figure(evaluation: Evaluation) -> str:
    """All estimates with their intervals, beside the mean reward of the log."""
    marks, logged = [(e.label, e.value, e.interval) for e in evaluation.estimates], evaluation.logged.value

    def drawn(width: float) -> str:
        return pictures.whiskers(marks, logged, title="estimates with their intervals", width=width)

    above = sum(e.interval.low > evaluation.logged.value for e in evaluation.estimates)
    seen = (
        f"Each mark is an estimate of the policy's value, each line its interval; {above} of {len(evaluation.estimates)} "
        f"intervals lie wholly above the mean reward of the log, {number(evaluation.logged.value)} (dashed). "
    )
    kinds = {e.interval.covers.startswith("the policy's") for e in evaluation.estimates}
    if False in kinds:
        seen += (
            "Circles on full lines: intervals for the policy's value. Squares on broken lines: for the mean of a biased "
            "estimator, which leaves its bias out."
        )
    return report.figure(drawn, seen)


def blocks(evaluation: Evaluation) -> list[str]:
    """What the page shows, for pages that show an evaluation among other things."""
    everything = (evaluation.logged, *evaluation.estimates)
    blocks = [
        estimates_figure(evaluation),
        report.table(
            COLUMNS, [_row(e) for e in everything], numbers=("value", "std. error", "low", "high", "effective rows")
        ),
    ]
    warnings = [f"{', '.join(names)}: {text}" for text, names in shared_warnings(evaluation).items()]
    if evaluation.warnings or warnings:
        blocks.append(report.heading("What to beware of"))
        blocks += [report.warning(text) for text in evaluation.warnings]
        blocks += [report.bullets(warnings)] if warnings else []
    blocks += _overlap(evaluation)
    blocks += [
        report.heading("All intervals"),
        report.table(
            ("estimator", "kind", "low", "high", "is for"),
            [(e.label, i.kind, i.low, i.high, i.covers) for e in evaluation.estimates for i in e.intervals],
            numbers=("low", "high"),
        ),
        report.heading("What the estimators assume"),
        report.bullets([f"{e.label}: {e.note}" for e in evaluation.estimates if e.note]),
    ]
    if evaluation.notes:
        blocks += [report.heading("Notes"), report.bullets(list(evaluation.notes))]
    return blocks


def _row(estimate: Estimate) -> tuple[report.CellText, ...]:
    return (
        estimate.label,
        estimate.value,
        estimate.standard_error,
        estimate.interval.low,
        estimate.interval.high,
        estimate.kind,
        estimate.interval_is_for,
        f"{estimate.effective_sample_size:,.0f}",
    )


def _overlap(evaluation: Evaluation) -> list[str]:
    overlap = evaluation.overlap
    if overlap is None or overlap.zero == overlap.rows:
        return []
    facts = {
        "effective sample size of the plain weights": f"{overlap.effective_sample_size:,.0f} of {overlap.rows:,} rows",
        "mean weight (1 is expected)": f"{overlap.mean_weight:.4g}, standard error {overlap.mean_weight_error:.2g}",
        "largest weight": f"{overlap.largest:.4g}, at {overlap.largest_place}",
        "Pareto k of the weights' tail": tail_words(overlap),
        "smallest propensity": f"{overlap.smallest:.3g}, at {overlap.smallest_place}",
        "rows whose action the policy never plays": f"{overlap.zero:,}",
    }
    if overlap.never_played is not None:
        facts["the policy's probability on actions that are never logged"] = f"{overlap.never_played:.2%}"
    weights, share = overlap.tail()
    shown = weights >= min(1e-3, float(weights.max()))  # below, every weight is as good as none
    return [
        report.heading("Weights and overlap"),
        report.facts(facts),
        report.figure(
            lambda width: pictures.log_chart(
                [("share of rows with a larger weight", weights[shown], share[shown])], "weight", "share of rows",
                title="tail of the importance weights", log_y=True, width=width,
            ),
            f"How many rows have a weight above each size; the largest is {number(overlap.largest)}. A line that falls slowly, "
            "and straight, is a heavy tail: few rows decide.",
        ),
        report.figure(
            lambda width: pictures.log_chart(
                [("logging policy", *overlap.shares("logging")), ("policy", *overlap.shares("policy"))],
                "probability of the logged action", "share of rows", title="overlap of the two policies", width=width,
            ),
            "How likely the two policies were to play what was logged, row by row. Where the policy's curve lies right of the "
            "logging policy's, weights are large; the further apart, the larger.",
        ),
    ]  # fmt: skip


__all__ = ["blocks", "estimates_figure", "html", "verdict_card", "write", "written"]
