"""What a reward model is."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy.typing as npt

from manyarms._base.typing import Array, Ints


class RewardModel(Protocol):
    """Predicted mean rewards r_hat(x, a): what estimators and objectives ask of a reward model."""

    def predict(self, X: Array, actions: Ints, /) -> Array:
        """r_hat(x_i, a_i), (n,)."""

    def block(self, X: Array, ids: Ints, /) -> Array:
        """r_hat(x_i, a_j) of contexts (b, d) and actions (k,), as (b, k)."""


@runtime_checkable
class CatalogueModel(RewardModel, Protocol):
    """A reward model that knows its catalogue, and can rank it."""

    @property
    def action_count(self) -> int:
        """K."""

    @property
    def dim(self) -> int:
        """d."""

    def predict(self, X: npt.ArrayLike, actions: npt.ArrayLike, /) -> Array:
        """r_hat(x_i, a_i), (n,)."""

    def decide(self, X: npt.ArrayLike, k: int | None = None) -> int | Ints:
        """The best action of every context by r_hat, or the best k."""


__all__ = ["CatalogueModel", "RewardModel"]
