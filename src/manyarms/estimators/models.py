"""Reward models inside objectives: one face for engines, whatever the model is."""

from __future__ import annotations

import numpy as np

from manyarms._base import validate
from manyarms._base.typing import Array, Ints
from manyarms.errors import InvalidInput
from manyarms.estimators.logging_policy import RewardModel
from manyarms.logs.data import LoggedData


class Predictions:
    """A reward model with `weights` (K, d) where its predictions are linear, r_hat(x, a) = x^T weights_a."""

    def __init__(self, model: RewardModel) -> None:
        self.model = model
        self.weights: Array | None = getattr(model, "weights", None)

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


def no_ids(rows: int) -> Ints:
    """(n, 0): the objective asks for no single action."""
    return np.empty((rows, 0), dtype=np.int64)


__all__ = ["Predictions", "checked_model", "no_ids"]
