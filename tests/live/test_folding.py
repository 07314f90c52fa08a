"""The state is a fold of the log: whoever folds it, from wherever, has the same bits."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import manyarms as ma
from live.making import (
    DIM,
    Clock,
    X,
    a_live,
    agent_of,
    an_agent,
    from_every_snapshot,
    from_origin,
    mixed,
    same_belief,
)
from manyarms.agents import Agent
from manyarms.errors import Conflict, LiveError, StorageError, UnknownEvent
from manyarms.live import Live, packing, snapshots
from manyarms.policies import UniformPolicy


def clicks() -> Agent:
    return ma.agents.GLMTS(ma.ActionPrior(5, np.zeros(DIM), np.eye(DIM)), seed=0)


def busy(live: Live, clock: Clock, rounds: int = 6, seed: int = 0) -> None:
    """Decisions, late rewards, defaults that are replaced, operations and snapshots."""
    rng = np.random.default_rng(seed)
    told: list[str] = []
    for i in range(rounds):
        for x in rng.standard_normal((4, DIM)):
            told.append(live.decide(x, unit=str(rng.integers(3)) if rng.random() < 0.5 else None).id)
        for event in rng.choice(told, 3, replace=False):
            live.reward(event, float(rng.integers(2)), id=str(rng.integers(10**9)))
        clock.now += 7.0
        if i == 1:
            live.retire([1])
            live.cap(2, window=50.0)
        if i == 3:
            live.add_arm("even", UniformPolicy(5))
            live.deploy({"agent": 0.7, "even": 0.3})
        live.learn()
        if i % 2:
            live.snapshot()


@pytest.mark.parametrize("make", [lambda: an_agent(5), lambda: mixed(5), clicks, lambda: an_agent(5, kind="epsilon")])
def test_everybody_has_the_same_bits(make: Any, tmp_path: Path) -> None:
    clock = Clock()
    live = a_live(make(), clock, tmp_path / "a.db", default=0.0, wait=10.0, aggregate="max")
    other = a_live(None, clock, tmp_path / "a.db", learner=False)
    busy(live, clock)
    mine = live.state_bytes()
    assert live.version > 6 and live.status()["replaced"] > 0
    assert from_origin(live) == mine
    snapshots_found = from_every_snapshot(live)
    assert len(snapshots_found) == snapshots.KEEP + 1 and set(snapshots_found) == {mine}
    assert other.version == 0
    assert other.state_bytes() == mine and other.version == live.version
    for version in range(live.version + 1):
        at = packing.pack_state(snapshots.state_of(live.database, version))
        assert at == packing.pack_state(snapshots.from_origin(live.database, version))
    live.close()
    other.close()
    with a_live(None, clock, tmp_path / "a.db") as again:
        assert again.state_bytes() == mine
        again.reward(again.decide(X).id, 1.0)
        again.learn()
        assert from_origin(again) == again.state_bytes()


def damage(live: Live, which: str) -> None:
    """Spoil the parts of some snapshots."""
    sql = f"UPDATE snapshot_parts SET body = ? WHERE writing IN ({which})"
    live.database.do(lambda tx: tx.execute(sql, (b"rubbish",)))


def test_an_arm_that_cannot_be_read_is_no_refusal(tmp_path: Path) -> None:
    clock = Clock()
    live = a_live(an_agent(5), clock, tmp_path / "a.db", default=0.0, wait=10.0, aggregate="max")
    busy(live, clock)
    damage(live, "SELECT writing FROM snapshot_parts EXCEPT SELECT writing FROM snapshots")
    with pytest.raises(StorageError):
        from_origin(live)
    live.close()


def test_a_snapshot_that_is_damaged_is_passed_over(tmp_path: Path) -> None:
    clock = Clock()
    live = a_live(an_agent(5), clock, tmp_path / "a.db", default=0.0, wait=10.0, aggregate="max")
    busy(live, clock)
    mine = live.state_bytes()
    damage(live, "SELECT writing FROM snapshots WHERE origin = 0")
    live.close()
    with a_live(None, clock, tmp_path / "a.db") as again:
        assert again.state_bytes() == mine


@given(cuts=st.sets(st.integers(0, 29)), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=15, deadline=None)
def test_chunks_change_beliefs_by_rounding_only(cuts: set[int], seed: int) -> None:
    clock = Clock()
    lives = [a_live(mixed(5), clock, default=0.5, wait=3.0, aggregate="sum") for _ in range(2)]
    rng = np.random.default_rng(seed)
    told: list[str] = []
    for step in range(30):
        if rng.random() < 0.5 or not told:
            x, action = rng.standard_normal(DIM), int(rng.integers(5))
            told.append(f"e{step}")
            for live in lives:
                live.decide(x, candidates=[action], id=told[-1])
        else:
            event, reward = told[rng.integers(len(told))], float(rng.normal())
            for live in lives:
                live.reward(event, reward, id=str(step))
        if step in cuts:
            lives[0].learn()
        clock.now += 1.0
    clock.now += 3.0
    for live in lives:
        live.learn()
    same_belief(agent_of(lives[0]), agent_of(lives[1]))
    for live in lives:
        live.close()


# ---- any sequence of calls, beside a model of a few lines


class AnySequence(RuleBasedStateMachine):
    """A live store, and what it should be: events with rewards, which of them are hidden, which actions are retired, and an agent
    taught anew."""

    WAIT = 10.0

    @initialize(aggregate=st.sampled_from(["first", "sum", "max"]), default=st.sampled_from([None, 0.5]))
    def begin(self, aggregate: Any, default: float | None) -> None:
        self.clock = Clock()
        self.aggregate, self.default = aggregate, default
        self.folder = tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
        self.path = Path(self.folder.name) / "a.db"
        self.live = a_live(
            mixed(5), self.clock, self.path, default=default, wait=self.WAIT, aggregate=aggregate, snapshot_every=3
        )
        self.events: dict[str, tuple[np.ndarray, int, float]] = {}
        self.rewards: dict[str, dict[str, float]] = {}
        self.gone: set[str] = set()
        self.hidden: set[str] = set()
        self.deferred: set[str] = set()
        self.retired: set[int] = set()
        self.folded_at = self.clock.now
        self.seen = 0

    @rule(x=st.tuples(*[st.integers(-2, 2)] * DIM), name=st.integers(0, 30), active=st.booleans())
    def decide(self, x: tuple[int, ...], name: int, active: bool) -> None:
        event = f"e{name}"
        if event in self.gone:
            with pytest.raises(UnknownEvent):
                self.live.decide(x, id=event, active=active)
        elif event in self.events:
            if np.array_equal(self.events[event][0], x) and active is (event not in self.deferred):
                again = self.live.decide(x, id=event, active=active)
                assert (again.action, again.active) == (self.events[event][1], event not in self.hidden)
            else:
                with pytest.raises(Conflict):
                    self.live.decide(x, id=event, active=active)
        else:
            d = self.live.decide(x, id=event, active=active)
            assert d.action not in self.retired and d.active is active
            self.events[event] = (np.array(x, dtype=float), d.action, self.clock.now)
            self.rewards[event] = {}
            if not active:
                self.hidden.add(event)
                self.deferred.add(event)

    @precondition(lambda self: self.hidden)
    @rule(data=st.data())
    def activate(self, data: st.DataObject) -> None:
        event = data.draw(st.sampled_from(sorted(self.hidden)))
        if self.clock.now - self.WAIT >= self.events[event][2]:
            with pytest.raises(Conflict):
                self.live.activate(event)
        else:
            self.live.activate(event)
            self.live.activate(event)
            self.hidden.remove(event)

    @rule(name=st.integers(0, 30), id=st.sampled_from(["", "a", "b"]), value=st.sampled_from([-1.0, 0.5, 2.0]))
    def reward(self, name: int, id: str, value: float) -> None:
        event = f"e{name}"
        if event not in self.events:
            with pytest.raises(UnknownEvent):
                self.live.reward(event, value, id=id)
        elif self.rewards[event].get(id, value) != value:
            with pytest.raises(Conflict):
                self.live.reward(event, value, id=id)
        else:
            self.live.reward(event, value, id=id)
            self.rewards[event][id] = value

    @rule(action=st.integers(0, 4))
    def turn(self, action: int) -> None:
        if action in self.retired:
            self.live.reinstate(action)
            self.retired.remove(action)
        elif len(self.retired) < 4:
            self.live.retire(action)
            self.retired.add(action)
        self.folded_at = self.clock.now

    @rule()
    def refused(self) -> None:
        with pytest.raises(LiveError):
            self.live.retire(99)
        self.folded_at = self.clock.now

    @rule(seconds=st.sampled_from([1.0, 10.0]))
    def wait(self, seconds: float) -> None:
        self.clock.now += seconds

    @rule()
    def learn(self) -> None:
        self.live.learn()
        self.folded_at = self.clock.now

    @rule()
    def snapshot(self) -> None:
        self.live.snapshot()

    @precondition(lambda self: self.events)
    @rule(data=st.data())
    def erase(self, data: st.DataObject) -> None:
        event = data.draw(st.sampled_from(sorted(self.events)))
        self.live.erase(event)
        self.gone.add(event)
        self.hidden.discard(event)
        del self.events[event], self.rewards[event]
        self.folded_at = self.clock.now

    @rule()
    def open_again(self) -> None:
        self.live.close()
        self.live = a_live(None, self.clock, self.path, snapshot_every=3)

    @invariant()
    def versions_never_fall(self) -> None:
        assert self.live.version >= self.seen
        self.seen = self.live.version

    def teardown(self) -> None:
        if not hasattr(self, "live"):
            return
        self.learn()
        reference = mixed(5)
        for event, (x, action, at) in self.events.items():
            came = list(self.rewards[event].values())
            if event in self.hidden:
                continue
            if came:
                reward = {"first": came[0], "sum": sum(came), "max": max(came)}[self.aggregate]
            elif self.default is not None and at + self.WAIT <= self.folded_at:
                reward = self.default
            else:
                continue
            reference.observe(x, action, reward)
        if self.retired:
            reference.retire(sorted(self.retired))
        same_belief(agent_of(self.live), reference)
        mine = self.live.state_bytes()
        assert from_origin(self.live) == mine
        assert set(from_every_snapshot(self.live)) == {mine}
        self.live.close()
        self.folder.cleanup()


AnySequence.TestCase.settings = settings(max_examples=12, stateful_step_count=20, deadline=None)
TestAnySequence = AnySequence.TestCase
