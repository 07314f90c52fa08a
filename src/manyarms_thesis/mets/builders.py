"""Worlds and agents from plain parameters: what a cell's calls name."""

from __future__ import annotations

import atexit
import math
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from manyarms import worlds
from manyarms.agents import named as agents
from manyarms.beliefs.likelihoods import Linear, Logistic
from manyarms.errors import InvalidInput
from manyarms.priors.gaussian import MixedEffectPrior
from manyarms.worlds.datasets import write_made_up_movielens
from manyarms_thesis.harness.spec import Call

HERE = "manyarms_thesis.mets.builders"
MADE_UP, REAL = "made-up", "ml-1m"

# in logistic worlds the linear agents keep the noise of the linear ones, sigma = 1
LINEAR_NOISE_IN_LOGISTIC_WORLDS = 1.0


def mixed_effect_world(*, seed: int, **parameters: Any) -> worlds.MixedEffect:
    """The synthetic world (thesis, lines 1229-1240)."""
    return worlds.MixedEffect(**parameters, seed=seed)


def movielens_world(*, source: str, seed: int, **parameters: Any) -> worlds.MovieLens:
    """The MovieLens world (thesis, lines 1256-1262), from the real ratings or from made-up ones."""
    folder = made_up_folder() if source == MADE_UP else None
    return worlds.MovieLens(**parameters, folder=folder, seed=seed)


@cache
def made_up_folder() -> str:
    """A folder with made-up ratings, the same in every process, gone when the process ends."""
    folder = tempfile.mkdtemp(prefix="manyarms-made-up-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    write_made_up_movielens(folder, users=400, movies=300, seed=0)
    return folder


def build_agent(
    *, kind: str, world: Any, rounds: int, seed: int, likelihood: str = "linear", factored: str | bool = False
) -> Any:
    """An agent for a world. `kind` names the method; its prior follows from it (thesis, line 1236)."""
    linear = Linear(world.noise if world.likelihood == "linear" else LINEAR_NOISE_IN_LOGISTIC_WORLDS)
    laws: dict[str, Linear | Logistic] = {"linear": linear, "logistic": Logistic()}
    if likelihood not in laws:
        raise InvalidInput("likelihood", repr(likelihood), "'linear' or 'logistic'")
    law = laws[likelihood]
    widest = math.sqrt(world.kappa_x)
    makers: dict[str, Callable[[], Any]] = {
        "meTS": lambda: agents.meTS(world.prior(), law, factored=factored, seed=seed),
        "meTS-misspecified": lambda: agents.meTS(misspecified(world.prior(), seed), law, seed=seed),
        "meTS-known-effects": lambda: agents.LinTS(world.known_effects_prior(), law, seed=seed),
        "HierTS": lambda: agents.HierTS(world.hierarchical_prior(), law, seed=seed),
        "LinTS": lambda: agents.LinTS(world.action_prior(), law, seed=seed),
        "GLMTS": lambda: agents.GLMTS(world.action_prior(), law, seed=seed),
        "LinUCB": lambda: agents.LinUCB(world.action_prior(), linear, horizon=rounds, context_norm=widest, seed=seed),
        "UCBGLM": lambda: agents.UCBGLM(world.action_prior(), law, horizon=rounds, seed=seed),
        "GLMUCB": lambda: agents.GLMUCB(world.action_prior(), law, horizon=rounds, seed=seed),
    }
    if kind not in makers:
        raise InvalidInput("kind", repr(kind), "one of " + ", ".join(makers))
    return makers[kind]()


def misspecified(prior: MixedEffectPrior, seed: int) -> MixedEffectPrior:
    """The prior with its four parts multiplied by constants drawn uniformly from (0, 2) (thesis, line 3402)."""
    c = np.random.default_rng([seed, 3403]).uniform(0.0, 2.0, size=4)
    # (0, 2) is open: zero itself would not be a covariance
    c1, c2, c3, c4 = (float(value) for value in np.maximum(c, 1e-6))
    return prior.scaled(effect_covariance=c1, effect_mean=c2, action_covariance=c3, weights=c4)


def agent_call(kind: str, **parameters: Any) -> Call:
    """An agent as a cell names it."""
    return Call(f"{HERE}:build_agent", {"kind": kind, **parameters})


# the names under which the thesis's figures show them
AGENTS: dict[str, Call] = {
    "meTS-Lin": agent_call("meTS"),
    "meTS-Lin-Fa": agent_call("meTS", factored="mean-field"),
    "meTS-Lin-Fb": agent_call("meTS", factored="blockwise"),
    "meTS-Lin-mis": agent_call("meTS-misspecified"),
    "meTS, effects known": agent_call("meTS-known-effects"),
    "LinTS": agent_call("LinTS"),
    "LinUCB": agent_call("LinUCB"),
    "HierTS": agent_call("HierTS"),
    "meTS-GLM": agent_call("meTS", likelihood="logistic"),
    "meTS-GLM-Fa": agent_call("meTS", likelihood="logistic", factored="mean-field"),
    "GLM-TS": agent_call("GLMTS", likelihood="logistic"),
    "UCB-GLM": agent_call("UCBGLM", likelihood="logistic"),
    "GLM-UCB": agent_call("GLMUCB", likelihood="logistic"),
}
LINEAR = ("meTS-Lin", "meTS-Lin-Fa", "meTS-Lin-Fb", "LinTS", "LinUCB", "HierTS")
LOGISTIC = ("meTS-GLM", "meTS-GLM-Fa", "meTS-Lin", "GLM-TS", "UCB-GLM", "HierTS")
LINEAR_BASELINES = ("LinTS", "LinUCB", "HierTS")
LOGISTIC_BASELINES = ("GLM-TS", "UCB-GLM", "HierTS")


def chosen(*names: str) -> dict[str, Call]:
    """Agents by the names of the figures."""
    return {name: AGENTS[name] for name in names}


__all__ = [
    "AGENTS", "LINEAR", "LINEAR_BASELINES", "LOGISTIC", "LOGISTIC_BASELINES", "MADE_UP", "REAL", "agent_call",
    "build_agent", "chosen", "made_up_folder", "misspecified", "mixed_effect_world", "movielens_world",
]  # fmt: skip
