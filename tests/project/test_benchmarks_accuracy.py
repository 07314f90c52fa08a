"""benchmarks/accuracy.py with few rows: it runs, and ends with its figures by name, which are small."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def test_errors_are_reported_by_agent_way_and_condition(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    accuracy = importlib.import_module("accuracy")
    accuracy.main(["--rows", "60"])
    figures = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert len(figures) == len(accuracy.AGENTS) * len(accuracy.CONDITIONS) * 4
    assert {name.split("_")[0] for name in figures} == set(accuracy.AGENTS)
    assert all(0 <= value < 1e-8 for value in figures.values())
