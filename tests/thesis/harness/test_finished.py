"""Finished work on disk that cannot be trusted is work to be done again; it never hangs, fills memory or ends the run."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from manyarms_thesis.harness.finished import Finished

ITEM: Any = SimpleNamespace(key=lambda version: "piece", runs=(0, 1))
OUTCOME = {0: {"regret": np.arange(3.0)}, 1: {"regret": np.arange(3.0) + 1}}


@pytest.fixture
def finished(tmp_path: Path) -> Finished:
    store = Finished(tmp_path / "parts", "1")
    store.write(ITEM, OUTCOME)
    return store


def test_what_was_written_comes_back(finished: Finished) -> None:
    found = finished.read(ITEM)
    assert found is not None and found.keys() == OUTCOME.keys()
    for run, columns in OUTCOME.items():
        np.testing.assert_array_equal(found[run]["regret"], columns["regret"])


@pytest.mark.parametrize(
    "content",
    [
        {"0/regret": np.ones(3)},  # a run is missing
        {"0/regret": np.ones(3), "1/regret": np.ones(3), "x/regret": np.ones(3)},
        {"0/regret": np.ones(3), "1/regret": np.array([{}], dtype=object)},
    ],
)
def test_other_contents(finished: Finished, content: dict[str, Any]) -> None:
    np.savez(finished.path(ITEM), **content)
    assert finished.read(ITEM) is None


def test_what_would_inflate(finished: Finished) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.savez_compressed(finished.path(ITEM), **{"0/regret": np.zeros(100_000), "1/regret": np.zeros(3)})
    assert finished.read(ITEM) is None


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no such pipes")
def test_what_is_no_file(finished: Finished) -> None:
    path = finished.path(ITEM)
    for make in (os.mkfifo, os.mkdir):
        path.unlink(missing_ok=True)
        make(path)
        assert finished.read(ITEM) is None
