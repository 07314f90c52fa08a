"""Makes demo.svg from the page that `manyarms demo` wrote, and prints its table as Markdown for README.md.

make demo
.venv/bin/python docs/pictures/make.py out/demo/report.html
"""

from __future__ import annotations

import re
import sys
from html import unescape
from pathlib import Path

HERE = Path(__file__).parent


def picture(page: str) -> str:
    """The regret curves, on white paper whatever the reader's colours are."""
    found = re.search(r"<figure>(?:<div[^>]*>)?(<svg.*?</svg>)", page, re.DOTALL)
    if found is None:
        raise SystemExit("no figure in this page: was it written by `manyarms demo`?")
    head, rest = found[1].split(">", 1)
    title, rest = rest.split("</title>", 1)
    colours = {}
    for name, colour in re.findall(r"--([\w-]+):\s*(#[0-9a-fA-F]{3,8})", page):
        colours.setdefault(name, colour)  # the first are those of a light page
    rest = re.sub(r"var\(--([\w-]+)\)", lambda found: colours[found[1]], rest)
    return f'{head}>{title}</title><rect width="100%" height="100%" fill="#fff"/>{rest}\n'


def rows(page: str) -> list[str]:
    """The lines of the first table of the page."""
    table = re.search(r"<table>.*?</table>", page, re.DOTALL)
    lines = re.findall(r"<tr>(.*?)</tr>", table[0] if table else "", re.DOTALL)
    return ["| " + " | ".join(map(unescape, re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", line))) + " |" for line in lines]


if __name__ == "__main__":
    html = Path(sys.argv[1] if len(sys.argv) > 1 else "out/demo/report.html").read_text(encoding="utf-8")
    (HERE / "demo.svg").write_text(picture(html), encoding="utf-8")
    print("\n".join(rows(html)))
