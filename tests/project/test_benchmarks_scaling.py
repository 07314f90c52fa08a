"""benchmarks/scaling.py runs at tiny sizes; docs/costs.md says what docs/costs.json has, and no more."""

from __future__ import annotations

import importlib
import json
import math
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


@pytest.fixture
def scaling(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """benchmarks/scaling.py, found as it is when it is run: beside its own modules."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module("scaling")


@pytest.fixture
def stored() -> dict[str, object]:
    found: dict[str, object] = json.loads((DOCS / "costs.json").read_text(encoding="utf-8"))
    return found


def names() -> list[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "benchmarks"))
        return list(importlib.import_module("_scaling").STUDIES)


@pytest.mark.parametrize("name", names())
def test_every_study_runs(scaling: ModuleType, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """At its smallest size, with few calls; a study gives numbers for every series that it names."""
    studies = importlib.import_module("_scaling")
    monkeypatch.setattr(studies, "LEAST", 0.0)
    monkeypatch.setattr(studies, "FEWEST", 1)
    study = studies.STUDIES[name]
    if not study.possible:
        pytest.skip(f"{study.needs} is not installed")
    found = study.run(study.quick[0])
    assert set(found) == set(study.series)
    assert all(math.isfinite(number) and number >= 0 for number in found.values())
    assert study.quick[-1] <= study.values[-1]


def test_exponents_are_those_of_power_laws(scaling: ModuleType) -> None:
    page = importlib.import_module("_scaling_page")
    sizes = [10, 30, 100, 300, 1_000]
    found = page.fit(sizes, [3e-6 * size**1.5 for size in sizes], 2)
    assert found.exponent == pytest.approx(1.5)
    assert found.error == pytest.approx(0, abs=1e-9)
    assert found.low == 10
    assert found.size_at(3e-6 * 2_000**1.5) == pytest.approx(2_000)
    bent = page.fit(sizes, [1.0, 1.0, 1.0, 3.0, 10.0], 2)  # flat, and then in proportion
    assert 0 < bent.exponent < 1
    assert bent.deviation > page.CROOKED
    upper = page.fit(sizes, [1.0, 1.0, 1.0, 3.0, 10.0], 1)
    assert upper.low == 100
    assert upper.exponent == pytest.approx(1.0, abs=0.01)
    assert page.fit(sizes, [None, None, None, 1.0, 2.0], 2) is None


def test_the_page_says_what_is_stored(scaling: ModuleType, stored: dict[str, object]) -> None:
    """Its tables are made of the file: `python benchmarks/scaling.py --write` would change nothing."""
    page = (DOCS / "costs.md").read_text(encoding="utf-8")
    assert importlib.import_module("_scaling_page").filled(page, stored) == page
    for name, picture in importlib.import_module("_scaling_pictures").pictures(stored).items():
        assert (DOCS / "pictures" / name).read_text(encoding="utf-8") == picture
        assert f"pictures/{name}" in page
        ElementTree.fromstring(picture)


def test_the_stored_file_is_whole_and_names_no_machine(scaling: ModuleType, stored: dict[str, object]) -> None:
    text = (DOCS / "costs.json").read_text(encoding="utf-8")
    assert len(text) < 50_000
    assert set(stored) == {"command", "versions", "processor", "studies"}
    studies = importlib.import_module("_scaling").STUDIES
    columns = stored["studies"]
    assert isinstance(columns, dict)
    assert list(columns) == list(studies)
    for name, study in studies.items():
        assert columns[name][study.variable] == list(study.values)
        assert set(columns[name]) == {study.variable, *study.series}
        assert {len(column) for column in columns[name].values()} == {len(study.values)}
    assert not re.search(r"/(home|work|root|tmp)/|node|host", text)


def test_storing_keeps_other_studies(scaling: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "costs.json"
    scaling.store(path, {"rows": {"n": [1, 2], "sdm": [0.5, None]}})
    scaling.store(path, {"played": {"P": [1], "lints": [1e-4]}})
    text = path.read_text(encoding="utf-8")
    found = json.loads(text)
    assert list(found["studies"]) == ["played", "rows"]
    assert found["studies"]["rows"]["sdm"] == [0.5, None]
    assert len(text.splitlines()) < 30


def test_the_command_line(
    scaling: ModuleType, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.import_module("_scaling"), "LEAST", 0.0)
    scaling.main(["--list"])
    assert "policy-dim" in capsys.readouterr().out
    scaling.main(["--only", "policy-dim", "--quick"])
    last = capsys.readouterr().out.splitlines()[-1]
    assert set(json.loads(last)) == {"policy_dim_decide_exponent"}
