"""Reward models inside estimators: one face for all, whatever the model is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from manyarms._base import validate
from manyarms._base.typing import Array, Ints
from manyarms.errors import InvalidInput
from manyarms.estimators.base import Range
from manyarms.logs.data import LoggedData
from manyarms.rewards.base import RewardModel


@dataclass(frozen=True, eq=False)
class Predictions:
    """A reward model with `weights` (K, d) where its predictions are linear, r_hat(x, a) = x^T weights_a."""

    model: RewardModel

    @property
    def weights(self) -> Array | None:
        """(K, d), or None for a model of another kind."""
        return getattr(self.model, "weights", None)

    def predict(self, X: Array, actions: Ints) -> Array:
        """r_hat(x_i, a_i), (n,)."""
        return np.asarray(self.model.predict(X, actions), dtype=np.float64)

    def block(self, X: Array, ids: Ints) -> Array:
        """r_hat(x_i, a_j) of contexts (b, d) and ids (k,), as (b, k)."""
        return self.model.block(X, ids)


def checked_model(model: RewardModel, log: LoggedData) -> Predictions:
    """The model for the rows of a log, once it is known that it speaks of the same actions and contexts."""
    if not (hasattr(model, "predict") and hasattr(model, "block")):
        raise InvalidInput("model", validate.describe(model), "a reward model with predict and block")
    for name, wanted in (("action_count", log.action_count), ("dim", log.dim)):
        came = getattr(model, name, wanted)
        if came != wanted:
            raise InvalidInput("model", f"a model with {name} = {came}", f"{name} = {wanted}, as the log has")
    return Predictions(model)


def bounds_of(model: RewardModel) -> Range | None:
    """Numbers between which all predictions lie, where the model says so."""
    bounds = getattr(model, "bounds", None)
    return (float(bounds[0]), float(bounds[1])) if isinstance(bounds, tuple) else None


def residual_range(rewards: Range | None, model: RewardModel) -> Range | None:
    """Numbers between which r - r_hat lies, where rewards and predictions are bounded."""
    bounds = bounds_of(model)
    return None if rewards is None or bounds is None else (rewards[0] - bounds[1], rewards[1] - bounds[0])


__all__ = ["Predictions", "bounds_of", "checked_model", "residual_range"]
