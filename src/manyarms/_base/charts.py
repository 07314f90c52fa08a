"""Charts as SVG: curves, and the ticks and labels of axes. Colours are the page's, so that they fit a light and a dark one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from manyarms._base.html import WIDTH, svg, svg_text
from manyarms._base.palette import DASHES, MARKERS, colour
from manyarms._base.typing import Array

GRID = 'style="stroke: var(--rule)"'
LETTER = 8.0  # width of a letter of a curve's name, at most on average: 13 pixels, bold
MOST_MARKERS = 12  # on a curve


@dataclass(frozen=True)
class Series:
    """A curve with a band around it."""

    name: str
    x: Array
    y: Array
    band: Array


def line_chart(
    series: Sequence[Series], x_label: str, y_label: str, *, title: str, from_zero: bool = True, width: float = WIDTH
) -> str:
    """Curves with bands as SVG, each named at its end; the y axis begins at 0 unless told not to."""
    height, left, top, bottom = min(440.0, 0.75 * width), 84.0, 16.0, 52.0
    right = max(96.0, 24.0 + LETTER * max(len(s.name) for s in series))
    x_end = max(float(s.x[-1]) for s in series)
    y_end = max(float((s.y + s.band).max()) for s in series)
    if from_zero:
        y_start, y_end = 0.0, y_end or 1.0
        y_ticks = nice_ticks(y_end)
        y_end = max(y_end, y_ticks[-1])
    else:
        y_start = min(float((s.y - s.band).min()) for s in series)
        margin = 0.05 * (y_end - y_start) or 0.05 * abs(y_end) or 1.0
        y_start, y_end = y_start - margin, y_end + margin
        y_ticks = ticks_between(y_start, y_end)
    x_ticks = nice_ticks(x_end)

    def px(x: float) -> float:
        return left + (width - left - right) * x / x_end

    def py(y: float) -> float:
        return height - bottom - (height - top - bottom) * (y - y_start) / (y_end - y_start)

    parts = []
    for tick in y_ticks:
        parts.append(f'<line x1="{left}" x2="{width - right}" y1="{py(tick):.1f}" y2="{py(tick):.1f}" {GRID}/>')
        parts.append(svg_text(left - 8, py(tick) + 4, f"{tick:,.10g}", "end"))
    parts += [svg_text(px(tick), height - bottom + 20, f"{tick:,.10g}") for tick in x_ticks]
    parts += axis_labels(x_label, y_label, (left + width - right) / 2, (top + height - bottom) / 2, height)
    heights = _spread([py(float(s.y[-1])) for s in series], 16.0)
    for place, (s, label) in enumerate(zip(series, heights, strict=True)):
        upper = [f"{px(x):.1f},{py(y):.1f}" for x, y in zip(s.x, s.y + s.band, strict=True)]
        lower = [f"{px(x):.1f},{py(max(y, y_start)):.1f}" for x, y in zip(s.x, s.y - s.band, strict=True)]
        if s.band.any():
            points = " ".join(upper + lower[::-1])
            parts.append(f'<polygon points="{points}" opacity="0.2" style="fill: {colour(place)}"/>')
        parts.append(curve([(px(x), py(y)) for x, y in zip(s.x, s.y, strict=True)], place))
        parts.append(curve_name(width - right + 14, label + 4, s.name, place))
    return svg(width, height, title, parts)


def curve(points: Sequence[tuple[float, float]], place: int) -> str:
    """A curve in the colour, the dashes and with the markers of its place among others."""
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    look = f"fill: none; stroke: {colour(place)}; stroke-width: 2.2; stroke-dasharray: {DASHES[place % len(DASHES)]}"
    every = max(1, math.ceil(len(points) / MOST_MARKERS))
    marks = "".join(marker(x, y, place) for x, y in points[every - 1 :: every])
    return f'<polyline points="{line}" style="{look}"/>{marks}'


def curve_name(x: float, y: float, name: str, place: int) -> str:
    """The name of a curve in its colour."""
    return f'<text x="{x:.1f}" y="{y:.1f}" font-weight="600" style="fill: {colour(place)}">{escape(name)}</text>'


def marker(x: float, y: float, place: int, size: float = 4.0) -> str:
    """A point in the form and colour of a place: circle, square, triangle, diamond."""
    paint = f'style="fill: {colour(place)}"'
    form = MARKERS[place % len(MARKERS)]
    if form == "circle":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size:g}" {paint}/>'
    corners: Iterable[tuple[float, float]]
    if form == "square":
        corners = ((-1, -1), (1, -1), (1, 1), (-1, 1))
    elif form == "triangle":
        corners = ((0, -1.2), (1.15, 0.9), (-1.15, 0.9))
    else:
        corners = ((0, -1.35), (1.35, 0), (0, 1.35), (-1.35, 0))
    points = " ".join(f"{x + 0.9 * size * dx:.1f},{y + 0.9 * size * dy:.1f}" for dx, dy in corners)
    return f'<polygon points="{points}" {paint}/>'


def axis_labels(x_label: str, y_label: str, middle_x: float, middle_y: float, height: float) -> list[str]:
    """What the two axes of a chart stand for, beside their middles."""
    return [
        svg_text(middle_x, height - 10, x_label),
        f'<text transform="translate(16 {middle_y:.0f}) rotate(-90)" text-anchor="middle">{escape(y_label)}</text>',
    ]


def nice_ticks(end: float, about: int = 5) -> list[float]:
    """Round numbers from 0 up to about `end`."""
    raw = end / about
    magnitude = 10.0 ** math.floor(math.log10(raw))
    step = next(m * magnitude for m in (1.0, 2.0, 2.5, 5.0, 10.0) if m * magnitude >= raw * 0.999)
    return [step * i for i in range(int(end / step + 1e-9) + 1)]


def ticks_between(low: float, high: float) -> list[float]:
    """Round numbers inside an interval."""
    ticks = nice_ticks(high - low)
    step = ticks[1] - ticks[0] if len(ticks) > 1 else high - low
    first = math.ceil(low / step)
    return [step * i for i in range(first, math.floor(high / step) + 1)]


def _spread(positions: list[float], gap: float) -> list[float]:
    """Positions pushed down just enough that neighbours are `gap` from each other."""
    result = list(positions)
    order = sorted(range(len(positions)), key=lambda i: positions[i])
    for before, after in pairwise(order):
        result[after] = max(result[after], result[before] + gap)
    return result


__all__ = [
    "GRID", "WIDTH", "Series", "axis_labels", "curve", "curve_name", "line_chart", "marker", "nice_ticks", "ticks_between",
]  # fmt: skip
