"""Figures of the experiments on large action spaces: values against a parameter, and over the epochs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from manyarms._base.html import PALETTE
from manyarms._base.typing import Array
from manyarms_thesis.harness.claims import Measured, measured
from manyarms_thesis.harness.figures import drawing, finish, mean_and_error
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.series import draw_series

LOGGING = "logging policy"
# likelihoods have full lines, estimates broken ones; what is restricted to the logging support is dotted
LOOKS: Mapping[str, tuple[str, str]] = {
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
    "SVP": ("#1a1a1a", "--"),
    LOGGING: ("#8a8a8a", ":"),
}
MARKERS = "os^Dv"


def look_of(name: str, place: int) -> tuple[str, str]:
    """Colour and dashes of a curve; variants of an objective ("cLPI, support") share its colour."""
    if name in LOOKS:
        return LOOKS[name]
    base = name.split(",")[0]
    if base in LOOKS:
        return LOOKS[base][0], ":" if "support" in name or "light" in name else LOOKS[base][1]
    return PALETTE[place % len(PALETTE)], "-"


def epochs(
    results: Results,
    panels: Sequence[str],
    folder: Path,
    name: str,
    title: str,
    *,
    column: str = "value",
    log: bool = False,
) -> Path:
    """A column over the epochs, one drawing a panel."""
    columns = min(3, len(panels))
    with drawing(math.ceil(len(panels) / columns), columns) as (figure, axes):
        for axis, panel in zip(axes, panels, strict=False):
            for place, agent in enumerate(results.agents(panel)):
                x = results.values(panel, agent, "epoch")[0]
                mean, error = mean_and_error(results.values(panel, agent, column).astype(float))
                colour, dashes = look_of(agent, place)
                axis.plot(x, mean, dashes, color=colour, label=agent, linewidth=1.6, marker="o", markersize=2.5)
                low = np.maximum(mean - error, 0.5 * mean) if log else mean - error
                axis.fill_between(x, low, mean + error, color=colour, alpha=0.2, linewidth=0)
            if column == "value":
                level = float(results.final(panel, results.agents(panel)[0], "logging_value").mean())
                axis.axhline(level, linestyle=":", color=LOOKS[LOGGING][0], label=LOGGING, linewidth=1.2)
            axis.set_title(panel)
            axis.set_xlabel("epoch")
            axis.set_xticks(results.values(panel, results.agents(panel)[0], "epoch")[0])
            axis.set_ylabel("value, test users" if column == "value" else column.replace("_", " "))
            if log:
                axis.set_yscale("log")
            elif column == "value":
                axis.set_ylim(bottom=0)
        return finish(figure, axes[: len(panels)], folder, name, title)


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
    drawn: dict[str, dict[str, dict[float, Measured]]] = {}
    for group, panels in groups.items():
        series: dict[str, dict[float, Measured]] = {}
        for panel in panels:
            x = float(results.parameter(panel, parameter))
            for agent in results.agents(panel):
                series.setdefault(agent, {})[x] = measured(results.final(panel, agent, column))
            first = results.final(panel, results.agents(panel)[0], "logging_value")
            series.setdefault(LOGGING, {})[x] = Measured(float(first.mean()), 0.0)
        series[LOGGING] = series.pop(LOGGING)
        drawn[group] = series
    label = "value, test users" if column == "value" else "value of modes, test users"
    return draw_series(drawn, look_of, xlabel, label, folder, name, title, columns=columns, from_zero=True)


def bars(
    groups: Mapping[str, Mapping[str, Measured]], ylabel: str, folder: Path, name: str, title: str, *, log: bool = False
) -> Path:
    """One bar an agent, one drawing a group."""
    columns = min(2, len(groups))
    with drawing(math.ceil(len(groups) / columns), columns) as (figure, axes):
        for axis, (group, found) in zip(axes, groups.items(), strict=False):
            for place, (agent, point) in enumerate(found.items()):
                error = 0.0 if math.isnan(point.standard_error) else point.standard_error
                axis.bar(place, point.mean, yerr=error, color=look_of(agent, place)[0], label=agent, capsize=2)
            axis.set_xticks(range(len(found)), list(found), rotation=60, ha="right")
            axis.set_title(group)
            axis.set_ylabel(ylabel)
            if log:
                axis.set_yscale("log")
        return finish(figure, axes[: len(groups)], folder, name, title)


def scatter(
    groups: Mapping[str, Mapping[str, tuple[Measured, Measured]]],
    labels: tuple[str, str],
    folder: Path,
    name: str,
    title: str,
) -> Path:
    """One point an agent, with its name beside it; the first number on a logarithmic axis."""
    columns = min(2, len(groups))
    with drawing(math.ceil(len(groups) / columns), columns) as (figure, axes):
        for axis, (group, found) in zip(axes, groups.items(), strict=False):
            for place, (agent, (x, y)) in enumerate(found.items()):
                colour, _ = look_of(agent, place)
                axis.plot([x.mean], [y.mean], MARKERS[place % len(MARKERS)], color=colour, label=agent)
                axis.annotate(agent, (x.mean, y.mean), textcoords="offset points", xytext=(4, 3), fontsize=7)
            axis.set_xscale("log")
            axis.set_title(group)
            axis.set_xlabel(labels[0])
            axis.set_ylabel(labels[1])
        return finish(figure, axes[: len(groups)], folder, name, title)


def finals(results: Results, panel: str, column: str = "value") -> dict[str, Measured]:
    """The final values of all agents of a panel."""
    return {
        agent: measured(np.asarray(results.final(panel, agent, column), dtype=float)) for agent in results.agents(panel)
    }


def mean_over(values: Array) -> Measured:
    """A measurement of the runs' means, for values (runs, anything)."""
    return measured(values.reshape(len(values), -1).mean(axis=1))


__all__ = ["LOGGING", "LOOKS", "against", "bars", "epochs", "finals", "look_of", "mean_over", "scatter"]
