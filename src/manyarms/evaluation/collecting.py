"""One pass over a log: the terms of all estimators and policies, summed chunk by chunk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from manyarms._base import validate
from manyarms._base.moments import Moments
from manyarms._base.typing import Array
from manyarms.errors import InvalidInput
from manyarms.estimators.logging_policy import RewardModel
from manyarms.evaluation.diagnostics import Overlap
from manyarms.evaluation.estimators import DM, DR, IPS, SWITCH
from manyarms.evaluation.terms import Case, Estimator, Settings, Terms, bias_is_cheap
from manyarms.logs.data import CHUNK, LoggedData, LogSource
from manyarms.policies.base import Policy
from manyarms.weights import Correction, LogSmoothing, NoCorrection, Weighting


@dataclass(frozen=True)
class Plan:
    """What `collect` computes of a policy: resolved estimators and what they are told."""

    estimators: tuple[Estimator, ...]
    settings: Settings


class Columns:
    """Where the terms of the estimators lie in the columns of `Moments`."""

    def __init__(self, terms: Sequence[Terms]) -> None:
        self.shape: list[dict[str, int]] = []
        self.width = 0
        for one in terms:
            names = list(_columns_of(one))
            self.shape.append({name: self.width + i for i, name in enumerate(names)})
            self.width += len(names)

    def stack(self, terms: Sequence[Terms]) -> Array:
        """All terms side by side, (n, width)."""
        return np.column_stack([column for one in terms for column in _columns_of(one).values()])


def _columns_of(terms: Terms) -> dict[str, Array]:
    candidates = {
        "values": terms.values,
        "weights": terms.weights,
        "squares": None if terms.weights is None else terms.weights**2,
        "low": terms.low if terms.high is not None else None,
        "high": terms.high,
        "complement": None if terms.smoothing is None else terms.smoothing.complement,
    }
    return {name: column for name, column in candidates.items() if column is not None}


@dataclass
class Collected:
    """One policy's terms over a whole log, summed."""

    plan: Plan
    columns: Columns
    moments: Moments
    constant: tuple[Terms, ...]  # what does not vary with the rows: notes, spans, how terms are averaged
    largest: Array  # per estimator, the largest weight
    overlap: Overlap | None


@dataclass(frozen=True)
class Survey:
    """What must be known of a log before its rows are weighed."""

    rows: int
    low: float
    high: float
    first: LoggedData  # a few rows, to see which columns there are
    outside: int | None = None  # the first row whose reward lies outside [0, 1]

    @property
    def unit_rewards(self) -> bool:
        """Whether all rewards lie in [0, 1]."""
        return self.low >= 0 and self.high <= 1


def survey(log: LogSource) -> Survey:
    """Rows and rewards counted: at once for a log in memory, by one pass over a source."""
    if isinstance(log, LoggedData):
        return Survey(len(log), float(log.rewards.min()), float(log.rewards.max()), log, _outside(log.rewards))
    if not hasattr(log, "chunks"):
        raise InvalidInput("log", validate.describe(log), "LoggedData, or a source of rounds in chunks")
    rows, low, high, first = 0, np.inf, -np.inf, None
    outside: int | None = None
    for part in log.chunks():
        first = part.rows(slice(0, 1)) if first is None else first
        if outside is None and (here := _outside(part.rewards)) is not None:
            outside = rows + here
        rows, low, high = rows + len(part), min(low, part.rewards.min()), max(high, part.rewards.max())
    if first is None:
        raise InvalidInput("log", "no rows", "at least one")
    return Survey(rows, float(low), float(high), first, outside)


def _outside(rewards: Array) -> int | None:
    """The first row whose reward lies outside [0, 1]."""
    wrong = (rewards < 0) | (rewards > 1)
    return int(np.argmax(wrong)) if wrong.any() else None


def plan(
    known: Survey,
    estimators: Sequence[Estimator | str],
    *,
    reward_range: tuple[float, float] | None = None,
    propensity_floor: float | None = None,
    bias: bool | None = None,
    model: RewardModel | None = None,
) -> Plan:
    """Estimators with parameters for this log, and what they are told.

    reward_range: [0, 1] where all rewards lie in it and nothing is given. model: of the estimators that go by the names dm,
    dr, switch and switch-dr.
    """
    resolved = tuple(as_estimator(one, model).resolved(known.rows) for one in estimators)
    if not resolved:
        raise InvalidInput("estimators", "none", "at least one")
    if propensity_floor is None:
        floor = float(getattr(known.first.logging, "smallest_probability", 0.0))
    else:
        floor = validate.probability("propensity_floor", propensity_floor)
    corrections = (NoCorrection(), *(c for one in resolved for c in _corrections(one)))
    if reward_range is None and not known.unit_rewards and any(isinstance(c, LogSmoothing) for c in corrections):
        raise InvalidInput(
            "rewards", f"rewards from {known.low:g} to {known.high:g}, the first outside [0, 1] at row {known.outside}",
            "rewards in [0, 1] for logarithmic smoothing, or reward_range=(low, high), the range that they can have",
        )  # fmt: skip
    add_bias = bias_is_cheap(known.first, known.rows) if bias is None else bias
    return Plan(resolved, Settings(_checked_range(known, reward_range), floor, add_bias, corrections))


def _checked_range(known: Survey, given: tuple[float, float] | None) -> tuple[float, float] | None:
    if given is None:
        return (0.0, 1.0) if known.unit_rewards else None
    low, high = float(given[0]), float(given[1])
    if not (low < high and np.isfinite([low, high]).all()):
        raise InvalidInput("reward_range", given, "two finite numbers, the lower first")
    if known.low < low or known.high > high:
        came = f"rewards from {known.low:g} to {known.high:g}"
        raise InvalidInput("rewards", came, f"rewards within reward_range, from {low:g} to {high:g}")
    return low, high


def as_estimator(one: Estimator | str, model: RewardModel | None = None) -> Estimator:
    """An estimator, or the one that goes by a name such as "snips", "cips:0.01", or, with a model, "dr" or "dr:0.01"."""
    if not isinstance(one, str):
        return one
    name, _, number = one.partition(":")
    try:
        parameter = float(number) if number else None
    except ValueError:
        raise InvalidInput("estimators", repr(one), "a name, or a name and a number such as cips:0.01") from None
    if name not in MODELLED:
        return IPS(name, parameter)
    if model is None:
        raise InvalidInput("estimators", f"{name!r} without a reward model", f"model=, for {', '.join(MODELLED)}")
    if name == "dm" and parameter is not None:
        raise InvalidInput("estimators", repr(one), "no number: dm has no parameter")
    return MODELLED[name](model, parameter)


MODELLED: dict[str, Callable[[RewardModel, float | None], Estimator]] = {
    "dm": lambda model, _: DM(model),
    "dr": lambda model, tau: DR(model) if tau is None else DR(model, tau),
    "switch": lambda model, threshold: SWITCH(model, threshold),
    "switch-dr": lambda model, threshold: SWITCH(model, threshold, doubly_robust=True),
}
"""What goes by a name once there is a reward model; after a colon the tau of dr, the threshold of the others."""


def _corrections(estimator: Estimator) -> tuple[Correction, ...]:
    if isinstance(estimator, IPS) and isinstance(estimator.weighting, Weighting):
        return () if estimator.weighting.self_normalised else (estimator.weighting.correction,)
    if isinstance(estimator, DR) and isinstance(estimator.correction, Correction):
        return (estimator.correction,)
    return ()


def collect(
    policies: Sequence[Policy], log: LogSource, plans: Sequence[Plan], *, chunk: int = CHUNK
) -> tuple[list[Collected], Moments]:
    """One pass over a log for several policies; the moments of the rewards themselves come beside."""
    collected: list[Collected] = []
    rewards = Moments(1)
    for part in log.chunks(chunk):
        rewards.add(part.rewards[:, None], part.groups)
        for i, (policy, todo) in enumerate(zip(policies, plans, strict=True)):
            case = Case(policy, part, todo.settings)
            terms = tuple(estimator.of(case) for estimator in todo.estimators)
            if len(collected) == i:
                collected.append(_begin(todo, terms, part))
            mine = collected[i]
            mine.moments.add(mine.columns.stack(terms), part.groups)
            heaviest = [0.0 if one.weights is None else float(one.weights.max()) for one in terms]
            mine.largest = np.maximum(mine.largest, heaviest)
            if mine.overlap is not None:
                lost = case.lost(NoCorrection())
                mine.overlap.add(case.pi, case.pi0, part.rewards, None if lost is None else lost[0], part.actions)
    return collected, rewards


def _begin(todo: Plan, terms: tuple[Terms, ...], part: LoggedData) -> Collected:
    columns = Columns(terms)
    overlap = None
    if any(one.weights is not None for one in terms) and (part.propensities is not None or part.logging is not None):
        overlap = Overlap(estimated=part.propensities_are_estimates, grouped=part.groups is not None)
    return Collected(todo, columns, Moments(columns.width), tuple(map(constant, terms)), np.zeros(len(terms)), overlap)


def constant(terms: Terms) -> Terms:
    """Terms without their rows."""
    none = terms.values[:0]
    smoothing = None if terms.smoothing is None else replace(terms.smoothing, complement=none)
    return replace(terms, values=none, weights=None, low=None, high=None, smoothing=smoothing)


__all__ = ["Collected", "Columns", "Plan", "Survey", "as_estimator", "collect", "constant", "plan", "survey"]
