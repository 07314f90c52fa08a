"""A small world whose values are known exactly, and views that decide in it: what estimates from a live log are held against.

Events ask one of a few questions, each with filters of its own, so that the value of a policy under the filters is a finite sum.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from scipy import stats

import manyarms as ma
from manyarms._base.typing import Array, Ints
from manyarms.agents import Agent
from manyarms.agents.decisions import Decision
from manyarms.live.agent_arm import AgentArm
from manyarms.live.arms import Arm
from manyarms.live.deciding import decided, propensities
from manyarms.live.deployment import Deployment
from manyarms.live.records import Chunk, DecisionRecord, Question
from manyarms.live.settings import Settings
from manyarms.live.state import State, View

ACTIONS, DIM, RETIRED = 16, 3, 15
REFUSED = 1e-6  # a statistical test refuses at this probability: no seed decides
SIX = 6.0  # standard errors: about 1e-9
SALT = "salt"


def _questions(rng: np.random.Generator) -> list[Question]:
    """Contexts and filters; 5 to 10 actions are left by each, RETIRED never."""
    X = rng.normal(size=(3, DIM))
    everyone = np.arange(ACTIONS)
    asked = [
        Question(X[0], candidates=[0, 2, 4, 6, 8, 10, 12, 13, 14, 3]),
        Question(X[0], exclude=[0, 1, 5, 9, 11]),
        Question(X[1], candidates=[1, 3, 5, 7, 9, 11, 2, 4], exclude=[5, 9]),
        Question(X[1], exclude=rng.choice(everyone[:-1], 7, replace=False).tolist()),
        Question(X[2], candidates=[14, 13, 12, 11, 10, 9, 8, 7, 5, 6]),
        Question(X[2], candidates=[0, 1, 2, 3, 4], exclude=[8, 14]),
    ]
    return asked


@dataclass
class World:
    """Questions that come with equal probabilities, and Bernoulli rewards with known means (questions, actions)."""

    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    def __post_init__(self) -> None:
        self.questions = _questions(self.rng)
        self.effects = self.rng.normal(size=(ACTIONS, DIM))
        X = np.array([asked.context for asked in self.questions])
        self.means: Array = 0.5 + 0.4 * np.tanh(X @ self.effects.T)
        self.eligible = [eligible(asked) for asked in self.questions]

    def value(self, target: Array) -> float:
        """Of a policy (questions, actions): a sum over everything that can happen."""
        return float((target * self.means).sum(axis=1).mean())

    def uniform(self) -> Array:
        """Every action that the filters leave, all alike."""
        target = np.zeros_like(self.means)
        for row, ids in zip(target, self.eligible, strict=True):
            row[ids] = 1 / len(ids)
        return target

    def contrary(self, agent: Agent) -> Array:
        """The best action but for the one that looks best to the agent: nothing has larger weights."""
        target = np.zeros_like(self.means)
        best = Agent(agent.belief, ma.agents.Greedy(), 0)
        for row, asked, ids, means in zip(target, self.questions, self.eligible, self.means, strict=True):
            looks = best.decide(**asked.arguments())
            row[max((a for a in ids.tolist() if a != looks), key=lambda a: means[a])] = 1.0
        return target

    def agent(self, decision: Decision, rows: int = 60, seed: int = 1) -> Agent:
        """An agent that has learned a little, and has a retired action."""
        prior = ma.ActionPrior(ACTIONS, np.zeros(DIM), np.eye(DIM))
        agent = Agent(ma.beliefs.belief_of(prior, ma.beliefs.Linear(0.5)), decision, seed)
        rng = np.random.default_rng(100 + seed)
        places, actions = rng.integers(len(self.questions), size=rows), rng.integers(ACTIONS - 1, size=rows)
        X = np.array([asked.context for asked in self.questions])[places]
        agent.observe(X, actions, (rng.random(rows) < self.means[places, actions]).astype(float))
        agent.retire([RETIRED])
        return agent


def eligible(asked: Question) -> Ints:
    """What the filters leave."""
    ids = set(range(ACTIONS) if asked.candidates is None else asked.candidates)
    return np.array(sorted(ids - set(asked.exclude or ()) - {RETIRED}))


def a_view(arms: Mapping[str, Arm], deployment: Deployment | None = None, version: int = 0) -> View:
    """What decides, as the fold of a log gives it."""
    deployment = Deployment({next(iter(arms)): 1.0}) if deployment is None else deployment
    return State(Settings(), SALT, dict(arms), deployment, Chunk(version)).view()


def of_agent(agent: Agent) -> View:
    """One agent that gets everything."""
    return a_view({"agent": AgentArm(agent)})


@dataclass
class Rows:
    """Decisions of `runs` logs of the same length: questions, actions, rewards, and what was logged (runs, events)."""

    asked: Ints
    actions: Ints
    rewards: Array
    propensities: Array
    errors: Array

    def weights(self, target: Array) -> Array:
        """Of a policy (questions, actions)."""
        return target[self.asked, self.actions] / self.propensities


def logs(
    world: World, view: View, runs: int, events: int, seed: int, *, units: int = 0, draws: int | None = None
) -> Rows:
    """As `Live.decide` makes them before it writes them. units: events of one unit in a row, 0 without units."""
    rng = np.random.default_rng(seed)
    asked = rng.integers(len(world.questions), size=(runs, events))
    records: list[DecisionRecord] = []
    found = []
    for number, place in enumerate(asked.ravel().tolist()):
        unit = f"{seed}/{number // units}" if units else None
        record = decided(view, SALT, world.questions[place], f"{seed}/{number}", unit, None, False)
        records.append(record)
        found.append((record.propensity, 0.0) if record.propensity_kind == "exact" else _estimated(view, record, draws))
    actions = np.array([record.actions[0] for record in records]).reshape(asked.shape)
    rewards = (rng.random(asked.shape) < world.means[asked, actions]).astype(float)
    p, error = np.array(found, dtype=float).T.reshape(2, runs, events)
    return Rows(asked, actions, rewards, p, error)


def _estimated(view: View, record: DecisionRecord, draws: int | None) -> tuple[float, float]:
    """What the worker computes."""
    found = propensities(view, record, draws)
    return found["propensity"], found["error"]


def many_logs(world: World, agent: Agent, runs: int, events: int, seed: int) -> Rows:
    """The same law for an agent whose propensities do not depend on the draw, decided in one batch for each question."""
    rng = np.random.default_rng(seed)
    asked = rng.integers(len(world.questions), size=(runs, events))
    actions = np.empty_like(asked)
    p = np.empty(asked.shape)
    snapshot = agent.snapshot()
    for place, question in enumerate(world.questions):
        here = asked == place
        options = question.arguments()
        X = np.broadcast_to(options.pop("x"), (int(here.sum()), DIM))
        actions[here] = snapshot.decide(X, rng=rng, **options)
        table = np.zeros(ACTIONS)
        for action in np.unique(actions[here]).tolist():
            found = snapshot.propensity(question.context, action, **{**options, "k": 1})
            assert found.exact
            table[action] = found.value
        p[here] = table[actions[here]]
    rewards = (rng.random(asked.shape) < world.means[asked, actions]).astype(float)
    return Rows(asked, actions, rewards, p, np.zeros(asked.shape))


def plain_interval(x: Array, z: float = 1.959964) -> tuple[Array, Array]:
    """Mean and z standard errors, along the last axis."""
    return x.mean(axis=-1), z * x.std(axis=-1, ddof=1) / np.sqrt(x.shape[-1])


def plausible(count: int, number: int, rate: float) -> bool:
    """Whether so many of a number come with a probability above 1e-6 on either side, if each comes at this rate."""
    return bool(min(stats.binom.cdf(count, number, rate), stats.binom.sf(count - 1, number, rate)) > REFUSED)


def more_often(count: int, number: int, rate: float) -> bool:
    """Whether so many show, at 1e-6, that each comes more often than at this rate."""
    return bool(stats.binom.sf(count - 1, number, rate) < REFUSED)
