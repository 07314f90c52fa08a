"""The pictures of docs/costs.md: lines on logarithmic axes, from what benchmarks/scaling.py has stored."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from _scaling import DECIDE, STUDIES
from _scaling_page import Stored, shown

from manyarms._base.palette import DASHES, MARKERS, PALETTE

WIDTH, LEFT, TOP, BOTTOM = 760.0, 72.0, 34.0, 50.0
TALL, SHORT = 260.0, 210.0  # heights of a panel that is alone in its row, and of one of two
LETTER = 7.2  # width of a letter, at most on average
INK, GREY = "#222", "#444"


@dataclass(frozen=True)
class Curve:
    """A named line of a panel, in the look of its place in the palette."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    place: int


@dataclass(frozen=True)
class Box:
    """Where a panel stands."""

    left: float
    top: float
    width: float
    height: float


def pictures(stored: Stored) -> dict[str, str]:
    """The drawings by the names of their files."""
    agents = {key: (name, place) for place, (key, name) in enumerate(DECIDE.items())}
    rows = {f"{key}_observe": look for key, look in agents.items()}
    policy = {"decide": ("softmax policy", 6)}
    wide, half = WIDTH - LEFT - 10, (WIDTH - 2 * LEFT - 20) / 2
    second, below = 2 * LEFT + half + 10, TOP + SHORT + 90
    boxes = [
        Box(LEFT, TOP, half, SHORT),
        Box(second, TOP, half, SHORT),
        Box(LEFT, below, half, SHORT),
        Box(second, below, half, SHORT),
    ]
    catalogue = curves(stored, "actions", agents) + curves(stored, "policy-actions", policy)
    sizes = [
        (curves(stored, "played", agents), "A decision, as actions are played", "played actions P"),
        (curves(stored, "dim", agents), "A decision, with longer contexts", "length of a context d"),
        (curves(stored, "effects", agents), "A decision, with more effects", "effects L"),
        (curves(stored, "dim", rows), "A row learned, with longer contexts", "length of a context d"),
    ]
    logs = [
        (curves(stored, "rows", {"sdm": ("sDM", 0), "evaluate": ("IPS, SNIPS", 1)}), "A log", "rows n"),
        (curves(stored, "contexts", agents), "Decisions at once", "contexts n"),
        (curves(stored, "step-actions", {"step": ("step", 6)}), "A step of learning, 256 rows", "actions K"),
        (curves(stored, "step-dim", {"step": ("step", 6)}), "A step of learning, 256 rows", "length of a context d"),
    ]
    alone = panel(catalogue, "A decision, as the catalogue grows", "actions K", Box(LEFT, TOP, wide, TALL))
    grids = [[panel(*told, box) for told, box in zip(parts, boxes, strict=True) if told[0]] for parts in (sizes, logs)]
    height = below + SHORT + BOTTOM
    return {
        "costs_actions.svg": drawing([alone], TOP + TALL + BOTTOM, "Time of a decision by the number of actions"),
        "costs_sizes.svg": drawing(grids[0], height, "Time by played actions, context length and effects"),
        "costs_logs.svg": drawing(grids[1], height, "Time of logs, of decisions at once and of learning steps"),
    }


def curves(stored: Stored, study: str, names: dict[str, tuple[str, int]]) -> list[Curve]:
    """What was stored of these series of a study."""
    columns, out = stored["studies"].get(study, {}), []
    for series, (name, place) in names.items():
        if series in columns:
            pairs = zip(columns[STUDIES[study].variable], columns[series], strict=True)
            x, y = zip(*((x, y) for x, y in pairs if y is not None), strict=True)
            out.append(Curve(name, x, y, place))
    return out


def panel(lines: Sequence[Curve], title: str, x_label: str, box: Box) -> list[str]:
    """Curves on two logarithmic axes, each named at its end."""
    x_low, x_high = min(min(line.x) for line in lines), max(max(line.x) for line in lines)
    low, high = min(math.log10(min(line.y)) for line in lines), max(math.log10(max(line.y)) for line in lines)
    low, high = math.floor(2 * low + 1e-9) / 2, math.ceil(2 * high - 1e-9) / 2
    high = max(high, math.floor(low) + 2)
    right = box.left + box.width - 9 - LETTER * max(len(line.name) for line in lines)
    bottom = box.top + box.height

    def px(x: float) -> float:
        return box.left + (right - box.left) * math.log(x / x_low) / math.log(x_high / x_low)

    def py(y: float) -> float:
        return bottom - box.height * (math.log10(y) - low) / (high - low)

    parts = [text(box.left, box.top - 14, escape(title), "start", INK, bold=True)]
    for power in range(math.ceil(low), math.floor(high) + 1):
        y = py(10.0**power)
        parts.append(f'<line x1="{box.left:.0f}" x2="{right:.1f}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
        parts.append(text(box.left - 6, y + 4, shown(10.0**power, "s").replace(".0 ", " "), "end"))
    for tick in ticks(x_low, x_high):
        x = px(tick)
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{box.top:.0f}" y2="{bottom:.0f}" stroke="#eee"/>')
        parts.append(text(x, bottom + 17, power_of_ten(tick)))
    parts.append(text((box.left + right) / 2, bottom + 36, escape(x_label), colour=INK))
    ends = spread([py(line.y[-1]) + 4 for line in lines], 14.0)
    for line, end in zip(lines, ends, strict=True):
        colour, dash = PALETTE[line.place % len(PALETTE)], DASHES[line.place % len(DASHES)]
        points = [(px(x), py(y)) for x, y in zip(line.x, line.y, strict=True)]
        joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        look = f'fill="none" stroke="{colour}" stroke-width="2" stroke-dasharray="{dash}"'
        parts.append(f'<polyline points="{joined}" {look}/>')
        parts += [mark(x, y, colour, line.place) for x, y in points]
        parts.append(text(right + 9, end, escape(line.name), "start", colour, bold=True))
    return parts


def drawing(panels: Iterable[list[str]], height: float, title: str) -> str:
    """Panels on white paper, whatever the reader's colours are."""
    inside = "\n".join(part for parts in panels for part in parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:.0f} {height:.0f}" role="img" '
        f'font-family="system-ui, DejaVu Sans, sans-serif" font-size="12"><title>{escape(title)}</title>'
        f'<rect width="100%" height="100%" fill="#fff"/>\n{inside}\n</svg>\n'
    )


def text(x: float, y: float, words: str, anchor: str = "middle", colour: str = GREY, *, bold: bool = False) -> str:
    """Words at a place."""
    weight = ' font-weight="600"' if bold else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{weight} fill="{colour}">{words}</text>'


def ticks(low: float, high: float) -> list[float]:
    """Powers of ten, or of two where there are fewer than two decades.

    >>> ticks(4, 32), ticks(100, 30_000)
    ([4.0, 8.0, 16.0, 32.0], [100.0, 1000.0, 10000.0])
    """
    base = 10 if high / low >= 90 else 2
    first, last = math.ceil(math.log(low, base) - 1e-9), math.floor(math.log(high, base) + 1e-9)
    return [float(base**power) for power in range(first, last + 1)]


def power_of_ten(number: float) -> str:
    """A tick's label."""
    power = round(math.log10(number))
    if number < 1000 or number != 10.0**power:
        return f"{number:,.0f}"
    return f'10<tspan dy="-5" font-size="9">{power}</tspan>'


def spread(places: Sequence[float], apart: float) -> list[float]:
    """The same places, moved so that no two are closer than `apart`.

    >>> spread([10.0, 12.0], 14.0)
    [4.0, 18.0]
    """
    out, last = list(places), -math.inf
    for i in sorted(range(len(places)), key=lambda i: places[i]):
        last = out[i] = max(places[i], last + apart)
    shift = (last - max(places)) / 2 if len(out) > 1 else 0.0
    return [place - shift for place in out]


def mark(x: float, y: float, colour: str, place: int, size: float = 3.4) -> str:
    """A point in the form of its place."""
    form = MARKERS[place % len(MARKERS)]
    if form == "circle":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size}" fill="{colour}"/>'
    corners = {
        "square": ((-1, -1), (1, -1), (1, 1), (-1, 1)),
        "triangle": ((0, -1.2), (1.15, 0.9), (-1.15, 0.9)),
        "diamond": ((0, -1.35), (1.35, 0), (0, 1.35), (-1.35, 0)),
    }[form]
    points = " ".join(f"{x + 0.9 * size * dx:.1f},{y + 0.9 * size * dy:.1f}" for dx, dy in corners)
    return f'<polygon points="{points}" fill="{colour}"/>'
