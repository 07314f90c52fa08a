"""Rows that come in groups (a user, a session): the groups are independent, their rows need not be.

The unit is the group, and the estimand the value per group. With w = pi / pi0 and rewards in units of the largest, let group g of
N_g rows, M of them at the most, have

    Z_g = sum of w_i R_i / M,     C_g = (sum of w_i (1 - R_i) + M - N_g) / M,     D_g = sum of (w_i - 1) R_i / M >= -1

Given its context, w_i has mean 1 and w_i R_i the policy's value there: E Z_g = V, E C_g = 1 - V and E D_g = V - V_0 in units of
M rewards, whatever the rows of a group have to do with each other (contexts are those that the logging policy led to). Z and C
are at least 0, and l D_g is above -1 for l < 1: logarithmic smoothing and the bound of the gain hold for n groups as for n rows.

M must not depend on the log. Where nobody knows the most rows that a group can have, the statements are made for the first M rows
of every group, for M = 1, 2, 4, 8, ... at once, with delta / ((j + 1)(j + 2)) for M = 2^j (the rows of a group up to the M-th are
as good as all of them above: they stop at a moment that does not look ahead). That with the first M that no group of the log
exceeds is then read off: no row is left out, and what it says is of the first M rows of a group.

The value per row is a ratio, E Z / E (N / M): its lower end is that of the numerator over the upper end of the denominator, each
at delta / 2, and the other way round for its upper end (empirical Bernstein, sizes between 0 and M).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from manyarms._base.typing import Array
from manyarms.bounds.concentration import bernstein_margin
from manyarms.bounds.log_smoothing import GainTerms
from manyarms.bounds.summary import Averages, Statistic, Summary
from manyarms.errors import InvalidInput
from manyarms.estimators.inputs import logged_probabilities
from manyarms.logs.data import LoggedData
from manyarms.policies.base import Policy


class GroupSums:
    """Sums over the rows of each group, in whatever order the rows come; 40 bytes a group."""

    def __init__(self, actions: int, largest_group: int | None) -> None:
        self.actions, self._given = actions, largest_group
        self._places: dict[object, int] = {}
        self._sums = np.empty((0, 4))  # of w R, w (1 - R), R and 1

    def add(self, part: LoggedData, p: Array, rewards: Array, policy: Policy) -> None:
        """The rows of a chunk, with their propensities, rewards in units of the largest, and the policy there."""
        assert part.groups is not None
        weights = logged_probabilities(policy, part) / p
        names, inverse = np.unique(part.groups, return_inverse=True)
        terms = np.column_stack([weights * rewards, weights * (1 - rewards), rewards, np.ones(len(p))])
        own = np.column_stack([np.bincount(inverse, column, len(names)) for column in terms.T])
        where = np.array([self._places.setdefault(name, len(self._places)) for name in names.tolist()])
        self._sums = np.concatenate([self._sums, np.zeros((len(self._places) - len(self._sums), 4))])
        self._sums[where] += own

    @property
    def largest_group(self) -> int:
        """M: as given, or the first power of 2 that no group exceeds."""
        return power_of_two(int(self._sums[:, 3].max(initial=1))) if self._given is None else self._given

    @property
    def sizes(self) -> Array:
        """N_g / M."""
        sizes: Array = self._sums[:, 3] / self.largest_group
        if sizes.max() > 1:
            came = f"a group of {int(self._sums[:, 3].max())} rows"
            raise InvalidInput(
                "largest_group", f"{self.largest_group}, and {came}", "the most rows that a group can have"
            )
        return sizes

    def summary(self, statistics: Sequence[Statistic]) -> Summary:
        """The averages over groups, which bounds take for those over rows."""
        sizes = self.sizes
        Z, C, R = (self._sums[:, :3] / self.largest_group).T
        C = C + 1 - sizes
        one = np.ones(len(Z))
        averages = {}
        for statistic in statistics:
            terms = (one + Z - R, one + C - (1 - R)) if isinstance(statistic, GainTerms) else (Z, C)
            value, other = (float(statistic.terms(term, one, one).mean()) for term in terms)
            averages[statistic] = Averages(value, other, 0.0)
        return Summary(len(Z), float(R.mean()), averages, mixture=False, actions=self.actions)


def power_of_two(size: int) -> int:
    """The first power of 2 from a size on."""
    return 1 << (size - 1).bit_length()


def share_of(largest_group: int) -> float:
    """The share of delta that is spent on M = 2^j, where M was read off the log."""
    j = largest_group.bit_length() - 1
    return 1.0 / ((j + 1) * (j + 2))


def size_limits(sizes: Array, delta: float, *, two_sided: bool) -> tuple[float, float]:
    """A lower and an upper end for E N / M, together with probability 1 - delta (one-sided: the upper end alone)."""
    variance = float(sizes.var(ddof=1)) if len(sizes) > 1 else 1.0
    margin = bernstein_margin(variance, len(sizes), 1.0, delta / 2 if two_sided else delta)
    mean = float(sizes.mean())
    return max(mean - margin, 0.0), min(mean + margin, 1.0)


__all__ = ["GroupSums", "power_of_two", "share_of", "size_limits"]
