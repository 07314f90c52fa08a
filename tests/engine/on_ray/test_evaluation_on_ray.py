"""Evaluating and tuning on a real Ray runtime: the numbers of the pass in one process, and errors that name what is wrong."""

from __future__ import annotations

import json

import numpy as np
import pytest

from manyarms.cli.app import main
from manyarms.errors import DataError
from manyarms.evaluation import choose, difference, evaluate, tune
from manyarms.logs import LoggedData, open_log, shards, to_parquet
from manyarms.policies import SoftmaxPolicy

ROWS, ACTIONS = 4000, 6


@pytest.fixture
def path(tmp_path, monkeypatch):
    """A folder of four files, each a shard."""
    monkeypatch.setattr(shards, "ROWS_EACH", 800)
    rng = np.random.default_rng(0)
    X, logging = rng.standard_normal((ROWS, 3)), SoftmaxPolicy(rng.standard_normal((ACTIONS, 3)))
    actions = logging.sample(X, rng)
    log = LoggedData(X, actions, rng.random(ROWS), ACTIONS, logging.probabilities_of(X, actions))
    folder = tmp_path / "rounds"
    folder.mkdir()
    for i in range(4):
        to_parquet(log.rows(slice(1000 * i, 1000 * (i + 1))), folder / f"{i}.parquet", rows_per_group=250)
    return folder


def policy(seed=1):
    return SoftmaxPolicy(np.random.default_rng(seed).standard_normal((ACTIONS, 3)))


def numbers(found):
    """All that an evaluation says, in numbers."""
    ends = [end for one in found.estimates for each in one.intervals for end in (each.low, each.high)]
    return [*ends, *(one.value for one in found.estimates), *(one.standard_error for one in found.estimates)]


def test_the_same_as_in_one_process(ray_engine, path):
    log, mine = open_log(path), policy()
    here, there = evaluate(mine, log), evaluate(mine, log, on=ray_engine)
    np.testing.assert_allclose(numbers(there), numbers(here), rtol=1e-9, atol=1e-12)
    assert there.warnings == here.warnings and there.notes == here.notes
    assert numbers(evaluate(mine, log, on=ray_engine)) == numbers(there)
    one, other = difference(mine, policy(2), log), difference(mine, policy(2), log, on=ray_engine)
    assert other.value == pytest.approx(one.value, rel=1e-9) and other.interval.low == pytest.approx(one.interval.low)
    assert choose([mine, "uniform"], log, on=ray_engine).best == choose([mine, "uniform"], log).best
    assert tune(mine, log, on=ray_engine).parameter == tune(mine, log).parameter


def test_a_function_may_be_anything_here(ray_engine, path):
    first = lambda X: np.where(X[:, 0] > 0, 1, 2)  # noqa: E731
    log = open_log(path)
    assert evaluate(first, log, ["ips"], on=ray_engine)["ips"].value == pytest.approx(
        evaluate(first, log, ["ips"])["ips"].value
    )


def test_a_damaged_file_is_named_and_nothing_is_written(ray_engine, path, tmp_path, capsys):
    file = path / "2.parquet"
    damaged = bytearray(file.read_bytes())
    damaged[4 : len(damaged) // 2] = bytes(len(damaged) // 2 - 4)
    file.write_bytes(damaged)
    with pytest.raises(DataError, match=r"2\.parquet"):
        evaluate(policy(), open_log(path), on=ray_engine)
    with pytest.raises(SystemExit) as ended:
        main(["evaluate", "uniform", str(path), "--on", "ray", "--out", str(tmp_path / "out")])
    assert ended.value.code not in (0, None) and "2.parquet" in capsys.readouterr().err
    assert list((tmp_path / "out").glob("*")) == []


def test_on_the_command_line(ray_engine, command, path, tmp_path):
    for out, on in (("here", "local"), ("there", "ray")):
        command("evaluate", "uniform", path, "--on", on, "--out", tmp_path / out)
    here, there = (json.loads((tmp_path / out / "evaluation.json").read_text()) for out in ("here", "there"))
    assert here.keys() == there.keys()
    for one, other in zip(here["estimates"], there["estimates"], strict=True):
        assert one["value"] == pytest.approx(other["value"], rel=1e-9)
