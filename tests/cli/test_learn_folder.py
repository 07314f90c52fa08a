"""`manyarms learn` from a folder of Parquet files, and from a file that is read as it is learned from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import manyarms as ma
from manyarms.cli import app as cli
from manyarms.estimators import cLPI
from manyarms.learning import learn
from manyarms.logs import to_csv, to_parquet
from manyarms.logs.row_groups import RowGroups
from manyarms.policies import SoftmaxPolicy
from manyarms.worlds import CatalogueWorld

WORLD = CatalogueWorld(60, 6, k0=12, segments=None, rank=4, click_rate=0.1, test=50, seed=0)
QUICK = ("--epochs", 2, "--batch", 64, "--learning-rate", 0.05, "--device", "cpu")
BUFFER = ("--buffer", 200)


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log of 600 rows in one file, and in a folder of two with row groups of 40."""
    path = tmp_path_factory.mktemp("learn")
    log = WORLD.log(rounds=600, seed=1)
    (path / "rounds").mkdir()
    to_parquet(log, path / "rounds.parquet", rows_per_group=40)
    to_parquet(log.rows(slice(0, 320)), path / "rounds" / "a.parquet", rows_per_group=40)
    to_parquet(log.rows(slice(320, None)), path / "rounds" / "b.parquet", rows_per_group=40)
    to_csv(log, path / "rounds.csv")
    WORLD.logging.save(path / "old")
    return path


def invoke(*arguments: Any) -> Any:
    return CliRunner().invoke(cli.app, [str(one) for one in arguments], env={"COLUMNS": "120"})


def refused(capsys: pytest.CaptureFixture[str], *arguments: Any) -> str:
    with pytest.raises(SystemExit) as ended:
        cli.main([str(one) for one in arguments])
    assert ended.value.code == 2
    return capsys.readouterr().err


def test_a_folder_is_learned_from_as_it_is_read(here: Path, tmp_path: Path) -> None:
    out = tmp_path / "policy"
    result = invoke("learn", here / "rounds", "--out", out, *QUICK, *BUFFER)
    assert result.exit_code == 0, result.output
    assert "520 rows are read once before the first epoch" in result.output
    told = json.loads((out / "learning.json").read_text())
    assert told["rows"] == {"learned from": 520, "watched": 80, "judged": 80}
    assert told["evaluation"] is not None and not (out / "checkpoint").exists()
    train, held = RowGroups(ma.open_log(here / "rounds")).split(0.1, seed=0)
    start = SoftmaxPolicy(np.zeros((60, 6), dtype=np.float32))
    how = {"epochs": 2, "batch": 64, "learning_rate": 0.05, "device": "cpu", "buffer": 200, "validation": held}
    np.testing.assert_array_equal(ma.load(out).actions, learn(train, start, cLPI(), **how).policy.actions)
    one_file = tmp_path / "one"
    assert invoke("learn", here / "rounds.parquet", "--out", one_file, *QUICK, *BUFFER).exit_code == 0
    np.testing.assert_array_equal(ma.load(out).actions, ma.load(one_file).actions)  # the same row groups


def test_a_folder_that_fits_is_read_into_memory(here: Path, tmp_path: Path) -> None:
    assert invoke("learn", here / "rounds", "--out", tmp_path / "folder", *QUICK).exit_code == 0
    assert invoke("learn", here / "rounds.parquet", "--out", tmp_path / "file", *QUICK).exit_code == 0
    np.testing.assert_array_equal(ma.load(tmp_path / "folder").actions, ma.load(tmp_path / "file").actions)


@pytest.mark.parametrize(
    "more",
    [
        ("--objective", "dr"),
        ("--objective", "ips", "--support", "logging", "--logging", "old"),
        ("--patience", 1, "--validation", 0.3),
        ("--validation", 0, "--objective", "bpr", "--negatives-from", "logging", "--logging", "old"),
    ],
)
def test_choices_of_a_log_in_memory_are_there(more: tuple[Any, ...], here: Path, tmp_path: Path) -> None:
    words = [here / "old" if one == "old" else one for one in more]
    result = invoke("learn", here / "rounds", "--out", tmp_path / "policy", *QUICK, *BUFFER, *words)
    assert result.exit_code == 0, result.output
    assert ma.load(tmp_path / "policy").action_count == 60


def test_ids_are_found_in_a_first_pass(here: Path, tmp_path: Path) -> None:
    log = WORLD.log(rounds=600, seed=1)
    columns = {
        "item": pa.array([f"item {a}" for a in log.actions]),
        "click": pa.array(log.rewards),
        "propensity": pa.array(log.propensities),
        "x": pa.array(list(log.contexts)),
    }
    (tmp_path / "rounds").mkdir()
    pq.write_table(pa.table(columns), tmp_path / "rounds" / "part.parquet", row_group_size=50)
    names = ("--action", "item", "--reward", "click", "--context", "x")
    result = invoke("learn", tmp_path / "rounds", "--out", tmp_path / "policy", *names, *QUICK, *BUFFER)
    assert result.exit_code == 0, result.output
    assert str(ma.load(tmp_path / "policy").decide(np.ones(6))).startswith("item ")


def test_bad_input_is_named(here: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = ("--out", tmp_path / "policy", *QUICK)
    assert "two batches" in refused(capsys, "learn", here / "rounds", *out, "--buffer", 100)
    assert "--buffer: expected a Parquet" in refused(capsys, "learn", here / "rounds.csv", *out, *BUFFER)
    assert "one row group" in refused(
        capsys, "learn", here / "rounds", *out, *BUFFER, "--patience", 1, "--validation", 0.05
    )
    assert "--validation" in refused(capsys, "learn", here / "rounds", *out, *BUFFER, "--split-by", "row")
    assert "rows in memory" in refused(capsys, "learn", here / "rounds", *out, *BUFFER, "--pessimism", "ls")
    (tmp_path / "empty").mkdir()
    assert "empty" in refused(capsys, "learn", tmp_path / "empty", *out)
