"""A policy's answers to what estimators ask, in NumPy, from any policy; and the terms that estimators make of them.

The counterpart of the engines of `manyarms.learning`, which answer the same requests with torch tensors.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from manyarms._base.typing import AnyArray, Array, Ints
from manyarms.errors import InvalidInput
from manyarms.estimators.base import Answers, Batch, Estimator, Objective, Range, Request
from manyarms.estimators.inputs import logged_probabilities, require_fit, require_policy
from manyarms.estimators.logging_policy import CellFunction, logged_propensities, lost_sums, require_full_propensities
from manyarms.logs.data import LoggedData
from manyarms.policies.base import Policy
from manyarms.policies.row_policy import at_rows
from manyarms.weights import NoCorrection

LISTED_ROWS = 4096  # rows whose own lists of actions are held at a time
LISTED = 1 << 20  # listed actions that the policy is asked for at once, about
LEAST_ROWS = 256  # but never fewer rows than these


@dataclass(frozen=True)
class Assumptions:
    """What all estimators of one evaluation are told."""

    reward_range: Range | None = None
    """The range of the rewards; None if unknown."""

    propensity_floor: float = 0.0
    """A lower bound on positive propensities; 0 if unknown."""

    bias: bool = False
    """Whether to add the bias of corrections, which needs pi0 of all actions."""


@dataclass(frozen=True)
class RowTerms:
    """An estimator's numbers on the rows of a log, (n,) each; the estimate is the mean of the values."""

    values: Array
    weights: Array | None = None
    """The importance weights that were used; self-normalised, the estimate is the sum of the values over their sum."""

    low: Array | None = None
    """Terms whose mean is at most the policy's value: the values and the least that the bias can be."""

    high: Array | None = None
    """Terms whose mean is at least the policy's value."""

    complement: Array | None = None
    """The terms of one minus the rewards, in units of [0, 1], for the bound of logarithmic smoothing from above."""

    baseline: Array | None = None
    """What is added to the ratio of a self-normalised estimator, as a plain mean: a model's value."""


class PolicyOnLog:
    """A policy on a part of a log. What several estimators ask is computed once."""

    def __init__(self, policy: Policy, log: LoggedData, estimators: Sequence[Estimator], told: Assumptions) -> None:
        require_policy(policy)
        require_fit(policy, log)
        if log.propensities is None and log.logging is not None and any(one.weighted for one in estimators):
            log = replace(log, propensities=logged_propensities(log, "estimates from importance weights"))
        self.policy, self.log, self.told = policy, log, told
        self._wanted: dict[Hashable, CellFunction] = lost_sums(NoCorrection()) if told.bias else {}
        for one in estimators if told.bias and told.reward_range is not None else ():
            self._wanted |= one.bias_sums()
        self._masses: list[tuple[AnyArray, Array]] = []  # labels, and the masses of the groups that rows want
        self._expectations: dict[int, Array] = {}
        self._sums: dict[Hashable, Array] = {}

    @cached_property
    def pi(self) -> Array:
        """pi(a_i|x_i), (n,)."""
        return logged_probabilities(self.policy, self.log)

    def answers(self, request: Request, name: str, *, bias: bool = False) -> Answers:
        """What the policy says of all rows; bias: also the sums of bias terms. name: of who asks, for messages."""
        log, out = self.log, Answers()
        if getattr(self.policy, "logged_only", False) and needs_all_actions(request):
            raise logged_only_refusal(name)
        if request.logged:
            out.probability = self.pi[:, None]
        if request.ids is not None:
            ids = request.ids(np.arange(len(log))) if callable(request.ids) else request.ids
            listed = self.policy.probabilities_of_many(log.contexts, np.maximum(ids, 0)) * (ids >= 0)
            out.probability = np.concatenate([out.probability, listed], axis=1) if request.logged else listed
        if request.labels is not None and request.wanted is not None:
            out.group_mass = self._mass(request.labels, request.wanted)
        if request.model is not None:
            key = id(request.model)
            if key not in self._expectations:
                found = self.policy.expectation(log.contexts, request.model.block)
                if not np.isfinite(found).all():
                    came = f"no finite prediction at row {int(np.argmin(np.isfinite(found)))}"
                    raise InvalidInput("model", came, "a model whose predictions are finite numbers")
                self._expectations[key] = found
            out.expectation = self._expectations[key]
        if request.sums or bias:
            out.sums = self.sums(request.sums, name if request.sums else "the bias of a correction")
        return out

    def _mass(self, labels: AnyArray, wanted: Ints) -> Array:
        """The policy's mass of the group that each row wants, (n,)."""
        for known, mass in self._masses:
            if known is labels or np.array_equal(known, labels):
                return mass
        mass = self.policy.group_mass(self.log.contexts, labels, wanted)
        self._masses.append((labels, mass))
        return mass

    def sums(self, more: Mapping[Hashable, CellFunction], purpose: str) -> dict[Hashable, Array]:
        """Sums over actions, (n,) each: those of bias terms and others; one pass serves all that are known to be wanted."""
        missing = {key: function for key, function in {**self._wanted, **more}.items() if key not in self._sums}
        if missing:
            found = require_full_propensities(self.log, purpose).sums(self.policy, list(missing.values()))
            self._sums |= dict(zip(missing, found.T, strict=True))
        return self._sums


def needs_all_actions(request: Request) -> bool:
    """Whether a request asks about other actions than the logged ones."""
    return request.ids is not None or request.labels is not None or request.model is not None or bool(request.sums)


def logged_only_refusal(name: str) -> InvalidInput:
    """Why an estimator has no answer for a policy of which the probabilities of the logged actions alone are known."""
    came = f"{name}, and a policy of which the probabilities of the logged actions alone are known"
    return InvalidInput(
        "estimators", came, "estimators of the IPS family (ips, snips, cips, es, ...); or the policy as a matrix of all "
        "probabilities, an action or a ranked list for each row, a function that gives these, or a policy of manyarms",
    )  # fmt: skip


def terms_of(estimator: Estimator, on: PolicyOnLog) -> RowTerms:
    """An estimator's terms on the rows of a log; its parameters must be resolved.

    Rewards that must lie in [0, 1] are moved there, and the values back.
    """
    log, rewards = on.log, on.told.reward_range
    offset, width = 0.0, 1.0
    if estimator.unit_rewards and rewards is not None:
        offset, width, rewards = rewards[0], rewards[1] - rewards[0], (0.0, 1.0)
        if (offset, width) != (0.0, 1.0):
            log = replace(log, rewards=(log.rewards - offset) / width)
    request = estimator.prepare(log)
    if callable(request.ids):
        return _in_parts(estimator, on)
    request = request.rows(np.arange(len(log)))
    bias = on.told.bias and rewards is not None and bool(estimator.bias_sums())
    columns: Mapping[str, Any] = request.columns
    answers = on.answers(request, estimator.name, bias=bias)
    weights = _finite_weights(estimator, answers, columns)
    values = _finite_terms(estimator, answers, columns)
    bracket = estimator.bracket(values, answers, rewards) if bias and rewards is not None else None
    low, high = (None, None) if bracket is None else (offset + width * end for end in bracket)
    complement = None
    if estimator.log_smoothing > 0:
        complement = estimator.terms(answers, {**columns, "reward": 1.0 - columns["reward"]})
    return RowTerms(offset + width * values, weights, low, high, complement, estimator.baseline(answers, columns))


def _finite_weights(estimator: Estimator, answers: Answers, columns: Mapping[str, Any]) -> Array | None:
    """The weights that an estimator used, all of them numbers."""
    with np.errstate(over="ignore"):
        weights: Array | None = estimator.weights(answers, columns)
    if weights is not None and not np.isfinite(weights).all():
        least = float(np.min(columns["propensity"]))
        raise InvalidInput("log", f"a propensity of {least:.3g}", "propensities whose inverses are finite numbers")
    return weights


def _finite_terms(estimator: Estimator, answers: Answers, columns: Mapping[str, Any]) -> Array:
    """The terms of an estimator, all of them numbers."""
    with np.errstate(over="ignore"):
        values: Array = estimator.terms(answers, columns)
        finite = np.isfinite(values.sum())
    if not finite:
        came = f"terms of {estimator.name} with a sum beyond all numbers"
        raise InvalidInput("log", came, "rewards, propensities and predictions whose products are finite numbers")
    return values


def _in_parts(estimator: Estimator, on: PolicyOnLog) -> RowTerms:
    """A few rows at a time, those of one action together: lists of actions a row live for a part only."""
    n, order = len(on.log), np.argsort(on.log.actions, kind="stable")
    values, weights = np.empty(n), np.empty(n)
    start, longest = 0, LISTED // LEAST_ROWS
    while start < n:
        request = estimator.prepare(on.log)  # anew, and with it what it remembers of the lists
        for _ in range(LISTED_ROWS // LEAST_ROWS):
            index: Ints = order[start : start + max(LEAST_ROWS, min(LISTED_ROWS, LISTED // longest))]
            if not len(index):
                break
            part = request.rows(index)
            answers = PolicyOnLog(at_rows(on.policy, index), on.log.rows(index), (), on.told).answers(
                part, estimator.name
            )
            values[index] = estimator.terms(answers, part.columns)
            weights[index] = estimator.weights(answers, part.columns)
            start, longest = start + len(index), max(1, answers.pi.shape[1])
    return RowTerms(values, weights)


def value_on(objective: Objective, policy: Policy, log: LoggedData) -> float:
    """What any objective that needs no more than probabilities says of a policy on the rows of a log, in one go."""
    objective = objective.resolved(len(log))
    request = objective.prepare(log)
    index = np.arange(len(log)) if request.active is None else np.flatnonzero(request.active)
    if not len(index):
        return 0.0
    request = request.rows(index)
    answers = PolicyOnLog(at_rows(policy, index), log.rows(index), (), Assumptions()).answers(request, objective.name)
    return float(objective.value(answers, Batch(request.columns, len(log))))


__all__ = ["Assumptions", "PolicyOnLog", "RowTerms", "logged_only_refusal", "needs_all_actions", "terms_of", "value_on"]
