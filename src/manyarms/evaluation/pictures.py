"""Small SVG pictures for the page of an evaluation: curves over a logarithmic axis, and estimates with their intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence

from manyarms._base.charts import GRID, WIDTH, axis_labels, curve, curve_name, marker, nice_ticks, ticks_between
from manyarms._base.html import NARROW, svg, svg_text
from manyarms._base.palette import colour
from manyarms._base.typing import Array
from manyarms.evaluation.intervals import Interval

ROW, TOP, BELOW = 26.0, 14.0, 46.0  # of drawings in rows: the height of one, and the room above and below them
Curve = tuple[str, Array, Array]


def log_chart(
    curves: Sequence[Curve], x_label: str, y_label: str, *, title: str, log_y: bool = False, width: float = WIDTH
) -> str:
    """Curves (name, x, y) over log10 of x, with y linear from 0 or logarithmic; each named in its colour."""
    height, left, right, top, bottom = 320.0, 84.0, 20.0, 34.0, 52.0
    drawn = [one for one in curves if len(one[1])]
    x_low = math.floor(min(math.log10(float(x.min())) for _, x, _ in drawn))
    x_high = max(x_low + 1, math.ceil(max(math.log10(float(x.max())) for _, x, _ in drawn)))
    largest = max(float(y.max()) for _, _, y in drawn) or 1.0
    if log_y:
        y_low = math.floor(math.log10(min(float(y[y > 0].min(initial=1.0)) for _, _, y in drawn)))
        y_high = max(y_low + 1, math.ceil(math.log10(largest)))
    else:
        y_low, y_high = 0, 1

    def px(x: float) -> float:
        return left + (width - left - right) * (math.log10(x) - x_low) / (x_high - x_low)

    def py(y: float) -> float:
        share = (math.log10(max(y, 10.0**y_low)) - y_low) / (y_high - y_low) if log_y else y / (1.1 * largest)
        return height - bottom - (height - top - bottom) * share

    parts: list[str] = []
    ticks = [10.0**e for e in _some(y_low, y_high)] if log_y else nice_ticks(1.1 * largest)
    for tick in ticks:
        level = py(tick)
        parts.append(f'<line x1="{left}" x2="{width - right}" y1="{level:.1f}" y2="{level:.1f}" {GRID}/>')
        parts.append(svg_text(left - 8, level + 4, f"{tick:.3g}", anchor="end"))
    for exponent in _some(x_low, x_high):
        parts.append(svg_text(px(10.0**exponent), height - bottom + 20, f"{10.0**exponent:g}"))
    parts += axis_labels(x_label, y_label, (left + width - right) / 2, (top + height - bottom) / 2, height)
    at = left
    for place, (name, x, y) in enumerate(drawn):
        parts.append(curve([(px(float(a)), py(float(b))) for a, b in zip(x, y, strict=True)], place))
        parts.append(marker(at + 5, 14, place))
        parts.append(curve_name(at + 16, 18, name, place))
        at += 9.0 * len(name) + 40
    return svg(width, height, title, parts)


class ValueAxis:
    """A drawing of values along one axis, in rows under each other, with a dashed line at the mean reward of the log."""

    def __init__(self, values: Sequence[float], rows: int, left: float, right: float, width: float = WIDTH) -> None:
        margin = 0.05 * (max(values) - min(values)) or 1.0
        self._low, self._high = min(values) - margin, max(values) + margin
        self._left, self._width, self._whole = left, width - left - right, width
        self._bottom = TOP + ROW * rows

    def at(self, value: float) -> float:
        """Where a value lies; one beyond the axis lies at its end."""
        inside = min(max(value, self._low), self._high)
        return self._left + self._width * (inside - self._low) / (self._high - self._low)

    def drawing(self, marks: Sequence[str], reference: float, *, title: str) -> str:
        """The axis, and what was drawn on it."""
        parts: list[str] = []
        for tick in ticks_between(self._low, self._high)[:: 1 if self._width > NARROW else 2]:
            parts.append(self._upright(tick, GRID))
            parts.append(svg_text(self.at(tick), self._bottom + 20, f"{tick:.3g}"))
        parts.append(self._upright(reference, 'style="stroke: var(--ink); stroke-dasharray: 4 4"'))
        height, middle = self._bottom + BELOW, self._whole / 2
        words = svg_text(middle, height - 8, "value of the policy; dashed: mean reward of the log")
        return svg(self._whole, height, title, [*parts, *marks, words])

    def _upright(self, value: float, look: str) -> str:
        x = self.at(value)
        return f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{self._bottom}" {look}/>'


def whiskers(
    estimates: Sequence[tuple[str, float, Interval]], reference: float, *, title: str, width: float = WIDTH
) -> str:
    """Each estimate (label, value, interval) as a dot with its interval; a dashed line at the mean reward of the log."""
    left = min(220.0, 20.0 + 7.5 * max((len(label) for label, _, _ in estimates), default=0))
    ends = [reference, *(x for _, value, one in estimates for x in (value, one.low, one.high) if math.isfinite(x))]
    axis, marks = ValueAxis(ends, len(estimates), left, 20.0, width), []
    for i, (label, estimate, interval) in enumerate(estimates):
        y = TOP + ROW * (i + 0.5)
        place = 0 if interval.covers.startswith("the policy's") else 1
        low, value, high = (axis.at(x) for x in (interval.low, estimate, interval.high))
        dashes = "" if place == 0 else " stroke-dasharray: 6 3;"
        marks.append(svg_text(left - 10, y + 4, label, anchor="end"))
        marks.append(
            f'<line x1="{low:.1f}" x2="{high:.1f}" y1="{y:.1f}" y2="{y:.1f}" '
            f'style="stroke: {colour(place)}; stroke-width: 2.5;{dashes}"/>{marker(value, y, place, 4.5)}'
        )
    return axis.drawing(marks, reference, title=title)


def _some(low: int, high: int) -> list[int]:
    """Whole numbers from low to high, at most eight of them."""
    step = max(1, math.ceil((high - low) / 7))
    return list(range(low, high + 1, step))


__all__ = ["ROW", "TOP", "Curve", "ValueAxis", "log_chart", "whiskers"]
