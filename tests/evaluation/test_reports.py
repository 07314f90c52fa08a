"""What a user sees: the table and the page, and a policy from its folder."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

import manyarms as ma
from manyarms.errors import InvalidInput
from manyarms.estimators import MIPS
from manyarms.evaluation import evaluate
from manyarms.evaluation.tables import as_data
from manyarms.logs import LoggedData, open_log, read_csv
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
    assert text.count("<figure>") == 3 and text.count("<svg") == 6  # each drawn for a wide page and for a phone
    assert "nan" not in text.lower().replace("finance", "")
    assert not re.search(r'(src|href)="', text)
    assert evaluated.report(tmp_path / "folder") == tmp_path / "folder" / "report.html"


def test_pages_of_odd_logs(tmp_path):
    """A single row; no overlap at all; every weight the same."""
    one = LoggedData(np.ones((1, 1)), [0], [1.0], 2, propensities=[1.0])
    for policy in (FixedPolicy([0.5, 0.5]), FixedPolicy([0.0, 1.0]), FixedPolicy([1.0, 0.0])):
        found = evaluate(policy, one)
        assert str(found) and found.report(tmp_path / "odd.html").is_file()
        json.dumps(as_data(found), allow_nan=False)


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
    policy.schema = log.schema
    policy.save(tmp_path / "policy")
    direct = evaluate(policy, log, ["ips"])["ips"].value
    schema = ma.load(tmp_path / "policy").schema
    second = open_log(tmp_path / "second.csv", encoder=schema.encoder, catalogue=schema.catalogue)
    assert evaluate(ma.load(tmp_path / "policy"), second, ["ips"])["ips"].value == pytest.approx(direct, rel=1e-9)
    assert schema.catalogue == log.catalogue
