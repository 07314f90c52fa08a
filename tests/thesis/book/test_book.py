"""The book of results: every experiment has an entry, the page is what the command makes, verdicts follow from stored figures."""

from __future__ import annotations

import json
import math
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from manyarms_thesis.book.__main__ import write_book
from manyarms_thesis.book.answers import PLACE, StaleAnswer, filled
from manyarms_thesis.book.chapters import CHAPTERS
from manyarms_thesis.book.page import _measurements, _world, verdict_follows
from manyarms_thesis.book.pictures import lighter
from manyarms_thesis.catalogue import SCALES, catalogue
from manyarms_thesis.harness.claims import Claim, Measured, claim
from manyarms_thesis.harness.store import Record, read_record, read_records, with_part
from manyarms_thesis.harness.verdicts import Statement

ROOT = Path(__file__).parents[3]
RESULTS, DOCS = ROOT / "results", ROOT / "docs"
RECORDS = read_records(RESULTS)
FILES = sorted(RESULTS.glob("*.json"))  # wholes, and parts beside them
STORED = pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page as the command makes it now."""
    folder = tmp_path_factory.mktemp("docs")
    return write_book(RESULTS, folder)


def test_the_page_is_what_the_command_makes(made: Path) -> None:
    assert made.read_text() == (DOCS / "reproduction.md").read_text(), "run `make book`"


def test_the_pictures_are_there(made: Path) -> None:
    named = re.findall(r"\]\((pictures/[^)]+)\)", made.read_text())
    assert len(named) == sum(bool(chapter.drawings) for chapter in CHAPTERS)
    for name in named:
        for folder in (made.parent, DOCS):
            assert ElementTree.parse(folder / name).getroot().tag.endswith("svg")


def test_paths_are_written_with_fewer_decimals_and_nothing_else_is() -> None:
    drawing = b'<g transform="scale(0.015625)"><path d="M 1.234567 20 L 3.5 -0.004999 z"/></g>'
    assert lighter(drawing) == b'<g transform="scale(0.015625)"><path d="M 1.23 20 L 3.5 -0.00 z"/></g>'


def test_every_experiment_has_an_entry(made: Path) -> None:
    assert set(RECORDS) <= set(catalogue())
    page = made.read_text()
    for experiment in catalogue().values():
        assert f"### {experiment.title}\n" in page
        run = f"`manyarms reproduce {experiment.name}" + (" --scale" if experiment.name in RECORDS else "`")
        assert run in page
        assert any(chapter.number == experiment.place[0] for chapter in CHAPTERS)


@STORED
def test_verdicts_follow_from_the_stored_figures(path: Path) -> None:
    record = read_record(path)
    about = record.about
    panels = {panel for _, panel, _, _ in record.curves}
    part = "--only" in about["command"]
    for one in record.claims:
        # some of the worlds, like smaller ones, refute only what is said of one of them
        cut = {name for name in about["fewer_than_the_thesis"] if name != "variant"} if part else set()
        alone = one.of_each or (one.panel in panels and "method" not in cut)
        assert verdict_follows(one, smaller=bool(about["smaller_than_the_thesis"] or (cut and not alone))), one


@STORED
def test_what_follows_from_a_stored_claim_is_stored_as_it_follows(path: Path) -> None:
    """Sections from lines, `holds` from the verdict, what would show from the error: a record cannot be changed in one place."""
    told = json.loads(path.read_text())["claims"]
    assert [Claim.of_plain(one).plain() for one in told] == told
    for one in read_record(
        path
    ).claims:  # and smaller sizes are a reason for "undecided" just where they are given as one
        assert one.detail.startswith("with these sizes") <= (one.verdict == "undecided" and one.parts[2] > 0)


@STORED
def test_a_record_says_how_it_came_about(path: Path) -> None:
    record = read_record(path)
    about = record.about
    assert path.stem == record.name + (".part" if "--only" in about["command"] else "")
    assert about["scale"] in SCALES and about["scale"] != "smoke"
    assert about["command"].startswith(f"manyarms reproduce {record.name} --scale {about['scale']}")
    assert {"manyarms", "Python", "numpy"} <= set(about["versions"]) and re.fullmatch(
        r"\d{4}-\d\d-\d\d", about["finished"]
    )
    assert record.curves and all(math.isfinite(one.figure) or one.verdict == "undecided" for one in record.claims)
    assert not any("made up" in note.lower() for note in about["notes"]), "made-up data are no results"


def test_the_store_is_small_and_names_no_machine() -> None:
    files = sorted(RESULTS.glob("*.*"))
    assert sum(path.stat().st_size for path in files) < 8_000_000
    assert {path.suffix for path in files} <= {".json", ".csv", ".md"}
    for path in files:
        assert not re.search(r"/(home|root|work|tmp|Users)/", path.read_text()), path.name


def record_of(*verdicts: str) -> Mapping[str, Record]:
    claims = [
        Claim("meTS is better", "1", 2.0 + i, 0.5, verdict, f"linear, K={100 + i}")  # type: ignore[arg-type]
        for i, verdict in enumerate(verdicts)
    ]
    return {"mets-x": Record({"experiment": "mets-x"}, claims, {})}


def test_a_part_at_larger_sizes_takes_the_place_of_what_the_whole_has() -> None:
    whole = record_of("held", "undecided")["mets-x"]
    whole = replace(
        whole,
        about={"smaller_than_the_thesis": {"rounds": [10, 20]}},
        curves={("", "a", "x", "y"): [], ("", "b", "x", "y"): []},
    )
    larger = replace(whole.claims[1], figure=7.0, verdict="held")
    new, other = replace(larger, panel="linear, K=9"), replace(larger, statement="meTS is best")
    part = Record({"smaller_than_the_thesis": {}}, [larger, other, new], {("", "b", "z", "y"): []}, file="part")
    joint = with_part(whole, part)
    assert joint.claims == [whole.claims[0], larger, new, other] and joint.about == whole.about
    assert set(joint.curves) == {("", "a", "x", "y"), ("", "b", "z", "y")}  # no panel is of two sizes
    assert [joint.is_of_part(one) for one in joint.claims] == [False, True, True, True]
    assert [joint.file_of(one) for one in joint.claims] == ["", "part", "part", "part"]
    told = _measurements(Statement("meTS is better", joint.claims[:3]), joint).split("<br>")
    assert [" ◆: " in line for line in told] == [False, True, True]  # the reader sees which are of the part
    assert joint.is_full([larger, new]) and not joint.is_full([larger, whole.claims[0]])
    assert not whole.is_full(whole.claims) and not whole.is_of_part(larger)


def test_answers_are_filled_from_claims() -> None:
    text = "It gains {[held]mets-x: meTS is | K=100}, or so {~mets-x: meTS}."
    assert filled(text, record_of("held")) == "It gains 2.00 ± 0.50, or so."


def test_comparisons_are_counted() -> None:
    several = [Measured(2.0, 0.5), Measured(0.1, 0.5), Measured(3.0, 0.5)]
    claims = [claim("meTS is better", "1", several[1], parts=several, panel=f"K={K}") for K in (10, 20)]
    records = {"mets-x": Record({"experiment": "mets-x"}, claims, {})}
    assert filled("{#[held in part]mets-x: meTS | *}, {#mets-x: meTS | K=20}.", records) == "4 of 6, 2 of 3."


def test_a_star_is_the_statement_over_all_of_its_worlds() -> None:
    records = record_of("held", "undecided")
    assert filled("{[held]mets-x: meTS}, {[held in part]mets-x: meTS | *}.", records) == "2.00 ± 0.50, 2.00 ± 0.50."
    with pytest.raises(StaleAnswer, match="stored verdict is held in part"):
        filled("{~[held]mets-x: meTS | *}", records)


@pytest.mark.parametrize(
    "text",
    [
        "{[refuted]mets-x: meTS}",
        "{[refuted]mets-x: meTS | *}",
        "{mets-x: LinTS | *}",
        "{mets-x: LinTS}",
        "{mets-x: meTS | K=7}",
        "{mets-y: meTS}",
        "{Mets_x: meTS}",
        "{mets-x: meTS",
    ],
)
def test_answers_do_not_outlive_their_results(text: str) -> None:
    with pytest.raises(StaleAnswer):
        filled(text, record_of("held"))


def test_every_chapter_has_an_answer_that_rests_on_results() -> None:
    numbers = {experiment.place[0] for experiment in catalogue().values()}
    assert {chapter.number for chapter in CHAPTERS} == numbers
    for chapter in CHAPTERS:
        assert chapter.question.endswith("?") and chapter.setting and chapter.caption and chapter.drawings
        assert PLACE.search(chapter.answer)


def test_every_stored_result_is_spoken_of() -> None:
    for chapter in CHAPTERS:
        named = {place["name"] for place in PLACE.finditer(chapter.answer)}
        stored = {name for name in RECORDS if catalogue()[name].place[0] == chapter.number}
        assert stored <= named, sorted(stored - named)
        assert named <= stored, f"an answer rests on results of another chapter: {sorted(named - stored)}"


@pytest.mark.parametrize(
    ("detail", "which"),
    [
        (
            "over the same worlds: LinTS 526.5 ± 26, HierTS 1229 ± 1.6e+02; least convincing: HierTS",
            ", least clear: HierTS",
        ),
        ("K=20: 2 ± 1, K=50: 3 ± 1; least convincing step: K=20 to K=50; and more", ", least clear: K=20 to K=50"),
        ("the figure is the least convincing lead, over ES in gowalla, chosen rate. Value ...", ", least clear: ES"),
        ("nothing of the kind", ""),
    ],
)
def test_a_figure_of_several_comparisons_says_of_which_it_is(detail: str, which: str) -> None:
    """The least clear difference need not be the smallest, which a reader would take it for."""
    several = [Measured(1229.0, 160.0, 49), Measured(526.5, 26.0, 49)]
    shown = _world(claim("best", "1", several[0], panel="linear", parts=several, detail=detail))
    assert shown == f"linear (2 of 2 comparisons{which})"
    assert _world(claim("best", "1", several[0], panel="linear", detail=detail)) == "linear"


def test_the_manual_has_the_figures_of_the_record() -> None:
    """docs/learning.md, what cLPI and cIPS earned on Gowalla: a row for each way to choose the rate."""
    page = (DOCS / "learning.md").read_text()
    claims = {(one.statement, one.panel): one for one in RECORDS["pwll-catalogues"].claims}
    for row, of in (("Adam at 0.1 for both", "cLPI over cIPS with Adam at 0.1"), ("a rate and a τ for each", "cLPI")):
        cells = []
        for counted in ("value of the most probable action", "value of drawn actions"):
            one = claims[f"PWLL objectives outperform IPS-based objectives: {of} ({counted})", "gowalla"]
            for name in ("cLPI", "cIPS"):
                mean, error = (float(x) for x in re.findall(rf"{name} ([\d.]+) ± ([\d.]+)", one.detail)[0])
                cells.append(f"{mean:.3f} ± {error:.3f}")
        line = next(line for line in page.splitlines() if line.startswith(f"| {row}"))
        assert line.endswith(" | ".join(["", *cells]) + " |")
