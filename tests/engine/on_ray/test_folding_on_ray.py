"""Logs folded on a real Ray runtime: beliefs and models of the fold in one process to 1e-9, however many work, whoever dies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import manyarms as ma
from deaths import DeadlyRewards
from manyarms.beliefs import Belief
from manyarms.engine import Engine, local
from manyarms.errors import DataError
from manyarms.logs import LoggedData, open_log, shards, to_parquet
from manyarms.priors import HierarchicalPrior, MixedEffectPrior, ParameterPrior
from manyarms.rewards import divided, dm_bayes, dm_frequentist, offline_estimates, sdm, warm_start

ROWS, ACTIONS, DIM = 6000, 200, 4
FILES = 5


def a_log() -> LoggedData:
    """Skewed: one action has a third of the rows, most have a few, many have none."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((ROWS, DIM))
    actions = np.minimum((ACTIONS * rng.random(ROWS) ** 6).astype(int), ACTIONS - 1)
    return LoggedData(X, actions, X[:, 0] + 0.1 * rng.standard_normal(ROWS), ACTIONS)


def mixed() -> MixedEffectPrior:
    rng = np.random.default_rng(1)
    weights = rng.dirichlet(np.ones(3), ACTIONS)
    return MixedEffectPrior(weights, rng.standard_normal((3, DIM)), np.eye(3 * DIM), 0.5 * np.eye(DIM))


def hierarchical() -> HierarchicalPrior:
    return HierarchicalPrior(ACTIONS, np.zeros(DIM), np.eye(DIM), 0.5 * np.eye(DIM))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files of 1,200 rows in row groups of 170."""
    log, path = a_log(), tmp_path / "rounds"
    path.mkdir()
    for i in range(FILES):
        part = log.rows(slice(ROWS // FILES * i, ROWS // FILES * (i + 1)))
        to_parquet(part, path / f"{i}.parquet", rows_per_group=170)
    return path


@pytest.fixture(params=[300, 2500, 100_000], ids=["36 shards", "3 shards", "1 shard"])
def log(request: pytest.FixtureRequest, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(shards, "ROWS_EACH", request.param)
    return open_log(folder, catalogue=range(ACTIONS))


@pytest.fixture
def log_in_shards(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(shards, "ROWS_EACH", 300)
    return open_log(folder, catalogue=range(ACTIONS))


def same_belief(one: Belief, other: Belief) -> None:
    ids = np.arange(ACTIONS)
    for mine, theirs in zip(one.action_posterior(ids), other.action_posterior(ids), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-9 * np.abs(theirs).max())
    np.testing.assert_allclose(one.root.mean(), other.root.mean(), rtol=1e-9, atol=1e-9)
    assert one.leaves.counts.rows.sum() == other.leaves.counts.rows.sum() == ROWS


@pytest.mark.parametrize("prior", [mixed(), hierarchical()], ids=lambda prior: type(prior).__name__)
@pytest.mark.parametrize("learn", [sdm, dm_bayes])
def test_beliefs_are_those_of_one_process(ray_engine: Engine, log: Any, prior: ParameterPrior, learn: Any) -> None:
    here, there = learn(log, prior, ma.Linear(0.3)), learn(log, prior, ma.Linear(0.3), on=ray_engine)
    same_belief(there.belief, here.belief)
    mine, theirs = there.training_rows.arrays(), here.training_rows.arrays()
    assert all(np.array_equal(mine[name], theirs[name]) for name in mine | theirs)


def test_models_and_warm_starts_are_those_of_one_process(ray_engine: Engine, log: Any) -> None:
    np.testing.assert_allclose(
        dm_frequentist(log, on=ray_engine).parameters, dm_frequentist(log).parameters, rtol=1e-9, atol=1e-9
    )
    np.testing.assert_allclose(offline_estimates(log, on=ray_engine), offline_estimates(log), rtol=1e-9, atol=1e-9)
    how: dict[str, Any] = {"decision": ma.Greedy(), "seed": 0}
    here, there = warm_start(log, mixed(), **how), warm_start(log, mixed(), **how, on=ray_engine)
    same_belief(there.belief, here.belief)
    X = np.random.default_rng(2).standard_normal((5, DIM))
    assert [there.decide(x) for x in X] == [here.decide(x) for x in X]


def test_the_bits_are_those_of_any_engine_and_number_of_workers(ray_engine: Engine, log_in_shards: Any) -> None:
    found = [sdm(log_in_shards, mixed(), on=ray_engine).parameters for _ in range(2)]
    for workers in (1, 3):
        with local(workers) as engine:
            found.append(sdm(log_in_shards, mixed(), on=engine).parameters)
    assert all(np.array_equal(one, found[0]) for one in found)


def test_sums_of_a_large_catalogue_are_added_in_parts(
    ray_engine: Engine, log_in_shards: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(divided, "PART", 2000)
    parts = list(divided.partial_sums(log_in_shards, ray_engine))
    assert len(parts) > 5 and sum(int(sums.counts.sum()) for sums, _ in parts) == ROWS
    same_belief(sdm(log_in_shards, mixed(), on=ray_engine).belief, sdm(log_in_shards, mixed()).belief)


def test_a_worker_that_dies_in_the_middle_leaves_no_trace(
    ray_engine: Engine, log_in_shards: Any, tmp_path: Path
) -> None:
    whole = sdm(log_in_shards, mixed(), ma.Linear(0.3), on=ray_engine)
    deadly = DeadlyRewards(0.3, float(a_log().rewards[ROWS // 2]), str(tmp_path / "died"))
    killed = sdm(log_in_shards, mixed(), deadly, on=ray_engine)
    assert (tmp_path / "died").exists()
    assert np.array_equal(killed.parameters, whole.parameters)
    same_belief(killed.belief, sdm(log_in_shards, mixed(), ma.Linear(0.3)).belief)


def test_a_damaged_shard_is_named_and_nothing_is_learned(ray_engine: Engine, log_in_shards: Any, folder: Path) -> None:
    model = sdm(log_in_shards, mixed())
    before = model.parameters.copy()
    file = folder / "3.parquet"
    damaged = bytearray(file.read_bytes())
    damaged[4 : len(damaged) // 2] = bytes(len(damaged) // 2 - 4)
    file.write_bytes(damaged)
    with pytest.raises(DataError, match=r"3\.parquet"):
        model.fold(open_log(folder, catalogue=range(ACTIONS)), on=ray_engine)
    file.unlink()
    with pytest.raises(DataError, match=r"3\.parquet"):
        model.fold(log_in_shards, on=ray_engine)
    assert np.array_equal(model.parameters, before)
