"""What the bounds need of a policy on a log: a few averages, from one pass in blocks.

With h the denominator of a correction that is linear in the policy, w(a|x) = pi(a|x) / h(pi0(a|x)) and h(p) >= p:

    value             mean of  w_i R_i
    complement        mean of  w_i (1 - R_i)
    logged square     mean of  pi(A_i|X_i) R_i^2 / h_i^2
    expected square   mean of  sum over a of pi0 pi / h^2
    bias              1 - mean of sum over a of pi0 w

Both squares together are Var_n, and the bias is B_n (thesis, lines 2511-2520, 2711-2722). pi stands in the squares, and not
its square, because the bounds look at the deterministic rules that a randomised policy draws from: the square of an indicator
is the indicator. A policy that was fixed before the log needs no such rules, and gets the squares of w itself; that form also
takes corrections that are not linear, for which w may count too much: `overshoot` is by how much, and `bias` by how much too
little.

Rewards are divided by the largest that there can be. Where the logging policy never plays, w is 0 and what pi has there is
bias.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from manyarms.errors import InvalidInput
from manyarms.evaluation.intervals import bernstein_margin
from manyarms.weights import Correction


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

    spread: Summary | None = None
    """For each average over logged actions, the sample variance of its draws; only where they are known one by one."""

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

        A probability from quadrature is off by at most `tolerance`. With Monte Carlo, every average is a mean of S
        independent terms, one a draw, that all lie within a known reach: by empirical Bernstein where the terms' spread is at
        hand (sums over logged actions), by Hoeffding's inequality elsewhere, all m averages are within their margins with
        probability at least 1 - delta.
        """
        if self.is_exact or self.reach is None:
            return self, self
        below: dict[Correction, Averages] = {}
        above: dict[Correction, Averages] = {}
        for correction, own in self.weighted.items():
            margin = self._margins(self.reach.weighted[correction], correction, delta)
            grown = replace(
                own,
                complement=own.complement - margin.complement,
                logged_square=own.logged_square + margin.logged_square,
                overshoot=own.overshoot + margin.overshoot,
            )
            if own.bias is not None and own.expected_square is not None:
                grown = replace(
                    grown,
                    expected_square=own.expected_square + _known(margin.expected_square),
                    bias=min(1.0, own.bias + _known(margin.bias)),
                )
            below[correction] = replace(grown, value=own.value - margin.value)
            above[correction] = replace(grown, value=own.value + margin.value)
        smoothed = {}
        for parameter, each in self.smoothed.items():
            span = self.reach.smoothed[parameter]
            spread = None if self.spread is None else self.spread.smoothed[parameter]
            smoothed[parameter] = Smoothed(
                *(
                    getattr(each, name)
                    - self._margin(getattr(span, name), None if spread is None else getattr(spread, name), delta, 1)
                    for name in ("value", "complement", "gain")
                )
            )
        return replace(self, weighted=below, smoothed=smoothed), replace(self, weighted=above, smoothed=smoothed)

    def _margins(self, reach: Averages, correction: Correction, delta: float) -> Averages:
        spread = None if self.spread is None else self.spread.weighted[correction]
        logged = [
            self._margin(getattr(reach, name), None if spread is None else getattr(spread, name), delta, 1)
            for name in ("value", "complement", "logged_square")
        ]
        listed = [
            None if value is None else self._margin(value, None, delta, self.actions)
            for value in (reach.expected_square, reach.bias, reach.overshoot)
        ]
        return Averages(*logged, *listed)

    def _margin(self, reach: float, variance: float | None, delta: float, actions: int) -> float:
        """How far one average may be off; `actions`: of how many probabilities at a context it is made."""
        margin = self.tolerance * actions * reach
        if self.draws is not None:
            share = delta / (2 * (6 * len(self.weighted) + 3 * len(self.smoothed)))
            if variance is None:
                margin += reach * math.sqrt(math.log(1 / share) / (2 * self.draws))
            else:
                margin += bernstein_margin(variance, self.draws, reach, share)
        return margin


def _known(value: float | None) -> float:
    if value is None:
        raise InvalidInput("summary", "no sums over all actions", "a summary with pi0 of all actions (whole=True)")
    return value


__all__ = ["Averages", "Smoothed", "Summary"]
