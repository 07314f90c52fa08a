"""Decisions: what to do about a belief. Thompson sampling, indices, a knowledge gradient, mixtures of them with uniform play.

One file each; a new one registers itself by name.
"""

from manyarms.agents.decisions.base import DECISIONS, Decision, Pick, Propensity, restore_decision
from manyarms.agents.decisions.knowledge_gradient import KnowledgeGradient
from manyarms.agents.decisions.mixtures import Ensemble, EpsilonGreedy, EpsilonMixed
from manyarms.agents.decisions.optimistic import UCB, Greedy, IndexDecision, Pessimistic
from manyarms.agents.decisions.scaled_thompson import ScaledThompson
from manyarms.agents.decisions.thompson import Thompson
from manyarms.agents.decisions.uniform import Uniform, pick_uniformly

__all__ = [
    "DECISIONS",
    "UCB",
    "Decision",
    "Ensemble",
    "EpsilonGreedy",
    "EpsilonMixed",
    "Greedy",
    "IndexDecision",
    "KnowledgeGradient",
    "Pessimistic",
    "Pick",
    "Propensity",
    "ScaledThompson",
    "Thompson",
    "Uniform",
    "pick_uniformly",
    "restore_decision",
]
