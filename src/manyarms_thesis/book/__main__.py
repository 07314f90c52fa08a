"""`python -m manyarms_thesis.book`: write docs/reproduction.md and its pictures from the results in results/."""

from __future__ import annotations

import argparse
from pathlib import Path

from manyarms._base.files import write_text_atomically
from manyarms_thesis.book.chapters import CHAPTERS, BookChapter
from manyarms_thesis.book.page import page_of
from manyarms_thesis.book.pictures import draw
from manyarms_thesis.catalogue import catalogue
from manyarms_thesis.harness.store import read_records


def write_book(results: Path, docs: Path) -> Path:
    """Write the page and its pictures; the page's path."""
    records = read_records(results)

    def picture(chapter: BookChapter) -> tuple[str, str] | None:
        if not chapter.drawings:
            return None
        name = f"pictures/reproduction-{chapter.anchor}.svg"
        draw(chapter.drawings, records, docs / name)
        return name, chapter.caption

    page = docs / "reproduction.md"
    write_text_atomically(page, page_of(records, catalogue(), CHAPTERS, picture))
    return page


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m manyarms_thesis.book", description=__doc__)
    parser.add_argument("--results", type=Path, default=Path("results"), help="folder of the stored results")
    parser.add_argument("--docs", type=Path, default=Path("docs"), help="folder of the page")
    given = parser.parse_args()
    print(write_book(given.results, given.docs))


if __name__ == "__main__":
    main()
