"""What is watched while events settle: values, the hold-out's lift, the ratio of arms, propensities, and shadows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

import manyarms as ma
from live.settled import UNIT_REWARDS, event, opened, play, state_of
from manyarms.live import packing, snapshots
from manyarms.live.deployment import Deployment
from manyarms.live.learned_rows import SettledEvent
from manyarms.live.records import Chunk
from manyarms.live.report import Report, alarms
from manyarms.live.settings import Settings
from manyarms.live.state import State
from manyarms.live.watch import Watch
from manyarms.policies import FixedPolicy

COIN = [0.5, 0.5]
ONE = Deployment({"agent": 1.0})


def report(state: State) -> dict[str, Any]:
    """What the state's monitors say."""
    made = Report.of(state.watch.to_json(), state.settings, state.chunk.version)
    assert str(made)
    return made.body


# ---- which events are used


def test_events_that_weights_cannot_be_made_of_are_counted_by_reason() -> None:
    state = state_of(ONE)
    events = [
        event(1.0, propensity=0.5, greedy=True),
        event(1.0, propensity_kind="estimated", propensity=0.5, greedy=True),
        event(1.0, propensity_kind=None, propensity=None),
        event(1.0, propensity=0.5, greedy=True, unit="u"),
        event(1.0, propensity=0.5, greedy=True, unit="u", repeated="draw"),
        event(1.0, propensity=0.5, greedy=True, unit="u", repeated="unit"),
        event(None, propensity=0.5, greedy=True),
    ]
    state.watch.settle(state, events)
    body = report(state)
    assert body["events"] == 7
    assert body["skipped"] == {"estimated": 1, "no_propensity": 1, "repeated": 1, "no_reward": 1}
    assert body["propensities"]["agent"]["events"] == 4
    assert body["values"]["agent"]["events"] == 6  # of its own rewards, whatever the propensities


@pytest.mark.parametrize("settings", [Settings(default=0.0), Settings(reward_range=(0.0, 1.0))])
def test_without_a_range_or_a_default_it_says_why_there_are_no_values(settings: Settings) -> None:
    state = state_of(Deployment({"agent": 1.0}, holdout=0.5, holdout_arm="old"), settings)
    state.watch.settle(state, [event(0.0, greedy=True)] * 10)
    body = report(state)
    assert body["values"] == {} and body["lift"]["events"] == 0 and "the store has no" in body["unusable"]
    assert body["propensities"]["agent"]["events"] == 10  # needs no rewards
    assert body["sample_ratio"]["events"] == 10


def test_a_store_says_which_events_of_a_unit_are_new() -> None:
    with opened(FixedPolicy(COIN)) as live:
        for unit, expected in (("a", None), ("a", "draw"), (None, None), ("b", None)):
            assert live.event(live.decide([1.0], unit=unit).id).details.get("repeated") == expected
        live.learn()
        first = live.decide([1.0], unit="a", id="once")
        assert live.event(first.id).details["repeated"] == "unit"
        assert live.decide([1.0], unit="a", id="once").id == "once"  # the same event again is no other one
        assert live.event("once").details["repeated"] == "unit"
        live.learn()
        assert live.report().body["skipped"]["repeated"] == 1


# ---- the same, however it is cut


def mixed(number: int, rng: np.random.Generator) -> list[SettledEvent]:
    """Events of a deployment with two arms, a hold-out and a shadow."""
    made = []
    for _ in range(number):
        held_out = bool(rng.random() < 0.2)
        arm = "old" if held_out else "ab"[int(rng.random() < 0.3)]
        shadows = {"s": [int(rng.random() < 0.5), 0.5]} if rng.random() < 0.9 else {"s": [None, None]}
        told = {"held_out": held_out, "arm": arm, "propensity": 0.5, "treated": 0.5, "action": int(rng.random() < 0.5)}
        made.append(event(float(rng.random()), greedy=bool(rng.random() < 0.5), shadows=shadows, **told))
    return made


def test_batches_and_snapshots_change_no_bit() -> None:
    events = mixed(300, np.random.default_rng(0))
    kept = set()
    for size in (1, 11, 300):
        state = state_of(Deployment({"a": 0.7, "b": 0.3}, holdout=0.2, holdout_arm="old", shadows=("s",)))
        for start in range(0, 300, size):
            state.watch.settle(state, events[start : start + size])
            state.watch = Watch.from_json(state.watch.to_json())
        kept.add(str(state.watch.to_json()))
    assert len(kept) == 1
    body = report(state)
    assert body["shadows"]["s"]["unable"] > 0 and body["shadows"]["s"]["value"]["events"] < 300
    assert body["sample_ratio"]["events"] == 300


# ---- arms and the hold-out


def test_the_lift_covers_the_truth_at_all_times() -> None:
    rng, worlds, missed = np.random.default_rng(1), 40, 0
    for _ in range(worlds):
        state = state_of(Deployment({"agent": 1.0}, holdout=0.3, holdout_arm="old"))
        ever = False
        for _ in range(4):
            held_out = rng.random(100) < 0.3
            rewards = rng.random(100) < np.where(held_out, 0.3, 0.6)
            arms = ("agent", "old")
            state.watch.settle(
                state,
                [event(float(r), arm=arms[int(h)], held_out=bool(h)) for h, r in zip(held_out, rewards, strict=True)],
            )
            assert state.watch.holdout is not None and state.watch.holdout.lift is not None
            low, high = state.watch.holdout.lift.interval(0.05)
            ever |= not low <= 0.3 <= high
        missed += ever
    assert stats.binom.sf(missed - 1, worlds, 0.05) > 1e-6
    assert low > 0  # and it says something


def test_broken_routing_is_noticed_and_right_routing_is_not() -> None:
    rng, deployment = np.random.default_rng(2), Deployment({"a": 0.5, "b": 0.5})
    for share, alarm in ((0.5, False), (0.6, True)):
        state = state_of(deployment)
        state.watch.settle(state, [event(arm="ab"[int(u > share)]) for u in rng.random(3000)])
        assert (report(state)["sample_ratio"]["alarm"] is not None) is alarm
        assert alarms(state.watch.to_json()) == ["arms do not get the shares that they should"] * alarm
    # a sticky unit counts once: here one of them comes again and again
    state = state_of(deployment)
    state.watch.settle(state, [event(arm="a", unit="u", repeated="unit")] * 1000)
    assert report(state)["sample_ratio"]["events"] == 0


def test_the_ratio_of_a_store_is_right_with_a_hold_out_by_an_arm_that_has_a_share() -> None:
    with opened(FixedPolicy(COIN)) as live:
        live.add_arm("b", FixedPolicy(COIN))
        live.deploy({"agent": 0.5, "b": 0.5}, holdout=0.2, holdout_arm="agent")
        for number in range(400):
            live.decide([1.0], id=f"event {number}", unit=f"unit {number}" if number % 2 else None)
        live.learn()
        body = live.report().body
        assert [arm["held_out"] for arm in body["sample_ratio"]["arms"]] == [False, False, True]
        assert body["sample_ratio"]["events"] == body["lift"]["events"] == 400
        assert body["sample_ratio"]["p_value"] > 1e-6


def test_other_shares_begin_anew_and_ignore_events_decided_before() -> None:
    state = state_of(Deployment({"a": 0.5, "b": 0.5}, holdout=0.1, holdout_arm="old"))
    state.watch.settle(state, [event(arm="a")] * 5)
    state.chunk = Chunk(version=7)
    state.deploy(Deployment({"a": 0.9, "b": 0.1}, holdout=0.1, holdout_arm="old"))
    state.watch.settle(state, [event(arm="a", version=6)] * 3 + [event(arm="a", version=7)] * 2)
    body = report(state)
    assert body["sample_ratio"]["events"] == 2
    assert body["lift"]["events"] == 10  # the hold-out is the same


# ---- propensities


def test_wrong_propensities_are_noticed_and_right_ones_are_not() -> None:
    rng, best = np.random.default_rng(3), 0.82  # epsilon-greedy with epsilon 0.2 over 10 actions
    greedy = rng.random(2000) < best
    right = state_of(ONE)
    right.watch.settle(right, [event(propensity=best if g else 0.02, greedy=bool(g)) for g in greedy])
    assert report(right)["propensities"]["agent"]["alarm"] is None
    wrong = state_of(ONE)
    wrong.watch.settle(wrong, [event(propensity=0.1, greedy=bool(g)) for g in greedy])  # 1/n logged
    alarm = report(wrong)["propensities"]["agent"]["alarm"]
    assert alarm["side"] == "too small" and alarm["event"] < 100
    assert "ALARM" in str(Report.of(wrong.watch.to_json(), UNIT_REWARDS, 0))
    assert alarms(wrong.watch.to_json()) == ["propensities of agent are too small"]


def test_arms_that_disagree_about_the_best_action_are_no_wrong_propensities() -> None:
    # with the shares in the denominator 1{a = greedy of the arm}/p would have the mean 1.8 here
    prior = ma.ActionPrior(actions=2, mean=[0.5], covariance=[[1.0]])
    agents = [ma.agents.EpsilonGreedyAgent(prior, epsilon=0.2, seed=seed) for seed in (0, 1)]
    for best, agent in enumerate(agents):
        agent.observe([[1.0]] * 50, [best] * 50, [5.0] * 50)
    with opened(agents[0], reward_range=(0.0, 1.0)) as live:
        live.add_arm("b", agents[1], learns=False)
        live.deploy({"agent": 0.5, "b": 0.5})
        for number in range(300):
            live.decide([1.0], id=f"event {number}")
        live.learn()
        checks = live.report().body["propensities"]
        assert sum(check["events"] for check in checks.values()) == 300
        assert all(check["mean_weight"] < 1.5 for check in checks.values())


def test_the_chance_given_that_an_event_is_not_held_out_is_logged() -> None:
    with opened(FixedPolicy([0.1, 0.9])) as live:
        live.add_arm("b", FixedPolicy([0.3, 0.7]))
        live.add_arm("old", FixedPolicy([0.6, 0.4]))
        live.deploy({"agent": 0.5, "b": 0.5}, holdout=0.25, holdout_arm="old")
        record = live.event(live.decide([1.0], candidates=[0]).id)
        assert record.details["treated"] == pytest.approx(1.0)  # one candidate
        record = live.event(live.decide([1.0]).id)
        chance = {0: 0.2, 1: 0.8}[record.actions[0]]
        assert record.details["treated"] == pytest.approx(chance)
        assert record.propensity == pytest.approx(0.75 * chance + 0.25 * {0: 0.6, 1: 0.4}[record.actions[0]])


# ---- shadows


def test_an_apprentice_reports_how_often_it_would_differ() -> None:
    with opened(FixedPolicy([0.0, 1.0])) as live:
        live.deploy("baseline", shadows=["agent"])
        for number in range(20):
            live.decide([1.0], baseline=int(number < 15))
        live.learn()
        shadow = live.report().body["shadows"]["agent"]
        assert (shadow["events"], shadow["differs"]) == (20, 5)
        assert "would differ in 5 of 20 events" in str(live.report())


def test_a_removed_arm_is_forgotten() -> None:
    with opened(FixedPolicy(COIN)) as live:
        live.add_arm("s", FixedPolicy(COIN))
        live.deploy("agent", shadows=["s"])
        live.decide([1.0])
        live.learn()
        assert "s" in live.report().body["shadows"]
        live.deploy("agent")
        live.remove_arm("s")
        assert live.report().body["shadows"] == {}
        assert live.status()["alarms"] == []


def test_replayed_with_everything_watched() -> None:
    prior = ma.ActionPrior(actions=3, mean=[0.5], covariance=[[1.0]])
    with opened(ma.agents.EpsilonGreedyAgent(prior, epsilon=0.3, seed=0)) as live:
        live.add_arm("old", FixedPolicy([0.4, 0.3, 0.3]))
        live.add_arm("s", FixedPolicy([0.2, 0.3, 0.5]))
        live.deploy("agent", holdout=0.2, holdout_arm="old", shadows=["s"])
        live.challenge("s")
        rng = np.random.default_rng(4)
        for unit in ("a", None, "b"):
            play(live, [0.2, 0.5, 0.6], 40, rng, each=7, unit=unit)
        assert packing.pack_state(snapshots.from_origin(live.database)) == live.state_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("rule", [ma.agents.EpsilonGreedy(0.15), ma.agents.Ensemble(draws=8, epsilon=0.15)])
def test_intervals_for_a_fixed_policy_hold_at_all_times_on_the_log_of_an_agent_that_learns(rule: Any) -> None:
    # two contexts, three actions; the logging agent moves to its favourites while the target stays
    means = np.array([[0.2, 0.5, 0.8], [0.7, 0.4, 0.1]])
    target = np.array([0.5, 0.3, 0.2])
    truth = float((means @ target).mean())
    prior = ma.ActionPrior(actions=3, mean=[0.5, 0.5], covariance=np.eye(2).tolist())
    worlds, missed = 30, 0
    for seed in range(worlds):
        rng = np.random.default_rng([5, seed])
        belief = ma.beliefs.belief_of(prior, ma.beliefs.Linear())
        with opened(ma.agents.Agent(belief, rule, seed=seed)) as live:
            live.add_arm("target", FixedPolicy(target))
            live.deploy("agent", shadows=["target"])
            ever = False
            for number in range(400):
                place = int(rng.integers(2))
                decision = live.decide(np.eye(2)[place], id=f"event {number}")
                live.reward(decision.id, float(rng.random() < means[place, decision.action]))
                if number % 10 == 9:
                    live.learn()
                if number % 50 == 49:
                    found = live.report().body["shadows"]["target"]["value"]
                    ever |= not found["low"] <= truth <= found["high"]
            missed += ever
            assert found["events"] == 400 and found["high"] - found["low"] < 0.9
    assert stats.binom.sf(missed - 1, worlds, 0.05) > 1e-6
