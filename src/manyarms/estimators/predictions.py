"""Reward models inside estimators: what is asked of one, whatever the model is."""

from __future__ import annotations

import numpy as np

from manyarms._base import validate
from manyarms._base.typing import Array
from manyarms.errors import InvalidInput
from manyarms.estimators.base import Range
from manyarms.estimators.inputs import require_model
from manyarms.logs.data import LoggedData
from manyarms.rewards.base import RewardModel


def checked_model(model: RewardModel, log: LoggedData) -> RewardModel:
    """The model for the rows of a log, once it is known that it speaks of the same actions and contexts."""
    require_model(model)
    for name, wanted in (("action_count", log.action_count), ("dim", log.dim)):
        came = getattr(model, name, wanted)
        if came != wanted:
            raise InvalidInput("model", f"a model with {name} = {came}", f"{name} = {wanted}, as the log has")
    return model


def residuals(model: RewardModel, log: LoggedData) -> Array:
    """(n,): what a checked model leaves over of the rewards."""
    predicted = validate.as_array("model", model.predict(log.contexts, log.actions), (len(log),))
    return np.asarray(log.rewards - predicted)


def bounds_of(model: RewardModel) -> Range | None:
    """Numbers between which all predictions lie, where the model says so."""
    bounds = getattr(model, "bounds", None)
    return (float(bounds[0]), float(bounds[1])) if isinstance(bounds, tuple) else None


def residual_range(rewards: Range | None, model: RewardModel) -> Range | None:
    """Numbers between which r - r_hat lies, where rewards and predictions are bounded."""
    bounds = bounds_of(model)
    return None if rewards is None or bounds is None else (rewards[0] - bounds[1], rewards[1] - bounds[0])


__all__ = ["bounds_of", "checked_model", "residual_range", "residuals"]
