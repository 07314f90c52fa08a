"""benchmarks/importing.py with one turn: it runs, and ends with its figures by name. How long it takes is no test."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.mark.slow  # a dozen interpreters, the first of which compile what they import
def test_the_import_is_measured_over_numpys(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    importing = importlib.import_module("importing")
    importing.main(["--turns", "1"])
    figures = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert set(figures) == {
        "import_numpy_s", "import_first_use_over_numpy", *(f"import_{step}_s" for step in list(importing.STEPS)[1:])
    }  # fmt: skip
    assert importing.GOAL[0] in figures and figures["import_numpy_s"] > 0
