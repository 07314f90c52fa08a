"""The page of one experiment: question, setting and answer, then the picture, then statements, numbers and settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from manyarms._base import html as report
from manyarms._base.text import in_words
from manyarms._base.typing import Array
from manyarms_thesis.harness.claims import Claim, measured
from manyarms_thesis.harness.experiments import ONLINE_NUMBERS, Experiment
from manyarms_thesis.harness.figures import Drawn
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.verdicts import answer, figure_of, statements

RULE = (
    "A difference that should be above zero holds where it is so by two standard errors (by more where there are few runs: "
    "Student's quantile), is refuted where it is below zero by as much, and is undecided otherwise. Held in part: some of the "
    "differences that a statement is made of hold, and some do not. Differences between methods are taken run by run, on the "
    "same problems. “Would show” is the least difference that as many runs find four times out of five."
)


def experiment_page(
    experiment: Experiment,
    results: Results,
    claims: Sequence[Claim],
    figures: Sequence[Drawn],
    facts: Mapping[str, str],
) -> str:
    """The page as one HTML document."""
    drawn = [
        report.figure(report.svg_of(one.path, f"figure{number}"), one.caption) for number, one in enumerate(figures)
    ]
    blocks = [_card(experiment, results, claims), *drawn[:1]]
    blocks += [report.warning(text) for text in experiment.warnings()]
    of_thesis, beyond = ([one for one in claims if bool(one.thesis_lines) is kind] for kind in (True, False))
    if of_thesis:
        blocks += [report.heading("What the thesis states, and what was measured"), claims_table(of_thesis)]
    if beyond:
        title = "Beyond what the thesis states or prints" if of_thesis else "What is expected, and what was measured"
        blocks += [report.heading(title), claims_table(beyond)]
    blocks += [
        *([report.paragraph(RULE)] if claims else []),
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
    """What is asked, of what, and what came out."""
    texts = [
        experiment.setting_at(results.scale),
        *(answer(claims) if claims else ["It measures, and judges nothing."]),
    ]
    whose = "the thesis's" if experiment.thesis_lines else "those of the full experiment"
    fewer, smaller = (_pairs(found) for found in (experiment.fewer(results.scale), experiment.smaller(results.scale)))
    if fewer:
        texts.append(f"Scale “{results.scale}” has some of {whose} sizes: {fewer}.")
    if smaller:
        texts.append(
            f"Scale “{results.scale}” has other sizes than {whose}: {smaller}. What goes against a statement here leaves it "
            f"undecided; manyarms reproduce {experiment.name} --scale paper decides."
        )
    if experiment.part:
        texts.append(
            f"It was run in part ({experiment.part}): the same worlds, and fewer of them or fewer runs. Statements that need the "
            "others are left out, and what goes against one leaves it undecided where there are fewer worlds."
        )
    good = bool(claims) and all(one.verdict == "held" for one in statements(claims))
    return report.card(experiment.question, [text for text in texts if text], "good" if good else "open")


def _pairs(sizes: Mapping[str, tuple[Any, Any]]) -> str:
    return ", ".join(f"{name} {in_words(own)} for {in_words(full)}" for name, (own, full) in sizes.items())


def claims_table(claims: Sequence[Claim]) -> str:
    """Statements with their measurements."""
    rows: list[list[report.CellText]] = [
        [
            report.Note(claim.statement, " · ".join(filter(None, (claim.panel, claim.detail)))),
            claim.sections or "–",
            figure_of(claim),
            f"{claim.shows:.2g}" if np.isfinite(claim.shows) else "–",
            claim.verdict,
        ]
        for claim in claims
    ]
    columns = ("statement", "section", "difference ± se", "would show", "verdict")
    return report.table(columns, rows, numbers=("difference ± se", "would show"))


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
    sizes = experiment.sizes(results.scale)
    return {
        "sizes": ", ".join(f"{name} = {value}" for name, value in sizes.items()),
        "panels": str(len(cells)),
        "rounds": ", ".join(sorted({f"{cell.rounds:,}" for cell in cells})),
        "runs": ", ".join(sorted({str(cell.runs) for cell in cells})),
    }


__all__ = ["claims_table", "experiment_page", "numbers_table"]
