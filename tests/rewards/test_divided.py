"""Beliefs and reward models of logs that are divided among workers: those of the log in one piece, to rounding."""

from __future__ import annotations

import copy
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import manyarms as ma
from in_process import Sent
from manyarms._base.typing import Array
from manyarms.beliefs import Belief, belief_of
from manyarms.beliefs.partial_sums import even_ends, gathered
from manyarms.engine import local
from manyarms.errors import DataError, InvalidInput
from manyarms.logs import LoggedData, open_log, shards, to_csv, to_parquet
from manyarms.priors import HierarchicalPrior, MixedEffectPrior, ParameterPrior
from manyarms.rewards import DirectFrequentist, dm_bayes, dm_frequentist, offline_estimates, sdm, warm_start
from manyarms.rewards import divided as module

ROWS, ACTIONS, DIM = 4000, 300, 4


def a_log(rows: int = ROWS, actions: int = ACTIONS, seed: int = 0, scale: float = 1.0) -> LoggedData:
    """Skewed: some actions have hundreds of rows, many have none."""
    rng = np.random.default_rng(seed)
    X = scale * rng.standard_normal((rows, DIM))
    chosen = np.minimum((actions * rng.random(rows) ** 6).astype(int), actions - 1)
    return LoggedData(X, chosen, X[:, 0] + 0.1 * rng.standard_normal(rows), actions)


def mixed(actions: int = ACTIONS) -> MixedEffectPrior:
    rng = np.random.default_rng(1)
    weights = rng.dirichlet(np.ones(3), actions)
    return MixedEffectPrior(weights, rng.standard_normal((3, DIM)), np.eye(3 * DIM), 0.5 * np.eye(DIM))


@pytest.fixture
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "ROWS_EACH", 600)


@pytest.fixture
def folder(tmp_path: Path, small_shards: None) -> Path:
    """Three files, of row groups that are no divisor of anything."""
    log, path = a_log(), tmp_path / "rounds"
    path.mkdir()
    for name, start, end in (("a", 0, 1500), ("b", 1500, 1700), ("c", 1700, ROWS)):
        to_parquet(log.rows(slice(start, end)), path / f"{name}.parquet", rows_per_group=170)
    return path


def opened(folder: Path) -> Any:
    return open_log(folder, catalogue=range(ACTIONS))


def same_belief(one: Belief, other: Belief) -> None:
    """Equal to 1e-9 of the size of the numbers compared."""
    ids = np.arange(one.catalogue.size)
    for mine, theirs in zip(one.action_posterior(ids), other.action_posterior(ids), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-9 * np.abs(theirs).max())
    np.testing.assert_allclose(one.root.mean(), other.root.mean(), rtol=1e-9, atol=1e-9)
    assert one.leaves.counts.rows.sum() == other.leaves.counts.rows.sum()


def same_rows(one: Any, other: Any) -> None:
    """Two sketches, to the last bit."""
    mine, theirs = one.arrays(), other.arrays()
    assert mine.keys() == theirs.keys()
    for name in mine:
        assert np.array_equal(mine[name], theirs[name]), name


PRIORS: list[ParameterPrior] = [mixed(), HierarchicalPrior(ACTIONS, np.zeros(DIM), np.eye(DIM), 0.5 * np.eye(DIM))]


@pytest.mark.parametrize("prior", PRIORS, ids=lambda prior: type(prior).__name__)
@pytest.mark.parametrize("learn", [sdm, dm_bayes])
def test_a_divided_fold_is_the_fold(folder: Path, prior: ParameterPrior, learn: Any) -> None:
    log = opened(folder)
    whole, parts = learn(log, prior, ma.Linear(0.3)), learn(log, prior, ma.Linear(0.3), on=Sent())
    same_belief(parts.belief, whole.belief)
    same_rows(parts.training_rows, whole.training_rows)
    assert parts.schema.catalogue == whole.schema.catalogue


def test_the_number_of_workers_changes_no_bit(folder: Path) -> None:
    log, found = opened(folder), []
    for workers in (1, 2):
        with local(workers) as engine:
            found.append(sdm(log, mixed(), on=engine).parameters)
    found.append(sdm(log, mixed(), on=Sent()).parameters)
    assert np.array_equal(found[0], found[1]) and np.array_equal(found[0], found[2])
    np.testing.assert_allclose(found[0], sdm(log, mixed()).parameters, rtol=1e-9, atol=1e-9)


def test_a_log_in_memory(small_shards: None) -> None:
    log = a_log()
    same_belief(sdm(log, mixed(), on=Sent()).belief, sdm(log, mixed()).belief)


def test_more_logs_one_after_the_other(small_shards: None) -> None:
    first, second = a_log(1000), a_log(2000, seed=3)
    whole = sdm(first, mixed()).fold(second)
    parts = sdm(first, mixed(), on=Sent()).fold(second, on=Sent())
    same_belief(parts.belief, whole.belief)
    same_rows(parts.training_rows, whole.training_rows)


def test_many_parts_by_action(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PART", 2000)
    log = opened(folder)
    parts = list(module.partial_sums(log, Sent()))
    assert len(parts) > 10 and [sketch is None for _, sketch in parts] == [False] + [True] * (len(parts) - 1)
    ids = np.concatenate([part.ids for part, _ in parts])
    assert np.array_equal(ids, np.unique(a_log().actions))
    same_belief(sdm(log, mixed(), on=Sent()).belief, sdm(log, mixed()).belief)
    model = dm_frequentist(log, on=Sent())
    np.testing.assert_allclose(model.parameters, dm_frequentist(log).parameters, rtol=1e-9, atol=1e-9)
    estimates = offline_estimates(log, on=Sent())
    np.testing.assert_allclose(estimates, offline_estimates(log), rtol=1e-9, atol=1e-9)


def test_rewards_without_a_belief(folder: Path) -> None:
    log = opened(folder)
    whole, parts = DirectFrequentist(0.5).fit(log), DirectFrequentist(0.5).fit(log, on=Sent())
    np.testing.assert_allclose(parts.parameters, whole.parameters, rtol=1e-9, atol=1e-9)
    same_rows(parts.training_rows, whole.training_rows)
    with pytest.raises(InvalidInput, match="least"):
        offline_estimates(log, least=10_000, on=Sent())


def test_an_agent_goes_on_from_there(folder: Path) -> None:
    how: dict[str, Any] = {"decision": ma.Greedy(), "seed": 0}
    whole, parts = warm_start(opened(folder), mixed(), **how), warm_start(opened(folder), mixed(), **how, on=Sent())
    X = np.random.default_rng(2).standard_normal((5, DIM))
    assert [whole.decide(x) for x in X] == [parts.decide(x) for x in X]


def test_rows_that_lack_something_are_left_out_of_every_shard(tmp_path: Path, small_shards: None) -> None:
    pandas = pytest.importorskip("pandas")
    log = a_log(2000)
    frame = pandas.DataFrame(log.contexts, columns=[f"x{i}" for i in range(DIM)])
    frame["action"], frame["reward"] = log.actions, log.rewards
    frame.loc[np.random.default_rng(4).random(2000) < 0.3, "reward"] = None
    frame.loc[600:1300, "reward"] = None  # a shard without a row
    frame.to_parquet(tmp_path / "log.parquet", row_group_size=150)
    source = open_log(tmp_path / "log.parquet", catalogue=range(ACTIONS), drop_missing=True)
    whole, parts = sdm(source, mixed()), sdm(source, mixed(), on=Sent())
    same_belief(parts.belief, whole.belief)
    same_rows(parts.training_rows, whole.training_rows)


# ---- sums -----------------------------------------------------------------------------------------------------------


def rows_of(log: LoggedData) -> list[tuple[Array, Any, Array]]:
    return [(log.contexts, log.actions, log.rewards)]


@pytest.mark.parametrize("scale", [1.0, 3e4], ids=["sums", "triangles"])
def test_any_division_gives_the_whole(scale: float) -> None:
    """Large contexts, whose sums would lose digits, are kept as triangles."""
    log, rng = a_log(scale=scale), np.random.default_rng(7)
    whole = belief_of(mixed(), ma.Linear(0.3))
    empty = copy.deepcopy(whole)
    whole.fold(rows_of(log))
    for pieces in (1, 2, 7):
        ends = [0, *np.sort(rng.integers(0, ROWS, pieces - 1)).tolist(), ROWS]
        found = [gathered(empty, rows_of(log.rows(slice(a, b)))) for a, b in itertools.pairwise(ends)]
        assert (scale > 1) == any(len(one.apart) > 0 for one in found)
        total = found[0]
        for one in found[1:]:
            total = total.add(one)
        for count in (1, 4):
            belief = copy.deepcopy(empty)
            cut = total.cut(even_ends(ACTIONS, count))
            assert len(cut) == count
            for part in cut:
                belief.learn_sums(*part.tables())
            same_belief(belief, whole)


def test_nothing_follows_the_size_of_the_catalogue() -> None:
    prior = HierarchicalPrior(1_000_000, np.zeros(2), np.eye(2), np.eye(2))
    belief = belief_of(prior, ma.Linear())
    X, actions, rewards = np.ones((3, 2)), np.array([999_999, 5, 5]), np.ones(3)
    found = gathered(belief, [(X, actions, rewards)])
    assert found.ids.tolist() == [5, 999_999] and found.counts.tolist() == [2, 1] and found.G.shape == (2, 3)
    both = found.add(gathered(belief, [(X, np.array([3, 5, 7]), rewards)]))
    assert both.ids.tolist() == [3, 5, 7, 999_999] and both.counts.tolist() == [1, 3, 1, 1]


@pytest.mark.parametrize("scale", [30.0, 400.0, 1000.0])
def test_one_long_direction_costs_no_digits(scale: float, small_shards: None) -> None:
    """Contexts near a line, whose sums hold the other directions badly: of every action all rows, or none, are summed.

    At 400 some shards have little of an action that has too much for sums in all.
    """
    rng, actions, rows = np.random.default_rng(0), 40, 2000
    X = scale * rng.standard_normal((rows, 1)) * np.full(DIM, 0.5) + 1e-3 * rng.standard_normal((rows, DIM))
    chosen = np.minimum((actions * rng.random(rows) ** 4).astype(int), actions - 1)
    parameters = rng.standard_normal((actions, DIM))
    rewards = np.einsum("nd,nd->n", X, parameters[chosen]) + 0.1 * rng.standard_normal(rows)
    log = LoggedData(X, chosen, rewards, actions)
    prior = HierarchicalPrior(actions, np.zeros(DIM), np.eye(DIM), 0.5 * np.eye(DIM))
    for method in (dm_bayes, sdm):
        found = {}
        for each in (150, 600):
            shards.ROWS_EACH = each
            found[each] = method(log, prior, ma.Linear(0.3), on=Sent()).belief.action_posterior(np.arange(actions))[0]
        whole = method(log, prior, ma.Linear(0.3)).belief.action_posterior(np.arange(actions))[0]
        # sums of at most `folding.MOST` are good to 1e-8 by design, in one piece as in many
        np.testing.assert_allclose(found[150], whole, rtol=0, atol=3e-8 * np.abs(whole).max())
        np.testing.assert_allclose(found[600], found[150], rtol=0, atol=3e-8 * np.abs(whole).max())


# ---- what cannot be divided -------------------------------------------------------------------------------------------


def test_what_cannot_be_divided_is_refused(folder: Path, tmp_path: Path) -> None:
    log = opened(folder)
    with pytest.raises(
        InvalidInput, match=r"^on: .*linear rewards.*got one of several processes with a Logistic likelihood"
    ):
        sdm(log, mixed(), ma.Logistic(), on=Sent())
    with pytest.raises(InvalidInput, match=r"^on: .*nowhere"):
        sdm(log, mixed(), on="nowhere")
    to_csv(a_log(50), tmp_path / "log.csv")
    with pytest.raises(InvalidInput, match=r"^source: .*to_parquet"):
        sdm(open_log(tmp_path / "log.csv", catalogue=range(ACTIONS)), mixed(), on=Sent())
    with pytest.raises(InvalidInput, match=r"^source: .*length 2.*length 4"):
        sdm(log, HierarchicalPrior(ACTIONS, np.zeros(2), np.eye(2), np.eye(2)), on=Sent())


def test_a_damaged_shard_is_named_and_nothing_is_learned(folder: Path) -> None:
    file = folder / "c.parquet"
    log, model = opened(folder), sdm(a_log(100), mixed())
    before = model.parameters.copy()
    damaged = bytearray(file.read_bytes())
    damaged[4 : len(damaged) // 2] = bytes(len(damaged) // 2 - 4)
    file.write_bytes(damaged)
    with local(2) as engine, pytest.raises(DataError, match=r"c\.parquet"):
        model.fold(log, on=engine)
    assert np.array_equal(model.parameters, before)
