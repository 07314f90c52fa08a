"""Challenges: who is better is promoted, who is not is not, and who falls is rolled back; the same to the last bit, replayed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

import manyarms as ma
from live.settled import UNIT_REWARDS, Clock, opened, play, seen, state_of
from manyarms.errors import InvalidInput, LiveError
from manyarms.live import packing, snapshots
from manyarms.live.challenge import Challenge, Challenges
from manyarms.live.deployment import Deployment
from manyarms.live.records import Chunk
from manyarms.live.settings import Settings
from manyarms.live.state import State
from manyarms.live.watched import Watched
from manyarms.policies import FixedPolicy
from manyarms.sequential import PairedGain, spent_alpha

COIN = [0.5, 0.5]


def challenged(alpha: float = 0.2, margin: float = 0.0, **told: Any) -> State:
    """A state in which "new" challenges "agent" from version 1 on."""
    state = state_of(Deployment({"agent": 1.0}, shadows=("new",)), version=1)
    state.watch.challenges.start(
        state, Challenge("new", alpha, margin, told.get("guard", 0.02), told.get("mean_time", 100), False)
    )
    return state


def rounds(number: int, rng: np.random.Generator, live: Any, new: Any, means: Any) -> list[Watched]:
    """Events decided by probabilities `live` over actions, with a challenger of probabilities `new`."""
    actions = rng.choice(len(live), size=number, p=live)
    rewards = (rng.random(number) < np.asarray(means)[actions]).astype(float)
    return [seen(reward, live[a], new[a], action=int(a)) for a, reward in zip(actions, rewards.tolist(), strict=True)]


# ---- certificates


def test_one_that_is_not_better_is_ever_promoted_no_more_often_than_stated() -> None:
    rng, alpha, worlds = np.random.default_rng(1), 0.4, 150
    promoted = 0
    for _ in range(worlds):  # the same mean reward, whatever is done: weights between 0.2 and 8.2
        state = challenged(alpha)
        state.watch.challenges.settle(state, rounds(400, rng, [0.9, 0.1], [0.18, 0.82], [0.5, 0.5]))
        promoted += state.deployment.champion == "new"
    assert stats.binom.sf(promoted - 1, worlds, spent_alpha(alpha, 1)) > 1e-6


def test_one_that_is_better_is_promoted_and_one_that_is_worse_is_not() -> None:
    rng = np.random.default_rng(2)
    for means, winner in (([0.2, 0.8], "new"), ([0.8, 0.2], "agent")):
        state = challenged()
        state.watch.challenges.settle(state, rounds(1500, rng, COIN, [0.1, 0.9], means))
        assert state.deployment.champion == winner
        assert set(state.deployment.names) == {"agent", "new"}  # the other one looks on


def test_it_is_promoted_at_the_first_event_that_certifies_it_however_events_are_cut() -> None:
    rows = rounds(600, np.random.default_rng(3), COIN, [0.1, 0.9], [0.2, 0.8])
    gain, level, first = PairedGain(), spent_alpha(0.2, 1), None
    for number, row in enumerate(rows, 1):
        gain.update(row.shadows["new"][1] / row.chance, row.reward)  # type: ignore[operator,arg-type]
        if gain.certified(level):
            first = number
            break
    assert first is not None
    kept = set()
    for size in (1, 7, 600):
        state = challenged()
        for start in range(0, len(rows), size):
            state.watch.challenges.settle(state, rows[start : start + size])
            state.watch.challenges = Challenges.from_json(state.watch.challenges.to_json())
        [made] = state.watch.challenges.made
        assert made.gain.count == first and made.certified is not None and made.certified["gain"] >= 0
        kept.add(str(state.watch.to_json()))
    assert len(kept) == 1


def test_the_margin_is_what_the_gain_must_be_above() -> None:
    rows = rounds(1500, np.random.default_rng(4), COIN, [0.1, 0.9], [0.3, 0.7])  # a gain of 0.16
    for margin, winner in ((-0.5, "new"), (0.3, "agent")):
        state = challenged(margin=margin)
        state.watch.challenges.settle(state, rows)
        assert state.deployment.champion == winner


def test_events_that_say_nothing_are_left_out() -> None:
    state = challenged()
    [challenge] = state.watch.challenges.made
    state.watch.challenges.settle(
        state,
        [
            seen(1.0, 0.5, 0.9, version=0),  # decided before it began
            seen(1.0, 0.5, 0.9, fresh=False),
            seen(1.0, 0.5, 0.9, held_out=True),
            seen(1.0, 0.5, 0.9, treated=None),
            seen(1.0, 0.5, 0.9, shadows={}),
        ],
    )
    assert challenge.gain.count == 0
    state.watch.challenges.settle(state, [seen(1.0, 0.5, None), seen(1.0, 0.5, 0.5)])
    assert (challenge.gain.count, challenge.unable) == (2, 1)
    assert challenge.gain.better.total == 0.0 + 0.5  # who has no answer earns the least; who agrees gains nothing


def test_challenges_spend_alpha_and_begin_anew_when_other_arms_are_deployed() -> None:
    state = challenged()
    [first] = state.watch.challenges.made
    state.watch.challenges.settle(state, rounds(20, np.random.default_rng(5), COIN, COIN, COIN))
    state.chunk = Chunk(version=2)
    state.deploy(Deployment({"agent": 1.0}, holdout=0.1, holdout_arm="agent"))  # the same arms decide
    assert first.gain.count == 20 and first.level == spent_alpha(0.2, 1) and "new" in state.deployment.shadows
    state.deploy(Deployment({"agent": 0.5, "new": 0.5}))
    assert first.gain.count == 0 and first.since == 2 and first.level == spent_alpha(0.2, 2)
    state.deploy(Deployment({"new": 1.0}))
    assert first.state == "overtaken"


# ---- the guard


def guarded() -> tuple[State, Challenge]:
    state = challenged()
    state.watch.challenges.settle(state, rounds(1500, np.random.default_rng(6), COIN, [0.02, 0.98], [0.2, 0.9]))
    [made] = state.watch.challenges.made
    assert made.state == "promoted" and made.detector is not None
    state.chunk = Chunk(version=2)
    return state, made


def test_a_champion_that_falls_is_rolled_back() -> None:
    state, made = guarded()
    own = {"arm": "new", "shadows": {}, "version": 2}
    state.watch.challenges.settle(state, [seen(0.0, 1.0, None, **{**own, "version": 0})] * 500)  # decided before
    state.watch.challenges.settle(state, [seen(0.0, 1.0, None, **{**own, "arm": "agent"})] * 500)
    assert made.state == "promoted" and made.detector is not None and made.detector.count == 0
    state.watch.challenges.settle(state, [seen(0.0, 1.0, None, **own)] * 500)
    assert made.state == "rolled back" and state.deployment.champion == "agent"
    assert made.detector.alarm == made.detector.count  # and nothing after it


def test_a_champion_that_does_as_promised_stays() -> None:
    state, made = guarded()
    assert made.detector is not None
    kept, deployed, rng = state.watch.challenges.to_json(), state.deployment, np.random.default_rng(7)
    alarms, worlds, events = 0, 150, 40
    for _ in range(worlds):
        state.watch.challenges, state.deployment = Challenges.from_json(kept), deployed
        rewards = (rng.random(events) < made.detector.mean).astype(float).tolist()  # just what is asked of it
        state.watch.challenges.settle(state, [seen(r, 1.0, None, arm="new", version=2) for r in rewards])
        alarms += state.deployment.champion == "agent"
    # M_t - t is a supermartingale: an alarm within n events has a probability of at most n / mean_time
    assert stats.binom.sf(alarms - 1, worlds, events / made.detector.mean_time) > 1e-6


def test_the_roll_back_goes_to_what_was_deployed_before_the_promotion() -> None:
    state, made = guarded()
    state.deploy(Deployment({"new": 1.0}, holdout=0.1, holdout_arm="agent"))
    assert made.state == "promoted"  # another hold-out is no other champion
    state.watch.challenges.settle(state, [seen(0.0, 1.0, None, arm="new", version=2)] * 500)
    assert made.state == "rolled back" and state.deployment.shares == {"agent": 1.0}


def test_the_guard_ends_when_something_else_is_deployed() -> None:
    state, made = guarded()
    state.deploy(Deployment({"agent": 0.5, "new": 0.5}))
    state.watch.challenges.settle(state, [seen(0.0, 1.0, None, arm="new", version=2)] * 500)
    assert made.state == "overtaken" and state.deployment.shares == {"agent": 0.5, "new": 0.5}


# ---- on a store


def test_from_the_challenge_to_the_roll_back_and_replayed() -> None:
    # no seed decides: six events cannot certify anything at this level, and 400 leave eight standard deviations
    rng = np.random.default_rng(8)
    with opened(FixedPolicy(COIN), Clock()) as live:
        assert live.challenge(FixedPolicy([0.02, 0.98]), name="new", margin=0.2, mean_time=500) == "new"
        play(live, [0.0, 1.0], 6, rng, each=2)
        live.snapshot()  # in the middle of it
        running = packing.pack_state(snapshots.from_origin(live.database))
        assert running == live.state_bytes() and live.challenges()[0]["state"] == "running"
        assert packing.pack_state(packing.unpack_state(running)) == running
        play(live, [0.0, 1.0], 400, rng)
        [made] = live.challenges()
        assert made["state"] == "promoted" and live.deployment.champion == "new" and made["certified"]["gain"] >= 0.2
        assert live.decide([1.0]).arm == "new"
        play(live, [0.0, 0.0], 250, rng)
        assert live.challenges()[0]["state"] == "rolled back" and live.deployment.champion == "agent"
        assert "rolled back" in str(live.report()) and len(live.status()["alarms"]) == 1
        assert packing.pack_state(snapshots.from_origin(live.database)) == live.state_bytes()
        assert packing.pack_state(snapshots.state_of(live.database)) == live.state_bytes()


def test_an_erased_event_is_none_of_the_challenge() -> None:
    with opened(FixedPolicy(COIN)) as live:
        live.challenge(FixedPolicy([0.1, 0.9]), name="new")
        for number in range(5):
            live.decide([1.0], id=str(number))
        live.learn()
        assert live.challenges()[0]["events"] == 5
        live.erase("3")
        assert live.challenges()[0]["events"] == 4 and live.report().body["events"] == 4
        assert packing.pack_state(snapshots.from_origin(live.database)) == live.state_bytes()


def test_an_erasure_may_undo_a_promotion_and_nothing_else_breaks() -> None:
    with opened(FixedPolicy(COIN)) as live:
        live.challenge(FixedPolicy([0.0, 1.0]), name="new", margin=0.2)  # its gain is 0.5
        won, number = [], 0
        while live.deployment.champion != "new":
            number += 1
            decision = live.decide([1.0], id=f"event {number}")
            live.reward(decision.id, float(decision.action))
            won += [decision.id] * decision.action
            live.learn()
            assert number < 1_000
        promoted = live.version
        play(live, [0.0, 1.0], 20, np.random.default_rng(0), each=5)
        live.erase(won[-1])
        replayed = snapshots.from_origin(live.database)
        assert packing.pack_state(replayed) == live.state_bytes()
        assert snapshots.from_origin(live.database, promoted).deployment.champion == "agent"
        assert live.challenges()[0]["state"] == "running"  # events that the challenger decided say nothing about it
        play(live, [0.0, 1.0], 300, np.random.default_rng(1))
        assert live.deployment.champion == "new"
        assert packing.pack_state(snapshots.from_origin(live.database)) == live.state_bytes()


def test_a_learning_challenger_is_seen_as_it_was_before_each_event() -> None:
    prior = ma.ActionPrior(actions=2, mean=[0.5], covariance=[[1.0]])
    with opened(FixedPolicy(COIN)) as live:
        live.challenge(ma.agents.EpsilonGreedyAgent(prior, epsilon=0.2, seed=0), name="new")
        play(live, [0.1, 0.9], 30, np.random.default_rng(9), each=1)
        assert live.challenges()[0]["events"] == 30
        chances = {row.details["shadows"]["new"][1] for row in map(live.event, _ids(live))}
        assert chances <= {0.1, 0.9}


def _ids(live: ma.live.Live) -> list[str]:
    return [row[0] for row in live.database.read("SELECT id FROM decisions")]


def test_withdrawing() -> None:
    with opened(FixedPolicy(COIN)) as live:
        live.challenge(FixedPolicy([0.1, 0.9]), name="new")
        with pytest.raises(LiveError, match="challenging already"):
            live.challenge("new")
        live.withdraw("new")
        assert live.challenges()[0]["state"] == "withdrawn" and live.deployment.shadows == ()
        with pytest.raises(LiveError, match="not over"):
            live.withdraw("new")
        live.challenge("new", alpha=0.1)
        assert [one["alpha"] for one in live.challenges()] == [spent_alpha(0.05, 1), spent_alpha(0.1, 2)]


def test_what_cannot_be_certified_is_refused_before_anything_is_taken_in() -> None:
    prior = ma.ActionPrior(actions=2, mean=[0.5], covariance=[[1.0]])
    sampling, fixed = ma.LinTS(prior, seed=0), FixedPolicy(COIN)
    for options, match in (({"default": None}, "no default"), ({"reward_range": None}, "no reward_range")):
        with opened(fixed, **options) as live, pytest.raises(LiveError, match=match):
            live.challenge(fixed, name="new")
    with opened(sampling) as live, pytest.raises(LiveError, match="propensities of agent"):
        live.challenge(fixed, name="new")
    with opened(fixed) as live:
        with pytest.raises(LiveError, match="propensities of new"):
            live.challenge(sampling, name="new")
        with pytest.raises(InvalidInput, match="other than the one that is deployed"):
            live.challenge("agent")
        for wrong in (
            {"alpha": 0},
            {"alpha": 1},
            {"margin": 1},
            {"guard": -0.1},
            {"mean_time": 0.5},
            {"name": None},
            {"name": ""},
        ):
            with pytest.raises(InvalidInput):
                live.challenge(fixed, **({"name": "new"} | wrong))  # type: ignore[arg-type]
        for nothing in ("nobody", 3, None):
            with pytest.raises(InvalidInput):
                live.challenge(nothing)  # type: ignore[arg-type]
        live.deploy("baseline", shadows=["agent"])
        with pytest.raises(LiveError, match="baseline"):
            live.challenge("agent")
        assert live.status()["arms"] == ["agent"]


def test_rewards_in_other_units() -> None:
    settings = Settings(default=-10.0, wait=0.0, reward_range=(-10.0, 30.0))
    assert settings.shrunk(4.0) == 0.1 and UNIT_REWARDS.shrunk(4.0) == 4.0
    with opened(FixedPolicy(COIN), default=-10.0, reward_range=(-10.0, 30.0)) as live:
        live.challenge(FixedPolicy(COIN), name="new", margin=4.0, guard=2.0)
        [made] = live.challenges()
        assert (made["margin"], made["gain"], made["gain_low"]) == (4.0, 0.0, -40.0)
        for _ in range(10):
            live.decide([1.0])
        live.learn()
        assert live.report().body["values"]["agent"]["mean"] == -10.0
