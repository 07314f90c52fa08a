"""One pass over a log gives the summaries that bounds are functions of: chunks of rows, blocks of actions, never rows x actions.

Memory: a chunk, and a few numbers an average. Only where the parameters of the bounds follow from the number of rows, and the
source cannot tell that number beforehand, 24 bytes a row are kept (pi, pi0 and the reward) until it is known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from manyarms._base import validate
from manyarms._base.moments import RunningMoments
from manyarms._base.typing import Array
from manyarms.bounds.summary import (
    AVERAGED,
    LOGGED,
    Averages,
    Statistic,
    Summary,
    expected_square,
    logged_terms,
    sums_over_actions,
)
from manyarms.certificates.prior import Randomised
from manyarms.errors import InvalidInput
from manyarms.estimators.inputs import logged_probabilities, require_fit, require_log, require_policy
from manyarms.estimators.logging_policy import (
    CellFunction,
    Cells,
    cell_overshoot,
    cell_undershoot,
    logged_propensities,
    mass_never_played,
    require_full_propensities,
)
from manyarms.evaluation.given import Given
from manyarms.logs.checks import place
from manyarms.logs.data import CHUNK, LoggedData, LogSource
from manyarms.policies.base import Policy, row_blocks
from manyarms.policies.randomised import MixedLogitPolicy
from manyarms.policies.simple import UniformPolicy
from manyarms.policies.softmax import SoftmaxPolicy
from manyarms.weights import Correction

LEAST = 1e-150  # of a propensity
AGREE = 1e-3  # a logged propensity and the logging policy's own may differ by this share (files keep a few digits)
NORM = 8  # the maximum over actions is bounded by this norm, which sums over blocks: too large by K^(1/8) at most


def summarise(
    policy: Policy,
    log: LogSource,
    statistics: Sequence[Statistic],
    *,
    all_actions: bool = True,
    mixture: bool | None = None,
    largest_reward: float = 1.0,
    chunk: int = CHUNK,
) -> Summary:
    """The averages of corrections, or of the statistics of some bounds, from one pass over a log.

    all_actions: also the sums over actions, which need pi0 of all of them. mixture: the averages of a mixture of rules, or
    those of a policy that was fixed beforehand; by default the first for Gaussian and mixed-logit policies.
    """
    largest_reward, chunk = validate.positive("largest_reward", largest_reward), validate.count("chunk", chunk)
    require_policy(policy)
    require_log(log)
    if not isinstance(statistics, Sequence) or not all(
        isinstance(one, Statistic) and not isinstance(one, type) for one in statistics
    ):
        raise InvalidInput(
            "statistics", validate.describe(statistics), "a list of corrections, or of bounds' statistics"
        )
    all_actions = validate.flag("all_actions", all_actions)
    form = isinstance(policy, Randomised) if mixture is None else validate.flag("mixture", mixture)
    collector = Collector(policy, statistics, all_actions=all_actions, mixture=form)
    for rows in log_rows(policy, log.chunks(chunk), largest_reward):
        collector.add(*rows)
    return collector.summary()


def log_rows(
    policy: Policy | Given, parts: Iterator[LoggedData], largest_reward: float
) -> Iterator[tuple[LoggedData, Array, Array, Policy]]:
    """The rows of a log as bounds see them, chunk by chunk."""
    count = 0
    for part in parts:
        yield rows_seen(policy, part, largest_reward, count)
        count += len(part)
    if isinstance(policy, Given):
        policy.require_rows(count)


def rows_seen(
    policy: Policy | Given, part: LoggedData, largest_reward: float, row: int
) -> tuple[LoggedData, Array, Array, Policy]:
    """A chunk, its propensities, its rewards in units of the largest, the policy there; row: the number of its first row."""
    here = policy.on(part, row) if isinstance(policy, Given) else policy
    require_fit(here, part)
    propensities, wrong = (
        logged_propensities(part, "certificates"),
        (part.rewards < 0) | (part.rewards > largest_reward),
    )
    if propensities.min() < LEAST:
        came = f"a propensity of {propensities.min():.3g} at row {row + int(np.argmin(propensities))}"
        raise InvalidInput("log", came, f"propensities of at least {LEAST:g}, whose inverses can be squared")
    if wrong.any():
        which = int(np.argmax(wrong))
        raise InvalidInput(
            "rewards", f"{part.rewards[which]:g} at {place(part, which, row)}",
            f"rewards from 0 to the largest possible one, {largest_reward:g} (largest_reward=)",
        )  # fmt: skip
    return part, propensities, part.rewards / largest_reward, here


class Collector:
    """The averages of some statistics under one policy, chunk by chunk.

    Columns: the reward; value, complement and square of every statistic; expected square, undershoot and overshoot of every
    correction that sums over actions; and, where the policy's probabilities have an error, the largest square of an action
    and, for every average over logged actions, how much it can differ between two policies.
    """

    def __init__(
        self, policy: Policy | Given, statistics: Sequence[Statistic], *, all_actions: bool = True, mixture: bool = True
    ) -> None:
        self.policy, self.mixture = policy, mixture
        self.statistics = tuple(dict.fromkeys(statistics))
        self.corrections = corrections_of(self.statistics) if all_actions else ()
        for one in corrections_of(self.statistics):
            if mixture and not (one.linear_in_policy and one.never_above):
                raise InvalidInput(
                    "correction", f"{one.name}, which is not linear in the policy",
                    "ips, es, cips or ix for a randomised policy; the general bound takes others, with parameters drawn",
                )  # fmt: skip
        self.draws = policy.draws if isinstance(policy, MixedLogitPolicy) else None
        self.tolerance = float(getattr(policy, "tolerance", 0.0))
        self.inexact = self.draws is not None or self.tolerance > 0
        if self.inexact and not mixture:
            raise InvalidInput(
                "policy", "probabilities with an error", "exact ones, for averages that are not linear in them"
            )
        self.logged = 3 * len(self.statistics)
        self.each = 4 if self.inexact else 3  # sums over actions that a correction has
        over_actions = self.each * len(self.corrections)
        self._moments = RunningMoments(1 + self.logged + over_actions + (self.logged if self.inexact else 0))
        self._by_draw = np.zeros((self.logged, self.draws or 0))
        self._rows = 0

    def add(self, part: LoggedData, p: Array, rewards: Array, policy: Policy) -> None:
        """The rows of a chunk, with their propensities, rewards in units of the largest, and the policy there."""
        pi = self._probabilities(policy, part, p, rewards)
        self.add_logged(pi, p, rewards, self._over_actions(policy, part, p) if self.corrections else None)

    def add_logged(self, pi: Array, p: Array, rewards: Array, over_actions: Array | None = None) -> None:
        """The same from pi of the logged actions, and the sums over actions where there are any."""
        columns = [rewards[:, None], terms_of(self.statistics, pi, p, rewards, self.mixture)]
        columns += [] if over_actions is None else [over_actions]
        columns += [self._slopes(p, rewards)] if self.inexact else []
        self._moments.add(np.column_stack(columns))
        self._rows += len(p)

    def merge(self, later: Collector) -> None:
        """The rows that another one of the same policy and statistics has seen."""
        self._moments.merge(later._moments)
        self._by_draw += later._by_draw
        self._rows += later._rows

    def summary(self) -> Summary:
        """Of all rows so far."""
        if not self._rows:
            raise InvalidInput("log", "no rows", "at least one")
        mean, variance = self._moments.mean[1:], self._moments.variance[1:]
        logged, listed = mean[: self.logged].reshape(-1, 3), mean[self.logged :]
        over_actions = listed[: self.each * len(self.corrections)].reshape(-1, self.each)
        sums = {one: over_actions[i] for i, one in enumerate(self.corrections)}
        averages = {}
        for i, one in enumerate(self.statistics):
            spreads = variance[3 * i : 3 * i + 2]
            averages[one] = replace(
                _averages(logged[i], sums[one][:3] if one in sums else ()),
                variance=float(spreads[0]), complement_variance=float(spreads[1]),
            )  # fmt: skip
        summary = Summary(
            self._rows, float(self._moments.mean[0]), averages, self.mixture, self.policy.action_count, self.tolerance,
            self.draws,
        )  # fmt: skip
        if not self.inexact:
            return summary
        # a change of the policy moves squares up to the largest of an action, and biases up to 1
        slopes = mean[len(mean) - self.logged :].reshape(-1, 3)
        ranges = {
            one: _averages(slopes[i], (sums[one][3], 1.0, 0.0) if one in sums else ())
            for i, one in enumerate(self.statistics)
        }
        variances = None
        if self.draws is not None:
            by_draw = (self._by_draw.var(axis=1, ddof=1) / self._rows**2).reshape(-1, 3)
            variances = {one: _averages(by_draw[i]) for i, one in enumerate(self.statistics)}
        return replace(summary, ranges=ranges, draw_variances=variances)

    def _slopes(self, p: Array, rewards: Array) -> Array:
        """(n, logged): by how much each differs between a rule that plays the logged action and one that does not."""
        played, not_played = (terms_of(self.statistics, np.full(len(p), pi), p, rewards) for pi in (1.0, 0.0))
        return played - not_played

    def _probabilities(self, policy: Policy, part: LoggedData, p: Array, rewards: Array) -> Array:
        """pi(a_i|x_i), (n,); with Monte Carlo the sums of slopes times probabilities are added up draw by draw."""
        if not isinstance(policy, MixedLogitPolicy):
            return logged_probabilities(policy, part)
        out, slopes = np.empty(len(part)), self._slopes(p, rewards)
        for rows in row_blocks(len(part)):
            drawn = policy.rows(part.contexts[rows]).draws_at(part.actions[rows])
            out[rows] = drawn.mean(axis=1)
            self._by_draw += slopes[rows].T @ drawn
        return out

    def _over_actions(self, policy: Policy, part: LoggedData, p: Array) -> Array:
        """(n, 3 or 4 a correction)."""
        logging = require_full_propensities(part, "bounds with a bias and a variance over all actions")
        own = logging.of_many(np.arange(len(part)), part.actions[:, None])[:, 0]
        wrong = np.abs(own - p) > AGREE * p
        if wrong.any():
            row = int(np.argmax(wrong))
            came = (
                f"probability {own[row]:.6g} for the action of row {row}, whose propensity was logged as {p[row]:.6g}"
            )
            raise InvalidInput("log.logging", came, "the policy that wrote the log")
        functions: list[CellFunction] = [lambda cells: cells.pi]
        for one in self.corrections:
            functions += [partial(_square, one, self.mixture), partial(cell_undershoot, one)]
            functions += [_nothing if one.never_above else partial(cell_overshoot, one)]
            functions += [partial(_norm, one)] if self.inexact else []
        sums = logging.sums(policy, functions)
        never, out = mass_never_played(sums[:, 0]), sums[:, 1:]
        out[:, 1 :: self.each] += never[:, None]
        if self.inexact:
            out[:, 3::4] = out[:, 3::4] ** (1 / NORM)
        return out


class DrawnCollector:
    """Expectations over parameters for the general bound: averages over policies whose parameters were drawn.

    The general bound (thesis, Section 8.6.1) speaks of E over theta of V(pi_theta) for corrections that need not be linear, and
    its terms are expectations over theta that have no closed form. Draws of theta give them up to an error that
    `Summary.with_margins` reckons with, and that certificates pay for out of delta. One draw can give at most what w gives at
    pi = 1, for corrections that rise with pi. The parameters are drawn again for every chunk: one policy is in memory at a time.
    """

    def __init__(self, policy: MixedLogitPolicy, corrections: Sequence[Statistic], draws: int, seed: int) -> None:
        draws = validate.count("draws", draws, least=2)
        for one in corrections:
            if not (isinstance(one, Correction) and one.rising):
                raise InvalidInput("correction", repr(one), "one that rises with pi, for the general bound")
        self.policy, self.draws, self.seed = policy, draws, seed
        self._corrections = corrections_of(corrections)
        self._any = UniformPolicy(policy.action_count)  # for sums that do not look at a policy
        self._each = [Collector(self._any, self._corrections, mixture=False) for _ in range(draws)]
        self._ranges = RunningMoments(4 * len(self._corrections))

    def add(self, part: LoggedData, p: Array, rewards: Array, policy: Policy) -> None:
        """The rows of a chunk, with their propensities and rewards in units of the largest; `policy` is this one's own."""
        for collector, drawn in zip(self._each, self._drawn(), strict=True):
            collector.add(part, p, rewards, drawn)
        squares = require_full_propensities(part, "the general bound").sums(
            self._any, [partial(_largest_square, one) for one in self._corrections]
        )
        self._ranges.add(np.column_stack([terms_of(self._corrections, np.ones(len(p)), p, rewards), squares]))

    def merge(self, later: DrawnCollector) -> None:
        """The rows that another one has seen, with the same parameters drawn."""
        for mine, theirs in zip(self._each, later._each, strict=True):
            mine.merge(theirs)
        self._ranges.merge(later._ranges)

    def summary(self) -> Summary:
        """The draws count as Monte Carlo."""
        summaries = [one.summary() for one in self._each]
        logged, squares = np.split(self._ranges.mean, [3 * len(self._corrections)])
        averages: dict[Statistic, Averages] = {}
        variances: dict[Statistic, Averages] = {}
        ranges: dict[Statistic, Averages] = {}
        for i, one in enumerate(self._corrections):
            each = np.array([[getattr(summary.of(one), name) for name in AVERAGED] for summary in summaries])
            averages[one] = Averages(*each.mean(axis=0).tolist())
            variances[one] = Averages(*each[:, : len(LOGGED)].var(axis=0, ddof=1).tolist())
            ranges[one] = _averages(logged[3 * i : 3 * i + 3], (squares[i], 1.0, 1.0))
        return replace(
            summaries[0], averages=averages, mixture=True, draws=self.draws, ranges=ranges, draw_variances=variances
        )

    def _drawn(self) -> Iterator[SoftmaxPolicy]:
        """Softmax policies with parameters from the law of a mixed-logit policy, whose value is the mean of theirs."""
        rng = np.random.default_rng(self.seed)
        mean = np.asarray(self.policy.actions, dtype=np.float64)
        for _ in range(self.draws):
            yield SoftmaxPolicy(mean + self.policy.sigma * rng.standard_normal(mean.shape), encoder=self.policy.encoder)


def terms_of(statistics: Sequence[Statistic], pi: Array, p: Array, rewards: Array, mixture: bool = False) -> Array:
    """(n, 3 a statistic): the terms of value, complement and square."""
    out = np.empty((len(p), 3 * len(statistics)))
    for i, one in enumerate(statistics):
        out[:, 3 * i], out[:, 3 * i + 2] = logged_terms(one, pi, p, rewards, mixture=mixture)
        out[:, 3 * i + 1], _ = logged_terms(one, pi, p, 1 - rewards, mixture=mixture)
    return out


def corrections_of(statistics: Sequence[Statistic]) -> tuple[Correction, ...]:
    """The corrections among them that have sums over actions."""
    return tuple(one for one in statistics if isinstance(one, Correction) and sums_over_actions(one))


def _averages(logged: Array, over_actions: Sequence[float] | Array = ()) -> Averages:
    return Averages(*map(float, logged), *map(float, over_actions))


def _square(correction: Correction, mixture: bool, cells: Cells) -> Array:
    return expected_square(correction, cells.pi, cells.pi0, mixture=mixture)


def _nothing(cells: Cells) -> Array:
    return np.zeros_like(cells.pi)


def _largest_square(correction: Correction, cells: Cells) -> Array:
    return expected_square(correction, np.ones_like(cells.pi0), cells.pi0, mixture=True)


def _norm(correction: Correction, cells: Cells) -> Array:
    with np.errstate(over="ignore"):  # an infinite range is an honest one
        return np.asarray(_largest_square(correction, cells) ** NORM)


__all__ = ["Collector", "DrawnCollector", "log_rows", "rows_seen", "summarise"]
