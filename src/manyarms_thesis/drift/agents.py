"""The agents of the experiment, as functions of the world, the horizon and a seed.

All know the world's prior and noise. `half_life` is what they take for the world's own. The rows of a window weigh as much in all
as those of a discount, half_life / log 2 rounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import manyarms as ma
from manyarms._base.seeds import seed_of
from manyarms.agents import decisions
from manyarms.beliefs import Linear, belief_of
from manyarms.worlds import Drifting
from manyarms_thesis.drift.baselines import Confidence, DLinUCB, SWLinUCB
from manyarms_thesis.drift.choosing import Choosing
from manyarms_thesis.drift.restarts import Restarting
from manyarms_thesis.harness.spec import Call

DECISIONS: Mapping[str, Callable[[], Any]] = {
    "thompson": decisions.Thompson,
    "knowledge gradient": decisions.KnowledgeGradient,
    "scaled thompson": lambda: decisions.ScaledThompson(0.5),
    "greedy": decisions.Greedy,
}
FORGETTING: Mapping[str, Callable[[float], Any]] = {
    "static": lambda half_life: None,
    "model": lambda half_life: ma.Drift(half_life=half_life),
    "discount": lambda half_life: ma.beliefs.Discount(half_life=half_life),
    "window": lambda half_life: ma.beliefs.SlidingWindow(length=memory(half_life)),
}


def memory(half_life: float) -> int:
    """What all rows of a discount weigh together, in rounds: 1 / (1 - gamma), about half_life / log 2."""
    return max(1, round(half_life / math.log(2.0)))


def agent(
    *, world: Drifting, rounds: int, seed: int, forgetting: str, decision: str = "thompson", half_life: float = math.inf
) -> Any:
    """A belief that forgets in some way, or not at all, and a decision."""
    belief = belief_of(world.prior(), Linear(world.noise), drift=FORGETTING[forgetting](half_life))
    return ma.Agent(belief, DECISIONS[decision](), seed, f"{forgetting}, {decision}")


def restarting(*, world: Drifting, rounds: int, seed: int, every: int | None = None, mean_time: float = 10_000) -> Any:
    """A static agent that begins anew: every so many rounds, or on an alarm."""

    def start(number: int) -> Any:
        return agent(world=world, rounds=rounds, seed=seed_of("restart", seed, number), forgetting="static")

    return Restarting(start, every=every, mean_time=mean_time)


def choosing(*, world: Drifting, rounds: int, seed: int, first: int) -> Any:
    """The model, with the half-life that it finds in its first rounds, in which it plays as if nothing drifted."""

    def start(half_life: float | None) -> Any:
        forgetting = "static" if half_life is None else "model"
        return agent(world=world, rounds=rounds, seed=seed, forgetting=forgetting, half_life=half_life or math.inf)

    return Choosing(start, world.prior(), Linear(world.noise), first)


def d_linucb(*, world: Drifting, rounds: int, seed: int, half_life: float, width: float | None = None) -> Any:
    """D-LinUCB of Russac et al., one parameter for each action."""
    gamma = 2.0 ** (-1.0 / half_life)
    return DLinUCB(world.actions, world.dim, _confidence(world, rounds, width), seed, gamma=gamma)


def sw_linucb(*, world: Drifting, rounds: int, seed: int, half_life: float, width: float | None = None) -> Any:
    """SW-LinUCB of Cheung et al., one parameter for each action."""
    return SWLinUCB(world.actions, world.dim, _confidence(world, rounds, width), seed, length=memory(half_life))


def _confidence(world: Drifting, rounds: int, width: float | None) -> Confidence:
    """S: the root mean square of ||theta_a|| under the prior; L: the longest context; lam = 1, delta = 1 / rounds."""
    covariance = world.action_prior().covariance
    size = math.sqrt(float(covariance.trace(axis1=-2, axis2=-1).mean()))
    return Confidence(size, math.sqrt(world.kappa_x), world.noise, 1.0 / rounds, width=width)


STATIC, MODEL, GRADIENT, CHOSEN = "static", "model", "model, KG", "model, chosen"
SCALED, STATIC_SCALED = "model, scaled", "static, scaled"


def methods(half_life: float, rounds: int) -> dict[str, Call]:
    """All of them, for a world of (about) this half-life."""
    told = {"half_life": half_life}
    return {
        STATIC: Call(agent, {"forgetting": "static"}),
        MODEL: Call(agent, {"forgetting": "model", **told}),
        GRADIENT: Call(agent, {"forgetting": "model", "decision": "knowledge gradient", **told}),
        SCALED: Call(agent, {"forgetting": "model", "decision": "scaled thompson", **told}),
        "model, greedy": Call(agent, {"forgetting": "model", "decision": "greedy", **told}),
        STATIC_SCALED: Call(agent, {"forgetting": "static", "decision": "scaled thompson"}),
        "static, greedy": Call(agent, {"forgetting": "static", "decision": "greedy"}),
        CHOSEN: Call(choosing, {"first": rounds // 4}),
        "discount": Call(agent, {"forgetting": "discount", **told}),
        "window": Call(agent, {"forgetting": "window", **told}),
        "restarts": Call(restarting, {"every": 2 * memory(half_life)}),
        "restarts, alarm": Call(restarting),
        "D-LinUCB": Call(d_linucb, told),
        "SW-LinUCB": Call(sw_linucb, told),
        "D-LinUCB, width 1": Call(d_linucb, {**told, "width": 1.0}),
    }


__all__ = [
    "CHOSEN", "GRADIENT", "MODEL", "SCALED", "STATIC", "STATIC_SCALED", "agent", "choosing", "d_linucb", "memory", "methods",
    "restarting", "sw_linucb",
]  # fmt: skip
