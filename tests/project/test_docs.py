"""The documentation is true: its code runs, its links lead somewhere, and the commands it names exist."""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
import sys
import types
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path

import pytest

from manyarms.agents.decisions import DECISIONS
from manyarms.cli import app as command_line
from manyarms.weights import CORRECTIONS
from manyarms_thesis import catalogue as experiments

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    *(ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted((ROOT / "docs").glob("**/*.md")),
]
# a page shows the sizes that a reader wants to see; here they need only be large enough to run
SMALLER = {
    "=3_000": "=40",
    "runs=300": "runs=2",
    "rounds=1_000": "rounds=40",
    "runs=6": "runs=2",
    "=100_000": "=9_000",
    "5_000": "300",
    "20_000": "4_000",
}


# not ours to run: they install, or build
NOT_OURS = ("pip", "make", "export", "git")


@dataclass(frozen=True)
class Block:
    """A block of code on a page: where it starts, whether it is Python or commands, and the packages that it needs."""

    line: int
    language: str
    code: str
    needs: tuple[str, ...]

    @property
    def missing(self) -> list[str]:
        """What is not installed of what it needs."""
        return [name for name in self.needs if importlib.util.find_spec(name) is None]


def blocks_of(page: Path) -> list[Block]:
    """The Python and shell blocks of a page, in order. `<!-- needs: pandas -->` before one says what it cannot run without."""
    text = page.read_text(encoding="utf-8")
    found = re.finditer(
        r"(?:^<!-- needs: ([\w, ]+) -->\n+)?^```(python|sh)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE
    )
    return [
        Block(text[: block.start(3)].count("\n"), block[2], block[3], tuple(re.findall(r"\w+", block[1] or "")))
        for block in found
    ]


def commands_in(code: str) -> list[list[str]]:
    """The words of every command in a block of commands; comments are none."""
    lines = code.replace("\\\n", " ").splitlines()
    return [words for line in lines if (words := shlex.split(line, comments=True))]


def title_of(page: Path) -> str:
    """A page's name in a report."""
    return page.relative_to(ROOT).as_posix()


def prose_of(page: Path) -> str:
    """A page without its blocks of code."""
    return re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def anchors_of(page: Path) -> set[str]:
    """The places inside a page that a link can name, by the rule of the usual Markdown viewers."""
    headings = re.findall(r"^#+ (.*)$", prose_of(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page may register a part of its own: it is gone afterwards."""
    for one in (DECISIONS, CORRECTIONS):
        monkeypatch.setattr(one, "_parts", dict(one))


@pytest.mark.usefixtures("registry")
@pytest.mark.parametrize("page", [page for page in PAGES if blocks_of(page)], ids=title_of)
def test_the_code_on_a_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All blocks of a page, in order, in one fresh namespace and an empty folder; the sizes are made small."""
    monkeypatch.chdir(tmp_path)
    module = types.ModuleType("page")  # a real one: dataclasses look their module up
    monkeypatch.setitem(sys.modules, "page", module)
    for block in blocks_of(page):
        if block.missing:
            continue
        code = block.code
        for large, small in SMALLER.items():
            code = code.replace(large, small)
        if block.language == "sh":
            for words in commands_in(code):
                run(words, f"{page.name}, line {block.line + 1}")
            continue
        # blank lines in front, so that a traceback names the line of the page
        exec(compile("\n" * block.line + code, str(page), "exec", dont_inherit=True), module.__dict__)


def run(words: list[str], where: str) -> None:
    """A command of a page, in this process; one that fails is a failure of the page."""
    if words[0] in NOT_OURS or (
        words[1] == "reproduce" and "--list" not in words
    ):  # experiments have tests of their own
        return
    assert words[0] == "manyarms", f"{where}: {words}"
    try:
        command_line.main(words[1:])
    except SystemExit as end:
        assert end.code in (0, None), f"{where}: {shlex.join(words)} ended with {end.code}"


def test_the_sizes_that_are_made_small_are_still_there() -> None:
    code = "".join(block.code for page in PAGES for block in blocks_of(page))
    assert [large for large in SMALLER if large not in code] == []


@pytest.mark.parametrize("page", PAGES, ids=title_of)
def test_links_lead_somewhere(page: Path) -> None:
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", prose_of(page)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        if not there.exists() or (anchor and anchor not in anchors_of(there)):
            broken.append(target)
    assert broken == []


def test_commands_exist() -> None:
    """Every `make` target and every experiment that a page names is there, and every experiment is listed."""
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    text += "".join(f"\n    {block.code}" for page in PAGES for block in blocks_of(page) if block.language == "sh")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    assert set(re.findall(r"(?:^    |`)make ([a-z-]+)", text, re.MULTILINE)) <= targets
    assert set(re.findall(r"manyarms reproduce ([a-z]+(?:-[a-z]+)+)", text)) <= set(experiments.catalogue())


def test_the_speed_table_is_the_benchmarks_own() -> None:
    """README's figures, to three digits, are those that benchmarks/README.md reports."""
    report = (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")
    measured: dict[str, float] = {}
    for line in re.findall(r"^\{.*\}$", report, re.MULTILINE):  # one a benchmark
        measured |= json.loads(line)
    rows = re.findall(r"\| `(\w+)` \| ([\d.,]+) \|", PAGES[0].read_text(encoding="utf-8"))
    assert rows
    for name, shown in rows:
        assert float(shown.replace(",", "")) == pytest.approx(measured[name], rel=0.005), name


def test_pictures_are_small_and_whole() -> None:
    pictures = list((ROOT / "docs" / "pictures").glob("*.svg"))
    assert pictures
    for picture in pictures:
        assert picture.stat().st_size < 100_000
        assert ElementTree.parse(picture).getroot().tag.endswith("svg")
    for photograph in (ROOT / "docs" / "pictures").glob("*.png"):
        assert photograph.stat().st_size < 200 * 1024
        assert photograph.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


def test_the_manual_has_every_page() -> None:
    """mkdocs.yml leads to every page of docs/, and to nothing else but the pages that are taken from outside."""
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    listed = re.findall(r"^ +- (?:[^:\n]+: )?([\w/-]+\.md)$", settings, re.MULTILINE)
    there = {page.relative_to(ROOT / "docs").as_posix() for page in (ROOT / "docs").glob("**/*.md")}
    assert len(listed) == len(set(listed))
    assert {page for page in listed if not page.startswith("project/")} == there


def test_the_reference_has_every_topic() -> None:
    """A page for each topic of the package lists its names, and the index leads to it."""
    import manyarms

    index = (ROOT / "docs" / "reference" / "index.md").read_text(encoding="utf-8")
    for topic in manyarms._TOPICS:
        page = ROOT / "docs" / "reference" / f"{topic}.md"
        assert f"<!-- names: manyarms.{topic} -->" in page.read_text(encoding="utf-8")
        assert f"({topic}.md)" in index
