"""Pictures of the book, drawn from stored summaries: vector graphics, readable in print, safe for the colour-blind.

Over       a curve over the rounds or epochs for each method
Against    what methods end with, against a number in the names of panels (K=100, K=1,000, ...)
Bars       what methods end with in one panel, one bar or several (drawn actions, most probable action) for each
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from manyarms._base.files import write_atomically
from manyarms._base.palette import PALETTE, marker_of
from manyarms._base.plotting import SETTINGS
from manyarms.errors import MissingExtra
from manyarms_thesis.book.answers import StaleAnswer
from manyarms_thesis.harness.figures import ONLINE, Look
from manyarms_thesis.harness.store import Point, Record
from manyarms_thesis.pwll.figures import LOOKS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PAGE_WIDTH = 7.0  # inches: two columns of print; a column is half of it
PRINT: Mapping[Any, Any] = {
    "font.size": 7.5, "axes.titlesize": 8, "axes.labelsize": 7.5, "xtick.labelsize": 7, "ytick.labelsize": 7,
    "legend.fontsize": 7, "lines.linewidth": 1.3, "lines.markersize": 3, "axes.linewidth": 0.6, "figure.dpi": 200,
}  # fmt: skip


@dataclass(frozen=True)
class Over:
    """A curve over the rounds for each method of a panel."""

    title: str
    experiment: str
    panel: str
    column: str = "regret"
    variant: str = ""
    methods: Sequence[str] = ()
    xlabel: str = "round"
    ylabel: str = "cumulative regret"


@dataclass(frozen=True)
class Against:
    """What methods end with, against a number in panels' names; words: what these names have besides."""

    title: str
    experiment: str
    number: str  # a regular expression with one group
    words: str = ""
    column: str = "regret"
    variant: str = ""
    methods: Sequence[str] = ()
    xlabel: str = "number of actions K"
    ylabel: str = "final regret"
    log_y: bool = False
    looks: Mapping[str, Look] = field(default_factory=dict)


@dataclass(frozen=True)
class Bars:
    """What methods end with in one panel; columns: one bar for each, by its name in the legend."""

    title: str
    experiment: str
    panel: str
    columns: Mapping[str, str]
    variant: str = ""
    methods: Sequence[str] = ()
    ylabel: str = "value"
    log_y: bool = False


Drawing = Over | Against | Bars


def draw(drawings: Sequence[Drawing], records: Mapping[str, Record], path: Path, columns: int = 3) -> None:
    """All drawings of a chapter side by side, as one SVG."""
    try:
        import matplotlib
    except ImportError as error:
        raise MissingExtra("matplotlib", "experiments", "drawing figures") from error
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    columns = 2 if len(drawings) == 4 else min(columns, len(drawings))
    rows = math.ceil(len(drawings) / columns)
    with matplotlib.rc_context({**SETTINGS, **PRINT}):
        figure = Figure(figsize=(PAGE_WIDTH, {1: 3.2, 2: 2.5}.get(columns, 2.1) * rows + 0.3), layout="constrained")
        FigureCanvasSVG(figure)
        axes = [figure.add_subplot(rows, columns, 1 + i) for i in range(len(drawings))]
        for axis, drawing in zip(axes, drawings, strict=True):
            record = records.get(drawing.experiment)
            if record is None:
                raise StaleAnswer(f"a picture shows {drawing.experiment}, which has no stored result")
            _draw_one(axis, drawing, record)
            axis.set_title(drawing.title)
            if axis.get_yscale() == "linear" and axis.get_ylim()[1] >= 1_000:
                axis.yaxis.set_major_formatter("{x:,.0f}")
            if isinstance(drawing, Over) and axis.get_xlim()[1] >= 1_000:
                axis.xaxis.set_major_formatter("{x:,.0f}")
        handles = {label: one for axis in axes for one, label in zip(*axis.get_legend_handles_labels(), strict=True)}
        width = 0.4 + 0.055 * max(len(label) for label in handles)  # inches of an entry
        ncols = max(1, min(len(handles), int(PAGE_WIDTH / width)))
        figure.set_figheight(figure.get_figheight() + 0.14 * math.ceil(len(handles) / ncols))
        figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=ncols, frameon=False)
        drawn = BytesIO()
        figure.savefig(drawn, format="svg", metadata={"Date": None})
    write_atomically(path, lambda stream: stream.write(lighter(drawn.getvalue())))


def lighter(svg: bytes) -> bytes:
    """A drawing whose paths have two decimals of a point, where matplotlib writes six: less than can be seen."""
    shorter = re.compile(rb"(\.\d\d)\d+")
    return re.sub(rb' d="[^"]*"', lambda path: shorter.sub(rb"\1", path.group()), svg)


def _over(axis: Axes, drawing: Over, record: Record) -> None:
    for place, (method, points) in enumerate(
        _curves(record, drawing.variant, drawing.panel, drawing.column, drawing.methods).items()
    ):
        x = [0.0 if point.at is None else point.at for point in points]
        mean, error = _means(points)
        colour, dashes = look_of(method, place)
        every = max(1, len(x) // 5)
        axis.plot(x, mean, dashes, color=colour, label=method, marker=marker_of(colour), markevery=(every - 1, every))
        low, high = ([m + sign * e for m, e in zip(mean, error, strict=True)] for sign in (-1, 1))
        axis.fill_between(x, low, high, color=colour, alpha=0.2, linewidth=0)
    axis.set_xlabel(drawing.xlabel)
    axis.set_ylabel(drawing.ylabel)
    axis.set_ylim(bottom=0)
    axis.set_xlim(left=0)


def _against(axis: Axes, drawing: Against, record: Record) -> None:
    series: dict[str, dict[float, Point]] = {}
    for (variant, panel, method, column), points in record.curves.items():
        found = re.search(drawing.number, panel)
        wanted = (variant, column) == (drawing.variant, drawing.column) and drawing.words in panel
        if found and wanted and (not drawing.methods or method in drawing.methods):
            series.setdefault(method, {})[float(found.group(1).replace(",", ""))] = points[-1]
    if not series:
        raise StaleAnswer(
            f"a picture shows {drawing.experiment}, “{drawing.words}”, {drawing.column}, which is not stored"
        )
    for place, method in enumerate(m for m in (drawing.methods or series) if m in series):
        ends = series[method]
        colour, dashes = drawing.looks.get(method) or look_of(method, place)
        x = sorted(ends)
        mean, error = _means([ends[at] for at in x])
        axis.errorbar(
            x, mean, error, fmt=dashes, color=colour, label=method, marker=marker_of(colour), elinewidth=0.8, capsize=1.5
        )  # fmt: skip
    places = sorted({at for ends in series.values() for at in ends})
    if places[-1] >= 4 * places[0] > 0:
        axis.set_xscale("log")
    if drawing.log_y:
        axis.set_yscale("log")
    else:
        axis.set_ylim(bottom=0)
    axis.set_xlabel(drawing.xlabel)
    axis.set_ylabel(drawing.ylabel)


def _bars(axis: Axes, drawing: Bars, record: Record) -> None:
    width = 0.8 / len(drawing.columns)
    names: list[str] = []
    for shift, (column, label) in enumerate(drawing.columns.items()):
        found = _curves(record, drawing.variant, drawing.panel, column, drawing.methods)
        names = list(found)
        mean, error = _means([points[-1] for points in found.values()])
        at = [place + (shift - (len(drawing.columns) - 1) / 2) * width for place in range(len(names))]
        axis.bar(at, mean, 0.9 * width, yerr=error, color=PALETTE[shift], label=label, error_kw={"elinewidth": 0.8})
    axis.set_xticks(
        range(len(names)), names, rotation=35 if len(names) > 3 else 0, ha="right" if len(names) > 3 else "center"
    )
    axis.set_ylabel(drawing.ylabel)
    axis.set_axisbelow(True)
    if drawing.log_y:
        axis.set_yscale("log")


def _draw_one(axis: Axes, drawing: Drawing, record: Record) -> None:
    if isinstance(drawing, Over):
        _over(axis, drawing, record)
    elif isinstance(drawing, Against):
        _against(axis, drawing, record)
    else:
        _bars(axis, drawing, record)


def _curves(record: Record, variant: str, panel: str, column: str, methods: Sequence[str]) -> dict[str, list[Point]]:
    found = {m: points for (v, p, m, c), points in record.curves.items() if (v, p, c) == (variant, panel, column)}
    chosen = {method: found[method] for method in (methods or found) if method in found}
    if not chosen:
        raise StaleAnswer(f"a picture shows {record.name}, “{panel}”, {column}, which is not stored")
    return chosen


def _means(points: Sequence[Point]) -> tuple[list[float], list[float]]:
    errors = [0.0 if math.isnan(point.standard_error) else point.standard_error for point in points]
    return [point.mean for point in points], errors


def look_of(method: str, place: int) -> Look:
    """Colour and dashes of a method, the same as in the experiments' own figures."""
    base = method.split(",")[0]
    for table in (ONLINE, LOOKS):
        if method in table:
            return table[method]
        if base in table:
            return table[base][0], ":"
    return PALETTE[place % len(PALETTE)], ("-", "--", "-.", ":")[place // len(PALETTE) % 4]


__all__ = ["Against", "Bars", "Drawing", "Over", "draw", "lighter", "look_of"]
