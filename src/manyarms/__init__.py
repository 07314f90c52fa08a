"""Contextual bandits over catalogues of thousands to millions of actions.

import manyarms as ma
world = ma.worlds.MixedEffect(actions=100_000, effects=5, dim=10, seed=0)
agent = ma.meTS(world.prior())
for x in world.contexts(5_000):
    a = agent.decide(x)
    agent.observe(x, a, world.reward(x, a))

The names of every day are here; the rest is by topic: `ma.agents`, `ma.beliefs`, `ma.priors`, `ma.worlds`, `ma.logs`, `ma.items`,
`ma.rewards`, `ma.policies`, `ma.weights`, `ma.estimators`, `ma.evaluation`, `ma.learning`, `ma.bounds`, `ma.certificates`,
`ma.sequential`, `ma.live`, `ma.service`, `ma.client`, `ma.edge`, `ma.theory`, `ma.checks`, `ma.errors`. Everything is
imported when it is first asked for.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING

if _TYPE_CHECKING:
    from manyarms import (
        agents,
        beliefs,
        bounds,
        certificates,
        checks,
        client,
        edge,
        errors,
        estimators,
        evaluation,
        items,
        learning,
        live,
        logs,
        policies,
        priors,
        rewards,
        sequential,
        service,
        theory,
        weights,
        worlds,
    )
    from manyarms._base.storage import load
    from manyarms.agents import Agent, Greedy, HierTS, LinTS, LinUCB, Thompson, dTS, meTS
    from manyarms.beliefs import Drift, Linear, Logistic
    from manyarms.certificates import certify
    from manyarms.errors import ManyArmsError
    from manyarms.estimators import DM, DR, IPS, MIPS, SNIPS, PACBayes, RegKL, cLPI
    from manyarms.evaluation import evaluate
    from manyarms.items import Catalogue
    from manyarms.learning import learn
    from manyarms.logs import LoggedData, inspect, open_log
    from manyarms.policies import GaussianPolicy, SoftmaxPolicy
    from manyarms.priors import ActionPrior, DiffusionPrior, HierarchicalPrior, MixedEffectPrior, pretrain
    from manyarms.rewards import fit_prior, sdm

    __version__: str

_TOPICS = (
    "agents", "beliefs", "bounds", "certificates", "checks", "client", "edge", "errors", "estimators", "evaluation", "items",
    "learning", "live", "logs", "policies", "priors", "rewards", "sequential", "service", "theory", "weights", "worlds",
)  # fmt: skip

# where each name of every day is defined
_NAMES = {
    name: f"manyarms.{topic}"
    for topic, names in {
        "_base.storage": ("load",),
        "agents": ("Agent", "Greedy", "HierTS", "LinTS", "LinUCB", "Thompson", "dTS", "meTS"),
        "beliefs": ("Drift", "Linear", "Logistic"),
        "certificates": ("certify",),
        "errors": ("ManyArmsError",),
        "estimators": ("DM", "DR", "IPS", "MIPS", "PACBayes", "RegKL", "SNIPS", "cLPI"),
        "evaluation": ("evaluate",),
        "items": ("Catalogue",),
        "learning": ("learn",),
        "logs": ("LoggedData", "inspect", "open_log"),
        "policies": ("GaussianPolicy", "SoftmaxPolicy"),
        "priors": ("ActionPrior", "DiffusionPrior", "HierarchicalPrior", "MixedEffectPrior", "pretrain"),
        "rewards": ("fit_prior", "sdm"),
    }.items()
    for name in names
}


def __getattr__(name: str) -> object:
    if name in _TOPICS:
        return _import_module(f"manyarms.{name}")
    if name in _NAMES:
        value = getattr(_import_module(_NAMES[name]), name)
        globals()[name] = value  # looked up once
        return value
    if name == "__version__":
        globals()[name] = value = _version()
        return value
    raise AttributeError(f"module 'manyarms' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _version() -> str:
    from importlib.metadata import (
        PackageNotFoundError,
        version,
    )  # late: it takes as long to import as all the rest here

    try:
        return version("manyarms")
    except PackageNotFoundError:  # run from a source tree that is not installed
        return "0+unknown"


__all__ = [
    "DM",
    "DR",
    "IPS",
    "MIPS",
    "SNIPS",
    "ActionPrior",
    "Agent",
    "Catalogue",
    "DiffusionPrior",
    "Drift",
    "GaussianPolicy",
    "Greedy",
    "HierTS",
    "HierarchicalPrior",
    "LinTS",
    "LinUCB",
    "Linear",
    "LoggedData",
    "Logistic",
    "ManyArmsError",
    "MixedEffectPrior",
    "PACBayes",
    "RegKL",
    "SoftmaxPolicy",
    "Thompson",
    "agents",
    "beliefs",
    "bounds",
    "cLPI",
    "certificates",
    "certify",
    "checks",
    "client",
    "dTS",
    "edge",
    "errors",
    "estimators",
    "evaluate",
    "evaluation",
    "fit_prior",
    "inspect",
    "items",
    "learn",
    "learning",
    "live",
    "load",
    "logs",
    "meTS",
    "open_log",
    "policies",
    "pretrain",
    "priors",
    "rewards",
    "sdm",
    "sequential",
    "service",
    "theory",
    "weights",
    "worlds",
]
