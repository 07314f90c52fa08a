"""Beliefs: what is known about rewards. A root, leaves on it, and a likelihood make one."""

from manyarms.beliefs.belief import Belief
from manyarms.beliefs.chain_root import ChainRoot
from manyarms.beliefs.joint import JointBelief
from manyarms.beliefs.leaves import Leaves
from manyarms.beliefs.likelihoods import Likelihood, Linear, Logistic, Poisson
from manyarms.beliefs.mixing import Common, Identity, Matrices, Weights
from manyarms.beliefs.own_chains import OwnChains
from manyarms.beliefs.restore import restore_belief
from manyarms.beliefs.roots import FactoredRoot, GaussianRoot, KnownRoot, Root

__all__ = [
    "Belief",
    "ChainRoot",
    "Common",
    "FactoredRoot",
    "GaussianRoot",
    "Identity",
    "JointBelief",
    "KnownRoot",
    "Leaves",
    "Likelihood",
    "Linear",
    "Logistic",
    "Matrices",
    "OwnChains",
    "Poisson",
    "Root",
    "Weights",
    "restore_belief",
]
