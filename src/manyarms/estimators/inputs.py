"""Policies, logs and reward models as they come from users: whether they are such at all, and what a policy says of a log."""

from __future__ import annotations

from typing import Any

import numpy as np

from manyarms._base import validate
from manyarms._base.typing import Array
from manyarms.errors import InvalidInput
from manyarms.logs.data import LoggedData, a_log

ROUNDING = 1e-5  # of probabilities that were computed in single precision


def is_policy(thing: object) -> bool:
    """Whether something can say how likely it plays an action."""
    return _has(thing, "probabilities_of") and hasattr(thing, "action_count")


def require_policy(policy: object, argument: str = "policy") -> None:
    """Refuse what cannot say how likely it plays an action in any context."""
    if is_policy(policy):
        return
    if _has(policy, "as_policy"):
        raise InvalidInput(argument, validate.describe(policy), "a policy: that of an agent is agent.as_policy()")
    raise InvalidInput(argument, validate.describe(policy), "a policy, such as SoftmaxPolicy(actions)")


def require_fit(policy: Any, log: LoggedData) -> None:
    """Refuse a policy over other actions than the log's, or over contexts of another length."""
    if policy.action_count != log.action_count:
        raise InvalidInput(
            "policy", f"a policy over {policy.action_count} actions", f"one over the log's {log.action_count}"
        )
    dim = getattr(policy, "dim", None)  # None: contexts of any length, or a policy that does not say
    if dim is not None and dim != log.dim:
        came = f"a policy over contexts of length {dim}"
        raise InvalidInput("policy", came, f"one over contexts of length {log.dim}, as the log's are")


def require_log(log: object, argument: str = "log") -> None:
    """Refuse what cannot give rounds in chunks."""
    a_log(argument, log)  # type: ignore[arg-type]


def require_model(model: object) -> None:
    """Refuse what cannot predict rewards."""
    if not (_has(model, "predict") and _has(model, "block")):
        raise InvalidInput("model", validate.describe(model), "a reward model with predict and block")


def _has(thing: object, method: str) -> bool:
    """Whether an object, and not a class, has a method."""
    return not isinstance(thing, type) and callable(getattr(thing, method, None))


def logged_probabilities(policy: Any, log: LoggedData) -> Array:
    """pi(a_i|x_i), (n,): what a policy says of the logged actions, refused where these are no probabilities."""
    pi = validate.as_array("policy", policy.probabilities_of(log.contexts, log.actions), (len(log),))
    if not (pi.min() >= 0 and pi.max() <= 1 + ROUNDING):
        row = int(np.argmax((pi < 0) | (pi > 1 + ROUNDING)))
        raise InvalidInput("policy", f"a probability of {pi[row]:g} at row {row}", "probabilities from 0 to 1")
    return pi


__all__ = ["is_policy", "logged_probabilities", "require_fit", "require_log", "require_model", "require_policy"]
