"""Agents: a belief, a decision rule and a stream of random numbers; named combinations of the three."""

from manyarms.agents.agent import Agent
from manyarms.agents.decisions import UCB, Decision, EpsilonGreedy, Greedy, Pessimistic, Propensity, Thompson, Uniform
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
    "EpsilonGreedy",
    "EpsilonGreedyAgent",
    "Greedy",
    "GreedyAgent",
    "HierTS",
    "LinTS",
    "LinUCB",
    "Pessimistic",
    "Propensity",
    "Thompson",
    "Uniform",
    "UniformAgent",
    "dTS",
    "jointTS",
    "meTS",
]
