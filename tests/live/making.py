"""Small live stores for tests: an agent, a clock that is set by hand, and ways to fold the same log again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import manyarms as ma
from manyarms.agents import Agent
from manyarms.live import Live, packing, snapshots
from manyarms.live.agent_arm import AgentArm
from manyarms.live.stores.database import Database
from manyarms.live.stores.opening import open_database

DIM = 2
X = np.array([0.6, -0.3])


class Clock:
    """Seconds, moved by hand."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def an_agent(actions: int = 6, seed: int = 0, kind: str = "thompson") -> Agent:
    """An agent with two dimensions; kind: by which rule it decides."""
    prior = ma.ActionPrior(actions, np.zeros(DIM), np.eye(DIM))
    if kind == "thompson":
        return ma.LinTS(prior, seed=seed)
    decision = {"uniform": ma.agents.Uniform(), "epsilon": ma.agents.EpsilonGreedy(0.25), "greedy": ma.agents.Greedy()}[
        kind
    ]
    return Agent(ma.beliefs.belief_of(prior, ma.beliefs.Linear()), decision, seed=seed)


def mixed(actions: int = 12, effects: int = 3, seed: int = 0) -> Agent:
    """meTS: an agent whose actions share effects."""
    world = ma.worlds.MixedEffect(actions, effects, DIM, seed=1)
    return ma.meTS(world.prior(), seed=seed)


def database(path: Path | str = ":memory:", clock: Clock | None = None) -> Database:
    """A store with a clock of ours."""
    return open_database(path, clock=clock or Clock())


def a_live(agent: Any = None, clock: Clock | None = None, path: Path | str = ":memory:", **options: Any) -> Live:
    """A live store that learns when it is told to; with an agent of ours where it is new and none is given."""
    store = database(path, clock)
    if agent is None and not store.read("SELECT 1 FROM meta WHERE name = 'origin'"):
        agent = an_agent()
    return ma.live.open(store, agent, **{"background": False, **options})


def contexts(number: int, seed: int = 5) -> np.ndarray:
    """So many contexts."""
    return np.random.default_rng(seed).standard_normal((number, DIM))


def agent_of(live: Live, name: str = "agent") -> Agent:
    """The agent that the state of this process has now."""
    state = packing.unpack_state(live.state_bytes())
    arm = state.arms[name]
    assert isinstance(arm, AgentArm)
    return arm.agent


def same_belief(one: Agent, other: Agent, error: float = 1e-9) -> None:
    """The posteriors of all actions are equal, to rounding."""
    size = one.belief.catalogue.size
    assert size == other.belief.catalogue.size
    assert one.belief.catalogue.retired == other.belief.catalogue.retired
    for action in range(size):
        for a, b in zip(one.posterior(action), other.posterior(action), strict=True):
            np.testing.assert_allclose(a, b, rtol=error, atol=error)


def from_origin(live: Live) -> bytes:
    """The whole log folded again from its beginning."""
    return packing.pack_state(snapshots.from_origin(live.database))


def from_every_snapshot(live: Live) -> list[bytes]:
    """The log folded from every snapshot that there is."""
    found = []
    for (upto,) in live.database.read("SELECT upto FROM snapshots ORDER BY version"):
        state = snapshots.newest(live.database, upto + 1)
        assert state.chunk.upto == upto
        found.append(packing.pack_state(snapshots.fold(live.database, state)))
    return found
