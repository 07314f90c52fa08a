"""What the bounds need of a policy on a log, or on a batch of it: a few averages.

With h the denominator of a correction that is linear in the policy, w(a|x) = pi(a|x) / h(pi0(a|x)) and h(p) >= p:

    value             mean of  w_i R_i
    complement        mean of  w_i (1 - R_i)
    logged square     mean of  pi(A_i|X_i) R_i^2 / h_i^2
    expected square   mean of  sum over a of pi0 pi / h^2
    undershoot        1 - mean of sum over a of pi0 w

Both squares together are Var_n, and the undershoot is the bias B_n (thesis, Sections 8.3.3 and 8.6.1). pi stands in the
squares, and not its square, because the bounds look at the deterministic rules that a randomised policy draws from: the square
of an indicator is the indicator. In this form, `mixture`, any function f(pi, p, r) of a rule is averaged over rules, which is
pi f(1, p, r) + (1 - pi) f(0, p, r). A policy that was fixed before the log needs no such rules, and gets f(pi, p, r) and its
square; that form also takes corrections that are not linear, for which w may count too much: `overshoot` is by how much.

Rewards are divided by the largest that there can be. Where the logging policy never plays, w is 0 and what pi has there is
undershoot. The functions below serve NumPy arrays, for certificates, and torch tensors, for learning.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from manyarms._base.arrays import clip
from manyarms._base.typing import Array
from manyarms.bounds.concentration import bernstein_margin
from manyarms.errors import InvalidInput
from manyarms.weights import Correction


@runtime_checkable
class Statistic(Protocol):
    """A function of one round, of which a bound reads the mean: every correction is one, w_hat r. Hashable."""

    def terms(self, pi: Array, pi0: Array, reward: Array) -> Array:
        """f(pi(A|X), pi0(A|X), R), elementwise."""


def sums_over_actions(statistic: Statistic) -> bool:
    """Whether a statistic has a bias and an expected square, sums over all actions: corrections of the weight alone have."""
    return isinstance(statistic, Correction) and not statistic.depends_on_reward


@dataclass(frozen=True)
class Averages:
    """The averages of one statistic; expected_square and undershoot are None where pi0 of all actions was not asked for."""

    value: float
    complement: float
    logged_square: float
    expected_square: float | None = None
    undershoot: float | None = None
    overshoot: float = 0.0
    variance: float = 0.0
    """The sample variance of the terms of `value`."""

    complement_variance: float = 0.0

    @property
    def second_moment(self) -> float:
        """Var_n: both squares."""
        return self.logged_square + known(self.expected_square)

    @property
    def bias(self) -> float:
        """B_n, the undershoot, where it is known."""
        return known(self.undershoot)


AVERAGED = ("value", "complement", "logged_square", "expected_square", "undershoot", "overshoot")
LOGGED = AVERAGED[:3]
"""The averages over the logged actions; the others sum over all actions."""


@dataclass(frozen=True)
class Summary:
    """A policy on a log, as the bounds see it; rewards in units of the largest."""

    rows: int
    logged: float
    """The mean reward: what the logging policy earned."""

    averages: Mapping[Statistic, Averages]
    mixture: bool = True
    """Whether the averages are those of a mixture of rules (PAC-Bayes), or of one policy that was fixed beforehand."""

    actions: int = 2
    tolerance: float = 0.0
    """How far a probability of the policy may be from the truth (quadrature)."""

    draws: int | None = None
    """How many independent draws stand behind each probability (Monte Carlo)."""

    ranges: Mapping[Statistic, Averages] | None = None
    """How much each average can differ between two distributions over actions; only where probabilities have an error."""

    draw_variances: Mapping[Statistic, Averages] | None = None
    """The sample variance over draws of each average over logged actions; only where they are known one by one."""

    def of(self, statistic: Statistic) -> Averages:
        """The averages of a statistic."""
        try:
            return self.averages[statistic]
        except KeyError:
            raise InvalidInput("summary", f"no averages of {statistic!r}", "a summary made for this bound") from None

    def at(self, rows: int) -> Summary:
        """The same averages, had there been another number of rows."""
        return replace(self, rows=rows)

    def only(self, statistics: Iterable[Statistic]) -> Summary:
        """The same for some of the statistics: errors of simulation are then shared among these."""
        return replace(self, averages={one: self.of(one) for one in statistics})

    @property
    def is_exact(self) -> bool:
        """Whether the policy's probabilities are taken for exact."""
        return self.draws is None and self.tolerance == 0

    def with_margins(self, delta: float) -> tuple[Summary, Summary]:
        """The averages moved against a lower bound, and against an upper one, by what the probabilities may be off.

        A probability from quadrature is off by at most `tolerance`. With Monte Carlo, every average is a mean of S
        independent terms, one a draw, that all lie within a known range: by empirical Bernstein where the terms' variance is
        at hand (averages over logged actions), by Hoeffding's inequality elsewhere, all m averages are within their margins
        with probability at least 1 - delta.
        """
        if self.is_exact or self.ranges is None:
            return self, self
        # m does not depend on whether the sums over actions were asked for
        averages = sum(len(AVERAGED if sums_over_actions(one) else LOGGED) for one in self.averages)
        share = delta / (2 * averages)
        below: dict[Statistic, Averages] = {}
        above: dict[Statistic, Averages] = {}
        for statistic, own in self.averages.items():
            margins = self._margins(statistic, share)
            signs = {"value": -1.0, "complement": -1.0}
            moved = {name: getattr(own, name) + signs.get(name, 1.0) * margin for name, margin in margins.items()}
            if own.undershoot is not None:
                moved["undershoot"] = min(1.0, moved["undershoot"])
            below[statistic] = replace(own, **moved)
            above[statistic] = replace(below[statistic], value=own.value + margins["value"])
        return replace(self, averages=below), replace(self, averages=above)

    def _margins(self, statistic: Statistic, share: float) -> dict[str, float]:
        """How far each average may be off, each side with probability `share` at most."""
        assert self.ranges is not None
        ranges = self.ranges[statistic]
        variances = None if self.draw_variances is None else self.draw_variances[statistic]
        found = {}
        for name in AVERAGED:
            width = getattr(ranges, name)
            if width is None:
                continue
            # of how many probabilities at a context the average is made
            margin = self.tolerance * (1 if name in LOGGED else self.actions) * width if self.tolerance else 0.0
            if self.draws is not None:
                if variances is not None and name in LOGGED:
                    margin += bernstein_margin(getattr(variances, name), self.draws, width, share)
                else:
                    margin += width * math.sqrt(math.log(1 / share) / (2 * self.draws))
            found[name] = margin
        return found


# ---- the terms of the averages, elementwise -------------------------------------------------------------------------


def logged_terms(statistic: Statistic, pi: Array, p: Array, reward: Array, *, mixture: bool) -> tuple[Array, Array]:
    """The terms of `value` (of `complement`, with 1 - reward) and of `logged_square`, (n,) each."""
    if not mixture:
        terms = statistic.terms(pi, p, reward)
        return terms, terms**2
    at_one, at_zero = statistic.terms(p * 0 + 1, p, reward), statistic.terms(p * 0, p, reward)
    return at_zero + pi * (at_one - at_zero), at_zero**2 + pi * (at_one**2 - at_zero**2)


def expected_square(correction: Statistic, pi: Array, pi0: Array, *, mixture: bool) -> Array:
    """pi0 w^2 of each action, or pi pi0 / h^2; nothing where pi0 is 0. Summed over actions it is a bound on E Z^2."""
    safe = pi0 + (pi0 == 0)
    one = safe * 0 + 1
    # pi0 w first, which is small: the square of a weight alone may be beyond all numbers
    if mixture:
        weight = correction.terms(one, safe, one)
        return pi0 * weight * (pi * weight)
    weight = correction.terms(pi, safe, one)
    return pi0 * weight * weight


def undershoot(correction: Correction, pi: Array, pi0: Array) -> Array:
    """By how much pi0 w falls short of pi, of each action."""
    return clip(pi - correction.effective_policy(pi, pi0), 0.0)


def overshoot(correction: Correction, pi: Array, pi0: Array) -> Array:
    """By how much pi0 w exceeds pi, of each action."""
    return clip(correction.effective_policy(pi, pi0) - pi, 0.0)


def known(value: float | None) -> float:
    """A sum over all actions, or the reason why there is none."""
    if value is None:
        raise InvalidInput(
            "summary", "no sums over all actions", "a summary with pi0 of all actions (all_actions=True)"
        )
    return value


__all__ = [
    "AVERAGED", "LOGGED", "Averages", "Statistic", "Summary", "expected_square", "known", "logged_terms", "overshoot",
    "sums_over_actions", "undershoot",
]  # fmt: skip
