"""A few kills of a process that saves; `make kills` makes many, of learning and experiments too."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
@pytest.mark.parametrize("parts", ["save", "reader,writers,full,readonly"])
def test_nothing_is_lost(parts: str) -> None:
    command = [sys.executable, "-W", "ignore", "-m", "hard_use.kills", "--kills", "3", "--parts", parts]
    run = subprocess.run(command, cwd=TESTS, capture_output=True, text=True, timeout=1800)
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-2000:]
