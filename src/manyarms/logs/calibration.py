"""Are estimated propensities what they claim to be? Checked on rows that the estimate has not seen.

A row i with context x_i says of every action a: it has probability p(a | x_i). Those claims are sorted into bins by
their size. In a bin of honest claims the actions come up as often as claimed:

    reliability     claimed rate Σ p / pairs  against  observed rate Σ 1[a_i = a] / pairs, bin by bin
    error           ½ Σ_bins |Σ p - Σ 1[a_i = a]| / n, the expected calibration error. A round spreads probability 1 over the
                    bins by its claims, and puts 1 into the bin of what was played; over many rounds both are
                    distributions over bins, and this is the distance (in total variation) between them: the
                    probability that sits in the wrong bin, 0 for honest claims and 1 at worst
    log loss        -Σ log p(a_i | x_i) / n, against the one of the actions' shares in the whole log, which no context
                    enters: an estimate from contexts that does not beat it has learned nothing
    mean weight     the mean of 1 / (S p(a_i | x_i)) for the S actions seen: 1 for the true propensities, since
                    E[1 / π₀(A | x)] = S. Off propensities show here first, and this is how they are going to be used.
                    Rows whose action had probability 0 by an estimate without them are counted apart.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from manyarms._base.tables import Shown, Table
from manyarms._base.typing import Array, Ints

EDGES = np.array([0, 1e-4, 3e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0])
MOST_PAIRS = 20_000_000  # pairs of rows and actions looked at; beyond, rows are sampled
OFF = 0.05  # a calibration error that deserves a warning
BLOCK_PAIRS = 2_000_000


@dataclass(frozen=True, eq=False, repr=False)
class PropensityCalibration(Shown):
    """What held-out rows say about estimated propensities; see the module's text for the definitions."""

    rows: int
    lower: Array  # the bins that something fell into: their ends
    upper: Array
    claimed: Array  # mean claim in each
    observed: Array  # and how often the actions came up
    pairs: Ints  # (row, action) pairs in each
    expected_calibration_error: float
    log_loss: float
    constant_log_loss: float
    mean_weight: float
    mean_weight_error: float  # its standard error
    impossible: int  # rows whose own action the estimate without them held to be impossible
    rows_in_table: int  # fewer than rows where rows × actions were too many

    @property
    def better_than_constant(self) -> bool:
        """Whether the estimate beats the actions' overall shares."""
        return self.log_loss < self.constant_log_loss

    def table(self) -> list[dict[str, float]]:
        """The reliability table, one dictionary a bin."""
        names = ("lower", "upper", "claimed", "observed", "pairs")
        return [
            dict(zip(names, map(float, row), strict=True))
            for row in zip(self.lower, self.upper, self.claimed, self.observed, self.pairs, strict=True)
        ]

    def sentences(self) -> list[str]:
        """The same in words."""
        found = [
            f"expected calibration error {self.expected_calibration_error:.3f} on {self.rows_in_table:,} held-out rows",
            f"log loss {self.log_loss:.4f} against {self.constant_log_loss:.4f} for shares that ignore the context",
            f"mean weight {self.mean_weight:.3f} ± {self.mean_weight_error:.3f}, where true propensities give 1",
        ]
        if self.expected_calibration_error > OFF:
            found.append("claims and frequencies differ: look at the reliability table before weighting by these")
        if abs(self.mean_weight - 1) > 4 * self.mean_weight_error + 0.02:
            found.append(
                "the mean weight is not 1: propensities of rarely played actions are off or uncertain, so clip"
            )
        if self.impossible:
            found.append(f"{self.impossible:,} rows play what the other rows never play")
        return found

    def _table(self) -> Table:
        from manyarms.logs.printing import calibration_table

        return calibration_table(self)


class Reliability:
    """The bins, filled block by block."""

    def __init__(self) -> None:
        self.claimed = np.zeros(len(EDGES) - 1)
        self.hits = np.zeros(len(EDGES) - 1)
        self.pairs = np.zeros(len(EDGES) - 1)
        self.rows = 0

    def see(self, actions: Ints, claims: Callable[[int, int], Array], action_count: int) -> None:
        """claims(start, stop) gives the (rows, K) claims of a block of the rows whose actions are given."""
        block = max(1, BLOCK_PAIRS // action_count)
        for start in range(0, len(actions), block):
            p = claims(start, min(start + block, len(actions)))
            own = p[np.arange(len(p)), actions[start : start + block]]
            flat = p.ravel()
            bins = np.searchsorted(EDGES[1:-1], flat, side="right")
            count = len(EDGES) - 1
            self.pairs += np.bincount(bins, minlength=count)
            self.claimed += np.bincount(bins, weights=flat, minlength=count)
            self.hits += np.bincount(np.searchsorted(EDGES[1:-1], own, side="right"), minlength=count)
            self.rows += len(p)

    def error(self) -> float:
        """The probability that sits in the wrong bin, in [0, 1]."""
        return min(1.0, 0.5 * float(np.abs(self.claimed - self.hits).sum()) / max(self.rows, 1))


def calibration(own: Array, constant: Array, seen: int, bins: Reliability) -> PropensityCalibration:
    """own (n,): what held-out rows claim for their own action; constant (n,): the same by overall shares.

    A claim of 0 for what did happen would be an infinite loss; both are held above 1 / (2n).
    """
    rows = len(own)
    floor = 0.5 / rows
    weight = 1.0 / (seen * own[own > 0]) if (own > 0).any() else np.ones(1)
    used = np.flatnonzero(bins.pairs)
    return PropensityCalibration(
        rows=rows,
        lower=EDGES[:-1][used],
        upper=EDGES[1:][used],
        claimed=bins.claimed[used] / bins.pairs[used],
        observed=bins.hits[used] / bins.pairs[used],
        pairs=bins.pairs[used].astype(np.int64),
        expected_calibration_error=bins.error(),
        log_loss=float(-np.log(np.maximum(own, floor)).mean()),
        constant_log_loss=float(-np.log(np.maximum(constant, floor)).mean()),
        mean_weight=float(weight.mean()),
        mean_weight_error=float(weight.std() / np.sqrt(len(weight))),
        impossible=int((own <= 0).sum()),
        rows_in_table=bins.rows,
    )


__all__ = ["PropensityCalibration", "Reliability", "calibration"]
