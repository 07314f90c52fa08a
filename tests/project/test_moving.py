"""The pages for those who come from elsewhere: their code runs, and gives the same numbers, where the other library is installed.

A block says whose it is: "data" and "manyarms" run everywhere, what has another title needs the other library.
"""

from __future__ import annotations

import re
import sys
import types
import warnings
from pathlib import Path

import pytest

PAGES = Path(__file__).resolve().parents[2] / "docs" / "moving"
OURS = ("data", "manyarms")
# what a page moves from, and how it is imported
PEERS = {
    "contextualbandits": "contextualbandits.online",
    "mabwiser": "mabwiser.mab",
    "open-bandit-pipeline": "obp.ope",
    "personalizer": "vowpalwabbit",  # which learned inside the service
    "vowpal-wabbit": "vowpalwabbit",
}


def blocks_of(page: str) -> list[tuple[int, str, str]]:
    """(line, title, code) of the Python blocks of a page."""
    text = (PAGES / f"{page}.md").read_text(encoding="utf-8")
    assert "```python\n" not in text, "a block without a title: nobody knows whether it needs the other library"
    found = re.finditer(r'^```python title="([^"]+)"\n(.*?)^```$', text, re.DOTALL | re.MULTILINE)
    return [(text[: block.start(2)].count("\n"), block[1], block[2]) for block in found]


def run(page: str, monkeypatch: pytest.MonkeyPatch, *, ours_alone: bool) -> None:
    """The blocks in order, in one fresh namespace; blank lines in front, so that a traceback names the page's line."""
    module = types.ModuleType("page")
    monkeypatch.setitem(sys.modules, "page", module)
    for line, title, code in blocks_of(page):
        if title in OURS or not ours_alone:
            exec(compile("\n" * line + code, f"{page}.md", "exec", dont_inherit=True), module.__dict__)


def test_every_page_is_tested_and_compares() -> None:
    assert {page.stem for page in PAGES.glob("*.md")} == set(PEERS)
    for page in PEERS:
        titles = [title for _, title, _ in blocks_of(page)]
        assert "manyarms" in titles and "the same numbers" in titles
        assert len(set(titles) - {*OURS, "the same numbers"}) == 1  # one name for the other library


@pytest.mark.parametrize("page", PEERS)
def test_our_side_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run(page, monkeypatch, ours_alone=True)


@pytest.mark.filterwarnings("ignore")  # what the others have to warn of is theirs
@pytest.mark.parametrize("page", PEERS)
def test_both_sides_agree(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip(PEERS[page], exc_type=ImportError)
    monkeypatch.chdir(tmp_path)
    run(page, monkeypatch, ours_alone=False)
