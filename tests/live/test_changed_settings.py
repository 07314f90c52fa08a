"""Settings that change: every event counts by those that held when it was decided, and nothing is learned anew."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import manyarms as ma
from live.making import (
    DIM,
    Clock,
    X,
    a_live,
    agent_of,
    an_agent,
    contexts,
    database,
    from_every_snapshot,
    from_origin,
    mixed,
    same_belief,
)
from live.small_store import quick_disk as quick_disk
from manyarms.errors import Conflict, InvalidInput, LiveError
from manyarms.live import Live, Settings, exporting, log, packing
from manyarms.live.compaction import compact
from manyarms.live.replaying import replay
from manyarms.live.settings import SettingsInTime


def everywhere_the_same(live: Live) -> None:
    mine = live.state_bytes()
    assert from_origin(live) == mine and set(from_every_snapshot(live)) == {mine}
    found = replay(live.database)
    assert found.ok, str(found)


@dataclass
class Event:
    """What a model of a few lines knows of an event."""

    x: Any
    action: int
    at: float
    settings: Settings
    rewards: list[float] = field(default_factory=list)
    due: bool = False

    @property
    def reward(self) -> float | None:
        if not self.rewards:
            return self.settings.default if self.due else None
        return {"first": self.rewards[0], "sum": sum(self.rewards), "max": max(self.rewards)}[self.settings.aggregate]


def settle(events: list[Event], now: float) -> None:
    """Events settle in the order in which they were decided, each after its own waiting time."""
    for event in events:
        if event.at > now - event.settings.wait:
            return
        event.due = True


def belief_of(events: list[Event], agent: ma.Agent) -> ma.Agent:
    for event in events:
        if event.reward is not None:
            agent.observe(event.x, event.action, event.reward)
    return agent


def test_the_settings_of_all_times() -> None:
    first, second, third = (Settings(wait=float(wait)) for wait in (1, 2, 3))
    agreed = SettingsInTime(first).changed(10, second).changed(20, third)
    found = [agreed.of(position).wait for position in (1, 10, 11, 20, 21, 10**9)]
    assert found == [1.0, 1.0, 2.0, 2.0, 3.0, 3.0]


CHANGES: list[dict[str, Any]] = [
    {"default": 0.5}, {"default": None}, {"default": -1.0, "wait": 3.0}, {"wait": 25.0}, {"wait": 0.0}, {"aggregate": "sum"},
    {"aggregate": "max", "default": 2.0, "wait": 8.0},
]  # fmt: skip


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=12, deadline=None)
def test_the_belief_is_that_of_every_event_by_its_own_settings(seed: int) -> None:
    rng, clock = np.random.default_rng(seed), Clock()
    live = a_live(mixed(5), clock, default=0.25, wait=10.0, snapshot_every=4)
    events: list[Event] = []
    for step in range(60):
        kind = rng.random()
        if kind < 0.4:
            x = rng.standard_normal(DIM)
            d = live.decide(x, id=f"e{len(events)}")
            events.append(Event(x, d.action, clock.now, live.settings))
        elif kind < 0.7 and events:
            place, value = int(rng.integers(len(events))), float(rng.normal())
            live.reward(f"e{place}", value, id=str(step))
            events[place].rewards.append(value)
        elif kind < 0.8:
            told = CHANGES[rng.integers(len(CHANGES))]
            before = live.settings
            settle(events, clock.now)
            found = live.change_settings(**told)
            assert found == live.settings == Settings(**{**vars(before), **told})
        elif kind < 0.9:
            live.learn()
            settle(events, clock.now)
            if rng.random() < 0.3:
                live.snapshot()
        clock.now += float(rng.integers(4))
        if kind > 0.85:
            live.sync()
            settle(events, clock.now)
            same_belief(agent_of(live), belief_of(events, mixed(5)))
            assert live.status()["settled"] == sum(event.due for event in events)
    clock.now += 25.0
    live.sync()
    live.learn()
    settle(events, clock.now)
    assert all(event.due for event in events) and live.status()["settled"] == len(events)
    same_belief(agent_of(live), belief_of(events, mixed(5)))
    everywhere_the_same(live)
    live.close()


@pytest.mark.parametrize("order", list(itertools.permutations(["old", "new", "learn", "learn again"])))
@pytest.mark.parametrize("reopened", [False, True])
def test_late_rewards_take_the_place_of_the_right_default(
    order: tuple[str, ...], reopened: bool, tmp_path: Path
) -> None:
    clock = Clock()
    live = a_live(an_agent(), clock, tmp_path / "a.db", default=-1.0, wait=10.0)
    x, y = contexts(2)
    old = live.decide(x)
    live.change_settings(default=2.0, aggregate="sum", wait=5.0)
    new = live.decide(y)
    if reopened:
        live.snapshot()
        live.close()
        live = a_live(None, clock, tmp_path / "a.db")
    assert live.settings == Settings("sum", 2.0, 5.0)
    clock.now += 10.0
    live.learn()
    reference = an_agent()
    reference.observe(x, old.action, -1.0)
    reference.observe(y, new.action, 2.0)
    same_belief(agent_of(live), reference)
    for step in order:
        if step.startswith("learn"):
            live.learn()
        else:
            event = old if step == "old" else new
            live.reward(event.id, 0.5)
            live.reward(event.id, 0.25, id="more")
    live.sync()
    assert live.status()["learned"] == 2
    reference = an_agent()
    reference.observe(x, old.action, 0.5)  # the first
    reference.observe(y, new.action, 0.75)  # the sum
    same_belief(agent_of(live), reference)
    everywhere_the_same(live)
    live.close()


# ---- when events are due


def dues(live: Live) -> list[int]:
    return [due for (due,) in live.database.read("SELECT due FROM chunks ORDER BY version")]


def test_a_shorter_wait_does_not_overtake_those_before_it() -> None:
    clock = Clock()
    live = a_live(clock=clock, default=0.0, wait=100.0)
    live.decide(X)
    clock.now += 1.0
    live.change_settings(wait=1.0)
    live.decide(X)
    clock.now += 50.0
    live.learn()
    assert live.status()["settled"] == 0
    clock.now += 49.0
    live.learn()
    assert live.status()["settled"] == 2 and dues(live) == sorted(dues(live))
    live.close()


def test_a_longer_wait_is_that_of_later_ones_only() -> None:
    clock = Clock()
    live = a_live(clock=clock, default=0.0, wait=1.0)
    live.decide(X)
    live.change_settings(wait=100.0)
    live.change_settings(default=1.0)
    live.decide(X)
    clock.now += 1.0
    live.learn()
    assert live.status()["settled"] == 1
    clock.now += 98.0
    live.learn()
    assert live.status()["settled"] == 1
    clock.now += 1.0
    live.learn()
    assert live.status()["settled"] == 2
    live.close()


def test_what_was_decided_after_a_change_that_is_not_folded_waits_for_it() -> None:
    """A learner that does not know of a change yet settles nothing that may count by it."""
    clock = Clock()
    live = a_live(clock=clock, default=0.0, wait=1.0)
    before = live.decide(X)
    live._submit(log.add_operation("change_settings", {"wait": 50.0, "default": 3.0}))
    after = live.decide(X, id="after", active=False)
    clock.now += 10.0
    live.activate("after")  # by its own waiting time there is time enough, though this process does not know it yet
    live.learn()
    assert live.status()["settled"] == 1 and live.settings.wait == 50.0
    live.learn()
    assert live.status()["settled"] == 1
    clock.now += 40.0
    live.learn()
    assert live.status()["settled"] == 2
    reference = an_agent()
    reference.observe(X, before.action, 0.0)
    reference.observe(X, after.action, 3.0)
    same_belief(agent_of(live), reference)
    everywhere_the_same(live)
    live.close()


def test_activation_has_the_waiting_time_of_its_decision() -> None:
    clock = Clock()
    live = a_live(clock=clock, wait=10.0)
    live.decide(X, id="old", active=False)
    live.change_settings(wait=1000.0)
    live.decide(X, id="new", active=False)
    clock.now += 10.0
    with pytest.raises(Conflict):
        live.activate("old")
    live.activate("new")
    live.close()


# ---- what is refused


def test_what_is_refused_changes_nothing() -> None:
    live = a_live(default=0.5, reward_range=(0.0, 1.0))
    before, position = live.settings, live.database.read("SELECT position FROM counter")
    for wrong in (
        {}, {"default": 2.0}, {"default": "x"}, {"default": float("nan")}, {"wait": -1.0}, {"wait": None}, {"wait": True},
        {"aggregate": "mean"}, {"aggregate": None}, {"aggregate": "sum", "wait": float("inf")},
    ):  # fmt: skip
        with pytest.raises(InvalidInput):
            live.change_settings(**wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        live.change_settings(reward_range=(0.0, 2.0))  # type: ignore[call-arg]
    assert live.settings == before and live.database.read("SELECT position FROM counter") == position
    # by the log, too, whoever writes there
    with pytest.raises(LiveError, match="reward_range"):
        live._operate("change_settings", {"reward_range": [0.0, 2.0]})
    assert live.settings == before and live.status()["operations_refused"] == 1
    live.close()
    with pytest.raises(LiveError):
        live.change_settings(wait=1.0)


def test_a_default_that_an_agent_could_never_learn_is_refused() -> None:
    live = a_live(ma.agents.GLMTS(ma.ActionPrior(6, np.zeros(DIM), np.eye(DIM)), seed=0), default=0.0)
    with pytest.raises(InvalidInput, match="default"):
        live.change_settings(default=0.5)
    with pytest.raises(LiveError, match="default"):  # an agent that has joined meanwhile
        live._operate("change_settings", {"default": 0.5})
    assert live.settings.default == 0.0
    live.change_settings(default=1.0)
    live.close()


def test_the_same_again_is_no_new_period() -> None:
    live = a_live(default=0.5, wait=7.0)
    assert live.change_settings(default=0.5) == live.change_settings(wait=7.0) == live.settings
    assert packing.unpack_state(live.state_bytes()).former == ()
    live.close()


# ---- snapshots, erasure, compaction, export, monitors


def test_settings_given_when_a_store_is_opened_again_change_nothing(tmp_path: Path) -> None:
    with a_live(path=tmp_path / "a.db", default=0.0) as live:
        live.change_settings(default=1.0)
    with ma.live.open(database(tmp_path / "a.db"), default=0.0, wait=1.0, background=False) as live:
        assert live.settings == Settings(default=1.0)


def test_erased_and_compacted() -> None:
    clock = Clock()
    live = a_live(an_agent(5), clock, default=0.5, wait=10.0)
    old = live.decide(X, candidates=[1])
    live.change_settings(default=1.0)
    live.decide(X, candidates=[2], id="gone")
    kept = live.decide(X, candidates=[3])
    live.learn()
    live.snapshot()
    live.erase("gone")
    clock.now += 10.0
    live.learn()
    clock.now += 1.0
    live.reward(old.id, 3.0)
    live.learn()
    mine = live.state_bytes()
    assert compact(live.database, 0.5).decisions >= 1
    assert live.state_bytes() == mine
    live.sync()
    reference = an_agent(5)
    reference.observe(X, 1, 3.0)
    reference.observe(X, 3, 1.0)
    same_belief(agent_of(live), reference)
    assert kept.action == 3
    everywhere_the_same(live)
    live.close()


def test_an_export_has_the_rewards_by_the_settings_of_each(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    clock = Clock()
    live = a_live(an_agent(kind="epsilon"), clock, default=-1.0, wait=10.0)
    told = []
    for change in ({}, {"default": 2.0, "aggregate": "sum"}, {"default": None}, {"wait": 1000.0, "default": 0.0}):
        if change:
            live.change_settings(**change)  # type: ignore[arg-type]
        for _ in range(2):
            told.append(live.decide(X).id)
        live.reward(told[-1], 0.5)
        live.reward(told[-1], 0.25, id="more")
    clock.now += 10.0
    live._submit(log.add_operation("change_settings", {"wait": 0.0}))
    live.decide(X)  # nobody knows yet how it counts
    found = exporting.export(live.database, tmp_path / "log.parquet", unsettled=True)
    rows = ma.open_log(tmp_path / "log.parquet").collect()
    assert rows.rewards.tolist() == [-1.0, 0.5, 2.0, 0.75, 0.75, 0.75]
    assert rows.event_ids is not None and rows.event_ids.tolist() == [told[i] for i in (0, 1, 2, 3, 5, 7)]
    assert found.left_out[exporting.NO_REWARD] == 1 and found.left_out[exporting.NOT_DUE] == 2
    live.close()


def test_monitors_go_on_and_take_each_event_by_its_own_settings() -> None:
    clock = Clock()
    live = a_live(an_agent(kind="epsilon"), clock, default=0.0, wait=1.0, reward_range=(0.0, 1.0))
    for change in ({}, {"default": 1.0}, {"default": None}):
        if change:
            live.change_settings(**change)  # type: ignore[arg-type]
        for _ in range(4):
            live.decide(X)
        clock.now += 1.0
        live.learn()
    report: Any = live.report().body
    assert report["events"] == 12
    # without a default those with a reward would stand for all: such events have none
    assert report["values"]["agent"]["events"] == 8 and report["values"]["agent"]["mean"] == 0.5
    assert report["skipped"]["no_reward"] == 4 and "no default reward" in report["unusable"]
    everywhere_the_same(live)
    live.close()


def test_an_arm_that_joins_learns_by_the_settings_of_each_event() -> None:
    clock = Clock()
    live = a_live(an_agent(5), clock, default=0.5, wait=5.0)
    live.add_arm("late", an_agent(5, seed=3))
    x, y = contexts(2)
    live.decide(x, candidates=[0])
    live.change_settings(default=-2.0)
    live.decide(y, candidates=[1])
    clock.now += 5.0
    live.learn()
    reference = an_agent(5)
    reference.observe(x, 0, 0.5)
    reference.observe(y, 1, -2.0)
    for name in ("agent", "late"):
        same_belief(agent_of(live, name), reference)
    live.close()
