"""Figures without a display, as SVG, PDF and PNG; matplotlib is imported when one is drawn."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from manyarms._base.files import write_atomically
from manyarms._base.typing import Array
from manyarms.errors import MissingExtra

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PNG_DPI = 200
PAGE = 10.0  # inches: the width of a page (`html.STYLE`) at 96 dots an inch
SETTINGS: Mapping[Any, Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e3e3e3",
    "grid.linewidth": 0.6,
    "axes.titlesize": 9.5,
    "svg.fonttype": "none",
    "pdf.fonttype": 42,  # fonts that a reader can search and an editor can set
    "svg.hashsalt": "manyarms",
    "figure.dpi": 130,
}


def mean_and_error(values: Array) -> tuple[Array, Array]:
    """Mean and standard error over the rows (runs); with one run the error is zero."""
    error = values.std(axis=0, ddof=1) / math.sqrt(len(values)) if len(values) > 1 else np.zeros(values.shape[1:])
    return values.mean(axis=0), error


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
        each = {1: 4.0, 2: 3.4}.get(columns, 2.7)
        figure = Figure(figsize=(PAGE, each * rows + 0.9), layout="constrained")
        FigureCanvasAgg(figure)
        axes = [figure.add_subplot(rows, columns, 1 + i) for i in range(rows * columns)]
        yield figure, axes


def finish(figure: Figure, axes: Sequence[Axes], folder: Path, name: str, title: str) -> Path:
    """One legend for all curves with a name, a title, and the files; the SVG's path. Axes that are not listed are hidden."""
    for axis in figure.axes:
        if axis not in axes:
            axis.set_visible(False)
    handles = {label: handle for axis in axes for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    if handles:  # a drawing may have its names on an axis
        # an entry is a line and a name of about 0.08 inches a letter, and at least 1.3 inches wide
        width = max(1.3, 0.6 + 0.08 * max(len(label) for label in handles))
        columns = max(1, min(len(handles), int(figure.get_figwidth() / width)))
        figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=columns, frameon=False)
    figure.suptitle(title, fontsize=11)
    path = folder / f"{name}.svg"
    write_atomically(path, lambda stream: figure.savefig(stream, format="svg", metadata={"Date": None}))
    write_atomically(path.with_suffix(".png"), lambda stream: figure.savefig(stream, format="png", dpi=PNG_DPI))
    # without a date, the same figure is the same file
    write_atomically(
        path.with_suffix(".pdf"), lambda stream: figure.savefig(stream, format="pdf", metadata={"CreationDate": None})
    )
    return path


__all__ = ["drawing", "finish", "mean_and_error"]
