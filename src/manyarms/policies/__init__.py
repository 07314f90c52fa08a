"""Policies: distributions over actions, streamed so that contexts x actions never exists as an array."""

from __future__ import annotations

from manyarms.policies.base import POLICIES, Policy, PolicyRows, StreamedPolicy, Values
from manyarms.policies.encoders import ContextEncoder, Layers, Projection
from manyarms.policies.randomised import GaussianPolicy, MixedLogitPolicy, gaussian_kl
from manyarms.policies.retrieval import ExactScan, FaissIndex
from manyarms.policies.segments import SegmentSoftmaxPolicy
from manyarms.policies.simple import EpsilonMixture, FixedPolicy, FunctionPolicy, UniformPolicy
from manyarms.policies.softmax import SoftmaxPolicy, TopSoftmaxPolicy
from manyarms.policies.support import DeterministicPolicy, SupportedPolicy
from manyarms.policies.support_softmax import SupportSoftmaxPolicy
from manyarms.policies.two_stage import TwoStagePolicy

__all__ = [
    "POLICIES",
    "ContextEncoder",
    "DeterministicPolicy",
    "EpsilonMixture",
    "ExactScan",
    "FaissIndex",
    "FixedPolicy",
    "FunctionPolicy",
    "GaussianPolicy",
    "Layers",
    "MixedLogitPolicy",
    "Policy",
    "PolicyRows",
    "Projection",
    "SegmentSoftmaxPolicy",
    "SoftmaxPolicy",
    "StreamedPolicy",
    "SupportSoftmaxPolicy",
    "SupportedPolicy",
    "TopSoftmaxPolicy",
    "TwoStagePolicy",
    "UniformPolicy",
    "Values",
    "gaussian_kl",
]
