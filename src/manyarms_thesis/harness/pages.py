"""The page of one experiment: its claims, figures, numbers and settings in one file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from manyarms._base import html as report
from manyarms._base.text import counted
from manyarms._base.typing import Array
from manyarms_thesis.harness.claims import Claim, measured
from manyarms_thesis.harness.experiments import ONLINE_NUMBERS, Experiment
from manyarms_thesis.harness.results import Results

MOST_NAMED = 3  # statements that were not shown, in the answer


def experiment_page(
    experiment: Experiment,
    results: Results,
    claims: Sequence[Claim],
    figures: Sequence[Path],
    facts: Mapping[str, str],
) -> str:
    """The page as one HTML document."""
    held = sum(claim.holds for claim in claims)
    drawn = [
        report.figure(report.svg_of(path, f"figure{number}"), f"{experiment.title}. {experiment.caption}")
        for number, path in enumerate(figures)
    ]
    blocks = [_card(experiment, results, claims), *drawn[:1]]
    blocks += [report.warning(text) for text in experiment.warnings()]
    blocks += [
        report.heading(
            f"{'What the thesis states' if experiment.thesis_lines else 'What is expected'}, and what was measured"
        ),
        claims_table(claims),
        report.paragraph(
            f"{held} of {len(claims)} statements hold. A statement holds when the measured difference has the right "
            "sign and is at least two standard errors from zero; differences between methods are taken run by run, "
            "on the same problems."
        ),
        *([report.heading("More figures"), *drawn[1:]] if drawn[1:] else []),
        report.heading("Numbers"),
        numbers_table(results, experiment.numbers or ONLINE_NUMBERS),
        report.heading("Settings"),
        report.facts({**facts, **_settings(experiment, results)}),
        report.bullets(experiment.remarks),
    ]
    where = f"thesis, section {experiment.sections}" if experiment.thesis_lines else "no experiment of the thesis"
    about = f"{experiment.name}: {where}; scale “{results.scale}”"
    return report.page(experiment.title, about, *blocks)


def _card(experiment: Experiment, results: Results, claims: Sequence[Claim]) -> str:
    """How much of what the thesis states was found."""
    held = sum(claim.holds for claim in claims)
    texts = [f"Not shown: {claim.statement}." for claim in claims if not claim.holds][:MOST_NAMED]
    full, own = (
        ("the thesis has", "the thesis's own") if experiment.thesis_lines else ("the full experiment has", "the full")
    )
    if results.scale != "paper":
        texts.append(
            f"Scale “{results.scale}”: fewer rounds, runs and actions than {full}. Many of its statements "
            "need more data than this to show; a “no” below may only mean that. "
            f"manyarms reproduce {experiment.name} --scale paper has {own} sizes."
        )
    of = " of the thesis" if experiment.thesis_lines else ""
    title = f"{held} of {counted(len(claims), 'statement')}{of} {'holds' if len(claims) == 1 else 'hold'}"
    return report.card(title, texts, "good" if held == len(claims) else "open")


def claims_table(claims: Sequence[Claim]) -> str:
    """Statements with their measurements."""
    rows: list[list[report.CellText]] = [
        [
            report.Note(claim.statement, " · ".join(filter(None, (claim.panel, claim.detail)))),
            claim.sections or "–",
            f"{claim.figure:.4g}",
            "–" if np.isnan(claim.standard_error) else f"{claim.standard_error:.2g}",
            claim.holds,
        ]
        for claim in claims
    ]
    columns = ("statement", "section", "figure", "standard error", "holds")
    return report.table(columns, rows, numbers=("figure", "standard error"))


def numbers_table(results: Results, wanted: Mapping[str, str]) -> str:
    """Some columns of the results (with their headings) for every method in every panel, at the last checkpoint."""
    rows = [
        [panel, method, *(_shown(column, results.final(panel, method, column)) for column in wanted)]
        for panel in results.panels
        for method in results.methods(panel)
    ]
    headings = tuple(wanted.values())
    return report.table(("panel", "method", *headings), rows, numbers=headings)


def _shown(column: str, values: Array) -> str:
    """A column's values over runs, as a reader wants them."""
    if column == "milliseconds_a_round":
        return f"{values.mean():.3f}"
    if np.isnan(values).all():  # a question that does not arise in this panel
        return "–"
    if column == "agent_bytes":
        return f"{values.mean() / 1e6:,.2f}"
    return str(measured(values)) if len(values) > 1 else f"{values[0]:.4g}"


def _settings(experiment: Experiment, results: Results) -> dict[str, str]:
    cells = list(results.cells.values())
    sizes = experiment.scales[results.scale]
    return {
        "sizes": ", ".join(f"{name} = {value}" for name, value in sizes.items()),
        "panels": str(len(cells)),
        "rounds": ", ".join(sorted({f"{cell.rounds:,}" for cell in cells})),
        "runs": ", ".join(sorted({str(cell.runs) for cell in cells})),
    }


__all__ = ["claims_table", "experiment_page", "numbers_table"]
