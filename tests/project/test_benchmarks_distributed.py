"""benchmarks/distributed.py runs at tiny sizes; docs/sizing.md says what docs/sizing.json has, and its formulas hold."""

from __future__ import annotations

import importlib
import json
import math
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
ROOT = Path(__file__).parents[2]
DOCS, BENCHMARKS = ROOT / "docs", ROOT / "benchmarks"


@pytest.fixture
def distributed(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """benchmarks/distributed.py, found as it is when it is run: beside its own modules."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("distributed")


@pytest.fixture
def sizing(distributed: ModuleType) -> ModuleType:
    return importlib.import_module("_sizing")


@pytest.fixture
def stored() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DOCS / "sizing.json").read_text(encoding="utf-8"))
    return found


# ---- the page


def test_the_page_says_what_is_stored(distributed: ModuleType, stored: dict[str, Any]) -> None:
    """Its tables are made of the file: `python benchmarks/distributed.py --write` would change nothing."""
    page = (DOCS / "sizing.md").read_text(encoding="utf-8")
    assert importlib.import_module("_sizing_page").filled(page, stored) == page


def test_the_stored_file_is_whole_and_names_no_machine(distributed: ModuleType, stored: dict[str, Any]) -> None:
    text = (DOCS / "sizing.json").read_text(encoding="utf-8")
    assert len(text) < 20_000
    assert set(stored) == {"command", "versions", "processor", "cores", "studies"}
    assert list(stored["studies"]) == [name for study in distributed.STUDIES.values() for name in study.makes]
    for columns in stored["studies"].values():
        assert len({len(column) for column in columns.values()}) == 1
    assert not re.search(r"/(home|work|root|tmp)/|node|host", text)


def test_what_was_stored_is_equal_to_the_local_fold_and_sent_what_the_model_says(stored: dict[str, Any]) -> None:
    assert stored["studies"]["fold-rows"]["n"][-1] == 2_000_000
    assert max(stored["studies"]["fold-rows"]["difference"]) <= 1e-9
    steps = stored["studies"]["steps"]
    assert steps["reduced"] == steps["modelled"] and set(steps["workers"]) == {2, 4}


def test_the_figures_in_the_benchmarks_readme_are_the_stored_ones(
    distributed: ModuleType, stored: dict[str, Any]
) -> None:
    page = importlib.import_module("_sizing_page")
    reported = page.published((BENCHMARKS / "README.md").read_text(encoding="utf-8"))
    for name, value in json.loads(distributed.as_json(distributed.figures_of(stored))).items():
        assert reported[name] == pytest.approx(value, rel=1e-4), name


# ---- the formulas


def test_actions_in_rows_by_zipfs_law(sizing: ModuleType, stored: dict[str, Any]) -> None:
    """Against the sum itself, and against what was counted in the rows that were folded."""
    for rows, actions in ((500, 700), (20_000, 30_000), (1e6, 50_000)):
        p = 1 / np.arange(1, actions + 1)
        exact = -np.expm1(rows * np.log1p(-p / p.sum())).sum()
        assert sizing.distinct(rows, actions) == pytest.approx(exact, rel=1e-3)
    for rows, seen in zip(stored["studies"]["fold-rows"]["n"], stored["studies"]["fold-rows"]["seen"], strict=True):
        assert sizing.distinct(rows, 100_000) == pytest.approx(seen, rel=0.02)


def test_bytes_of_sums_are_those_of_the_arrays(sizing: ModuleType, stored: dict[str, Any]) -> None:
    assert set(stored["studies"]["add"]["bytes_each"]) == {sizing.bytes_of_sums(10)}


def test_a_fold_sends_what_its_tree_adds(sizing: ModuleType) -> None:
    """Four shards in which every action occurs: 4 + 2 sums are sent, and what all rows tell is one."""
    costs = sizing.Costs(1.0, 0.5, 2.0, 0.0, 0.0)
    found = sizing.Fold.of(4 * sizing.SHARD, 10, 10, costs)
    assert found.shards == 4
    assert found.sums == pytest.approx(6 * 10, rel=1e-6)
    assert found.cpu_sums == pytest.approx(0.5 * found.sums)
    assert found.cpu_learn == pytest.approx(2.0 * 10)
    assert found.bytes_sent == pytest.approx(found.sums * sizing.bytes_of_sums(10))


def test_an_epoch(sizing: ModuleType) -> None:
    assumed = sizing.Assumed(gbit=8.0, latency=1e-3)
    found = sizing.Epoch.of(1_000, 10, 0.5, 300, 2, 4, assumed)
    assert found.steps == 100 and found.bytes_sent == 4 * 2 * 300 * 3 / 4
    assert found.latency == pytest.approx(2 * 2 * 3 * 1e-3) and found.sending == pytest.approx(found.bytes_sent / 1e9)
    assert found.hours == pytest.approx(100 * (0.5 + found.latency + found.sending) / 3600)
    assert sizing.Epoch.of(1_000, 10, 0.5, 300, 2, 1, assumed).latency == 0
    assert sizing.bytes_of_table(1e8, 64) == 76.8e9


def test_a_check_is_the_share_crowded_and_the_messages(sizing: ModuleType) -> None:
    studies = {
        "alone": {"K": [50, 100], "encoder": [0, 0], "seconds": [1.0, 2.0]},
        "crowd": {"workers": [2], "seconds": [1.5], "alone": [1.0]},
        "reduce": {"numbers": [1, 1_000, 100_000], "seconds_2": [0.1 + 4e-6 * n for n in (1, 1_000, 100_000)]},
        "steps": {"workers": [2], "K": [100], "encoder": [0], "reduced": [300], "messages": [2], "seconds": [2.0]},
    }
    (found,) = sizing.checks({"studies": studies})
    assert found.own == pytest.approx(1.5) and found.sending == pytest.approx(2 * 0.1 + 300 * 4e-6, rel=1e-4)
    assert found.error == pytest.approx(found.predicted / 2.0 - 1)


# ---- the command


def test_storing_keeps_other_studies(distributed: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "sizing.json"
    distributed.store(path, {"add": {"actions": [1], "add": [0.5]}})
    distributed.store(path, {"fold-shards": {"shards": [1, 2], "ray": [0.5, 0.25]}})
    found = json.loads(path.read_text(encoding="utf-8"))
    assert list(found["studies"]) == ["fold-shards", "add"]


def test_studies_that_need_no_cluster_run(distributed: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    distributed.main(["--list"])
    assert "fold-rows" in capsys.readouterr().out
    distributed.main(["--only", "add", "--quick"])
    assert capsys.readouterr().out.splitlines()[-1] == "{}"


def quick(study: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, str(BENCHMARKS / "distributed.py"), "--quick", "--only", study],
        capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.slow
def test_learning_runs_and_sends_what_the_model_says() -> None:
    found = quick("learning")
    assert found["step_numbers_beyond_model"] == 0
    assert all(math.isfinite(found[f"step_{workers}_model_error"]) for workers in (2, 4))
