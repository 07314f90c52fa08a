"""Logs of agents that learn: what is valid on them, and what is not.

X_t = w_t r_t has the mean V given the past, whatever the logging policy makes of the past: sums of X_t − V are a martingale, and
estimates have no bias. But how fast their variance grows is up to the logging policy: by v/p_t − v² a round. In the clock of its
own variance the sum is a Brownian motion B, and who chooses p_t by looking at the sum chooses when that clock stops, anywhere
between its slowest and its fastest course. So *mean ± 1.96 standard errors after n rounds* is an interval that was looked at all
the time: |B(s)| reaches 1.96 √s somewhere between s and 8 s in 30 % of all cases, though at each s in 5 %.
"""

from __future__ import annotations

import numpy as np
import pytest

import manyarms as ma
from live.simulated import SALT, SIX, World, more_often, of_agent, plain_interval, plausible
from manyarms.live.deciding import decided
from sequential.simulated import ever, most_misses, reached

ALPHA = 0.05


def both_sides(w: np.ndarray, r: np.ndarray, value: float) -> int:
    """How many runs ever have the value outside the interval of `ma.sequential.ValueInterval` at 5 %."""
    return ever(reached(w * r, value, ALPHA / 2) | reached(w * (1 - r), 1 - value, ALPHA / 2))


# ---- an agent that learns


def learning_logs(runs: int, events: int, every: int) -> tuple[World, np.ndarray, np.ndarray, np.ndarray]:
    """Questions, weights of uniform play, and rewards; the agent folds what came, every so many events."""
    world, rng = World(), np.random.default_rng(21)
    target = world.uniform()
    asked = rng.integers(len(world.questions), size=(runs, events))
    weights, rewards = np.empty(asked.shape), np.empty(asked.shape)
    for run in range(runs):
        agent = world.agent(ma.agents.EpsilonGreedy(0.2), rows=1, seed=run)
        waiting: list[tuple[np.ndarray, int, float]] = []
        for t in range(events):
            if t % every == 0:
                if waiting:
                    X, actions, came = (np.array(column) for column in zip(*waiting, strict=True))
                    agent.observe(X, actions, came)
                waiting, view = [], of_agent(agent)
            place = int(asked[run, t])
            record = decided(view, SALT, world.questions[place], f"{run}/{t}", None, None, False)
            assert record.propensity_kind == "exact" and record.propensity is not None
            action = record.actions[0]
            reward = float(rng.random() < world.means[place, action])
            waiting.append((world.questions[place].context, action, reward))
            weights[run, t], rewards[run, t] = target[place, action] / record.propensity, reward
    return world, asked, weights, rewards


def check_learning(runs: int, events: int) -> tuple[int, float]:
    world, _, w, r = learning_logs(runs, events, every=10)
    value = world.value(world.uniform())
    misses = both_sides(w, r, value)
    assert misses <= most_misses(runs, ALPHA)
    off = float(((w * r).mean() - value) / (np.mean(w * r, axis=1).std() / np.sqrt(runs)))
    assert abs(off) <= SIX  # no bias, whatever was learned: runs are independent of each other
    return misses, off


def test_an_agent_that_learns_is_covered_at_all_times() -> None:
    check_learning(12, 100)


@pytest.mark.slow
def test_an_agent_that_learns_is_covered_at_all_times_in_longer_logs() -> None:
    check_learning(100, 400)


def test_the_learning_agent_through_the_store() -> None:
    """The store's own log of an agent that learns: intervals of the object and of the test are the same."""
    world, rng, target = World(), np.random.default_rng(22), World().uniform()
    agent = world.agent(ma.agents.EpsilonGreedy(0.2), rows=1)
    interval, weights, rewards = ma.sequential.ValueInterval(), [], []
    with ma.live.open(":memory:", agent, default=0.0, wait=0.0, reward_range=(0, 1), background=False) as live:
        for t in range(90):
            place = int(rng.integers(len(world.questions)))
            asked = world.questions[place]
            made = live.decide(asked.context, candidates=asked.candidates, exclude=asked.exclude)
            reward = float(rng.random() < world.means[place, made.action])
            live.reward(made.id, reward)
            record = live.event(made.id)
            assert record.propensity_kind == "exact" and record.propensity is not None
            weights.append(target[place, made.action] / record.propensity)
            rewards.append(reward)
            interval.update(weights[-1], reward)
            if t % 10 == 9:
                live.learn()
        assert live.version == 9 and live.status()["learned"] == 90
    value = world.value(target)
    low, high = interval.interval(ALPHA)
    w, r = np.array([weights]), np.array([rewards])
    outside = (reached(w * r, value, ALPHA / 2) | reached(w * (1 - r), 1 - value, ALPHA / 2))[0, -1]
    assert (low <= value <= high) is not bool(outside)


# ---- where the plain interval fails


class Contrary:
    """Logs of one action with reward rate `value`, played with probability `rare` or `often`.

    rule: "rare" or "often" all the time; or "looks": often as soon as the plain interval has left the value, which stops the
    clock of the variance there, and rare else. No knowledge of the value is needed to do harm: a share that is raised when the
    action looks good does half of it.
    """

    def __init__(self, rule: str, runs: int, rounds: int, seed: int, value: float = 0.5) -> None:
        rng = np.random.default_rng(seed)
        rare, often, first = 0.05, 0.95, 200
        self.w, self.r = np.empty((runs, rounds)), np.empty((runs, rounds))
        total, squares = np.zeros(runs), np.zeros(runs)
        for t in range(rounds):
            out = np.zeros(runs, dtype=bool)
            if rule == "looks" and t >= first:
                mean = total / t
                out = (mean - value) ** 2 > 1.96**2 * (squares / t - mean**2) / t
            p = np.where(out if rule == "looks" else rule == "often", often, rare)
            played, reward = rng.random(runs) < p, rng.random(runs) < value
            self.w[:, t], self.r[:, t] = played / p, reward
            x = self.w[:, t] * reward
            total, squares = total + x, squares + x * x

    def misses(self, value: float = 0.5) -> int:
        """Of the plain interval, looked at once, after the last round."""
        mean, half = plain_interval(self.w * self.r)
        return int((np.abs(mean - value) > half).sum())


RUNS, ROUNDS = 600, 2000


@pytest.mark.parametrize("rule", ["rare", "often"])
def test_either_propensity_alone_is_covered_by_the_plain_interval(rule: str) -> None:
    assert plausible(Contrary(rule, RUNS, ROUNDS, seed=31).misses(), RUNS, ALPHA)


def test_a_logging_policy_that_looks_breaks_the_plain_interval_and_not_the_anytime_one() -> None:
    """One look after a fixed number of rounds, and exact propensities of 0.05 and 0.95: a miss in every fourth log."""
    logged = Contrary("looks", RUNS, ROUNDS, seed=32)
    assert more_often(logged.misses(), RUNS, 2 * ALPHA)
    assert both_sides(logged.w, logged.r, 0.5) <= most_misses(RUNS, ALPHA)
    x = logged.w * logged.r
    assert abs(x.mean() - 0.5) <= SIX * x.mean(axis=1).std() / np.sqrt(RUNS)  # it is not the estimate that is wrong


def greedy_pair(runs: int, rounds: int, epsilon: float, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two actions with the same reward rate 0.5, played epsilon-greedily; plays and wins of one, and its w·r (runs, rounds)."""
    rng = np.random.default_rng(seed)
    wins, plays = np.zeros((2, runs)), np.zeros((2, runs))
    x = np.empty((runs, rounds))
    for t in range(rounds):
        means = (wins + 0.5) / (plays + 1)
        better = means[1] + 1e-9 * (rng.random(runs) - 0.5) > means[0]
        p = np.where(better, 1 - epsilon / 2, epsilon / 2)
        one, reward = rng.random(runs) < p, rng.random(runs) < 0.5
        for action, played in ((1, one), (0, ~one)):
            wins[action] += played & reward
            plays[action] += played
        x[:, t] = one * reward / p
    return plays[1], wins[1], x


def test_the_mean_of_what_an_agent_played_is_too_low_and_the_plain_interval_too_short() -> None:
    """After bad luck an action is played less, and its mean stays low; after good luck it is played until it is right."""
    runs = 1000
    plays, wins, x = greedy_pair(runs, 200, epsilon=0.02, seed=33)
    seen = plays > 0
    means = wins[seen] / plays[seen]
    assert means.mean() < 0.5 - SIX * means.std() / np.sqrt(seen.sum())
    assert abs(x.mean() - 0.5) <= SIX * x.mean(axis=1).std() / np.sqrt(runs)
    mean, half = plain_interval(x)
    assert more_often(int((np.abs(mean - 0.5) > half).sum()), runs, 2 * ALPHA)
