"""What must be true of a result: it holds no NaN, and what was accepted works.

A prior makes an agent that decides and learns, a likelihood and a decision rule do so in an agent, a policy has probabilities, a
log can be evaluated on.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import shutil
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

import manyarms as ma
from hard_use.targets import context_of


def state_of(agent: Any, folder: Path) -> str:
    """Everything that a save holds."""
    shutil.rmtree(folder, ignore_errors=True)
    agent.save(folder)
    out = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        out.update(path.name.encode() + path.read_bytes())
    return out.hexdigest()


def beliefs_of(agent: Any) -> list[Any]:
    """The posteriors of the first actions; of a retired one there is none."""
    found = []
    for action in range(4):
        with suppress(ma.errors.UnknownAction):
            found.append(agent.posterior(action))
    return found


def is_nan(value: Any, depth: int = 0) -> bool:
    """Is there a NaN in a result?"""
    if isinstance(value, float | np.floating):
        return bool(np.isnan(value))
    if isinstance(value, np.ndarray):
        return value.dtype.kind == "f" and bool(np.isnan(value).any())
    if depth < 3 and isinstance(value, tuple | list):
        return any(is_nan(v, depth + 1) for v in value[:50])
    return False


def unrolled(result: Any) -> Any:
    """A result; of an iterator, which has done nothing yet, its first items; of a future what it comes to."""
    if isinstance(result, Future):
        return result.result(60)
    return list(itertools.islice(result, 3)) if isinstance(result, Iterator) else result


def same(first: Any, second: Any) -> bool:
    """Equal, where that can be said: numbers and arrays."""
    if isinstance(first, np.ndarray | float | int | np.generic) and isinstance(
        second, np.ndarray | float | int | np.generic
    ):
        a, b = np.asarray(first), np.asarray(second)
        if a.dtype.kind not in "fiub" or b.dtype.kind not in "fiub":
            return bool(np.array_equal(a, b))
        # the order of a sum depends on the strides, so that the last digits may
        return a.shape == b.shape and bool(np.allclose(a, b, rtol=1e-9, atol=1e-12, equal_nan=True))
    if isinstance(first, tuple | list) and isinstance(second, tuple | list):
        return len(first) == len(second) and all(same(a, b) for a, b in zip(first, second, strict=True))
    return True


# ---- what was accepted works


def wrong_with(agent: Any) -> str | None:
    """What an agent believes must stay finite, and it must go on deciding."""
    copy = agent.copy()
    for action in set(np.atleast_1d(copy.decide(context_of(copy), k=min(2, copy.actions))).tolist()):
        mean, covariance = copy.posterior(action)
        if not (np.isfinite(mean).all() and np.isfinite(covariance).all()):
            return f"the posterior of action {action} is not finite"
        if (np.diag(np.atleast_2d(covariance)) < 0).any():
            return f"the posterior of action {action} has a negative variance"
    return None


def wrong_after_a_row(agent: Any) -> str | None:
    """The same before and after it has learned something."""
    if said := wrong_with(agent):
        return said
    x = context_of(agent)
    agent.observe(x, agent.decide(x), 1.0)
    return wrong_with(agent)


def wrong_with_policy(policy: Any) -> str | None:
    """Probabilities are numbers between 0 and 1, and something can be drawn."""
    X = np.stack([context_of(policy)] * 2) if policy.dim is None else np.linspace(-1, 1, 2 * policy.dim).reshape(2, -1)
    try:
        pi = policy.probabilities_of(X, [0, policy.action_count - 1])
    except ma.errors.InvalidInput as error:
        if error.argument == "X":  # parameters may be so large that they go with tiny contexts alone
            return None
        raise
    if not ((pi >= 0) & (pi <= 1 + 1e-9)).all():
        return f"probabilities {pi}"
    if policy.action_count > 100_000:  # a draw looks at all of them
        return None
    drawn = policy.sample_rows(X, 0)
    return None if ((drawn >= 0) & (drawn < policy.action_count)).all() else f"drew {drawn}"


def wrong_with_log(log: Any) -> str | None:
    """An evaluation on it is a number, or is refused: a log without propensities may be."""
    with suppress(ma.ManyArmsError):
        value = ma.evaluate(ma.policies.UniformPolicy(log.action_count), log, ["ips"])["ips"].value
        return None if np.isfinite(value) else f"an evaluation gives {value}"
    return None


def small_prior(dim: int = 3) -> Any:
    """Of five actions."""
    return ma.ActionPrior(5, np.zeros(dim), np.eye(dim))


def wrong_in_a_belief(prior: Any, likelihood: Any) -> str | None:
    """A prior and a likelihood may be sound each and not go together: a belief, which knows both, may refuse that."""
    try:
        belief = ma.beliefs.belief_of(prior, likelihood)
    except ma.errors.InvalidInput as error:
        if error.argument == "noise":
            return None
        raise
    return wrong_after_a_row(ma.Agent(belief, ma.Thompson(), 0))


def wrong_with_result(result: Any) -> str | None:
    """Use what a call has made; nothing to say of what is no part of an agent, a policy or a log."""
    if isinstance(result, ma.Agent):
        return wrong_with(result)
    if isinstance(result, ma.LoggedData):
        return wrong_with_log(result)
    if isinstance(result, ma.policies.StreamedPolicy):
        return wrong_with_policy(result)
    if isinstance(result, ma.agents.Decision):
        # a horizon that is left open is that of a belief which forgets
        drift = ma.Drift(half_life=9.0) if getattr(result, "horizon", 0.0) is None else None
        return wrong_after_a_row(ma.Agent(ma.beliefs.belief_of(small_prior(), ma.Linear(), drift=drift), result, 0))
    if hasattr(result, "noise_variance") and hasattr(result, "exact"):
        return wrong_in_a_belief(small_prior(), result)
    if hasattr(result, "marginal") and dataclasses.is_dataclass(result):
        return wrong_in_a_belief(result, ma.Linear())
    return None
