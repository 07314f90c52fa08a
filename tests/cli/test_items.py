"""`manyarms learn` with a table of items, a split by time, and propensities that are missing in some rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import manyarms as ma
from manyarms.cli import app

pytest.importorskip("torch")
ITEMS = [f"SKU-{i}" for i in range(5)]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("items")
    rng = np.random.default_rng(0)
    lines = ["when,age,product,bought,chance"]
    for row in range(400):
        item = rng.integers(5)
        chance = "" if row % 8 == 0 else "0.2"
        lines.append(f"2026-01-{1 + row // 20:02d},{rng.integers(20, 60)},{ITEMS[item]},{rng.integers(2)},{chance}")
    (folder / "log.csv").write_text("\n".join(lines) + "\n")
    table = ["code,price,kind,title"]
    table += [f"{name},{10 + i},{'ab'[i % 2]},The {name}" for i, name in enumerate(reversed([*ITEMS, "SKU-new"]))]
    (folder / "items.csv").write_text("\n".join(table) + "\n")
    return {"log": folder / "log.csv", "items": folder / "items.csv", "folder": folder}


def learn(files: dict[str, Path], out: Path, *more: object) -> Any:
    words = [
        "learn", files["log"], "--action", "product", "--reward", "bought", "--propensity", "chance", "--context", "age",
        "--timestamp", "when", "--epochs", 1, "--device", "cpu", "--out", out, *more,
    ]  # fmt: skip
    return CliRunner().invoke(app.app, [str(word) for word in words], env={"COLUMNS": "80"})


def test_items_by_any_column_of_ids(files: dict[str, Path], tmp_path: Path) -> None:
    done = learn(files, tmp_path / "policy", "--drop-missing", "--actions", files["items"], "--id", "code")
    assert done.exit_code == 0, (done.output, done.exception)
    policy = ma.load(tmp_path / "policy")
    # in the order of the items, the one that was never played among them; price and two kinds describe them
    assert list(policy.schema.catalogue) == ["SKU-new", *reversed(ITEMS)]
    assert policy.actions.shape == (6, 3) or policy.actions.shape[0] == 6
    assert "projection" in " ".join(done.output.split())
    assert policy.decide({"age": 31}) in policy.schema.catalogue
    one = learn(
        files, tmp_path / "one", "--drop-missing", "--actions", files["items"], "--id", "code", "--features", "price"
    )
    assert one.exit_code == 0 and ma.load(tmp_path / "one").actions.shape == (6, 1)


def test_wrong_items_are_told_by_their_flags(
    files: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "items.txt").touch()
    np.save(tmp_path / "items.npy", np.ones((5, 2)))
    for words, told in (
        ([files["items"]], "--id: expected the name of the column"),
        ([files["items"], "--id", "sku"], "--id: expected one of the columns code, price, kind, title, got 'sku'"),
        ([files["items"], "--id", "code", "--features", "size"], "--features: expected"),
        ([tmp_path / "items.txt"], "--actions: expected a file"),
        ([tmp_path / "items.npy", "--id", "code"], "--id: expected a table of items"),
        ([tmp_path / "gone.csv"], "gone.csv: no such file"),
    ):
        with pytest.raises(SystemExit) as end:
            app.main(["learn", str(files["log"]), "--out", str(tmp_path / "out"), "--actions", *map(str, words)])
        said = capsys.readouterr().err
        assert end.value.code == 2 and told in said, said
    assert not (tmp_path / "out").exists()


def test_the_last_rows_are_held_out(files: dict[str, Path], tmp_path: Path) -> None:
    done = learn(files, tmp_path / "out", "--drop-missing", "--split-by", "time", "--validation", 0.25)
    assert done.exit_code == 0, (done.output, done.exception)
    rows = json.loads((tmp_path / "out" / "learning.json").read_text())["rows"]
    # whole days: the first 15 of 20 are learned from, the others judge
    assert rows["learned from"] + rows["judged"] == 350 and abs(rows["judged"] - 87) <= 10


def test_missing_propensities_are_refused_dropped_or_estimated(
    files: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refused = learn(files, tmp_path / "out")
    assert refused.exit_code != 0 and "a missing entry at line 2" in str(refused.exception)
    done = learn(files, tmp_path / "out", "--estimate-missing")
    assert done.exit_code == 0 and "estimate" in done.output, (done.output, done.exception)


def test_a_hint_where_the_policy_ends_below_the_logging_policy(tmp_path: Path) -> None:
    """The log plays the better of two actions nearly always, and a policy that has hardly learned does not."""
    rng = np.random.default_rng(1)
    lines = ["age,item,click,propensity"]
    for _ in range(600):
        best = rng.random() < 0.9
        lines.append(f"{rng.integers(20, 60)},{'a' if best else 'b'},{int(best)},{0.9 if best else 0.1}")
    (tmp_path / "log.csv").write_text("\n".join(lines) + "\n")
    words = [
        "learn",
        tmp_path / "log.csv",
        "--out",
        tmp_path / "out",
        "--epochs",
        1,
        "--learning-rate",
        1e-6,
        "--device",
        "cpu",
    ]
    done = CliRunner().invoke(app.app, [str(word) for word in words], env={"COLUMNS": "80"})
    assert done.exit_code == 0, (done.output, done.exception)
    assert "hint: on held-out rows the policy earns less" in done.output and "--epochs (now 1)" in done.output
    assert f"next: manyarms evaluate {tmp_path / 'out'} ANOTHER-LOG" in done.output
    assert "age=..." in done.output or "--contexts FILE" in done.output
