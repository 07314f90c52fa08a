"""One pass over a log: the terms of all estimators and policies, summed chunk by chunk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from manyarms._base import validate
from manyarms._base.moments import Moments
from manyarms._base.typing import Array, Ints
from manyarms.errors import InvalidInput
from manyarms.estimators.base import Estimator, Range
from manyarms.estimators.inputs import require_model
from manyarms.estimators.logging_policy import lost
from manyarms.estimators.naming import as_estimators
from manyarms.evaluation.answers import Assumptions, PolicyOnLog, RowTerms, logged_only_refusal, terms_of
from manyarms.evaluation.diagnostics import PolicyOverlap
from manyarms.evaluation.given import Given
from manyarms.evaluation.policy_like import PolicyLike, given_for
from manyarms.evaluation.readers import Here, Pass, Reader
from manyarms.evaluation.surveys import Survey, survey
from manyarms.evaluation.time_blocks import TimeCells
from manyarms.logs.checks import place
from manyarms.logs.data import CHUNK, LoggedData, LogSource
from manyarms.logs.original import with_original_columns
from manyarms.rewards.base import RewardModel
from manyarms.weights import NoCorrection
from manyarms.weights.parameters import zero_or_positive

ROUNDING = 1e-6  # by which a propensity that a file has rounded may be off


@dataclass(frozen=True)
class Plan:
    """What is computed of a policy: resolved estimators, and what they are told."""

    estimators: tuple[Estimator, ...]
    told: Assumptions
    times: TimeCells | None = None  # where rows may depend on each other in time

    @property
    def cells(self) -> int:
        """Of time; 0 where it does not matter."""
        return 0 if self.times is None else self.times.cells

    def cell_of(self, log: LoggedData) -> Ints | None:
        """The cell of each row, where time matters."""
        return None if self.times is None else self.times.of_rows(log)

    def span(self, which: int, *, with_bias: bool = False) -> Range | None:
        """Numbers between which the terms of an estimator lie, if such are known; with_bias: those of its bias terms."""
        one, rewards, floor = self.estimators[which], self.told.reward_range, self.told.propensity_floor
        offset, width = 0.0, 1.0
        if one.unit_rewards and rewards is not None:
            offset, width, rewards = rewards[0], rewards[1] - rewards[0], (0.0, 1.0)
        found = one.span_with_bias(rewards, floor) if with_bias and rewards is not None else one.span(rewards, floor)
        return None if found is None else (offset + width * found[0], offset + width * found[1])

    def note(self, which: int) -> str:
        """What to know of an estimate."""
        one, rewards = self.estimators[which], self.told.reward_range
        if not one.unit_rewards or rewards is None or rewards == (0.0, 1.0):
            return one.note
        low, high = rewards
        return f"{one.note}; rewards were moved from [{low:g}, {high:g}] to [0, 1] and the value moved back"


def plan(
    known: Survey,
    estimators: Sequence[Estimator | str],
    *,
    reward_range: Range | None = None,
    propensity_floor: float | None = None,
    bias: bool | None = None,
    model: RewardModel | None = None,
    times: TimeCells | None = None,
    logged_only: bool = False,
) -> Plan:
    """Estimators with parameters for this log, and what they are told.

    reward_range: [0, 1] where all rewards lie in it and nothing is given. model: of the estimators that are given by name and
    need one. logged_only: of a policy the probabilities of the logged actions alone are known.
    """
    if model is not None:
        require_model(model)
    parameters = {} if model is None else {"model": model}
    resolved = tuple(one.resolved(known.rows) for one in as_estimators(estimators, parameters))
    bias = not logged_only and known.bias_is_cheap if bias is None else validate.flag("bias", bias)
    if bias and logged_only:
        raise logged_only_refusal("bias=True")
    if propensity_floor is None:
        floor = float(getattr(known.first.logging, "smallest_probability", 0.0))
    else:
        floor = zero_or_positive("propensity_floor", propensity_floor, most=1)
        if floor > known.smallest * (1 + ROUNDING):
            came = f"{floor:g}, and a propensity of {known.smallest:g} in the log"
            raise InvalidInput("propensity_floor", came, "a number that no propensity falls below")
    limits = _checked_range(known, reward_range)
    unit = next((one.label for one in resolved if one.unit_rewards), None)
    if limits is None and unit is not None:
        raise InvalidInput(
            "rewards", f"rewards from {known.low:g} to {known.high:g}, the first outside [0, 1] at {known.outside}",
            f"rewards in [0, 1] for {unit}, or reward_range=(low, high), the range that they can have",
        )  # fmt: skip
    return Plan(resolved, Assumptions(limits, floor, bias), times)


def _checked_range(known: Survey, given: Range | None) -> Range | None:
    if given is None:
        return (0.0, 1.0) if known.unit_rewards else None
    low, high = validate.as_array("reward_range", given, (2,)).tolist()
    if not high - low >= validate.SMALLEST:
        raise InvalidInput("reward_range", validate.describe(given), "two finite numbers, the lower first")
    if known.low < low or known.high > high:
        came = f"rewards from {known.low:g} to {known.high:g}"
        raise InvalidInput("rewards", came, f"rewards within reward_range, from {low:g} to {high:g}")
    return low, high


def row_terms(
    policy: PolicyLike,
    log: LoggedData,
    estimator: Estimator | str,
    *,
    reward_range: Range | None = None,
    propensity_floor: float | None = None,
    bias: bool | None = None,
    model: RewardModel | None = None,
) -> RowTerms:
    """An estimator's terms on the rows of a log in memory, whose mean is the estimate; the arguments are those of `evaluate`."""
    validate.instance("log", log, LoggedData, "a log in memory, LoggedData")
    (given,), _, known = ready([policy], log, Here())
    todo = plan(
        known, [estimator], reward_range=reward_range, propensity_floor=propensity_floor, bias=bias, model=model,
        logged_only=given.logged_only,
    )  # fmt: skip
    return terms_of(todo.estimators[0], PolicyOnLog(given.on(log, 0), log, todo.estimators, todo.told))


def ready(
    policies: Sequence[PolicyLike], log: LogSource, reader: Reader, arguments: Sequence[str] = ("policy",)
) -> tuple[list[Given], LogSource, Survey]:
    """Policies as they were given, ready for the chunks of a log; the log, with what they need of it; and its survey."""
    names = arguments if len(arguments) == len(policies) else [arguments[0]] * len(policies)
    givens = [given_for(one, log, name) for one, name in zip(policies, names, strict=True)]
    purpose = next((one.columns_for for one in givens if one.columns_for), "")
    log = with_original_columns(log, purpose) if purpose else log
    known = survey(log, reader)
    for one in givens:
        one.require_rows(known.rows)
        one.look(known.first)
    return givens, log, known


class TermSums:
    """Moments of the terms of several estimators, side by side; `where` says in which columns each lies."""

    def __init__(self, cells: int = 0, first_row: int = 0) -> None:
        self.where: list[dict[str, int]] = []
        self._cells, self._first_row = cells, first_row
        self._moments: Moments | None = None

    @property
    def moments(self) -> Moments:
        """Of all columns."""
        if self._moments is None:
            raise InvalidInput("log", "no rows", "at least one")
        return self._moments

    def add(self, terms: Sequence[RowTerms], log: LoggedData, cell: Ints | None) -> None:
        """More rows, those of a log; cell: of time, of each row."""
        columns = [_columns_of(one) for one in terms]
        if self._moments is None:
            width = 0
            for some in columns:
                self.where.append({name: width + i for i, name in enumerate(some)})
                width += len(some)
            self._moments = Moments(width, self._cells, self._first_row)
        table = np.column_stack([column for some in columns for column in some.values()])
        self._moments.add(table, log.groups, cell)

    def merge(self, later: TermSums) -> None:
        """The rows of another one, which come after these."""
        if self._moments is None:
            self.where, self._moments = later.where, later._moments
        elif later._moments is not None:
            self._moments.merge(later._moments)


def _columns_of(terms: RowTerms) -> dict[str, Array]:
    return {name: column for name, column in vars(terms).items() if column is not None}


class PolicySums:
    """One policy's terms over some rows, summed."""

    def __init__(self, plan: Plan, first_row: int = 0) -> None:
        self.terms = TermSums(plan.cells, first_row)
        self.largest = np.zeros(len(plan.estimators))  # the largest weight of each estimator
        self.overlap: PolicyOverlap | None = None

    def add(self, plan: Plan, on: PolicyOnLog, row: int) -> None:
        """More rows, of which the first has the number `row`."""
        log = on.log
        terms = [terms_of(one, on) for one in plan.estimators]
        # the log's own rewards last, to be compared with
        self.terms.add([*terms, RowTerms(log.rewards)], log, plan.cell_of(log))
        self.largest = np.maximum(self.largest, [0.0 if t.weights is None else float(t.weights.max()) for t in terms])
        if log.propensities is None or all(one.weights is None for one in terms):
            return
        if self.overlap is None:
            self.overlap = PolicyOverlap(grouped=log.groups is not None, first_row=row)
        never = lost(NoCorrection(), on.sums({}, "the bias of a correction"))[0] if on.told.bias else None
        estimated = log.estimated_rows if log.propensities_are_estimates else None
        self.overlap.add(
            on.pi, log.propensities, log.rewards, never, log.actions, estimated, lambda which: place(log, which, row)
        )

    def merge(self, later: PolicySums) -> None:
        """The rows of another one, which come after these."""
        self.terms.merge(later.terms)
        self.largest = np.maximum(self.largest, later.largest)
        if self.overlap is None:
            self.overlap = later.overlap
        elif later.overlap is not None:
            self.overlap.merge(later.overlap)


class AllSums:
    """Those of several policies, and beside them the moments of the rewards themselves."""

    def __init__(self, policies: int, plan: Plan, first_row: int) -> None:
        self.policies = [PolicySums(plan, first_row) for _ in range(policies)]
        self.rewards = Moments(1, plan.cells, first_row)

    def merge(self, later: AllSums) -> None:
        """The rows of another one, which come after these."""
        for mine, theirs in zip(self.policies, later.policies, strict=True):
            mine.merge(theirs)
        self.rewards.merge(later.rewards)


@dataclass(frozen=True)
class PolicyPass(Pass[AllSums]):
    """All terms of several policies."""

    policies: Sequence[Given]
    plan: Plan

    def start(self, first_row: int) -> AllSums:
        return AllSums(len(self.policies), self.plan, first_row)

    def add(self, sums: AllSums, part: LoggedData, row: int) -> None:
        sums.rewards.add(part.rewards[:, None], part.groups, self.plan.cell_of(part))
        for policy, mine in zip(self.policies, sums.policies, strict=True):
            on = PolicyOnLog(policy.on(part, row), part, self.plan.estimators, self.plan.told)
            mine.add(self.plan, on, row)

    def sent(self) -> list[tuple[str, object]]:
        return sent(self.policies, self.plan)


def sent(policies: Sequence[Given], plan: Plan) -> list[tuple[str, object]]:
    """What passes need of a call's arguments, with their names."""
    return [*((one.argument, one) for one in policies), ("estimators", plan)]


@dataclass(frozen=True)
class Collected:
    """One policy's terms over a whole log, summed."""

    plan: Plan
    sums: TermSums
    largest: Array = field(repr=False)  # the largest weight of each estimator
    overlap: PolicyOverlap | None


def collect(
    policies: Sequence[Given], log: LogSource, todo: Plan, reader: Reader, *, chunk: int = CHUNK
) -> tuple[list[Collected], Moments]:
    """One pass over a log for several policies; the moments of the rewards themselves come beside."""
    sums = reader.read(PolicyPass(policies, todo), log, chunk)
    return [Collected(todo, one.terms, one.largest, one.overlap) for one in sums.policies], sums.rewards


__all__ = [
    "Collected", "Plan", "PolicyPass", "PolicySums", "Survey", "TermSums", "collect", "plan", "ready", "row_terms", "sent",
    "survey",
]  # fmt: skip
