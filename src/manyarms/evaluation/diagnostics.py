"""Can the estimates be trusted? What the weights and propensities of a log say about it, from one pass.

A histogram of weights, of both policies' probabilities of the logged actions, and a few sums: nothing that grows with the
number of rows. `warnings` turns them into sentences.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from manyarms._base.text import counted
from manyarms._base.typing import Array, Bools, Ints
from manyarms.weights.tails import LargestWeights, largest_reliable_k

EDGES = np.arange(-12.0, 12.01, 0.1)  # of log10
DOMINANT = 0.1  # a row with more than this share of all weight is worth a warning
THIN = 0.1  # so is an effective sample below this share of the rows, or below FEW
FEW = 100
ROUNDING = 1e-6
SUMMED = (
    "rows", "zero", "useful", "tiny", "ours", "weights", "sum", "squares", "estimated", "estimated_sum",
)  # fmt: skip
OFF = 4.0  # standard errors by which the mean weight may miss 1


def effective_sample_size(total: float, squares: float) -> float:
    """(sum of weights)^2 / sum of squared weights (Kish): how many rows of equal weight would say as much."""
    if not math.isfinite(squares):  # a weight above 1e154, beside which no other counts
        return 1.0
    return total * total / squares if squares > 0 else 0.0


@dataclass
class PolicyOverlap:
    """How the policy's probabilities lie over the logging policy's, at the logged actions."""

    rows: int = 0
    zero: int = 0
    """Rows whose action the policy never plays."""

    useful: int = 0
    """Rows with a weight and a reward above 0 (or below)."""

    smallest: float = math.inf
    smallest_row: int = -1
    smallest_place: str = ""
    """What a message calls that row: as its file does, where there is one; the same for the largest."""

    tiny: Ints = field(default_factory=lambda: np.zeros(len(EDGES) + 1, dtype=np.int64))
    ours: Ints = field(default_factory=lambda: np.zeros(len(EDGES) + 1, dtype=np.int64))
    weights: Ints = field(default_factory=lambda: np.zeros(len(EDGES) + 1, dtype=np.int64))
    sum: float = 0.0
    squares: float = 0.0
    largest: float = 0.0
    largest_row: int = -1
    largest_place: str = ""
    upper: LargestWeights = field(default_factory=LargestWeights)
    """The largest weights, whose tail says whether averages of them can be trusted."""

    never_played: float | None = None
    """The share of the policy's probability on actions that the logging policy never plays, where that is known."""

    estimated: int = 0
    """Rows whose propensities are estimates."""

    estimated_sum: float = 0.0
    """The sum of their weights."""

    grouped: bool = False
    only: int | None = None
    """The action of all rows, while no other has come."""

    first_row: int = 0
    """The number of the first row, where a log is read in parts (`merge`)."""

    def add(
        self,
        pi: Array,
        pi0: Array,
        rewards: Array,
        never_played: Array | None,
        actions: Ints | None = None,
        estimated: Bools | None = None,
        place: Callable[[int], str] | None = None,
    ) -> None:
        """More rows; place: what messages call them."""
        before = self.first_row + self.rows
        place = place or (lambda row: f"row {before + row}")
        w = pi / pi0
        if estimated is not None:
            self.estimated += int(estimated.sum())
            self.estimated_sum += float(w[estimated].sum())
        if actions is not None and (self.rows == 0 or self.only is not None):
            same = bool((actions == (actions[0] if self.only is None else self.only)).all())
            self.only = int(actions[0]) if same else None
        self.zero += int((w == 0).sum())
        self.useful += int(((w > 0) & (rewards != 0)).sum())
        if float(pi0.min()) < self.smallest:
            row = int(pi0.argmin())
            self.smallest, self.smallest_row, self.smallest_place = float(pi0[row]), before + row, place(row)
        if float(w.max()) > self.largest:
            row = int(w.argmax())
            self.largest, self.largest_row, self.largest_place = float(w[row]), before + row, place(row)
        for histogram, values in ((self.tiny, pi0), (self.ours, pi[pi > 0]), (self.weights, w[w > 0])):
            histogram += np.bincount(np.searchsorted(EDGES, np.log10(values)), minlength=len(EDGES) + 1)
        self.upper.add(w)
        self.sum += float(w.sum())
        with np.errstate(over="ignore"):  # infinite, and read as such
            self.squares += float((w * w).sum())
        if never_played is not None:
            so_far = (self.never_played or 0.0) * self.rows
            self.never_played = (so_far + float(never_played.sum())) / (self.rows + len(w))
        self.rows += len(w)

    def merge(self, later: PolicyOverlap) -> None:
        """The rows of another one, which come after these."""
        if later.rows and (self.rows == 0 or self.only != later.only):
            self.only = later.only if self.rows == 0 else None
        if later.smallest < self.smallest:
            self.smallest, self.smallest_row = later.smallest, later.smallest_row
            self.smallest_place = later.smallest_place
        if later.largest > self.largest:
            self.largest, self.largest_row, self.largest_place = later.largest, later.largest_row, later.largest_place
        if later.never_played is not None and later.rows:
            both = (self.never_played or 0.0) * self.rows + later.never_played * later.rows
            self.never_played = both / (self.rows + later.rows)
        for name in SUMMED:
            setattr(self, name, getattr(self, name) + getattr(later, name))
        self.upper.merge(later.upper)
        self.grouped = self.grouped or later.grouped

    @property
    def effective_sample_size(self) -> float:
        """Of the plain weights."""
        return effective_sample_size(self.sum, self.squares)

    @property
    def pareto_k(self) -> float | None:
        """The shape of the weights' tail (see `manyarms.weights.tails`); None where too few weights differ."""
        return self.upper.pareto_k()

    @property
    def largest_reliable_k(self) -> float:
        """Up to which k so many rows can be trusted: min(1 - 1 / log10(n), 0.7)."""
        return largest_reliable_k(self.rows)

    @property
    def heavy_tailed(self) -> bool:
        """Whether the tail of the weights is too heavy for so many rows."""
        return self.pareto_k is not None and self.pareto_k > self.largest_reliable_k

    @property
    def estimated_weight(self) -> float:
        """The share of all weight that rests on estimated propensities."""
        return self.estimated_sum / self.sum if self.sum > 0 else self.estimated / max(1, self.rows)

    @property
    def mean_weight(self) -> float:
        """Near 1 where the logging policy plays whatever the policy plays and propensities are right."""
        return self.sum / max(1, self.rows)

    @property
    def mean_weight_error(self) -> float:
        """Its standard error."""
        n = self.rows
        if n < 2 or not math.isfinite(self.squares):
            return math.inf
        return math.sqrt(max(0.0, self.squares / n - self.mean_weight**2) / (n - 1))

    @property
    def off(self) -> int:
        """1 or -1 where the mean weight is above or below 1 by more than chance explains, else 0."""
        # equal weights have no error at all, and an average that is 1 up to rounding
        gap, error = self.mean_weight - 1.0, self.mean_weight_error + ROUNDING
        return 0 if not abs(gap) > OFF * error else 1 if gap > 0 else -1

    def tail(self) -> tuple[Array, Array]:
        """Weights t and the share of rows whose weight is above t, from the smallest t with any change on."""
        above = self.weights[::-1].cumsum()[::-1] / max(1, self.rows)
        seen = np.flatnonzero(self.weights)
        if not len(seen):
            return np.empty(0), np.empty(0)
        first, last = max(0, seen[0] - 1), min(len(EDGES) - 1, seen[-1])
        return 10.0 ** EDGES[first : last + 1], above[first + 1 : last + 2]

    def shares(self, which: str) -> tuple[Array, Array]:
        """Probabilities p and the share of rows with a propensity ("logging") or policy's probability ("policy") near p."""
        histogram = self.tiny if which == "logging" else self.ours
        seen = np.flatnonzero(histogram)
        if not len(seen):
            return np.empty(0), np.empty(0)
        some = slice(max(0, seen[0] - 1), seen[-1] + 2)
        padded = np.append(EDGES, EDGES[-1] + 0.1)
        return 10.0 ** (padded[some] - 0.05), histogram[some] / max(1, self.rows)

    def warnings(self) -> list[str]:
        """What to beware of, in plain words, the worst first."""
        out = []
        if self.rows and self.zero == self.rows:
            out.append("the policy never plays any action of this log: importance weights say nothing about it")
            return out
        if self.only is not None and self.rows > 1:
            out.append(f"all rows play the one action {self.only}: this log says nothing about any other")
        if self.never_played is not None and self.never_played > 1e-9:
            share = f"{self.never_played:.1%}" if self.never_played >= 1e-3 else "less than 0.1%"
            out.append(
                f"the logging policy never plays actions that carry {share} of the policy's probability: "
                "no reweighting can see their rewards"
            )
        gap = self.mean_weight - 1.0
        if self.off < 0 and self.never_played is None:
            out.append(
                f"weights average {self.mean_weight:.3g} where 1 is expected: the logging policy seems to leave out actions "
                f"that carry about {-gap:.0%} of the policy's probability, or propensities are too large"
            )
        if self.off > 0:
            out.append(f"weights average {self.mean_weight:.3g} where 1 is expected: propensities seem too small")
        if self.sum > 0 and self.largest / self.sum > DOMINANT:
            out.append(
                f"{self.largest_place} alone carries {self.largest / self.sum:.0%} of all weight "
                f"(its weight is {self.largest:.3g}): leaving it out would move the estimate"
            )
        size = self.effective_sample_size
        if size < FEW or size < THIN * self.rows:
            out.append(
                f"the weights leave as much information as {size:,.0f} rows of {self.rows:,}: prefer a correction, or a "
                "policy nearer to the logging policy"
            )
        if self.heavy_tailed:
            out.append(
                f"the tail of the weights has Pareto k = {self.pareto_k:.2f}, above {self.largest_reliable_k:.2f} = "
                f"min(1 - 1/log10(n), 0.7): estimates from plain weights (ips, snips, dr) are unreliable, and their standard "
                "errors too small; prefer a correction, or a policy nearer to the logging policy"
            )
        limit = 1.0 / max(1, self.rows)
        if self.smallest < limit:
            count = int(self.tiny[: np.searchsorted(EDGES, math.log10(limit))].sum())
            rows = f"about {count:,} rows have propensities" if count > 1 else "a row has a propensity"
            out.append(
                f"{rows} below 1/n = {limit:.2g} (the smallest, {self.smallest:.2g}, at {self.smallest_place}): such "
                "actions are met by luck, and get weights of n or more per unit of the policy's probability"
            )
        if 0 < self.useful < 30:
            out.append(
                f"only {self.useful} rows have both a weight and a reward: normal and bootstrap intervals are rough"
            )
        if self.estimated:
            said = "propensities are estimates"
            if self.estimated < self.rows:
                said = (
                    f"{self.estimated_weight:.0%} of the weight rests on estimated propensities ({self.estimated:,} of "
                    f"{counted(self.rows, 'row')})"
                )
            out.append(f"{said}, and every interval takes them for exact")
        if self.grouped:
            out.append(
                "rows come in groups: standard errors are computed from groups, and bounds for independent rows left out"
            )
        return out


__all__ = ["EDGES", "PolicyOverlap", "effective_sample_size"]
