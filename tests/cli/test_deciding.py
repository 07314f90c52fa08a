"""`compare`, `choose`, `tune` and `decide` on a log with string ids: what they print, write and say next."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import manyarms as ma
from manyarms.cli import app
from manyarms.evaluation import choose, difference, tune
from manyarms.logs import Schema, open_log, read_csv
from manyarms.policies import SoftmaxPolicy, UniformPolicy

ITEMS = ("SKU-a", "SKU-b", "SKU-c")


def invoke(*words: object) -> Any:
    return CliRunner().invoke(app.app, [str(word) for word in words], env={"COLUMNS": "80"})


def done(*words: object) -> str:
    result = invoke(*words)
    assert result.exit_code == 0, (result.output, result.exception)
    return str(result.output)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A log of uniform plays where SKU-a earns 0.8, the others 0.2; a policy that knows, and one that has it wrong."""
    folder = tmp_path_factory.mktemp("deciding")
    rng = np.random.default_rng(0)
    lines = ["age,device,sku,click,propensity"]
    for _ in range(1_500):
        item = ITEMS[rng.integers(3)]
        click = int(rng.random() < (0.8 if item == "SKU-a" else 0.2))
        lines.append(f"{rng.integers(20, 60)},{rng.choice(['phone', 'desk'])},{item},{click},{1 / 3:.9f}")
    (folder / "log.csv").write_text("\n".join(lines) + "\n")
    log = read_csv(folder / "log.csv")
    assert log.catalogue is not None and log.encoder is not None
    found = {"log": folder / "log.csv", "out": folder / "out"}
    likes = np.zeros((3, log.dim))
    likes[log.catalogue.row("SKU-a"), 0] = 0.05  # by age
    for name, weights in (("good", likes), ("bad", -likes)):
        policy = SoftmaxPolicy(weights)
        policy.schema = Schema.of(log)
        found[name] = folder / name
        policy.save(found[name])
    return found


def test_compare_is_the_paired_difference_with_a_verdict(files: dict[str, Path], tmp_path: Path) -> None:
    said = done("compare", files["good"], files["bad"], files["log"], "--out", tmp_path)
    data = json.loads((tmp_path / "comparison.json").read_text())
    assert "THE FIRST IS BETTER" in said and "good earns more than bad" in " ".join(said.split())
    good, bad = ma.load(files["good"]), ma.load(files["bad"])
    source = open_log(files["log"], catalogue=good.schema.catalogue, encoder=good.schema.encoder)
    direct = difference(good, bad, source)
    assert data["difference"]["value"] == pytest.approx(direct.value, rel=1e-9)
    assert data["difference"]["intervals"][0]["low"] == pytest.approx(direct.interval.low, rel=1e-9)
    assert data["policies"] == ["good", "bad"] and data["verdict"]["verdict"] == "the first is better"
    assert (tmp_path / "report.html").read_text().count("<svg") == 1
    turned = done("compare", files["bad"], files["good"], files["log"], "--out", tmp_path)
    assert "THE SECOND IS BETTER" in turned


def test_compare_with_the_logging_policy_and_with_itself(files: dict[str, Path], tmp_path: Path) -> None:
    for words in ((files["good"], "logging"), ("logging", files["good"])):
        said = done("compare", *words, files["log"], "--out", tmp_path)
        assert "good less logging" in said and "THE FIRST IS BETTER" in said
    # the logging policy is the uniform one: their difference is 0, and nobody can tell them apart
    said = done("compare", "uniform", "logging", files["log"], "--out", tmp_path)
    assert "CANNOT TELL" in said
    assert json.loads((tmp_path / "comparison.json").read_text())["difference"]["value"] == pytest.approx(0, abs=1e-9)
    assert invoke("compare", "logging", "logging", files["log"], "--out", tmp_path).exit_code != 0


def test_choose_takes_the_largest_bound_that_holds_for_all(files: dict[str, Path], tmp_path: Path) -> None:
    said = done("choose", files["bad"], files["good"], "uniform", files["log"], "--out", tmp_path, "--delta", 0.1)
    data = json.loads((tmp_path / "choice.json").read_text())
    good, bad = ma.load(files["good"]), ma.load(files["bad"])
    source = open_log(files["log"], catalogue=good.schema.catalogue, encoder=good.schema.encoder)
    direct = choose({"bad": bad, "good": good, "uniform": UniformPolicy(3)}, source, delta=0.1)
    assert data["best"] == direct.best == "good" and data["lower"] == pytest.approx(direct.lower, rel=1e-9)
    assert [one["policy"] for one in data["policies"]] == ["bad", "good", "uniform"]
    assert said.startswith("good") and f"manyarms certify {files['good']}" in said.replace("\n", "")
    assert "<svg" in (tmp_path / "report.html").read_text()


def test_tune_chooses_from_the_grid(files: dict[str, Path], tmp_path: Path) -> None:
    said = done("tune", files["good"], files["log"], "--estimator", "cips", "--grid", "0.01,0.2,0.9", "--out", tmp_path)
    data = json.loads((tmp_path / "tuning.json").read_text())
    good = ma.load(files["good"])
    source = open_log(files["log"], catalogue=good.schema.catalogue, encoder=good.schema.encoder)
    direct = tune(good, source, "cips", [0.01, 0.2, 0.9])
    assert data["parameter"] == "tau" and data["value"] == direct.parameter
    assert [one["value"] for one in data["trials"]] == [one.parameter for one in direct.trials]
    assert f"--tau {direct.parameter:.4g}" in said and f"cips:{direct.parameter:.4g}" in said
    assert "<svg" in (tmp_path / "report.html").read_text()
    assert done("tune", "uniform", files["log"], "--rule", "slope", "--out", tmp_path)


def test_decide_prints_ids(files: dict[str, Path]) -> None:
    context = {"age": 31, "device": "phone"}
    best = ma.load(files["good"]).decide(context, k=3)
    said = done("decide", files["good"], "age=31", "device=phone", "-k", 3)
    assert [line.split()[1] for line in said.splitlines()[1:]] == list(best) and best[0] == "SKU-a"
    shown = json.loads(done("decide", files["good"], "--context", json.dumps(context), "--json", "-k", 3))
    assert [one["action"] for one in shown] == list(best)
    assert sum(one["probability"] for one in shown) == pytest.approx(1)
    assert "SKU-a" not in done("decide", files["good"], "age=31", "device=phone", "--exclude", "SKU-a,gone")
    assert "SKU-b" in done("decide", files["good"], "age=31", "device=phone", "--candidates", "SKU-b")


def test_decide_for_a_file_of_contexts(files: dict[str, Path], tmp_path: Path) -> None:
    said = done("decide", files["good"], "--contexts", files["log"], "-k", 2, "--out", tmp_path / "decided.csv")
    assert "decided.csv" in said.replace("\n", "")
    with (tmp_path / "decided.csv").open(newline="") as stream:
        rows = list(csv.reader(stream))
    assert rows[0] == ["action_1", "action_2"] and len(rows) == 1_501
    expected = ma.load(files["good"]).decide(read_csv(files["log"]).contexts, k=2)
    assert rows[1:] == [list(row) for row in expected.tolist()]
    printed = done("decide", files["good"], "--contexts", files["log"])
    assert printed.splitlines()[:2] == ["action", "SKU-a"]


def test_decide_without_an_encoder_and_by_an_agent(tmp_path: Path) -> None:
    SoftmaxPolicy(np.eye(2)).save(tmp_path / "policy")
    assert json.loads(done("decide", tmp_path / "policy", "--context", "[0, 3]", "--json"))[0]["action"] == 1
    (tmp_path / "x.csv").write_text("a,b\n3,0\n0,3\n")
    assert done("decide", tmp_path / "policy", "--contexts", tmp_path / "x.csv") == "action\n0\n1\n"
    ma.LinTS(ma.HierarchicalPrior(3, np.zeros(2), np.eye(2), np.eye(2)), seed=0).save(tmp_path / "agent")
    assert json.loads(done("decide", tmp_path / "agent", "--context", "[0, 3]", "--json"))[0]["action"] in (0, 1, 2)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["ag=3"], "COLUMN=VALUE: expected one of the columns age, device"),
        (["age=3"], "no column 'device'"),
        (["age"], "age=31"),
        ([], "one of them"),
        (["--context", "{"], "--context: expected JSON"),
        (["age=3", "device=x", "-k", "9"], "--k: expected at most"),
        (["age=3", "device=x", "--candidates", "gone"], "--candidates: expected an id of the catalogue"),
        (["age=3", "device=x", "--out", "x.csv"], "--out: expected --contexts as well"),
    ],
)
def test_decide_refuses(
    words: list[str], told: str, files: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        app.main(["decide", str(files["good"]), *words])
    said = capsys.readouterr().err
    assert end.value.code == 2 and told in said and said.count("\n") == 1
