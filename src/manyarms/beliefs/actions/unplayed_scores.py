"""Scores of the actions that nobody has played: which search to use, and the tables it needs.

The tables (features by unit, blocks) are derived from the catalogue and are made at the first use; they follow the
catalogue by its log of taken units.
"""

from __future__ import annotations

import math
from typing import NamedTuple, cast

import numpy as np

from manyarms._base.typing import Array, Ints
from manyarms.beliefs.actions import search
from manyarms.beliefs.actions.blocks import Blocks
from manyarms.beliefs.actions.catalogue import Offer
from manyarms.beliefs.actions.units import Units
from manyarms.beliefs.leaves import Leaves


class _UnitBlocks(NamedTuple):
    """Blocks of the units, the members left in each, and up to where the units' log has been read."""

    units: Units
    blocks: Blocks
    block_of: Ints
    sizes: Array
    read: int

    def sizes_under(self, offer: Offer) -> Array:
        if not offer.withheld:
            return self.sizes
        sizes = self.sizes.copy()
        for unit, ranks in offer.withheld.items():
            if unit < len(self.block_of):
                sizes[self.block_of[unit]] -= len(ranks)
        return sizes


class UnplayedScores:
    """The scores of a belief's unplayed actions: the best of a draw of them, and their moments."""

    def __init__(self, leaves: Leaves) -> None:
        self.leaves = leaves
        # replaced whole, since several readers may make them at once
        self._rows: tuple[Units, Array] | None = None  # a regrouping makes new units
        self._blocks: _UnitBlocks | None = None

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
        made = self._up_to_date()
        sizes = made.sizes_under(offer)
        found, which = search.open_blocks(made.blocks, c, sd, offer.counts, sizes, units.unit_of is None, floor, k, rng)
        return np.concatenate([scores, found]), np.concatenate([places, which])

    def _means(self, c: Array, places: Ints) -> Array:
        """Mean scores of the units at these places."""
        if self.leaves.mixing.features is None:
            return np.full(len(places), c[0])
        units = self.leaves.catalogue.units
        if len(units.counts) > search.FEW:
            return self.leaves.mixing.features[units.represent[places]] @ c
        held = self._rows
        if held is None or held[0] is not units or len(held[1]) != len(units.represent):
            held = self._rows = units, self.leaves.mixing.features[units.represent]
        rows = held[1]
        return (rows if len(places) == len(rows) else rows[places]) @ c

    def _up_to_date(self) -> _UnitBlocks:
        units, made = self.leaves.catalogue.units, self._blocks
        if made is None or made.units is not units:
            features = cast(Array, self.leaves.mixing.features)
            blocks = Blocks(features[units.represent[: units.kinds]])
            block_of = np.searchsorted(blocks.stops, blocks.place_of, side="right")
            live = units.counts[: units.kinds]
            sizes = np.add.reduceat(live[blocks.order].astype(np.float64), blocks.starts)
            made = self._blocks = _UnitBlocks(units, blocks, block_of, sizes, len(units.log))
        elif made.read < len(units.log):
            sizes = made.sizes.copy()
            for unit in units.log[made.read :]:
                if unit < units.kinds:
                    sizes[made.block_of[unit]] -= 1
            made = self._blocks = _UnitBlocks(units, made.blocks, made.block_of, sizes, len(units.log))
        return made

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
        rows, made = self._rows, self._blocks
        return (0 if rows is None else rows[1].nbytes) + (
            0 if made is None else made.blocks.nbytes + made.block_of.nbytes
        )


__all__ = ["UnplayedScores"]
