"""Errors of means over runs that all look at the same test users.

D[r, g] is a difference between two learners in run r, averaged over group g of the test users. Runs have logs of their own,
and the test users are the same in all of them, so both are samples: of the logs and of the users that there could have been.

    D[r, g] = mu + a_r + b_g + e_rg,      a ~ (0, A), b ~ (0, B), e ~ (0, E), independent
    Var(mean of D) = A / R + B / G + E / (R G)

With the mean squares of the two-way layout,

    E MS_runs = E + G A,      E MS_groups = E + R B,      E MS_rest = E,

(MS_runs + MS_groups - MS_rest) / (R G) has the expectation E / (R G) + A / R + B / G: it estimates that variance without bias.
Chance can make it smaller than what either way alone tells, where it is raised to the larger of MS_runs / (R G), the error over
runs with the users as they are, and MS_groups / (R G), the error over users with the logs as they are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from manyarms._base.typing import Array
from manyarms.errors import InvalidInput
from manyarms_thesis.harness.claims import Measured, standard_errors


def two_way(table: Array, mean: float | None = None) -> Measured:
    """The mean of D (runs, groups) with the error that runs and groups of test users make together.

    mean: of all users, where groups are not equally large. As many standard errors decide as Cochran has for a sum of variances
    that are known to different accuracy, the mean of Student's quantiles weighted by the parts: t(R - 1) for what runs tell,
    t(G - 1) for what groups add. (Satterthwaite's degrees of freedom cover too seldom with two or three runs.)
    """
    D = np.asarray(table, dtype=np.float64)
    if D.ndim != 2 or not D.size:
        raise InvalidInput("table", f"shape {D.shape}", "differences by run and group of test users")
    R, G = D.shape
    middle = float(D.mean())
    shown = middle if mean is None else mean
    if R < 2 or G < 2:
        return Measured(shown, math.nan, 0)
    rows, columns = D.mean(axis=1) - middle, D.mean(axis=0) - middle
    rest = D - middle - rows[:, None] - columns[None, :]
    ms_runs = G * float(rows @ rows) / (R - 1)
    ms_groups = R * float(columns @ columns) / (G - 1)
    ms_rest = float((rest * rest).sum()) / ((R - 1) * (G - 1))
    total = max(ms_runs + ms_groups - ms_rest, ms_runs, ms_groups)
    share = ms_runs / total if total > 0 else 1.0
    needed = share * standard_errors(R - 1) + (1 - share) * standard_errors(G - 1)
    return Measured(shown, math.sqrt(total / (R * G)), _degrees(needed, R - 1, G - 1))


def _degrees(needed: float, *known: int) -> float:
    """The degrees of freedom at which so many standard errors decide, between those that are known."""
    low, high = float(min(known)), float(max(known))
    while high - low > 0.05:  # `standard_errors` falls as they grow; the lower end decides, which needs no less
        middle = round((low + high) / 2, 3)
        low, high = (middle, high) if standard_errors(middle) > needed else (low, middle)
    return low


def with_groups_left_out(over_runs: Measured, without: Sequence[float]) -> Measured:
    """A figure with its error over runs, and what it becomes without each group of test users: the jackknife adds their error.

    What both ways have in common is counted twice, so that the error is rather too large.
    """
    values = np.asarray(without, dtype=np.float64)
    G = len(values)
    by_groups = (G - 1) / G * float(((values - values.mean()) ** 2).sum())
    error = math.sqrt(over_runs.standard_error**2 + by_groups)
    return Measured(over_runs.mean, error, over_runs.degrees)


__all__ = ["two_way", "with_groups_left_out"]
