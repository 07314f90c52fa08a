"""What a user sees: the table, the page, and the command on files."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

import manyarms as ma
from manyarms.cli import evaluation as command
from manyarms.errors import DataError, InvalidInput, StorageError
from manyarms.estimators import MIPS
from manyarms.evaluation import evaluate, open_policy, save_policy
from manyarms.evaluation.tables import as_data
from manyarms.logs import LoggedData, read_csv, to_csv, to_parquet
from manyarms.policies import FixedPolicy, SoftmaxPolicy


@pytest.fixture
def evaluated(problem, rng):
    log = problem.log(400, rng, logging=problem.logging)
    return evaluate(
        problem.policy, log, ["ips", "snips", "ls", MIPS(np.arange(7) % 2)], model=problem.model, name="mine <1>"
    )


def test_table(evaluated):
    lines = str(evaluated).splitlines()
    assert lines[0].startswith("mine <1>: 400 rows, 7 actions")
    assert "intervals are normal, at 0.95" in lines[0]
    assert len([line for line in lines if "[" in line]) == 5  # the log's own mean, and four estimates
    assert max(len(line) for line in lines if "[" in line) <= 80  # it fits a terminal
    assert "an interval for the estimator's mean" in str(evaluated)
    with pytest.raises(InvalidInput, match="snips"):
        evaluated["nothing"]
    assert evaluated["mips (clusters=2)"].name == "mips"


def test_page_is_whole_and_self_contained(evaluated, tmp_path):
    path = evaluated.report(tmp_path / "there" / "page.html")
    text = path.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>") and "mine &lt;1&gt;" in text and "mine <1>" not in text
    assert text.count("<svg") == 3 and "nan" not in text.lower().replace("finance", "")
    assert not re.search(r'(src|href)="', text)
    assert evaluated.report(tmp_path / "folder") == tmp_path / "folder" / "report.html"


def test_pages_of_odd_logs(tmp_path):
    """A single row; no overlap at all; every weight the same."""
    one = LoggedData(np.ones((1, 1)), [0], [1.0], 2, propensities=[1.0])
    for policy in (FixedPolicy([0.5, 0.5]), FixedPolicy([0.0, 1.0]), FixedPolicy([1.0, 0.0])):
        found = evaluate(policy, one)
        assert str(found) and found.report(tmp_path / "odd.html").is_file()
        json.dumps(as_data(found), allow_nan=False)


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_command_on_files(problem, rng, tmp_path, kind):
    log = problem.log(300, rng)
    (to_parquet if kind == "parquet" else to_csv)(log, tmp_path / f"log.{kind}")
    save_policy(problem.policy, tmp_path / "policy", log)
    found, page = command.run(tmp_path / "policy", tmp_path / f"log.{kind}", out=tmp_path / "out", seed=3)
    direct = evaluate(problem.policy, log, seed=3)
    for one, other in zip(found.estimates, direct.estimates, strict=True):
        assert one.value == pytest.approx(other.value, rel=1e-9)
        assert one.interval.low == pytest.approx(other.interval.low, rel=1e-6)
    assert page == tmp_path / "out" / "report.html" and page.is_file()
    saved = json.loads((tmp_path / "out" / "evaluation.json").read_text())
    assert [e["name"] for e in saved["estimates"]] == [e.name for e in found.estimates]
    assert command.run(tmp_path / "policy", tmp_path / f"log.{kind}", estimators=["snips"])[1] is None


def test_ids_and_encoding_travel_with_the_policy(rng, tmp_path):
    """A policy on named items and categorical contexts is judged on a file that lists them in another order."""
    rows = ["device,age,item,click,propensity"]
    for _ in range(120):
        device, item = rng.choice(["phone", "desk"]), rng.choice(["a", "b", "c"])
        rows.append(f"{device},{rng.integers(20, 60)},{item},{rng.integers(2)},{1 / 3:.6f}")
    (tmp_path / "first.csv").write_text("\n".join(rows) + "\n")
    (tmp_path / "second.csv").write_text("\n".join([rows[0], *rows[:0:-1]]) + "\n")
    log = read_csv(tmp_path / "first.csv")
    policy = SoftmaxPolicy(0.05 * rng.standard_normal((3, log.dim)))
    save_policy(policy, tmp_path / "policy", log)
    direct = evaluate(policy, log, ["ips"])["ips"].value
    found, _ = command.run(tmp_path / "policy", tmp_path / "second.csv", estimators=["ips"])
    assert found["ips"].value == pytest.approx(direct, rel=1e-9)


def test_agents_are_policies_where_their_probabilities_are_known(rng, tmp_path):
    prior = ma.HierarchicalPrior(5, np.zeros(2), np.eye(2), np.eye(2))
    X = rng.standard_normal((30, 2))
    agent = ma.HierTS(prior, seed=0)
    agent.observe(X, rng.integers(5, size=30), rng.standard_normal(30))
    agent.save(tmp_path / "thompson")
    with pytest.raises(InvalidInput, match="thompson"):
        open_policy(tmp_path / "thompson")
    for decision in (ma.Greedy(), ma.UCB(0.5), ma.EpsilonGreedy(0.2), ma.Uniform()):
        one = ma.Agent(agent.belief, decision, 0)
        one.save(tmp_path / decision.kind)
        policy = open_policy(tmp_path / decision.kind).policy
        found = policy.probabilities_of_many(X, np.tile(np.arange(5), (30, 1)))
        truth = [[one.propensity(x, a).value for a in range(5)] for x in X]
        np.testing.assert_allclose(found, truth, atol=1e-12)


def test_files_that_are_not_there_or_not_right(problem, rng, tmp_path):
    problem.policy.save(tmp_path / "policy")
    with pytest.raises(DataError, match="no such file"):
        command.run(tmp_path / "policy", tmp_path / "nothing.csv")
    with pytest.raises(StorageError, match="no saved policy"):
        command.run(tmp_path / "nobody", tmp_path / "nothing.csv")
    (tmp_path / "log.txt").write_text("?")
    with pytest.raises(InvalidInput, match="LOG"):
        command.run(tmp_path / "policy", tmp_path / "log.txt")
    to_csv(problem.log(20, rng), tmp_path / "log.csv")
    out = tmp_path / "out"
    with pytest.raises(InvalidInput):
        command.run(tmp_path / "policy", tmp_path / "log.csv", out=out, estimators=["luck"])
    assert not out.exists()  # nothing half-written
