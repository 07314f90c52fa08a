"""Policies: distributions over actions, streamed so that contexts x actions never exists as an array."""

from __future__ import annotations

from manyarms._base import storage
from manyarms._base.typing import AnyArray
from manyarms.errors import StorageError
from manyarms.policies.base import Policy, Rows, StreamedPolicy, Values
from manyarms.policies.encoders import Encoder, Layers, Projection, restored
from manyarms.policies.randomised import GaussianPolicy, MixedLogitPolicy, gaussian_kl
from manyarms.policies.segments import SegmentSoftmaxPolicy
from manyarms.policies.simple import EpsilonMixture, FixedPolicy, FunctionPolicy, UniformPolicy
from manyarms.policies.softmax import SoftmaxPolicy, TopSoftmaxPolicy
from manyarms.policies.support import DeterministicPolicy, SupportedPolicy
from manyarms.policies.support_softmax import SupportSoftmaxPolicy
from manyarms.policies.two_stage import TwoStagePolicy


def _restore(spec: dict[str, storage.JSON], arrays: dict[str, AnyArray]) -> StreamedPolicy:
    kind = spec.get("type")
    if kind == SoftmaxPolicy.kind:
        return SoftmaxPolicy(arrays["weights"], spec["temperature"], restored(spec, arrays))
    if kind == TopSoftmaxPolicy.kind:
        return TopSoftmaxPolicy(arrays["weights"], spec["k0"], spec["temperature"])
    if kind == FixedPolicy.kind:
        return FixedPolicy(arrays["probabilities"])
    if kind == UniformPolicy.kind:
        return UniformPolicy(spec["actions"])
    if kind == EpsilonMixture.kind:
        return EpsilonMixture(_restore(spec["policy"], _below(arrays, "policy/")), spec["epsilon"])
    if kind == SupportSoftmaxPolicy.kind:
        support = _restore(spec["support"], _below(arrays, "support/"))
        if not isinstance(support, SupportedPolicy):
            raise StorageError(f"a support of type {spec['support']['type']!r}, which lists no actions")
        return SupportSoftmaxPolicy(arrays["weights"], support, spec["temperature"], restored(spec, arrays))
    if kind == TwoStagePolicy.kind:
        tables = arrays["clusters"], arrays["labels"], arrays["model"]
        return TwoStagePolicy(*tables, spec["temperature"], restored(spec, arrays))
    if kind == SegmentSoftmaxPolicy.kind:
        return SegmentSoftmaxPolicy(arrays["weights"], arrays["centres"], arrays["lists"], spec["temperature"])
    if kind == GaussianPolicy.kind:
        return GaussianPolicy(arrays["weights"], spec["sigma"], restored(spec, arrays), spec["nodes"])
    if kind == MixedLogitPolicy.kind:
        sizes = spec["draws"], spec["seed"]
        return MixedLogitPolicy(arrays["weights"], spec["sigma"], restored(spec, arrays), *sizes)
    raise StorageError(f"unknown type of policy {kind!r}")


storage.LOADERS.register("policy")(_restore)


def _below(arrays: dict[str, AnyArray], prefix: str) -> dict[str, AnyArray]:
    """The arrays of a policy within a policy."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


__all__ = [
    "DeterministicPolicy",
    "Encoder",
    "EpsilonMixture",
    "FixedPolicy",
    "FunctionPolicy",
    "GaussianPolicy",
    "Layers",
    "MixedLogitPolicy",
    "Policy",
    "Projection",
    "Rows",
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
