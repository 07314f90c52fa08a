"""Steps on a processor for objectives whose derivatives are known: weight * pi or weight * log pi of the logged action.

Where there are few actions a step is a few products of small matrices, and recording derivatives and replaying them would take
longer than the products.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from manyarms._base.typing import Ints
from manyarms.estimators.base import Objective
from manyarms.learning.blockwise import safe_norm
from manyarms.learning.engines import AllActions
from manyarms.learning.settings import TrainingSettings
from manyarms.learning.steps import Steps
from manyarms.learning.trainable import Trainable
from manyarms.learning.windows import Window


class ClosedSteps(Steps):
    """Steps of the exact softmax over all actions: of their own for objectives with `linear_terms`, the usual ones for others."""

    def __init__(self, trainable: Trainable, objective: Objective, settings: TrainingSettings) -> None:
        super().__init__(trainable, objective, settings)
        assert isinstance(trainable.engine, AllActions)
        self.engine: AllActions = trainable.engine
        self._terms: tuple[Window, tuple[Tensor, Tensor, bool, float] | None] | None = None

    @staticmethod
    def fit(trainable: Trainable) -> bool:
        """Whether a policy is one that they are for."""
        return type(trainable.engine) is AllActions and trainable.device.type == "cpu"

    def _step(
        self, window: Window, index: Ints, size: int, step: int, rate: float, rng: np.random.Generator | None
    ) -> Tensor | float:
        found = self._of(window)
        if found is None:
            return super()._step(window, index, size, step, rate, rng)
        actions, weights, of_log, limit = found
        trainable, rows = self.trainable, torch.as_tensor(index)
        features = trainable.features(window.contexts.index_select(0, rows))
        ids = actions.index_select(0, rows)
        trainable.begin(rate)
        learns = trainable.learns_encoder
        value, gradient = self.engine.climb(
            features.detach() if learns else features,
            ids,
            weights.index_select(0, rows).div_(size),
            of_log,
            limit=limit,
            want_h=learns,
        )
        if learns and gradient is not None and trainable.encoding is not None:
            features.backward(gradient)  # type: ignore[no-untyped-call]
            trainable.encoding.step()
        trainable.finish()
        return value

    def _of(self, window: Window) -> tuple[Tensor, Tensor, bool, float] | None:
        """The logged actions and weights of a window's rows, whether log pi is weighted, and which norm of beta is safe for all.

        Nothing for another kind of objective.
        """
        if self._terms is None or self._terms[0] is not window:
            terms = self.objective.linear_terms(window.log)
            kept = None
            if terms is not None:
                raw = self.trainable.encoding is None  # features are contexts over the temperature
                limit = safe_norm(window.contexts) * self.trainable.temperature if raw else 0.0
                weights = torch.tensor(terms.weights, dtype=self.trainable.dtype)
                kept = window.ids[:, 0].contiguous(), weights, terms.of_log, 0.999 * limit
            self._terms = window, kept
        return self._terms[1]


__all__ = ["ClosedSteps"]
