"""Settled events and small worlds for the tests of what is watched."""

from __future__ import annotations

from typing import Any

import numpy as np

import manyarms as ma
from manyarms.live.deployment import Deployment
from manyarms.live.joining import an_arm
from manyarms.live.learned_rows import SettledEvent
from manyarms.live.live import Live
from manyarms.live.records import Chunk, DecisionRecord
from manyarms.live.settings import Settings
from manyarms.live.state import State
from manyarms.live.stores.opening import open_database
from manyarms.live.watched import Watched
from manyarms.policies import FixedPolicy

UNIT_REWARDS = Settings(default=0.0, wait=0.0, reward_range=(0.0, 1.0))


def state_of(deployment: Deployment, settings: Settings = UNIT_REWARDS, version: int = 0) -> State:
    """A state with an arm (a coin) for every name that has a part in the deployment."""
    arms = {name: an_arm("agent", FixedPolicy([0.5, 0.5])) for name in sorted(deployment.names)}
    return State(settings, "salt", arms, deployment, chunk=Chunk(version=version))


def event(reward: float | None = 0.0, **told: Any) -> SettledEvent:
    """A settled event: fields of the record and of its details by name."""
    fields = {"arm": "agent", "version": 0, "propensity": 1.0, "propensity_kind": "exact", "unit": None} | told
    names = ("greedy", "held_out", "shadows", "repeated", "treated")
    details = {name: fields.pop(name) for name in names if name in fields}
    fields.setdefault("arm_propensity", fields["propensity"])
    record = DecisionRecord(id="", draw=0, question=None, actions=[fields.pop("action", 0)], details=details, **fields)
    return SettledEvent(record, reward, True)


def seen(reward: float, chance: float, shadow: float | None, **told: Any) -> Watched:
    """An event as a challenge of the arm "new" sees it."""
    fields: dict[str, Any] = {
        "version": 1, "arm": "agent", "action": 0, "held_out": False, "fresh": True, "routed": True, "chance": chance,
        "treated": chance, "within": chance, "missing": None, "greedy": None,
        "shadows": {"new": [None if shadow is None else 0, shadow]},
    } | told  # fmt: skip
    return Watched(reward=reward, **fields)


class Clock:
    """Seconds that pass when somebody says so."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def opened(arm: Any, clock: Clock | None = None, **options: Any) -> Live:
    """A store in memory."""
    told = {"background": False, "wait": 0.0, "default": 0.0, "reward_range": (0.0, 1.0)} | options
    database = open_database(":memory:") if clock is None else open_database(":memory:", clock=clock)
    return ma.live.open(database, arm, **told)


def play(live: Live, means: Any, rounds: int, rng: np.random.Generator, *, each: int = 50, **asked: Any) -> None:
    """Bernoulli rewards with a mean for every action, folded now and then."""
    for number in range(rounds):
        decision = live.decide([1.0], **asked)
        if rng.random() < means[decision.action]:
            live.reward(decision.id, 1.0)
        if number % each == each - 1:
            live.learn()
    live.learn()
