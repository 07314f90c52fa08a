"""Beliefs from what was saved of them: `spec()` and `arrays()` back to a belief, for every kind there is."""

from __future__ import annotations

from typing import Any

import numpy as np

from manyarms._base.typing import AnyArray
from manyarms.beliefs.belief import Belief
from manyarms.beliefs.chain_root import ChainRoot, restore_chain
from manyarms.beliefs.joint import JointBelief
from manyarms.beliefs.leaves import restore_leaves
from manyarms.beliefs.likelihoods import LIKELIHOODS
from manyarms.beliefs.own_chains import OwnChains
from manyarms.beliefs.roots import FactoredRoot, GaussianRoot, KnownRoot, Root
from manyarms.errors import InvalidInput

Spec = dict[str, Any]


def restore_belief(spec: Spec, arrays: dict[str, AnyArray]) -> Belief:
    """The belief that `spec()` and `arrays()` describe."""
    likelihood_spec = dict(spec["likelihood"])
    likelihood = LIKELIHOODS[likelihood_spec.pop("kind")](**likelihood_spec)
    leaves = restore_leaves(spec["mixing"], _under("leaves.", arrays), spec["dim"])
    belief: Belief
    if spec["kind"] == OwnChains.kind:
        options, parts = spec["chain"], _under("chain.", arrays)
        prior = restore_chain(options["links"], parts, leaves.catalogue.size, shared=False)
        belief = OwnChains(prior, likelihood, options["rule"], options["bank"], leaves)
        belief.restore_tables(parts)
    else:
        belief = Belief(restore_root(spec["root"], _under("root.", arrays)), leaves, likelihood)
    belief.restore_rows(arrays)
    if spec["kind"] == JointBelief.kind:
        joint = JointBelief.__new__(JointBelief)
        joint.take_over(belief, spec["actions"])
        joint.feature_map, joint.context_shape = None, (spec["actions"], belief.dim)
        joint.catalogue.retire(arrays["retired"])
        return joint
    return belief


def restore_root(spec: Spec, arrays: dict[str, AnyArray]) -> Root:
    """The root that `options()` (with its kind) and `arrays()` describe."""
    root: Root
    kind = spec["kind"]
    if kind == "known":
        root = KnownRoot(arrays["mean"])
    elif kind == "gaussian":
        root = GaussianRoot(arrays["prior_mean"], arrays["prior_covariance"])
    elif kind == "factored" and spec["rule"] == "mean-field":
        root = FactoredRoot(arrays["prior_mean"], arrays["prior_covariance"], spec["effects"], spec["rule"])
    elif kind == "factored":  # its prior has been folded into its blocks: any prior of the right size will do
        dim = arrays["block_information"].size
        root = FactoredRoot(np.zeros(dim), np.eye(dim), spec["effects"], spec["rule"])
    elif kind == "chain":
        root = ChainRoot(restore_chain(spec["links"], arrays, actions=1, shared=True), spec["rule"])
    else:
        raise InvalidInput("root", repr(kind), "'known', 'gaussian', 'factored' or 'chain'")
    root.restore(arrays)
    return root


def _under(prefix: str, arrays: dict[str, AnyArray]) -> dict[str, AnyArray]:
    return {name[len(prefix) :]: array for name, array in arrays.items() if name.startswith(prefix)}
