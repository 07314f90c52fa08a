"""The figure that most chapters draw: measurements with their errors against a number, one drawing a group, one legend for all.

A chapter brings the looks of its curves; everything else is here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from manyarms_thesis.harness.claims import Measured
from manyarms_thesis.harness.figures import drawing, finish

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Series = Mapping[str, Mapping[float, Measured]]
Look = Callable[[str, int], tuple[str, str]]
"""Colour and dashes of a curve, from its name and its place among the others."""
Ticks = Literal["auto", "at points", "log"]


def draw_series(
    groups: Mapping[str, Series],
    look: Look,
    xlabel: str,
    ylabel: str,
    folder: Path,
    name: str,
    title: str,
    *,
    columns: int = 3,
    ticks: Ticks = "at points",
    log_y: bool = False,
    from_zero: bool = False,
    hidden: Sequence[str] = (),
) -> Path:
    """Write the figure.

    ticks: "at points" has one at every measured place, on a logarithmic axis where these span a factor of 4 or more; "auto" and
    "log" leave them to a linear or a logarithmic axis. hidden: curves without an entry in the legend.
    """
    columns = min(columns, len(groups))
    with drawing(math.ceil(len(groups) / columns), columns) as (figure, axes):
        for axis, (group, series) in zip(axes, groups.items(), strict=False):
            for place, (curve, points) in enumerate(series.items()):
                colour, dashes = look(curve, place)
                x = np.array(sorted(points), dtype=np.float64)
                mean = np.array([points[at].mean for at in sorted(points)])
                error = np.nan_to_num(np.array([points[at].standard_error for at in sorted(points)]))
                axis.errorbar(
                    x, mean, error, fmt=dashes, color=colour, linewidth=1.5, marker="o", markersize=3.0, elinewidth=1.0,
                    capsize=2, label=f"_{curve}" if curve in hidden else curve,
                )  # fmt: skip
            axis.set_title(group)
            axis.set_xlabel(xlabel)
            axis.set_ylabel(ylabel)
            _scale(axis, series, ticks)
            if log_y:
                axis.set_yscale("log")
            if from_zero:
                axis.set_ylim(bottom=0)
        return finish(figure, axes[: len(groups)], folder, name, title)


def _scale(axis: Axes, series: Series, ticks: Ticks) -> None:
    if ticks == "log":
        axis.set_xscale("log")
    if ticks != "at points":
        return
    places = sorted({x for points in series.values() for x in points})
    if places[0] > 0 and places[-1] / places[0] >= 4:
        axis.set_xscale("log")
    axis.minorticks_off()
    axis.set_xticks(places, [f"{value:,g}" for value in places])


__all__ = ["Look", "Series", "Ticks", "draw_series"]
