"""The costs of a bound as bars, from the estimate down to the lower end."""

from __future__ import annotations

import math
from collections.abc import Mapping
from html import escape

from manyarms._base.html import PALETTE, ticks_between

WIDTH = 820.0


def waterfall(start: float, costs: Mapping[str, float], reference: float, *, title: str) -> str:
    """One bar a cost, each beginning where the last ended; a dashed line at `reference`. Costs that are infinite are left out."""
    row, left, right, top, bottom = 26.0, 150.0, 90.0, 14.0, 46.0
    drawn = {name: cost for name, cost in costs.items() if math.isfinite(cost)}
    end = start - sum(drawn.values())
    height = top + bottom + row * (len(drawn) + 2)
    low, high = min(end, reference, 0.0), max(start, reference)
    margin = 0.05 * (high - low) or 1.0
    low, high = low - margin, high + margin

    def px(x: float) -> float:
        return left + (WIDTH - left - right) * (x - low) / (high - low)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:.0f} {height:.0f}" role="img" '
        f'font-family="system-ui, DejaVu Sans, sans-serif" font-size="13"><title>{escape(title)}</title>'
    ]
    for tick in ticks_between(low, high):
        x = px(tick)
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{height - bottom}" stroke="#eee"/>')
        parts.append(_text(x, height - bottom + 20, f"{tick:.3g}", "middle"))
    x = px(reference)
    parts.append(
        f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{height - bottom}" stroke="#555" stroke-dasharray="4 4"/>'
    )
    at, bars = start, [("estimate", start, start, "#555555", f"{start:.4g}")]
    for name, cost in drawn.items():
        bars.append((name, at - cost, at, PALETTE[1], f"-{cost:.3g}"))
        at -= cost
    bars.append(("lower end", at, at, PALETTE[0], f"{at:.4g}"))
    for i, (name, begin, stop, colour, words) in enumerate(bars):
        y = top + row * i
        x, width = px(min(begin, stop)), max(3.0, abs(px(stop) - px(begin)))
        parts.append(_text(left - 10, y + row / 2 + 4, name, "end"))
        parts.append(f'<rect x="{x:.1f}" y="{y + 5:.1f}" width="{width:.1f}" height="{row - 10:.0f}" fill="{colour}"/>')
        parts.append(_text(max(px(begin), px(stop)) + 8, y + row / 2 + 4, words, "start"))
    words = "value of the policy; dashed: mean reward of the log"
    parts.append(_text((left + WIDTH - right) / 2, height - 8, words, "middle"))
    return "".join(parts) + "</svg>"


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="#444">{escape(text)}</text>'


__all__ = ["waterfall"]
