"""What checks a store after kills finds what it is there to find."""

from __future__ import annotations

import random
import shutil
import sqlite3
from pathlib import Path

import pytest

from live import torture_checks, tortured
from manyarms.live import lease, packing


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store and its journal, after some calls of every kind and no kill."""
    folder = tmp_path_factory.mktemp("whole")
    journal, rng = tortured.Journal(folder / "one.journal"), random.Random(3)
    patched = pytest.MonkeyPatch()
    patched.setattr(lease, "SECONDS", tortured.LEASE)
    patched.setattr(tortured, "WAIT", 3600.0)  # on whatever machine, there is time to activate
    with tortured.open_live(str(folder / "live.db"), background=False, propensities=False) as live:
        for number in range(60):
            tortured._decide(live, journal, f"e{number}", rng)
            tortured._reward(live, journal, rng)
            tortured._activate(live, journal, rng)
            if number % 12 == 0:
                tortured._operate(live, journal, rng)
            if number % 20 == 10:
                live.snapshot()
        weights = tortured.weights_of(1)
        journal.note("operating", "add_actions", weights)
        live.add_actions(weights=weights)
        journal.note("operated", "add_actions", weights)
    patched.undo()
    return folder


@pytest.fixture
def folder(whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it."""
    monkeypatch.setattr(lease, "SECONDS", tortured.LEASE)  # which the checks set
    return Path(shutil.copytree(whole, tmp_path / "copy"))


def wrong(folder: Path) -> str:
    return "\n".join(torture_checks.check(str(folder / "live.db"), folder)[0])


def test_a_store_that_nothing_was_done_to(folder: Path) -> None:
    assert wrong(folder) == ""


NEWEST = "(SELECT {0} FROM {1} ORDER BY {0} DESC LIMIT 1 OFFSET {2})"
OLDEST = -1
PLANTED = {
    "lost: decision": ("DELETE FROM decisions", 0),
    "changed: decision": ("UPDATE decisions SET actions = '[11]'", 2),
    "changed: the context": ("UPDATE decisions SET context = zeroblob(24)", 4),
    "invented: decision": ("UPDATE decisions SET id = 'nobody'", 6),
    "erased, which nobody asked for": ("UPDATE decisions SET erased = 1", 8),
    "lost: reward": ("DELETE FROM rewards", 10),
    "invented: reward": ("UPDATE rewards SET value = 0.123", 20),
    "times fall": ("UPDATE rewards SET at = at - 1000", 22),
    "lost: activation": ("DELETE FROM activations", 0),
    "activated, which nobody asked for": (
        "UPDATE activations SET decision = (SELECT MAX(position) FROM decisions WHERE id = 'e50')",
        2,
    ),
    "may never be shown": ("UPDATE decisions SET active = 1 - active", 14),
    "operation": ("DELETE FROM operations", 0),
    "token falls": ("UPDATE chunks SET token = 0", 0),
    "the fold from the snapshot of version": ("DELETE FROM rewards", OLDEST),
    "is not whole": ("UPDATE snapshots SET sha256 = 'x'", 0),
}
FOLLOWING = (
    "positions have gaps",
    "is not what the fold from the origin is",
    "rows were learned, and",
)


def test_faults_that_are_planted_are_found(folder: Path) -> None:
    with sqlite3.connect(folder / "live.db") as database:
        for sql, offset in PLANTED.values():
            table = sql.split()[1 if sql.startswith("UPDATE") else 2]
            key = "version" if table in ("chunks", "snapshots") else "position"
            which = f"(SELECT MIN({key}) FROM {table})" if offset == OLDEST else NEWEST.format(key, table, offset)
            sql += f" WHERE {key} = {which}"
            assert database.execute(sql).rowcount == 1
    database.close()
    found = wrong(folder)
    assert [what for what in (*PLANTED, *FOLLOWING) if what not in found] == [], found


def test_a_row_that_is_learned_twice_is_found(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By everybody in the same way, so that only the comparison with the final rewards can tell."""
    from manyarms.live.agent_arm import AgentArm

    monkeypatch.setattr(packing, "ORPHANED", 0.0)
    observe = AgentArm.observe

    def twice(arm: AgentArm, X: object, actions: object, rewards: object, at: object) -> None:
        observe(arm, X, actions, rewards, at)  # type: ignore[arg-type]
        observe(arm, X[:1], actions[:1], rewards[:1], at[:1])  # type: ignore[arg-type, index]

    monkeypatch.setattr(AgentArm, "observe", twice)
    assert "the belief is not that of the final rewards" in wrong(folder)
