"""Decisions: what to do about a belief. Thompson sampling, indices, and uniform play and epsilon-greedy as controls.

One file each; a new one registers itself by name.
"""

from manyarms.agents.decisions.base import DECISIONS, Decision, Pick, Propensity, restore_decision
from manyarms.agents.decisions.mixtures import EpsilonGreedy
from manyarms.agents.decisions.optimistic import UCB, Greedy, IndexDecision, Pessimistic
from manyarms.agents.decisions.thompson import Thompson
from manyarms.agents.decisions.uniform import Uniform, pick_uniformly

__all__ = [
    "DECISIONS",
    "UCB",
    "Decision",
    "EpsilonGreedy",
    "Greedy",
    "IndexDecision",
    "Pessimistic",
    "Pick",
    "Propensity",
    "Thompson",
    "Uniform",
    "pick_uniformly",
    "restore_decision",
]
