"""Beliefs: what is known about rewards. A root, leaves on it, and a likelihood make one."""

from manyarms.beliefs.belief import Belief, restore_belief
from manyarms.beliefs.leaves import Leaves
from manyarms.beliefs.likelihoods import Likelihood, Linear, Logistic, Poisson
from manyarms.beliefs.mixing import Identity, Matrices, Weights
from manyarms.beliefs.roots import FactoredRoot, GaussianRoot, KnownRoot, Root

__all__ = [
    "Belief",
    "FactoredRoot",
    "GaussianRoot",
    "Identity",
    "KnownRoot",
    "Leaves",
    "Likelihood",
    "Linear",
    "Logistic",
    "Matrices",
    "Poisson",
    "Root",
    "Weights",
    "restore_belief",
]
