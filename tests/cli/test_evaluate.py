"""`manyarms evaluate` as a stranger meets it: what it prints, what it writes, and how it refuses."""

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
from manyarms.evaluation import evaluate
from manyarms.logs import Schema, read_csv, to_csv, to_parquet
from manyarms.policies import SoftmaxPolicy
from manyarms.rewards.bayesian import warm_start

HEADER = "age,device,item,click,propensity"


def rows(n: int = 60) -> list[list[str]]:
    rng = np.random.default_rng(0)
    return [
        [str(rng.integers(20, 60)), str(rng.choice(["phone", "desk"])), str(rng.choice(["a", "b", "c"])),
         str(rng.integers(2)), f"{1 / 3:.6f}"]
        for _ in range(n)
    ]  # fmt: skip


def write(path: Path, cells: list[list[str]]) -> Path:
    path.write_text("\n".join([HEADER, *(",".join(row) for row in cells)]) + "\n")
    return path


def invoke(*arguments: Any) -> Any:
    return CliRunner().invoke(cli.app, [str(one) for one in arguments], env={"COLUMNS": "100"})


def refused(capsys: pytest.CaptureFixture[str], *arguments: Any) -> str:
    with pytest.raises(SystemExit) as ended:
        cli.main([str(one) for one in arguments])
    assert ended.value.code == 2
    text = capsys.readouterr().err
    assert text.startswith("manyarms: ") and text.count("\n") == 1
    return text


def test_evaluate_uniform_needs_nothing_but_a_log(tmp_path: Path) -> None:
    log = write(tmp_path / "log.csv", rows())
    result = invoke("evaluate", "uniform", log, "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    mean = np.mean([int(row[3]) for row in rows()])
    saved = json.loads((tmp_path / "out" / "evaluation.json").read_text())
    # the logging policy is the uniform one: every weight is 1, and no warning says otherwise
    assert saved["estimates"][0]["value"] == pytest.approx(mean, rel=1e-5)
    assert not any("weights average" in text for text in saved["warnings"])
    assert "[" in result.output and (tmp_path / "out" / "report.html").is_file()
    odd = write(tmp_path / "odd.csv", rows())
    odd.write_text(odd.read_text().replace("item,click,propensity", "thing,gain,chance"))
    named = invoke(
        "evaluate", "uniform", odd, "--action", "thing", "--reward", "gain", "--propensity", "chance", "--context", "age",
        "--out", tmp_path / "odd", "--estimators", "ips,ls", "--interval", "ls",
    )  # fmt: skip
    assert named.exit_code == 0, named.output
    assert json.loads((tmp_path / "odd" / "evaluation.json").read_text())["estimates"][0]["value"] == pytest.approx(
        mean, rel=1e-5
    )


def test_a_saved_policy_and_an_agent_as_its_model(tmp_path: Path) -> None:
    """Encoder and ids are kept with policy and agent, and a file with its rows reversed gives the same."""
    cells = rows()
    log = read_csv(write(tmp_path / "log.csv", cells))
    prior = ma.HierarchicalPrior(3, np.zeros(log.dim), 1e-3 * np.eye(log.dim), 1e-3 * np.eye(log.dim))
    agent = warm_start(log, prior, ma.Linear(0.5), ma.Greedy(), seed=0)
    agent.save(tmp_path / "agent")
    named = SoftmaxPolicy(np.zeros((3, log.dim)))
    named.schema = log.schema
    named.save(tmp_path / "policy")
    schema = ma.load(tmp_path / "agent").schema
    assert schema.catalogue == log.catalogue and schema.encoder is not None
    policy = ma.load(tmp_path / "agent").as_policy()
    np.testing.assert_array_equal(policy.sample(log.contexts, np.random.default_rng(0)), agent.decide(log.contexts))
    values = []
    for name, ordered in (("one", cells), ("two", cells[::-1])):
        file = write(tmp_path / f"{name}.csv", ordered)
        result = invoke(
            "evaluate", tmp_path / "policy", file, "--model", tmp_path / "agent", "--estimators", "snips,dm,dr",
            "--out", tmp_path / name,
        )  # fmt: skip
        assert result.exit_code == 0, result.output
        values.append([e["value"] for e in json.loads((tmp_path / name / "evaluation.json").read_text())["estimates"]])
    assert values[0] == pytest.approx(values[1], rel=1e-9)


BAD = {
    "a propensity of 0": ((17, 4, "0"), ["'propensity'", "0.0 at line 19"]),
    "one above 1": ((17, 4, "1.5"), ["'propensity'", "1.5 at line 19"]),
    "a missing one": ((17, 4, ""), ["'propensity'", "line 19", "--drop-missing"]),
    "a reward that is a text": ((17, 3, "good"), ["'click'", "'good' at line 19"]),
    "a missing reward": ((17, 3, ""), ["'click'", "line 19"]),
    "a missing action": ((17, 2, ""), ["'item'", "line 19"]),
    "numbers and texts": ((17, 0, "old"), ["'age'", "'old' at line 19"]),
    "an infinite context": ((17, 0, "inf"), ["'age'", "inf at line 19"]),
}


@pytest.mark.parametrize("bad", BAD)
def test_bad_cells_are_named_and_nothing_is_written(
    bad: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (row, column, cell), words = BAD[bad]
    cells = rows()
    cells[row][column] = cell
    log, out = write(tmp_path / "log.csv", cells), tmp_path / "out"
    told = refused(capsys, "evaluate", "uniform", log, "--context", "age", "--out", out)
    assert [word for word in words if word not in told] == []
    assert not out.exists()


def test_bad_files_are_named_and_nothing_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    cells = rows()

    def told(log: Path, *more: Any, policy: Any = "uniform") -> str:
        text = refused(capsys, "evaluate", policy, log, "--out", out, *more)
        assert not out.exists()
        return text

    assert "no row" in told(write(tmp_path / "empty.csv", []))
    assert "2 actions" in told(write(tmp_path / "single.csv", [[*row[:2], "a", *row[3:]] for row in cells]))
    cells[5] = cells[5][:3]
    assert "3 fields" in told(write(tmp_path / "ragged.csv", cells))
    good = read_csv(write(tmp_path / "good.csv", rows()))
    to_parquet(good, tmp_path / "log.parquet")
    (tmp_path / "cut.parquet").write_bytes((tmp_path / "log.parquet").read_bytes()[:-100])
    assert "truncated" in told(tmp_path / "cut.parquet")
    table = pq.read_table(tmp_path / "log.parquet").to_pydict()
    table["context"][5] = table["context"][5][:2]
    pq.write_table(pa.table(table), tmp_path / "ragged.parquet")
    assert "'context'" in (text := told(tmp_path / "ragged.parquet")) and "at row 5" in text
    saved = SoftmaxPolicy(np.zeros((3, good.dim)))
    saved.schema = good.schema
    saved.save(tmp_path / "policy")
    cells = rows()
    cells[11][2] = "z"
    text = told(write(tmp_path / "other.csv", cells), policy=tmp_path / "policy")
    assert "'item'" in text and "'z' at line 13" in text
    cells = rows()
    cells[13][3] = "5"
    large = write(tmp_path / "large.csv", cells)
    text = told(large, "--estimators", "ls")
    assert "rewards from 0 to 5" in text and "line 15" in text
    assert "both, or neither" in told(large, "--low", "0")
    assert (
        invoke("evaluate", "uniform", large, "--estimators", "ls", "--low", 0, "--high", 5, "--out", out).exit_code == 0
    )


def test_rows_with_missing_entries_can_be_left_out(tmp_path: Path) -> None:
    cells = rows()
    cells[3][3] = cells[4][4] = ""
    log = write(tmp_path / "log.csv", cells)
    result = invoke("evaluate", "uniform", log, "--drop-missing", "--out", tmp_path / "out")
    assert result.exit_code == 0 and "58 rows" in result.output


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_it_is_what_the_library_gives(tmp_path: Path, kind: str) -> None:
    log = read_csv(write(tmp_path / "log.csv", rows()))
    (to_parquet if kind == "parquet" else to_csv)(log, tmp_path / f"rounds.{kind}")
    policy = SoftmaxPolicy(0.05 * np.random.default_rng(1).standard_normal((3, log.dim)))
    policy.schema = Schema(catalogue=log.catalogue)
    policy.save(tmp_path / "policy")
    out = tmp_path / "out"
    result = invoke("evaluate", tmp_path / "policy", tmp_path / f"rounds.{kind}", "--out", out, "--seed", 3)
    assert result.exit_code == 0, result.output
    direct, saved = evaluate(policy, log, seed=3), json.loads((out / "evaluation.json").read_text())
    assert [one["name"] for one in saved["estimates"]] == [one.name for one in direct.estimates]
    for one, other in zip(saved["estimates"], direct.estimates, strict=True):
        assert one["value"] == pytest.approx(other.value, rel=1e-9)
        assert one["intervals"][0]["low"] == pytest.approx(other.intervals[0].low, rel=1e-6)
    assert (out / "report.html").is_file()


def test_folders_that_are_not_there_or_hold_something_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = write(tmp_path / "log.csv", rows())
    SoftmaxPolicy(np.zeros((3, 1))).save(tmp_path / "policy")
    read_csv(log).catalogue.save(tmp_path / "actions")  # type: ignore[union-attr]
    (tmp_path / "log.txt").write_text("?")
    out = ("--out", tmp_path / "out")
    assert "no such file" in refused(capsys, "evaluate", tmp_path / "policy", tmp_path / "nothing.csv", *out)
    assert "nobody: no such folder" in refused(capsys, "evaluate", tmp_path / "nobody", log, *out)
    assert "holds a Actions, expected a policy" in refused(capsys, "evaluate", tmp_path / "actions", log, *out)
    assert "LOG" in refused(capsys, "evaluate", tmp_path / "policy", tmp_path / "log.txt", *out)
    assert "luck" in refused(capsys, "evaluate", "uniform", log, "--estimators", "luck", *out)
    assert not (tmp_path / "out").exists()  # nothing half-written


def test_help_teaches() -> None:
    text = invoke("evaluate", "--help").output
    for word in (
        "uniform",
        "--estimators",
        "--interval",
        "--model",
        "policy.save",
        "report.html",
        "snips",
        "cips:0.01",
    ):
        assert word in text


def test_blocks_of_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Timestamps are found by name or named; a block is a number of rows or a time."""
    cells = [[*row, f"2026-01-{1 + i // 24:02d}T{i % 24:02d}:00:00"] for i, row in enumerate(rows(240))]
    path = tmp_path / "log.csv"
    path.write_text("\n".join([f"{HEADER},timestamp", *(",".join(row) for row in cells)]) + "\n")
    found = []
    for more in (("--block", "24"), ("--block", "1d"), ()):
        result = invoke("evaluate", "uniform", path, "--interval", "block", *more, "--out", tmp_path / "out")
        assert result.exit_code == 0 and "intervals are block" in result.output, result.output
        kinds = json.loads((tmp_path / "out" / "evaluation.json").read_text())["estimates"][0]["intervals"]
        found.append(next(one for one in kinds if one["kind"] == "block"))
    assert found[0]["low"] == pytest.approx(found[1]["low"], abs=0.02)
    assert "--block" in refused(capsys, "evaluate", "uniform", path, "--interval", "block", "--block", "soon")
