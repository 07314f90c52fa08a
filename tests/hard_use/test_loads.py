"""Hostile folders and logs: refused, or sound. `make fuzz` loads thousands."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import manyarms as ma
from hard_use import loads, mutations

TESTS = Path(__file__).resolve().parents[1]
pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="limits of time are Linux's"),
    pytest.mark.filterwarnings("ignore"),  # a hostile state may overflow before it is refused
]


@pytest.fixture(scope="module")
def loader(tmp_path_factory: Any) -> loads.Loader:
    return loads.Loader(tmp_path_factory.mktemp("loads"), 60.0)


def test_nothing_new_in_a_hundred_loads() -> None:
    """In a process of its own, which may not take all memory."""
    command = [sys.executable, "-m", "hard_use.loads", "--calls", "100", "--seconds", "60"]
    run = subprocess.run(command, cwd=TESTS, capture_output=True, text=True, timeout=1800)
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-2000:]


def test_every_kind_of_folder_is_saved(loader: loads.Loader) -> None:
    kinds = {mutations.read_folder(folder)[0]["kind"] for folder in loader.saved.values()}
    optional = set() if find_spec("skops") is not None else {"transformer-encoder"}
    assert kinds == set(ma._base.storage._MODULES) - optional


def test_a_folder_written_here_loads(loader: loads.Loader, tmp_path: Path) -> None:
    """The format as mutations.py writes it is the library's: a load that is refused is refused for what was changed."""
    for number, (name, folder) in enumerate(loader.saved.items()):
        there = tmp_path / str(number)
        mutations.write_folder(there, *mutations.read_folder(folder))
        ma.load(there)
        mine, theirs = (json.loads((f / "manifest.json").read_text()) for f in (there, folder))
        assert mine["spec"] == theirs["spec"] and mine["arrays"]["names"] == theirs["arrays"]["names"], name


def test_the_loader_sees(loader: loads.Loader, tmp_path: Path, monkeypatch: Any) -> None:
    """Folders that run through whatever is loaded without a look: seen as an exception, as broken, and as no number."""

    class Broken:
        """Something that was loaded, and cannot be used."""

        dim, action_count = 3, 2

        def probabilities_of(self, X: Any, actions: Any) -> Any:
            raise ValueError("never")

        def sample_rows(self, X: Any, rng: Any) -> Any:
            return np.zeros(2, dtype=int)

    class Wrong(Broken):
        """Something whose numbers are none."""

        def probabilities_of(self, X: Any, actions: Any) -> Any:
            return np.full(2, np.nan)

    monkeypatch.setattr(ma.policies, "StreamedPolicy", Broken)
    found = loads.Notes(tmp_path, 60.0)
    for made in (Broken, Wrong, lambda: {}["gone"]):
        loads.Loader.judge(found, made, "load it", "something", "again")  # type: ignore[arg-type]
    kinds = [violation.kind for violation in found.violations.values()]
    assert kinds == ["poisoned", "nan", "exception"]


@pytest.mark.parametrize("label", ["bomb", "header", "twice"])
def test_hostile_archives_are_what_they_should_be(label: str, loader: loads.Loader, tmp_path: Path) -> None:
    """They get as far as the archive itself: the manifest is sound and its checksums fit."""
    there = tmp_path / "it"
    manifest, arrays = mutations.read_folder(next(iter(loader.saved.values())))
    mutations.write_folder(there, manifest, arrays)
    (file,) = there.glob("arrays-*.npz")
    mutations.ARCHIVES[label](there, file, file.read_bytes())
    (file,) = there.glob("arrays-*.npz")
    names = zipfile.ZipFile(file).namelist()
    assert file.stat().st_size < 4 << 20 and names
    if label == "twice":
        assert len(set(names)) < len(names)
    assert json.loads((there / "manifest.json").read_text())["arrays"]["file"] == file.name
