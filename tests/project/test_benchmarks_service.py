"""benchmarks/service.py runs, at tiny sizes and without a look at the clock."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
# in a process of its own: beside the tests, `service` and `live` are others
PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
import service
tiny = service.Sizes(
    actions=300, dim=3, rate=20.0, seconds=1.0, trial=0.5, highest=50.0, policy_actions=500, policy_dim=4, policy_rate=10.0,
    policy_seconds=1.0, events=1_000, inline_rate=5.0,
)
service.main(["--only", sys.argv[2]], tiny)
"""


@pytest.mark.slow
@pytest.mark.parametrize("part", ["load", "rate", "policy", "memory", "inline"])
def test_every_part_runs_and_nothing_is_refused(part: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(BENCHMARKS), part], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout.splitlines()[-1])
    assert figures and not any(value for name, value in figures.items() if name.endswith("refused"))
