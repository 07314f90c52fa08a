"""The choice of a correction from a log that streams: that of the log in memory, and no more memory for more rows."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import manyarms as ma
from manyarms.cli.app import app
from manyarms.evaluation import tune
from manyarms.logs.data import CHUNK, LoggedData, collect
from manyarms.logs.row_groups import RowGroups

K, D = 12, 4
THETA = np.random.default_rng(5).standard_normal((K, D))


def rounds(n: int, seed: int) -> LoggedData:
    rng = np.random.default_rng(seed)
    logger = ma.SoftmaxPolicy(0.5 * THETA)
    X = rng.standard_normal((n, D))
    A = logger.sample(X, rng)
    r = (rng.random(n) < 1 / (1 + np.exp(-np.einsum("nd,nd->n", X, THETA[A])))).astype(float)
    return LoggedData(X, A, r, K, propensities=logger.probabilities_of(X, A))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("pyarrow")
    out, log = tmp_path_factory.mktemp("rounds"), rounds(3_000, 1)
    for i in range(3):
        ma.logs.to_parquet(log.rows(slice(1000 * i, 1000 * (i + 1))), out / f"{i}.parquet", rows_per_group=250)
    return out


@pytest.mark.parametrize("family", ["es", "cips", "ix"])
@pytest.mark.parametrize("rule", ["mse", "slope"])
def test_a_choice_from_a_folder_is_that_of_the_log(folder: Path, family: str, rule: str) -> None:
    policy = ma.SoftmaxPolicy(2 * THETA)
    one = tune(policy, rounds(3_000, 1), family, rule=rule)
    other = tune(policy, ma.open_log(folder), family, rule=rule)
    assert other.parameter == one.parameter and other.correction == one.correction
    for mine, theirs in zip(other.trials, one.trials, strict=True):
        assert mine.parameter == theirs.parameter
        assert mine.value == pytest.approx(theirs.value, rel=1e-10)
        assert mine.standard_error == pytest.approx(theirs.standard_error, rel=1e-10)
        assert mine.bias_bound == pytest.approx(theirs.bias_bound, rel=1e-10)


def test_chosen_on_one_part_of_a_folder_and_evaluated_on_the_other(folder: Path) -> None:
    """Two parts by row groups: disjoint, the same for the same seed, and together the whole."""
    policy, parts = ma.SoftmaxPolicy(2 * THETA), RowGroups(ma.open_log(folder)).split(0.5, seed=3)
    again = RowGroups(ma.open_log(folder)).split(0.5, seed=3)
    rows = [np.concatenate([part.contexts for part in one.chunks(CHUNK)]) for one in parts]
    for one, other in zip(rows, again, strict=True):
        assert (one == np.concatenate([part.contexts for part in other.chunks(CHUNK)])).all()
    both = np.concatenate(rows)
    assert len(both) == len(np.unique(both, axis=0)) == 3_000
    chosen = tune(policy, parts[0])
    streamed, held = (ma.evaluate(policy, log, [chosen.estimator]) for log in (parts[1], collect(parts[1])))
    assert streamed.estimates[0].value == pytest.approx(held.estimates[0].value, rel=1e-10)


@dataclass
class Endless:
    """A log that is made as it is read."""

    rows: int
    action_count: int = K
    dim: int = D

    def chunks(self, rows: int = 0) -> Iterator[LoggedData]:
        for i in range(self.rows // 5_000):
            yield rounds(5_000, i)


def peak(rows: int) -> int:
    tracemalloc.start()
    tune(ma.SoftmaxPolicy(2 * THETA), Endless(rows), grid=[0.3, 0.7])
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most


def test_more_rows_need_no_more_memory() -> None:
    peak(5_000)  # whatever is imported or made once
    short, long = peak(50_000), peak(150_000)
    assert long <= short + 100_000  # bytes: one more for each row would be seen


def test_the_command_takes_a_folder(folder: Path, tmp_path: Path) -> None:
    ma.SoftmaxPolicy(2 * THETA).save(tmp_path / "policy")
    asked = ["tune", str(tmp_path / "policy"), str(folder), "--out", str(tmp_path / "out")]
    found = CliRunner().invoke(app, asked)
    assert found.exit_code == 0, found.output
    assert (tmp_path / "out" / "tuning.json").exists()
