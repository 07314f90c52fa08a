"""Sample sizes: how many rows would certify an improvement of x, from a bound and the averages of the rows that there are."""

from __future__ import annotations

import math
import numbers
from bisect import bisect_left
from collections.abc import Callable, Sequence

from manyarms._base import validate
from manyarms.bounds import Bound, Budget, Summary, chernoff_upper
from manyarms.bounds.base import divergence
from manyarms.bounds.concentration import confidence
from manyarms.errors import InvalidInput

MOST = 10**15


def smallest(holds: Callable[[int], bool], most: int = MOST) -> int | None:
    """The smallest n >= 1 with holds(n), for a statement that stays true once it is; None if not even `most` will do."""
    numbers = range(1, most + 1)
    place = bisect_left(numbers, True, key=holds)
    return numbers[place] if place < most else None


def rows_needed(summary: Summary, kl: float, improvement: float, delta: float, bounds: Sequence[Bound]) -> int | None:
    """The smallest n with which the best of `bounds` would put the policy at least `improvement` above the logging policy.

    The averages (values, biases, squares) stay what they are in this summary, the divergence too, and lambda moves with
    1/sqrt(n) as grids do. Bounds of the gain are read as they are; from a bound on the value an upper end of the logging
    policy's mean reward is taken off, each with half of delta. None where no number of rows would do: the estimate itself is
    not that much better, or what is lost to a fixed correction is too much. In units of the largest reward.
    """
    validate.instance("summary", summary, Summary, "a summary, from manyarms.certificates.summarise")
    kl = divergence(kl)
    if not (isinstance(improvement, numbers.Real) and improvement == math.inf):
        improvement = validate.number("improvement", improvement)
    if not isinstance(bounds, Sequence) or not all(isinstance(one, Bound) for one in bounds):
        raise InvalidInput("bounds", validate.describe(bounds), "a list of bounds of manyarms.bounds")
    if not bounds:
        raise InvalidInput("bounds", "none", "at least one")
    paired = bounds[0].of_gain
    if any(bound.of_gain is not paired for bound in bounds):
        raise InvalidInput("bounds", "some of the gain and some of the value", "one or the other")
    delta = confidence("delta", delta)
    budget = Budget(delta if paired else delta / 2, sides=1, points=len(bounds))

    def certified(n: int) -> float:
        at = summary.at(n)
        best = max(bound.resized(summary.rows, n).lower(at, kl, budget).end for bound in bounds)
        return best - (0.0 if paired else chernoff_upper(min(1.0, summary.logged), n, delta / 2))

    if math.isinf(kl):
        return None
    return smallest(lambda n: certified(n) >= improvement)


__all__ = ["rows_needed", "smallest"]
