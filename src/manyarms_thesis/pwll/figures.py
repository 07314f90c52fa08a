"""Figures of the experiments on large action spaces: values against a parameter, and over the epochs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from manyarms._base.palette import PALETTE
from manyarms._base.plotting import mean_and_error
from manyarms._base.text import in_words
from manyarms_thesis.harness.claims import Measured
from manyarms_thesis.harness.figures import BLACK, GREY, Drawn, Look, Ticks, draw_grid, draw_series, final_series
from manyarms_thesis.harness.learning import IN_WORDS, MODE
from manyarms_thesis.harness.results import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LOGGING = "logging policy"
# likelihoods have full lines, estimates broken ones; what is restricted to the logging support is dotted
LOOKS: Mapping[str, Look] = {
    "cLPI": (PALETTE[0], "-"),
    "LPI": (PALETTE[5], "-"),
    "RegKL": (PALETTE[2], "-"),
    "BPR": (PALETTE[4], "-"),
    "IPS": (PALETTE[1], "--"),
    "cIPS": (PALETTE[1], "-."),
    "ES": (PALETTE[3], "--"),
    "IX": (PALETTE[6], "--"),
    "LS": (PALETTE[4], "--"),
    "DR": (PALETTE[6], "-."),
    "MIPS": (PALETTE[7], "--"),
    "OffCEM": (PALETTE[3], "-."),
    "POTEC": (PALETTE[2], "--"),
    "PC": (PALETTE[5], "-."),
    "RegKL-LIN": (PALETTE[2], "--"),
    "SVP": (BLACK, "--"),
    LOGGING: (GREY, ":"),
}
MARKERS = "os^Dv"
COUNTED = (
    (MODE, "most-probable"),
    ("value", "drawn"),
)  # the two ways to count a policy, and how files are named after them


def look_of(name: str, place: int) -> Look:
    """Colour and dashes of a curve; variants of an objective ("cLPI, support") share its colour."""
    if name in LOOKS:
        return LOOKS[name]
    base = name.split(",")[0]
    if base in LOOKS:
        return LOOKS[base][0], ":" if "support" in name or "light" in name else LOOKS[base][1]
    return PALETTE[place % len(PALETTE)], "-"


def logging_value(results: Results, panel: str) -> float:
    """The value of the logging policy, which all learners of a panel know alike."""
    return float(results.final(panel, results.methods(panel)[0], "logging_value").mean())


def captioned(results: Results, panels: Sequence[str], column: str, along: str, seen: str = "") -> str:
    """What is on the axes of a figure of values, and what its bars mean."""
    runs = in_words(sorted({results.cells[panel].runs for panel in panels}))
    what = IN_WORDS.get(column, column.replace("_", " "))
    shown = (
        f"{_first_capital(what)} for test users against {along}; higher is better, and the dotted grey line is the logging "
        f"policy. Means of {runs} runs; bands and bars are one standard error over runs on each side."
    )
    return f"{seen} {shown}" if seen else shown


def _first_capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def axis_label(column: str) -> str:
    """What stands on the axis of values."""
    return f"{IN_WORDS[column]}" if column in IN_WORDS else column.replace("_", " ")


def epochs(
    results: Results,
    panels: Sequence[str],
    folder: Path,
    name: str,
    title: str,
    *,
    column: str = "value",
    log_y: bool = False,
    seen: str = "",
) -> Drawn:
    """A column over the epochs, one drawing a panel."""

    def draw(axis: Axes, panel: str) -> None:
        for place, learner in enumerate(results.methods(panel)):
            x = results.values(panel, learner, "epoch")[0]
            mean, error = mean_and_error(results.values(panel, learner, column))
            colour, dashes = look_of(learner, place)
            axis.plot(x, mean, dashes, color=colour, label=learner, linewidth=1.6, marker="o", markersize=2.5)
            low = np.maximum(mean - error, 0.5 * mean) if log_y else mean - error
            axis.fill_between(x, low, mean + error, color=colour, alpha=0.2, linewidth=0)
            axis.set_xticks(x)
        axis.set_xlabel("epoch")
        axis.set_ylabel(axis_label(column))
        if column in IN_WORDS:
            axis.axhline(logging_value(results, panel), linestyle=":", color=GREY, label=LOGGING, linewidth=1.2)
        if log_y:
            axis.set_yscale("log")
        elif column in IN_WORDS:
            axis.set_ylim(bottom=0)

    if column in IN_WORDS:
        caption = captioned(results, panels, column, "the epochs of training", seen)
    else:
        runs = in_words(sorted({results.cells[panel].runs for panel in panels}))
        caption = f"{title} over the epochs; means of {runs} runs, bands are one standard error on each side."
    return draw_grid({panel: panel for panel in panels}, draw, folder, name, title, caption=caption)


def epochs_both(
    results: Results, panels: Sequence[str], folder: Path, name: str, title: str, *, seen: str = ""
) -> Iterator[Drawn]:
    """`epochs` for the most probable action, and for drawn actions."""
    for column, end in COUNTED:
        yield epochs(results, panels, folder, f"{name}-{end}", title, column=column, seen=seen)


def against(
    results: Results,
    groups: Mapping[str, Sequence[str]],
    parameter: str,
    folder: Path,
    name: str,
    title: str,
    xlabel: str,
    *,
    column: str = "value",
    columns: int = 3,
    seen: str = "",
    ticks: Ticks = "at points",
) -> Drawn:
    """Final values against a parameter of the panels, one drawing for each group of panels."""
    drawn = {}
    for group, panels in groups.items():
        drawn[group] = final_series(results, panels, parameter, column=column)
        drawn[group][LOGGING] = {
            float(results.parameter(panel, parameter)): Measured(logging_value(results, panel), 0.0) for panel in panels
        }
    made = draw_series(
        drawn, folder, name, title, xlabel=xlabel, ylabel=axis_label(column), look=look_of, columns=columns, ticks=ticks,
    )  # fmt: skip
    every = [panel for panels in groups.values() for panel in panels]
    return replace(made, caption=captioned(results, every, column, xlabel, seen))


def against_both(
    results: Results,
    groups: Mapping[str, Sequence[str]],
    parameter: str,
    folder: Path,
    name: str,
    title: str,
    xlabel: str,
    *,
    seen: str = "",
    ticks: Ticks = "at points",
) -> Iterator[Drawn]:
    """`against` for the most probable action, and for drawn actions."""
    for column, end in COUNTED:
        yield against(
            results, groups, parameter, folder, f"{name}-{end}", title, xlabel, column=column, seen=seen, ticks=ticks
        )


def by_batch(
    results: Results,
    panels: Sequence[str],
    folder: Path,
    name: str,
    title: str,
    *,
    column: str = "value",
    seen: str = "",
) -> Drawn:
    """Final values against the batch size, one drawing for each schedule and rate."""
    groups: dict[str, list[str]] = {}
    for panel in panels:
        schedule, rate = results.parameter(panel, "schedule"), results.parameter(panel, "rate")
        groups.setdefault(f"{schedule}, rate {rate:g}", []).append(panel)
    columns = len({results.parameter(panel, "schedule") for panel in panels})
    return against(
        results, groups, "batch", folder, name, title, "batch size", column=column, columns=columns, seen=seen
    )


def scatter(
    groups: Mapping[str, Mapping[str, tuple[Measured, Measured]]],
    labels: tuple[str, str],
    folder: Path,
    name: str,
    title: str,
    caption: str,
) -> Drawn:
    """One point a learner, with its name beside it; the first number on a logarithmic axis where it spans a factor of three."""

    def draw(axis: Axes, points: Mapping[str, tuple[Measured, Measured]]) -> None:
        for place, (learner, (x, y)) in enumerate(points.items()):
            colour, _ = look_of(learner, place)
            axis.errorbar(
                [x.mean], [y.mean], yerr=np.nan_to_num([y.standard_error]), fmt=MARKERS[place % len(MARKERS)], color=colour,
                elinewidth=1.0, capsize=2, label=learner,
            )  # fmt: skip
            axis.annotate(learner, (x.mean, y.mean), textcoords="offset points", xytext=(4, 3), fontsize=7)
        first = [x.mean for x, _ in points.values()]
        if min(first) > 0 and max(first) > 3 * min(first):
            axis.set_xscale("log")
        axis.set_xlabel(labels[0])
        axis.set_ylabel(labels[1])

    return draw_grid(groups, draw, folder, name, title, columns=2, caption=caption)


__all__ = [
    "COUNTED", "LOGGING", "against", "against_both", "axis_label", "by_batch", "captioned", "epochs", "epochs_both",
    "logging_value", "look_of", "scatter",
]  # fmt: skip
