"""A store is verified: one that is whole passes, and whatever was changed in it is found and named."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from live.small_store import Clock, D, small_agent, small_live, traffic
from live.small_store import quick_disk as quick_disk
from manyarms.errors import InvalidInput, StorageError
from manyarms.live.propensities import PropensityWorker
from manyarms.live.replaying import Replayed, replay

Change = Callable[[sqlite3.Connection], None]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with everything in it: arms, shares, caps, retired actions, late rewards, snapshots, computed propensities."""
    path, clock = tmp_path_factory.mktemp("whole") / "s.db", Clock()
    with small_live(path, clock, small_agent(), aggregate="sum") as live:
        traffic(live, clock, 12)
        live.snapshot()
        live.add_arm("other", small_agent(2, "epsilon-greedy"))
        live.deploy({"agent": 0.6, "other": 0.4}, holdout=0.2, holdout_arm="other")
        live.cap(5, 200.0)
        traffic(live, clock, 12, seed=1)
        live.retire(2)
        PropensityWorker(live.database).work()
        live.deploy({"baseline": 1.0}, shadows=["agent"])
        traffic(live, clock, 8, seed=2, baseline=True)
        live.snapshot()
        traffic(live, clock, 4, seed=3, baseline=True)
    return path


def test_a_whole_store_passes(whole: Path) -> None:
    found = replay(whole)
    assert found.ok, str(found)
    assert found.identical == 3 and found.rounded == 0, "the origin and two snapshots, to the last bit"
    assert found.decisions == 36 and found.propensities > 10
    for words in ("positions 1 to", "36 the same", "3 identical to the last bit", "none"):
        assert words in str(found)


def test_a_part_of_a_store_passes_too(whole: Path) -> None:
    found = replay(whole, from_snapshot=True)
    assert found.ok and found.identical == 1 and found.decisions + found.before == 36 and found.before > 20
    found = replay(whole, decisions=10, propensities=0)
    assert found.ok and 0 < found.decisions < 25 and found.decisions + found.left_out == 36 and not found.propensities
    assert replay(whole, decisions=0).left_out == 36


def changed(whole: Path, tmp_path: Path, change: Change) -> Replayed:
    path = tmp_path / "changed.db"
    with sqlite3.connect(whole) as source, sqlite3.connect(path) as copy:
        source.backup(copy)
        change(copy)
    source.close()
    copy.close()
    return replay(path, propensities=3)


def other_context(db: sqlite3.Connection) -> None:
    [(position, context)] = db.execute("SELECT position, context FROM decisions WHERE id = '0-6'").fetchall()
    damaged = bytes([context[0] ^ 1]) + context[1:]
    db.execute("UPDATE decisions SET context = ? WHERE position = ?", (damaged, position))


def other_context_and_digest(db: sqlite3.Connection) -> None:
    """By somebody who knows how digests are made: the state gives it away."""
    from manyarms.live.records import Question

    [(question,)] = db.execute("SELECT question FROM decisions WHERE id = '0-6'").fetchall()
    asked = Question(np.array([5.0, -5.0, 5.0]), **{"exclude": Question.read(np.zeros(D).tobytes(), question).exclude})
    values = (asked.context.tobytes(), asked.digest(None))
    db.execute("UPDATE decisions SET context = ?, digest = ? WHERE id = '0-6'", values)


CHANGES: dict[str, tuple[Change, str]] = {
    "a byte of a context": (other_context, "event '0-6': context, filters"),
    "a context and its digest": (other_context_and_digest, "snapshot of version"),
    "a context cut short": (
        lambda db: db.execute("UPDATE decisions SET context = X'00' WHERE id = '0-6'"),
        "cannot be read",
    ),
    "an action": (
        lambda db: db.execute("UPDATE decisions SET actions = '[' || (5 - substr(actions, 2, 1)) || ']' WHERE id = '1-5'"),
        "event '1-5': actions",
    ),
    "an arm": (
        lambda db: db.execute("UPDATE decisions SET arm = CASE arm WHEN 'agent' THEN 'other' ELSE 'agent' END WHERE id = '1-6'"),
        "event '1-6': arm",
    ),
    "a version": (lambda db: db.execute("UPDATE decisions SET version = 99 WHERE id = '1-6'"), "decided by version 99"),
    "a draw": (lambda db: db.execute("UPDATE decisions SET draw = draw + 1 WHERE id = '1-6'"), "draw number"),
    "a reward": (
        lambda db: db.execute("UPDATE rewards SET value = value + 1e-4 WHERE position = (SELECT MIN(position) FROM rewards)"),
        "snapshot of version",
    ),
    "a reward that is gone": (
        lambda db: db.execute("DELETE FROM rewards WHERE position = (SELECT MIN(position) FROM rewards)"),
        "is missing",
    ),
    "a reward of another action": (
        lambda db: db.execute("UPDATE rewards SET action = 77 WHERE position = (SELECT MAX(position) FROM rewards)"),
        "of action 77",
    ),
    "a decision that is gone": (lambda db: db.execute("DELETE FROM decisions WHERE id = '0-3'"), "of no event"),
    "a chunk that is gone": (lambda db: db.execute("DELETE FROM chunks WHERE version = 3"), "chunk 3 is missing"),
    "a boundary": (lambda db: db.execute("UPDATE chunks SET upto = upto - 1 WHERE version = 2"), "given out twice"),
    "a token": (lambda db: db.execute("UPDATE chunks SET token = 0 WHERE version = 4"), "token 0"),
    "a time": (lambda db: db.execute("UPDATE decisions SET at = at - 500 WHERE id = '1-3'"), "has the time"),
    "an operation that is gone": (
        lambda db: db.execute("DELETE FROM operations WHERE kind = 'retire'"),
        "is missing",
    ),
    "a snapshot": (
        lambda db: db.execute("UPDATE snapshot_parts SET body = CAST(X'00' || substr(body, 2) AS BLOB) WHERE rowid = "
                              "(SELECT MAX(rowid) FROM snapshot_parts)"),
        "damaged",
    ),
    "a propensity": (
        lambda db: db.execute("UPDATE propensities SET propensity = propensity * 0.9"),
        "computed before",
    ),
    "an exact propensity": (
        lambda db: db.execute("UPDATE decisions SET propensity = 0.9 WHERE propensity_kind = 'exact'"),
        "propensity 0.9 recorded",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_is_found_and_named(what: str, whole: Path, tmp_path: Path) -> None:
    change, words = CHANGES[what]
    found = changed(whole, tmp_path, change)
    assert not found.ok
    assert words in str(found), str(found)


def test_an_erased_event_is_no_difference(tmp_path: Path) -> None:
    """What was decided from it cannot be verified any more, and is counted; everything else is."""
    clock = Clock()
    with small_live(tmp_path / "s.db", clock, small_agent()) as live:
        ids = traffic(live, clock, 20)
        live.snapshot()
        live.reward(ids[6], 5.0, id="more")
        live.erase(ids[6])
        traffic(live, clock, 10, seed=1)
        live.snapshot()
        found = replay(live.database)
    assert found.ok, str(found)
    assert found.identical == 2 and found.erased_since == 10 and found.decisions == 19
    assert "10 not verifiable" in str(found)


def test_a_store_in_use_is_verified_as_it_was_when_it_began(tmp_path: Path) -> None:
    clock = Clock()
    with small_live(tmp_path / "s.db", clock, small_agent()) as live:
        traffic(live, clock, 10)

        def meanwhile(done: int, total: int, words: str) -> None:
            live.decide(np.ones(D))
            live.learn()

        found = replay(live.database, progress=meanwhile)
    assert found.ok and found.decisions == 10


def test_what_is_no_store_is_refused(tmp_path: Path, whole: Path) -> None:
    with pytest.raises(StorageError, match="no live store"):
        replay(tmp_path / "none.db")
    with pytest.raises(InvalidInput):
        replay(whole, decisions=-1)
    assert list(tmp_path.iterdir()) == []
