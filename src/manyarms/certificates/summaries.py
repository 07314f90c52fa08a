"""What the bounds need of a policy on a log: a few averages, from one pass in blocks.

With h the denominator of a correction that is linear in the policy, w(a|x) = pi(a|x) / h(pi0(a|x)) and h(p) >= p:

    value             mean of  w_i R_i
    complement        mean of  w_i (1 - R_i)
    logged square     mean of  pi(A_i|X_i) R_i^2 / h_i^2
    expected square   mean of  sum over a of pi0 pi / h^2
    bias              1 - mean of sum over a of pi0 w

Both squares together are Var_n, and the bias is B_n (thesis, lines 2514-2520, 2712-2724). pi stands in the squares, and not its
square, because the bounds look at the deterministic rules that a randomised policy draws from: the square of an indicator is the
indicator. A policy that was fixed before the log needs no such rules, and gets the squares of w itself; that form also takes
corrections that are not linear, for which w may count too much: `overshoot` is by how much, and `bias` by how much too little.

Rewards are divided by the largest that there can be. Where the logging policy never plays, w is 0 and what pi has there is bias.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from manyarms import validate
from manyarms._typing import Array
from manyarms.errors import InvalidInput
from manyarms.evaluation.whole import CellFunction, Cells, logged_propensities, require_whole
from manyarms.logs.data import CHUNK, LoggedData, LogSource
from manyarms.policies.base import Policy
from manyarms.weights import Correction, LogSmoothing

AGREE = 1e-3  # a logged propensity and the logging policy's own may differ by this share (files keep a few digits)
NORM = 8  # the maximum over actions is bounded by this norm, which sums over blocks: too large by K^(1/8) at most


@dataclass(frozen=True)
class Averages:
    """The averages of one correction; expected_square and bias are None where pi0 of all actions was not asked for."""

    value: float
    complement: float
    logged_square: float
    expected_square: float | None = None
    bias: float | None = None
    overshoot: float = 0.0
    spread: float = 0.0
    """The sample variance of the terms of `value`."""

    complement_spread: float = 0.0

    @property
    def second_moment(self) -> float:
        """Var_n: both squares."""
        return self.logged_square + _known(self.expected_square)

    @property
    def lost(self) -> float:
        """B_n."""
        return _known(self.bias)


@dataclass(frozen=True)
class Smoothed:
    """The averages of logarithmic smoothing with parameter l; `linear` below says in which form.

        value        pi log(1 + l R / p) / l        or    log(1 + l w R) / l
        complement   the same of 1 - R
        gain         pi log(1 + l (1/p - 1) R) + (1 - pi) log(1 - l R), over l    or    log(1 + l (w - 1) R) / l;  nan for l >= 1
    """

    value: float
    complement: float
    gain: float


@dataclass(frozen=True)
class Summary:
    """A policy on a log, as the bounds see it; rewards in units of the largest."""

    rows: int
    logged: float
    """The mean reward: what the logging policy earned."""

    weighted: Mapping[Correction, Averages]
    smoothed: Mapping[float, Smoothed] = field(default_factory=dict)
    linear: bool = True
    """Whether the averages are those of a mixture of rules (PAC-Bayes), or of one policy that was fixed beforehand."""

    actions: int = 2
    tolerance: float = 0.0
    """How far a probability of the policy may be from the truth (quadrature)."""

    draws: int | None = None
    """How many independent draws stand behind each probability (Monte Carlo)."""

    reach: Summary | None = None
    """For each average, how much it can differ between two distributions over actions; only where errors are reckoned with."""

    def of(self, correction: Correction) -> Averages:
        """The averages of a correction."""
        try:
            return self.weighted[correction]
        except KeyError:
            raise InvalidInput("summary", f"no averages of {correction!r}", "a summary made for this bound") from None

    def smoothing(self, parameter: float) -> Smoothed:
        """The averages of logarithmic smoothing."""
        try:
            return self.smoothed[parameter]
        except KeyError:
            raise InvalidInput("summary", f"no smoothing by {parameter:g}", "a summary made for this bound") from None

    def at(self, rows: int) -> Summary:
        """The same averages, had there been so many rows."""
        return replace(self, rows=rows)

    @property
    def is_exact(self) -> bool:
        """Whether the policy's probabilities are taken for exact."""
        return self.draws is None and self.tolerance == 0

    def worst(self, delta: float) -> tuple[Summary, Summary]:
        """The averages moved against a lower bound, and against an upper one, by what the probabilities may be off.

        A probability from quadrature is off by at most `tolerance`. S independent draws give an average of S terms, each within
        `reach`: by Hoeffding's inequality it is off by at most reach sqrt(log(2 m / delta) / (2 S)), for all m averages at once
        with probability at least 1 - delta. (Draws may be common to all rows, a term then being a mean over rows, or each row's
        own, which can only make the average steadier.)
        """
        if self.is_exact or self.reach is None:
            return self, self
        many = 5 * len(self.weighted) + 3 * len(self.smoothed)
        chance = 0.0 if self.draws is None else math.sqrt(math.log(2 * many / delta) / (2 * self.draws))
        played, listed = chance + self.tolerance, chance + self.actions * self.tolerance
        below: dict[Correction, Averages] = {}
        above: dict[Correction, Averages] = {}
        for correction, own in self.weighted.items():
            reach = self.reach.weighted[correction]
            grown = replace(
                own,
                complement=own.complement - played * reach.complement,
                logged_square=own.logged_square + played * reach.logged_square,
                overshoot=own.overshoot + listed * reach.overshoot,
            )
            if own.bias is not None and own.expected_square is not None:
                grown = replace(
                    grown,
                    expected_square=own.expected_square + listed * _known(reach.expected_square),
                    bias=min(1.0, own.bias + listed * _known(reach.bias)),
                )
            below[correction] = replace(grown, value=own.value - played * reach.value)
            above[correction] = replace(grown, value=own.value + played * reach.value)
        smoothed = {}
        for parameter, each in self.smoothed.items():
            span = self.reach.smoothed[parameter]
            smoothed[parameter] = Smoothed(
                each.value - played * span.value,
                each.complement - played * span.complement,
                each.gain - played * span.gain,
            )
        return replace(self, weighted=below, smoothed=smoothed), replace(self, weighted=above, smoothed=smoothed)


def summarise(
    policy: Policy,
    log: LogSource,
    corrections: Sequence[Correction] = (),
    smoothings: Sequence[float] = (),
    *,
    whole: bool = True,
    linear: bool = True,
    largest_reward: float = 1.0,
    chunk: int = CHUNK,
) -> Summary:
    """One pass over a log.

    whole: also what needs pi0 of all actions. linear: the averages for a mixture of rules; otherwise those of a fixed policy.
    """
    validate.positive("largest_reward", largest_reward)
    for correction in corrections:
        _check(correction, linear)
    for smoothing in smoothings:
        validate.positive("smoothing", smoothing)
    draws = getattr(policy, "draws", None)
    tolerance = 0.0 if draws is not None else float(getattr(policy, "tolerance", 0.0))
    inexact = draws is not None or tolerance > 0
    if inexact and not linear:
        raise InvalidInput("policy", "probabilities with an error", "exact ones, for averages that are not linear in them")
    columns = _Columns(tuple(corrections), tuple(smoothings), whole, linear, inexact)
    running, base = _Running(columns.width), 0
    for part in log.chunks(chunk):
        if policy.action_count != part.action_count:
            came = f"a policy over {policy.action_count} actions"
            raise InvalidInput("policy", came, f"one over the log's {part.action_count}")
        running.add(columns.of(policy, part, _unit(part.rewards, largest_reward, base)))
        base += len(part)
    if not base:
        raise InvalidInput("log", "no rows", "at least one")
    mean, variance = running.mean, running.variance
    own, reach = columns.read(mean, variance)
    summary = Summary(base, float(mean[0]), *own, linear, policy.action_count, tolerance, draws)
    if not inexact:
        return summary
    return replace(summary, reach=Summary(base, 0.0, *reach))


# ---- the pass


class _Columns:
    """One column for each average: the mean reward first, then the corrections', then the smoothings', then their reaches."""

    def __init__(
        self, corrections: tuple[Correction, ...], smoothings: tuple[float, ...], whole: bool, linear: bool, inexact: bool
    ) -> None:
        self.corrections, self.smoothings = corrections, smoothings
        self.whole, self.linear, self.inexact = whole, linear, inexact
        self.per = 6 if whole else 3
        self.block = self.per * len(corrections) + 3 * len(smoothings)
        self.width = 1 + self.block * (2 if inexact else 1)

    def of(self, policy: Policy, part: LoggedData, rewards: Array) -> Array:
        """(n, width)."""
        p = logged_propensities(part, "certificates")
        pi = policy.probabilities_of(part.contexts, part.actions)
        out = np.zeros((len(part), self.width))
        out[:, 0] = rewards
        listed, norms = self._listed(policy, part, p) if self.whole and self.corrections else (None, None)
        for i, correction in enumerate(self.corrections):
            at = 1 + i * self.per
            unit = correction.weight(np.ones(len(p)), p)
            w = pi * unit if self.linear else correction.weight(pi, p)
            out[:, at] = w * rewards
            out[:, at + 1] = w * (1 - rewards)
            out[:, at + 2] = (w * unit if self.linear else w * w) * rewards**2
            if listed is not None:
                out[:, at + 3 : at + 6] = listed[:, i]
            if self.inexact:
                there = at + self.block
                out[:, there] = unit * rewards
                out[:, there + 1] = unit * (1 - rewards)
                out[:, there + 2] = (unit * rewards) ** 2
                if norms is not None:
                    out[:, there + 3] = norms[:, i]
                    out[:, there + 4] = 1.0
        for i, smoothing in enumerate(self.smoothings):
            at = 1 + self.per * len(self.corrections) + 3 * i
            out[:, at : at + 3], reach = _smoothed(smoothing, pi, p, rewards, self.linear)
            if self.inexact:
                out[:, at + self.block : at + self.block + 3] = reach
        return out

    def _listed(self, policy: Policy, part: LoggedData, p: Array) -> tuple[Array, Array | None]:
        """(n, C, 3) expected squares, biases and overshoots, and (n, C) bounds on the largest square of an action."""
        whole = require_whole(part, "bounds with a bias and a variance over all actions")
        own = whole.of_many(np.arange(len(part)), part.actions[:, None])[:, 0]
        wrong = np.abs(own - p) > AGREE * p
        if wrong.any():
            row = int(np.argmax(wrong))
            came = f"probability {own[row]:.6g} for the action of row {row}, whose propensity was logged as {p[row]:.6g}"
            raise InvalidInput("log.logging", came, "the policy that wrote the log")
        cells: list[CellFunction] = [lambda cells: cells.pi]
        for correction in self.corrections:
            if self.linear:
                cells += [partial(_linear_square, correction), partial(_kept, correction)]
            else:
                cells += [partial(_square, correction), partial(_too_little, correction), partial(_too_much, correction)]
        if self.inexact:
            cells += [partial(_norm, correction) for correction in self.corrections]
        sums = whole.sums(policy, cells)
        never = np.maximum(1.0 - sums[:, 0], 0.0)
        out = np.zeros((len(part), len(self.corrections), 3))
        for i in range(len(self.corrections)):
            if self.linear:
                out[:, i, 0] = sums[:, 1 + 2 * i]
                out[:, i, 1] = 1.0 - sums[:, 2 + 2 * i]
            else:
                out[:, i, 0] = sums[:, 1 + 3 * i]
                out[:, i, 1] = sums[:, 2 + 3 * i] + never
                out[:, i, 2] = sums[:, 3 + 3 * i]
        many = len(self.corrections)
        return out, sums[:, -many:] ** (1 / NORM) if self.inexact else None

    def read(
        self, mean: Array, variance: Array
    ) -> tuple[
        tuple[dict[Correction, Averages], dict[float, Smoothed]], tuple[dict[Correction, Averages], dict[float, Smoothed]]
    ]:
        """The averages by name, and their reaches."""
        found = []
        for start in (1, 1 + self.block) if self.inexact else (1, 1):
            weighted, smoothed = {}, {}
            for i, correction in enumerate(self.corrections):
                at = start + i * self.per
                some = (float(mean[at + 3]), max(0.0, float(mean[at + 4])), float(mean[at + 5])) if self.whole else ()
                weighted[correction] = Averages(
                    *(float(v) for v in mean[at : at + 3]), *some,
                    spread=float(variance[at]), complement_spread=float(variance[at + 1]),
                )  # fmt: skip
            for i, smoothing in enumerate(self.smoothings):
                at = start + self.per * len(self.corrections) + 3 * i
                smoothed[smoothing] = Smoothed(*(float(v) for v in mean[at : at + 3]))
            found.append((weighted, smoothed))
        return found[0], found[1]


def _smoothed(smoothing: float, pi: Array, p: Array, rewards: Array, linear: bool) -> tuple[Array, Array]:
    """(n, 3) value, complement and gain, and (n, 3) how far they reach between pi = 0 and pi = 1."""
    plain, other = np.log1p(smoothing * rewards / p), np.log1p(smoothing * (1 - rewards) / p)
    paired = smoothing < 1
    most = np.log1p(smoothing * (1 / p - 1) * rewards) if paired else np.full(len(p), np.nan)
    least = np.log1p(-smoothing * rewards) if paired else most
    reach = np.column_stack([plain, other, most - least]) / smoothing
    if linear:
        return np.column_stack([pi * plain, pi * other, pi * most + (1 - pi) * least]) / smoothing, reach
    w = pi / p
    gain = np.log1p(smoothing * (w - 1) * rewards) if paired else most
    return np.column_stack([np.log1p(smoothing * w * rewards), np.log1p(smoothing * w * (1 - rewards)), gain]) / smoothing, reach


def _safe(pi0: Array) -> Array:
    """pi0, with 1 in the place of 0: those actions are left out of every sum."""
    return np.where(pi0 > 0, pi0, 1.0)


def unit_weight(correction: Correction, pi0: Array) -> Array:
    """w at pi = 1, which is 1 / h(pi0) for linear corrections; where pi0 = 0 it is of no use, and finite."""
    safe = _safe(pi0)
    return correction.weight(np.ones_like(safe), safe)


def _linear_square(correction: Correction, cells: Cells) -> Array:
    return cells.pi * cells.pi0 * unit_weight(correction, cells.pi0) ** 2


def _kept(correction: Correction, cells: Cells) -> Array:
    return correction.kept(cells.pi, cells.pi0)


def _square(correction: Correction, cells: Cells) -> Array:
    return cells.pi0 * correction.weight(cells.pi, _safe(cells.pi0)) ** 2


def _too_little(correction: Correction, cells: Cells) -> Array:
    return np.maximum(cells.pi - correction.kept(cells.pi, cells.pi0), 0.0)


def _too_much(correction: Correction, cells: Cells) -> Array:
    return np.maximum(correction.kept(cells.pi, cells.pi0) - cells.pi, 0.0)


def _norm(correction: Correction, cells: Cells) -> Array:
    with np.errstate(over="ignore"):  # an infinite reach is an honest one
        return np.asarray((cells.pi0 * unit_weight(correction, cells.pi0) ** 2) ** NORM)


class _Running:
    """Means and variances of columns, chunk by chunk (Chan's update: never differences of large sums)."""

    def __init__(self, width: int) -> None:
        self.rows, self.mean, self._scatter = 0, np.zeros(width), np.zeros(width)

    def add(self, columns: Array) -> None:
        n, mean = len(columns), columns.mean(axis=0)
        gap, total = mean - self.mean, self.rows + n
        self._scatter += ((columns - mean) ** 2).sum(axis=0) + gap**2 * (self.rows * n / total)
        self.mean = self.mean + gap * (n / total)
        self.rows = total

    @property
    def variance(self) -> Array:
        return self._scatter / max(1, self.rows - 1)


def _unit(rewards: Array, largest: float, first_row: int) -> Array:
    wrong = (rewards < 0) | (rewards > largest)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InvalidInput(
            "rewards", f"{rewards[row]:g} at row {first_row + row}",
            f"rewards from 0 to the largest that there can be, {largest:g} (largest_reward=, on the command line --high)",
        )  # fmt: skip
    return rewards / largest


def _check(correction: Correction, linear: bool) -> None:
    if isinstance(correction, LogSmoothing):
        raise InvalidInput("correction", correction.name, "a correction of the weight alone; smoothing has its own bound")
    if linear and not (correction.linear_in_policy and correction.never_above):
        raise InvalidInput(
            "correction", f"{correction.name}, which is not linear in the policy",
            "ips, es, cips or ix for a randomised policy; the general bound takes others, with parameters drawn",
        )  # fmt: skip


def _known(value: float | None) -> float:
    if value is None:
        raise InvalidInput("summary", "no sums over all actions", "a summary with pi0 of all actions (whole=True)")
    return value


__all__ = ["Averages", "Smoothed", "Summary", "summarise", "unit_weight"]
