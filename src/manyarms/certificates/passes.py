"""The one pass over a log that gives a `Summary`: in chunks of rows and blocks of actions, never rows x actions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from manyarms._base import validate
from manyarms._base.typing import Array
from manyarms.certificates.summaries import Averages, Smoothed, Summary
from manyarms.errors import InvalidInput
from manyarms.estimators.logging_policy import CellFunction, Cells, logged_propensities
from manyarms.estimators.logging_policy import require_full_propensities as require_whole
from manyarms.logs.data import CHUNK, LoggedData, LogSource
from manyarms.policies.base import Policy, row_blocks
from manyarms.policies.randomised import MixedLogitPolicy
from manyarms.weights import Correction, LogSmoothing

AGREE = 1e-3  # a logged propensity and the logging policy's own may differ by this share (files keep a few digits)
NORM = 8  # the maximum over actions is bounded by this norm, which sums over blocks: too large by K^(1/8) at most


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
    """The averages of some corrections and smoothings.

    whole: also what needs pi0 of all actions. linear: the averages for a mixture of rules; otherwise those of a fixed policy.
    """
    validate.positive("largest_reward", largest_reward)
    for correction in corrections:
        _check(correction, linear)
    for smoothing in smoothings:
        validate.positive("smoothing", smoothing)
    draws = policy.draws if isinstance(policy, MixedLogitPolicy) else None
    tolerance = float(getattr(policy, "tolerance", 0.0))
    inexact = draws is not None or tolerance > 0
    if inexact and not linear:
        raise InvalidInput(
            "policy", "probabilities with an error", "exact ones, for averages that are not linear in them"
        )
    layout = _Layout(tuple(corrections), tuple(smoothings), whole and bool(corrections), linear, inexact)
    running, rows, by_draw = _Running(layout.width), 0, np.zeros((layout.logged, draws or 0))
    for part in log.chunks(chunk):
        if policy.action_count != part.action_count:
            came = f"a policy over {policy.action_count} actions"
            raise InvalidInput("policy", came, f"one over the log's {part.action_count}")
        rewards, p = unit_rewards(part.rewards, largest_reward, rows), logged_propensities(part, "certificates")
        slopes, constants = layout.slopes(p, rewards)
        pi = _probabilities(policy, part, slopes, by_draw)
        columns = [rewards[:, None], pi[:, None] * slopes + constants if linear else layout.squared(pi, p, rewards)]
        columns += [layout.listed(policy, part, p)] if layout.whole else []
        columns += [slopes] if inexact else []
        running.add(np.column_stack(columns))
        rows += len(part)
    if not rows:
        raise InvalidInput("log", "no rows", "at least one")
    mean, variance = running.mean[1:], running.variance[1:]
    logged, listed = mean[: layout.logged], mean[layout.logged : layout.logged + layout.over_actions]
    summary = Summary(
        rows,
        float(running.mean[0]),
        *layout.read(logged, listed, variance),
        linear,
        policy.action_count,
        tolerance,
        draws,
    )
    if not inexact:
        return summary
    reach = layout.read(mean[-layout.logged :] if layout.logged else mean[:0], layout.reach(listed))
    spread = None if draws is None else Summary(rows, 0.0, *layout.read(by_draw.var(axis=1, ddof=1) / rows**2, None))
    return replace(summary, reach=Summary(rows, 0.0, *reach), spread=spread)


class _Layout:
    """Where the averages lie: for each correction value, complement and logged square, for each smoothing value, complement
    and gain; then, for each correction, expected square, bias and overshoot, and, where errors are reckoned with, the largest
    square of an action.

    All that is summed over logged actions is pi times a slope, plus a constant, in the linear form.
    """

    def __init__(
        self,
        corrections: tuple[Correction, ...],
        smoothings: tuple[float, ...],
        whole: bool,
        linear: bool,
        inexact: bool,
    ) -> None:
        self.corrections, self.smoothings = corrections, smoothings
        self.whole, self.linear, self.inexact = whole, linear, inexact
        self.logged = 3 * len(corrections) + 3 * len(smoothings)
        self.over_actions = (4 if inexact else 3) * len(corrections) if whole else 0
        self.width = 1 + self.logged + self.over_actions + (self.logged if inexact else 0)

    def slopes(self, p: Array, rewards: Array) -> tuple[Array, Array]:
        """(n, logged) each."""
        slopes, constants = np.zeros((len(p), self.logged)), np.zeros((len(p), self.logged))
        ones = np.ones(len(p))
        for i, correction in enumerate(self.corrections):
            unit = correction.weight(ones, p)
            slopes[:, 3 * i : 3 * i + 3] = np.column_stack(
                [unit * rewards, unit * (1 - rewards), (unit * rewards) ** 2]
            )
        for i, smoothing in enumerate(self.smoothings):
            at = 3 * len(self.corrections) + 3 * i
            slopes[:, at] = np.log1p(smoothing * rewards / p) / smoothing
            slopes[:, at + 1] = np.log1p(smoothing * (1 - rewards) / p) / smoothing
            if smoothing < 1:
                constants[:, at + 2] = np.log1p(-smoothing * rewards) / smoothing
                most = np.log1p(smoothing * (1 / p - 1) * rewards) / smoothing
                slopes[:, at + 2] = most - constants[:, at + 2]
            else:
                constants[:, at + 2] = np.nan
        return slopes, constants

    def squared(self, pi: Array, p: Array, rewards: Array) -> Array:
        """(n, logged) of a fixed policy."""
        out = np.zeros((len(p), self.logged))
        for i, correction in enumerate(self.corrections):
            w = correction.weight(pi, p)
            out[:, 3 * i : 3 * i + 3] = np.column_stack([w * rewards, w * (1 - rewards), (w * rewards) ** 2])
        w = pi / p
        for i, smoothing in enumerate(self.smoothings):
            at = 3 * len(self.corrections) + 3 * i
            out[:, at] = np.log1p(smoothing * w * rewards) / smoothing
            out[:, at + 1] = np.log1p(smoothing * w * (1 - rewards)) / smoothing
            out[:, at + 2] = np.log1p(smoothing * (w - 1) * rewards) / smoothing if smoothing < 1 else np.nan
        return out

    def listed(self, policy: Policy, part: LoggedData, p: Array) -> Array:
        """(n, over_actions)."""
        whole = require_whole(part, "bounds with a bias and a variance over all actions")
        own = whole.of_many(np.arange(len(part)), part.actions[:, None])[:, 0]
        wrong = np.abs(own - p) > AGREE * p
        if wrong.any():
            row = int(np.argmax(wrong))
            came = (
                f"probability {own[row]:.6g} for the action of row {row}, whose propensity was logged as {p[row]:.6g}"
            )
            raise InvalidInput("log.logging", came, "the policy that wrote the log")
        functions: list[CellFunction] = [_pi]
        for correction in self.corrections:
            functions += [partial(_linear_square if self.linear else _square, correction)]
            functions += [partial(_too_little, correction), partial(_too_much, correction)]
            functions += [partial(_norm, correction)] if self.inexact else []
        sums = whole.sums(policy, functions)
        never, out = np.maximum(1.0 - sums[:, 0], 0.0), sums[:, 1:]
        never[never < 1e-12] = 0.0  # rounding of a sum that is 1
        each = 4 if self.inexact else 3
        out[:, 1::each] += never[:, None]
        if self.inexact:
            out[:, 3::4] = out[:, 3::4] ** (1 / NORM)
        return out

    def reach(self, listed: Array) -> Array:
        """What a change of the policy can do to the sums over actions: squares up to the largest, biases up to 1."""
        out = listed.copy()
        out[0::4], out[1::4], out[2::4] = listed[3::4], 1.0, 0.0 if self.linear else 1.0
        return out

    def read(
        self, logged: Array, listed: Array | None, variance: Array | None = None
    ) -> tuple[dict[Correction, Averages], dict[float, Smoothed]]:
        """The averages by name."""
        each = 4 if self.inexact else 3
        weighted, smoothed = {}, {}
        for i, correction in enumerate(self.corrections):
            some = tuple(map(float, listed[each * i : each * i + 3])) if self.whole and listed is not None else ()
            spreads = (0.0, 0.0) if variance is None else tuple(map(float, variance[3 * i : 3 * i + 2]))
            weighted[correction] = replace(
                Averages(*map(float, logged[3 * i : 3 * i + 3]), *some), spread=spreads[0], complement_spread=spreads[1]
            )
        for i, smoothing in enumerate(self.smoothings):
            at = 3 * len(self.corrections) + 3 * i
            smoothed[smoothing] = Smoothed(*map(float, logged[at : at + 3]))
        return weighted, smoothed


def _probabilities(policy: Policy, part: LoggedData, slopes: Array, by_draw: Array) -> Array:
    """pi(a_i|x_i), (n,); with Monte Carlo the sums of slopes times probabilities are added up draw by draw."""
    if not isinstance(policy, MixedLogitPolicy):
        return policy.probabilities_of(part.contexts, part.actions)
    out = np.empty(len(part))
    for rows in row_blocks(len(part)):
        drawn = policy.rows(part.contexts[rows]).draws_at(part.actions[rows])
        out[rows] = drawn.mean(axis=1)
        by_draw += slopes[rows].T @ drawn
    return out


def unit_weight(correction: Correction, pi0: Array) -> Array:
    """w at pi = 1, which is 1 / h(pi0) for linear corrections; where pi0 = 0, which no sum counts, it is finite."""
    safe = _safe(pi0)
    return correction.weight(np.ones_like(safe), safe)


def unit_rewards(rewards: Array, largest: float, first_row: int = 0) -> Array:
    """Rewards over the largest that there can be; refused outside [0, 1]."""
    wrong = (rewards < 0) | (rewards > largest)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InvalidInput(
            "rewards", f"{rewards[row]:g} at row {first_row + row}",
            f"rewards from 0 to the largest that there can be, {largest:g} (largest_reward=, on the command line --high)",
        )  # fmt: skip
    return rewards / largest


def _safe(pi0: Array) -> Array:
    return np.where(pi0 > 0, pi0, 1.0)


def _pi(cells: Cells) -> Array:
    return cells.pi


def _linear_square(correction: Correction, cells: Cells) -> Array:
    return cells.pi * cells.pi0 * unit_weight(correction, cells.pi0) ** 2


def _square(correction: Correction, cells: Cells) -> Array:
    return cells.pi0 * correction.weight(cells.pi, _safe(cells.pi0)) ** 2


def _too_little(correction: Correction, cells: Cells) -> Array:
    return np.maximum(cells.pi - correction.effective_policy(cells.pi, cells.pi0), 0.0)


def _too_much(correction: Correction, cells: Cells) -> Array:
    return np.maximum(correction.effective_policy(cells.pi, cells.pi0) - cells.pi, 0.0)


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


def _check(correction: Correction, linear: bool) -> None:
    if isinstance(correction, LogSmoothing):
        raise InvalidInput(
            "correction", correction.name, "a correction of the weight alone; smoothing has its own bound"
        )
    if linear and not (correction.linear_in_policy and correction.never_above):
        raise InvalidInput(
            "correction", f"{correction.name}, which is not linear in the policy",
            "ips, es, cips or ix for a randomised policy; the general bound takes others, with parameters drawn",
        )  # fmt: skip


__all__ = ["summarise", "unit_rewards", "unit_weight"]
