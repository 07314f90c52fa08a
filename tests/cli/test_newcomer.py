"""What a newcomer copies from one command into the next must work: flags, columns, delimiters, ids."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import manyarms as ma
from manyarms.cli.app import app, main


@pytest.fixture
def rows() -> list[str]:
    rng = np.random.default_rng(0)
    lines = ["article;bought;p;user"]
    for i, item in enumerate(rng.integers(5, size=300)):
        lines.append(f"{7000 + item};{int(rng.random() < 0.3)};{'' if i % 10 == 3 else 0.2};u{i % 40}")
    return lines


def ran(folder: Path, *words: str) -> str:
    found = CliRunner().invoke(app, [word.replace("HERE", str(folder)) for word in words])
    assert found.exit_code == 0, found.output
    return " ".join(found.output.split())


def test_semicolons_flags_and_ids_from_inspect_to_evaluate(tmp_path: Path, rows: list[str]) -> None:
    (tmp_path / "log.csv").write_text("\n".join(rows) + "\n")
    named = ("--action", "article", "--reward", "bought")
    seen = ran(tmp_path, "inspect", "HERE/log.csv", *named, "--out", "HERE/page.html")
    assert "estimate_missing=True" not in seen and 'catalogue="build"' not in seen
    assert "--catalogue build" in seen
    assert (
        f"next: manyarms evaluate uniform {tmp_path}/log.csv --action article --reward bought --estimate-missing"
        in seen
    )
    read = (*named, "--estimate-missing", "--catalogue")
    seen = ran(tmp_path, "evaluate", "uniform", "HERE/log.csv", *read, "build", "--out", "HERE/out")
    assert "5 actions" in seen
    assert "--estimate-missing --out policy" in seen and "--action article" in seen
    (tmp_path / "items.csv").write_text("sku\n" + "\n".join(str(7000 + i) for i in range(8)) + "\n")
    seen = ran(tmp_path, "evaluate", "uniform", "HERE/log.csv", *read, "HERE/items.csv", "--out", "HERE/out")
    assert "8 actions" in seen


def test_choose_takes_a_bound_that_groups_allow_and_columns_are_named(rows: list[str]) -> None:
    cells = [line.split(";") for line in rows[1:]]
    log = ma.logs.from_frame({
        "sku": [f"s{row[0]}" for row in cells], "click": [float(row[1]) for row in cells],
        "propensity": [0.2] * len(cells), "user": [row[3] for row in cells],
    })  # fmt: skip
    policies = {"one": ["s7001"] * len(log), "all": "uniform"}
    assert ma.evaluation.choose(policies, log).kind == "normal"
    with pytest.raises(ma.errors.InvalidInput, match="'sku'"):
        ma.evaluate(ma.evaluation.OfColumns(lambda columns: columns["skuu"]), log)


def test_rows_of_a_column_are_the_lines_of_the_file(tmp_path, capsys):
    lines = ["x,action,reward,propensity,mine,wished"]
    lines += [f"{i % 3},{'ab'[i % 2]},{i % 2},0.5,{1.5 if i == 5 else 0.5},{'c' if i == 7 else 'a'}" for i in range(20)]
    (tmp_path / "log.csv").write_text("\n".join(lines))
    for option, came in (("--probabilities=mine", "1.5 at line 7"), ("--decisions=wished", "'c' at line 9")):
        with pytest.raises(SystemExit):
            main(["evaluate", str(tmp_path / "log.csv"), option, "--out", str(tmp_path / "out")])
        assert came in " ".join(capsys.readouterr().err.split())


def test_rows_of_a_function_of_columns_are_the_lines_of_the_file(tmp_path):
    lines = ["x,action,reward,propensity", *(f"{i},{'ab'[i % 2]},{i % 2},0.5" for i in range(40))]
    (tmp_path / "log.csv").write_text("\n".join(lines))
    wished = ma.evaluation.OfColumns(lambda columns: np.where(columns["x"] == 30, "c", "a"))
    with pytest.raises(ma.errors.UnknownAction, match="'c' at line 32"):
        ma.evaluate(wished, ma.open_log(tmp_path / "log.csv"))
