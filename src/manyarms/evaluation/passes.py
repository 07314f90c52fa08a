"""One pass over a log: the terms of all estimators and policies, summed chunk by chunk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from manyarms._base import validate
from manyarms._base.moments import Moments
from manyarms._base.typing import Array, Ints
from manyarms.errors import InvalidInput
from manyarms.estimators.base import Estimator, Range
from manyarms.estimators.inputs import require_log, require_model
from manyarms.estimators.logging_policy import full_propensities, lost
from manyarms.estimators.naming import as_estimators
from manyarms.evaluation.answers import Assumptions, PolicyOnLog, RowTerms, logged_only_refusal, terms_of
from manyarms.evaluation.diagnostics import PolicyOverlap
from manyarms.evaluation.given import Given
from manyarms.evaluation.policy_like import PolicyLike, given_for
from manyarms.evaluation.time_blocks import TimeCells
from manyarms.logs.checks import place
from manyarms.logs.data import CHUNK, LoggedData, LogSource
from manyarms.logs.hashes import mixed, text_hashes
from manyarms.logs.inspection.sketches import Duplicates
from manyarms.logs.original import with_original_columns
from manyarms.rewards.base import RewardModel
from manyarms.weights import NoCorrection
from manyarms.weights.parameters import zero_or_positive

ROUNDING = 1e-6  # by which a propensity that a file has rounded may be off
FIRST = 16  # rows of a source that are looked at before all others
MAX_FREE_CELLS = 20_000_000  # contexts x actions up to which bias terms are added without being asked for


@dataclass(frozen=True)
class Survey:
    """What must be known of a log before its rows are weighed."""

    rows: int
    low: float
    high: float
    first: LoggedData  # a few rows, to see which columns there are
    outside: str | None = None  # the first row whose reward lies outside [0, 1], as the file calls it
    groups: Duplicates | None = None  # the groups that came, where rows have one
    smallest: float = 1.0  # propensity, of those that were logged

    @property
    def unit_rewards(self) -> bool:
        """Whether all rewards lie in [0, 1]."""
        return self.low >= 0 and self.high <= 1

    @property
    def bias_is_cheap(self) -> bool:
        """Whether the bias of corrections can be had for little beside the estimates."""
        log = self.first
        if full_propensities(log) is None:
            return False
        listed = log.logging is None and log.support is not None
        return listed or self.rows * log.action_count <= MAX_FREE_CELLS


def survey(log: LogSource) -> Survey:
    """Rows and rewards counted: at once for a log in memory, by one pass over a source."""
    if isinstance(log, LoggedData):
        ends = float(log.rewards.min()), float(log.rewards.max())
        return Survey(len(log), *ends, log, _outside(log, 0), _seen_groups(None, log), _smallest(log))
    require_log(log)
    rows, low, high, smallest, first = 0, np.inf, -np.inf, 1.0, None
    outside: str | None = None
    groups: Duplicates | None = None
    for part in log.chunks():
        groups = _seen_groups(groups, part)
        first = part.rows(slice(0, FIRST)) if first is None else first
        outside = _outside(part, rows) if outside is None else outside
        rows, low, high = rows + len(part), min(low, part.rewards.min()), max(high, part.rewards.max())
        smallest = min(smallest, _smallest(part))
    if first is None:
        raise InvalidInput("log", "no rows", "at least one")
    return Survey(rows, float(low), float(high), first, outside, groups, smallest)


def _smallest(log: LoggedData) -> float:
    """The smallest propensity that was logged."""
    return 1.0 if log.propensities is None else float(log.propensities.min())


def _seen_groups(known: Duplicates | None, log: LoggedData) -> Duplicates | None:
    """The groups of more rows, counted by their hashes."""
    if log.groups is None:
        return known
    known = Duplicates() if known is None else known
    names = log.groups
    known.see(text_hashes(names) if names.dtype.kind == "U" else mixed(names.astype(np.uint64)), np.arange(len(names)))
    return known


def _outside(log: LoggedData, before: int) -> str | None:
    """The first row whose reward lies outside [0, 1]; before: how many rows came before these."""
    wrong = (log.rewards < 0) | (log.rewards > 1)
    return place(log, int(np.argmax(wrong)), before) if wrong.any() else None


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
    (given,), _, known = ready([policy], log)
    todo = plan(
        known, [estimator], reward_range=reward_range, propensity_floor=propensity_floor, bias=bias, model=model,
        logged_only=given.logged_only,
    )  # fmt: skip
    return terms_of(todo.estimators[0], PolicyOnLog(given.on(log, 0), log, todo.estimators, todo.told))


def ready(
    policies: Sequence[PolicyLike], log: LogSource, arguments: Sequence[str] = ("policy",)
) -> tuple[list[Given], LogSource, Survey]:
    """Policies as they were given, ready for the chunks of a log; the log, with what they need of it; and its survey."""
    names = arguments if len(arguments) == len(policies) else [arguments[0]] * len(policies)
    givens = [given_for(one, log, name) for one, name in zip(policies, names, strict=True)]
    purpose = next((one.columns_for for one in givens if one.columns_for), "")
    log = with_original_columns(log, purpose) if purpose else log
    known = survey(log)
    for one in givens:
        one.require_rows(known.rows)
        one.look(known.first)
    return givens, log, known


class TermSums:
    """Moments of the terms of several estimators, side by side; `where` says in which columns each lies."""

    def __init__(self, plan: Plan) -> None:
        self.where: list[dict[str, int]] = []
        self._plan = plan
        self._moments: Moments | None = None

    @property
    def moments(self) -> Moments:
        """Of all columns."""
        if self._moments is None:
            raise InvalidInput("log", "no rows", "at least one")
        return self._moments

    def add(self, terms: Sequence[RowTerms], log: LoggedData) -> None:
        """More rows, those of a log."""
        columns = [_columns_of(one) for one in terms]
        if self._moments is None:
            width = 0
            for some in columns:
                self.where.append({name: width + i for i, name in enumerate(some)})
                width += len(some)
            self._moments = Moments(width, self._plan.cells)
        table = np.column_stack([column for some in columns for column in some.values()])
        self._moments.add(table, log.groups, self._plan.cell_of(log))


def _columns_of(terms: RowTerms) -> dict[str, Array]:
    return {name: column for name, column in vars(terms).items() if column is not None}


class Collected:
    """One policy's terms over a whole log, summed."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.sums = plan, TermSums(plan)
        self.largest = np.zeros(len(plan.estimators))  # the largest weight of each estimator
        self.overlap: PolicyOverlap | None = None

    def add(self, on: PolicyOnLog) -> None:
        """More rows."""
        log = on.log
        terms = [terms_of(one, on) for one in self.plan.estimators]
        self.sums.add([*terms, RowTerms(log.rewards)], log)  # the log's own rewards last, to be compared with
        self.largest = np.maximum(self.largest, [0.0 if t.weights is None else float(t.weights.max()) for t in terms])
        if log.propensities is None or all(one.weights is None for one in terms):
            return
        if self.overlap is None:
            self.overlap = PolicyOverlap(grouped=log.groups is not None)
        never = lost(NoCorrection(), on.sums({}, "the bias of a correction"))[0] if on.told.bias else None
        estimated = log.estimated_rows if log.propensities_are_estimates else None
        before = self.overlap.rows
        self.overlap.add(
            on.pi, log.propensities, log.rewards, never, log.actions, estimated, lambda row: place(log, row, before)
        )


def collect(
    policies: Sequence[Given], log: LogSource, todo: Plan, *, chunk: int = CHUNK
) -> tuple[list[Collected], Moments]:
    """One pass over a log for several policies; the moments of the rewards themselves come beside."""
    collected, rewards = [Collected(todo) for _ in policies], Moments(1, todo.cells)
    start = 0
    for part in log.chunks(chunk):
        rewards.add(part.rewards[:, None], part.groups, todo.cell_of(part))
        for policy, mine in zip(policies, collected, strict=True):
            mine.add(PolicyOnLog(policy.on(part, start), part, todo.estimators, todo.told))
        start += len(part)
    return collected, rewards


__all__ = ["Collected", "Plan", "Survey", "TermSums", "collect", "plan", "ready", "row_terms", "survey"]
