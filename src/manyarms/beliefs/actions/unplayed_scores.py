"""Scores of the actions that nobody has played: which search to use, and the tables it needs.

The tables (features by unit, blocks) are derived from the catalogue and are made at the first use; they follow the
catalogue by its log of taken units.
"""

from __future__ import annotations

import math
from typing import cast

import numpy as np

from manyarms._base.typing import Array, Ints
from manyarms.beliefs.actions import search
from manyarms.beliefs.actions.blocks import Blocks
from manyarms.beliefs.actions.catalogue import Offer
from manyarms.beliefs.actions.units import Units
from manyarms.beliefs.leaves import Leaves


class UnplayedScores:
    """The scores of a belief's unplayed actions: the best of a draw of them, and their moments."""

    def __init__(self, leaves: Leaves) -> None:
        self.leaves = leaves
        self._units: Units | None = None  # the units that the blocks were made for
        self._rows_units: Units | None = None  # and those of the rows: a regrouping makes new ones
        self._rows: Array | None = None
        self._blocks: Blocks | None = None
        self._sizes: Array = np.empty(0)
        self._block_of: Ints = np.empty(0, dtype=np.int64)
        self._read = 0

    # ---- decisions that draw ------------------------------------------------------------------------------------------

    def best(
        self, x: Array, m: Array, offer: Offer, floor: float, k: int, rng: np.random.Generator
    ) -> tuple[Array, Ints]:
        """Scores above the floor among the best k, with the places of their units in the offer."""
        leaves, units = self.leaves, self.leaves.catalogue.units
        if not offer.fresh:
            return np.empty(0), np.empty(0, dtype=np.int64)
        c = leaves.mixing.coefficients(x[None], m[None])[0]
        if units.single and k == 1:
            return search.one_unit(float(c[0]), math.sqrt(x @ leaves.covariance @ x), int(offer.counts[0]), floor, rng)
        if offer.units is not None or len(units.counts) <= search.FEW:
            places = offer.units if offer.units is not None else np.arange(len(units.counts))
            mean = self._means(c, places)
            sd = np.sqrt(leaves.prior_variances(x, units.represent[places]))
            spread = float(sd[0]) if leaves.shared else sd
            if len(places) <= search.FEW:
                return search.groups(mean, spread, offer.counts, floor, k, rng)
            return search.scan(mean[None], np.ones(1), spread, offer.counts, floor, k, rng)
        if not leaves.shared:
            sd = np.sqrt(leaves.prior_variances(x, None))  # every action is a unit of its own
            columns = None if leaves.mixing.features is None else self._means(c, np.arange(len(units.counts)))[None]
            return search.scan(columns, c if columns is None else np.ones(1), sd, offer.counts, floor, k, rng)
        sd_all = float(np.sqrt(leaves.prior_variances(x, None)[0]))
        return self._many(c, sd_all, offer, floor, k, rng)

    def _many(
        self, c: Array, sd: float, offer: Offer, floor: float, k: int, rng: np.random.Generator
    ) -> tuple[Array, Ints]:
        """Many units of one sd: latecomers first, then the blocks or a scan of all."""
        units = self.leaves.catalogue.units
        scores, places = np.empty(0), np.empty(0, dtype=np.int64)
        if units.size > units.grouped:
            late = np.arange(units.kinds, len(units.counts))
            mean = self._means(c, late)
            scores, places = search.scan(mean[None], np.ones(1), sd, offer.counts[late], floor, k, rng)
            places = late[places]
            if len(scores) >= k:
                floor = max(floor, float(-np.partition(-scores, k - 1)[k - 1]))
        blocks = self._up_to_date()
        sizes = self._sizes_under(offer)
        found, which = search.open_blocks(blocks, c, sd, offer.counts, sizes, units.unit_of is None, floor, k, rng)
        return np.concatenate([scores, found]), np.concatenate([places, which])

    def _means(self, c: Array, places: Ints) -> Array:
        """Mean scores of the units at these places."""
        if self.leaves.mixing.features is None:
            return np.full(len(places), c[0])
        units = self.leaves.catalogue.units
        if len(units.counts) > search.FEW:
            return self.leaves.mixing.features[units.represent[places]] @ c
        if self._rows is None or self._rows_units is not units or len(self._rows) != len(units.represent):
            self._rows_units, self._rows = units, self.leaves.mixing.features[units.represent]
        rows = self._rows
        return (rows if len(places) == len(rows) else rows[places]) @ c

    def _up_to_date(self) -> Blocks:
        units = self.leaves.catalogue.units
        if self._blocks is None or self._units is not units:
            features = cast(Array, self.leaves.mixing.features)
            self._units, self._blocks = units, Blocks(features[units.represent[: units.kinds]])
            self._block_of = np.searchsorted(self._blocks.stops, self._blocks.place_of, side="right")
            live = units.counts[: units.kinds]
            self._sizes = np.add.reduceat(live[self._blocks.order].astype(np.float64), self._blocks.starts)
            self._read = len(units.log)
        for unit in units.log[self._read :]:
            if unit < units.kinds:
                self._sizes[self._block_of[unit]] -= 1
        self._read = len(units.log)
        return self._blocks

    def _sizes_under(self, offer: Offer) -> Array:
        if not offer.withheld:
            return self._sizes
        sizes = self._sizes.copy()
        for unit, ranks in offer.withheld.items():
            if unit < len(self._block_of):
                sizes[self._block_of[unit]] -= len(ranks)
        return sizes

    # ---- decisions that do not ----------------------------------------------------------------------------------------

    def moments(self, x: Array, mean: Array, factor: Array | None, offer: Offer) -> tuple[Array, Array]:
        """Marginal mean and variance of x^T theta for the units offered; `factor` S of the root's covariance, None: known.

        Var = x^T Sigma_a x + |S^T W_a^T x|^2.
        """
        leaves, units = self.leaves, self.leaves.catalogue.units
        places = offer.units if offer.units is not None else np.arange(len(units.counts))
        c = leaves.mixing.coefficients(x[None], mean[None])[0]
        score = self._means(c, places)
        ids = None if offer.units is None and leaves.catalogue.distinct else units.represent[places]
        variance = np.broadcast_to(leaves.prior_variances(x, ids), score.shape)
        if factor is None:
            return score, variance
        return score, variance + leaves.mixing.root_variances(x, factor, units.represent[places])

    @property
    def nbytes(self) -> int:
        """Bytes of the derived tables."""
        rows = 0 if self._rows is None else self._rows.nbytes
        blocks = 0 if self._blocks is None else self._blocks.nbytes + self._block_of.nbytes
        return rows + blocks


__all__ = ["UnplayedScores"]
