"""Evaluations of logs that are divided among workers say what the pass in one process says."""

from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from in_process import Sent
from manyarms._base.moments import Moments, Part
from manyarms.engine import local
from manyarms.errors import DataError, InvalidInput
from manyarms.evaluation import InColumn, choose, difference, evaluate, tune
from manyarms.evaluation.diagnostics import PolicyOverlap
from manyarms.logs import LoggedData, RowGroups, open_log, shards, to_csv, to_parquet
from manyarms.logs.inspection.sketches import Duplicates
from manyarms.logs.row_sketch import RowSketch
from manyarms.logs.shards import chunks_of, numbered_shards, shards_of
from manyarms.policies import SoftmaxPolicy
from manyarms.weights import tails
from manyarms.weights.tails import LargestWeights

ROWS, ACTIONS = 3000, 5


def a_log(*, groups=False, rows=ROWS):
    rng = np.random.default_rng(5)
    X, logging = rng.standard_normal((rows, 3)), SoftmaxPolicy(rng.standard_normal((ACTIONS, 3)))
    actions = logging.sample(X, rng)
    return LoggedData(
        X, actions, (rng.random(rows) < 0.2 + 0.1 * actions).astype(float), ACTIONS, logging.probabilities_of(X, actions),
        timestamps=np.datetime64("2026-01-01") + np.cumsum(rng.integers(1, 100, rows)).astype("timedelta64[s]"),
        groups=rng.integers(0, 400, rows) if groups else None,
    )  # fmt: skip


def policy(seed=1):
    return SoftmaxPolicy(np.random.default_rng(seed).standard_normal((ACTIONS, 3)))


@pytest.fixture
def small_shards(monkeypatch):
    monkeypatch.setattr(shards, "ROWS_EACH", 500)


@pytest.fixture
def path(tmp_path, small_shards):
    """A folder of two files, 16 row groups."""
    folder, log = tmp_path / "rounds", a_log()
    folder.mkdir()
    to_parquet(log.rows(slice(0, 2000)), folder / "a.parquet", rows_per_group=170)
    to_parquet(log.rows(slice(2000, None)), folder / "b.parquet", rows_per_group=300)
    return folder


def same(one, other):
    """Two results, number by number to rounding and text by text."""
    assert type(one) is type(other)
    if isinstance(one, float):
        assert one == pytest.approx(other, rel=1e-9, abs=1e-12, nan_ok=True)
    elif isinstance(one, tuple | list):
        assert len(one) == len(other)
        for mine, theirs in zip(one, other, strict=True):
            same(mine, theirs)
    elif isinstance(one, np.ndarray):
        np.testing.assert_allclose(one, other, rtol=1e-9)
    elif isinstance(one, PolicyOverlap):
        same(one.pareto_k, other.pareto_k)
        kept = lambda it: {name: value for name, value in vars(it).items() if name != "upper"}  # noqa: E731
        same(sorted(kept(one).items()), sorted(kept(other).items()))
    elif hasattr(one, "__dataclass_fields__"):
        same(sorted(vars(one).items()), sorted(vars(other).items()))
    else:
        assert one == other


@pytest.mark.parametrize(
    "settings", [{}, {"interval": "bootstrap"}, {"interval": "block", "block": timedelta(hours=1)}]
)
@pytest.mark.parametrize("kind", ["memory", "groups", "folder", "some row groups"])
def test_the_same_as_in_one_process(path, kind, settings):
    log = {
        "memory": a_log, "groups": lambda: a_log(groups=True), "folder": lambda: open_log(path),
        "some row groups": lambda: RowGroups(open_log(path), [0, 3, 4, 5, 9, 11, 14], logging=policy(9)),
    }[kind]()  # fmt: skip
    same(evaluate(policy(), log, on=Sent(), **settings), evaluate(policy(), log, **settings))


def test_differences_choices_and_tuning(path):
    log, one, other = open_log(path), policy(1), policy(2)
    same(difference(one, other, log, on=Sent()), difference(one, other, log))
    same(difference(one, None, log, "ips", on=Sent()), difference(one, None, log, "ips"))
    same(choose([one, other, "uniform"], log, on=Sent()), choose([one, other, "uniform"], log))
    same(tune(one, log, on=Sent()), tune(one, log))


def test_policies_that_are_known_row_by_row(path):
    log = open_log(path)
    p = np.random.default_rng(0).random(ROWS)
    same(evaluate(p, log, on=Sent()), evaluate(p, log))
    with pytest.raises(InvalidInput, match="the log's 3,000 rows"):
        evaluate(p[:-1], log, on=Sent())


def test_rows_that_are_left_out(tmp_path, small_shards):
    pytest.importorskip("pandas")
    import pandas as pd

    whole, rng = a_log(), np.random.default_rng(3)
    frame = pd.DataFrame(whole.contexts, columns=["x_0", "x_1", "x_2"]).assign(
        action=whole.actions, reward=whole.rewards, propensity=whole.propensities, own=rng.random(ROWS)
    )
    frame.loc[rng.random(ROWS) < 0.2, "reward"] = np.nan
    frame.loc[500:1200, "reward"] = np.nan  # a whole shard among them
    frame.to_parquet(tmp_path / "log.parquet", row_group_size=250)
    log = open_log(tmp_path / "log.parquet", drop_missing=True)
    left = int(frame.reward.notna().sum())
    found = numbered_shards(Sent(), log)
    assert [s.first_row for s in found] == np.cumsum([0, *(s.rows for s in found)])[:-1].tolist()
    assert sum(s.rows for s in found) == left and all(s.rows == sum(map(len, chunks_of(log, s))) for s in found)
    p = rng.random(left)
    same(evaluate(p, log, on=Sent()), evaluate(p, log))
    same(evaluate(InColumn("own"), log, on=Sent()), evaluate(InColumn("own"), log))


def test_a_policy_learned_from_these_rows_is_found_out(path):
    log = open_log(path)
    learned = policy()
    learned.training_rows = RowSketch.of(log)
    found = evaluate(learned, log, on=Sent())
    assert found.on_training_rows and found.warnings == evaluate(learned, log).warnings


def test_the_largest_weight_is_called_by_its_row(small_shards):
    log = a_log()
    tiny = log.propensities.copy()
    tiny[1777] = 1e-9
    log = replace(log, propensities=tiny)
    found = evaluate("uniform", log, on=Sent())
    assert found.overlap.largest_row == found.overlap.smallest_row == 1777
    assert any("row 1777 alone carries" in text for text in found.warnings)


def test_what_cannot_be_divided_is_refused(tmp_path):
    to_csv(a_log(rows=50), tmp_path / "log.csv")
    with pytest.raises(InvalidInput, match="one order only") as refusal:
        evaluate("uniform", open_log(tmp_path / "log.csv"), on=Sent())
    assert "to_parquet" in str(refusal.value)
    with pytest.raises(InvalidInput, match=r"^on: "):
        evaluate("uniform", a_log(rows=50), on="spark")


def test_with_real_workers(path, tmp_path):
    """The bits are those of any number of workers; what cannot be sent, and a file that is damaged, are named."""
    log = open_log(path, spool=True)
    with local(workers=2) as engine:
        found = evaluate(policy(), log, on=engine)
        again = evaluate(policy(), log, on=Sent())
        assert [one.value for one in found.estimates] == [one.value for one in again.estimates]
        assert found.logged.interval == again.logged.interval
        assert [one.intervals for one in found.estimates] == [one.intervals for one in again.estimates]
        same(found, evaluate(policy(), log))
        with pytest.raises(InvalidInput, match=r"policy: expected .*got what cannot be sent to other processes"):
            evaluate(lambda X: np.zeros(len(X), dtype=int), log, on=engine)
        file = path / "b.parquet"
        damaged = bytearray(file.read_bytes())
        damaged[4 : len(damaged) // 2] = bytes(len(damaged) // 2 - 4)
        file.write_bytes(damaged)
        with pytest.raises(DataError, match=r"b\.parquet"):
            evaluate(policy(), open_log(path), on=engine)
        with pytest.raises(DataError, match=r"b\.parquet: changed since it was opened"):
            evaluate(policy(), log, on=engine)


# ---- merging: any split merged is the whole


def splits(rng, rows=ROWS, parts=5):
    ends = [0, *np.sort(rng.integers(0, rows, parts - 1)).tolist(), rows]
    return [slice(a, b) for a, b in itertools.pairwise(ends)]


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_moments_merge(seed, grouped):
    rng = np.random.default_rng(seed)
    rows = 40_000  # more than there are units
    table = rng.standard_normal((rows, 3)) + np.array([1e6, 0, 1])
    groups, cell = (rng.integers(0, 99, rows) if grouped else None), np.arange(rows) * 50 // rows
    whole = Moments(3, 50)
    whole.add(table, groups, cell)
    parts = []
    for part in splits(rng, rows):
        parts.append(Moments(3, 50, part.start))
        parts[-1].add(table[part], None if groups is None else groups[part], cell[part])
    first = parts[0]
    for part in parts[1:]:
        first.merge(part)
    assert first.rows == whole.rows and first.units == whole.units
    for contrast in ((Part(0),), (Part(1, 2),), (Part(0), Part(1, None, -1.0))):
        assert first.value(contrast) == pytest.approx(whole.value(contrast), rel=1e-12, abs=1e-12)
        assert first.standard_error(contrast) == pytest.approx(whole.standard_error(contrast), rel=1e-8)
        np.testing.assert_allclose(
            first.replicates(contrast, 50, 1), whole.replicates(contrast, 50, 1), rtol=1e-9, atol=1e-9
        )
        np.testing.assert_allclose(
            first.block_replicates(contrast, 3, 50, 1), whole.block_replicates(contrast, 3, 50, 1), rtol=1e-9, atol=1e-9
        )


@pytest.mark.parametrize("seed", range(3))
def test_largest_weights_merge(seed, monkeypatch):
    monkeypatch.setattr(tails, "KEPT", 200)
    rng = np.random.default_rng(seed)
    w = rng.pareto(1.5, ROWS) * (rng.random(ROWS) < 0.9)
    whole, merged = LargestWeights(), LargestWeights()
    for some in np.array_split(w, 11):
        whole.add(some)
    for part in splits(rng):
        other = LargestWeights()
        other.add(w[part])
        merged.merge(other)
    assert merged.rows == ROWS and merged.pareto_k() == whole.pareto_k()


@pytest.mark.parametrize("budget", [40, 1000])
@pytest.mark.parametrize("seed", range(3))
def test_duplicates_merge(seed, budget):
    rng = np.random.default_rng(seed)
    hashes = rng.choice(rng.integers(0, 2**63, 900).astype(np.uint64), 700)
    whole, merged = Duplicates(budget), Duplicates(budget)
    whole.see(hashes, np.arange(700))
    for part in splits(rng, 700):
        other = Duplicates(budget)
        other.see(hashes[part], np.arange(700)[part])
        merged.merge(other)
    assert (merged.count, merged.distinct, merged.thinning) == (whole.count, whole.distinct, whole.thinning)
    if whole.exact:
        assert merged.first_row == whole.first_row


def test_shards_are_all_rows_in_order(path):
    for log in (a_log(), open_log(path)):
        found = shards_of(log, 450)
        assert sum(one.rows for one in found) == ROWS and len(found) > 3
        rows = [np.concatenate([part.rewards for part in chunks_of(log, one, 64)]) for one in found]
        assert [len(some) for some in rows] == [one.rows for one in found]
        np.testing.assert_array_equal(np.concatenate(rows), a_log().rewards)
