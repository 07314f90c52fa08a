"""Propensities computed behind the decisions: the same numbers, whoever computes them and whenever."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from live.making import DIM, Clock, X, a_live, an_agent, mixed
from manyarms.errors import InvalidInput
from manyarms.live import Live, lease, propensities, snapshots
from manyarms.live.propensities import PropensityWorker
from manyarms.policies import UniformPolicy


def computed(live: Live) -> dict[int, tuple[Any, ...]]:
    return {row[0]: row[1:] for row in live.database.read("SELECT * FROM propensities ORDER BY decision")}


def play(live: Live, inline: bool = False) -> list[str]:
    events = []
    rng = np.random.default_rng(4)
    for i in range(4):
        for j, x in enumerate(rng.standard_normal((3, DIM))):
            options: dict[str, Any] = [{}, {"k": 2, "exclude": [1]}, {"candidates": [0, 2, 3], "unit": "u"}][j]
            events.append(live.decide(x, id=f"e{i}{j}", propensity=inline, **options).id)
            live.reward(events[-1], float(x[0]))
        live.learn()
    return events


@pytest.mark.parametrize("make", [lambda: an_agent(5), lambda: mixed(5)])
def test_inline_and_behind_are_the_same_numbers(make: Any, tmp_path: Path) -> None:
    clock = Clock()
    now = a_live(make(), clock, tmp_path / "now.db")
    events = play(now, inline=True)
    behind = a_live(make(), clock, tmp_path / "behind.db")
    play(behind)
    assert PropensityWorker(behind.database).work(share=False) == len(events)
    assert PropensityWorker(behind.database).work(share=False) == 0
    assert PropensityWorker(now.database).work(share=False) == 0
    found = computed(behind)
    for event in events:
        a, b = now.event(event), behind.event(event)
        assert (a.actions, a.draw) == (b.actions, b.draw)
        propensity, given, inclusion, error, draws = found[b.position]
        assert (propensity, given, inclusion) == (a.propensity, a.arm_propensity, a.inclusion)
        assert propensity > 0 and inclusion >= propensity and error >= 0 and draws > 0
        assert a.propensity_kind == "estimated"
    # after reopening, from a snapshot half way, all over again
    now.close()
    behind.database.do(lambda tx: tx.execute("DELETE FROM propensities"))
    behind.database.do(lambda tx: tx.execute("DELETE FROM meta WHERE name = 'propensities_upto'"))
    snapshots.write(behind.database, snapshots.state_of(behind.database, 2))
    behind.close()
    with a_live(None, clock, tmp_path / "behind.db") as again:
        PropensityWorker(again.database).work(share=False)
        assert computed(again) == found


def test_exact_ones_are_there_at_once() -> None:
    live = a_live(an_agent(5, kind="epsilon"))
    live.add_arm("even", UniformPolicy(5))
    live.deploy({"agent": 0.5, "even": 0.5})
    d = live.decide(X)
    assert d.propensity is not None and d.propensity_kind == "exact" == live.event(d.id).propensity_kind
    assert PropensityWorker(live.database).work(share=False) == 0 and computed(live) == {}
    live.close()


# ---- a part of the time, and no more once it is closed


class Work:
    """Computing that takes as long as the test says, by a clock of the test's; what the worker pauses is told."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, worker: PropensityWorker, seconds: float) -> None:
        self.now = self.worked = self.paused = 0.0
        self.pauses: list[float] = []
        original = propensities._computed

        def computed(*arguments: Any) -> Any:
            self.now += seconds
            self.worked += seconds
            return original(*arguments)

        def pause(seconds: float) -> None:
            self.now += seconds
            self.paused += seconds
            self.pauses.append(seconds)

        monkeypatch.setattr(propensities, "_computed", computed)
        monkeypatch.setattr(propensities.time, "monotonic", lambda: self.now)
        monkeypatch.setattr(worker._stopped, "wait", pause)


@pytest.mark.parametrize("part", [1.0, 0.5, 0.1, 0.001])
def test_it_takes_its_part_of_the_time(part: float, monkeypatch: pytest.MonkeyPatch) -> None:
    live = a_live(mixed(5))
    events = play(live)
    worker = PropensityWorker(live.database, part)
    work = Work(monkeypatch, worker, 0.02)
    assert worker.work(share=False) == len(events) == len(computed(live))
    assert work.worked / (work.worked + work.paused) == pytest.approx(part)
    # after each: nobody waits for several of them
    assert max(work.pauses, default=0.0) == pytest.approx(0.02 * (1 / part - 1))
    live.close()


def test_the_lease_is_kept_while_it_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow it is made, no other process begins with the same decisions."""
    clock = Clock()
    live = a_live(mixed(5), clock)
    events = play(live)
    worker, other = PropensityWorker(live.database, 0.01), PropensityWorker(live.database)
    work = Work(monkeypatch, worker, 0.02)  # 2 s for each, more than a lease for all
    other._sighting = lease.Sighting(lambda: work.now)  # this machine may be asleep for longer than a lease
    taken: list[int] = []
    original = propensities._computed

    def computed_here(*arguments: Any) -> Any:
        clock.now = 1000.0 + work.now
        taken.append(other.work())
        return original(*arguments)

    monkeypatch.setattr(propensities, "_computed", computed_here)
    assert worker.work() == len(events) and set(taken) == {0}
    assert work.now > 2 * lease.SECONDS
    live.close()


def test_it_stops_at_once_when_the_store_is_closed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """In the midst of a pause of a hundred seconds, and with much still to do; what was computed is kept."""
    at_it, original = threading.Event(), propensities._computed

    def computed_here(*arguments: Any) -> Any:
        time.sleep(0.1)
        at_it.set()
        return original(*arguments)

    monkeypatch.setattr(propensities, "_computed", computed_here)
    with a_live(mixed(5), path=tmp_path / "a.db") as live:
        events = play(live)
    live = a_live(None, path=tmp_path / "a.db", background=True, fold_every=0.01, propensity_share=0.001)
    assert at_it.wait(60)
    closing = threading.Thread(target=live.close)
    closing.start()
    closing.join(60)
    assert not closing.is_alive()
    with a_live(None, path=tmp_path / "a.db") as again:
        assert 0 < len(computed(again)) < len(events)
        monkeypatch.undo()
        PropensityWorker(again.database).work(share=False)
        assert len(computed(again)) == len(events)


def test_stopped_it_computes_nothing() -> None:
    live = a_live(mixed(5))
    play(live)
    worker = PropensityWorker(live.database)
    worker.stop()
    assert worker.work() == 0 and computed(live) == {}
    live.close()


@pytest.mark.parametrize("part", [0.0, -1.0, 1.5, 1e-9, None, "half", True, float("nan")])
def test_parts_that_are_none(part: Any) -> None:
    with pytest.raises(InvalidInput, match="propensity_share"):
        a_live(propensity_share=part)
