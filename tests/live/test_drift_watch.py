"""Live agents notice that the world has changed: what is judged, when, and that the same log gives the same alarms."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import manyarms as ma
from live.making import Clock, a_live, from_every_snapshot, from_origin
from live.small_store import quick_disk  # noqa: F401
from manyarms.agents import Agent
from manyarms.errors import InvalidInput
from manyarms.live import Live, drift_watch, opening, packing
from manyarms.live.agent_arm import AgentArm
from manyarms.live.drift_watch import DriftWatch
from manyarms.live.learned_rows import TaughtRow
from manyarms.live.records import DecisionRecord, Question
from manyarms.live.report import alarms, drifted
from manyarms.live.settings import Settings, SettingsInTime
from manyarms.live.state import State, _taught
from manyarms.live.watch import Watch
from manyarms.sequential import DriftAlarm

D, K = 3, 10


def agent(likelihood: Any = None, **options: Any) -> Agent:
    prior = ma.HierarchicalPrior(K, np.zeros(D), np.eye(D), np.eye(D))
    return ma.HierTS(prior, likelihood or ma.Linear(), seed=1, **options)


def alarm_of(live: Live, name: str = "agent") -> DriftAlarm:
    watch = packing.unpack_state(live.state_bytes()).watch
    assert watch.drift is not None and watch.drift.arms[name].alarm is not None
    return watch.drift.arms[name].alarm


class World:
    """Rewards xᵀθ_a + noise; `change` gives all actions other parameters."""

    def __init__(self, seed: int = 0, binary: bool = False) -> None:
        self.rng, self.binary, self.seed, self.events = np.random.default_rng(seed), binary, seed, 0
        self.root = self.rng.normal(size=D)
        self.change()

    def change(self) -> None:
        self.theta = self.root + self.rng.normal(size=(K, D))

    def reward(self, x: np.ndarray, action: int) -> float:
        mean = float(x @ self.theta[action])
        return float(self.rng.random() < 1 / (1 + np.exp(-mean))) if self.binary else mean + float(self.rng.normal())

    def play(self, live: Live, events: int, learn_every: int = 25, clock: Clock | None = None) -> None:
        for number in range(events):
            x = self.rng.normal(size=D)
            self.events += 1
            made = live.decide(x, id=f"{self.seed}, {self.events}")  # by which random numbers are drawn
            live.reward(made.id, self.reward(x, int(made.action)))
            if clock is not None:
                clock.now += 1.0
            if number % learn_every == learn_every - 1:
                live.learn()


@pytest.fixture
def every_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """All rows are judged, however much doubt there is."""
    monkeypatch.setattr(drift_watch, "DOUBT", 1.0)


# ---- rows


def taught(learner: Agent, rows: list[TaughtRow], chunk: int, mean_time: float) -> tuple[DriftAlarm, np.ndarray]:
    """Rows that come in chunks, judged and learned as a state does it; the alarm, and all residuals."""
    watch, arm, found = DriftWatch(mean_time), AgentArm(learner), []
    state: Any = SimpleNamespace(agreed=SettingsInTime(Settings()), settings=Settings())
    for start in range(0, len(rows), chunk):
        for some in watch.judged(state, "agent", arm, rows[start : start + chunk]):
            assert some.found is not None
            found.append(some.found.z)
            _taught(arm, some.rows)
            some.told([True] * len(some.rows), 0.0)
    alarm = watch.arms["agent"].alarm
    assert alarm is not None
    return alarm, np.concatenate(found)


def rows_of(world: World, number: int) -> list[TaughtRow]:
    made = []
    for place in range(number):
        x, action = world.rng.normal(size=D), int(world.rng.integers(K))
        decision = DecisionRecord("", None, "agent", 0, 0, Question(x), [action], position=place + 1)
        made.append(TaughtRow(decision, action, None, world.reward(x, action)))
    return made


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.usefixtures("every_row")
def test_rows_in_slices_are_judged_as_if_they_came_one_by_one(binary: bool) -> None:
    """False alarms no more often than stated, and residuals within a few hundredths of the exact ones (seen: 0.06 at most)."""
    rows, likelihood = rows_of(World(1, binary), 600), ma.Logistic() if binary else ma.Linear()
    one, exact = taught(agent(likelihood), rows, 1, 100)
    for chunk in (50, 600):
        alarm, z = taught(agent(likelihood), rows, chunk, 100)
        assert np.abs(z[:20] - exact[:20]).max() < 1e-9  # slices of one row, as long as little is known
        assert np.abs(z - exact).max() < 0.5 and np.sqrt(np.mean((z - exact) ** 2)) < 0.05
        assert alarm.count == 600 and alarm.total <= 600 / 100 and abs(alarm.total - one.total) <= 2


def test_nothing_is_noticed_where_nothing_changes_and_a_change_is_soon() -> None:
    world = World(2)
    with a_live(agent()) as live:
        live.watch_drift(2_000)
        world.play(live, 600)
        before = alarm_of(live).count
        assert alarm_of(live).total == 0 and live.status()["alarms"] == [] == live.status()["warnings"]
        world.change()
        world.play(live, 400)
        alarm, body = alarm_of(live), live.report().body
        assert alarm.alarms["model"].overall and alarm.alarms["model-free"].overall
        assert before < alarm.notices[0].row < before + 100
        [text] = live.status()["alarms"]  # type: ignore[misc]
        assert text.startswith("agent: rewards") and "than predicted (model-free), noticed in row" in text
        assert "(model)" in live.status()["warnings"][0]  # type: ignore[index]
        found: Any = body["drift"]["agent"]  # type: ignore[call-overload,index]
        assert (
            found["judged"] == alarm.count < found["rows"] == 1_000
            and found["notices"][0]["row"] == alarm.notices[0].row
        )
        assert found["at"] is not None and found["mean_time"] == 2_000
        # as wide as the terminal is: lines may break anywhere
        assert "drift of agent: ALARM" in " ".join(str(live.report()).split()) and text in " ".join(str(live).split())
        live.watch_drift()
        assert live.status()["alarms"] == [] and live.report().body["drift"] == {}


@pytest.mark.usefixtures("every_row")
def test_the_same_log_gives_the_same_alarms(tmp_path: Path) -> None:
    clock, world = Clock(), World(3)
    live = a_live(agent(), clock, tmp_path / "live.db", snapshot_every=3)
    live.watch_drift(100)
    world.play(live, 150, clock=clock)
    live.add_arm("other", agent(ma.Linear(0.3)))
    live.erase(live.decide(np.ones(D)).id)
    world.play(live, 150, clock=clock)
    live.snapshot()
    state = live.state_bytes()
    assert alarm_of(live, "other").total > 0 and alarm_of(live).count == 300 > alarm_of(live, "other").count == 150
    assert from_origin(live) == state and all(one == state for one in from_every_snapshot(live))
    live.compact(0.0)
    live.close()
    with a_live(clock=clock, path=tmp_path / "live.db") as again:
        assert again.state_bytes() == state and ma.live.replay(again.database).ok
        assert "other" in again.report().body["drift"]  # type: ignore[operator]
        again.remove_arm("other")
        assert list(again.report().body["drift"]) == ["agent"]  # type: ignore[arg-type]


@pytest.mark.usefixtures("every_row")
def test_what_was_replaced_or_refused_is_no_evidence() -> None:
    with a_live(agent(ma.Logistic()), aggregate="sum") as live:
        for number in range(30):
            made = live.decide(np.full(D, 0.1 * number), id=f"click {number}")
            live.reward(made.id, float(number % 2), id="first")
        live.learn()
        live.reward(made.id, -1.0, id="more")  # from 1 to 0
        refused = live.decide(np.ones(D))
        live.reward(refused.id, 0.5)  # no click
        live.learn()
        assert live.status()["replaced"] == 1 and live.status()["rows_refused"] == 1
        found: Any = live.report().body["drift"]
        assert found["agent"]["judged"] == 30 and list(found["agent"]["alarms"]) == ["model-free"]


def test_counts_without_a_range_are_not_watched() -> None:
    counting = ma.agents.GLMTS(ma.ActionPrior(K, np.zeros(D), 0.1 * np.eye(D)), ma.beliefs.Poisson(), seed=0)
    with a_live(counting) as live:
        live.reward(live.decide(np.ones(D)).id, 2.0)
        live.learn()
        assert "not watched" in str(live.report()) and live.status()["alarms"] == []


def test_contexts_that_nobody_can_learn_from_break_nothing() -> None:
    with a_live(agent()) as live:
        for x in (np.full(D, 1e99), np.ones(D), np.full(D, -1e99)):
            live.reward(live.decide(x, candidates=[0]).id, 1e99)
        live.learn()
        assert live.status()["learned"] == 3 and alarm_of(live).count + live.status()["rows_refused"] <= 3  # type: ignore[operator]


def test_rows_with_more_doubt_than_usual_are_left_out() -> None:
    """With a prior three times too wide, what is chosen is what is overrated; that is not a change."""
    rng, alarms_of = np.random.default_rng(8), {}
    for doubt in (1.0, drift_watch.DOUBT):
        world, total = World(8), 0
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(drift_watch, "DOUBT", doubt)
            for run in range(3):
                learner, watch = agent(), DriftWatch(1_000)
                arm, world.theta = AgentArm(learner), 0.3 * rng.normal(size=(K, D))
                state: Any = SimpleNamespace(agreed=SettingsInTime(Settings()), settings=Settings())
                for number in range(40):
                    X = world.rng.normal(size=(25, D))
                    chosen = learner.decide(X, draw=1000 * run + number)
                    rows = [
                        TaughtRow(DecisionRecord("", None, "", 0, 0, Question(x), [a]), a, None, world.reward(x, a))
                        for x, a in zip(X, np.asarray(chosen).tolist(), strict=True)
                    ]
                    for some in watch.judged(state, "agent", arm, rows):
                        _taught(arm, some.rows)
                        some.told([True] * len(some.rows), 0.0)
                found = watch.arms["agent"]
                assert found.alarm is not None and found.alarm.count + found.left_out == found.seen == 1_000
                total += found.alarm.alarms["model-free"].overall
        alarms_of[doubt] = total
    assert alarms_of[1.0] > 2 >= alarms_of[drift_watch.DOUBT]


# ---- events with a default


def test_with_a_default_events_are_judged_when_they_settle() -> None:
    """Rewards come at once and defaults after their time: in the order of arrival they would first be too high."""
    clock, rng = Clock(), np.random.default_rng(4)
    coins = ma.agents.GLMTS(ma.ActionPrior(3, np.zeros(1), np.eye(1)), seed=0)
    with a_live(coins, clock, default=0.0, wait=5.0) as live:
        live.watch_drift(500)
        for number in range(1_500):
            made = live.decide([1.0], id=f"then {number}")
            if rng.random() < 0.3:
                live.reward(made.id)
            clock.now += 1.0
            if number % 5 == 4:
                live.learn()
        found: Any = live.report().body["drift"]
        assert 500 < found["agent"]["judged"] < found["agent"]["rows"] < 1_500 and live.status()["alarms"] == []
        for number in range(1_500):  # nobody clicks any more
            live.decide([1.0], id=f"now {number}")
            clock.now += 1.0
            if number % 5 == 4:
                live.learn()
        assert "lower than predicted" in live.status()["alarms"][0]  # type: ignore[index]
        assert from_origin(live) == live.state_bytes()


def test_too_many_that_wait_are_waited_for() -> None:
    clock = Clock()
    with a_live(agent(), clock, default=0.0, wait=50.0) as live:
        World(5).play(live, 200, clock=clock)
        found: Any = live.report().body["drift"]
        assert found["agent"]["judged"] == 0 < found["agent"]["rows"] and "few are waiting" in str(live.report())


def test_a_learned_row_of_a_settled_event_is_left_out() -> None:
    """Rewards that were learned are judged as if they had not been: a static world gives standard normal residuals."""
    clock, world = Clock(), World(6)
    with a_live(agent(), clock, default=0.0, wait=0.0) as live:
        live.watch_drift(300)
        world.play(live, 1_500, learn_every=1, clock=clock)
        alarm = alarm_of(live)
        assert alarm.count > 500 and alarm.total <= 1_500 / 300


# ---- stores of earlier versions


@pytest.mark.usefixtures("every_row")
def test_a_store_of_an_earlier_version_is_not_watched_until_somebody_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its snapshots know of no alarms: whoever folds its log from any of them must come to the same bytes."""
    clock, world = Clock(), World(7)
    with monkeypatch.context() as patch:
        patch.setattr(opening, "State", lambda *args, **told: State(*args, watch=Watch(drift=None), **told))
        live = a_live(agent(), clock, tmp_path / "live.db", snapshot_every=2)
    world.play(live, 60, 20, clock)
    spec, _, _ = packing.unpack(live.state_bytes())
    assert "drift" not in spec["watch"] and live.report().body["drift"] is None and live.status()["alarms"] == []
    live.close()
    with a_live(clock=clock, path=tmp_path / "live.db", snapshot_every=2) as again:
        assert from_origin(again) == again.state_bytes() and ma.live.replay(again.database).ok
        again.watch_drift()
        world.play(again, 60, 20, clock)
        assert alarm_of(again).count == 60 and from_origin(again) == again.state_bytes()
        assert all(one == again.state_bytes() for one in from_every_snapshot(again))
        assert ma.live.replay(again.database).ok
        again.watch_drift(None)
        assert again.report().body["drift"] is None


@pytest.mark.parametrize("mean_time", [0, float("nan"), "often", True])
def test_a_wrong_mean_time_is_refused(mean_time: Any) -> None:
    with a_live() as live, pytest.raises(InvalidInput, match="mean_time"):
        live.watch_drift(mean_time)


def test_words_name_actions_as_callers_do() -> None:
    state: Any = {"checks": {}, "routing": None, "challenges": {"made": []}}
    alarm = DriftAlarm(10)
    alarm.update([3] * 60, [2.0] * 60, [0.5] * 60)
    state["drift"] = [10.0, 0, {"a": [alarm.spec(), 60, 0, 0.1, 5.0]}]
    assert "a: rewards are higher than predicted (model-free)" in alarms(state)[0] and "more since" in alarms(state)[0]
    assert drifted(state, "model", lambda row: f"shoe {row}")[0].startswith("a: rewards are higher")
