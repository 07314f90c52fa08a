"""The agent of a service that knows nothing beforehand: neither actions nor features."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import manyarms as ma
from manyarms.agents import Agent, EpsilonGreedy
from manyarms.agents.agent import Seed
from manyarms.beliefs import joint_belief_of
from manyarms.live import Live
from manyarms.live.stores.database import Database
from manyarms.logs.actions import ActionId
from manyarms.service.personalizer.features import DIM

NAME = "personalizer"
NO_ACTION = "(no action yet)"
"""A catalogue has at least one action: this one is retired from the start, and never offered."""
NOISE, VARIANCE = 0.5, 1.0
EXPLORATION = 0.2


def default_agent(
    *,
    exploration: float = EXPLORATION,
    dim: int = DIM,
    noise: float = NOISE,
    variance: float = VARIANCE,
    seed: Seed = None,
    catalogue: Sequence[ActionId] = (),
) -> Agent:
    """One parameter for all actions, over hashed features phi(x, a) (see `features`), greedy but for a share of uniform play.

    r = phi(x, a)^T theta + noise, theta ~ N(0, variance I). As phi has a length of about 1, a score has the variance `variance`
    before anything is known; rewards lie between -1 and 1. New actions are known by their features, and need no training.
    exploration: the share of decisions that are uniform. catalogue: ids that are known already.
    """
    ids = list(catalogue) or [NO_ACTION]
    prior = ma.ActionPrior(1, np.zeros(dim), variance * np.eye(dim))
    belief = joint_belief_of(prior, len(ids), ma.Linear(noise))
    agent = Agent(belief, EpsilonGreedy(exploration), seed, NAME, ids)
    if NO_ACTION in ids:
        agent.retire([NO_ACTION])
    return agent


def open_store(store: str | Path | Database, agent: Agent | None = None, **options: Any) -> Live:
    """A store with Personalizer's own settings: the earliest reward counts, 0 stands in for it after ten minutes."""
    usual: dict[str, Any] = {
        "name": NAME,
        "aggregate": "first",
        "default": 0.0,
        "wait": 600.0,
        "reward_range": (-1.0, 1.0),
    }
    return ma.live.open(store, default_agent() if agent is None else agent, **(usual | options))


__all__ = ["EXPLORATION", "NAME", "NO_ACTION", "default_agent", "open_store"]
