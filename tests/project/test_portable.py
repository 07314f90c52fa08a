"""tools/portable.py: what it tells the libraries is what they understand, and every axis is visited."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def portable(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    return importlib.import_module("portable")


def test_every_axis_is_visited(portable: ModuleType) -> None:
    configurations = portable.CONFIGURATIONS.values()
    cores = {c.environment.get("OPENBLAS_CORETYPE") for c in configurations}
    assert {"Haswell", "Zen", "SkylakeX"} <= cores
    assert {"default", "avx2"} <= {c.environment.get("ATEN_CPU_CAPABILITY") for c in configurations}
    assert {c.threads for c in configurations} == {1, 2} and any(c.busy for c in configurations)
    assert all((ROOT / "tests" / name).is_dir() for name in portable.NUMERICAL)


def test_numpy_takes_the_environment_without_a_warning(portable: ModuleType) -> None:
    """With everything disabled that it can leave out, NumPy has none of it left, and complains of no name."""
    code = portable.FEATURES_OF_NUMPY
    environment = portable.environment_of(portable.CONFIGURATIONS["plain"])
    assert environment["OMP_NUM_THREADS"] == "1"
    answer = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], env=environment, capture_output=True, text=True, timeout=600
    )
    assert answer.returncode == 0, answer.stderr
    assert json.loads(answer.stdout) == []


def test_what_is_disabled_already_is_disabled_still(portable: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """A configuration replaces the caller's own list: it must name what that list has, too."""
    everything = portable.disabled(("",))
    monkeypatch.setenv("NPY_DISABLE_CPU_FEATURES", " ".join(everything.split()[-1:]))
    assert portable.disabled(("",)) == everything


def test_wide_registers_are_asked_for_only_where_they_are(portable: ModuleType) -> None:
    assert portable.CONFIGURATIONS["skylakex"].needs == "avx512f"
    if Path("/proc/cpuinfo").exists() and os.uname().machine == "x86_64":
        assert "sse2" in portable.features_of_the_processor()
