"""What the methods of `pwll-escape` are called, when they left, and the pictures of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from manyarms._base.palette import PALETTE, marker_of
from manyarms._base.typing import Array
from manyarms_thesis.harness.claims import measured
from manyarms_thesis.harness.figures import GREY, Drawn, Look, draw_band, draw_grid, draw_series, means_of
from manyarms_thesis.harness.results import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes

EPSILONS = (1e-14, 1e-8, 1e-6)
STARTS = ("zero", "random", "logging")
LEFT = 0.5  # of the value of the policy that maximises cLPI: from there on the plateau is behind


def _adam(epsilon: float) -> str:
    return f"Adam ε={epsilon:.0e}".replace("e-0", "e-")


def method_name(objective: str, optimiser: str) -> str:
    """The name of an objective and optimiser together."""
    return f"{objective}, {optimiser}"


OPTIMISERS = ("SGD", *(_adam(epsilon) for epsilon in EPSILONS))
COLOURS = dict(zip(OPTIMISERS, (PALETTE[1], PALETTE[2], PALETTE[0], PALETTE[3]), strict=True))


def waited(results: Results, panel: str, objective: str, optimiser: str) -> Array:
    """(runs,) logarithm (base 10) of the steps until the plateau was left, or of all steps where it was not."""
    return np.log10(np.maximum(results.final(panel, method_name(objective, optimiser), "waited"), 1.0))


def left_share(results: Results, panel: str, objective: str, optimiser: str) -> Array:
    """(runs,) 1 where the plateau was left within the budget, else 0."""
    return results.final(panel, method_name(objective, optimiser), "left")


SHOWN = [method_name("cIPS", one) for one in OPTIMISERS] + [
    method_name("cLPI", "SGD"),
    method_name("cLPI", OPTIMISERS[2]),
]


def _look(name: str, place: int) -> Look:
    """Colours for optimisers; full for cIPS, dotted for cLPI."""
    objective, optimiser = name.split(", ")
    return COLOURS[optimiser], "-" if objective == "cIPS" else ":"


def figures(results: Results, folder: Path) -> Iterator[Drawn]:
    steps = next(iter(results.cells.values())).rounds
    groups = {
        f"{start} start": {
            name: {
                float(results.parameter(panel, "K")): measured(results.final(panel, name, "waited"))
                for panel in results.where(start=start)
            }
            for name in SHOWN
        }
        for start in STARTS
        if results.where(start=start)
    }
    yield draw_series(
        groups, folder, "escape", "Steps until the policy leaves the plateau",
        xlabel="number of actions K", ylabel="steps until half of cLPI's best value", look=_look, log_y=True, from_zero=False,
        level=float(steps),
        seen="SGD on cIPS (full orange) waits the longer the more actions there are, and Adam does so once gradients are far "
        "below its ε; cLPI (dotted; with other ε it is much the same) leaves from every start. At the broken line "
        f"({steps:,} steps) the budget ends: runs that did not leave count with all of it, so that means near it are "
        "lower bounds.",
    )  # fmt: skip
    K = max(results.levels("K"))
    panels = {f"{results.parameter(panel, 'start')} start": panel for panel in results.where(K=K)}

    def draw(axis: Axes, panel: str) -> None:
        for name in SHOWN:
            t, values = results.values(panel, name, "t")[0], results.values(panel, name, "value")
            draw_band(axis, np.maximum(t, 0.7), values, _look(name, 0), name)
        axis.axhline(LEFT, color=GREY, linewidth=0.9, linestyle="--")
        axis.set_xscale("log")
        axis.set_ylim(bottom=0)
        axis.set_xlabel("step")
        axis.set_ylabel("value of drawn actions")

    runs = f"{next(iter(results.cells.values())).runs}"
    yield draw_grid(
        panels, draw, folder, "values", f"Value over steps, K = {K:,}",
        caption="Those that leave leave suddenly; those that stay show no progress at all. Value of drawn actions, in parts of "
        "the value of the policy that maximises cLPI; at the broken line the plateau counts as left. " + means_of(runs),
    )  # fmt: skip
    yield _collapse(results, folder)


def _collapse(results: Results, folder: Path) -> Drawn:
    """Adam's delay against the size of gradients."""
    colours = dict(zip(STARTS, (PALETTE[0], PALETTE[1], PALETTE[2]), strict=True))

    def draw(axis: Axes, _: str) -> None:
        for panel in results.panels:
            start = results.parameter(panel, "start")
            for optimiser, epsilon in zip(OPTIMISERS[1:], EPSILONS, strict=True):
                ratio = (
                    10 ** (waited(results, panel, "cIPS", optimiser) - waited(results, panel, "cLPI", optimiser)).mean()
                )
                size = float(results.final(panel, method_name("cIPS", optimiser), "gradient").mean()) / epsilon
                left = left_share(results, panel, "cIPS", optimiser).mean() == 1
                axis.plot(
                    size, ratio, marker_of(colours[start]), color=colours[start], markersize=5,
                    markerfacecolor=colours[start] if left else "none", label=f"{start} start" if left else "_",
                )  # fmt: skip
        axis.axvline(1.0, color=GREY, linewidth=0.9, linestyle="--")
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_xlabel("gradient of cIPS at the start, over ε")
        axis.set_ylabel("steps of cIPS over steps of cLPI")

    return draw_grid(
        {"all starts, K and ε": ""}, draw, folder, "epsilon", "Adam's delay against its ε",
        caption="Where the gradient of cIPS (of a logged action, at the start) is above ε, to the right of the broken line, "
        "Adam leaves with cIPS no later than with cLPI; it falls behind where gradients are some ten to a hundred times below "
        "ε. Points of all starts, K and ε lie roughly on one curve. A point is the mean of the runs of a panel and an ε; "
        "hollow points did not all leave, and are lower bounds.",
    )  # fmt: skip


__all__ = ["EPSILONS", "LEFT", "OPTIMISERS", "STARTS", "figures", "left_share", "method_name", "waited"]
