"""`manyarms export`, `replay` and `compact` as a stranger meets them."""

from __future__ import annotations

import re
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import manyarms as ma
from live.small_store import Clock, small_agent, small_live, traffic
from live.small_store import quick_disk as quick_disk
from manyarms.cli import app as cli

COMMANDS = ("export", "replay", "compact")


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that was left a long time ago."""
    path, clock = tmp_path_factory.mktemp("left") / "s.db", Clock()
    with small_live(path, clock, small_agent(decision="uniform")) as live:
        traffic(live, clock, 15)
        clock.now += 100
        live.learn()
        live.snapshot()
    return path


@pytest.fixture
def store(left: Path, tmp_path: Path) -> Path:
    shutil.copy(left, tmp_path / "s.db")
    return tmp_path / "s.db"


def invoke(*arguments: Any) -> Any:
    return CliRunner().invoke(cli.app, [str(one) for one in arguments], env={"COLUMNS": "100"})


def test_from_a_store_to_a_log_that_is_inspected(store: Path, tmp_path: Path) -> None:
    result = invoke("export", store, tmp_path / "log.parquet")
    assert result.exit_code == 0, result.output
    assert "15 rows" in result.output
    assert len(ma.open_log(tmp_path / "log.parquet").collect()) == 15
    inspected = invoke("inspect", tmp_path / "log.parquet", "--out", tmp_path / "page.html", "--strict")
    assert inspected.exit_code == 0, inspected.output


def test_replay_ends_with_1_where_something_differs(store: Path) -> None:
    result = invoke("replay", store)
    assert result.exit_code == 0, result.output
    assert "15 the same" in result.output and "differences   none" in result.output
    assert invoke("replay", store, "--from-snapshot", "--decisions", 5).exit_code == 0
    with sqlite3.connect(store) as database:
        database.execute("UPDATE rewards SET value = value + 1")
    database.close()
    result = invoke("replay", store)
    assert result.exit_code == 1
    assert "is not what the log folds to" in result.output


def test_compact_says_what_would_go_and_then_does_it(store: Path) -> None:
    said = invoke("compact", store, "--keep", "30d", "--dry-run")
    assert said.exit_code == 0 and re.search(r"decisions +15", said.output), said.output
    done = invoke("compact", store, "--keep", "30d")
    assert done.exit_code == 0 and re.search(r"decisions +15", done.output)
    assert invoke("replay", store).exit_code == 0
    assert "nothing to compact" in invoke("compact", store, "--keep", "30d").output


@pytest.mark.parametrize("keep", ["30s", "12h", "90min", "1.5d", "2 w"])
def test_times_are_written_as_people_do(keep: str, store: Path) -> None:
    assert invoke("compact", store, "--keep", keep, "--dry-run").exit_code == 0


@pytest.mark.parametrize("name", COMMANDS)
def test_help_teaches(name: str) -> None:
    text = invoke(name, "--help").output
    for word in ("STORE", "postgresql://", f"manyarms {name} shop.db"):
        assert word in text


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("address", ["none.db", ".", "other.txt", "postgresql://127.0.0.1:1/none"])
def test_a_wrong_address_is_one_clear_line(name: str, address: str, tmp_path: Path) -> None:
    (tmp_path / "other.txt").write_text("no store\n" * 100)
    more = {"export": [tmp_path / "log.parquet"], "replay": [], "compact": ["--keep", "1d"]}[name]
    where = address if "://" in address else tmp_path / address
    result = invoke(name, where, *more)
    assert isinstance(result.exception, ma.errors.ManyArmsError), result.output
    words = str(result.exception).strip()
    assert "\n" not in words and ("://" in address or str(where) in words)
    assert [path.name for path in tmp_path.iterdir()] == ["other.txt"]


@pytest.mark.parametrize("keep", ["soon", "-1d", "1y", "", "1e3s", "30"])
def test_a_time_that_is_none_is_refused(keep: str, store: Path) -> None:
    result = invoke("compact", store, f"--keep={keep}")
    assert isinstance(result.exception, ma.errors.InvalidInput) and "--keep" in str(result.exception)


def test_the_program_ends_with_2_and_a_line(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "manyarms", "replay", str(tmp_path / "none.db")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and done.stderr.startswith("manyarms: ") and done.stderr.count("\n") == 1
