"""Logs from worlds: what a logging policy would have written there.

X_i ~ the world,    A_i ~ pi0(. | X_i),    R_i ~ the world        (thesis, Section 5.1)
"""

from __future__ import annotations

import numpy as np

from manyarms._base import validate
from manyarms.logs.data import LoggedData
from manyarms.policies.base import Policy
from manyarms.policies.simple import FixedPolicy, UniformPolicy
from manyarms.worlds.base import KnownMeans, World
from manyarms.worlds.rounds import policy_over


def log_from(
    world: World, rows: int, policy: Policy | None = None, *, seed: int | np.random.Generator | None = 0
) -> LoggedData:
    """`rows` rounds of a world under a logging policy (uniform unless given), with its propensities.

    Contexts and rewards come from the world's own streams, actions from `seed`. The policy itself goes into the log.
    """
    validate.instance("world", world, KnownMeans, "a world, such as worlds.MixedEffect(...)")
    rows, rng = validate.count("rows", rows), validate.seeded(seed)
    acting = UniformPolicy(world.actions) if policy is None else policy_over(policy, world.actions)
    X = world.contexts(rows)
    actions = acting.sample_rows(X, rng)
    return LoggedData(
        X,
        actions,
        world.reward(X, actions),
        world.actions,
        propensities=acting.probabilities_of(X, actions),
        logging=acting,
    )


def skewed_policy(actions: int, exponent: float = 1.0, *, seed: int | np.random.Generator | None = 0) -> FixedPolicy:
    """A logging policy without regard to the context that plays few actions often: p_a in proportion to rank^-exponent.

    Ranks are a random order. exponent 0 is uniform; 1 is Zipf's law, under which the first of 1,000 actions has 13 % of
    the rounds and the last 0.013 %.
    """
    actions = validate.room("actions", validate.count("actions", actions), 48)
    exponent, rng = validate.not_negative("exponent", exponent), validate.seeded(seed)
    mass = np.arange(1, actions + 1, dtype=np.float64) ** -exponent
    probabilities = np.empty(actions)
    probabilities[rng.permutation(actions)] = mass / mass.sum()
    return FixedPolicy(probabilities)


__all__ = ["log_from", "skewed_policy"]
