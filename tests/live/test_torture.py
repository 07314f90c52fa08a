"""A few kills of processes on a live store; `make torture` makes a thousand."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]


def tortured(store: str, kills: int) -> None:
    command = [sys.executable, "-W", "ignore", "-m", "live.torture", "--kills", str(kills), "--store", store]
    run = subprocess.run(command, cwd=TESTS, capture_output=True, text=True, timeout=1800, env=_environment())
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-4000:]
    assert "nothing was lost, invented or counted twice" in run.stdout


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS.parent / "src"), str(TESTS)])}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_five_kills() -> None:
    tortured("sqlite", 5)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
@pytest.mark.parametrize("store", ["sqlite", "postgresql"])
def test_fifty_kills(store: str) -> None:
    tortured(store, 50)
