"""The command line: what it lists, what it writes, and how it refuses."""

from __future__ import annotations

import json
import sys
from importlib import util
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from manyarms.cli import app as cli
from manyarms_thesis import catalogue as experiments
from manyarms_thesis.mets.misspecified import MISSPECIFIED


def invoke(*arguments: str) -> Any:
    return CliRunner().invoke(cli.app, list(arguments), env={"COLUMNS": "160"})


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Run through the entry point, which must end with code 2 and one line."""
    with pytest.raises(SystemExit) as ended:
        cli.main(list(arguments))
    assert ended.value.code == 2
    text = capsys.readouterr().err
    assert text.count("\n") == 1
    assert text.startswith("manyarms: ")
    return text


def test_the_list_has_every_experiment() -> None:
    result = invoke("reproduce", "--list")
    assert result.exit_code == 0
    for name, experiment in experiments.catalogue().items():
        assert name in result.output
        assert experiment.sections.split(",")[0] in result.output


def test_help_teaches() -> None:
    for arguments in (["--help"], ["demo", "--help"], ["reproduce", "--help"], ["version", "--help"], []):
        assert invoke(*arguments).output.strip()
    text = invoke("reproduce", "--help").output
    for word in ("claims.json", "results.parquet", "report.html", "--workers", "MANYARMS_DATA", "manyarms reproduce"):
        assert word in text


def test_version_names_what_is_installed() -> None:
    result = invoke("version")
    assert result.exit_code == 0
    for word in ("manyarms", "python", "numpy", "pyarrow", "matplotlib"):
        assert word in result.output


def test_an_experiment_from_end_to_end(tmp_path: Path) -> None:
    result = invoke("reproduce", MISSPECIFIED.name, "--scale", "smoke", "--out", str(tmp_path), "--workers", "2")
    assert result.exit_code == 0, result.output
    assert "bear their statement out" in result.output
    claims = json.loads((tmp_path / "claims.json").read_text())["claims"]
    # each statement in the world as printed, and in its variant with a context for each action
    of_thesis = [made for made in claims if made["thesis_lines"]]
    assert of_thesis and len(claims) >= 2 * len(of_thesis)
    assert all(made["verdict"] in ("held", "held in part", "undecided") for made in claims)
    page = (tmp_path / "report.html").read_text()
    assert MISSPECIFIED.question in page and "has other sizes than the thesis" in page


def test_a_part_of_an_experiment(tmp_path: Path) -> None:
    folders = "--out", str(tmp_path / "out"), "--keep", str(tmp_path)
    result = invoke(
        "reproduce", MISSPECIFIED.name, "--scale", "smoke", "--runs", "2", "--only", "K=20", *folders, "--workers", "1"
    )
    assert result.exit_code == 0, result.output
    record = json.loads((tmp_path / f"{MISSPECIFIED.name}.part.json").read_text())
    assert record["command"].endswith("--scale smoke --runs 2 --only K=20")
    assert record["sizes"]["runs"] == 2 and record["fewer_than_the_thesis"] == {"K": [[20], [20, 40]]}
    assert record["command"] in (tmp_path / "out" / "report.html").read_text()


def test_refusals(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert "did you mean mets-grid" in refused(capsys, "reproduce", "mets-gird")
    assert "--list" in refused(capsys, "reproduce")
    assert "one of smoke, quick, paper" in refused(capsys, "reproduce", "mets-grid", "--scale", "large")
    grid = ("reproduce", "mets-grid", "--scale", "smoke")
    assert "--runs: expected at most 3" in refused(capsys, *grid, "--runs", "99")
    assert "--only: expected one of reward, K, L, d, " in refused(capsys, *grid, "--only", "rounds=5")
    assert "--only: expected some of 10, 30, got '20'" in refused(capsys, *grid, "--only", "K=10,20")
    assert "such as K=20,100" in refused(capsys, *grid, "--only", "K")
    found = util.find_spec
    monkeypatch.setattr(util, "find_spec", lambda name, *rest: None if name == "pyarrow" else found(name, *rest))
    text = refused(capsys, "reproduce", "mets-grid", "--scale", "smoke", "--out", str(tmp_path / "out"))
    assert "pip install 'manyarms[experiments]'" in text
    assert not (tmp_path / "out").exists()


def test_starting_the_command_line_is_light() -> None:
    """Figures and Parquet are loaded by those who need them."""
    import subprocess

    code = (
        "import sys, manyarms.cli.app; print(sorted({'matplotlib', 'pyarrow', 'sklearn', 'torch'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_it_runs_as_a_module_and_tells_its_version() -> None:
    import subprocess

    import manyarms

    for words in (["--version"], ["version"]):
        done = subprocess.run([sys.executable, "-m", "manyarms", *words], capture_output=True, text=True, check=True)
        assert "manyarms" in done.stdout and manyarms.__version__ in done.stdout
    assert invoke("--version").output.strip() == f"manyarms {manyarms.__version__}"


def test_every_command_is_found_by_its_file_and_a_new_one_by_being_registered() -> None:
    from manyarms.cli.commands import COMMANDS

    assert set(COMMANDS) >= {"certify", "demo", "evaluate", "inspect", "learn", "reproduce", "version"}
    assert len([line for line in invoke("--help").output.splitlines() if "demo" in line]) >= 2

    @COMMANDS.register("hello")
    def hello(name: str) -> None:
        """Greet somebody."""
        print(f"hello {name}")

    try:
        made = cli.build()
        assert CliRunner().invoke(made, ["hello", "you"]).output == "hello you\n"
        assert "Greet somebody" in CliRunner().invoke(made, ["--help"]).output
    finally:
        del COMMANDS._parts["hello"]
