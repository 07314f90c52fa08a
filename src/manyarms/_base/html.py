"""Self-contained HTML pages: no script, no file beside them, nothing fetched.

Small functions that return HTML; `page` puts them together. Texts are escaped here, so callers pass plain strings.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import cycle, pairwise
from pathlib import Path

from manyarms._base.files import open_regular, require_file, writing
from manyarms._base.typing import Array
from manyarms.errors import InvalidInput

# Okabe and Ito's palette: told apart with any kind of colour vision; black and greys are left for text and axes
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7A5C00", "#555555")

STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; color: #1a1a1a;
       background: #fff; max-width: 62rem; margin: 2.5rem auto; padding: 0 1.25rem; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: 0 0 .25rem; }
h2 { font-size: 1.2rem; margin: 2.5rem 0 .5rem; }
p.lead { color: #555; margin-top: 0; }
.card { border: 2px solid; border-radius: .5rem; padding: .7rem 1rem; margin: 1.25rem 0; }
.card strong { font-size: 1.15rem; text-transform: uppercase; letter-spacing: .03em; }
.card p { margin: .3rem 0 0; color: #1a1a1a; }
.card.good { color: #00694d; background: #eaf6f1; } .card.bad { color: #a63d00; background: #fdf1e8; }
.card.open { color: #555; background: #f5f5f3; }
p.warning { border-left: 4px solid #D55E00; background: #fdf1e8; padding: .6rem .9rem; }
table { border-collapse: collapse; width: 100%; font-size: .92rem; }
th, td { text-align: left; vertical-align: top; padding: .35rem .6rem; border-bottom: 1px solid #ddd; }
th { border-bottom: 2px solid #999; white-space: nowrap; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td.yes { color: #00694d; font-weight: 600; } td.no { color: #a63d00; font-weight: 600; }
td small { color: #666; display: block; }
figure { margin: 1.25rem 0; } figure svg { width: 100%; height: auto; display: block; }
figcaption { color: #555; font-size: .9rem; }
pre { background: #f5f5f3; padding: .8rem 1rem; overflow-x: auto; font-size: .88rem; line-height: 1.45; }
li code { white-space: nowrap; }
code { font-family: ui-monospace, "SFMono-Regular", Menlo, "DejaVu Sans Mono", monospace; }
.scroll { overflow-x: auto; }
"""


BEGINNING = "<!doctype html>"
SUFFIXES = (".html", ".htm")


def require_page(name: str, path: Path | str) -> Path:
    """A path where a page can be written, before the work: what is there already must be called a page, be one, or be empty."""
    path = require_file(name, path)
    if path.suffix.lower() in SUFFIXES:
        return path
    with writing(path):
        try:
            with open_regular(path, follow=True) as stream:
                first = stream.read(len(BEGINNING))
        except FileNotFoundError:
            return path
    if first and first.lower() != BEGINNING.encode():
        came = f"{str(path)!r}, a file that is no page and would be written over"
        raise InvalidInput(name, came, "a path of its own for the page, such as one that ends in .html")
    return path


def page(title: str, lead: str, *blocks: str) -> str:
    """A whole HTML document."""
    body = "\n".join(blocks)
    return (
        f'{BEGINNING}\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        f'<h1>{escape(title)}</h1>\n<p class="lead">{escape(lead)}</p>\n{body}\n</body>\n</html>\n'
    )


def heading(text: str) -> str:
    """A section's heading."""
    return f"<h2>{escape(text)}</h2>"


def paragraph(text: str) -> str:
    """A paragraph of plain text."""
    return f"<p>{escape(text)}</p>"


def warning(text: str) -> str:
    """A paragraph that must not be overlooked."""
    return f'<p class="warning" role="note"><strong>Note.</strong> {escape(text)}</p>'


def card(title: str, texts: Sequence[str], tone: str) -> str:
    """What a reader looks for first; tone: good, bad or open."""
    lines = "".join(f"<p>{escape(text)}</p>" for text in texts)
    return f'<div class="card {tone}" role="note"><strong>{escape(title)}</strong>{lines}</div>'


def bullets(texts: Sequence[str]) -> str:
    """A list; back-quoted pieces are set as code."""
    return "<ul>" + "".join(f"<li>{_with_code(text)}</li>" for text in texts) + "</ul>"


def code(text: str) -> str:
    """A block of code."""
    return f"<pre><code>{escape(text)}</code></pre>"


@dataclass(frozen=True)
class Note:
    """A table's cell with a second, quieter line."""

    text: str
    small: str


CellText = str | bool | Note


def table(columns: Sequence[str], rows: Sequence[Sequence[CellText]], numbers: Sequence[str] = ()) -> str:
    """A table; the columns named in `numbers` are aligned as numbers, and True and False are shown as yes and no."""
    kinds = ["number" if name in numbers else "" for name in columns]
    head = "".join(f"<th{_class(kind)}>{escape(name)}</th>" for name, kind in zip(columns, kinds, strict=True))
    lines = []
    for row in rows:
        cells = "".join(_cell(value, kind) for value, kind in zip(row, kinds, strict=True))
        lines.append(f"<tr>{cells}</tr>")
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{"".join(lines)}</tbody></table></div>'


def facts(values: Mapping[str, str]) -> str:
    """A table of names and values."""
    rows = "".join(f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in values.items())
    return f"<table><tbody>{rows}</tbody></table>"


def figure(svg: str, caption: str) -> str:
    """A drawing inside the page."""
    return f"<figure>{svg}<figcaption>{escape(caption)}</figcaption></figure>"


def svg_of(path: Path, prefix: str) -> str:
    """An SVG file made fit to stand inside a page: no prolog, its width left to the page, its ids its own."""
    text = path.read_text(encoding="utf-8")
    text = text[text.index("<svg") :]
    width = re.search(r'<svg[^>]*?\swidth="([\d.]+)pt"', text)
    for _ in ("width", "height"):
        text = re.sub(r'(<svg[^>]*?)\s(?:width|height)="[^"]*"', r"\1", text, count=1)
    if width is not None:  # never larger than drawn: 96 pixels are 72 points
        text = text.replace("<svg", f'<svg style="max-width: {float(width[1]) * 96 / 72:.0f}px"', 1)
    text = re.sub(r'\bid="([^"]+)"', rf'id="{prefix}-\1"', text)
    text = re.sub(r'href="#([^"]+)"', rf'href="#{prefix}-\1"', text)
    return re.sub(r"url\(#([^)]+)\)", rf"url(#{prefix}-\1)", text)


def svg(width: float, height: float, title: str, parts: Sequence[str]) -> str:
    """A drawing of given size, made of SVG elements."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" role="img" '
        f'font-family="system-ui, DejaVu Sans, sans-serif" font-size="13"><title>{escape(title)}</title>'
        f"{''.join(parts)}</svg>"
    )


def svg_text(x: float, y: float, text: str, anchor: str = "middle") -> str:
    """Text in a drawing."""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="#444">{escape(text)}</text>'


@dataclass(frozen=True)
class Series:
    """A curve with a band around it."""

    name: str
    x: Array
    y: Array
    band: Array


LETTER = 8.0  # width of a letter of a curve's name, at most on average: 13 pixels, bold


def line_chart(series: Sequence[Series], x_label: str, y_label: str, *, title: str, from_zero: bool = True) -> str:
    """Curves with bands as SVG, each named at its end; the y axis begins at 0 unless told not to."""
    width, height, left, top, bottom = 820.0, 430.0, 84.0, 16.0, 52.0
    right = max(96.0, 16.0 + LETTER * max(len(s.name) for s in series))
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
        parts.append(f'<line x1="{left}" x2="{width - right}" y1="{py(tick):.1f}" y2="{py(tick):.1f}" stroke="#ddd"/>')
        parts.append(svg_text(left - 8, py(tick) + 4, f"{tick:,.10g}", "end"))
    parts += [svg_text(px(tick), height - bottom + 20, f"{tick:,.10g}") for tick in x_ticks]
    parts += axis_labels(x_label, y_label, (left + width - right) / 2, (top + height - bottom) / 2, height)
    heights = _spread([py(float(s.y[-1])) for s in series], 16.0)
    for s, colour, label in zip(series, cycle(PALETTE), heights, strict=False):
        upper = [f"{px(x):.1f},{py(y):.1f}" for x, y in zip(s.x, s.y + s.band, strict=True)]
        lower = [f"{px(x):.1f},{py(max(y, y_start)):.1f}" for x, y in zip(s.x, s.y - s.band, strict=True)]
        line = [f"{px(x):.1f},{py(y):.1f}" for x, y in zip(s.x, s.y, strict=True)]
        parts.append(f'<polygon points="{" ".join(upper + lower[::-1])}" fill="{colour}" opacity="0.2"/>')
        parts.append(f'<polyline points="{" ".join(line)}" fill="none" stroke="{colour}" stroke-width="2.2"/>')
        place = f'x="{width - right + 8}" y="{label + 4:.1f}"'
        parts.append(f'<text {place} fill="{colour}" font-weight="600">{escape(s.name)}</text>')
    return svg(width, height, title, parts)


def axis_labels(x_label: str, y_label: str, middle_x: float, middle_y: float, height: float) -> list[str]:
    """What the two axes of a chart stand for, beside their middles."""
    return [
        svg_text(middle_x, height - 10, x_label),
        f'<text transform="translate(16 {middle_y:.0f}) rotate(-90)" text-anchor="middle" fill="#444">{escape(y_label)}</text>',
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


def _cell(value: CellText, kind: str) -> str:
    if isinstance(value, bool):
        return f'<td class="{"yes" if value else "no"}">{"yes" if value else "no"}</td>'
    if isinstance(value, Note):
        return f"<td{_class(kind)}>{escape(value.text)}<small>{escape(value.small)}</small></td>"
    return f"<td{_class(kind)}>{escape(value)}</td>"


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""


def _with_code(text: str) -> str:
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


__all__ = [
    "PALETTE", "CellText", "Note", "Series", "axis_labels", "bullets", "code", "facts", "figure", "heading", "line_chart",
    "nice_ticks", "page", "paragraph", "require_page", "svg", "svg_of", "svg_text", "table", "ticks_between", "warning",
]  # fmt: skip
