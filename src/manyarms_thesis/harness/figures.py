"""Figures that several chapters draw: regret over rounds, measurements against a parameter, curves with bands.

Every figure is a grid of drawings, one a group, with one legend for all: `draw_grid` lays it out, and a chapter brings the
looks of its curves. An agent looks the same in every figure; variants of one method share its colour and differ in dashes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

import numpy as np

from manyarms._base.palette import PALETTE, marker_of
from manyarms._base.plotting import drawing, finish, mean_and_error
from manyarms._base.text import in_words
from manyarms._base.typing import Array
from manyarms_thesis.harness.claims import Measured, measured
from manyarms_thesis.harness.results import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Look = tuple[str, str]
"""Colour and dashes of a curve."""
LookOf = Callable[[str, int], Look]
"""The look of a curve, from its name and its place among the others."""
Series = Mapping[str, Mapping[float, Measured]]
Ticks = Literal["auto", "at points", "evenly", "log"]
Group = TypeVar("Group")


@dataclass(frozen=True)
class Drawn:
    """A figure: its SVG (a PDF and a PNG lie beside it), and what is seen on it."""

    path: Path
    caption: str


MARKED = 8  # points of a curve that get a marker
BLACK, GREY = "#1a1a1a", "#8a8a8a"
ONLINE: Mapping[str, Look] = {
    "meTS-Lin": (PALETTE[0], "-"),
    "meTS-Lin-Fa": (PALETTE[5], "--"),
    "meTS-Lin-Fb": (PALETTE[7], ":"),
    "meTS-Lin-mis": (PALETTE[3], "--"),
    "meTS-GLM": (PALETTE[3], "-"),
    "meTS-GLM-Fa": (PALETTE[7], "--"),
    "meTS, effects known": (PALETTE[2], "--"),
    "dTS": (PALETTE[0], "-"),
    "dTS-LL": (PALETTE[0], "-"),
    "dTS-LN": (PALETTE[3], "-"),
    "dTS-NL": (PALETTE[0], "-"),
    "dTS-NN": (PALETTE[3], "-"),
    "dTS-NL, jacobian": (PALETTE[5], "--"),
    "LinTS": (PALETTE[1], "-"),
    "GLM-TS": (PALETTE[1], "-"),
    "LinUCB": (PALETTE[4], "-."),
    "UCB-GLM": (PALETTE[4], "-."),
    "GLM-UCB": (PALETTE[6], ":"),
    "HierTS": (PALETTE[2], "-"),
}


def online_looks(more: Mapping[str, Look] | None = None) -> LookOf:
    """The looks of online agents, and of what a figure has besides; anything else is a dotted black line."""
    table = {**ONLINE, **(more or {})}
    return lambda name, place: table.get(name, (BLACK, ":"))


def draw_grid(
    groups: Mapping[str, Group],
    draw: Callable[[Axes, Group], None],
    folder: Path,
    name: str,
    title: str,
    *,
    caption: str,
    columns: int = 3,
) -> Drawn:
    """One drawing a group, with the group's name above it, and one legend for all. caption: what is seen."""
    columns = min(columns, len(groups))
    with drawing(math.ceil(len(groups) / columns), columns) as (figure, axes):
        for axis, (label, group) in zip(axes, groups.items(), strict=False):
            draw(axis, group)
            axis.set_title(_on_two_lines(label))
        return Drawn(finish(figure, axes[: len(groups)], folder, name, title), caption)


def draw_band(axis: Axes, x: Array, values: Array, look: Look, label: str, marker: str = "") -> None:
    """The mean of values (runs, n) over the runs, and a band of one standard error on each side."""
    mean, error = mean_and_error(values)
    colour, dashes = look
    every = max(1, math.ceil(len(x) / MARKED))
    axis.plot(
        x, mean, dashes, color=colour, label=label, linewidth=1.6, marker=marker or marker_of(colour), markersize=3.5,
        markevery=(every - 1, every),
    )  # fmt: skip
    axis.fill_between(x, mean - error, mean + error, color=colour, alpha=0.2, linewidth=0)


def regret_curves(
    results: Results,
    panels: Sequence[str],
    folder: Path,
    name: str,
    title: str,
    *,
    seen: str = "",
    columns: int = 3,
    looks: Mapping[str, Look] | None = None,
) -> Drawn:
    """Cumulative regret over rounds, one drawing a panel. seen: what the caption says first."""
    look = online_looks(looks)
    runs = in_words(sorted({results.cells[panel].runs for panel in panels}))
    where = "one panel for each world" if len(panels) > 1 else panels[0] if panels else ""
    caption = f"{title}: cumulative expected regret over the rounds, {where}; lower is better. {means_of(runs)}"

    def draw(axis: Axes, panel: str) -> None:
        for place, agent in enumerate(results.methods(panel)):
            x = results.values(panel, agent, "round")[0]
            draw_band(axis, x, results.values(panel, agent, "regret"), look(agent, place), agent)
        axis.set_xlabel("round")
        axis.set_ylabel("cumulative regret")
        axis.set_ylim(bottom=0)
        axis.set_xlim(left=0)

    caption = f"{seen} {caption}" if seen else caption
    return draw_grid({panel: panel for panel in panels}, draw, folder, name, title, columns=columns, caption=caption)


def means_of(runs: str) -> str:
    """What a caption says of curves with bands."""
    return f"Means of {runs} runs; bands and bars are one standard error on each side."


def final_series(
    results: Results,
    panels: Sequence[str],
    parameter: str,
    *,
    methods: Sequence[str] | None = None,
    column: str = "regret",
) -> dict[str, dict[float, Measured]]:
    """What methods (None: all of them) end with, against a parameter of the panels."""
    series: dict[str, dict[float, Measured]] = {}
    for panel in panels:
        x = float(results.parameter(panel, parameter))
        for method in results.methods(panel) if methods is None else methods:
            series.setdefault(method, {})[x] = measured(results.final(panel, method, column))
    return series


def draw_series(
    groups: Mapping[str, Series],
    folder: Path,
    name: str,
    title: str,
    *,
    xlabel: str | Mapping[str, str],
    ylabel: str = "final regret",
    look: LookOf | None = None,
    columns: int = 3,
    ticks: Ticks = "at points",
    log_y: bool = False,
    from_zero: bool = True,
    level: float | None = None,
    hidden: Sequence[str] = (),
    seen: str = "",
) -> Drawn:
    """Measurements with their standard errors against a number, one drawing a group.

    xlabel: one for all groups, or one for each. look: that of online agents unless given. ticks: "at points" has one at every
    measured place, on a logarithmic axis where these span a factor of 4 or more; "evenly" too, at even distances whatever the
    numbers are; "auto" and "log" leave them to a linear or a logarithmic axis. level: of a horizontal line. hidden: curves
    without an entry in the legend. seen: what the caption says first.
    """

    chosen = look or online_looks()

    def draw(axis: Axes, group: str) -> None:
        series = groups[group]
        places = sorted({x for points in series.values() for x in points})
        for place, (curve, points) in enumerate(series.items()):
            colour, dashes = chosen(curve, place)
            measurements = [points[x] for x in sorted(points)]
            axis.errorbar(
                [places.index(x) if ticks == "evenly" else x for x in sorted(points)],
                [one.mean for one in measurements],
                np.nan_to_num([one.standard_error for one in measurements]),
                fmt=dashes, color=colour, linewidth=1.5, marker=marker_of(colour), markersize=3.5, elinewidth=1.0, capsize=2,
                label=f"_{curve}" if curve in hidden else curve,
            )  # fmt: skip
        axis.set_xlabel(xlabel if isinstance(xlabel, str) else xlabel[group])
        axis.set_ylabel(ylabel)
        _place_ticks(axis, places, ticks)
        if log_y:
            axis.set_yscale("log")
        elif from_zero:
            axis.set_ylim(bottom=0)
        if level is not None:
            axis.axhline(level, color=GREY, linewidth=0.9, linestyle="--")

    along = xlabel if isinstance(xlabel, str) else in_words(list(dict.fromkeys(xlabel.values())))
    caption = f"{title}: {ylabel} against {along}. Means over runs; bars are one standard error on each side."
    caption = f"{seen} {caption}" if seen else caption
    return draw_grid({group: group for group in groups}, draw, folder, name, title, columns=columns, caption=caption)


def _place_ticks(axis: Axes, places: Sequence[float], ticks: Ticks) -> None:
    if ticks == "log":
        axis.set_xscale("log")
    if ticks in ("auto", "log"):
        return
    even = ticks == "evenly"
    if not even and places[0] > 0 and places[-1] / places[0] >= 4:
        axis.set_xscale("log")
    axis.minorticks_off()
    shown = [in_words(int(value) if value == int(value) else value) for value in places]
    axis.set_xticks(range(len(places)) if even else places, shown, rotation=30 if len(places) > 5 else 0)


def _on_two_lines(label: str) -> str:
    """A long name on two lines, where it has parts."""
    parts = label.split(", ")
    if len(label) < 32 or len(parts) == 1:
        return label
    half = (len(parts) + 1) // 2
    return ", ".join(parts[:half]) + "\n" + ", ".join(parts[half:])


__all__ = [
    "BLACK", "GREY", "Drawn", "Look", "LookOf", "Series", "Ticks", "draw_band", "draw_grid", "draw_series", "final_series",
    "means_of", "online_looks", "regret_curves",
]  # fmt: skip
