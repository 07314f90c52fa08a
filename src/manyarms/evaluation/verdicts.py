"""Ship, do not ship, or cannot tell: one answer from an evaluation, from what is certified, or from both; and why.

    cannot tell      the policy was learned from these rows, or an assumption is contradicted: no number here counts
    ship             the difference to the logging policy, paired row by row, has its lower end above 0, and nothing says that
                     the interval is too short; with a certified improvement: if and only if that is above 0
    do not ship      its upper end is below 0
    cannot tell      otherwise, with what would be needed

What makes an interval too short for "ship": weights with a tail too heavy for so many rows (Pareto k), an effective sample below
100 rows, one row with more than a tenth of all weight, fewer than 30 rows with a weight and a reward (for intervals that are no
bounds); weights that do not average 1; or more than 1 % of the policy's probability on actions that were never logged.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from manyarms._base import validate
from manyarms._base.tables import Shown, Table
from manyarms._base.text import counted, interval_text
from manyarms.errors import LIKELY_REASONS, InvalidInput
from manyarms.evaluation.diagnostics import DOMINANT, FEW, PolicyOverlap
from manyarms.evaluation.paired import Difference
from manyarms.evaluation.results import Estimate, Evaluation

SHIP, DO_NOT_SHIP, CANNOT_TELL = "ship", "do not ship", "cannot tell"
USUAL = (
    "snips",
    "sndr",
    "dr",
    "ips",
)  # whose difference decides: the first that is there, before any number is looked at
UNSEEN = 0.01  # of the policy's probability
BOUNDS = ("bernstein", "ls")  # intervals that hold for any number of rows and any weights
OVERLAP = "a policy nearer to the logging policy, or a log that explores more"


@runtime_checkable
class Certified(Protocol):
    """An improvement that was certified, or not (`manyarms.certificates.Improvement`)."""

    @property
    def lower(self) -> float: ...
    @property
    def estimate(self) -> float: ...
    @property
    def logged(self) -> float: ...
    @property
    def delta(self) -> float: ...
    @property
    def rows(self) -> int: ...
    @property
    def rows_needed(self) -> int | None: ...
    @property
    def certified(self) -> bool: ...
    @property
    def unit(self) -> str: ...


@runtime_checkable
class Bounded(Protocol):
    """A certificate (`manyarms.certificates.Certificate`)."""

    @property
    def upper(self) -> float: ...
    @property
    def largest_reward(self) -> float: ...
    @property
    def two_sided(self) -> bool: ...
    @property
    def unit(self) -> str: ...
    @property
    def delta(self) -> float: ...


@dataclass(frozen=True, repr=False)
class Verdict(Shown):
    """One answer, why, and the numbers behind it."""

    verdict: str
    """"ship", "do not ship" or "cannot tell"."""

    reason: str
    needed: tuple[str, ...]
    """What would be needed to tell, where it cannot."""

    gain: float
    """The policy's value less the logging policy's, per row (or what a certificate counts by), between `low` and `high`."""

    low: float
    high: float
    level: float
    source: str
    """What the numbers come from: an estimator and its kind of interval, or a certificate."""

    rows: int
    rows_needed: int | None = None
    """About how many rows like these would show the gain, where any number would."""

    def _table(self) -> Table:
        return Table(f"verdict: {self.verdict.upper()}", rows=list(self._facts()))

    def _facts(self) -> Iterator[tuple[str, str]]:
        yield "why", self.reason
        for text in self.needed:
            yield "needed", text
        if math.isfinite(self.gain):
            yield "gain", f"{self.gain:+.4g} {interval_text(self.low, self.high)} at {self.level:.4g}"
        if self.source:
            yield "from", f"{self.source}, {counted(self.rows, 'row')}"

    def _line(self) -> str:
        return f"{self.verdict}: {self.reason}"


def verdict(
    evaluation: Evaluation | None = None,
    improvement: Certified | None = None,
    certificate: Bounded | None = None,
    *,
    estimator: str | None = None,
) -> Verdict:
    """Ship or not? From an evaluation, from a certified improvement, or from both (see the module for the rules).

    certificate: where it comes with the improvement, its upper end may show that the policy is worse.

    estimator: whose difference to the logging policy decides, by name; by default snips, sndr, dr or ips, the first that the
    evaluation has, or else the first estimate whose interval is for the policy's value.
    """
    if not isinstance(evaluation, Evaluation | None):
        raise InvalidInput("evaluation", validate.describe(evaluation), "an evaluation, from manyarms.evaluate")
    for name, given, kind in (("improvement", improvement, Certified), ("certificate", certificate, Bounded)):
        if given is not None and (isinstance(given, type) or not isinstance(given, kind)):
            raise InvalidInput(name, validate.describe(given), "one returned by manyarms.certificates")
    if evaluation is None:
        if improvement is None:
            raise InvalidInput("evaluation", "nothing", "an evaluation, or a certified improvement")
        return _certified(improvement, certificate)
    judged = _judged(evaluation, estimator)
    if improvement is not None and not any(contradictions(evaluation)):
        found = _certified(improvement, certificate)
        # what is certified decides on shipping; that a policy is worse, an estimate may show
        if (
            found.verdict != CANNOT_TELL
            or judged is None
            or not judged[1].interval.high < 0
            or evaluation.on_training_rows
        ):
            return found
    if judged is None:
        reason = "No estimate has an interval for the policy's value: their biases are unknown."
        need = ("an estimator such as snips, which needs propensities",)
        return Verdict(CANNOT_TELL, reason, need, math.nan, -math.inf, math.inf, evaluation.level, "", evaluation.rows)
    return _estimated(evaluation, *judged)


def _judged(evaluation: Evaluation, name: str | None) -> tuple[Estimate, Difference] | None:
    """The estimate that decides, and its difference to the logging policy."""
    known = {one.name: one for one in reversed(evaluation.estimates)}
    if name is not None:
        found: Estimate | None = evaluation[name]
    else:
        of_value = (one for one in evaluation.estimates if one.interval_is_for.startswith("the policy's"))
        found = next((known[usual] for usual in USUAL if usual in known), None) or next(of_value, None)
    return None if found is None or found.gain is None else (found, found.gain)


def _certified(improvement: Certified, certificate: Bounded | None) -> Verdict:
    sure, unit = 1 - improvement.delta, improvement.unit
    most = math.inf if certificate is None else _largest_gain(improvement, certificate)
    rest = (improvement.estimate, improvement.lower, most, sure, "a certificate", improvement.rows)
    if improvement.certified:
        reason = (
            f"With probability at least {sure:.4g} the policy earns at least {improvement.lower:.4g} more per {unit} than the "
            f"logging policy, which earned {improvement.logged:.4g}."
        )
        return Verdict(SHIP, reason, (), *rest)
    if most < 0:
        both = 1 - improvement.delta - (0.0 if certificate is None else certificate.delta)  # two statements together
        reason = f"With probability at least {both:.4g} the policy earns less than the logging policy, by at least {-most:.4g}."
        return Verdict(DO_NOT_SHIP, reason, (), *rest)
    reason = (
        f"No improvement is certified: the estimate is {improvement.estimate:+.4g} per {unit}, and the bound leaves room "
        f"for {-improvement.lower:.4g} less than the logging policy, which earned {improvement.logged:.4g}."
    )
    needed = (f"another policy: no number of {unit}s like these would certify this one",)
    if improvement.rows_needed is not None:
        needed = (f"about {improvement.rows_needed:,} {unit}s like these, where there are {improvement.rows:,}",)
    return Verdict(CANNOT_TELL, reason, needed, *rest, improvement.rows_needed)


def _largest_gain(improvement: Certified, certificate: Bounded) -> float:
    """What the upper end leaves of a gain: the logging policy's value is at least its mean less Hoeffding's margin."""
    if not certificate.two_sided or certificate.unit != "row":
        return math.inf
    margin = certificate.largest_reward * math.sqrt(math.log(1 / improvement.delta) / (2 * improvement.rows))
    return certificate.upper - (improvement.logged - margin)


def _estimated(evaluation: Evaluation, estimate: Estimate, gain: Difference) -> Verdict:
    low, high, rows = gain.interval.low, gain.interval.high, evaluation.rows
    source = f"{estimate.label}, {gain.interval.kind} interval"
    numbers = f"{gain.value:+.4g} per round, [{low:.4g}, {high:.4g}] at {gain.interval.level:.4g} ({source})"
    rest = (gain.value, low, high, gain.interval.level, source, rows)
    if evaluation.on_training_rows:
        need = (
            "rows that the policy was not learned from (log.split before learning; event ids in logs tell rows apart for sure)",
            "or a certificate with a prior",
        )
        reason = (
            "The policy was learned from these rows, or from rows that depend on them or look like them: estimates are too good, "
            "and no interval holds."
        )
        return Verdict(CANNOT_TELL, reason, need, *rest)
    wrong = list(contradictions(evaluation))
    if wrong:
        return Verdict(CANNOT_TELL, wrong[0], (f"a look at what is assumed: {LIKELY_REASONS}",), *rest)
    if not gain.interval.covers.startswith("the difference of the policies' values"):
        reason = f"The interval of {estimate.label} leaves its bias out: {numbers}."
        return Verdict(CANNOT_TELL, reason, ("snips or dr, or pi0 of all actions in the log",), *rest)
    found = list(doubts(evaluation, estimate, gain))
    if high < 0 and evaluation.overlap is not None and any(_doubts_about_weights(evaluation.overlap)):
        return Verdict(CANNOT_TELL, f"It looks worse, {numbers}, but {found[0][0]}.", (found[0][1],), *rest)
    if high < 0:
        also = f" (with doubts: {found[0][0]})" if found else ""
        return Verdict(DO_NOT_SHIP, f"The policy earns less than the logging policy: {numbers}{also}.", (), *rest)
    if low > 0 and not found:
        return Verdict(SHIP, f"The policy earns more than the logging policy: {numbers}.", (), *rest)
    needed = tuple(dict.fromkeys(need for _, need in found))
    if low > 0:
        return Verdict(CANNOT_TELL, f"It looks better, {numbers}, but {found[0][0]}.", needed, *rest)
    why = f", as {found[0][0]}" if found else ""
    reason = f"The difference to the logging policy may be 0: {numbers}{why}."
    enough = None
    if gain.value > 0 and math.isfinite(low):
        enough = math.ceil(rows * ((gain.value - low) / gain.value) ** 2)
        needed = (
            f"about {enough:,} rows like these, where there are {rows:,}, if the difference is what it seems",
            *needed,
        )
    return Verdict(CANNOT_TELL, reason, needed or ("more rows, or a policy that differs more",), *rest, enough)


def contradictions(evaluation: Evaluation) -> Iterator[str]:
    """What cannot be: then some assumption does not hold, and no number counts."""
    for one in evaluation.estimates:
        if one.contradicted:
            yield f"The interval of {one.label} lies where no value can be: something that is assumed does not hold."


def doubts(evaluation: Evaluation, estimate: Estimate, gain: Difference) -> Iterator[tuple[str, str]]:
    """Why an interval may not hold, and what would help: the worst first."""
    overlap = evaluation.overlap
    if overlap is not None and overlap.zero == overlap.rows:
        yield "the policy never plays what was logged", OVERLAP
        return
    if overlap is not None:
        yield from _doubts_about_weights(overlap)
    if gain.interval.kind in BOUNDS:
        return
    if not math.isfinite(gain.interval.low) and gain.warnings:
        yield gain.warnings[0], OVERLAP
    if overlap is not None and overlap.heavy_tailed and estimate.name in USUAL:
        reliable = f"{overlap.pareto_k:.2f}, above {overlap.largest_reliable_k:.2f}"
        yield f"the tail of the weights is too heavy for an average (Pareto k {reliable})", OVERLAP
    if overlap is not None and overlap.sum > 0 and overlap.largest / overlap.sum > DOMINANT:
        yield f"one row carries {overlap.largest / overlap.sum:.0%} of all weight", OVERLAP
    if estimate.effective_sample_size < FEW:
        size = estimate.effective_sample_size
        yield f"the weights leave an effective sample of {size:.0f} rows, where {FEW} are the least", OVERLAP
    if overlap is not None and 0 < overlap.useful < FEW_USEFUL:
        yield f"only {overlap.useful} rows have both a weight and a reward", "more rows"


FEW_USEFUL = 30


def _doubts_about_weights(overlap: PolicyOverlap) -> Iterator[tuple[str, str]]:
    if overlap.off > 0 or (overlap.off < 0 and overlap.never_played is None):
        way = "too small" if overlap.off > 0 else "too large, or actions are missing"
        yield (
            f"weights average {overlap.mean_weight:.3g} where 1 is expected: propensities seem {way}",
            "propensities that are those of the logging policy, for all actions that the policy plays",
        )
    if overlap.never_played is not None and overlap.never_played > UNSEEN:
        share = f"{overlap.never_played:.1%}"
        yield f"{share} of the policy's probability is on actions that were never logged", OVERLAP


__all__ = ["CANNOT_TELL", "DO_NOT_SHIP", "SHIP", "Certified", "Verdict", "contradictions", "doubts", "verdict"]
