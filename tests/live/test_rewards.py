"""Rewards that come late, out of order, twice, in parts, or not at all."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import manyarms as ma
from live.making import DIM, Clock, X, a_live, agent_of, an_agent, from_origin, mixed, same_belief
from manyarms.errors import Conflict, InvalidInput, UnknownEvent
from manyarms.live import Live


def taught(rows: list[tuple[np.ndarray, int, float]], agent: ma.Agent | None = None) -> ma.Agent:
    """An agent that was told these rows, one by one."""
    agent = an_agent() if agent is None else agent
    for x, action, reward in rows:
        agent.observe(x, action, reward)
    return agent


def contexts(number: int) -> np.ndarray:
    return np.random.default_rng(5).standard_normal((number, DIM))


@pytest.mark.parametrize("make", [an_agent, mixed])
@pytest.mark.parametrize("learn_every", [1, 3, 100])
def test_order_and_chunks_do_not_matter(make: Any, learn_every: int) -> None:
    live = a_live(make())
    rng = np.random.default_rng(1)
    decided = [(x, live.decide(x)) for x in contexts(9)]
    rows = []
    for step, place in enumerate(rng.permutation(9)):
        x, d = decided[place]
        reward = float(rng.normal())
        live.reward(d.id, reward)
        rows.append((x, d.action, reward))
        if step % learn_every == 0:
            live.learn()
    live.sync()
    assert live.status()["learned"] == 9
    same_belief(agent_of(live), taught(rows, make()))
    live.close()


def test_told_twice_counted_once_and_the_first_value_stands() -> None:
    live = a_live()
    d = live.decide(X)
    for _ in range(3):
        live.reward(d.id, 1.0)
        live.learn()
    with pytest.raises(Conflict, match="the first stands"):
        live.reward(d.id, 2.0)
    live.sync()
    same_belief(agent_of(live), taught([(X, d.action, 1.0)]))
    assert live.status()["learned"] == 1 and live.status()["replaced"] == 0
    live.reward(d.id, 1.0)
    version = live.version
    assert live.learn() == version  # nothing new was written
    live.close()


@pytest.mark.parametrize("aggregate", ["first", "sum", "max"])
@pytest.mark.parametrize("learn_after", list(itertools.product([False, True], repeat=2)))
def test_several_rewards_of_one_event(aggregate: Any, learn_after: tuple[bool, bool]) -> None:
    live = a_live(aggregate=aggregate)
    d = live.decide(X)
    values = [0.5, 2.0, -1.0]
    for place, value in enumerate(values):
        live.reward(d.id, value, id=f"part {place}")
        live.reward(d.id, value, id=f"part {place}")
        if place < 2 and learn_after[place]:
            live.learn()
    with pytest.raises(Conflict):
        live.reward(d.id, 7.0, id="part 1")
    live.sync()
    expected = {"first": 0.5, "sum": math.fsum(values), "max": 2.0}[aggregate]
    same_belief(agent_of(live), taught([(X, d.action, expected)]))
    assert live.status()["learned"] == 1
    live.close()


def test_the_default_comes_when_the_wait_is_over_and_never_earlier() -> None:
    clock = Clock()
    live = a_live(clock=clock, default=-0.5, wait=10.0)
    d = live.decide(X)
    clock.now += 10.0 - 2.0**-20
    live.learn()
    assert live.status()["learned"] == 0
    clock.now = 1010.0
    live.learn()
    assert live.status()["learned"] == 1 and live.status()["settled"] == 1
    same_belief(agent_of(live), taught([(X, d.action, -0.5)]))
    assert from_origin(live) == live.state_bytes()
    live.close()


def test_without_a_default_nothing_is_learned_but_events_settle() -> None:
    clock = Clock()
    live = a_live(clock=clock, wait=10.0)
    live.decide(X)
    clock.now += 10.0
    live.learn()
    assert live.status()["learned"] == 0 and live.status()["settled"] == 1
    version = live.version
    clock.now += 1000.0
    assert live.learn() == version
    live.close()


@pytest.mark.parametrize("make", [an_agent, mixed])
@pytest.mark.parametrize("aggregate", ["first", "sum", "max"])
def test_a_reward_after_the_default_takes_its_place(make: Any, aggregate: Any) -> None:
    clock = Clock()
    live = a_live(make(), clock, default=-0.5, wait=10.0, aggregate=aggregate)
    xs = contexts(4)
    decided = [live.decide(x) for x in xs]
    clock.now += 20.0
    live.learn()
    live.reward(decided[1].id, -3.0)  # below the default: nothing of it is left, under max too
    live.reward(decided[2].id, 2.0)
    live.learn()
    rewards = [-0.5, -3.0, 2.0, -0.5]
    rows = [(x, d.action, r) for x, d, r in zip(xs, decided, rewards, strict=True)]
    same_belief(agent_of(live), taught(rows, make()))
    assert live.status()["learned"] == 4 and live.status()["replaced"] == 2
    assert from_origin(live) == live.state_bytes()
    live.close()


def test_a_reward_in_the_same_chunk_as_the_end_of_the_wait_forestalls_the_default() -> None:
    clock = Clock()
    live = a_live(clock=clock, default=-0.5, wait=10.0)
    d = live.decide(X)
    clock.now += 20.0
    live.reward(d.id, 1.0)
    live.learn()
    assert live.status()["learned"] == 1 and live.status()["replaced"] == 0
    same_belief(agent_of(live), taught([(X, d.action, 1.0)]))
    live.close()


def test_without_any_wait_the_default_is_there_at_once() -> None:
    live = a_live(default=0.0, wait=0.0)
    d, e = live.decide(X), live.decide(X)
    live.reward(e.id, 1.0)
    live.learn()
    same_belief(agent_of(live), taught([(X, d.action, 0.0), (X, e.action, 1.0)]))
    live.close()


def test_a_reward_equal_to_the_default_changes_nothing() -> None:
    clock = Clock()
    live = a_live(clock=clock, default=0.0, wait=1.0)
    d = live.decide(X)
    clock.now += 1.0
    live.learn()
    live.reward(d.id, 0.0)
    live.learn()
    assert live.status()["replaced"] == 0
    same_belief(agent_of(live), taught([(X, d.action, 0.0)]))
    live.close()


def test_a_clock_that_goes_back_neither_hurries_nor_stops_the_wait() -> None:
    clock = Clock()
    live = a_live(clock=clock, default=0.0, wait=10.0)
    live.decide(X)
    clock.now = 500.0
    live.decide(X)  # logged at 1000, too
    live.learn()
    clock.now = 1009.0
    live.learn()
    assert live.status()["learned"] == 0
    clock.now = 1010.0
    live.learn()
    assert live.status()["learned"] == 2
    live.close()


def test_an_action_retired_meanwhile_still_learns() -> None:
    live = a_live()
    d = live.decide(X)
    live.retire(d.action)
    live.reward(d.id, 1.0)
    live.sync()
    reference = taught([(X, d.action, 1.0)])
    reference.retire(d.action)
    same_belief(agent_of(live), reference)
    assert all(live.decide(x).action != d.action for x in contexts(20))
    live.close()


def test_one_of_several_actions_is_rewarded() -> None:
    clock = Clock()
    live = a_live(clock=clock, default=0.0, wait=10.0)
    d = live.decide(X, k=3)
    assert len(set(d.actions)) == 3
    live.reward(d.id, 1.0, action=d.actions[2])
    live.reward(d.id, 0.5)  # the first
    other = next(a for a in range(6) if a not in d.actions)
    with pytest.raises(InvalidInput, match="action"):
        live.reward(d.id, 1.0, action=other)
    clock.now += 10.0
    live.learn()
    rows = [(X, d.actions[2], 1.0), (X, d.actions[0], 0.5), (X, d.actions[1], 0.0)]
    same_belief(agent_of(live), taught(rows))
    live.close()


def test_every_action_has_the_context_it_was_taken_in() -> None:
    live = a_live()
    Z = contexts(3)
    d = live.decide(action_contexts=Z, candidates=[5, 1, 3], k=2)
    live.reward(d.id, 1.0, action=d.actions[1])
    everybody = contexts(6)
    e = live.decide(action_contexts=everybody)
    live.reward(e.id, -1.0)
    live.sync()
    rows = [(Z[[5, 1, 3].index(d.actions[1])], d.actions[1], 1.0), (everybody[e.action], e.action, -1.0)]
    same_belief(agent_of(live), taught(rows))
    live.close()


@pytest.mark.parametrize("value", [math.nan, math.inf, 1.5, -0.1, "1", None, [1.0], 10**400, 1j])
def test_values_that_are_no_rewards(value: Any) -> None:
    live = a_live(reward_range=(0.0, 1.0))
    d = live.decide(X)
    with pytest.raises(InvalidInput, match="value"):
        live.reward(d.id, value)
    live.reward(d.id, 1.0)
    live.close()


def test_events_that_nobody_knows() -> None:
    live = a_live()
    with pytest.raises(UnknownEvent):
        live.reward("never decided", 1.0)
    with pytest.raises(UnknownEvent):
        live.event("never decided")
    with pytest.raises(UnknownEvent):
        live.erase("never decided")
    assert live.learn() == 0
    live.close()


def test_an_arm_learns_what_is_decided_after_it_joined() -> None:
    clock = Clock()
    live = a_live(clock=clock, default=0.0, wait=10.0)
    before = live.decide(X)
    live.add_arm("late", an_agent(seed=3))
    after = live.decide(X)
    live.reward(before.id, 1.0)
    live.reward(after.id, 2.0)
    live.sync()
    same_belief(agent_of(live), taught([(X, before.action, 1.0), (X, after.action, 2.0)]))
    same_belief(agent_of(live, "late"), taught([(X, after.action, 2.0)]))
    clock.now += 20.0
    third = live.decide(X)
    clock.now += 20.0
    live.learn()
    live.reward(third.id, 1.0)
    live.sync()
    same_belief(agent_of(live, "late"), taught([(X, after.action, 2.0), (X, third.action, 1.0)]))
    assert from_origin(live) == live.state_bytes()
    live.close()


def test_a_store_keeps_its_settings(tmp_path: Path) -> None:
    with a_live(path=tmp_path / "a.db", default=-1.0, aggregate="sum", wait=7.0, reward_range=(-1, 2)) as live:
        kept = live.settings
    with ma.live.open(tmp_path / "a.db", background=False) as live:
        assert live.settings == kept == ma.live.Settings("sum", -1.0, 7.0, (-1.0, 2.0))


def test_a_default_that_the_agent_could_never_learn_is_refused() -> None:
    clicks = ma.agents.GLMTS(ma.ActionPrior(6, np.zeros(DIM), np.eye(DIM)), seed=0)
    with pytest.raises(InvalidInput, match="default"):
        a_live(clicks, default=0.5)
    live = a_live(default=0.5)
    with pytest.raises(InvalidInput, match="default"):
        live.add_arm("clicks", clicks)
    live.close()


def test_a_reward_that_an_agent_cannot_learn_is_counted() -> None:
    live: Live = a_live(ma.agents.GLMTS(ma.ActionPrior(6, np.zeros(DIM), np.eye(DIM)), seed=0))
    d, e = live.decide(X), live.decide(X)
    live.reward(d.id, 0.5)
    live.reward(e.id, 1.0)
    live.sync()
    assert live.status()["rows_refused"] == 1
    assert agent_of(live).played == 1
    live.close()
