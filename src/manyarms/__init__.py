"""Contextual bandits over catalogues of thousands to millions of actions.

import manyarms as ma
world = ma.worlds.MixedEffect(actions=100_000, effects=5, dim=10, seed=0)
agent = ma.meTS(world.prior())
for x in world.contexts(5_000):
    a = agent.decide(x)
    agent.observe(x, a, world.reward(x, a))
"""

from importlib import import_module as _import_module
from importlib.metadata import PackageNotFoundError as _NotInstalled
from importlib.metadata import version as _version
from typing import TYPE_CHECKING as _TYPE_CHECKING

from manyarms import bounds, certificates, estimators, evaluation, logs, policies, theory, weights, worlds
from manyarms._base.storage import load
from manyarms.agents.agent import Agent
from manyarms.agents.decisions import UCB, EpsilonGreedy, Greedy, Pessimistic, Propensity, Thompson, Uniform
from manyarms.agents.named import (
    GLMTS,
    GLMUCB,
    UCBGLM,
    EpsilonGreedyAgent,
    GreedyAgent,
    HierTS,
    LinTS,
    LinUCB,
    UniformAgent,
    dTS,
    jointTS,
    meTS,
)
from manyarms.beliefs import (
    Belief,
    ChainRoot,
    CommonMixing,
    FactoredRoot,
    GaussianRoot,
    IdentityMixing,
    IndependentChains,
    JointBelief,
    KnownRoot,
    Leaves,
    Linear,
    Logistic,
    MixingMatrices,
    MixingWeights,
    Poisson,
    belief_of,
)
from manyarms.bounds import Grid
from manyarms.certificates import Certificate, Improvement, PolicyPrior, certify, improvement, rows_needed, summarise
from manyarms.errors import DataError, InvalidInput, ManyArmsError, MissingExtra, StorageError, UnknownAction
from manyarms.estimators import (
    BPR,
    DM,
    DR,
    ES,
    ESLPI,
    IPS,
    IX,
    LPI,
    LS,
    MIPS,
    PC,
    PWLL,
    SNIPS,
    Distance,
    ESBeta,
    Heuristic,
    OffCEM,
    PACBayes,
    RegKL,
    RegKLLinear,
    SampleVariance,
    cIPS,
    cLPI,
)
from manyarms.evaluation import choose, difference, evaluate, tune
from manyarms.logs import Actions, Columns, Encoding, LoggedData, estimate_propensities, open_log
from manyarms.logs.inspection import inspect
from manyarms.policies import (
    GaussianPolicy,
    MixedLogitPolicy,
    SoftmaxPolicy,
    SupportSoftmaxPolicy,
    TwoStagePolicy,
    retrieval,
)
from manyarms.policies.retrieval import ExactScan, FaissIndex
from manyarms.priors import structure
from manyarms.priors.diffusion import DiffusionPrior, TwoLevelPrior
from manyarms.priors.gaussian import ActionPrior, HierarchicalPrior, MixedEffectPrior
from manyarms.priors.latent import LatentPrior
from manyarms.priors.links import FunctionLink, LinearLink, NetworkLink
from manyarms.priors.pretraining import Pretrained, pretrain
from manyarms.rewards import (
    BeliefModel,
    Clipped,
    LinearModel,
    calibration,
    dm_bayes,
    dm_frequentist,
    fit_prior,
    learned_structure,
    sdm,
    warm_start,
)

if _TYPE_CHECKING:
    from manyarms import learning
    from manyarms.learning import TorchEncoder, learn

# what needs PyTorch is loaded when it is first asked for: `import manyarms` stays light
_LATE = {"learn": "manyarms.learning", "TorchEncoder": "manyarms.learning"}


def __getattr__(name: str) -> object:
    if name == "learning":
        return _import_module("manyarms.learning")
    if name in _LATE:
        return getattr(_import_module(_LATE[name]), name)
    raise AttributeError(f"module 'manyarms' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


try:
    __version__ = _version("manyarms")
except _NotInstalled:  # run from a source tree that is not installed
    __version__ = "0+unknown"

__all__ = [
    "BPR",
    "DM",
    "DR",
    "ES",
    "ESLPI",
    "GLMTS",
    "GLMUCB",
    "IPS",
    "IX",
    "LPI",
    "LS",
    "MIPS",
    "PC",
    "PWLL",
    "SNIPS",
    "UCB",
    "UCBGLM",
    "ActionPrior",
    "Actions",
    "Agent",
    "Belief",
    "BeliefModel",
    "Certificate",
    "ChainRoot",
    "Clipped",
    "Columns",
    "CommonMixing",
    "DataError",
    "DiffusionPrior",
    "Distance",
    "ESBeta",
    "Encoding",
    "EpsilonGreedy",
    "EpsilonGreedyAgent",
    "ExactScan",
    "FactoredRoot",
    "FaissIndex",
    "FunctionLink",
    "GaussianPolicy",
    "GaussianRoot",
    "Greedy",
    "GreedyAgent",
    "Grid",
    "Heuristic",
    "HierTS",
    "HierarchicalPrior",
    "IdentityMixing",
    "Improvement",
    "IndependentChains",
    "InvalidInput",
    "JointBelief",
    "KnownRoot",
    "LatentPrior",
    "Leaves",
    "LinTS",
    "LinUCB",
    "Linear",
    "LinearLink",
    "LinearModel",
    "LoggedData",
    "Logistic",
    "ManyArmsError",
    "MissingExtra",
    "MixedEffectPrior",
    "MixedLogitPolicy",
    "MixingMatrices",
    "MixingWeights",
    "NetworkLink",
    "OffCEM",
    "PACBayes",
    "Pessimistic",
    "Poisson",
    "PolicyPrior",
    "Pretrained",
    "Propensity",
    "RegKL",
    "RegKLLinear",
    "SampleVariance",
    "SoftmaxPolicy",
    "StorageError",
    "SupportSoftmaxPolicy",
    "Thompson",
    "TorchEncoder",
    "TwoLevelPrior",
    "TwoStagePolicy",
    "Uniform",
    "UniformAgent",
    "UnknownAction",
    "belief_of",
    "bounds",
    "cIPS",
    "cLPI",
    "calibration",
    "certificates",
    "certify",
    "choose",
    "dTS",
    "difference",
    "dm_bayes",
    "dm_frequentist",
    "estimate_propensities",
    "estimators",
    "evaluate",
    "evaluation",
    "fit_prior",
    "improvement",
    "inspect",
    "jointTS",
    "learn",
    "learned_structure",
    "learning",
    "load",
    "logs",
    "meTS",
    "open_log",
    "policies",
    "pretrain",
    "retrieval",
    "rows_needed",
    "sdm",
    "structure",
    "summarise",
    "theory",
    "tune",
    "warm_start",
    "weights",
    "worlds",
]
