"""Embeddings of another length than the contexts: a projection between them, which is learned with the policy.

    pi(a|x) = softmax of (W^T x)^T beta_a / T,    W (d, l), from zero: the uniform policy

Zero is a start like any other for one linear map: the gradient there is x sum_a (...) beta_a^T, and does not vanish.
"""

from __future__ import annotations

import numpy as np

from manyarms.errors import InvalidInput
from manyarms.learning.results import Learnable
from manyarms.learning.settings import TrainingSettings
from manyarms.logs.data import LogSource
from manyarms.policies.encoders import Projection
from manyarms.policies.softmax import SoftmaxPolicy

PROJECTED = (
    "contexts have {} numbers and the actions' vectors {}: a linear projection from one to the other was put before the "
    "policy and learned with it (policy.encoder)"
)


def projected(policy: Learnable, log: LogSource, settings: TrainingSettings) -> tuple[Learnable, tuple[str, ...]]:
    """The policy to start from, with a projection before it where it needs one, and a note that says so."""
    if not isinstance(policy, SoftmaxPolicy) or policy.encoder is not None or policy.dim == log.dim:
        return policy, ()
    if not policy.actions.any():  # zeros describe no action: their length is a mistake, which is refused later
        return policy, ()
    if settings.train == "actions":
        expected = f"'encoder' or 'both': a projection from {log.dim} to {policy.dim} numbers must be learned"
        raise InvalidInput("train", "'actions'", expected)
    width = policy.actions.shape[1]
    start = SoftmaxPolicy(
        policy.actions, policy.temperature, Projection(np.zeros((log.dim, width), policy.actions.dtype))
    )
    start.training_rows = policy.training_rows
    return start, (PROJECTED.format(log.dim, width),)


__all__ = ["projected"]
