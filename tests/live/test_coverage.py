"""Inverse propensity weights of a live log give the values that are known, at the rate that an interval says, filters and all.

Agents are frozen here, so that events are independent; test_adaptive_logs.py has agents that learn. Intervals are mean ± 1.96
standard errors of w·r. With a weight W that comes with probability q, their law is near a normal one once n q is some tens.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import manyarms as ma
from live.simulated import ACTIONS, DIM, SALT, SIX, Rows, World, a_view, logs, many_logs, of_agent, plausible
from live.simulated import plain_interval as interval
from manyarms.agents import Agent
from manyarms.agents.draws import NumberedDraws
from manyarms.live import log
from manyarms.live.agent_arm import AgentArm
from manyarms.live.deciding import decided, propensities
from manyarms.live.deployment import Deployment
from manyarms.live.policy_arm import PolicyArm
from manyarms.live.propensities import PropensityWorker
from manyarms.live.records import draw_number
from manyarms.live.state import View
from manyarms.policies import SoftmaxPolicy

LEVEL = 0.95
WORLD = World()
rules = ma.agents


def policy_arm() -> PolicyArm:
    """A policy of its own making, less certain than any agent."""
    scores = 0.5 * np.random.default_rng(3).normal(size=(ACTIONS, DIM))
    return PolicyArm(SoftmaxPolicy(scores), NumberedDraws.seeded(3), frozenset({ACTIONS - 1}))


def shared(epsilon: float) -> View:
    """Two arms with their shares, and a hold-out."""
    arms = {
        "one": AgentArm(WORLD.agent(rules.EpsilonGreedy(epsilon), seed=1)),
        "other": AgentArm(WORLD.agent(rules.EpsilonMixed(rules.UCB(1.0), epsilon), rows=30, seed=1)),
        "kept": policy_arm(),
    }
    return a_view(arms, Deployment({"one": 0.7, "other": 0.3}, 0.1, "kept"))


EXACT: dict[str, Callable[[float], View]] = {
    "uniform": lambda epsilon: of_agent(WORLD.agent(rules.Uniform())),
    "epsilon-greedy": lambda epsilon: of_agent(WORLD.agent(rules.EpsilonGreedy(epsilon))),
    "epsilon-mixed": lambda epsilon: of_agent(WORLD.agent(rules.EpsilonMixed(rules.UCB(1.0), epsilon))),
    "ensemble": lambda epsilon: of_agent(WORLD.agent(rules.Ensemble(8, epsilon))),
    "policy": lambda epsilon: a_view({"policy": policy_arm()}),
    "shares": shared,
}
"""Views by epsilon."""


def covers(rows: Rows, target: np.ndarray, most: float) -> tuple[int, float]:
    """How often the plain interval covers the known value; and by how many standard errors the mean of all is off.

    Weights are at most `most` and have the mean 1, both checked.
    """
    weights, value = rows.weights(target), WORLD.value(target)
    assert weights.max() <= most * (1 + 1e-9)
    assert abs(weights.mean() - 1) <= SIX * weights.std() / np.sqrt(weights.size)
    x = weights * rows.rewards
    mean, half = interval(x)
    return int((np.abs(mean - value) <= half).sum()), float((x.mean() - value) / (x.std() / np.sqrt(x.size)))


def check_covers(rows: Rows, target: np.ndarray, most: float) -> int:
    covered, off = covers(rows, target, most)
    assert abs(off) <= SIX
    assert plausible(covered, len(rows.asked), LEVEL)
    return covered


# ---- exact propensities


@pytest.mark.parametrize("kind", EXACT)
def test_propensities_sum_to_one_over_what_the_filters_leave(kind: str) -> None:
    """Over the eligible actions, for a decision's own draw; all others have 0, or are refused as retired."""
    view = EXACT[kind](0.3)
    for place, asked in enumerate(WORLD.questions):
        record = decided(view, SALT, asked, f"event {place}", None, None, False)
        chances = {}
        for action in range(ACTIONS - 1):
            object.__setattr__(record, "actions", [action])
            found = propensities(view, record)
            chances[action] = found["propensity"]
            assert found["propensity_kind"] == "exact" and found["inclusion"] == pytest.approx(found["propensity"])
        assert sum(chances.values()) == pytest.approx(1.0, abs=1e-12)
        positive = {action for action, chance in chances.items() if chance > 0}
        assert positive == set(WORLD.eligible[place].tolist())


@pytest.mark.parametrize(("kind", "units"), [*((kind, 0) for kind in EXACT), ("shares", 1)])
def test_known_values_are_covered(kind: str, units: int) -> None:
    """25 logs of 40 events with epsilon 0.5; the value of uniform play."""
    rows = logs(WORLD, EXACT[kind](0.5), 25, 40, seed=11, units=units)
    check_covers(rows, WORLD.uniform(), 20.0)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "units"), [("ensemble", 0), ("policy", 0), ("shares", 0), ("shares", 1)])
def test_known_values_are_covered_in_longer_logs(kind: str, units: int) -> None:
    """40 logs of 1,500 events with epsilon 0.1: weights of up to 10, and of up to 100."""
    rows = logs(WORLD, EXACT[kind](0.1), 40, 1500, seed=12, units=units)
    check_covers(rows, WORLD.uniform(), 100.0)
    contrary = WORLD.contrary(WORLD.agent(rules.Greedy()))
    check_covers(rows, contrary, 100.0)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["epsilon-greedy", "epsilon-mixed", "uniform"])
def test_known_values_are_covered_with_weights_of_100(kind: str) -> None:
    """400 logs of 2,500 events; an action that the agent plays in 1 of 100 of them: epsilon 0.1 with up to ten candidates."""
    decision = {
        "epsilon-greedy": rules.EpsilonGreedy(0.1),
        "epsilon-mixed": rules.EpsilonMixed(rules.UCB(1.0), 0.1),
        "uniform": rules.Uniform(),
    }[kind]
    agent = WORLD.agent(decision)
    contrary = WORLD.contrary(agent)
    rows = many_logs(WORLD, agent, 400, 2500, seed=13)
    if kind != "uniform":
        assert rows.weights(contrary).max() > 99
    check_covers(rows, contrary, 100.0)
    check_covers(rows, WORLD.uniform(), 100.0)


# ---- estimated propensities


def thompson(kind: str) -> Agent:
    """Thompson sampling, with a parameter for each action, and with a root that they share."""
    if kind == "LinTS":
        return WORLD.agent(rules.Thompson())
    prior = ma.HierarchicalPrior(ACTIONS, np.zeros(DIM), 0.5 * np.eye(DIM), 0.5 * np.eye(DIM))
    agent = ma.HierTS(prior, ma.beliefs.Linear(0.5), seed=1)
    rng = np.random.default_rng(5)
    agent.observe(rng.normal(size=(20, DIM)), rng.integers(ACTIONS - 1, size=20), rng.random(20))
    agent.retire([ACTIONS - 1])
    return agent


def check_estimated(kind: str, runs: int, events: int, draws: int | None = None) -> tuple[int, float, float]:
    """Off by no more than the bias that 1/p' has, about cv², and six standard errors; and covered at the nominal rate.

    The bias is a share of each weight; where it is small beside an interval's width it does not matter to coverage.
    """
    agent = thompson(kind)
    rows = logs(WORLD, of_agent(agent), runs, events, seed=14, draws=draws)
    target = WORLD.contrary(agent)
    assert (rows.propensities > 0).all() and (rows.errors > 0).all()
    weights, value = rows.weights(target), WORLD.value(target)
    assert weights.max() <= 100
    squared = (rows.errors / rows.propensities) ** 2
    assert abs(weights.mean() - 1) <= 2 * (weights * squared).mean() + SIX * weights.std() / np.sqrt(weights.size)
    x = weights * rows.rewards
    bias = float((x * squared).mean())
    noise = x.std() / np.sqrt(x.size)
    assert abs(x.mean() - value) <= 2 * bias + SIX * noise  # twice: cv is itself estimated
    mean, half = interval(x)
    covered = int((np.abs(mean - value) <= half).sum())
    assert plausible(covered, runs, LEVEL)
    return covered, bias / value, float((x.mean() - value) / noise)


@pytest.mark.parametrize("kind", ["LinTS", "HierTS"])
def test_thompson_sampling_by_its_estimated_propensities(kind: str) -> None:
    check_estimated(kind, 10, 40)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["LinTS", "HierTS"])
def test_thompson_sampling_by_its_estimated_propensities_in_longer_logs(kind: str) -> None:
    check_estimated(kind, 100, 200)


# ---- the road through the store


def test_the_store_gives_back_what_was_decided() -> None:
    """Decisions, propensities and rewards read from the store are those of `decided`, which the other tests call."""
    exact = WORLD.agent(rules.EpsilonGreedy(0.3))
    with ma.live.open(":memory:", exact, default=0.0, wait=0.0, reward_range=(0, 1), background=False) as live:
        live.add_arm("sampling", WORLD.agent(rules.Thompson()), learns=False)
        live.sync()
        weights = in_and_out(live, 40, "exact")
        live.deploy({"agent": 0.5, "sampling": 0.5})
        live.sync()
        weights += in_and_out(live, 12, "estimated")
        assert all(weight > 0 for weight in weights)


def in_and_out(live: ma.live.Live, events: int, kind: str) -> list[float]:
    """Decide through the store, and compare what it has with what the view says."""
    rng = np.random.default_rng(8)
    view, target, weights = live._learner.view, WORLD.uniform(), []
    for number in range(events):
        place = int(rng.integers(len(WORLD.questions)))
        asked = WORLD.questions[place]
        made = live.decide(asked.context, candidates=asked.candidates, exclude=asked.exclude, id=f"{kind} {number}")
        reward = float(rng.random() < WORLD.means[place, made.action])
        if reward:  # those without are settled by the default
            live.reward(made.id, reward)
        PropensityWorker(live.database).work(share=False)
        record = live.event(made.id)
        again = decided(view, live._salt, asked, made.id, None, None, False)
        assert (record.actions, record.arm, record.draw) == (again.actions, again.arm, again.draw)
        assert (record.propensity, record.propensity_kind) == (again.propensity, again.propensity_kind)
        logged = record.propensity
        if kind == "estimated":
            assert logged is None
            found = propensities(view, record)
            [(logged, error)] = live.database.read(
                "SELECT propensity, error FROM propensities WHERE decision = ?", (record.position,)
            )
            assert (logged, error) == (found["propensity"], found["error"])
        assert logged is not None
        weights.append(target[place, made.action] / logged)
        with live.database.reading() as reader:
            kept = log.rewards_of(reader, [record.position], record.position + 10)
        assert [r.value for rs in kept.values() for r in rs] == ([reward] if reward else [])
    return weights


# ---- units and arms


def test_events_of_one_unit_are_one_draw() -> None:
    """The propensity is right for each event, but the unit is what must be counted: asked again, it does the same again.

    So an interval over n events of each of the units is too short by the square root of n.
    """
    view = EXACT["shares"](0.5)
    arms = set()
    for number in range(40):
        asked = WORLD.questions[number % len(WORLD.questions)]
        same = [decided(view, SALT, asked, f"{number}, {time}", f"{number}", None, False) for time in range(3)]
        assert len({(record.arm, *record.actions, record.propensity, record.arm_propensity) for record in same}) == 1
        arms.add(same[0].arm)
        given = {name: view.arms[name].propensity(asked, same[0].actions[0], 0).value for name in view.arms}
        assert same[0].arm_propensity == pytest.approx(given[same[0].arm], abs=1e-15)
        mixed = sum(share * given[name] for share, name in view.deployment.laws)
        assert same[0].propensity == pytest.approx(mixed, abs=1e-15)
    assert len(arms) > 1


def test_arms_with_the_same_seed_draw_apart() -> None:
    """What an ensemble has drawn, given which its propensities are exact, must say nothing of what another arm does."""
    numbers = {draw_number("event", unit, 3, arm) for unit in (None, "anna") for arm in ("one", "other")}
    assert len(numbers) == 4
    same = [AgentArm(WORLD.agent(rules.Thompson(), seed=7)) for _ in range(2)]
    view = a_view(dict(zip(("one", "other"), same, strict=True)), Deployment({"one": 1.0}, shadows=("other",)))
    records = [decided(view, SALT, WORLD.questions[1], f"event {i}", None, None, False) for i in range(60)]
    assert any(record.details["shadows"]["other"][0] != record.actions[0] for record in records)
