"""Figures of the dTS chapter: regret over rounds, a measurement against a parameter, and clouds of points."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from manyarms._base.html import PALETTE
from manyarms._base.typing import Array
from manyarms_thesis.harness.claims import Measured
from manyarms_thesis.harness.figures import drawing, finish, mean_and_error
from manyarms_thesis.harness.results import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# dTS is blue, what it is compared with has other colours; variants of one method differ in their dashes
LOOKS: Mapping[str, tuple[str, str]] = {
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
    "HierTS": (PALETTE[2], "-"),
}
Series = Mapping[str, Mapping[float, Measured]]


def look_of(name: str, looks: Mapping[str, tuple[str, str]]) -> tuple[str, str]:
    """Colour and dashes of a curve."""
    return looks.get(name, LOOKS.get(name, ("#1a1a1a", ":")))


def regret_panels(
    results: Results,
    panels: Sequence[str],
    folder: Path,
    name: str,
    title: str,
    *,
    columns: int = 4,
    looks: Mapping[str, tuple[str, str]] | None = None,
) -> Path:
    """Cumulative regret over rounds, one panel beside the other, one legend for all."""
    columns = min(columns, len(panels))
    with drawing(math.ceil(len(panels) / columns), columns) as (figure, axes):
        for axis, panel in zip(axes, panels, strict=False):
            for agent in results.agents(panel):
                x = results.values(panel, agent, "round")[0]
                mean, error = mean_and_error(results.values(panel, agent, "regret"))
                colour, dashes = look_of(agent, looks or {})
                axis.plot(x, mean, dashes, color=colour, label=agent, linewidth=1.6)
                axis.fill_between(x, mean - error, mean + error, color=colour, alpha=0.2, linewidth=0)
            axis.set_title(_broken(panel))
            axis.set_xlabel("round")
            axis.set_ylabel("cumulative regret")
            axis.set_ylim(bottom=0)
            axis.set_xlim(left=0)
        return finish(figure, axes[: len(panels)], folder, name, title)


def against(
    groups: Mapping[str, Series],
    labels: Mapping[str, str] | str,
    folder: Path,
    name: str,
    title: str,
    *,
    ylabel: str = "final regret",
    logarithmic: bool = False,
    level: float | None = None,
    even: bool = False,
    from_zero: bool = True,
    looks: Mapping[str, tuple[str, str]] | None = None,
) -> Path:
    """Measurements against a parameter, one drawing a group, curves by name.

    level draws a horizontal line; even places the parameter's values at even distances, whatever they are; from_zero lets the
    vertical axis begin at zero.
    """
    columns = min(3, len(groups))
    with drawing(math.ceil(len(groups) / columns), columns) as (figure, axes):
        for axis, (group, series) in zip(axes, groups.items(), strict=False):
            values = sorted({x for points in series.values() for x in points})
            for curve, points in series.items():
                colour, dashes = look_of(curve, looks or {})
                x = np.array([values.index(value) if even else value for value in points], dtype=np.float64)
                mean = np.array([point.mean for point in points.values()])
                error = np.nan_to_num(np.array([point.standard_error for point in points.values()]))
                axis.errorbar(
                    x, mean, error, fmt=dashes, color=colour, label=curve, linewidth=1.6, marker="o", markersize=3.5,
                    elinewidth=1.0, capsize=2,
                )  # fmt: skip
            axis.set_xlabel(labels if isinstance(labels, str) else labels[group])
            axis.set_ylabel(ylabel)
            _scales(axis, values, even)
            if logarithmic:
                axis.set_yscale("log")
            elif from_zero:
                axis.set_ylim(bottom=0)
            axis.set_title(group)
            if level is not None:
                axis.axhline(level, color="#8a8a8a", linewidth=0.9, linestyle="--")
        return finish(figure, axes[: len(groups)], folder, name, title)


def _scales(axis: Axes, values: Sequence[float], even: bool) -> None:
    if not even and values[0] > 0 and values[-1] / values[0] > 4:
        axis.set_xscale("log")
    axis.minorticks_off()
    places = list(range(len(values))) if even else values
    axis.set_xticks(places, [f"{value:,g}" for value in values], rotation=30 if len(values) > 5 else 0)


def clouds(groups: Mapping[str, Mapping[str, Array]], folder: Path, name: str, title: str, *, columns: int = 3) -> Path:
    """Points in the plane, one drawing a group, the first cloud behind the others; the same axes everywhere."""
    columns = min(columns, len(groups))
    everything = np.concatenate([cloud for group in groups.values() for cloud in group.values()])
    low, high = np.quantile(everything, 0.002, axis=0), np.quantile(everything, 0.998, axis=0)
    margin = 0.1 * (high - low)
    with drawing(math.ceil(len(groups) / columns), columns) as (figure, axes):
        for axis, (group, points) in zip(axes, groups.items(), strict=False):
            for (label, cloud), colour in zip(points.items(), (PALETTE[0], PALETTE[1], PALETTE[2]), strict=False):
                axis.scatter(cloud[:, 0], cloud[:, 1], s=4, alpha=0.45, color=colour, linewidths=0)
                axis.scatter([], [], s=30, color=colour, label=label)  # for the legend
            axis.set_axisbelow(True)
            axis.set_aspect("equal")
            axis.set_title(group)
            axis.set_xlim(low[0] - margin[0], high[0] + margin[0])
            axis.set_ylim(low[1] - margin[1], high[1] + margin[1])
        return finish(figure, axes[: len(groups)], folder, name, title)


def _broken(panel: str) -> str:
    """A panel's name on two lines."""
    parts = panel.split(", ")
    half = (len(parts) + 1) // 2
    return panel if len(panel) < 32 else ", ".join(parts[:half]) + "\n" + ", ".join(parts[half:])


__all__ = ["LOOKS", "Series", "against", "clouds", "look_of", "regret_panels"]
