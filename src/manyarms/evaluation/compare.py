"""Which of several policies? Paired differences, and a choice by lower bounds.

Two policies on the same log share its luck: the difference of their terms, row by row, varies less than either. A choice
among many policies by their estimates picks luck; a choice by lower bounds that hold for all of them at once does not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from manyarms._base import validate
from manyarms._base.moments import Part
from manyarms._base.tables import Shown, Table
from manyarms._base.text import number
from manyarms.bounds.concentration import NEAREST_TO_ONE
from manyarms.engine import On
from manyarms.errors import InvalidInput
from manyarms.estimators.base import Estimator, Range
from manyarms.estimators.inputs import require_log
from manyarms.evaluation import intervals
from manyarms.evaluation.answers import PolicyOnLog, RowTerms, terms_of
from manyarms.evaluation.estimate import estimate_of
from manyarms.evaluation.given import Given
from manyarms.evaluation.intervals import Interval
from manyarms.evaluation.paired import AGAINST_THE_LOG, Difference, of_the_log, paired
from manyarms.evaluation.passes import Collected, Plan, TermSums, collect, plan, ready, sent
from manyarms.evaluation.policy_like import PolicyLike
from manyarms.evaluation.readers import Pass, reader_of
from manyarms.evaluation.readings import VALUE, Wanted, intervals_of, ls_ends, possible, readings
from manyarms.evaluation.results import Estimate
from manyarms.evaluation.time_blocks import Block
from manyarms.logs.data import CHUNK, LoggedData, LogSource

KINDS = ("ls", "bernstein", "normal", "bootstrap")


def difference(
    policy: PolicyLike,
    other: PolicyLike | None,
    log: LogSource,
    estimator: Estimator | str = "snips",
    *,
    level: float = 0.95,
    interval: str = "normal",
    reward_range: Range | None = None,
    propensity_floor: float | None = None,
    bias: bool | None = None,
    replicates: int = 1000,
    seed: int = 0,
    chunk: int = CHUNK,
    block: Block | None = None,
    on: On = "local",
) -> Difference:
    """V(policy) - V(other) with a paired interval; `other` None stands for the logging policy (the rewards as they are).

    policy, other, on: whatever `evaluate` takes.
    """
    require_log(log)
    chunk, wanted = validate.count("chunk", chunk), Wanted(level, interval, replicates, seed)
    compared = [policy] if other is None else [policy, other]
    with reader_of(log, on) as reader:
        wanted, times = wanted.in_time(log, block, reader)
        givens, log, known = ready(compared, log, reader, ("policy", "other")[: len(compared)])
        todo = plan(
            known, [estimator], reward_range=reward_range, propensity_floor=propensity_floor, bias=bias, times=times,
            logged_only=any(one.logged_only for one in givens),
        )  # fmt: skip
        sums = reader.read(_PairedPass(givens, todo), log, chunk)
    ours, limits = readings(todo, 0, sums.where[0]), todo.told.reward_range
    if other is None:
        note = AGAINST_THE_LOG
        theirs = of_the_log(sums.where[1]["values"], limits)
    else:
        note, theirs = todo.note(0), readings(todo, 0, sums.where[1])
    return paired(sums.moments, ours, theirs, wanted, limits, note)


@dataclass(frozen=True)
class _PairedPass(Pass[TermSums]):
    """The terms of two policies side by side, or those of one and the rewards themselves."""

    policies: Sequence[Given]
    plan: Plan

    def start(self, first_row: int) -> TermSums:
        return TermSums(self.plan.cells, first_row)

    def add(self, sums: TermSums, part: LoggedData, row: int) -> None:
        mine = self.plan.estimators[0]
        terms = [terms_of(mine, PolicyOnLog(one.on(part, row), part, [mine], self.plan.told)) for one in self.policies]
        sums.add([*terms, RowTerms(part.rewards)] if len(terms) == 1 else terms, part, self.plan.cell_of(part))

    def sent(self) -> list[tuple[str, object]]:
        return sent(self.policies, self.plan)


@dataclass(frozen=True, repr=False)
class Candidate(Shown):
    """A policy's estimate and the lower bound it is judged by."""

    name: str
    estimate: Estimate
    lower: float


@dataclass(frozen=True, repr=False)
class Choice(Shown):
    """The policy with the largest lower bound, and all of them."""

    best: str
    lower: float
    """With probability at least 1 - delta the value of `best` is at least this."""

    candidates: tuple[Candidate, ...]
    kind: str
    delta: float
    logged: float
    """The mean reward of the log, to compare with."""

    note: str

    def _table(self) -> Table:
        best = f"{self.best}: worth at least {number(self.lower)} with probability {1 - self.delta:.4g}"
        return Table(
            best if math.isfinite(self.lower) else "no bound says anything: no policy is chosen for a reason",
            ("policy", "lower bound", "estimate", "std. error"),
            [
                (one.name, one.lower, one.estimate.value, one.estimate.standard_error)
                for one in sorted(self.candidates, key=lambda one: -one.lower)
            ],
            [f"mean reward of the log: {number(self.logged)}", f"note: {self.note}"],
        )


def choose(
    policies: Mapping[str, PolicyLike] | Sequence[PolicyLike],
    log: LogSource,
    *,
    delta: float = 0.05,
    kind: str | None = None,
    estimator: Estimator | str | None = None,
    reward_range: Range | None = None,
    propensity_floor: float | None = None,
    bias: bool | None = None,
    replicates: int = 1000,
    seed: int = 0,
    chunk: int = CHUNK,
    on: On = "local",
) -> Choice:
    """The policy with the largest lower bound on its value; the bounds hold for all m policies at once.

    Each is a one-sided bound at 1 - delta / m, so that with probability at least 1 - delta none fails (union bound), and
    the chosen policy is worth at least its own. kind: "ls" (any n, any weights, rewards in [0, 1] or reward_range),
    "bernstein" (any n; an estimator whose weights have a known bound), "normal" or "bootstrap" (many rows); unless given, "ls",
    or "normal" where rows come in groups, which are not independent.
    policies: each whatever `evaluate` takes. They must not have been learned from these rows. on: as of `evaluate`.
    """
    named = _named(policies)
    require_log(log)
    chunk, kind = validate.count("chunk", chunk), _kind(kind, log)
    delta = intervals.confidence("delta", delta)
    if not delta < 0.5:
        raise InvalidInput("delta", delta, "a number below 0.5: the probability that a bound may fail")
    each = delta / len(named)
    if each < NEAREST_TO_ONE:
        expected = f"at least {len(named) * NEAREST_TO_ONE:g}, for so many policies"
        raise InvalidInput("delta", delta, expected)
    chosen = estimator if estimator is not None else {"ls": "ls", "bernstein": "ips-min"}.get(kind, "snips")
    with reader_of(log, on) as reader:
        givens, log, known = ready(list(named.values()), log, reader, ("policies",))
        todo = plan(
            known, [chosen], reward_range=reward_range, propensity_floor=propensity_floor, bias=bias,
            logged_only=any(one.logged_only for one in givens),
        )  # fmt: skip
        collected, rewards = collect(givens, log, todo, reader, chunk=chunk)
    # a two-sided interval at 1 - 2 delta has a lower end at 1 - delta
    replicates = validate.count("replicates", replicates, least=0)
    replicates = replicates if kind == "bootstrap" else 0
    wanted = Wanted(1 - 2 * each, "normal", replicates, seed)
    candidates = tuple(
        Candidate(name, estimate_of(one, 0, wanted), _lower(one, kind, each, wanted))
        for name, one in zip(named, collected, strict=True)
    )
    best = max(candidates, key=lambda candidate: candidate.lower)
    note = f"{len(named)} bounds at {1 - each:.4g} each: together at {1 - delta:.4g}"
    if kind in ("normal", "bootstrap"):
        note += ", for many rows and weights without a heavy tail"
    if best.lower == -math.inf:
        note += "; no bound says anything, and the first policy stands for all (see the warnings of the estimates)"
    return Choice(best.name, best.lower, candidates, kind, delta, rewards.value((Part(0),)), note)


def _kind(given: str | None, log: LogSource) -> str:
    """The kind of bound: the one that was asked for, or one that the log's rows allow."""
    if given is not None:
        return validate.one_of("kind", given, KINDS)
    groups = log.groups if isinstance(log, LoggedData) else getattr(getattr(log, "columns", None), "group", None)
    return "ls" if groups is None else "normal"


def _named(policies: Mapping[str, PolicyLike] | Sequence[PolicyLike]) -> dict[str, PolicyLike]:
    """Policies by name, by their numbers where they have none."""
    if isinstance(policies, Mapping):
        named = {validate.instance("policies", name, str, "policies by name"): one for name, one in policies.items()}
    elif isinstance(policies, Sequence) and not isinstance(policies, str):
        named = {str(i): one for i, one in enumerate(policies)}
    else:
        raise InvalidInput("policies", validate.describe(policies), "a list of policies, or a dictionary by name")
    if not named:
        raise InvalidInput("policies", "none", "at least one policy")
    return named


def _lower(collected: Collected, kind: str, delta: float, wanted: Wanted) -> float:
    """A lower bound of the policy's value at 1 - delta, or the reason why there is none."""
    moments, estimator = collected.sums.moments, collected.plan.estimators[0]
    name, where = estimator.name, collected.sums.where[0]
    if moments.grouped and kind in ("ls", "bernstein"):
        raise InvalidInput("kind", kind, "normal or bootstrap: rows that come in groups are not independent")
    if kind == "ls":
        if "complement" not in where:
            raise InvalidInput("estimator", name, "logarithmic smoothing with a parameter above 0, for kind ls")
        ends = Interval(*ls_ends(collected, 0, delta), kind, 1 - 2 * delta, VALUE)
        assert collected.plan.told.reward_range is not None  # `plan` has refused rewards without a range
        return ends.low if possible([ends], collected.plan.told.reward_range)[0] else -math.inf
    read = readings(collected.plan, 0, where)
    least = collected.plan.told.reward_range
    pessimistic = estimator.never_above and least is not None and least[0] >= 0
    if not (read.covers.startswith(VALUE) or pessimistic):
        raise InvalidInput(
            "estimator", name, "one whose mean is at most the value (ips, ips-min, cips, es, ix, shrinkage, ls with rewards "
            "of at least 0), or bias terms: this one may lie above",
        )  # fmt: skip
    found = next((one for one in intervals_of(moments, read, wanted)[0] if one.kind == kind), None)
    if found is None:
        need = "a known bound on the weights and on the rewards" if kind == "bernstein" else "replicates above 0"
        raise InvalidInput("kind", kind, f"{need}: {name} on this log has none")
    return found.low


__all__ = ["Candidate", "Choice", "Difference", "choose", "difference"]
