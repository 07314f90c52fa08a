"""Pictures of two landscapes: surfaces, contours and the paths of gradient ascent."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from manyarms._base.palette import PALETTE
from manyarms._base.plotting import drawing, finish
from manyarms_thesis.harness.figures import Drawn
from manyarms_thesis.harness.results import Results
from manyarms_thesis.pwll.finite_softmax import FiniteSoftmax, Objective, lattice

WINDOW, POINTS, NEAR = 10.0, 61, 0.05
ARRIVED, LOST = PALETTE[5], PALETTE[1]
NAMES: Mapping[str, Objective] = {"cLPI": "likelihood", "cIPS": "value"}
MOST_ROWS = 6


def landscapes(
    problems: Mapping[str, FiniteSoftmax],
    smoothness: Callable[[FiniteSoftmax, Objective], float],
    steps: int,
    folder: Path,
    name: str,
    title: str,
) -> Drawn:
    """A row a log: cLPI from above and in 3D, cIPS likewise."""
    shown = dict(list(problems.items())[:MOST_ROWS])
    with drawing(len(shown), 4) as (figure, axes):
        shown_axes = []
        for row, (words, problem) in enumerate(shown.items()):
            for place, (label, objective) in enumerate(NAMES.items()):
                flat = axes[4 * row + 2 * place + 1]
                axes[4 * row + 2 * place].remove()
                solid: Any = figure.add_subplot(len(shown), 4, 4 * row + 2 * place + 1, projection="3d")
                shown_axes += [solid, flat]
                _surface(solid, problem, objective)
                _contours(flat, problem, objective, 1 / smoothness(problem, objective), steps)
                # the log's name above the first surface, on its own lines: a long one would run into the next drawing
                solid.set_title(f"\n\n{label}" if place else words.replace("; ", "\n") + f"\n{label}", loc="left")
                flat.set_title(f"{label}, paths of {steps:,} steps")
        path = finish(figure, shown_axes, folder, name, title)
    return Drawn(
        path,
        "On cLPI paths arrive from everywhere; on cIPS some that start on flat ground stay there. A row is a log, with the "
        "actions that were rewarded in it; each objective is drawn as a surface over the two free logits, and from above "
        f"(brighter is higher) with {steps:,} steps of gradient ascent from 25 starts (dots; crosses are where they end): full "
        "blue paths arrive at the maximum, broken orange ones do not.",
    )


def _ground(problem: FiniteSoftmax, objective: Objective) -> tuple[Any, Any, Any]:
    places = lattice(-WINDOW, WINDOW, POINTS)
    values = problem.of(places, objective)
    shape = (POINTS, POINTS)
    return places[:, 0].reshape(shape), places[:, 1].reshape(shape), values.reshape(shape)


def _surface(axis: Any, problem: FiniteSoftmax, objective: Objective) -> None:
    x, y, z = _ground(problem, objective)
    axis.plot_surface(x, y, z, cmap="viridis", rcount=40, ccount=40, linewidth=0, rasterized=True)
    axis.set_xlabel("θ₁", labelpad=-6)
    axis.set_ylabel("θ₂", labelpad=-6)
    axis.tick_params(pad=-2, labelsize=7)
    axis.view_init(elev=28, azim=-125)


def _contours(axis: Any, problem: FiniteSoftmax, objective: Objective, step: float, steps: int) -> None:
    x, y, z = _ground(problem, objective)
    axis.contourf(x, y, z, levels=24, cmap="viridis", alpha=0.85)
    starts = lattice(-0.9 * WINDOW, 0.9 * WINDOW, 5)
    paths = problem.path(starts, objective, step, steps)
    arrived = problem.distance(paths[-1], objective) <= NEAR
    for i in range(len(starts)):
        colour, dashes, label = (ARRIVED, "-", "arrives") if arrived[i] else (LOST, "--", "does not arrive")
        axis.plot(paths[:, i, 0], paths[:, i, 1], color="white", linewidth=2.2, alpha=0.6)
        axis.plot(paths[:, i, 0], paths[:, i, 1], color=colour, linewidth=1.2, linestyle=dashes, label=label)
        axis.plot(*paths[0, i], "o", color=colour, markersize=2.5)
        axis.plot(*paths[-1, i], "X", color=colour, markersize=5, markeredgecolor="white", markeredgewidth=0.5)
    axis.set_xlim(-WINDOW, WINDOW)
    axis.set_ylim(-WINDOW, WINDOW)
    axis.set_xlabel("θ₁")
    axis.set_ylabel("θ₂")
    axis.grid(False)


def shares(results: Results, steps: Sequence[str], folder: Path, name: str, title: str) -> Drawn:
    """For each start, the share of logs from which gradient ascent arrived: one drawing an objective and panel."""
    panels = results.panels
    with drawing(len(panels), 3) as (figure, axes):
        for row, panel in enumerate(panels):
            for place, (label, colour) in enumerate(zip(NAMES, (PALETTE[0], PALETTE[1]), strict=True)):
                axis = axes[3 * row + place]
                reached = (results.values(panel, label, "distance") <= NEAR).mean(axis=0)
                side = round(len(reached) ** 0.5)
                edge = WINDOW * side / (side - 1)  # starts reach to the window's edges: a cell is centred on its start
                image = axis.imshow(
                    reached.reshape(side, side).T, origin="lower", vmin=0, vmax=1, cmap="cividis",
                    extent=(-edge, edge, -edge, edge), aspect="auto",
                )  # fmt: skip
                axis.set_title(f"{label}, {panel}")
                axis.set_xlabel("start θ₁")
                axis.set_ylabel("start θ₂")
                axis.grid(False)
                figure.colorbar(image, ax=axis)
                bars = axes[3 * row + 2]
                means = [results.final(panel, f"{label}{words}", "arrived").mean() for words in steps]
                bars.bar(np.arange(len(steps)) + 0.4 * place - 0.2, means, 0.38, color=colour, label=label)
            bars.set_xticks(
                range(len(steps)), [words.removeprefix(", step × ") + "/L" if words else "step 1/L" for words in steps]
            )
            bars.set_ylim(0, 1.05)
            bars.set_axisbelow(True)
            bars.set_ylabel("share of starts that arrive")
            bars.set_title(panel)
        path = finish(figure, figure.axes, folder, name, title)  # with the bars of colours
    return Drawn(
        path,
        "From which starts gradient ascent arrives at the maximum: the share of logs (yellow: all of them, dark: none) by the "
        "start's two logits, with a step of 1/L, for cLPI and cIPS; and the share of all starts that arrive with steps of 1/L, "
        f"a tenth of it and ten times as much. A row is a kind of log; {results.cells[panels[0]].runs} logs of each.",
    )


__all__ = ["landscapes", "shares"]
