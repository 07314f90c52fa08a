"""Decisions that may never be shown: they count once they are activated, and not at all where they are not."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import manyarms as ma
from live.making import (
    DIM,
    Clock,
    X,
    a_live,
    agent_of,
    an_agent,
    contexts,
    from_every_snapshot,
    from_origin,
    mixed,
    same_belief,
)
from live.small_store import quick_disk as quick_disk
from manyarms.errors import Conflict, InvalidInput, LiveError, UnknownEvent
from manyarms.live import Live, exporting, packing, snapshots
from manyarms.live.compaction import compact
from manyarms.live.replaying import replay
from manyarms.policies import UniformPolicy

WAIT = 10.0


def everywhere_the_same(live: Live) -> None:
    mine = live.state_bytes()
    assert from_origin(live) == mine and set(from_every_snapshot(live)) == {mine}
    found = replay(live.database)
    assert found.ok, str(found)


def taught(rows: list[tuple[Any, int, float]], agent: ma.Agent | None = None) -> ma.Agent:
    agent = an_agent() if agent is None else agent
    for x, action, reward in rows:
        agent.observe(x, action, reward)
    return agent


# ---- what one event teaches, whatever comes when


@pytest.mark.parametrize("default", [None, -0.5])
@pytest.mark.parametrize("order", list(itertools.permutations(["activate", "reward", "learn", "more"])))
def test_in_whatever_order_it_comes(order: tuple[str, ...], default: float | None) -> None:
    """Activated within its waiting time, an event teaches what it would have taught had it been active from the first."""
    clock = Clock()
    live = a_live(clock=clock, default=default, wait=WAIT, aggregate="sum")
    d = live.decide(X, active=False)
    assert not d.active and not live.event(d.id).active
    active = False
    for step in order:
        clock.now += 1.0
        if step == "activate":
            live.activate(d.id)
            active = True
        elif step == "reward":
            live.reward(d.id, 1.0)
        elif step == "more":
            live.reward(d.id, 0.5, id="more")
        else:
            live.learn()
            live.snapshot()
            if not active:
                assert live.status()["learned"] == 0
    assert live.event(d.id).active
    live.sync()
    same_belief(agent_of(live), taught([(X, d.action, 1.5)]))
    clock.now += WAIT
    live.learn()
    assert live.status()["settled"] == 1 and live.status()["learned"] == 1
    same_belief(agent_of(live), taught([(X, d.action, 1.5)]))
    everywhere_the_same(live)
    live.close()


@pytest.mark.parametrize("learned_between", [False, True])
def test_never_activated_nothing_is_learned_given_or_settled(learned_between: bool) -> None:
    clock = Clock()
    live = a_live(an_agent(kind="epsilon"), clock, default=-0.5, wait=WAIT, reward_range=(-1.0, 1.0))
    hidden, rewarded, shown = live.decide(X, active=False), live.decide(X, active=False), live.decide(X)
    live.reward(rewarded.id, 1.0)
    if learned_between:
        live.learn()
    clock.now += 2 * WAIT
    live.learn()
    live.reward(hidden.id, 1.0)  # late, and logged: it teaches nothing either
    live.reward(rewarded.id, 0.5, id="more")
    live.sync()
    counts = live.status()
    assert (counts["learned"], counts["replaced"], counts["settled"]) == (1, 0, 1)
    report: Any = live.report().body
    assert report["events"] == 1 and report["values"]["agent"]["events"] == 1
    same_belief(agent_of(live), taught([(X, shown.action, -0.5)], an_agent(kind="epsilon")))
    everywhere_the_same(live)
    live.close()


def test_activated_without_a_reward_the_default_comes_after_the_wait() -> None:
    clock = Clock()
    live = a_live(clock=clock, default=-0.5, wait=WAIT)
    d = live.decide(X, k=2, active=False)
    clock.now += 9.0
    live.activate(d.id)
    live.learn()
    assert live.status()["learned"] == 0
    clock.now += 1.0  # the waiting time is that of the decision, and not of its activation
    live.learn()
    assert live.status()["learned"] == 2 and live.status()["settled"] == 1
    live.reward(d.id, 2.0)
    live.sync()
    same_belief(agent_of(live), taught([(X, d.actions[0], 2.0), (X, d.actions[1], -0.5)]))
    everywhere_the_same(live)
    live.close()


@pytest.mark.parametrize("make", [an_agent, mixed])
def test_the_belief_is_that_of_the_events_that_were_shown(make: Any, tmp_path: Path) -> None:
    """Some active, some activated, some not, in an order of chance; reopened in between, from snapshots and from the origin."""
    rng, clock = np.random.default_rng(2), Clock()
    live = a_live(make(), clock, tmp_path / "a.db", default=0.25, wait=WAIT, aggregate="max")
    other = a_live(None, clock, tmp_path / "a.db", learner=False)
    shown: dict[str, bool] = {}
    rewards: dict[str, list[float]] = {}
    decided: dict[str, tuple[Any, int]] = {}
    for step, x in enumerate(contexts(60)):
        d = live.decide(x, id=f"e{step}", active=bool(rng.integers(2)), unit=f"u{step % 5}")
        decided[d.id], shown[d.id], rewards[d.id] = (x, d.action), d.active, []
        clock.now += 1.0
        for number, event in enumerate(rng.choice(sorted(decided), 2).tolist()):
            value = float(rng.normal())
            live.reward(event, value, id=f"{step}-{number}")
            rewards[event].append(value)
        event = str(rng.choice(sorted(decided)))
        try:
            (other if rng.integers(2) else live).activate(event)
            shown[event] = True
        except Conflict:
            assert not shown[event] and clock.now - other.event(event).at >= WAIT
        if rng.random() < 0.3:
            live.learn()
        if rng.random() < 0.1:
            live.snapshot()
        if step == 30:
            live.close()
            live = a_live(None, clock, tmp_path / "a.db")
    clock.now += WAIT
    live.sync()
    rows = [(*decided[e], max(rewards[e], default=0.25)) for e in decided if shown[e]]
    assert 20 < len(rows) < 55
    same_belief(agent_of(live), taught(rows, make()))
    assert live.status()["settled"] == len(rows) and other.state_bytes() == live.state_bytes()
    assert {e: live.event(e).active for e in decided} == shown
    everywhere_the_same(live)
    for version in range(live.version + 1):
        at = packing.pack_state(snapshots.state_of(live.database, version))
        assert at == packing.pack_state(snapshots.from_origin(live.database, version))
    live.close()
    other.close()


# ---- what is refused, and what changes nothing


def test_too_late_is_refused() -> None:
    clock = Clock()
    live = a_live(clock=clock, default=0.0, wait=WAIT)
    d, e = live.decide(X, active=False), live.decide(X, active=False)
    clock.now += WAIT - 2.0**-20
    live.activate(d.id)
    clock.now += 2.0**-20
    position = live.database.read("SELECT position FROM counter")
    with pytest.raises(Conflict, match="never activated"):  # by the clock, before any chunk was cut
        live.activate(e.id)
    assert live.database.read("SELECT position FROM counter") == position
    live.activate(d.id)  # what is active stays so, however late
    live.learn()
    with pytest.raises(Conflict, match="waiting time"):
        live.activate(e.id)
    live.close()


def test_what_a_chunk_has_left_behind_is_refused_though_the_clock_went_back() -> None:
    clock = Clock()
    live = a_live(clock=clock, wait=WAIT)
    d = live.decide(X, active=False)
    clock.now += WAIT
    live.learn()
    clock.now -= WAIT
    with pytest.raises(Conflict):
        live.activate(d.id)
    live.close()


def test_without_any_wait_nothing_can_be_activated() -> None:
    live = a_live(clock=Clock(), wait=0.0)
    d = live.decide(X, active=False)
    with pytest.raises(Conflict):
        live.activate(d.id)
    live.close()


def test_again_changes_nothing() -> None:
    clock = Clock()
    live = a_live(clock=clock, wait=WAIT)
    d, e = live.decide(X, active=False), live.decide(X)
    for _ in range(3):
        live.activate(d.id)
        live.submit_activation(d.id).result(60)
        live.activate(e.id)
    version = live.learn()
    live.activate(d.id)
    assert live.learn() == version
    assert live.database.read("SELECT COUNT(*) FROM activations") == [(1,)]
    assert live.event(d.id).deferred and not live.event(e.id).deferred
    live.close()


def test_an_activation_alone_is_worth_a_chunk() -> None:
    live = a_live(clock=Clock(), wait=WAIT)
    d = live.decide(X, active=False)
    live.reward(d.id, 1.0)
    version = live.learn()
    live.activate(d.id)
    assert live.learn() == version + 1 and live.status()["learned"] == 1
    live.close()


def test_events_that_nobody_knows() -> None:
    live = a_live(clock=Clock(), wait=WAIT)
    d = live.decide(X, active=False)
    live.erase(d.id)
    for event in ("never decided", d.id):
        with pytest.raises(UnknownEvent):
            live.activate(event)
        with pytest.raises(UnknownEvent):
            live.submit_activation(event).result(60)
    for wrong in (None, "", 3, "x" * 300):
        with pytest.raises(InvalidInput, match="event"):
            live.activate(wrong)  # type: ignore[arg-type]
    for wrong in (None, 1, "no"):
        with pytest.raises(InvalidInput, match="active"):
            live.decide(X, active=wrong)  # type: ignore[arg-type]
    live.close()
    with pytest.raises(LiveError):
        live.activate(d.id)


def test_the_same_id_again() -> None:
    live = a_live(clock=Clock(), wait=WAIT)
    d = live.decide(X, id="e", active=False)
    assert live.decide(X, id="e", active=False) == d
    with pytest.raises(Conflict, match="active"):
        live.decide(X, id="e")
    live.activate("e")
    again = live.decide(X, id="e", active=False)
    assert again.active and again.actions == d.actions
    with pytest.raises(Conflict):
        live.decide(X, id="e")
    live.decide(X, id="f")
    with pytest.raises(Conflict):
        live.decide(X, id="f", active=False)
    live.close()


def test_the_digest_of_a_decision_that_is_active_is_what_it_was() -> None:
    live = a_live(clock=Clock())
    record = live.event(live.decide(X, unit="u").id)
    assert record.question is not None
    assert record.digest == record.question.digest("u") != record.question.digest("u", active=False)
    live.close()


# ---- erased, compacted, exported, verified


@pytest.mark.parametrize("when", ["before", "after", "never"])
def test_erased_it_is_as_if_it_had_never_been(when: str) -> None:
    clock = Clock()
    live, without = (a_live(an_agent(5), clock, default=0.5, wait=WAIT) for _ in range(2))
    kept = [(one, one.decide(X, candidates=[2], id="kept")) for one in (live, without)]
    live.decide(X, candidates=[1], id="e", active=False)
    live.reward("e", 1.0)
    if when == "before":
        live.activate("e")
    live.learn()
    live.snapshot()
    if when == "after":
        live.activate("e")
    live.erase("e")
    for one, d in kept:
        one.reward(d.id, 2.0)
        clock.now += WAIT
        one.sync()
    same_belief(agent_of(live), agent_of(without))
    assert live.database.read("SELECT COUNT(*) FROM activations") == [(0,)]
    everywhere_the_same(live)
    for one in (live, without):
        one.close()


def test_compaction_takes_activations_along() -> None:
    clock = Clock()
    live = a_live(clock=clock, default=0.5, wait=WAIT)
    first = [live.decide(X, active=False) for _ in range(4)]
    for d in first[:2]:
        live.activate(d.id)
    live.reward(first[2].id, 1.0)
    clock.now += WAIT
    live.learn()
    waits = live.decide(X, active=False)
    live.reward(waits.id, 1.0)
    live.learn()
    live.reward(first[1].id, 2.0)  # after the origin to be: its event stays, and its activation with it
    live.reward(first[3].id, 3.0)
    clock.now += 1.0
    planned = compact(live.database, 0.5, dry_run=True)
    live.learn()
    assert (planned.decisions, planned.activations, planned.rewards) == (2, 1, 1)
    mine = live.state_bytes()
    found = compact(live.database, 0.5)
    assert found.activations == 1 and live.database.read("SELECT COUNT(*) FROM activations") == [(1,)]
    assert live.state_bytes() == mine
    live.activate(waits.id)
    live.erase(first[3].id)  # nothing was learned from it, at the origin or since
    with pytest.raises(UnknownEvent, match="compacted"):
        live.erase(first[1].id)
    live.sync()
    rows = [(X, first[0].action, 0.5), (X, first[1].action, 2.0), (X, waits.action, 1.0)]
    same_belief(agent_of(live), taught(rows))
    everywhere_the_same(live)
    live.close()


def test_an_export_has_what_was_shown(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    clock = Clock()
    live = a_live(an_agent(kind="epsilon"), clock, default=0.0, wait=WAIT)
    events = [live.decide(X, active=False) for _ in range(5)] + [live.decide(X)]
    for d in events[:2]:
        live.activate(d.id)
    live.reward(events[1].id, 1.0)
    live.reward(events[2].id, 1.0)
    live.sync()
    early = exporting.export(live.database, tmp_path / "early.parquet", unsettled=True)
    assert early.rows == 1 and early.left_out[exporting.NOT_DUE] == 5
    clock.now += WAIT
    found = exporting.export(live.database, tmp_path / "log.parquet")
    assert found.rows == 3 and found.left_out[exporting.NOT_SHOWN] == 3
    assert "3 events that were never activated" in str(found)
    log = ma.open_log(tmp_path / "log.parquet").collect()
    assert log.event_ids is not None and log.event_ids.tolist() == [events[0].id, events[1].id, events[5].id]
    assert log.rewards.tolist() == [0.0, 1.0, 0.0]
    live.close()


PLANTED = {
    "digest differs": "UPDATE decisions SET active = 1 WHERE id = 'hidden'",
    "of no event before it": "UPDATE activations SET decision = 1000",
    "is missing": "DELETE FROM activations",
    "was to be activated": "UPDATE activations SET decision = (SELECT position FROM decisions WHERE id = 'plain')",
}


@pytest.mark.parametrize("words", PLANTED)
def test_what_was_changed_is_found(words: str, tmp_path: Path) -> None:
    live = a_live(an_agent(kind="epsilon"), Clock(), tmp_path / "a.db", wait=WAIT)
    for event in ("hidden", "shown", "plain"):
        live.decide(X, id=event, active=event == "plain")
    live.activate("shown")
    live.sync()
    everywhere_the_same(live)
    live.database.do(lambda tx: tx.execute(PLANTED[words]))
    assert words in "\n".join(replay(live.database).differences.named)
    live.close()


def test_caps_count_what_was_decided() -> None:
    """What is on its way to be shown takes its place."""
    live = a_live(an_agent(4), Clock(), wait=WAIT)
    live.cap(2, window=100.0)
    for _ in range(2):
        live.decide(X, candidates=[3], active=False)
    live.learn()
    assert live.status()["capped"] == [3]
    live.close()


def test_shadows_and_shares_are_watched_for_what_was_shown() -> None:
    clock = Clock()
    live = a_live(an_agent(4, kind="epsilon"), clock, default=0.0, wait=WAIT, reward_range=(0.0, 1.0))
    live.add_arm("even", UniformPolicy(4))
    live.deploy({"agent": 0.5, "even": 0.5}, shadows=["agent"])
    made = [live.decide(x, active=False) for x in np.random.default_rng(0).normal(size=(40, DIM))]
    for d in made[::2]:
        live.activate(d.id)
    clock.now += WAIT
    live.sync()
    report: Any = live.report().body
    assert report["events"] == report["sample_ratio"]["events"] == report["shadows"]["agent"]["events"] == 20
    everywhere_the_same(live)
    live.close()
