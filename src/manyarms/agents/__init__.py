"""Agents: a belief, a decision rule and numbered draws; named combinations of the three."""

from manyarms.agents.agent import Agent
from manyarms.agents.deciding import NumberedDecision, Snapshot
from manyarms.agents.decisions import (
    UCB,
    Decision,
    Ensemble,
    EpsilonGreedy,
    EpsilonMixed,
    Greedy,
    Pessimistic,
    Propensity,
    Thompson,
    Uniform,
)
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

__all__ = [
    "GLMTS",
    "GLMUCB",
    "UCB",
    "UCBGLM",
    "Agent",
    "Decision",
    "Ensemble",
    "EpsilonGreedy",
    "EpsilonGreedyAgent",
    "EpsilonMixed",
    "Greedy",
    "GreedyAgent",
    "HierTS",
    "LinTS",
    "LinUCB",
    "NumberedDecision",
    "Pessimistic",
    "Propensity",
    "Snapshot",
    "Thompson",
    "Uniform",
    "UniformAgent",
    "dTS",
    "jointTS",
    "meTS",
]
