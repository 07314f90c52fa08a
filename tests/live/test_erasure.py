"""An event that was erased: as if it had never been."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from live.making import DIM, Clock, X, a_live, agent_of, an_agent, from_every_snapshot, from_origin, mixed, same_belief
from manyarms.errors import UnknownEvent
from manyarms.live import Live
from manyarms.live.propensities import UNKNOWN, PropensityWorker


def told(live: Live, clock: Clock, leave_out: int | None, make: Any) -> list[str]:
    """Eight events, decided from candidates of one so that nothing else depends on what was learned."""
    rng = np.random.default_rng(3)
    events = []
    for i in range(8):
        x, action, reward = rng.standard_normal(DIM), int(rng.integers(5)), float(rng.normal())
        if i != leave_out:
            events.append(live.decide(x, candidates=[action], id=f"e{i}").id)
            if i % 3:
                live.reward(f"e{i}", reward)
                live.reward(f"e{i}", 1.0, id="more")
        clock.now += 5.0
        if i % 2:
            live.learn()
            live.snapshot()
    return events


@pytest.mark.parametrize("make", [lambda: an_agent(5), lambda: mixed(5)])
@pytest.mark.parametrize("which", [0, 4, 7])
def test_the_state_is_that_of_a_log_without_it(make: Any, which: int) -> None:
    clocks = Clock(), Clock()
    settings: dict[str, Any] = {"default": 0.5, "wait": 12.0, "aggregate": "sum"}
    live, without = a_live(make(), clocks[0], **settings), a_live(make(), clocks[1], **settings)
    told(live, clocks[0], None, make)
    told(without, clocks[1], which, make)
    version = live.version
    live.erase(f"e{which}")
    assert live.version > version
    without.learn()
    same_belief(agent_of(live), agent_of(without))
    mine = live.state_bytes()
    assert from_origin(live) == mine and set(from_every_snapshot(live)) == {mine}
    counts = live.status()["learned"], live.status()["settled"]
    assert counts == (without.status()["learned"], without.status()["settled"])
    for other in live, without:
        other.close()


def test_nothing_of_it_is_left() -> None:
    clock = Clock()
    live = a_live(an_agent(5), clock, default=0.0, wait=10.0)
    told(live, clock, None, None)
    position = live.event("e3").position
    assert live.database.read("SELECT count(*) FROM snapshots WHERE upto >= ? AND origin = 0", (position,))[0][0]
    newest = live.database.read("SELECT max(upto) FROM snapshots")[0][0]
    live.erase("e3")
    kept = live.database.read("SELECT upto FROM snapshots WHERE origin = 0")
    assert all(upto < position or upto > newest for (upto,) in kept)
    record = live.event("e3")
    assert record.erased and record.question is None and record.actions == [] and record.unit is None
    assert record.details == {} and record.digest == b"" and record.draw == 0 and record.propensity is None
    assert live.database.read("SELECT * FROM rewards WHERE decision = ?", (position,)) == []
    for call in (
        lambda: live.reward("e3", 1.0),
        lambda: live.erase("e3"),
        lambda: live.decide(X, id="e3"),
        lambda: live.decide(X, id="e3", candidates=[1]),
    ):
        with pytest.raises(UnknownEvent, match="erased"):
            call()
    live.close()


def test_an_event_that_nobody_has_folded_yet() -> None:
    live = a_live()
    d, e = live.decide(X), live.decide(X)
    live.reward(d.id, 1.0)
    live.reward(e.id, 1.0)
    live.erase(d.id)
    reference = an_agent()
    reference.observe(X, e.action, 1.0)
    same_belief(agent_of(live), reference)
    assert from_origin(live) == live.state_bytes()
    live.close()


def test_others_find_out(tmp_path: Path) -> None:
    clock = Clock()
    live = a_live(an_agent(5), clock, tmp_path / "a.db", default=0.0, wait=10.0)
    other = a_live(None, clock, tmp_path / "a.db", learner=False)
    told(live, clock, None, None)
    assert other.state_bytes() == live.state_bytes()
    live.erase("e2")
    live.erase("e5")
    assert other.state_bytes() == live.state_bytes() == from_origin(live)
    other.close()
    live.close()


def test_propensities_of_what_had_learned_from_it_cannot_be_known() -> None:
    live = a_live()
    d = live.decide(X)
    before = live.decide(X)
    live.reward(d.id, 1.0)
    live.learn()
    after = live.decide(X)
    inline = live.decide(X, propensity=True)
    live.erase(d.id)
    later = live.decide(X)
    PropensityWorker(live.database).work()
    rows = dict((row[0], row[1:]) for row in live.database.read("SELECT * FROM propensities"))
    assert rows[live.event(after.id).position] == UNKNOWN
    for known in (before, later):
        assert rows[live.event(known.id).position][0] > 0
    assert live.event(inline.id).propensity == inline.propensity
    assert live.event(d.id).position not in rows
    live.close()
