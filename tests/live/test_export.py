"""A live store as a log: what is in the file, what is left out, and that the log's own readers take it as it is."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import manyarms as ma
from live.small_store import Clock, D, K, small_agent, small_live, traffic
from live.small_store import quick_disk as quick_disk
from manyarms.errors import InvalidInput, LiveError, MissingExtra, StorageError
from manyarms.live import exporting

parquet = pytest.importorskip("pyarrow.parquet")


def columns(path: Path) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = parquet.read_table(path).to_pydict()
    return found


def test_a_log_comes_back_as_it_was_decided_and_rewarded(tmp_path: Path) -> None:
    """Contexts, actions, propensities and rewards are those of the store; nothing has to be said to read them."""
    clock = Clock()
    with small_live(tmp_path / "s.db", clock, small_agent(decision="epsilon-greedy"), aggregate="sum") as live:
        ids = traffic(live, clock, 30)
        live.reward(ids[0], 2.0, id="another")
        clock.now += 1000
        found = exporting.export(live.database, tmp_path / "log.parquet")
        records = [live.event(one) for one in ids]
        rewards = {
            p: v for p, v in live.database.read("SELECT decision, SUM(value) FROM rewards GROUP BY decision")
        }  # the first actions' alone: nobody else is rewarded
    assert (found.rows, found.estimated) == (30, 0)
    log = ma.open_log(tmp_path / "log.parquet").collect()
    assert not log.propensities_are_estimates
    assert log.action_count == K
    assert log.event_ids is not None and log.event_ids.tolist() == ids
    np.testing.assert_array_equal(log.contexts, [r.question.context for r in records])  # type: ignore[union-attr]
    np.testing.assert_array_equal(log.actions, [r.actions[0] for r in records])
    np.testing.assert_array_equal(log.propensities, [r.propensity for r in records])
    np.testing.assert_allclose(log.rewards, [rewards.get(r.position, 0.0) for r in records])
    assert log.timestamps is not None
    np.testing.assert_allclose(log.timestamps.astype("datetime64[us]").astype(float) / 1e6, [r.at for r in records])
    # the same unit, the same group; without a unit, a group of one's own
    assert log.groups is not None
    assert len(set(log.groups.tolist())) == len({r.unit or r.id for r in records})
    table = columns(tmp_path / "log.parquet")
    for name, values in {
        "arm": [r.arm for r in records], "version": [r.version for r in records], "unit": [r.unit for r in records],
        "k": [len(r.actions) for r in records], "actions": [r.actions for r in records],
        "candidates": [r.question.candidates for r in records],  # type: ignore[union-attr]
        "excluded": [r.question.exclude for r in records],  # type: ignore[union-attr]
        "inclusion": [r.inclusion for r in records], "propensity_kind": ["exact"] * 30,
    }.items():  # fmt: skip
        assert table[name] == values, name


def test_only_what_is_settled_is_written_unless_asked_for(tmp_path: Path) -> None:
    clock = Clock()
    with small_live(tmp_path / "s.db", clock, small_agent(decision="uniform"), default=None) as live:
        ids = [live.decide(np.ones(D)).id for _ in range(4)]
        live.reward(ids[0], 1.0)
        clock.now += 60
        ids += [live.decide(np.ones(D)).id for _ in range(3)]
        live.reward(ids[1], 0.5)
        live.reward(ids[5], 0.25)
        live.erase(ids[2])
        settled = exporting.export(live.database, tmp_path / "a.parquet")
        every = exporting.export(live.database, tmp_path / "b.parquet", unsettled=True)
        assert columns(tmp_path / "a.parquet")["event_id"] == ids[:2]
        assert columns(tmp_path / "b.parquet")["event_id"] == [ids[0], ids[1], ids[5]]
        assert columns(tmp_path / "b.parquet")["reward"] == [1.0, 0.5, 0.25]
        assert settled.left_out[exporting.NOT_DUE] == 3 and every.left_out[exporting.NOT_DUE] == 2
        assert settled.left_out[exporting.NO_REWARD] == 1 and settled.left_out[exporting.ERASED] == 1
        assert "1 events that were erased" in str(settled)
    assert "group" not in columns(tmp_path / "a.parquet"), "no decision had a unit: rows are not grouped"


def test_estimated_propensities_are_computed_kept_and_recognisable(tmp_path: Path) -> None:
    """Thompson sampling: estimates are committed, the log says so, and so does what is made of it."""
    clock = Clock()
    with small_live(tmp_path / "s.db", clock, small_agent()) as live:
        traffic(live, clock, 12, rewards=lambda rng: float(rng.random()))
        clock.now += 1000
        found = exporting.export(live.database, tmp_path / "log.parquet")
        kept = live.database.read("SELECT decision, propensity FROM propensities ORDER BY decision")
        assert (found.rows, found.estimated, len(kept)) == (12, 12, 12)
        log = ma.open_log(tmp_path / "log.parquet")
        assert log.collect().propensities_are_estimates
        np.testing.assert_array_equal(log.collect().propensities, [value for _, value in kept])
        policy = ma.SoftmaxPolicy(actions=np.zeros((K, D)))
        with pytest.raises(InvalidInput, match="propensities that are estimates"):
            ma.certify(policy, log, independent=True)
        certificate = ma.certify(policy, log, independent=True, trust_estimates=True)
        assert "propensities are estimates" in str(certificate)
        with pytest.raises(InvalidInput, match="estimated propensities"):
            log.collect().require("known_propensities", purpose="a test")
        exporting.export(live.database, tmp_path / "again.parquet")
        assert columns(tmp_path / "again.parquet") == columns(tmp_path / "log.parquet")
        with pytest.raises(LiveError, match="12 events whose propensity is an estimate"):
            exporting.export(live.database, tmp_path / "none.parquet", exact_only=True)
    assert not (tmp_path / "none.parquet").exists() and len(list(tmp_path.glob("*.parquet"))) == 2


def test_a_mixed_store_says_that_it_has_estimates_and_can_leave_them_out(tmp_path: Path) -> None:
    clock = Clock()
    with small_live(tmp_path / "s.db", clock, small_agent()) as live:
        traffic(live, clock, 6)
        live.add_arm("known", small_agent(2, "uniform"))
        live.deploy({"known": 1.0})
        traffic(live, clock, 6, seed=1)
        clock.now += 1000
        assert exporting.export(live.database, tmp_path / "all.parquet").estimated == 6
        assert exporting.export(live.database, tmp_path / "exact.parquet", exact_only=True).rows == 6
    assert ma.logs.read_log(tmp_path / "all.parquet").propensities_are_estimates
    assert not ma.logs.read_log(tmp_path / "exact.parquet").propensities_are_estimates


def test_propensities_that_nobody_can_know_any_more_are_left_out_and_counted(tmp_path: Path) -> None:
    """The state that decided had learned from an event that was erased since."""
    clock = Clock()
    with small_live(tmp_path / "s.db", clock, small_agent()) as live:
        ids = traffic(live, clock, 5)
        later = traffic(live, clock, 5, seed=1)
        live.erase(ids[0])
        clock.now += 1000
        found = exporting.export(live.database, tmp_path / "log.parquet")
        assert found.left_out[exporting.UNKNOWN] == 5 and found.left_out[exporting.ERASED] == 1
    assert not set(columns(tmp_path / "log.parquet")["event_id"]) & {ids[0], *later}


def test_a_store_of_many_batches_is_the_same_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    told: list[tuple[int, int, str]] = []
    with small_live(tmp_path / "s.db", clock, small_agent(decision="uniform")) as live:
        traffic(live, clock, 20)
        clock.now += 1000
        exporting.export(live.database, tmp_path / "one.parquet")
        monkeypatch.setattr(exporting, "STEP", 3)
        exporting.export(live.database, tmp_path / "many.parquet", progress=lambda *news: told.append(news))
    assert columns(tmp_path / "one.parquet") == columns(tmp_path / "many.parquet")
    assert [done for done, _, _ in told] == [3, 6, 9, 12, 15, 18, 20] and {total for _, total, _ in told} == {20}


def test_what_is_no_store_is_refused_and_nothing_is_made(tmp_path: Path) -> None:
    for wrong in (tmp_path / "none.db", tmp_path):
        with pytest.raises(StorageError):
            exporting.export(wrong, tmp_path / "log.parquet")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(InvalidInput):
        exporting.export(tmp_path / "none.db", "a\0b")


def test_without_pyarrow_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match="experiments"):
        exporting.export(tmp_path / "s.db", tmp_path / "log.parquet")
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_whole_or_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Broken off half way, or compacted meanwhile: the file of before stays as it was, and nothing is left beside it."""
    clock = Clock()
    with small_live(tmp_path / "s.db", clock, small_agent(decision="uniform")) as live:
        traffic(live, clock, 12)
        clock.now += 1000
        live.learn()
        clock.now += 1000
        exporting.export(live.database, tmp_path / "log.parquet")
        before = (tmp_path / "log.parquet").read_bytes()
        monkeypatch.setattr(exporting, "STEP", 4)

        def compacts(done: int, total: int, words: str) -> None:
            live.compact(500.0)

        with pytest.raises(LiveError, match="compacted while"):
            exporting.export(live.database, tmp_path / "log.parquet", progress=compacts)
        with pytest.raises(KeyboardInterrupt):
            traffic(live, clock, 3, seed=1)
            clock.now += 1000
            exporting.export(live.database, tmp_path / "log.parquet", progress=_interrupted)
    assert (tmp_path / "log.parquet").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(".")) == []


def _interrupted(done: int, total: int, words: str) -> None:
    raise KeyboardInterrupt
