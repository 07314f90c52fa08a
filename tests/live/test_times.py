"""Rewards that drift by the clock, live: the time by which something was decided is the one that is recorded and learned with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import manyarms as ma
from live.making import Clock, a_live, agent_of, from_every_snapshot, from_origin
from live.small_store import quick_disk  # noqa: F401
from manyarms.agents import Agent
from manyarms.live import Live
from manyarms.live.propensities import PropensityWorker
from manyarms.live.records import DECIDED_AT
from manyarms.live.stores.steady_clock import SteadyClock
from manyarms.live.uploads import Uploaded

HOUR = 3600.0
K = 5


def wandering(decision: Any = None, **drift: Any) -> Agent:
    prior = ma.HierarchicalPrior(K, np.zeros(2), np.eye(2), np.eye(2))
    settings = ma.Drift(**({"half_life": HOUR, "clock": "time"} | drift))
    if decision is None:
        return ma.HierTS(prior, ma.Linear(0.5), drift=settings, seed=0)
    return Agent(ma.beliefs.belief_of(prior, ma.Linear(0.5), drift=settings), decision, seed=0)


def play(live: Live, clock: Clock, events: int, seed: int = 0, learn_every: int = 7) -> list[str]:
    """Decisions every ten minutes or so; rewards for two in three, some of them an hour later."""
    rng, ids, late = np.random.default_rng(seed), [], []
    for number in range(events):
        clock.now += float(rng.exponential(600.0))
        made = live.decide(rng.normal(size=2), id=f"{seed}-{number}")
        clock.now += 0.125
        ids.append(made.id)
        if number % 3 == 0:
            live.reward(made.id, float(rng.normal()))
        elif number % 3 == 1:
            late.append(made.id)
        if len(late) > 5:
            live.reward(late.pop(0), float(rng.normal()))
        if number % learn_every == learn_every - 1:
            live.learn()
    live.learn()
    return ids


@pytest.mark.parametrize("default", [None, 0.0])
@pytest.mark.parametrize("decision", [None, ma.agents.EpsilonGreedy(0.2)])
def test_a_store_is_replayed_to_the_last_bit(tmp_path: Path, default: float | None, decision: Any) -> None:
    clock = Clock(1.7e9)
    live = a_live(wandering(decision), clock, tmp_path / "live.db", default=default, wait=1800.0, snapshot_every=4)
    play(live, clock, 100)
    state = live.state_bytes()
    live.close()
    clock.now += 5 * HOUR
    with a_live(clock=clock, path=tmp_path / "live.db") as again:
        assert again.state_bytes() == state == from_origin(again)
        assert all(one == state for one in from_every_snapshot(again))
        ids = play(again, clock, 40, seed=1)
        if decision is None:
            assert PropensityWorker(again.database).work() == 140
        found = ma.live.replay(again.database)
        assert found.ok and found.decisions == 140 and (decision is not None or found.propensities > 30)
        assert again.why(ids[-1]).exact and again.why(ids[0]).explanation is not None


def test_what_is_decided_ages_with_the_clock_alone() -> None:
    """Nothing is learned in between: with the hours the variance of a score goes back to what it was before any row."""
    clock = Clock(1.7e9)
    with a_live(wandering(), clock) as live:
        for number in range(30):
            live.reward(live.decide([1.0, 0.0], candidates=[2], id=str(number)).id, 1.0)
        live.learn()
        sds = []
        for hours in (0.0, 1.0, 10.0, 1000.0):
            clock.now += hours * HOUR
            why = live.why(live.decide([1.0, 0.0], candidates=[2]).id)
            assert why.explanation is not None
            sds.append(why.explanation.sd)
        assert sds == sorted(sds) and sds[0] < 0.2 < 0.9 < sds[-1]


def test_rows_are_learned_at_the_times_of_their_decisions() -> None:
    clock = Clock(1.7e9)
    with a_live(wandering(), clock) as live:
        rng, made = np.random.default_rng(3), []
        for _ in range(12):
            x = rng.normal(size=2)
            made.append((live.decide(x), x, clock.now))
            clock.now += 1000.0
        by_hand = wandering()
        for decision, x, at in made:
            reward = float(rng.normal())
            live.reward(decision.id, reward)
            by_hand.observe(x, decision.action, reward, at=at)
        clock.now += HOUR
        live.learn()
        learned = agent_of(live)
        assert learned.now == by_hand.now == made[-1][2]
        for action in range(K):
            for one, other in zip(learned.posterior(action), by_hand.posterior(action), strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


def test_a_late_reward_replaces_the_default_at_the_same_time() -> None:
    clock = Clock(1.7e9)
    with a_live(wandering(), clock, default=0.0, wait=60.0) as live:
        x, at = np.array([1.0, -0.5]), clock.now
        made = live.decide(x)
        clock.now += 100.0
        live.learn()
        live.reward(made.id, 2.0)
        live.learn()
        assert live.status()["replaced"] == 1
        by_hand = wandering()
        by_hand.observe(x, made.action, 2.0, at=at)
        for one, other in zip(agent_of(live).posterior(made.action), by_hand.posterior(made.action), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


def test_agents_by_the_clock_stand_beside_others() -> None:
    """One that counts rounds refuses times, and a policy knows none: each is told what it asks for."""
    clock = Clock(1.7e9)
    with a_live(wandering(clock="rounds", half_life=50.0), clock) as live:
        assert "decided_at" not in live.event(live.decide([1.0, 0.0]).id).details
        live.add_arm("clock", wandering())
        live.add_arm("static", ma.HierTS(ma.HierarchicalPrior(K, np.zeros(2), np.eye(2), np.eye(2)), seed=3))
        live.add_arm("coin", ma.policies.FixedPolicy([1 / K] * K))
        live.deploy({"agent": 0.3, "clock": 0.4, "coin": 0.3}, shadows=["static"])
        play(live, clock, 60)
        record = live.event(live.decide([1.0, 0.0]).id)
        assert record.details["decided_at"] == clock.now == record.question.at  # type: ignore[union-attr]
        assert from_origin(live) == live.state_bytes() and ma.live.replay(live.database).ok
        assert live.status()["rows_refused"] == 0


def test_a_clock_of_the_edge_that_is_ahead_moves_nobody() -> None:
    """What was decided elsewhere was decided before it came to the log, whatever its clock says."""
    clock = Clock(1.7e9)
    with a_live(wandering(), clock) as live:
        told = [
            Uploaded("far ahead", [1.0, 0.0], 1, 0.5, 0, "bundle", at=4e9),
            Uploaded("before", [1.0, 0.0], 1, 0.5, 0, "bundle", at=1.7e9 - 50.0),
        ]
        live.upload("agent", told)
        assert [live.event(one.id).decided_at for one in told] == [1.7e9, 1.7e9 - 50.0]
        live.reward("far ahead", 1.0)
        live.learn()
        assert agent_of(live).now == 1.7e9


def test_the_time_can_be_read_by_any_thread() -> None:
    wall, passing = Clock(10_000.0), Clock(5.0)
    clock = SteadyClock(wall, passing)
    passing.now += 3.0
    wall.now -= HOUR
    assert clock.read() == clock.read() == 10_003.0 and clock() == 10_003.0  # reading changes nothing
    wall.now += 2 * HOUR
    assert clock.read() == 10_000.0 + HOUR


def test_times_that_no_clock_shows_are_refused_and_those_of_earlier_logs_stop_nobody(tmp_path: Path) -> None:
    """An upload once may have said any time: the fold goes on, with the earliest time there is."""
    clock = Clock(1.7e9)
    live = a_live(wandering(), clock, tmp_path / "live.db")
    live.decide(np.array([1.0, 0.5]), id="here")
    live.learn()
    [refused] = live.upload("agent", [Uploaded("far", [1.0, 0.3], 2, 0.5, 0, "bundle", at=-1e16)])
    assert isinstance(refused, ma.ManyArmsError) and "at" in str(refused)
    live.upload("agent", [Uploaded("far", [1.0, 0.3], 2, 0.5, 0, "bundle", at=0.0)])

    def as_an_earlier_release_took_it(tx: Any) -> None:
        ((details,),) = list(tx.execute("SELECT details FROM decisions WHERE id = 'far'"))
        told = json.dumps(json.loads(details) | {DECIDED_AT: -1e300})
        tx.execute("UPDATE decisions SET details = ? WHERE id = 'far'", (told,))

    live._database.do(as_an_earlier_release_took_it)
    for event in ("far", "here"):
        live.reward(event, 1.0)
    live.learn()
    assert live.status()["learned"] == 2
    assert np.isfinite(agent_of(live).posterior(2)[0]).all()
    live.close()


def test_agents_that_forget_are_not_judged_where_rewards_have_a_default(tmp_path: Path) -> None:
    """By the time that an event settles, what was known before its reward is not known any more."""
    clock = Clock(1.7e9)
    live = a_live(wandering(), clock, tmp_path / "live.db", default=0.0, wait=60.0)
    play(live, clock, 300)
    found: Any = live.report().body["drift"]
    assert all(one["judged"] == 0 for one in found.values())
    assert live.status()["alarms"] == [] == live.status()["warnings"]
    live.close()
