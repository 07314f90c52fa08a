"""Parts of snapshots that were written and never named: a process was killed in between. They do not stay for ever."""

from __future__ import annotations

from typing import Any

import pytest

from live.making import Clock, X, a_live, an_agent, from_origin
from manyarms.errors import LiveError, StoreUnavailable
from manyarms.live import Live, packing, snapshots


def writings(live: Live) -> set[str]:
    return {name for (name,) in live.database.read("SELECT DISTINCT writing FROM snapshot_parts")}


def kept(live: Live) -> None:
    """Something new, folded and kept in a snapshot."""
    live.decide(X)
    live.learn()
    live.snapshot()


def test_parts_that_nobody_names_are_removed_when_they_are_old(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "PART", 1000)
    clock = Clock()
    with a_live(clock=clock) as live:
        live.add_arm("other", an_agent(seed=3))
        lost = packing.write_parts(live.database, b"x" * 5000)  # and killed
        clock.now += packing.ORPHANED
        recent = packing.write_parts(live.database, b"x" * 5000)  # another process is at it
        kept(live)
        assert {lost, recent} <= writings(live)
        clock.now += 1.5  # names say whole seconds
        kept(live)
        assert lost not in writings(live)
        assert recent in writings(live)
        clock.now += 2 * packing.ORPHANED
        kept(live)
        named = {name for (name,) in live.database.read("SELECT writing FROM snapshots")}
        assert len(writings(live)) == len(named) + 1  # the arm's own
        assert live.state_bytes() == from_origin(live)  # which the fold from the origin needs


def test_whoever_sleeps_between_writing_and_naming_names_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    with a_live(clock=clock) as live, a_live(clock=clock) as scratch:
        write_parts = packing.write_parts

        def slow(database: Any, content: bytes) -> str:
            writing = write_parts(database, content)
            if database is live.database:  # meanwhile
                clock.now += 2 * packing.ORPHANED
                live.database.do(packing.remove_orphans)
            return writing

        live.decide(X)
        live.learn()
        monkeypatch.setattr(packing, "write_parts", slow)
        assert not snapshots.write(live.database, snapshots.from_origin(live.database))
        with pytest.raises(LiveError, match="do it again"):
            live.add_arm("other", an_agent(seed=3))
        monkeypatch.undo()
        live.add_arm("other", an_agent(seed=3))
        assert live.state_bytes() == from_origin(live)
        assert scratch.version == 0


def test_a_snapshot_that_fails_half_way_is_written_the_next_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "PART", 1000)
    with a_live(snapshot_every=1) as live:
        add_part, calls = packing._add_part, []

        def failing(*arguments: Any) -> Any:
            calls.append(arguments)
            if len(calls) == 3:
                raise StoreUnavailable("gone for a moment")
            return add_part(*arguments)

        monkeypatch.setattr(packing, "_add_part", failing)
        live.decide(X)
        with pytest.raises(StoreUnavailable):
            live.learn()
        assert live.version == 1  # learned it has
        assert len(live.database.read("SELECT 1 FROM snapshots")) == 1
        live.learn()
        assert len(live.database.read("SELECT 1 FROM snapshots")) == 2
