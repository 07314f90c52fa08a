"""The three new users' jobs run as they stand in examples/, on made-up data: short scripts that one can copy."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SOURCES = EXAMPLES.parent / "src"
JOBS = ("shop", "notifications", "thesis")


def output_of(job: str, folder: Path, *arguments: str, **settings: str) -> str:
    """What a script prints, run in an empty folder; a warning ends it."""
    given = {name: value for name, value in os.environ.items() if name != "FULL"} | settings
    given["PYTHONPATH"] = os.pathsep.join(filter(None, [str(SOURCES), os.environ.get("PYTHONPATH")]))
    run = subprocess.run(
        # NumPy's builds differ in the features that an environment variable can switch off, and warn of others
        [sys.executable, "-W", "error", "-W", "ignore::ImportWarning", str(EXAMPLES / f"{job}.py"), *arguments],
        cwd=folder, env=given, capture_output=True, text=True, timeout=1_800,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    return run.stdout


@pytest.mark.parametrize("job", JOBS)
def test_a_job_is_at_most_thirty_lines(job: str) -> None:
    assert len((EXAMPLES / f"{job}.py").read_text(encoding="utf-8").splitlines()) <= 30


def test_the_shop_gets_skus_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    files = importlib.import_module("made_up").shop(tmp_path, rows=5_000, skus=300)
    told = output_of("shop", tmp_path, *map(str, files))
    assert "5,000 rounds" in told and "snips" in told and "verdict" in told
    assert told.rstrip().splitlines()[-1].count("SKU-") == 5


def test_notifications_are_learned_while_they_are_sent(tmp_path: Path) -> None:
    told = output_of("notifications", tmp_path)
    assert told.rstrip().splitlines()[-1].count("msg-") == 3 and (tmp_path / "notifications").is_dir()


@pytest.mark.slow  # worker processes, figures and a page
def test_the_thesis_leaves_figures_and_claims(tmp_path: Path) -> None:
    told = output_of("thesis", tmp_path, "mets-structure", SCALE="smoke")
    assert "report.html" in told and ".svg" in told and "Section" in told
    assert (tmp_path / told.rstrip().splitlines()[-1]).is_file()


@pytest.mark.slow
@pytest.mark.parametrize("job", ["shop", "notifications"])
def test_a_job_in_its_full_size(job: str, tmp_path: Path) -> None:
    assert output_of(job, tmp_path, FULL="1")


@pytest.mark.slow
def test_the_thesis_at_quick_scale(tmp_path: Path) -> None:
    assert "holds" in output_of("thesis", tmp_path, "mets-synthetic", SCALE="quick")
