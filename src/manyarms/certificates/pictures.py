"""The costs of a bound as bars, from the estimate down to the lower end."""

from __future__ import annotations

import math
from collections.abc import Mapping

from manyarms._base.html import WIDTH, svg_text
from manyarms._base.palette import colour
from manyarms.evaluation.pictures import ROW, TOP, ValueAxis


def waterfall(start: float, costs: Mapping[str, float], reference: float, *, title: str, width: float = WIDTH) -> str:
    """One bar a cost, each beginning where the last ended; a dashed line at `reference`. Costs that are infinite are left out."""
    left = 110.0
    drawn = {name: cost for name, cost in costs.items() if math.isfinite(cost)}
    axis = ValueAxis((start - sum(drawn.values()), start, reference, 0.0), len(drawn) + 2, left, 90.0, width)
    at, bars = start, [("estimate", start, start, colour(7), f"{start:.4g}")]
    for name, cost in drawn.items():
        bars.append((name, at - cost, at, colour(1), f"{0.0 - cost:.3g}"))
        at -= cost
    bars.append(("lower end", at, at, colour(0), f"{at:.4g}"))
    marks = []
    for i, (name, begin, stop, shade, words) in enumerate(bars):
        y, low, high = TOP + ROW * i, *sorted((axis.at(begin), axis.at(stop)))
        place = f'x="{low:.1f}" y="{y + 5:.1f}" width="{max(3.0, high - low):.1f}" height="{ROW - 10:.0f}"'
        marks.append(svg_text(left - 10, y + ROW / 2 + 4, name, "end"))
        marks.append(f'<rect {place} style="fill: {shade}"/>')
        marks.append(svg_text(high + 8, y + ROW / 2 + 4, words, "start"))
    return axis.drawing(marks, reference, title=title)


__all__ = ["waterfall"]
