"""Policies: distributions over actions, streamed so that contexts x actions never exists as an array."""

from __future__ import annotations

from pathlib import Path

from manyarms._base import storage
from manyarms.errors import InvalidInput, StorageError
from manyarms.policies.base import POLICIES, Policy, PolicyRows, StreamedPolicy, Values, restore_policy
from manyarms.policies.encoders import ContextEncoder, Layers, Projection
from manyarms.policies.randomised import GaussianPolicy, MixedLogitPolicy, gaussian_kl
from manyarms.policies.segments import SegmentSoftmaxPolicy
from manyarms.policies.simple import EpsilonMixture, FixedPolicy, FunctionPolicy, UniformPolicy
from manyarms.policies.softmax import SoftmaxPolicy, TopSoftmaxPolicy
from manyarms.policies.support import DeterministicPolicy, SupportedPolicy
from manyarms.policies.support_softmax import SupportSoftmaxPolicy
from manyarms.policies.two_stage import TwoStagePolicy


def load(folder: str | Path) -> StreamedPolicy:
    """The policy that `save` wrote to `folder`."""
    spec, arrays = storage.load(folder, "policy")
    try:
        return restore_policy(spec, arrays)
    except (KeyError, TypeError) as error:
        raise StorageError(f"{folder}: what a policy of type {spec.get('type')!r} needs is missing: {error}") from error
    except InvalidInput as error:
        raise StorageError(f"{folder}: not a policy that can be restored: {error}") from error


__all__ = [
    "POLICIES",
    "ContextEncoder",
    "DeterministicPolicy",
    "EpsilonMixture",
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
    "load",
]
