"""Why a score is what it is: what each feature has added to it, and how sure that is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from manyarms._base.tables import Shown, Table
from manyarms._base.text import number
from manyarms._base.typing import Array, Spec

MOST_SHOWN = 12  # features that a table lists


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Explanation(Shown):
    """A score x^T theta_a, split by feature, and into what comes from the root and what from the action's own leaf.

    features (d,): x. leaf (d,): what each feature adds by the action's own data. root (d,): what it adds by what all actions
    share; None where nothing is shared, or where that is not told apart. All of them together are the score. leaf_variance,
    root_variance: of the score, by what is not known of the action given the root, and by what is not known of the root; None
    where the score is known. variance_shares (d,): x_j (V x)_j / x^T V x, V the covariance of theta_a: together 1, and below 0
    where a feature makes up for another. quantity: what the score is. names: of the features.
    """

    features: Array
    leaf: Array
    root: Array | None = None
    leaf_variance: float | None = None
    root_variance: float | None = None
    variance_shares: Array | None = None
    quantity: str = "expected reward"
    names: tuple[str, ...] = ()

    @property
    def contributions(self) -> Array:
        """(d,): what each feature adds to the score, x_j E[theta_a]_j."""
        return self.leaf if self.root is None else self.leaf + self.root

    @property
    def score(self) -> float:
        """The posterior mean of x^T theta_a."""
        return float(self.contributions.sum())

    @property
    def variance(self) -> float | None:
        """Its posterior variance; None where the score is known."""
        return None if self.leaf_variance is None else self.leaf_variance + (self.root_variance or 0.0)

    @property
    def sd(self) -> float | None:
        """Its standard deviation."""
        return None if self.variance is None else math.sqrt(max(0.0, self.variance))

    @property
    def root_share(self) -> float | None:
        """How much of the score comes from the root: |root| / (|root| + |leaf|), the two parts summed over features."""
        if self.root is None:
            return None
        root, leaf = abs(float(self.root.sum())), abs(float(self.leaf.sum()))
        return root / (root + leaf) if root + leaf > 0 else None

    @property
    def root_variance_share(self) -> float | None:
        """How much of the variance comes from the root."""
        total = self.variance
        return None if self.root_variance is None or not total else self.root_variance / total

    def called(self, names: Sequence[str] | None) -> Explanation:
        """The same with names of features, where there are as many."""
        return self if names is None or len(names) != len(self.features) else replace(self, names=tuple(names))

    def name(self, feature: int) -> str:
        """What a feature is called: x[3] where nobody has said."""
        return self.names[feature] if self.names else f"x[{feature}]"

    @property
    def order(self) -> list[int]:
        """The features, those that add or take most first; of equal ones the first."""
        return [int(j) for j in np.argsort(-np.abs(self.contributions), kind="stable")]

    def to_json(self) -> Spec:
        """As plain values, the features in their `order`."""
        rows = []
        for j in self.order:
            row: Spec = {
                "name": self.name(j),
                "value": float(self.features[j]),
                "contribution": float(self.contributions[j]),
            }
            if self.root is not None:
                row |= {"root": float(self.root[j]), "leaf": float(self.leaf[j])}
            if self.variance_shares is not None:
                row["variance_share"] = float(self.variance_shares[j])
            rows.append(row)
        return {
            "quantity": self.quantity,
            "score": self.score,
            "sd": self.sd,
            "root_share": self.root_share,
            "root_variance_share": self.root_variance_share,
            "features": rows,
        }

    def table(self, title: str | None = None) -> Table:
        """Features under what they add, the largest first."""
        split, sure = self.root is not None, self.variance_shares is None
        columns = ["feature", "value", "adds", *(["root", "leaf"] if split else []), *([] if sure else ["variance"])]
        rows = []
        for j in self.order[:MOST_SHOWN]:
            row: list[str | float] = [self.name(j), float(self.features[j]), float(self.contributions[j])]
            if self.root is not None:
                row += [float(self.root[j]), float(self.leaf[j])]
            if self.variance_shares is not None:
                row.append(f"{self.variance_shares[j]:.0%}")
            rows.append(row)
        notes = []
        if len(self.features) > MOST_SHOWN:
            rest = float(self.contributions[self.order[MOST_SHOWN:]].sum())
            notes.append(f"{len(self.features) - MOST_SHOWN:,} more features add {number(rest)} together.")
        if self.root_share is not None:
            said = f"{self.root_share:.0%} of the score"
            if self.root_variance_share is not None:
                said += f" and {self.root_variance_share:.0%} of its variance"
            notes.append(f"What all actions share (root) makes {said}.")
        return Table(self._said() if title is None else title, columns, rows, notes)

    def _said(self) -> str:
        return f"{self.quantity} {number(self.score)}" + ("" if self.sd is None else f" ± {number(self.sd)}")

    def _table(self) -> Table:
        return self.table()


__all__ = ["Explanation"]
