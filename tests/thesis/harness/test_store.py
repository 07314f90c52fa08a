"""Records and summaries: what is written comes back, is small, and says how it came about."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from manyarms import __version__
from manyarms.errors import ManyArmsError
from manyarms_thesis.catalogue import find, run
from manyarms_thesis.harness.claims import Claim
from manyarms_thesis.harness.store import Record, read_record, read_records


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Claim]]:
    """A small experiment that was run with `--keep`."""
    folder = tmp_path_factory.mktemp("kept")
    outcome = run(
        find("mets-uncertain"),
        "smoke",
        folder / "out",
        workers_wanted=1,
        kept=folder / "results",
        console=Console(file=io.StringIO()),
    )
    return folder / "results", outcome.claims


@pytest.fixture(scope="module")
def record(kept: tuple[Path, list[Claim]]) -> Record:
    return read_records(kept[0])["mets-uncertain"]


def test_claims_come_back(kept: tuple[Path, list[Claim]], record: Record) -> None:
    assert [one.plain() for one in record.claims] == [one.plain() for one in kept[1]]


def test_a_record_says_how_it_came_about(kept: tuple[Path, list[Claim]], record: Record) -> None:
    about = record.about
    assert about["command"] == "manyarms reproduce mets-uncertain --scale smoke" and about["seed"] == 0
    assert about["versions"]["manyarms"] == __version__ and about["processor_seconds"] >= 0
    assert about["smaller_than_the_thesis"] and about["setting"] and about["sizes"]["runs"]
    files = sorted(path.name for path in kept[0].iterdir())
    assert files == ["mets-uncertain.csv", "mets-uncertain.json"]
    assert sum(path.stat().st_size for path in kept[0].iterdir()) < 300_000


def test_summaries_have_curves_and_ends(record: Record) -> None:
    variant, panel, method, _ = next(iter(record.curves))
    curve, spent = (record.curves[variant, panel, method, column] for column in ("regret", "milliseconds_a_round"))
    assert 2 <= len(curve) <= 20 and [point.at for point in curve] == sorted(point.at or 0.0 for point in curve)
    assert all(point.standard_error >= 0 and point.runs >= 2 for point in curve)
    assert len(spent) == 1 and spent[0].at is None


@pytest.mark.parametrize("damage", ["{", json.dumps({"experiment": "x"})])
def test_what_is_no_record_is_named(kept: tuple[Path, list[Claim]], tmp_path: Path, damage: str) -> None:
    path = tmp_path / "mets-uncertain.json"
    path.write_text(damage)
    with pytest.raises(ManyArmsError, match=r"mets-uncertain\.json: no stored result"):
        read_record(path)
