"""Compaction: old events go, and what was learned from them stays to the last bit, whatever happens meanwhile."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import manyarms as ma
from live.postgres import Server
from live.small_store import Clock, D, small_agent, small_live, traffic
from live.small_store import quick_disk as quick_disk
from manyarms.errors import InvalidInput, UnknownEvent
from manyarms.live import Live, compaction, packing, snapshots
from manyarms.live.compaction import compact
from manyarms.live.exporting import export
from manyarms.live.replaying import replay
from manyarms.live.stores.database import Database

COUNTED = ("decisions", "rewards", "operations", "chunks", "snapshots", "snapshot_parts", "propensities")


def counts(database: Database) -> dict[str, int]:
    return {table: database.read(f"SELECT COUNT(*) FROM {table}")[0][0] for table in COUNTED}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, float, list[str]]:
    """A store with monitors, arms that joined, a cap, late rewards and defaults; when it was left, and its events."""
    path, clock = tmp_path_factory.mktemp("made") / "s.db", Clock()
    with small_live(path, clock, small_agent(decision="epsilon-greedy"), aggregate="sum", reward_range=(-9, 9)) as live:
        ids = traffic(live, clock, 10)
        live.add_arm("other", small_agent(2, "uniform"))
        live.deploy({"agent": 0.5, "other": 0.5})
        live.cap(3, 100.0)
        ids += traffic(live, clock, 15, seed=1)
        live.snapshot()
        ids += traffic(live, clock, 15, seed=2)
    return path, clock.now, ids


Busy = tuple[Live, Clock, list[str]]


@pytest.fixture
def busy(made: tuple[Path, float, list[str]], tmp_path: Path) -> Iterator[Busy]:
    """That store, open."""
    path, now, ids = made
    shutil.copy(path, tmp_path / "s.db")
    clock = Clock(now)
    with small_live(tmp_path / "s.db", clock) as live:
        yield live, clock, ids


def test_the_state_stays_the_same_to_the_last_bit_and_the_store_passes(busy: Busy, tmp_path: Path) -> None:
    live, clock, ids = busy
    with live:
        live.reward(ids[0], 0.5, id="much later")  # learned after the origin to be: its decision must stay
        live.learn()
        live.snapshot()
        before, rows = live.state_bytes(), counts(live.database)
        planned = live.compact(150.0, dry_run=True)
        assert counts(live.database) == rows and live.state_bytes() == before
        done = live.compact(150.0)
        left = counts(live.database)
        assert done.moved and done.decisions == planned.decisions > 10 and done.bytes == planned.bytes > 0
        for table in ("decisions", "rewards", "operations", "chunks"):
            assert rows[table] - left[table] == getattr(done, table), table
        assert live.state_bytes() == before
        assert packing.pack_state(snapshots.from_origin(live.database)) == before
        found = replay(live.database)
        assert found.ok, str(found)
        assert found.begins.version == done.version > 0 and found.identical == 2
        # the oldest event stays because of its late reward; the next ones are gone
        assert live.event(ids[0]).id == ids[0]
        for use in (live.event, live.reward, live.erase):
            with pytest.raises(UnknownEvent):
                use(ids[1])
        assert "gone" in str(done) and "would go" in str(planned)
    with small_live(tmp_path / "s.db", clock) as again:
        assert again.state_bytes() == before
        traffic(again, clock, 10, seed=3)
        assert packing.pack_state(snapshots.from_origin(again.database)) == again.state_bytes()
        assert replay(again.database).ok


def test_events_that_wait_at_the_origin_stay_until_they_are_settled(tmp_path: Path) -> None:
    """A decision that is not due at the new origin gets its default, or its reward, afterwards: as without compaction."""
    states = []
    for compacting in (False, True):
        clock = Clock()
        with small_live(tmp_path / f"{compacting}.db", clock, small_agent(), wait=1000.0) as live:
            ids = traffic(live, clock, 12)
            clock.now += 500
            live.learn()
            if compacting:
                done = live.compact(100.0)
                assert done.moved and done.decisions == 0, "nothing is due yet"
                assert live.event(ids[0]).actions
            live.reward(ids[2], 1.5)
            clock.now += 2000
            live.learn()
            states.append(packing.pack({}, snapshots.state_of(live.database).arms))
            if compacting:
                assert replay(live.database).ok
                assert live.compact(100.0).decisions == 0, "the version that settled them is younger than that"
                clock.now += 200
                assert live.compact(100.0).decisions == 12
                assert replay(live.database).ok
    assert states[0] == states[1]


def test_a_process_that_is_behind_begins_with_the_new_origin(busy: Busy, tmp_path: Path) -> None:
    """One or many versions behind: it never folds a chunk whose entries are gone."""
    live, clock, _ = busy
    versions = [chunk for (chunk,) in live.database.read("SELECT version FROM chunks ORDER BY version")]
    behind = [snapshots.state_of(live.database, version) for version in (versions[2], versions[-2], versions[-1])]
    with small_live(tmp_path / "s.db", clock, learner=False) as other:
        traffic(live, clock, 5, seed=5)
        clock.now += 100
        live.learn()
        clock.now += 100
        assert live.compact(0.0).version == live.version
        expected = live.state_bytes()
        assert other.state_bytes() == expected and other.version == live.version
        for state in behind:
            assert packing.pack_state(snapshots.fold(live.database, state)) == expected
        # a snapshot of before the origin is not kept any more
        assert not snapshots.write(live.database, snapshots.origin(live.database))
        other.decide(np.ones(D), id="of the other")
        live.reward("of the other", 1.0)
        live.learn()
        assert other.learn() and other.state_bytes() == live.state_bytes()


def test_missing_propensities_are_computed_before_their_versions_go(tmp_path: Path) -> None:
    clock = Clock()
    with small_live(tmp_path / "s.db", clock, small_agent(), wait=1000.0) as live:
        traffic(live, clock, 8)
        clock.now += 50
        live.learn()
        clock.now += 50
        assert live.compact(40.0).moved
        known = live.database.read("SELECT propensity, error FROM propensities")
    assert len(known) == 8 and all(value > 0 and error >= 0 for value, error in known)


class Killed(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("step", ["write_parts", "_become_origin", "_delete_some", "remove_orphans"])
def test_whatever_breaks_it_off_the_state_is_the_same(step: str, busy: Busy, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed at each step: the store passes, goes on, and the next compaction finishes the work."""
    live, clock, _ = busy
    before = live.state_bytes()
    monkeypatch.setattr(compaction, "STEP", 2)
    where: Any = packing if step in ("write_parts", "remove_orphans") else compaction
    real, calls = getattr(where, step), 0

    def breaks(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        result = real(*arguments)
        if step != "_delete_some" or calls == 3:  # in the middle of them
            raise Killed
        return result

    with monkeypatch.context() as patched:
        patched.setattr(where, step, breaks)
        with pytest.raises(Killed):
            live.compact(150.0)
    assert live.state_bytes() == before
    assert packing.pack_state(snapshots.from_origin(live.database)) == before
    assert replay(live.database).ok
    left = live.compact(150.0)
    assert left.moved == (step in ("write_parts", "_become_origin"))
    assert replay(live.database).ok and live.state_bytes() == before
    assert not live.compact(150.0, dry_run=True).decisions
    # parts that nobody has named for an hour go
    clock.now += 7200
    live.compact(1e6)
    named = "SELECT writing FROM snapshots UNION SELECT substr(body, -34, 32) FROM operations WHERE kind = 'add_arm'"
    assert live.database.read(f"SELECT COUNT(*) FROM snapshot_parts WHERE writing NOT IN ({named})") == [(0,)]


def test_an_erasure_meanwhile_is_in_the_new_origin(busy: Busy, monkeypatch: pytest.MonkeyPatch) -> None:
    live, _, ids = busy
    real, calls = packing.write_parts, 0

    def erases(database: Database, content: bytes) -> str:
        nonlocal calls
        calls += 1
        if calls == 1:
            live.erase(ids[3])
        return real(database, content)

    monkeypatch.setattr(packing, "write_parts", erases)
    live.compact(150.0)
    assert calls == 2, "made anew, without the event"
    assert packing.pack_state(snapshots.from_origin(live.database)) == live.state_bytes()
    assert replay(live.database).ok


def test_an_event_that_stayed_can_be_erased_unless_the_origin_learned_from_it(busy: Busy, tmp_path: Path) -> None:
    """What is refused stays as it is; of what is erased, every way of folding gives the same state."""
    live, clock, _ = busy
    with small_live(tmp_path / "s.db", clock, learner=False) as other:
        done = live.compact(150.0)
        [(upto, due)] = live.database.read("SELECT upto, due FROM chunks WHERE version = ?", (done.version,))
        stayed = live.database.read("SELECT id, position FROM decisions WHERE position <= ?", (upto,))
        rewarded = {of for (of,) in live.database.read("SELECT decision FROM rewards WHERE position <= ?", (upto,))}
        assert done.moved and stayed
        erased = 0
        for event, position in stayed:
            before = live.state_bytes()
            if position <= due or position in rewarded:
                with pytest.raises(UnknownEvent, match="can no longer be taken back"):
                    live.erase(event)
                assert live.state_bytes() == before and not live.event(event).erased
            else:
                live.erase(event)
                erased += 1
        assert 0 < erased < len(stayed)
        other.learn()
        assert live.state_bytes() == other.state_bytes()
        assert packing.pack_state(snapshots.from_origin(live.database)) == live.state_bytes()
        assert replay(live.database).ok


def test_nonsense_is_refused_and_nothing_to_do_is_said(tmp_path: Path) -> None:
    clock = Clock()
    with small_live(tmp_path / "s.db", clock, small_agent()) as live:
        for wrong in (-1.0, float("nan"), "30d", None):
            with pytest.raises(InvalidInput):
                live.compact(wrong)  # type: ignore[arg-type]
        traffic(live, clock, 5)
        assert "nothing to compact" in str(live.compact(1e9))
        assert compact(live.database, 1e9).version == 0


USING = """
import sys
import numpy as np
import manyarms as ma
path, role, seed = sys.argv[1], sys.argv[2], int(sys.argv[3])
with ma.live.open(path, fold_every=0.01, snapshot_every=5) as live:
    rng = np.random.default_rng(seed)
    print("open", flush=True)
    while True:
        if role == "compacts":
            live.compact(0.05)
        else:
            made = live.decide(rng.normal(size=3))
            live.reward(made.id, float(rng.normal()))
"""


@pytest.mark.slow
def test_processes_that_use_and_compact_a_store_may_be_killed_at_any_moment(tmp_path: Path) -> None:
    """Two decide, one compacts all the time, and one after the other is killed: the store passes every time."""
    path = tmp_path / "s.db"
    ma.live.open(path, small_agent(decision="epsilon-greedy"), wait=0.02, default=0.0, background=False).close()
    rng = np.random.default_rng()
    roles = ["decides", "compacts", "decides"]

    def started(role: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", USING, str(path), role, str(rng.integers(1 << 30))]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None and process.stdout.readline() == "open\n"
        return process

    running = {number: started(role) for number, role in enumerate(roles)}
    compacted = 0
    try:
        for _ in range(6):
            time.sleep(float(rng.uniform(0.2, 0.8)))
            victim = int(rng.integers(len(roles)))
            assert running[victim].poll() is None, "nobody ends by itself"
            running[victim].kill()
            running[victim].wait()
            found = replay(path, decisions=200, propensities=5)
            assert found.ok, str(found)
            compacted = max(compacted, found.begins.version)
            stdout = running[victim].stdout
            assert stdout is not None
            stdout.close()
            running[victim] = started(roles[victim])
    finally:
        for process in running.values():
            process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()
    found = replay(path)
    assert found.ok, str(found)
    assert compacted > 0
    with ma.live.open(path, background=False) as live:
        assert packing.pack_state(snapshots.from_origin(live.database)) == live.state_bytes()


def test_a_unit_that_comes_again_after_its_events_went_is_no_new_one(tmp_path: Path) -> None:
    """Its arm was drawn once: counted with every compaction, twenty units that stay would raise the alarm of the sample ratio."""
    clock = Clock()
    with small_live(tmp_path / "s.db", clock, small_agent(decision="epsilon-greedy"), reward_range=(0, 1)) as live:
        live.add_arm("other", small_agent(2, "uniform"))
        live.deploy({"agent": 0.5, "other": 0.5}, holdout=0.25, holdout_arm="agent")
        for number in range(4):
            for unit in range(20):
                record = live.event(live.decide(np.ones(D), unit=f"u{unit}").id)
                assert record.details.get("repeated") == (None if number == 0 else "unit")
            live.decide(np.ones(D), unit=f"only {number}")
            live.learn()
            clock.now += 100.0
            live.learn()
            clock.now += 100.0
            assert live.compact(50.0).decisions == 21
        body = live.report().body
        assert body["events"] == 84 and body["sample_ratio"]["events"] == body["lift"]["events"] == 24
        assert not live.database.read("SELECT 1 FROM decisions")


@pytest.mark.slow
def test_the_tools_on_postgresql(postgres: Server, tmp_path: Path) -> None:
    """Export, compaction and replay speak to PostgreSQL as they do to SQLite."""
    pytest.importorskip("pyarrow")
    clock = Clock()
    address = postgres.new_database()
    with small_live(address, clock, small_agent(), aggregate="sum") as live:
        ids = traffic(live, clock, 20)
        live.snapshot()
        live.erase(ids[4])
        clock.now += 100
        live.learn()
        clock.now += 100
        assert export(address, tmp_path / "log.parquet").rows > 0
        assert replay(address).ok
        before = live.state_bytes()
        assert compact(address, 50.0, dry_run=True).bytes > 0
        assert compact(live.database, 50.0).decisions == 20
        assert live.state_bytes() == before
        assert packing.pack_state(snapshots.from_origin(live.database)) == before
        found = replay(address)
        assert found.ok, str(found)
