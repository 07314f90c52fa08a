"""What a propensity of Thompson sampling costs and how well it is known, in a large catalogue."""

from __future__ import annotations

import numpy as np
from _report import Figures
from _timing import clock, label

import manyarms as ma
from manyarms.agents.agent import Agent
from manyarms.worlds import MixedEffect


def taught(actions: int, effects: int, dim: int, rows: int) -> tuple[Agent, MixedEffect]:
    """meTS after so many rounds of its own, in batches."""
    world = MixedEffect(actions, effects, dim, seed=1)
    agent = ma.meTS(world.prior(), seed=0)
    for _ in range(0, rows, 20):
        X = world.contexts(20)
        chosen = np.asarray(agent.decide(X))
        agent.observe(X, chosen, [world.reward(x, int(a)) for x, a in zip(X, chosen, strict=True)])
    return agent, world


def propensities(actions: int, effects: int, dim: int, rows: int, asked: int, draws: int | None = None) -> Figures:
    """Milliseconds, and relative standard errors, of the propensities of actions that were decided on."""
    agent, world = taught(actions, effects, dim, rows)
    spent, errors = [], []
    for x in world.contexts(asked):
        made = agent.decide_numbered(x)
        start = clock()
        found = agent.propensity(x, int(made.actions), draw=made.draw, draws=draws)
        spent.append(clock() - start)
        errors.append(found.relative_error)
    size = label(actions)
    figures: Figures = {
        f"propensity_{size}_ms": 1e3 * float(np.median(spent)),
        f"propensity_{size}_error": float(np.median(errors)),
        f"propensity_{size}_error_p95": float(np.quantile(errors, 0.95)),
        f"propensity_{size}_played": agent.played,
    }
    ms, error, p95, played = figures.values()
    print(
        f"  {found.draws} draws, {played:,} played: {ms:.3g} ms, relative error {error:.3g}, 95th percentile {p95:.3g}"
    )
    return figures


if __name__ == "__main__":  # the table of docs/propensities.md
    for number in (4, 6, 8, 16, 32, 64, 128, 256, 512, 1024):
        propensities(100_000, 5, 16, 4_000, 60 if number <= 64 else 10, number)
