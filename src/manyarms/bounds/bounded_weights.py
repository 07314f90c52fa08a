"""What bounds for weights of at most 1/tau share: those of London and Sandler (2019) and of Sakhi et al. (2022).

Thesis, Appendix E.3.3-6263. They are lower bounds; what they say of 1 - r is an upper bound for r. Written for clipped weights
pi / max(pi0, tau), they use no more of them than that a term Z = w R lies in [0, 1/tau] and that E Z is at most the value: any
correction that is never above and has a `bound` will do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from manyarms._base import validate
from manyarms.bounds.base import Bound, GridArguments, OfCorrection
from manyarms.bounds.grid import Grid
from manyarms.bounds.summary import sums_over_actions
from manyarms.errors import InvalidInput
from manyarms.weights import ClipPropensities


@dataclass(frozen=True)
class BoundedWeights(OfCorrection):
    """A bound for terms Z = w R between 0 and 1/tau, whose mean is at most the value."""

    grid: ClassVar[GridArguments] = (("taus", ClipPropensities),)

    def __post_init__(self) -> None:
        super().__post_init__()
        one = self.correction
        if one.bound() is None or not one.never_above or not sums_over_actions(one):
            raise InvalidInput(
                "correction", f"{one.name} {one.settings}",
                f"weights that are never above pi / pi0 and at most some 1/tau, such as cIPS(tau) with tau above 0, for "
                f"the bound {self.name!r}",
            )  # fmt: skip

    @classmethod
    def usual(cls, grid: Grid, rows: int) -> Bound:
        grid = validate.instance("grid", grid, Grid, "a Grid").resolved(rows)
        return cls(ClipPropensities(grid.values("taus")[-1]))  # n^(-1/4), unless given

    @property
    def tau(self) -> float:
        """One over the largest weight."""
        largest = self.correction.bound()
        assert largest is not None
        return 1 / largest


__all__ = ["BoundedWeights"]
