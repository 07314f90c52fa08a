"""Beliefs: what is known about rewards. A root, leaves on it, and a likelihood make one; `belief_of` makes one from a prior."""

from manyarms.beliefs.belief import BELIEFS, Belief, restore_belief
from manyarms.beliefs.chain_root import ChainRoot
from manyarms.beliefs.drift import Discount, Drift, SlidingWindow
from manyarms.beliefs.factored_root import FactoredRoot
from manyarms.beliefs.from_prior import belief_of, independent_belief_of, joint_belief_of
from manyarms.beliefs.independent_chains import IndependentChains
from manyarms.beliefs.joint import JointBelief
from manyarms.beliefs.leaves import Leaves
from manyarms.beliefs.likelihoods import LIKELIHOODS, GeneralisedLinear, Likelihood, Linear, Logistic, Poisson
from manyarms.beliefs.mixing import MIXINGS, CommonMixing, IdentityMixing, Mixing, MixingMatrices, MixingWeights
from manyarms.beliefs.particles import ParticleBelief
from manyarms.beliefs.roots import ROOTS, GaussianRoot, KnownRoot, Root

__all__ = [
    "BELIEFS",
    "LIKELIHOODS",
    "MIXINGS",
    "ROOTS",
    "Belief",
    "ChainRoot",
    "CommonMixing",
    "Discount",
    "Drift",
    "FactoredRoot",
    "GaussianRoot",
    "GeneralisedLinear",
    "IdentityMixing",
    "IndependentChains",
    "JointBelief",
    "KnownRoot",
    "Leaves",
    "Likelihood",
    "Linear",
    "Logistic",
    "Mixing",
    "MixingMatrices",
    "MixingWeights",
    "ParticleBelief",
    "Poisson",
    "Root",
    "SlidingWindow",
    "belief_of",
    "independent_belief_of",
    "joint_belief_of",
    "restore_belief",
]
