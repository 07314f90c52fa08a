"""Figures of online experiments: regret over rounds, and final regret against a parameter."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from manyarms._base.html import PALETTE
from manyarms._base.typing import Array
from manyarms.errors import MissingExtra
from manyarms_thesis.harness.results import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# an agent looks the same in every figure; variants of one method share its colour and differ in their dashes
LOOKS: Mapping[str, tuple[str, str]] = {
    "meTS-Lin": (PALETTE[0], "-"),
    "meTS-Lin-Fa": (PALETTE[5], "--"),
    "meTS-Lin-Fb": (PALETTE[7], ":"),
    "meTS-Lin-mis": (PALETTE[3], "--"),
    "meTS-GLM": (PALETTE[3], "-"),
    "meTS-GLM-Fa": (PALETTE[7], "--"),
    "LinTS": (PALETTE[1], "-"),
    "GLM-TS": (PALETTE[1], "-"),
    "LinUCB": (PALETTE[4], "-."),
    "UCB-GLM": (PALETTE[4], "-."),
    "GLM-UCB": (PALETTE[6], ":"),
    "HierTS": (PALETTE[2], "-"),
    "meTS, effects known": (PALETTE[2], "--"),
    "bound": ("#1a1a1a", ":"),
}
# columns whose names are not what a reader would write
NAMES: Mapping[str, str] = {"effect_variance": "σ_Ψ²", "action_variance": "σ₀²"}
SETTINGS: Mapping[Any, Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e3e3e3",
    "grid.linewidth": 0.6,
    "axes.titlesize": 9.5,
    "svg.fonttype": "none",
    "svg.hashsalt": "manyarms",
    "figure.dpi": 130,
}


def mean_and_error(values: Array) -> tuple[Array, Array]:
    """Mean and standard error over the rows (runs); with one run the error is zero."""
    error = values.std(axis=0, ddof=1) / math.sqrt(len(values)) if len(values) > 1 else np.zeros(values.shape[1])
    return values.mean(axis=0), error


def regret_curves(
    results: Results, panels: Sequence[str], folder: Path, name: str, title: str, *, columns: int = 3
) -> Path:
    """Cumulative regret over rounds, one panel beside the other, one legend for all."""
    columns = min(columns, len(panels))
    rows = math.ceil(len(panels) / columns)
    with drawing(rows, columns) as (figure, axes):
        for axis, panel in zip(axes, panels, strict=False):
            for agent in results.agents(panel):
                x = results.values(panel, agent, "round")[0]
                mean, error = mean_and_error(results.values(panel, agent, "regret"))
                _curve(axis, agent, x, mean, error)
            axis.set_title(panel)
            axis.set_xlabel("round")
            axis.set_ylabel("cumulative regret")
            axis.set_ylim(bottom=0)
            axis.set_xlim(left=0)
        return finish(figure, axes[: len(panels)], folder, name, title)


def final_regret(
    results: Results,
    groups: Mapping[str, Sequence[str]],
    parameter: str | Mapping[str, str],
    folder: Path,
    name: str,
    title: str,
    *,
    extra: str | None = None,
    logarithmic: bool = False,
) -> Path:
    """Final regret against a parameter (one for all groups of panels, or one for each): one drawing a group.

    `extra` names a further column to draw.
    """
    columns = min(3, len(groups))
    with drawing(math.ceil(len(groups) / columns), columns) as (figure, axes):
        for axis, (group, panels) in zip(axes, groups.items(), strict=False):
            varying = parameter if isinstance(parameter, str) else parameter[group]
            x = np.array([results.parameter(panel, varying) for panel in panels], dtype=np.float64)
            agents = dict.fromkeys(agent for panel in panels for agent in results.agents(panel))
            for agent in agents:
                values = np.stack([results.final(panel, agent) for panel in panels], axis=1)
                _curve(axis, agent, x, *mean_and_error(values), marker="o")
                if extra is not None and extra in results.runs[panels[0], agent, 0]:
                    more = np.stack([results.final(panel, agent, extra) for panel in panels], axis=1)
                    _curve(axis, extra, x, *mean_and_error(more), marker="s")
            axis.set_title(group)
            axis.set_xlabel(NAMES.get(varying, varying))
            axis.set_ylabel("final regret")
            if x.min() > 0:
                axis.set_xscale("log")
            axis.minorticks_off()
            axis.set_xticks(x, [f"{value:,g}" for value in x])
            if logarithmic:
                axis.set_yscale("log")
            else:
                axis.set_ylim(bottom=0)
        return finish(figure, axes[: len(groups)], folder, name, title)


@contextmanager
def drawing(rows: int, columns: int) -> Iterator[tuple[Figure, list[Axes]]]:
    """A figure with rows x columns axes, drawn without a display."""
    try:
        import matplotlib
    except ImportError as error:
        raise MissingExtra("matplotlib", "experiments", "drawing figures") from error
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with matplotlib.rc_context(dict(SETTINGS)):
        width = 3.6 * columns if columns > 1 else 6.0
        figure = Figure(figsize=(width, 2.7 * rows + 0.9), layout="constrained")
        FigureCanvasAgg(figure)
        axes = [figure.add_subplot(rows, columns, 1 + i) for i in range(rows * columns)]
        yield figure, axes


def finish(figure: Figure, axes: Sequence[Axes], folder: Path, name: str, title: str) -> Path:
    """One legend for all axes, a title, and the files; the SVG's path."""
    for axis in figure.axes:
        if axis not in axes:
            axis.set_visible(False)
    handles = {label: handle for axis in axes for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    # an entry is a line and a name of about 0.08 inches a letter, and at least 1.3 inches wide
    width = max(1.3, 0.6 + 0.08 * max(len(label) for label in handles))
    columns = max(1, min(len(handles), int(figure.get_figwidth() / width)))
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=columns, frameon=False)
    figure.suptitle(title, fontsize=11)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.svg"
    figure.savefig(path, metadata={"Date": None})
    figure.savefig(folder / f"{name}.png")
    return path


def _curve(axis: Axes, agent: str, x: Array, mean: Array, error: Array, marker: str = "") -> None:
    colour, dashes = LOOKS.get(agent, ("#1a1a1a", "-"))
    axis.plot(x, mean, dashes, color=colour, label=agent, linewidth=1.6, marker=marker, markersize=3.5)
    axis.fill_between(x, mean - error, mean + error, color=colour, alpha=0.2, linewidth=0)


__all__ = ["NAMES", "drawing", "final_regret", "finish", "mean_and_error", "regret_curves"]
