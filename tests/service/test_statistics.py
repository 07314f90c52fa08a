"""Statistics agree with brute force over the records of the store, whoever wrote them and however they are cut into steps."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import manyarms as ma
from live.postgres import Server, postgres
from live.small_store import Clock, D, K, quick_disk, small_agent, small_live, traffic
from manyarms.errors import InvalidInput, StoreUnavailable, UnknownAction
from manyarms.live import Live, log
from manyarms.live.records import DecisionRecord, RewardRecord
from manyarms.sequential import ValueInterval
from manyarms.service.statistics import Statistics, entries, following
from manyarms.service.statistics.actions import ActionCounts, concentration
from manyarms.service.statistics.features import Features, Moments
from manyarms.service.statistics.latency import LEAST, Latency
from manyarms.service.statistics.minutes import DAY, MOST_ARMS, Minutes, mean_reward
from manyarms.service.statistics.propensities import EDGES, Propensities, bin_of
from manyarms.service.statistics.recent import RecentPlays
from manyarms.service.statistics.units import DistinctUnits

__all__ = ["postgres", "quick_disk"]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def live(tmp_path: Path, clock: Clock) -> Iterator[Live]:
    agent = small_agent(decision="epsilon-greedy")
    with small_live(tmp_path / "live.db", clock, agent, reward_range=(0.0, 2.0), aggregate="sum") as live:
        yield live


def bounded(rng: np.random.Generator) -> float:
    return float(rng.random())


def everything(live: Live) -> tuple[list[DecisionRecord], list[RewardRecord]]:
    with live.database.reading() as reader:
        return log.decisions_between(reader, 0, 2**60), log.rewards_between(reader, 0, 2**60)


def told(live: Live, clock: Clock, minutes: int = DAY) -> dict[str, Any]:
    statistics = Statistics(live, clock=clock)
    statistics.catch_up()
    body = statistics.summary(minutes)
    json.dumps(body, allow_nan=False)  # plain values, whatever was counted
    return body


def combined(live: Live) -> dict[tuple[int, int], float]:
    """The reward of each action of each decision, from all that came."""
    values: dict[tuple[int, int], list[float]] = defaultdict(list)
    for one in everything(live)[1]:
        values[one.decision, one.action].append(one.value)
    return {pair: live.settings.combined(given) for pair, given in values.items()}


# ---- against brute force


def test_the_summary_is_what_the_records_say(live: Live, clock: Clock) -> None:
    live.add_arm("careful", small_agent(2, "epsilon-greedy"))
    live.deploy({"agent": 0.7, "careful": 0.3})
    traffic(live, clock, 400, rewards=bounded)
    live.learn()
    body = told(live, clock)
    decisions, rewards = everything(live)
    earned = combined(live)

    assert body["day"]["decisions"] == len(decisions) == 400
    assert body["day"]["rewards"] == len(rewards)
    assert body["day"]["units"] == sum(one.unit is not None for one in decisions)
    assert body["day"]["repeated"] == sum("repeated" in one.details for one in decisions)
    known = [one.details["greedy"] for one in decisions if "greedy" in one.details]
    assert body["exploration"]["known"] == len(known) > 0
    assert body["exploration"]["share"] == pytest.approx(known.count(False) / len(known))
    assert body["units"]["distinct"] == len({one.unit for one in decisions if one.unit})
    assert body["propensities"]["exact"] == sum(one.propensity_kind == "exact" for one in decisions) == len(decisions)
    weights = np.array([1 / one.propensity for one in decisions if one.propensity])
    assert body["propensities"]["effective"] == pytest.approx(weights.sum() ** 2 / (weights**2).sum())
    assert sum(body["propensities"]["kinds"]["exact"]) == len(decisions)

    for arm in ("agent", "careful"):
        own = [one for one in decisions if one.arm == arm]
        first = [earned[one.position, one.actions[0]] for one in own if (one.position, one.actions[0]) in earned]
        assert body["by_arm"][arm]["decisions"] == len(own)
        assert body["by_arm"][arm]["rewarded"] == len(first)
        assert body["by_arm"][arm]["mean"] == pytest.approx(sum(first) / len(own))  # the others have the default, 0

    plays = Counter(action for one in decisions for action in one.actions)
    assert body["coverage"]["played"] == len(plays)
    assert body["coverage"]["plays"] == sum(plays.values())
    assert body["coverage"]["share"] == len(plays) / K
    assert body["coverage"]["top_1"] == pytest.approx(max(plays.values()) / sum(plays.values()))
    assert {one["action"]: one["plays"] for one in body["coverage"]["top"]} == dict(plays)

    contexts = np.array([one.question.context for one in decisions if one.question is not None])
    for entry, seen in enumerate(body["features"]["entries"]):
        assert seen["mean"] == pytest.approx(contexts[:, entry].mean())
        assert seen["sd"] == pytest.approx(contexts[:, entry].std())
        assert (seen["low"], seen["high"]) == (contexts[:, entry].min(), contexts[:, entry].max())
    assert body["report"] == json.loads(json.dumps(live.report().body))
    assert body["ready"] and body["behind"] == 0


def test_minutes_are_those_of_the_log(live: Live, clock: Clock) -> None:
    traffic(live, clock, 200, rewards=bounded)
    series = told(live, clock, 60)["series"]
    decisions, rewards = everything(live)
    assert series["step"] == 60 and len(series["decisions"]) == 60
    by_minute = Counter(int(one.at // 60) for one in decisions)
    came = Counter(int(one.at // 60) for one in rewards)
    minutes = [int(series["start"] // 60) + place for place in range(60)]
    assert series["decisions"] == [by_minute[minute] for minute in minutes]
    assert series["rewards"] == [came[minute] for minute in minutes]
    assert sum(series["decisions"]) == 200
    earned = combined(live)
    start, step = series["earned"]["start"], series["earned"]["step"]
    for place, mean in enumerate(series["earned"]["mean"]):
        own = [one for one in decisions if start + place * step <= one.at < start + (place + 1) * step]
        total = sum(earned.get((one.position, one.actions[0]), 0.0) for one in own)
        assert mean == (pytest.approx(total / len(own)) if own else None)
        assert series["earned"]["arms"]["agent"][place] == mean


def test_longer_times_have_longer_steps_and_lose_nothing(live: Live, clock: Clock) -> None:
    traffic(live, clock, 300, rewards=bounded)
    for minutes in (1, 7, 60, 121, 360, DAY):
        series = told(live, clock, minutes)["series"]
        assert series["start"] % series["step"] == 0
        assert len(series["decisions"]) <= 121
        covered = [one for one in everything(live)[0] if one.at >= series["start"]]
        assert sum(series["decisions"]) == len(covered)


@pytest.mark.parametrize("aggregate", ["first", "sum", "max"])
def test_several_rewards_of_an_event_count_as_the_store_says(tmp_path: Path, clock: Clock, aggregate: str) -> None:
    with small_live(tmp_path / "live.db", clock, small_agent(), aggregate=aggregate) as live:
        statistics = Statistics(live, clock=clock)
        for number, values in enumerate(([1.0], [1.0, 3.0], [5.0, 2.0, 4.0])):
            made = live.decide(np.ones(D), id=f"e{number}", candidates=[3])
            for place, value in enumerate(values):
                live.reward(made.id, value, id=f"r{place}")
                statistics.catch_up()  # in as many steps as there are rewards, ...
        expected = {"first": 1 + 1 + 5, "sum": 1 + 4 + 11, "max": 1 + 3 + 5}[aggregate]
        for one in (statistics.action(3), _caught_up(live, clock).action(3)):  # ... or in one
            assert (one["plays"], one["rewarded"], one["total"]) == (3, 3, expected)
            assert sum(one["series"]["total"]) == expected and sum(one["series"]["plays"]) == 3


def _caught_up(live: Live, clock: Clock) -> Statistics:
    statistics = Statistics(live, clock=clock)
    statistics.catch_up()
    return statistics


def test_an_action_has_the_interval_of_its_settled_rewards(live: Live, clock: Clock) -> None:
    traffic(live, clock, 300, rewards=bounded)
    clock.now += 1000.0
    live.learn()
    statistics = _caught_up(live, clock)
    decisions, rewards = everything(live)
    with live.database.reading() as reader:
        chunks = log.chunks_after(reader, 0)
    for action in range(K):
        wanted = ValueInterval(live.settings.reward_range or (0.0, 1.0))
        for one in decisions:
            if action in one.actions:
                upto = next(chunk.upto for chunk in chunks if chunk.due >= one.position)  # what comes later is too late
                came = [
                    r.value for r in rewards if (r.decision, r.action) == (one.position, action) and r.position <= upto
                ]
                wanted.update(1.0, min(2.0, sum(came)))
        found = statistics.action(action)
        assert found["plays"] == sum(action in one.actions for one in decisions)
        assert found["interval"]["events"] == wanted.count == found["plays"]
        assert found["interval"]["low"] == pytest.approx(wanted.lower(0.025), abs=1e-9)
        assert found["interval"]["high"] == pytest.approx(wanted.upper(0.025), abs=1e-9)
        assert found["interval"]["low"] <= found["interval"]["mean"] <= found["interval"]["high"]


def test_without_a_range_there_is_no_interval_and_it_says_why(tmp_path: Path, clock: Clock) -> None:
    with small_live(tmp_path / "live.db", clock, small_agent()) as live:
        live.reward(live.decide(np.ones(D), candidates=[2]).id, 7.0)
        found = _caught_up(live, clock).action(2)
        assert found["interval"] is None and "reward_range" in found["no_interval"]
        assert found["mean"] == 7.0


def test_retired_and_unknown_actions(live: Live, clock: Clock) -> None:
    live.retire([1])
    statistics = _caught_up(live, clock)
    assert statistics.action(1)["retired"] and not statistics.action(2)["retired"]
    assert statistics.action("2")["action"] == 2  # as it stands in an address
    for wrong in (K, -1, "x", "1.5"):
        with pytest.raises(UnknownAction if wrong != -1 else InvalidInput):
            statistics.action(wrong)
    assert statistics.summary()["coverage"]["alive"] == K - 1


# ---- steps, restarts, processes


@given(cuts=st.lists(st.integers(1, 40), min_size=1, max_size=30))
@settings(max_examples=8, deadline=None)
def test_however_the_log_is_cut_the_counts_are_the_same(cuts: list[int]) -> None:
    clock = Clock()
    with small_live(":memory:", clock, small_agent(), reward_range=(0.0, 2.0), aggregate="sum") as live:
        statistics = Statistics(live, clock=clock)
        for seed, number in enumerate(cuts[:6]):
            traffic(live, clock, number, seed, rewards=bounded)
            statistics.catch_up()
        live.learn()
        statistics.catch_up()
        one, other = statistics.summary(DAY), told(live, clock)
        for name in ("day", "series", "by_arm", "coverage", "exploration", "units", "mean_reward"):
            assert _near(one[name], other[name]), name


def _near(one: Any, other: Any) -> bool:
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_near(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_near, one, other))
    return one == other or math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)


def test_small_steps_are_the_same_as_large_ones(live: Live, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    traffic(live, clock, 150, rewards=bounded)
    clock.now += 1000.0
    live.learn()
    large = told(live, clock)
    monkeypatch.setattr(entries.next_step, "__defaults__", (7,))
    monkeypatch.setattr(entries.next_settled, "__kwdefaults__", {"most": 3})
    small = told(live, clock)
    for name in ("day", "series", "by_arm", "coverage"):
        assert _near(small[name], large[name]), name


def test_after_a_restart_the_last_day_is_counted_and_no_more(tmp_path: Path, clock: Clock) -> None:
    path = tmp_path / "live.db"
    with small_live(path, clock, small_agent()) as live:
        traffic(live, clock, 100, seed=1)
        clock.now += 90_000.0
        traffic(live, clock, 50, seed=2)
    with small_live(path, clock) as again:
        body = told(again, clock)
        assert body["day"]["decisions"] == 50
        assert body["coverage"]["plays"] == sum(
            len(one.actions) for one in everything(again)[0] if one.id.startswith("2-")
        )


def test_no_more_than_so_many_decisions_are_counted_from_before(
    live: Live, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    traffic(live, clock, 80, rewards=bounded)
    monkeypatch.setattr(following, "BEFORE", 30)
    statistics = _caught_up(live, clock)
    assert statistics.summary(DAY)["day"]["decisions"] == 30
    traffic(live, clock, 40, seed=9, rewards=bounded)
    statistics.catch_up()
    assert statistics.summary(DAY)["day"]["decisions"] == 70


def test_what_another_process_decides_is_counted_too(tmp_path: Path, clock: Clock) -> None:
    path = tmp_path / "live.db"
    with small_live(path, clock, small_agent()) as here, small_live(path, clock) as there:
        statistics = Statistics(here, clock=clock)
        statistics.catch_up()
        traffic(there, clock, 60)
        there.add_actions(weights=np.ones((2, 2)))
        there.learn()
        there.decide(np.ones(D), candidates=[K + 1], id="new")
        statistics.catch_up()
        assert statistics.summary(DAY)["day"]["decisions"] == 61
        assert statistics.events(1)["events"][0]["actions"] == [K + 1]


def test_the_thread_follows_by_itself_and_goes_on_after_a_failure(
    live: Live, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    statistics = Statistics(live, clock=clock)
    reading = live.database.reading
    broken = {"now": True}

    def sometimes() -> Any:
        if broken["now"]:
            raise StoreUnavailable("gone for a while")
        return reading()

    monkeypatch.setattr(live.database, "reading", sometimes)
    statistics.start(0.01)
    try:
        _until(lambda: statistics._failure is not None)
        assert any("gone for a while" in one["text"] for one in statistics.summary()["alarms"])
        broken["now"] = False
        traffic(live, clock, 30, rewards=bounded)
        _until(lambda: statistics._counted.minutes.totals(clock.now)["decisions"] == 30)
        _until(lambda: statistics._failure is None)
    finally:
        statistics.close()


def _until(true: Any, seconds: float = 60.0) -> None:
    import time

    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not come to be"
        time.sleep(0.01)


def test_memory_does_not_grow_with_events(live: Live, clock: Clock) -> None:
    """Nothing that is kept is longer after many events than after a few."""
    statistics = Statistics(live, clock=clock)

    def size() -> int:
        counted = statistics._counted
        parts = (
            counted.minutes,
            counted.actions,
            counted.recent,
            counted.propensities,
            counted.features,
            counted.units,
        )
        return sum(_size(vars(part)) for part in parts) + len(statistics._kept)

    traffic(live, clock, 60, rewards=bounded)
    statistics.catch_up()
    before = size()
    for seed in range(1, 8):
        traffic(live, clock, 200, seed, rewards=bounded, learn_every=100)
        statistics.catch_up()
    assert size() == before


def _size(value: Any) -> int:
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, dict):
        return sum(map(_size, value.values())) + len(value)
    if isinstance(value, Moments):
        return sum(_size(getattr(value, name)) for name in ("mean", "squares", "zeros", "low", "high"))
    return sum(map(_size, value)) if isinstance(value, list | tuple) else 1


# ---- events


def test_events_come_newest_first_and_pages_are_the_whole(live: Live, clock: Clock) -> None:
    ids = traffic(live, clock, 90, rewards=bounded)
    statistics = Statistics(live, clock=clock)
    found, before = [], None
    while True:
        page = statistics.events(7, before)
        found += page["events"]
        if (before := page["next"]) is None:
            break
    assert [one["id"] for one in found] == ids[::-1]
    earned = combined(live)
    records = {one.id: one for one in everything(live)[0]}
    for one in found:
        record = records[one["id"]]
        assert one["actions"] == record.actions and one["arm"] == record.arm
        assert one["reward"] == earned.get((record.position, record.actions[0]))
        assert one["propensity"] == record.propensity
    assert statistics.events(5) == {"events": found[:5], "next": found[4]["position"]}


def test_filters_of_events(live: Live, clock: Clock) -> None:
    live.add_arm("careful", small_agent(2, "epsilon-greedy"))
    live.deploy({"agent": 0.5, "careful": 0.5})
    traffic(live, clock, 120, rewards=bounded)
    statistics = Statistics(live, clock=clock)
    records = everything(live)[0][::-1]
    earned = {decision for decision, _ in combined(live)}

    def ids(**filters: Any) -> list[str]:
        return [one["id"] for one in statistics.events(500, **filters)["events"]]

    assert ids(arm="careful") == [one.id for one in records if one.arm == "careful"]
    assert ids(action=3) == [one.id for one in records if 3 in one.actions]
    assert ids(action="3", arm="agent") == [one.id for one in records if 3 in one.actions and one.arm == "agent"]
    assert ids(rewarded=True) == [one.id for one in records if one.position in earned]
    assert ids(text="-1") == [one.id for one in records if "-1" in one.id]
    assert ids(text="user 2") == [one.id for one in records if one.unit == "user 2"]
    assert ids(text="%") == ids(text="_") == [] == ids(arm="nobody")
    assert ids(since=records[30].at) == [one.id for one in records if one.at >= records[30].at]


def test_a_filter_that_finds_nothing_says_where_to_go_on(
    live: Live, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    from manyarms.service.statistics import events

    live.decide(np.ones(D), candidates=[5], id="the one")
    traffic(live, clock, 60, candidates=[0, 1, 2], rewards=bounded)
    monkeypatch.setattr(events, "LOOKED_AT", 20)
    statistics = Statistics(live, clock=clock)
    found: list[Any] = []
    before, pages = None, 0
    while pages < 50:
        page = statistics.events(10, before, action=5)
        found, before, pages = found + page["events"], page["next"], pages + 1
        if before is None:
            break
    assert "the one" in [one["id"] for one in found] and pages > 1


def test_hostile_names_stay_what_they_are(tmp_path: Path, clock: Clock) -> None:
    names = ["<script>alert(1)</script>", "'; DROP TABLE decisions; --", 'a"b\\c', "a/b?c#d", "ε%_\n", "  "]
    prior = ma.ActionPrior(len(names), np.zeros(D), np.eye(D))
    agent = ma.LinTS(prior, seed=0, catalogue=names)
    with small_live(tmp_path / "live.db", clock, agent) as live:
        for name in names:
            live.decide(np.ones(D), candidates=[name], id=f"{name} event", unit=name)
        statistics = _caught_up(live, clock)
        shown = statistics.events(50)["events"]
        assert [one["actions"][0] for one in shown] == names[::-1]
        assert [one["unit"] for one in shown] == names[::-1]
        for name in names:
            assert statistics.action(name)["plays"] == 1
            assert [one["id"] for one in statistics.events(50, action=name)["events"]] == [f"{name} event"]
            assert f"{name} event" in [one["id"] for one in statistics.events(50, text=f"{name} ev")["events"]]
        assert {one["action"] for one in statistics.summary()["coverage"]["top"]} == set(names)


def test_erased_events_tell_nothing(live: Live, clock: Clock) -> None:
    made = live.decide(np.ones(D), unit="a person")
    live.reward(made.id, 1.0)
    live.erase(made.id)
    statistics = _caught_up(live, clock)
    [one] = statistics.events(10)["events"]
    assert one["erased"] and one["unit"] is None and one["actions"] == [] and one["rewards"] == []
    assert statistics.summary(DAY)["day"]["decisions"] == 0


def test_deferred_decisions_count_once_they_are_activated(live: Live, clock: Clock) -> None:
    statistics = Statistics(live, clock=clock)
    for number in range(4):
        live.decide(np.ones(D), candidates=[number % 2], id=f"e{number}", active=False)
    live.reward("e0", 1.5)
    statistics.catch_up()
    body = statistics.summary(DAY)
    assert body["day"]["decisions"] == body["day"]["deferred"] == 4 and body["by_arm"] == {}
    assert statistics.action(0)["plays"] == 0 and statistics.action(0)["rewarded"] == 0
    live.activate("e0")
    live.activate("e1")
    live.reward("e1", 0.5)
    statistics.catch_up()
    for one in (statistics, _caught_up(live, clock)):
        assert [one.action(action)["plays"] for action in (0, 1)] == [1, 1]
        assert [one.action(action)["total"] for action in (0, 1)] == [1.5, 0.5]
        assert [sum(one.action(action)["series"]["total"]) for action in (0, 1)] == [1.5, 0.5]
        assert one.summary(DAY)["mean_reward"] == 1.0
    assert [one["active"] for one in statistics.events(4)["events"]] == [False, False, True, True]
    clock.now += 100.0
    live.learn()
    statistics.catch_up()
    assert statistics.summary(DAY)["day"]["never_activated"] == 2
    assert statistics.action(0)["interval"]["events"] == 1


def test_events_count_by_the_settings_of_their_time(live: Live, clock: Clock) -> None:
    for event in ("before", "after"):
        if event == "after":
            live.change_settings(aggregate="max")
        live.decide(np.ones(D), candidates=[2], id=event)
        live.reward(event, 0.5, id="a")
        live.reward(event, 0.25, id="b")
    statistics = _caught_up(live, clock)
    assert [one["reward"] for one in statistics.events(2)["events"]] == [0.5, 0.75]
    assert statistics.action(2)["total"] == 1.25


@pytest.mark.parametrize("was, now", [(None, 0.0), (0.0, None), (0.0, 0.0)])
def test_an_interval_has_the_events_whose_own_settings_allow_one(
    tmp_path: Path, clock: Clock, was: float | None, now: float | None
) -> None:
    agent = small_agent(decision="epsilon-greedy")
    with small_live(tmp_path / "other.db", clock, agent, reward_range=(0.0, 1.0), default=was) as live:
        for number in range(12):  # half of them are deferred, a third has a reward
            live.decide(np.ones(D), candidates=[0], id=f"e{number}", active=number % 2 == 0)
            if number % 2:
                live.activate(f"e{number}")
            if number % 3 == 0:
                live.reward(f"e{number}", 1.0)
        if now != was:
            live.change_settings(default=now)
        clock.now += 100.0
        live.learn()
        settled = _caught_up(live, clock)._counted.actions.interval(0)
        assert (settled.count, settled.value.total) == ((0, 0.0) if was is None else (12, 4.0))
        values: Any = live.report().body["values"]
        assert (values["agent"]["events"] if values else 0) == settled.count


def test_deferred_decisions_of_a_store_without_a_range_are_followed(tmp_path: Path, clock: Clock) -> None:
    with small_live(tmp_path / "other.db", clock, small_agent()) as live:
        live.decide(np.ones(D), candidates=[0], active=False, id="shown")
        live.activate("shown")
        clock.now += 100.0
        live.learn()
        found = _caught_up(live, clock).action(0)
        assert found["plays"] == 1 and found["interval"] is None


def test_contexts_that_the_store_packs_are_counted(tmp_path: Path, clock: Clock) -> None:
    rows = np.zeros((K, D))
    rows[:, 0] = np.arange(K)
    with small_live(tmp_path / "other.db", clock, small_agent()) as live:
        for number in range(50):
            live.decide(action_contexts=np.tile(rows[number % K], (K, 1)), id=f"e{number}")
        [(shortest,)] = live.database.read("SELECT MIN(LENGTH(context)) FROM decisions")
        assert shortest < rows.nbytes
        assert told(live, clock)["features"]["contexts"] == 50


# ---- health


def test_lag_counts_what_waits_and_nothing_else(live: Live, clock: Clock) -> None:
    live.decide(np.ones(D))
    clock.now += 100.0
    live.decide(np.ones(D))
    lag = told(live, clock)["lag"]
    assert lag["entries"] > 0 and lag["seconds"] == pytest.approx(100.0)
    live.learn()
    lag = told(live, clock)["lag"]
    assert lag["entries"] == 0 and lag["seconds"] == 0.0 and lag["here"]


def test_nobody_learns_is_an_alarm(tmp_path: Path, clock: Clock) -> None:
    with small_live(tmp_path / "live.db", clock, small_agent(), learner=False) as live:
        assert not told(live, clock)["alarms"]
        live.decide(np.ones(D))
        clock.now += 200.0
        kinds = {one["kind"] for one in told(live, clock)["alarms"]}
        assert {"learner", "lag"} <= kinds


def test_drift_is_an_alarm_without_a_model_and_a_warning_by_one(tmp_path: Path, clock: Clock) -> None:
    """The agent says that rewards have a noise of 1: twice of it scatters more than predicted, and does not lean to a side."""
    with small_live(tmp_path / "live.db", clock, small_agent(), default=None) as live:
        rng, both = np.random.default_rng(0), {("amber", "drift"), ("red", "alarm")}
        for shift, kinds in ((0.0, None), (0.0, {("amber", "drift")}), (3.0, both)):
            for number in range(200):
                made = live.decide(rng.normal(size=D), id=f"{shift} {kinds} {number}")
                live.reward(made.id, shift + 2 * float(rng.normal()))
            live.learn()
            if kinds is None:  # what it has learned so far is as noisy as the little it knows
                live.watch_drift(1_000)
                continue
            body = told(live, clock)
            assert {(one["level"], one["kind"]) for one in body["alarms"] if "predicted" in one["text"]} == kinds
        assert body["report"]["drift"]["agent"]["alarms"]["model-free"]["overall"] > 0


def test_the_size_of_the_store_is_that_of_its_files(live: Live, clock: Clock) -> None:
    traffic(live, clock, 50, rewards=bounded)
    path = live.database.path  # type: ignore[attr-defined]
    size = told(live, clock)["store"]["bytes"]
    assert size == path.stat().st_size + Path(f"{path}-wal").stat().st_size


# ---- the parts


def test_the_ring_of_minutes_forgets_what_is_older_than_a_day() -> None:
    minutes = Minutes()
    for minute in range(3 * DAY):
        minutes.add(60.0 * minute, decisions=1)
        minutes.add_arm(60.0 * minute, "a", decisions=1)
    now = 60.0 * (3 * DAY - 1)
    assert minutes.totals(now)["decisions"] == DAY and minutes.totals(now, 5)["decisions"] == 5
    minutes.add(60.0 * DAY, decisions=1)  # two days old: no minute of today is changed by it
    assert minutes.totals(now)["decisions"] == DAY
    assert minutes.totals(now + 86_400.0)["decisions"] == 0
    assert minutes.earned(now) == {"a": [DAY, 0.0, 0.0]}


def test_arms_without_end_are_counted_together() -> None:
    minutes = Minutes()
    for number in range(3 * MOST_ARMS):
        minutes.add_arm(0.0, f"arm {number}", decisions=1)
    earned = minutes.earned(0.0)
    assert len(earned) <= MOST_ARMS + 1 and sum(one[0] for one in earned.values()) == 3 * MOST_ARMS


@pytest.mark.parametrize(
    ("earned", "default", "expected"),
    [
        ((0, 0, 0.0), 0.0, None),
        ((4, 2, 3.0), 0.0, 0.75),
        ((4, 2, 3.0), 1.0, 1.25),
        ((4, 2, 3.0), None, 1.5),
        ((4, 0, 0.0), None, None),
    ],
)
def test_the_mean_reward(earned: tuple[int, int, float], default: float | None, expected: float | None) -> None:
    assert mean_reward(earned, default) == expected


@given(p=st.floats(1e-12, 1.0))
def test_propensities_are_counted_in_their_bin(p: float) -> None:
    place = bin_of(p)
    assert p <= EDGES[place + 1] * (1 + 1e-9)
    assert place == 0 or p > EDGES[place] * (1 - 1e-6)


def test_propensities_of_another_day_are_forgotten() -> None:
    kept = Propensities()
    kept.add(0.0, 0.5, "exact")
    kept.add(80_000.0, 0.25, "estimated")
    body = kept.body(80_000.0, 3)
    assert (body["exact"], body["estimated"], body["none"]) == (1, 1, 1)
    body = kept.body(100_000.0, 1)
    assert (body["exact"], body["estimated"], body["effective"]) == (0, 1, 1.0)


def test_equal_propensities_lose_nothing_and_one_small_one_much() -> None:
    kept = Propensities()
    for _ in range(100):
        kept.add(0.0, 0.1, "exact")
    assert kept.body(0.0, 100)["effective"] == pytest.approx(100.0)
    kept.add(0.0, 1e-6, "exact")
    assert kept.body(0.0, 101)["effective"] < 1.1


@given(seconds=st.lists(st.floats(1e-5, 50.0), min_size=1, max_size=300))
def test_quantiles_of_latency_are_at_most_a_tenth_too_large(seconds: list[float]) -> None:
    latency = Latency(lambda: 1000.0)
    for one in seconds:
        latency.observe("/v1/decide", one)
    found = latency.body()["/v1/decide"]
    assert found["count"] == len(seconds)
    down = sorted(seconds)
    for name, level in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99)):
        exact = down[math.ceil(level * len(down)) - 1]
        assert exact * (1 - 1e-9) <= found[name] <= max(LEAST, exact) * 1.1 * (1 + 1e-9)


def test_latency_is_that_of_the_last_five_minutes() -> None:
    now = {"is": 0.0}
    latency = Latency(lambda: now["is"])
    latency.observe("a", 1.0)
    now["is"] = 290.0
    assert latency.body()["a"]["count"] == 1
    now["is"] = 310.0
    assert latency.body() == {}
    for number in range(1000):
        latency.observe(f"route {number}", 0.001)
    assert len(latency.body()) <= 65


@pytest.mark.parametrize("number", [0, 1, 50, 3_000, 40_000])
def test_units_are_counted_within_a_few_percent(number: int) -> None:
    units = DistinctUnits()
    for _ in range(2):
        for unit in range(number):
            units.add(f"unit {unit}")
    assert abs(units.number() - number) <= 0.08 * number  # five standard errors of 1.04/sqrt(4096)


@given(
    plays=st.lists(st.tuples(st.integers(0, 3), st.floats(0, 1) | st.none()), max_size=60),
    most=st.sampled_from([4, 16, 64]),
)
def test_the_ring_of_plays_has_the_last_ones(plays: list[tuple[int, float | None]], most: int) -> None:
    ring = RecentPlays(most)
    for position, (action, _) in enumerate(plays):
        ring.play(position, 60.0 * position, action)
    for position, (action, reward) in enumerate(plays):
        if reward is not None:
            ring.reward(position, action, reward)
    kept = list(enumerate(plays))[-most:]
    for action in range(4):
        at, rewards = ring.of(action)
        own = [(position, reward) for position, (which, reward) in kept if which == action]
        assert at.tolist() == [60.0 * position for position, _ in own]
        expected = np.array([np.nan if reward is None else reward for _, reward in own], dtype=float)
        np.testing.assert_array_equal(rewards, expected)


def test_concentration_by_hand() -> None:
    counts = ActionCounts(0)
    for row, number in ((0, 90), (150, 5), (199, 5)):
        for _ in range(number):
            counts.play(row, 10.0)
    found = concentration(counts.played(), 200)
    assert found == {"alive": 200, "played": 3, "plays": 100, "share": 0.015, "top_1": 0.95, "top_10": 1.0}
    assert counts.most_played(1) == [0] and counts.most_played(9) == [0, 150, 199]
    assert concentration(ActionCounts(5).played(), 5)["top_1"] is None


# ---- features


def _taken(X: np.ndarray, encoder: Any = None) -> dict[str, Any]:
    features = Features(encoder)
    for start in range(0, len(X), 500):
        features.take(list(X[start : start + 500]), 1000.0)
    return features.body(1000.0)


def test_a_constant_entry_is_warned_of_and_an_intercept_is_not() -> None:
    X = np.random.default_rng(0).normal(size=(1000, 4))
    X[:, 0], X[:, 3] = 1.0, 7.0
    body = _taken(X)
    assert body["warnings"] == ["all contexts have the same value in x[3]: 7 in 1,000 decisions"]
    assert [one["constant"] for one in body["entries"]] == [True, False, False, True]
    assert _taken(X[:50])["warnings"] == []  # too early


def test_a_category_that_never_comes_and_values_that_were_never_fitted() -> None:
    table: dict[str, Any] = {"age": [20.0, 30.0, 40.0] * 30, "device": ["phone", "tablet", "desktop"] * 30}
    encoder = ma.logs.Encoding().fit(table, ["age", "device"])
    rows = [
        encoder.row({"age": 30.0 + number % 7, "device": ("phone", "desktop", "watch")[number % 3]})
        for number in range(999)
    ]
    assert _taken(np.array(rows), encoder)["warnings"] == [
        "feature device=tablet was never seen in 999 decisions",
        "33% of contexts have a device that the encoder was not fitted to",
    ]
    rows.append(encoder.row({"age": 3000.0, "device": "tablet"}))
    [_, far] = _taken(np.array(rows), encoder)["warnings"]
    assert far.startswith("age is far from what the encoder was fitted to")


def test_what_is_far_out_of_the_range_seen_before() -> None:
    X = np.random.default_rng(0).uniform(size=(2000, 2))
    assert _taken(X)["warnings"] == []
    body = _taken(np.vstack((X, [[0.5, 1e6]])))
    assert body["warnings"] == ["x[1] is far out of the range seen before: 1,000,000 (1 time so far)"]
    assert [one["far"] for one in body["entries"]] == [0, 1]


def test_a_feature_that_stops_coming_is_noticed() -> None:
    features = Features(None)
    X = np.random.default_rng(0).normal(size=(500, 2))
    for number in range(80):
        if number == 30:
            X = X.copy()
            X[:, 1] = 0.0
        features.take(list(X), 0.0)
    assert any("x[1]" in text for text in features.body(0.0)["warnings"])


@given(sizes=st.lists(st.integers(0, 30), min_size=1, max_size=6))
def test_moments_of_parts_are_those_of_the_whole(sizes: list[int]) -> None:
    X = np.random.default_rng(sum(sizes)).normal(loc=1e3, size=(max(1, sum(sizes)), 3))
    together, at = Moments.none(3), 0
    for size in [*sizes, len(X) - sum(sizes)]:
        part = X[at : at + size]
        together, at = together.merged(Moments.of(part) if len(part) else Moments.none(3)), at + size
    whole = Moments.of(X)
    for name in ("count", "mean", "squares", "zeros", "low", "high"):
        np.testing.assert_allclose(getattr(together, name), getattr(whole, name), rtol=1e-7, atol=1e-6)


def test_contexts_of_another_length_are_left_out() -> None:
    features = Features(None)
    features.take([np.ones(3), np.ones(2), None], 0.0)
    body = features.body(0.0)
    assert body["contexts"] == 1 and body["left_out"] == 2


# ---- with a server


@pytest.mark.slow
def test_the_same_on_postgresql(postgres: Server, clock: Clock) -> None:
    """The same log has the same statistics, whichever database it is in."""
    found = []
    for address in (":memory:", postgres.new_database()):
        clock.now = 1_000_000.0
        with small_live(address, clock, small_agent(), reward_range=(0.0, 2.0), aggregate="sum") as live:
            traffic(live, clock, 120, rewards=bounded)
            live.decide(np.ones(D), id="deferred", active=False)
            clock.now += 1000.0
            live.learn()
            statistics = _caught_up(live, clock)
            body = statistics.summary(DAY)
            assert body["store"]["bytes"] > 0
            listed = [
                statistics.events(20, **filters)["events"]
                for filters in ({}, {"action": 3}, {"text": "-1"}, {"rewarded": True}, {"since": clock.now - 1500.0})
            ]
            names = (
                "day",
                "series",
                "by_arm",
                "coverage",
                "exploration",
                "units",
                "mean_reward",
                "lag",
                "propensities",
            )
            found.append([{name: body[name] for name in names}, listed, [statistics.action(row) for row in range(K)]])
    assert _near(found[0], found[1])
