"""The choice of a half-life as a page: a sentence, a picture of the log-likelihoods, a table."""

from __future__ import annotations

import math

import numpy as np

from manyarms._base import html as report
from manyarms._base.charts import GRID, WIDTH, axis_labels, curve, marker, ticks_between
from manyarms._base.html import svg, svg_text
from manyarms._base.palette import colour
from manyarms._base.text import counted
from manyarms.rewards.drift_choice import ENOUGH, DriftChoice, length_text

LETTER = 7.0  # width of a letter of the axis, at most on average


def chart(choice: DriftChoice, width: float = WIDTH) -> str:
    """Differences to the best over half-lives, on a logarithmic axis, with two standard errors; no drift is at the right."""
    height, left, right, top, bottom = min(380.0, 0.72 * width), 84.0, 60.0, 30.0, 56.0
    finite = np.array([one for one in choice.half_lives if math.isfinite(one)])
    y, band = choice.differences, ENOUGH * choice.standard_errors
    low, high = float((y - band).min()), float((y + band).max())
    margin = 0.06 * (high - low) or 1.0
    low, high = low - margin, high + margin
    logs = np.log(finite)
    span = float(logs[-1] - logs[0]) or 1.0
    gap = 0.16 * (width - left - right)  # between the longest half-life and none
    places = (left + 14 + (width - left - right - 14 - gap) * (logs - logs[0]) / span).tolist()
    places.append(width - right)

    def py(value: float) -> float:
        return height - bottom - (height - top - bottom) * (value - low) / (high - low)

    parts = []
    for tick in ticks_between(low, high):
        parts.append(f'<line x1="{left}" x2="{width - right + 20}" y1="{py(tick):.1f}" y2="{py(tick):.1f}" {GRID}/>')
        parts.append(svg_text(left - 8, py(tick) + 4, f"{tick:.3g}", "end"))
    parts += _labels(choice, places, height - bottom + 20)
    unit = " in rounds" if choice.clock == "rounds" else ""
    parts += axis_labels(
        f"half-life{unit} (logarithmic axis)", "log-likelihood a row, less that of the best", (left + width - right) / 2,
        (top + height - bottom) / 2, height,
    )  # fmt: skip
    parts.append(_level(left, width - right + 20, py(0.0)))
    upper = [f"{x:.1f},{py(v):.1f}" for x, v in zip(places[:-1], (y + band)[:-1].tolist(), strict=True)]
    lower = [f"{x:.1f},{py(v):.1f}" for x, v in zip(places[:-1], (y - band)[:-1].tolist(), strict=True)]
    parts.append(f'<polygon points="{" ".join(upper + lower[::-1])}" opacity="0.2" style="fill: {colour(0)}"/>')
    points = [(x, py(v)) for x, v in zip(places, y.tolist(), strict=True)]
    parts.append(curve(points[:-1], 0))
    parts += [marker(*point, 0) for point in points[:-1]]
    ends = py(float((y + band)[-1])), py(float((y - band)[-1]))
    parts.append(_upright(places[-1], *ends))
    parts.append(marker(*points[-1], 1, 5.0))
    x, at = points[int(np.argmax(y))]
    parts.append(
        f'<circle cx="{x:.1f}" cy="{at:.1f}" r="9" style="fill: none; stroke: var(--ink); stroke-width: 1.5"/>'
    )
    parts.append(svg_text(x, at - 14, "best"))
    return svg(width, height, "log-likelihoods over half-lives", parts)


def _labels(choice: DriftChoice, places: list[float], y: float) -> list[str]:
    """The half-lives under their points: the best and none in any case, others where there is room."""
    texts = [length_text(one, choice.clock).removesuffix(" rounds") for one in choice.half_lives]
    best = int(np.argmax(choice.differences))
    shown: list[int] = []
    for i in dict.fromkeys([best, len(texts) - 1, *range(len(texts))]):
        room = [LETTER * (len(texts[i]) + len(texts[j])) / 2 + 8 for j in shown]
        if all(abs(places[i] - places[j]) >= least for j, least in zip(shown, room, strict=True)):
            shown.append(i)
    return [svg_text(places[i], y, texts[i]) for i in sorted(shown)]


def _level(left: float, right: float, y: float) -> str:
    look = "stroke: var(--ink); stroke-dasharray: 4 4"
    return f'<line x1="{left}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}" style="{look}"/>'


def _upright(x: float, top: float, bottom: float) -> str:
    return f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top:.1f}" y2="{bottom:.1f}" style="stroke: {colour(1)}; stroke-width: 2.5"/>'


def page(choice: DriftChoice, name: str = "the log") -> str:
    """A whole page about it; name: of the log."""
    drifts = choice.best is not None and math.inf not in choice.plausible
    more = "" if choice.drift is None else f", {choice.code}"
    head = "rewards drift" if drifts else "no drift" if choice.best is None else "not to be told"
    return report.page(
        f"Drift in {name}",
        f"{counted(choice.rows, 'row')}, {counted(len(choice.half_lives) - 1, 'half-life', 'half-lives')} and no drift.",
        report.card(head, [choice.sentence], "good" if drifts or choice.best is None else "open"),
        report.figure(
            lambda width: chart(choice, width),
            "How much worse a row is predicted than by the best half-life: log p(reward | rows before), its mean over all rows. "
            "Shaded, and the bar at the right: two standard errors to both sides.",
        ),
        report.heading("Half-lives"),
        report.table(
            ("half-life", "log-likelihood a row", "difference to the best", "std. error", "plausible"),
            [
                (
                    length_text(one, choice.clock), float(choice.log_likelihoods[i]), float(choice.differences[i]),
                    float(choice.standard_errors[i]), "yes" if one in choice.plausible else "",
                )
                for i, one in enumerate(choice.half_lives)
            ],
            numbers=("log-likelihood a row", "difference to the best", "std. error"),
        ),
        report.heading("Then"),
        report.code(f"agent = ma.HierTS(prior, likelihood{more})"),
        report.bullets(list(choice.notes)),
    )  # fmt: skip


__all__ = ["chart", "page"]
