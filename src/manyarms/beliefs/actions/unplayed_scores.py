"""Scores of the actions that nobody has played: which search to use, and the tables it needs.

The tables (features by unit, blocks) are derived from the catalogue and made where a decision first needs them: aside, and then
put in their place in one step, so that decisions may run beside each other while nobody learns.
"""

from __future__ import annotations

from functools import partial
from typing import cast

import numpy as np

from manyarms._base.typing import Array, Ints
from manyarms.beliefs.actions import block_search, search
from manyarms.beliefs.actions.catalogue import Offer
from manyarms.beliefs.leaves import Leaves


class UnplayedScores:
    """The scores of a belief's unplayed actions: the best of a draw of them, and their moments."""

    def __init__(self, leaves: Leaves) -> None:
        self.leaves = leaves
        self._rows: Array | None = None  # features of the units, where there are few

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
            return search.one_unit(float(c[0]), leaves.common_spread(x), int(offer.counts[0]), floor, rng)
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
        blocks = units.blocks(cast(Array, leaves.mixing.features))
        sizes = blocks.sizes_without(offer.withheld)
        sd_all = leaves.common_spread(x)
        return block_search.open_blocks(blocks, c, sd_all, offer.counts, sizes, partial(self._means, c), floor, k, rng)

    def _means(self, c: Array, places: Ints) -> Array:
        """Mean scores of the units at these places."""
        features = self.leaves.mixing.features
        if features is None:
            return np.full(len(places), c[0])
        represent = self.leaves.catalogue.units.represent
        if len(represent) > search.FEW:
            return features[represent[places]] @ c
        rows = self._rows
        if rows is None or len(rows) != len(represent):  # a unit keeps its row: only new units make it anew
            rows = self._rows = features[represent]
        return (rows if len(places) == len(rows) else rows[places]) @ c

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
        rows = self._rows
        return 0 if rows is None else rows.nbytes


__all__ = ["UnplayedScores"]
