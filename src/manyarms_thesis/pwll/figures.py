"""Figures of the experiments on large action spaces: values against a parameter, and over the epochs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from manyarms._base.palette import PALETTE
from manyarms._base.plotting import mean_and_error
from manyarms_thesis.harness.claims import Measured
from manyarms_thesis.harness.figures import BLACK, GREY, Look, draw_grid, draw_series, final_series
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


def epochs(
    results: Results,
    panels: Sequence[str],
    folder: Path,
    name: str,
    title: str,
    *,
    column: str = "value",
    log_y: bool = False,
) -> Path:
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
        axis.set_ylabel("value, test users" if column == "value" else column.replace("_", " "))
        if column == "value":
            axis.axhline(logging_value(results, panel), linestyle=":", color=GREY, label=LOGGING, linewidth=1.2)
        if log_y:
            axis.set_yscale("log")
        elif column == "value":
            axis.set_ylim(bottom=0)

    return draw_grid({panel: panel for panel in panels}, draw, folder, name, title)


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
) -> Path:
    """Final values against a parameter of the panels, one drawing for each group of panels."""
    drawn = {}
    for group, panels in groups.items():
        drawn[group] = final_series(results, panels, parameter, column=column)
        drawn[group][LOGGING] = {
            float(results.parameter(panel, parameter)): Measured(logging_value(results, panel), 0.0) for panel in panels
        }
    label = "value, test users" if column == "value" else "value of modes, test users"
    return draw_series(drawn, folder, name, title, xlabel=xlabel, ylabel=label, look=look_of, columns=columns)


def by_batch(
    results: Results, panels: Sequence[str], folder: Path, name: str, title: str, *, column: str = "value"
) -> Path:
    """Final values against the batch size, one drawing for each schedule and rate."""
    groups: dict[str, list[str]] = {}
    for panel in panels:
        schedule, rate = results.parameter(panel, "schedule"), results.parameter(panel, "rate")
        groups.setdefault(f"{schedule}, rate {rate:g}", []).append(panel)
    columns = len({results.parameter(panel, "schedule") for panel in panels})
    return against(results, groups, "batch", folder, name, title, "batch size", column=column, columns=columns)


def scatter(
    groups: Mapping[str, Mapping[str, tuple[Measured, Measured]]],
    labels: tuple[str, str],
    folder: Path,
    name: str,
    title: str,
) -> Path:
    """One point a learner, with its name beside it; the first number on a logarithmic axis."""

    def draw(axis: Axes, points: Mapping[str, tuple[Measured, Measured]]) -> None:
        for place, (learner, (x, y)) in enumerate(points.items()):
            colour, _ = look_of(learner, place)
            axis.plot([x.mean], [y.mean], MARKERS[place % len(MARKERS)], color=colour, label=learner)
            axis.annotate(learner, (x.mean, y.mean), textcoords="offset points", xytext=(4, 3), fontsize=7)
        axis.set_xscale("log")
        axis.set_xlabel(labels[0])
        axis.set_ylabel(labels[1])

    return draw_grid(groups, draw, folder, name, title, columns=2)


__all__ = ["LOGGING", "against", "by_batch", "epochs", "look_of", "scatter"]
