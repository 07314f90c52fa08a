"""The page of an evaluation: the table, estimates with their intervals, the weights' tail, the overlap of both policies."""

from __future__ import annotations

from pathlib import Path

from manyarms._base import html as report
from manyarms._base.files import write_text_atomically
from manyarms.evaluation import pictures
from manyarms.evaluation.results import Estimate, Evaluation
from manyarms.evaluation.tables import number, shared_warnings, tail_words

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
    """The whole document."""
    lead = f"{evaluation.rows:,} rows, {evaluation.actions:,} actions; intervals at {evaluation.level:.4g}."
    return report.page(f"Off-policy evaluation of {evaluation.policy}", lead, *blocks(evaluation))


def blocks(evaluation: Evaluation) -> list[str]:
    """What the page shows, for pages that show an evaluation among other things."""
    blocks = [report.warning(text) for text in evaluation.warnings]
    everything = (evaluation.logged, *evaluation.estimates)
    blocks += [
        report.heading("Estimates"),
        report.table(
            COLUMNS, [_row(e) for e in everything], numbers=("value", "std. error", "low", "high", "effective rows")
        ),
        report.figure(
            pictures.whiskers(
                [(e.label, e.value, e.interval) for e in evaluation.estimates],
                evaluation.logged.value,
                title="estimates with their intervals",
            ),
            "Blue intervals are for the policy's value. Orange ones are for the mean of a biased estimator, and leave its "
            "bias out.",
        ),
    ]
    warnings = [f"{', '.join(names)}: {text}" for text, names in shared_warnings(evaluation).items()]
    if warnings:
        blocks += [report.heading("Estimator by estimator, what to beware of"), report.bullets(warnings)]
    blocks += _overlap(evaluation)
    blocks += [
        report.heading("All intervals"),
        report.table(
            ("estimator", "kind", "low", "high", "is for"),
            [
                (e.label, i.kind, number(i.low), number(i.high), i.covers)
                for e in evaluation.estimates
                for i in e.intervals
            ],
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
        report.Note(estimate.label, estimate.note),
        number(estimate.value),
        number(estimate.standard_error),
        number(estimate.interval.low),
        number(estimate.interval.high),
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
        "largest weight": f"{overlap.largest:.4g}, at row {overlap.largest_row:,}",
        "Pareto k of the weights' tail": tail_words(overlap),
        "smallest propensity": f"{overlap.smallest:.3g}, at row {overlap.smallest_row:,}",
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
            pictures.log_chart(
                [("share of rows with a larger weight", weights[shown], share[shown])], "weight", "share of rows",
                title="tail of the importance weights", log_y=True,
            ),
            "The tail of the importance weights. A straight line that falls slowly is a heavy tail: few rows decide.",
        ),
        report.figure(
            pictures.log_chart(
                [("logging policy", *overlap.shares("logging")), ("policy", *overlap.shares("policy"))],
                "probability of the logged action", "share of rows", title="overlap of the two policies",
            ),
            "How likely the two policies were to play what was logged. The further apart, the larger the weights.",
        ),
    ]  # fmt: skip


__all__ = ["blocks", "html", "write", "written"]
