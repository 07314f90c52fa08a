"""Regret a round over time, one drawing a panel, and what methods end with, as bars of a dot plot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from manyarms._base.palette import PALETTE, marker_of
from manyarms._base.text import in_words
from manyarms_thesis.drift.agents import CHOSEN, GRADIENT, MODEL, STATIC
from manyarms_thesis.harness.claims import measured
from manyarms_thesis.harness.figures import BLACK, GREY, Drawn, Look, draw_band, draw_grid, means_of
from manyarms_thesis.harness.results import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# what works alike shares a colour; dashes tell variants apart
LOOKS: Mapping[str, Look] = {
    STATIC: (BLACK, "-"),
    MODEL: (PALETTE[0], "-"),
    GRADIENT: (PALETTE[1], "-"),
    "model, scaled": (PALETTE[5], "--"),
    "model, greedy": (PALETTE[0], ":"),
    "static, scaled": (BLACK, "--"),
    "static, greedy": (BLACK, ":"),
    CHOSEN: (PALETTE[5], "-."),
    "discount": (PALETTE[2], "-"),
    "window": (PALETTE[2], "--"),
    "restarts": (PALETTE[3], "-"),
    "restarts, alarm": (PALETTE[3], "--"),
    "D-LinUCB": (PALETTE[4], "-"),
    "SW-LinUCB": (PALETTE[4], "--"),
    "D-LinUCB, width 1": (PALETTE[6], "-."),
}
# a drawing with everything would show nothing: the others are in the dot plot
DRAWN = (STATIC, MODEL, GRADIENT, "model, scaled", "discount", "restarts, alarm", "D-LinUCB")


def look(method: str) -> Look:
    """Colour and dashes of a method; half-lives tried beside the others are grey."""
    return LOOKS.get(method, (GREY, ":"))


def regret_over_time(
    results: Results,
    panels: Sequence[str],
    folder: Path,
    name: str,
    title: str,
    methods: Sequence[str] = DRAWN,
    *,
    seen: str,
) -> Drawn:
    """Regret a round of the methods that tell most, one drawing a panel."""

    def draw(axis: Axes, panel: str) -> None:
        for method in methods:
            x = results.values(panel, method, "round")[0]
            draw_band(axis, x, results.values(panel, method, "regret_a_round"), look(method), method)
        axis.set_xlabel("round")
        axis.set_ylabel("regret a round")
        axis.set_ylim(bottom=0)
        axis.set_xlim(left=0)

    caption = f"{seen} Dynamic regret a round over time; lower is better. {means_of(_runs(results, panels))}"
    return draw_grid({panel: panel for panel in panels}, draw, folder, name, title, columns=3, caption=caption)


def by_method(
    results: Results, panels: Sequence[str], folder: Path, name: str, title: str, column: str, label: str, *, seen: str
) -> Drawn:
    """What every method ends with, best first, one drawing a panel."""

    def draw(axis: Axes, panel: str) -> None:
        values = {method: measured(results.final(panel, method, column)) for method in results.methods(panel)}
        order = sorted(values, key=lambda method: -values[method].mean)
        for place, method in enumerate(order):
            colour, _ = look(method)
            one = values[method]
            axis.errorbar(
                one.mean, place, xerr=np.nan_to_num(one.standard_error), fmt=marker_of(colour), color=colour, markersize=4.5,
                elinewidth=1.2, capsize=2,
            )  # fmt: skip
        axis.set_yticks(range(len(order)), order, fontsize="small")
        axis.set_xlabel(label)
        axis.set_xlim(left=0)

    caption = f"{seen} Best first from the top down. {means_of(_runs(results, panels))}"
    return draw_grid({panel: panel for panel in panels}, draw, folder, name, title, columns=2, caption=caption)


def _runs(results: Results, panels: Sequence[str]) -> str:
    """How many runs the panels have, in words."""
    return in_words(sorted({results.cells[panel].runs for panel in panels}))


__all__ = ["by_method", "look", "regret_over_time"]
