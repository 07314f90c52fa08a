"""Self-contained HTML pages: no script, no file beside them, nothing fetched.

Small functions that return HTML; `page` puts them together. Texts are escaped here, so callers pass plain strings.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from manyarms._base.files import open_regular, require_file, writing
from manyarms._base.palette import on_page, style_sheet
from manyarms._base.tables import texts_of
from manyarms.errors import InvalidInput

_LIGHT, _DARK = style_sheet()

STYLE = (
    f"""
:root {{ color-scheme: light dark; --page: #fff; --ink: #1a1a1a; --quiet: #555; --rule: #ddd; --line: #999; --box: #f5f5f3;
  --good: #00694d; --good-box: #eaf6f1; --bad: #a63d00; --bad-box: #fdf1e8; {_LIGHT} }}
@media (prefers-color-scheme: dark) {{ :root {{ --page: #16181b; --ink: #e8e8e6; --quiet: #aaacae; --rule: #383b3f;
  --line: #74777b; --box: #202327; --good: #5cd0aa; --good-box: #12291f; --bad: #f5a06c; --bad-box: #2f1f14; {_DARK} }} }}
@media print {{ :root {{ color-scheme: light; }} }}
"""
    + """
* { box-sizing: border-box; }
body { font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; color: var(--ink);
  background: var(--page); max-width: 64rem; margin: 2rem auto 4rem; padding: 0 1.25rem; overflow-wrap: break-word; }
h1 { font-size: 1.45rem; line-height: 1.25; margin: 0; }
h2 { font-size: 1.15rem; margin: 2.25rem 0 .5rem; }
p.about { color: var(--quiet); margin: .2rem 0 0; font-size: .95rem; }
.card { border-left: 6px solid; border-radius: .25rem; padding: .7rem 1rem; margin: 1rem 0 1.25rem; }
.card strong { font-size: 1.2rem; }
.card p { margin: .3rem 0 0; color: var(--ink); }
.card p:first-of-type { font-size: 1.1rem; }
.card.good { color: var(--good); background: var(--good-box); } .card.bad { color: var(--bad); background: var(--bad-box); }
.card.open { color: var(--quiet); background: var(--box); } .card.open strong { color: var(--ink); }
p.warning { border-left: 4px solid var(--c1); background: var(--bad-box); padding: .6rem .9rem; }
table { border-collapse: collapse; width: 100%; font-size: .92rem; }
th, td { text-align: left; vertical-align: top; padding: .35rem .8rem .35rem 0; border-bottom: 1px solid var(--rule); }
th { border-bottom: 2px solid var(--line); white-space: nowrap; }
tbody th { border-bottom: 1px solid var(--rule); font-weight: 500; color: var(--quiet); white-space: normal; width: 17rem; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td.yes { color: var(--good); font-weight: 600; } td.no { color: var(--bad); font-weight: 600; }
td small { color: var(--quiet); display: block; }
figure { margin: 1.25rem 0; } figure svg { width: 100%; height: auto; display: block; }
figure svg text { fill: var(--ink); }
figcaption { color: var(--quiet); font-size: .9rem; margin-top: .4rem; }
pre { background: var(--box); padding: .8rem 1rem; overflow-x: auto; font-size: .88rem; line-height: 1.45; }
code { font-family: ui-monospace, "SFMono-Regular", Menlo, "DejaVu Sans Mono", monospace; }
.scroll { overflow-x: auto; }
.narrow { display: none; }
@media (max-width: 44rem) { .wide { display: none; } .narrow { display: block; } }
@media (max-width: 44rem) {
  body { margin-top: 1rem; padding: 0 .9rem; }
  .scroll svg { min-width: 40rem; }
  tbody th { width: auto; }
  .scroll td:not(.number):nth-child(n+2) { min-width: 9rem; }
  .scroll td:not(.number):nth-child(n+3) { min-width: 13rem; }
}
"""
)


WIDTH, NARROW = 960.0, 500.0  # of drawings, in their own units: letters are 13 high
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


def page(title: str, about: str, *blocks: str) -> str:
    """A whole HTML document. `about` says in a line what was looked at; the first block is the answer, a `card`."""
    body = "\n".join(blocks)
    return (
        f'{BEGINNING}\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        f'<h1>{escape(title)}</h1>\n<p class="about">{escape(about)}</p>\n{body}\n</body>\n</html>\n'
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


CellText = str | bool | float | Note


def table(columns: Sequence[str], rows: Sequence[Sequence[CellText]], numbers: Sequence[str] = ()) -> str:
    """A table; the columns named in `numbers` are aligned as numbers, and True and False are shown as yes and no.

    Numbers may be given as such: a column gets the same decimals all over.
    """
    kinds = ["number" if name in numbers else "" for name in columns]
    head = "".join(f"<th{_class(kind)}>{escape(name)}</th>" for name, kind in zip(columns, kinds, strict=True))
    even = [_even(column) for column in zip(*rows, strict=True)]
    lines = []
    for row in zip(*even, strict=True):
        cells = "".join(_cell(value, kind) for value, kind in zip(row, kinds, strict=True))
        lines.append(f"<tr>{cells}</tr>")
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{"".join(lines)}</tbody></table></div>'


def facts(values: Mapping[str, str]) -> str:
    """A table of names and values."""
    rows = "".join(f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in values.items())
    return f"<table><tbody>{rows}</tbody></table>"


def figure(svg: str | Callable[[float], str], caption: str) -> str:
    """A drawing as wide as the page, and what is seen on it; one that is drawn to a width is drawn for phones, too."""
    if isinstance(svg, str):
        shown = f'<div class="scroll">{svg}</div>'
    else:
        shown = f'<div class="wide">{svg(WIDTH)}</div><div class="narrow">{svg(NARROW)}</div>'
    return f"<figure>{shown}<figcaption>{escape(caption)}</figcaption></figure>"


def svg_of(path: Path, prefix: str) -> str:
    """An SVG file made fit to stand inside a page: no prolog, width and colours left to the page, its ids its own."""
    text = path.read_text(encoding="utf-8")
    text = text[text.index("<svg") :]
    for _ in ("width", "height"):
        text = re.sub(r'(<svg[^>]*?)\s(?:width|height)="[^"]*"', r"\1", text, count=1)
    text = re.sub(r'\bid="([^"]+)"', rf'id="{prefix}-\1"', text)
    text = re.sub(r'href="#([^"]+)"', rf'href="#{prefix}-\1"', text)
    return on_page(re.sub(r"url\(#([^)]+)\)", rf"url(#{prefix}-\1)", text))


def svg(width: float, height: float, title: str, parts: Sequence[str]) -> str:
    """A drawing of given size, made of SVG elements."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" role="img" '
        f'font-family="system-ui, DejaVu Sans, sans-serif" font-size="13"><title>{escape(title)}</title>'
        f"{''.join(parts)}</svg>"
    )


def svg_text(x: float, y: float, text: str, anchor: str = "middle") -> str:
    """Text in a drawing."""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _even(column: Sequence[CellText]) -> list[str | bool | Note]:
    """A column whose numbers are texts with the same decimals."""
    numbers = iter(texts_of(cell for cell in column if isinstance(cell, int | float) and not isinstance(cell, bool)))
    return [cell if isinstance(cell, str | bool | Note) else next(numbers) for cell in column]


def _cell(value: str | bool | Note, kind: str) -> str:
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
    "CellText", "Note", "bullets", "card", "code", "facts", "figure", "heading", "page", "paragraph", "require_page", "svg",
    "svg_of", "svg_text", "table", "warning",
]  # fmt: skip
