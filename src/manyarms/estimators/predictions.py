"""Reward models inside estimators: what is asked of one, whatever the model is."""

from __future__ import annotations

import numpy as np

from manyarms._base import validate
from manyarms._base.typing import Array
from manyarms.errors import InvalidInput
from manyarms.estimators.base import Range
from manyarms.logs.data import LoggedData
from manyarms.rewards.base import RewardModel


def checked_model(model: RewardModel, log: LoggedData) -> RewardModel:
    """The model for the rows of a log, once it is known that it speaks of the same actions and contexts."""
    if not (hasattr(model, "predict") and hasattr(model, "block")):
        raise InvalidInput("model", validate.describe(model), "a reward model with predict and block")
    for name, wanted in (("action_count", log.action_count), ("dim", log.dim)):
        came = getattr(model, name, wanted)
        if came != wanted:
            raise InvalidInput("model", f"a model with {name} = {came}", f"{name} = {wanted}, as the log has")
    return model


def residuals(model: RewardModel, log: LoggedData) -> Array:
    """(n,): what a checked model leaves over of the rewards."""
    return np.asarray(log.rewards - np.asarray(model.predict(log.contexts, log.actions), dtype=np.float64))


def bounds_of(model: RewardModel) -> Range | None:
    """Numbers between which all predictions lie, where the model says so."""
    bounds = getattr(model, "bounds", None)
    return (float(bounds[0]), float(bounds[1])) if isinstance(bounds, tuple) else None


def residual_range(rewards: Range | None, model: RewardModel) -> Range | None:
    """Numbers between which r - r_hat lies, where rewards and predictions are bounded."""
    bounds = bounds_of(model)
    return None if rewards is None or bounds is None else (rewards[0] - bounds[1], rewards[1] - bounds[0])


__all__ = ["bounds_of", "checked_model", "residual_range", "residuals"]
