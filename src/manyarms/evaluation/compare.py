"""Which of several policies? Paired differences, and a choice by lower bounds.

Two policies on the same log share its luck: the difference of their terms, row by row, varies less than either. A choice
among many policies by their estimates picks luck; a choice by lower bounds that hold for all of them at once does not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from manyarms._base import validate
from manyarms._base.moments import Contrast, Part
from manyarms.errors import InvalidInput
from manyarms.estimators.base import Estimator, Range
from manyarms.evaluation import intervals
from manyarms.evaluation.answers import PolicyOnLog, RowTerms, terms_of
from manyarms.evaluation.estimate import VALUE, Readings, Wanted, estimate_of, intervals_of, ls_ends, readings
from manyarms.evaluation.intervals import Interval
from manyarms.evaluation.passes import Collected, TermSums, collect, plan, survey
from manyarms.evaluation.results import Estimate
from manyarms.logs.data import CHUNK, LogSource
from manyarms.policies.base import Policy

KINDS = ("ls", "bernstein", "normal", "bootstrap")


@dataclass(frozen=True)
class Difference:
    """The value of one policy less that of another, on the same log."""

    value: float
    standard_error: float
    interval: Interval
    intervals: tuple[Interval, ...]
    correlation: float
    """Of the two policies' terms: the nearer to 1, the more the pairing has won."""

    note: str

    @property
    def significant(self) -> bool:
        """Whether the interval leaves out 0."""
        return not self.interval.low <= 0 <= self.interval.high


def difference(
    policy: Policy,
    other: Policy | None,
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
) -> Difference:
    """V(policy) - V(other) with a paired interval; `other` None stands for the logging policy (the rewards as they are)."""
    wanted = Wanted(level, interval, replicates, seed)
    known = survey(log)
    todo = plan(known, [estimator], reward_range=reward_range, propensity_floor=propensity_floor, bias=bias)
    mine, sums = todo.estimators[0], TermSums()
    for part in log.chunks(chunk):
        both = [terms_of(mine, PolicyOnLog(policy, part, [mine], todo.told))]
        if other is None:
            both.append(RowTerms(part.rewards))
        else:
            both.append(terms_of(mine, PolicyOnLog(other, part, [mine], todo.told)))
        sums.add(both, part.groups)
    moments, ours = sums.moments, readings(todo, 0, sums.where[0])
    if other is None:  # the rewards themselves: unbiased terms in the rewards' own range
        middle = (Part(sums.where[1]["values"]),)
        theirs = Readings(middle, middle, middle, todo.told.reward_range, VALUE)
    else:
        theirs = readings(todo, 0, sums.where[1])
    read = Readings(
        middle=_minus(ours.middle, theirs.middle),
        low=_minus(ours.low, theirs.high),
        high=_minus(ours.high, theirs.low),
        span=_minus_spans(ours.span, theirs.span),
        covers=_covers(ours, theirs),
    )
    found = intervals_of(moments, read, wanted)
    chosen = next((one for one in found if one.kind == interval), found[0])
    error = moments.standard_error(read.middle)
    own, other_error = moments.standard_error(ours.middle), moments.standard_error(theirs.middle)
    alike = (own**2 + other_error**2 - error**2) / (2 * own * other_error) if own * other_error > 0 else 0.0
    note = "the logging policy's value is the mean of the rewards" if other is None else todo.note(0)
    if chosen.kind != interval:
        note += f"; there is no {interval} interval, the {chosen.kind} one is shown"
    return Difference(moments.value(read.middle), error, chosen, tuple(found), alike, note)


def _covers(ours: Readings, theirs: Readings) -> str:
    if ours.covers.startswith(VALUE) and theirs.covers.startswith(VALUE):
        return "the difference of the policies' values" + ours.covers.removeprefix(VALUE)
    return "the difference of the estimators' means, which their biases keep from that of the values"


def _minus(left: Contrast, right: Contrast) -> Contrast:
    return (*left, *(Part(part.column, part.over, -part.sign) for part in right))


def _minus_spans(left: Range | None, right: Range | None) -> Range | None:
    return None if left is None or right is None else (left[0] - right[1], left[1] - right[0])


@dataclass(frozen=True)
class Candidate:
    """A policy's estimate and the lower bound it is judged by."""

    name: str
    estimate: Estimate
    lower: float


@dataclass(frozen=True)
class Choice:
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


def choose(
    policies: Mapping[str, Policy] | Sequence[Policy],
    log: LogSource,
    *,
    delta: float = 0.05,
    kind: str = "ls",
    estimator: Estimator | str | None = None,
    reward_range: Range | None = None,
    propensity_floor: float | None = None,
    bias: bool | None = None,
    replicates: int = 1000,
    seed: int = 0,
    chunk: int = CHUNK,
) -> Choice:
    """The policy with the largest lower bound on its value; the bounds hold for all m policies at once.

    Each is a one-sided bound at 1 - delta / m, so that with probability at least 1 - delta none fails (union bound), and
    the chosen policy is worth at least its own. kind: "ls" (any n, any weights, rewards in [0, 1] or reward_range),
    "bernstein" (any n; an estimator whose weights have a known bound), "normal" or "bootstrap" (many rows).
    The policies must not have been learned from these rows.
    """
    named = dict(policies) if isinstance(policies, Mapping) else {str(i): one for i, one in enumerate(policies)}
    if not named:
        raise InvalidInput("policies", "none", "at least one policy")
    if kind not in KINDS:
        raise InvalidInput("kind", repr(kind), f"one of {', '.join(KINDS)}")
    if not intervals.confidence("delta", delta) < 0.5:
        raise InvalidInput("delta", delta, "a number below 0.5: the probability that a bound may fail")
    each = delta / len(named)
    chosen = estimator if estimator is not None else {"ls": "ls", "bernstein": "ips-min"}.get(kind, "snips")
    known = survey(log)
    todo = plan(known, [chosen], reward_range=reward_range, propensity_floor=propensity_floor, bias=bias)
    collected, rewards = collect(list(named.values()), log, todo, chunk=chunk)
    # a two-sided interval at 1 - 2 delta has a lower end at 1 - delta
    replicates = validate.count("replicates", replicates, least=0) if kind == "bootstrap" else 0
    wanted = Wanted(1 - 2 * each, "normal", replicates, seed)
    candidates = tuple(
        Candidate(name, estimate_of(one, 0, wanted), _lower(one, kind, each, wanted))
        for name, one in zip(named, collected, strict=True)
    )
    best = max(candidates, key=lambda candidate: candidate.lower)
    note = f"{len(named)} bounds at {1 - each:.4g} each: together at {1 - delta:.4g}"
    if kind in ("normal", "bootstrap"):
        note += ", for many rows and weights without a heavy tail"
    return Choice(best.name, best.lower, candidates, kind, delta, rewards.value((Part(0),)), note)


def _lower(collected: Collected, kind: str, delta: float, wanted: Wanted) -> float:
    """A lower bound of the policy's value at 1 - delta, or the reason why there is none."""
    moments, estimator = collected.sums.moments, collected.plan.estimators[0]
    name, where = estimator.name, collected.sums.where[0]
    if moments.grouped and kind in ("ls", "bernstein"):
        raise InvalidInput("kind", kind, "normal or bootstrap: rows that come in groups are not independent")
    if kind == "ls":
        if "complement" not in where:
            raise InvalidInput("estimator", name, "logarithmic smoothing with a parameter above 0, for kind ls")
        return ls_ends(collected, 0, delta)[0]
    read = readings(collected.plan, 0, where)
    least = collected.plan.told.reward_range
    pessimistic = estimator.never_above and least is not None and least[0] >= 0
    if not (read.covers.startswith(VALUE) or pessimistic):
        raise InvalidInput(
            "estimator", name, "one whose mean is at most the value (ips, ips-min, cips, es, ix, shrinkage, ls with rewards "
            "of at least 0), or bias terms: this one may lie above",
        )  # fmt: skip
    found = next((one for one in intervals_of(moments, read, wanted) if one.kind == kind), None)
    if found is None:
        need = "a known bound on the weights and on the rewards" if kind == "bernstein" else "replicates above 0"
        raise InvalidInput("kind", kind, f"{need}: {name} on this log has none")
    return found.low


__all__ = ["Candidate", "Choice", "Difference", "choose", "difference"]
