"""What every bound must satisfy, as a check that anybody can run on their own.

    from manyarms.checks.bounds import check_bound
    check_bound(MyBound(0.1))

A law that does not hold raises `CheckFailed`. Coverage is judged by a binomial test on a small world whose values are known; it
is necessary and not sufficient: the argument belongs into the bound's docstring.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import stats

from manyarms._base.arrays import as_float
from manyarms._base.typing import Array
from manyarms.bounds import Averages, Bound, Budget, Summary
from manyarms.certificates.prior import PolicyPrior
from manyarms.certificates.summarise import summarise
from manyarms.checks.base import require
from manyarms.errors import InvalidInput
from manyarms.logs.data import LoggedData
from manyarms.policies.base import Policy
from manyarms.policies.randomised import GaussianPolicy
from manyarms.policies.softmax import SoftmaxPolicy

DELTA, ROWS, RUNS, CANDIDATES = 0.2, 150, 100, 12
REFUTED = 1e-4  # coverage is called too low where as many misses, or more, are less probable than this
DIVERGENCES = (0.0, 1.0, 5.0, 20.0)
ROUNDING = 1e-9


def check_bound(bound: Bound) -> None:
    """Run every check of a bound whose parameters are fixed."""
    if bound.is_open:
        raise InvalidInput("bound", bound.label, "one with all parameters fixed")
    for check in BOUND_CHECKS:
        check(bound)


def ends_move_as_they_must(bound: Bound) -> None:
    """A larger divergence loosens both ends, and so does a smaller delta; more rows tighten them."""
    summary = _World(0).summary(bound)
    divergences = DIVERGENCES[:1] if bound.for_fixed_only else DIVERGENCES
    _monotone("a larger divergence", [_ends(bound, summary, kl, Budget(DELTA)) for kl in divergences])
    _monotone("a smaller delta", [_ends(bound, summary, 0.0, Budget(delta)) for delta in (0.4, 0.2, 0.05, 1e-4)])
    _monotone("a larger grid", [_ends(bound, summary, 0.0, Budget(DELTA, 2, points)) for points in (1, 5, 50)])
    sizes = (10**6, 10_000, 1_000, ROWS)
    _monotone("fewer rows", [_ends(bound.resized(ROWS, n), summary.at(n), 0.0, Budget(DELTA)) for n in sizes])


def ends_are_the_start_less_the_costs(bound: Bound) -> None:
    """The lower end is below the upper one, and each is the estimate with its costs taken off, or added."""
    summary = _World(1).summary(bound)
    for kl in DIVERGENCES[:1] if bound.for_fixed_only else DIVERGENCES:
        below, above = bound.lower(summary, kl, Budget(DELTA)), bound.upper(summary, kl, Budget(DELTA))
        require(below.end <= above.end, "the lower end is at most the upper end", (below.end, above.end))
        for side, sign in ((below, -1), (above, 1)):
            if math.isfinite(side.end):
                gap = abs(side.start + sign * sum(side.costs.values()) - side.end)
                require(gap < ROUNDING, "an end is the estimate and its costs", side)


def ends_cover(bound: Bound) -> None:
    """Both ends hold in at least 1 - delta of logs, for a fixed policy and, with a prior, for one chosen on the log itself."""
    world = _World(2)
    fixed = SoftmaxPolicy(world.start + world.rng.standard_normal(world.start.shape))
    _covers(bound, world, lambda log: (fixed, 0.0), "a policy fixed beforehand")
    if bound.for_fixed_only or bound.over_draws or not bound.mixture:
        return
    prior = PolicyPrior(world.start)
    shape = (CANDIDATES, *world.start.shape)
    some = [GaussianPolicy(world.start + step, 0.9) for step in 0.8 * world.rng.standard_normal(shape)]
    tables = np.array([world.table(one) for one in some])

    def best(log: LoggedData) -> tuple[Policy, float]:
        estimates = tables[:, world.which, log.actions] @ (log.rewards / np.asarray(log.propensities))
        chosen = some[int(estimates.argmax())]
        return chosen, prior.divergence(chosen)

    _covers(bound, world, best, "the best of some policies on the log itself")


def floats_and_tensors_agree(bound: Bound) -> None:
    """The objective is the same number for floats and for torch scalars, and can be differentiated; skipped without torch."""
    if bound.for_fixed_only or importlib.util.find_spec("torch") is None:
        return
    import torch

    summary = _World(3).summary(bound)
    leaves: list[Any] = []

    def leaf(value: float) -> Any:
        leaves.append(torch.tensor(value, dtype=torch.float64, requires_grad=True))
        return leaves[-1]

    averages = {}
    for one, own in summary.averages.items():
        known: dict[str, float] = {field.name: getattr(own, field.name) for field in fields(Averages)}
        averages[one] = Averages(**{name: None if value is None else leaf(value) for name, value in known.items()})
    kl = leaf(2.0)
    found: Any = bound.objective(replace(summary, averages=averages), kl, DELTA)
    wanted = bound.objective(summary, 2.0, DELTA)
    require(
        abs(as_float(found) - wanted) < ROUNDING, "floats and tensors give the same number", (as_float(found), wanted)
    )
    found.backward()
    slopes = [leaf.grad for leaf in leaves if leaf.grad is not None]
    require(all(bool(torch.isfinite(slope)) for slope in slopes), "all slopes are finite", slopes)
    require(kl.grad is not None and float(kl.grad) < 0, "a larger divergence lowers the objective", kl.grad)


BOUND_CHECKS: tuple[Callable[[Bound], None], ...] = (
    ends_move_as_they_must, ends_are_the_start_less_the_costs, floats_and_tensors_agree, ends_cover,
)  # fmt: skip


class _World:
    """A few contexts and actions with Bernoulli rewards, where every value is known."""

    def __init__(self, seed: int, contexts: int = 4, actions: int = 5, dim: int = 3) -> None:
        self.rng = np.random.default_rng(seed)
        self.contexts: Array = self.rng.standard_normal((contexts, dim))
        self.start: Array = self.rng.standard_normal((actions, dim))
        self.logging = SoftmaxPolicy(self.start)
        self.means: Array = self.rng.uniform(0.1, 0.9, (contexts, actions))

    def table(self, policy: Policy) -> Array:
        """pi(a|x), (contexts, actions)."""
        ids = np.tile(np.arange(self.means.shape[1]), (len(self.contexts), 1))
        return policy.probabilities_of_many(self.contexts, ids)

    def value(self, policy: Policy) -> float:
        return float((self.table(policy) * self.means).sum(axis=1).mean())

    def log(self) -> LoggedData:
        self.which = which = self.rng.integers(len(self.contexts), size=ROWS)
        X = self.contexts[which]
        actions = self.logging.sample_rows(X, self.rng)
        rewards = (self.rng.random(ROWS) < self.means[which, actions]).astype(np.float64)
        propensities = self.logging.probabilities_of(X, actions)
        return LoggedData(X, actions, rewards, self.means.shape[1], propensities, logging=self.logging)

    def summary(self, bound: Bound) -> Summary:
        """Of some policy on a log: in the form that the bound reads."""
        policy = SoftmaxPolicy(self.start + self.rng.standard_normal(self.start.shape))
        return summarise(policy, self.log(), bound.statistics, all_actions=bound.needs_logging_policy)


def _covers(bound: Bound, world: _World, chosen: Callable[[LoggedData], tuple[Policy, float]], which: str) -> None:
    held, logged = 0, world.value(world.logging) if bound.of_gain else 0.0
    for _ in range(RUNS):
        log = world.log()
        policy, kl = chosen(log)
        summary = summarise(policy, log, bound.statistics, all_actions=bound.needs_logging_policy)
        below, above = summary.with_margins(DELTA)
        truth = world.value(policy) - logged
        low, high = bound.lower(below, kl, Budget(DELTA)).end, bound.upper(above, kl, Budget(DELTA)).end
        held += low - ROUNDING <= truth <= high + ROUNDING
    chance = stats.binomtest(held, RUNS, 1 - DELTA, alternative="less").pvalue
    require(
        chance > REFUTED,
        f"the ends cover the value of {which} in at least {1 - DELTA:.0%} of logs",
        f"{held} of {RUNS}",
    )


def _ends(bound: Bound, summary: Summary, kl: float, budget: Budget) -> tuple[float, float]:
    return bound.lower(summary, kl, budget).end, bound.upper(summary, kl, budget).end


def _monotone(what: str, ends: Sequence[tuple[float, float]]) -> None:
    for (low, high), (lower, higher) in pairwise(ends):
        require(lower <= low + ROUNDING, f"{what} never raises the lower end", ends)
        require(higher >= high - ROUNDING, f"{what} never lowers the upper end", ends)


__all__ = ["BOUND_CHECKS", "check_bound"]
