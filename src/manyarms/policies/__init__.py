"""Policies: distributions over actions, streamed so that contexts x actions never exists as an array."""

from __future__ import annotations

from pathlib import Path

from manyarms import storage
from manyarms._typing import AnyArray
from manyarms.errors import StorageError
from manyarms.policies.base import Policy, Rows, StreamedPolicy, Values
from manyarms.policies.simple import EpsilonMixture, FixedPolicy, FunctionPolicy, UniformPolicy
from manyarms.policies.softmax import SoftmaxPolicy, TopSoftmaxPolicy
from manyarms.policies.support import DeterministicPolicy, SupportedPolicy


def load(folder: str | Path) -> StreamedPolicy:
    """The policy that `save` wrote to `folder`."""
    spec, arrays = storage.load(folder, "policy")
    try:
        return _restore(spec, arrays)
    except (KeyError, TypeError) as error:
        raise StorageError(f"{folder}: what a policy of type {spec.get('type')!r} needs is missing: {error}") from error


def _restore(spec: dict[str, storage.JSON], arrays: dict[str, AnyArray]) -> StreamedPolicy:
    kind = spec.get("type")
    if kind == SoftmaxPolicy.kind:
        return SoftmaxPolicy(arrays["weights"], spec["temperature"])
    if kind == TopSoftmaxPolicy.kind:
        return TopSoftmaxPolicy(arrays["weights"], spec["k0"], spec["temperature"])
    if kind == FixedPolicy.kind:
        return FixedPolicy(arrays["probabilities"])
    if kind == UniformPolicy.kind:
        return UniformPolicy(spec["actions"])
    if kind == EpsilonMixture.kind:
        inner = {name.removeprefix("policy/"): array for name, array in arrays.items()}
        return EpsilonMixture(_restore(spec["policy"], inner), spec["epsilon"])
    raise StorageError(f"unknown type of policy {kind!r}")


__all__ = [
    "DeterministicPolicy",
    "EpsilonMixture",
    "FixedPolicy",
    "FunctionPolicy",
    "Policy",
    "Rows",
    "SoftmaxPolicy",
    "StreamedPolicy",
    "SupportedPolicy",
    "TopSoftmaxPolicy",
    "UniformPolicy",
    "Values",
    "load",
]
