"""A catalogue that never rests: actions come, are retired and come back, with decisions and lessons in between.

Each call of `add_actions`, `retire` and `reinstate` is timed on its own: the longest of them counts, and not only the mean.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from _timing import clock

import manyarms as ma
from manyarms._base.typing import Array
from manyarms.agents.agent import Agent

OWN_DIM = 4  # of the actions with a covariance each: at d = 10 the prior alone would take gigabytes
LESSONS = 250  # changes between two lessons

Row = Callable[[np.random.Generator], Array]


def agents(actions: int, effects: int, dim: int) -> dict[str, Callable[[], tuple[Agent, Row | None]]]:
    """The kinds of catalogue there are, one unit, few units, a unit each, a covariance each, and the rows of new actions."""
    rng = np.random.default_rng(0)
    eye, own = np.eye(dim), min(dim, OWN_DIM)

    def mixed(weights: Array) -> Agent:
        return ma.meTS(ma.MixedEffectPrior.isotropic(weights, dim), seed=0)

    def scaled() -> Agent:
        covariances = np.eye(own) * rng.uniform(0.5, 2.0, (actions, 1, 1))
        return ma.LinTS(ma.ActionPrior(actions, np.zeros(own), covariances), seed=0)

    return {
        "lints": lambda: (ma.LinTS(ma.ActionPrior(actions, np.zeros(dim), eye), seed=0), None),
        "hierts": lambda: (ma.HierTS(ma.HierarchicalPrior(actions, np.zeros(dim), eye, eye), seed=0), None),
        "mets_onehot": lambda: (
            mixed(np.eye(effects)[rng.integers(effects, size=actions)]),
            lambda g: np.eye(effects)[g.integers(effects)],
        ),
        "mets": lambda: (mixed(rng.uniform(-1, 1, (actions, effects))), lambda g: g.uniform(-1, 1, effects)),
        "own_covariances": lambda: (scaled(), None),
    }


def churn(agent: Agent, row: Row | None, changes: int) -> tuple[Array, Array]:
    """Seconds of every change, additions, retirements and reinstatements in turn, and of every decision in between."""
    rng = np.random.default_rng(1)
    d, covariance = agent.belief.dim, None if agent.belief.leaves.shared else np.eye(agent.belief.dim)
    alive, retired = list(range(agent.actions)), list[int]()
    contexts = rng.uniform(-1, 1, (changes // LESSONS + 1, d))
    agent.decide(contexts[0])  # which makes the tables of the search
    spent, decided = np.empty(changes), np.empty(len(contexts))
    for i in range(changes):
        if i % 4 == 0:
            rows = {} if row is None else {"weights": row(rng)}
            start = clock()
            (new,) = agent.add_actions(covariance=covariance, **rows)
            spent[i] = clock() - start
            alive.append(int(new))
        else:
            change, source, goal = (agent.reinstate, retired, alive) if i % 4 == 3 else (agent.retire, alive, retired)
            place = int(rng.integers(len(source)))
            source[place], source[-1] = source[-1], source[place]
            start = clock()
            change(source[-1])
            spent[i] = clock() - start
            goal.append(source.pop())
        if i % LESSONS == 0:
            x = contexts[i // LESSONS]
            start = clock()
            action = agent.decide(x)
            decided[i // LESSONS] = clock() - start
            agent.observe(x, action, 0.5)
    return spent, decided[: (changes - 1) // LESSONS + 1]


__all__ = ["agents", "churn"]
