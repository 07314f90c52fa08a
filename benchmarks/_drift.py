"""What it costs to forget: agents whose rewards drift beside the same agents without, at a million actions with 3,000 played.

All sides have learned the same rows, of 3,000 different actions, and a round is a decision and a row of one of these: the tables
are of the same size from the first round to the last, whatever each side would rather have played. Discounting is worked off in
epochs and windows move in steps, so that a turn is long enough to have its share of both.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from _report import Figures
from _timing import Side, alternate, clock, label, milliseconds, over, summary

import manyarms as ma
from manyarms.agents import KnowledgeGradient
from manyarms.agents.agent import Agent
from manyarms.beliefs import Belief, Discount, SlidingWindow, belief_of
from manyarms.priors.base import ParameterPrior

HALF_LIFE = 5_000  # rounds
SIDES = ("static", "drift", "discount", "window", "knowledge_gradient")


def priors(actions: int, effects: int, dim: int) -> dict[str, Callable[[], ParameterPrior]]:
    """LinTS's, HierTS's and meTS's, the last with distinct weights."""
    rng, eye, zeros = np.random.default_rng(0), np.eye(dim), np.zeros(dim)
    return {
        "lints": lambda: ma.ActionPrior(actions, zeros, eye),
        "hierts": lambda: ma.HierarchicalPrior(actions, zeros, eye, eye),
        "mets": lambda: ma.MixedEffectPrior.isotropic(rng.uniform(-1, 1, (actions, effects)), dim),
    }


def sides(prior: ParameterPrior) -> list[Agent]:
    """The same agent without drift, with the model of it, discounting, a window; and the model with the knowledge gradient."""
    noise = ma.Linear(1.0)
    drift = ma.Drift(half_life=HALF_LIFE)

    def agent(belief: Belief) -> Agent:
        return Agent(belief, ma.Thompson(), 0)

    return [
        agent(belief_of(prior, noise)),
        agent(belief_of(prior, noise, drift=drift)),
        agent(belief_of(prior, noise, drift=Discount(half_life=HALF_LIFE))),
        agent(belief_of(prior, noise, drift=SlidingWindow(length=HALF_LIFE))),
        Agent(belief_of(prior, noise, drift=drift), KnowledgeGradient(), 0),
    ]


def rounds(agent: Agent, played: int, number: int) -> Side:
    """So many rounds after a row of each of so many actions; seconds of one."""
    rng = np.random.default_rng(1)
    dim, chosen = agent.dim, rng.choice(agent.actions, played, replace=False).tolist()
    for action, x in zip(chosen, rng.uniform(-1, 1, (played, dim)), strict=True):
        agent.observe(x, action, float(rng.standard_normal()))
    turn = iter(lambda: int(rng.integers(played)), -1)

    def work() -> float:
        X, spent = rng.uniform(-1, 1, (number, dim)), 0.0
        R = rng.standard_normal(number).tolist()
        for x, reward in zip(X, R, strict=True):
            action = chosen[next(turn)]
            start = clock()
            agent.decide(x)
            agent.observe(x, action, reward)
            spent += clock() - start
        return spent / number

    return work


def drift(actions: int, effects: int, dim: int, played: int, turns: int, batch: int) -> Figures:
    """Quotients of a round for each agent, and the worst of them."""
    figures: Figures = {}
    worst = dict.fromkeys(SIDES[1:], 0.0)
    size = label(actions)
    for name, prior in priors(actions, effects, dim).items():
        agents = sides(prior())
        times = alternate(turns, *(rounds(agent, played, batch) for agent in agents))
        print("  " + summary([f"{name} {side}" for side in SIDES], times))
        figures[f"drift_{name}_{size}_ms"] = milliseconds(times, 1)
        figures[f"drift_{name}_{size}_bytes_over_static"] = agents[1].nbytes / agents[0].nbytes
        for place, side in enumerate(SIDES[1:], 1):
            quotient = over(times, place, 0)
            figures[f"{side}_{name}_{size}_over_static"] = quotient
            worst[side] = max(worst[side], quotient)
    return {f"{side}_{size}_over_static": quotient for side, quotient in worst.items()} | figures


__all__ = ["drift"]
