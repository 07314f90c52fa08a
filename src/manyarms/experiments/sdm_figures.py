"""Figures of the offline chapters: relative reward against the size of the log, or against a parameter."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from manyarms._typing import Array
from manyarms.experiments.claims import Measured, measured
from manyarms.experiments.figures import drawing, finish
from manyarms.experiments.results import Results
from manyarms.experiments.sdm_claims import relative
from manyarms.report import PALETTE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# sDM is blue and its variants differ in their dashes; direct methods have full lines, the others broken ones
LOOKS: Mapping[str, tuple[str, str]] = {
    "sDM": (PALETTE[0], "-"),
    "sDM-Lin": (PALETTE[0], "-"),
    "sDM-Log": (PALETTE[0], ":"),
    "DM (Bayes)": (PALETTE[1], "-"),
    "DM (Bayes)-Lin": (PALETTE[1], "-"),
    "DM (Freq)": (PALETTE[2], "-"),
    "DM (Freq)-Lin": (PALETTE[2], "-"),
    "IPS": (PALETTE[3], "--"),
    "snIPS": (PALETTE[4], "-."),
    "DR": (PALETTE[5], "--"),
    "MIPS": (PALETTE[6], "-."),
    "PC": (PALETTE[7], "--"),
    "IPS-min": (PALETTE[0], "-"),
    "IPS-max": (PALETTE[1], ":"),
    "cIPS": (PALETTE[0], "--"),
    "ES": (PALETTE[1], "--"),
    "ES-α=0.9": (PALETTE[2], "-"),
    "ES-α=0.95": (PALETTE[4], "-"),
    "covariance-dependent bound": ("#1a1a1a", ":"),
    "covariance-dependent, sharper": ("#8a8a8a", ":"),
    "explicit bound": ("#1a1a1a", "--"),
    "explicit, sharper": ("#8a8a8a", "--"),
    # wrong priors: a colour for each size of the error, dashes for what is wrong
    **{
        f"sDM, v={v}{part}": (PALETTE[colour], dashes)
        for v, colour in (("0.5", 2), ("1", 3), ("1.5", 4))
        for part, dashes in (("", "--"), (", mean only", ":"), (", covariance only", "-."))
    },
}
MARKERS = "oxs^"
OTHERS = [(colour, dashes) for dashes in ("--", ":", "-.") for colour in PALETTE[2:]]
Series = Mapping[str, Mapping[float, Measured]]


def look_of(name: str, place: int) -> tuple[str, str]:
    """Colour and dashes of a curve."""
    return LOOKS.get(name, OTHERS[place % len(OTHERS)])


def by_size(results: Results, panel: str, agents: Sequence[str] | None = None) -> dict[str, dict[float, Measured]]:
    """Relative reward of the agents of a panel (None: of all) for each size of log."""
    sizes = [float(n) for n in results.values(panel, results.agents(panel)[0], "n")[0]]
    out = {}
    for agent in results.agents(panel) if agents is None else agents:
        values = relative(results, panel, agent)
        out[agent] = {n: measured(values[:, i]) for i, n in enumerate(sizes)}
    return out


def reward_curves(
    results: Results,
    panels: Sequence[str],
    folder: Path,
    name: str,
    title: str,
    *,
    columns: int = 3,
    agents: Sequence[str] | None = None,
) -> Path:
    """Relative reward against the size of the log, one drawing a panel; of all agents, or of those named."""
    groups = {panel: by_size(results, panel, agents) for panel in panels}
    return curves(groups, "rows in the log", "relative reward", folder, name, title, columns=columns)


def curves(
    groups: Mapping[str, Series],
    xlabel: str,
    ylabel: str,
    folder: Path,
    name: str,
    title: str,
    *,
    columns: int = 3,
    logarithmic: bool = False,
) -> Path:
    """Measurements against a number, one drawing a group, one legend for all."""
    columns = min(columns, len(groups))
    with drawing(math.ceil(len(groups) / columns), columns) as (figure, axes):
        for axis, (group, series) in zip(axes, groups.items(), strict=False):
            for place, (curve, points) in enumerate(series.items()):
                colour, dashes = look_of(curve, place)
                x = np.array(list(points), dtype=np.float64)
                mean = np.array([point.mean for point in points.values()])
                error = np.nan_to_num(np.array([point.standard_error for point in points.values()]))
                axis.errorbar(
                    x, mean, error, fmt=dashes, color=colour, label=curve, linewidth=1.6, marker="o", markersize=3.0,
                    elinewidth=1.0, capsize=2,
                )  # fmt: skip
            _axes(axis, series, group, xlabel, ylabel, logarithmic)
        return finish(figure, axes[: len(groups)], folder, name, title)


def _axes(axis: Axes, series: Series, group: str, xlabel: str, ylabel: str, logarithmic: bool) -> None:
    ticks = sorted({x for points in series.values() for x in points})
    axis.set_title(group)
    axis.set_xlabel(xlabel)
    axis.set_ylabel(ylabel)
    if ticks[0] > 0 and ticks[-1] / ticks[0] > 4:
        axis.set_xscale("log")
    axis.minorticks_off()
    axis.set_xticks(ticks, [f"{value:,g}" for value in ticks])
    if logarithmic:
        axis.set_yscale("log")


def profile(
    x: Array, lines: Mapping[str, tuple[Array, Array]], truth: Array, folder: Path, name: str, title: str
) -> Path:
    """Estimates (mean and spread) along an axis, with the truth as a line; beside each other where they would cover."""
    with drawing(1, 1) as (figure, axes):
        (axis,) = axes
        axis.plot(x, truth, "-", color="#1a1a1a", linewidth=1.8, label="true value")
        for place, (label, (mean, error)) in enumerate(lines.items()):
            colour, _ = look_of(label, place)
            aside = 0.2 * (place - (len(lines) - 1) / 2)
            axis.errorbar(
                x + aside, mean, error, fmt=MARKERS[place % len(MARKERS)], color=colour, label=label, markersize=3.0,
                elinewidth=0.5, linewidth=0,
            )  # fmt: skip
        axis.set_xlabel("action a")
        axis.set_ylabel("estimated value of playing a")
        return finish(figure, axes, folder, name, title)


__all__ = ["LOOKS", "by_size", "curves", "look_of", "profile", "reward_curves"]
