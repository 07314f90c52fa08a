"""Is the built manual whole? `python tools/site/check.py out/site`

Every link inside it leads to a page that is there, and to a place that is there; everything that a browser fetches by itself
(scripts, styles, pictures, fonts) is part of it; formulas have been drawn. Ends with code 1, and says what is wrong, otherwise.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# what a browser loads without being asked, by tag and attribute
LOADED = {
    ("script", "src"), ("img", "src"), ("link", "href"), ("iframe", "src"), ("source", "src"), ("video", "src"), ("audio", "src"),
    ("object", "data"), ("embed", "src"),
}  # fmt: skip


@dataclass
class Page(HTMLParser):
    """What a page has and what it asks for."""

    path: Path
    anchors: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value is None:
                continue
            if name == "id" or (tag == "a" and name == "name"):
                self.anchors.add(value)
            if (tag, name) in LOADED:
                self.loaded.append(value)
            elif tag == "a" and name == "href":
                self.links.append(value)


def problems(site: Path) -> list[str]:
    """What is wrong with a site, a line each."""
    site = site.resolve()
    pages = {}
    found = []
    for path in sorted(site.rglob("*.html")):
        text = path.read_text(encoding="utf-8")
        pages[path] = page = Page(path)
        page.feed(text)
        if re.search(r'class="arithmatex">\s*\\[(\[]', text):
            found.append(f"{path.relative_to(site)}: a formula was not drawn")
    for path, page in pages.items():
        here = path.relative_to(site)
        if here.name == "404.html":  # its links are those of a server's root
            continue
        for target in page.loaded:
            if urlsplit(target).scheme not in ("", "data") or target.startswith("//"):
                found.append(f"{here}: loads {target}")
            elif not target.startswith("data:") and not _there(path, target).exists():
                found.append(f"{here}: loads {target}, which is not there")
        for target in page.links:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            there = _there(path, target) if parts.path else path
            if not there.exists():
                found.append(f"{here}: links to {target}, which is not there")
            elif (
                parts.fragment
                and there in pages
                and unquote(parts.fragment) not in pages[there].anchors | {"__comments"}
            ):
                found.append(f"{here}: links to {target}, and there is no such place")
    for style in sorted(site.rglob("*.css")):
        for target in re.findall(r"(?:url\(|@import )\s*[\"']?([^\"')\s;]+)", style.read_text(encoding="utf-8")):
            if re.match(r"(?:https?:)?//", target):
                found.append(f"{style.relative_to(site)}: loads {target}")
    if not pages:
        found.append(f"{site}: no pages")
    return found


def _there(page: Path, target: str) -> Path:
    path = (page.parent / unquote(urlsplit(target).path)).resolve()
    return path / "index.html" if path.is_dir() else path


def main() -> int:
    found = problems(Path(sys.argv[1]))
    for line in found:
        print(line, file=sys.stderr)
    print(f"{sys.argv[1]}: {f'{len(found)} problems' if found else 'links, places and what pages load are fine'}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
