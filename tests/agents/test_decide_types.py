"""What a type checker knows of decisions: one context gives an id, several an array of them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mypy")

SNIPPET = """
import numpy as np
import numpy.typing as npt
import manyarms as ma
from manyarms.policies import SoftmaxPolicy

class Frame:
    shape = (3, 2)
    columns = ["a", "b"]

Matrix = np.ndarray[tuple[int, int], np.dtype[np.float64]]
agent: ma.Agent
policy: SoftmaxPolicy

def asked(row: dict[str, str | float], frame: Frame, some: npt.NDArray[np.float64], matrix: Matrix) -> None:
    reveal_type(agent.decide([0.5, 1.0]))  # id
    reveal_type(agent.decide({"age": 30.0, "town": "Ulm"}))  # id
    reveal_type(agent.decide(row))  # id
    reveal_type(agent.decide(np.zeros(2)))  # id
    reveal_type(agent.decide({"age": [30.0, 31.0]}))  # array
    reveal_type(agent.decide([[0.5, 1.0], [1.0, 2.0]]))  # array
    reveal_type(agent.decide([row, row]))  # array
    reveal_type(agent.decide(matrix))  # array
    reveal_type(agent.decide(some))  # either
    reveal_type(agent.decide(frame))  # array
    reveal_type(agent.decide([0.5, 1.0], k=3))  # array
    reveal_type(agent.decide(some, k=3, candidates=["a", "b"]))  # array
    reveal_type(agent.decide([0.5, 1.0], exclude=["a"], draw=3))  # id
    reveal_type(agent.snapshot().decide([0.5, 1.0]))  # id
    reveal_type(policy.decide([0.5, 1.0]))  # id
    reveal_type(policy.decide(row))  # id
    reveal_type(policy.decide([row, row], candidates=[["a"], ["b"]]))  # array
    reveal_type(policy.decide([0.5, 1.0], 3))  # array
    reveal_type(policy.sample(row, 0))  # id
    reveal_type(policy.sample([[0.5, 1.0]], 0))  # array
    agent.decide("x", k="three")  # error
    agent.decide([0.5], nonsense=3)  # error
"""
ARRAY = "ndarray[tuple[Any, ...], dtype[Any]]"
KINDS = {"str | int": "id", ARRAY: "array", f"str | int | {ARRAY}": "either"}


@pytest.mark.slow
def test_a_type_checker_knows_ids_from_arrays(tmp_path: Path) -> None:
    (tmp_path / "snippet.py").write_text(SNIPPET)
    root = Path(__file__).resolve().parents[2]  # with the project's own settings, and what `make lint` has cached
    run = subprocess.run(
        [sys.executable, "-m", "mypy", "--no-error-summary", str(tmp_path / "snippet.py")],
        capture_output=True, text=True, cwd=root, env={**os.environ, "MYPYPATH": str(root / "src")}, check=False,
    )  # fmt: skip
    told: dict[int, list[str]] = {}
    for line in run.stdout.splitlines():
        if (
            found := re.match(r".*snippet\.py:(\d+): (?:note: Revealed type is \"(.*)\"|error: .*)$", line)
        ) is not None:
            short = re.sub(r"\b(?:builtins|numpy|typing)\.", "", found[2]) if found[2] else "error"
            told.setdefault(int(found[1]), []).append(KINDS.get(short, short))
    for number, line in enumerate(SNIPPET.splitlines(), start=1):
        if "  # " in line:
            expected = line.rpartition("  # ")[2]
            assert expected in told.get(number, []), (line, told.get(number), run.stdout)
