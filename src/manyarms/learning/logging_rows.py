"""pi0 of all actions at the rows of a batch, where an objective needs it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from manyarms.estimators.logging_policy import require_full_propensities
from manyarms.logs.data import LoggedData
from manyarms.policies.base import Policy
from manyarms.policies.softmax import SoftmaxPolicy

LoggingRows = Callable[[Tensor, Tensor], tuple[Tensor | None, Tensor]]
"""Of row numbers (b,) and their contexts (b, d): ids (b, k) and their pi0 (b, k); or None and pi0 of all actions (b, K)."""


def logging_rows(log: LoggedData, device: torch.device, dtype: torch.dtype) -> LoggingRows:
    """What the log lists, where it lists all of pi0; a plain softmax on the device itself; else what the policy says."""
    listed = require_full_propensities(log, "an objective of all actions").listed
    if listed is not None:
        ids = torch.tensor(listed[0], device=device)
        pi0 = torch.tensor(listed[1], dtype=dtype, device=device)
        return lambda rows, x: (ids[rows], pi0[rows])
    logging = log.logging
    assert isinstance(logging, Policy)
    if isinstance(logging, SoftmaxPolicy) and logging.encoder is None:
        weights = torch.tensor(np.asarray(logging.actions) / logging.temperature, dtype=dtype, device=device)
        return lambda rows, x: (None, torch.softmax(x @ weights.T, dim=1))
    every = np.arange(log.action_count)

    def asked(rows: Tensor, x: Tensor) -> tuple[None, Tensor]:
        X = x.double().cpu().numpy()
        found = logging.probabilities_of_many(X, np.broadcast_to(every, (len(X), len(every))))
        return None, torch.as_tensor(found).to(x)

    return asked


__all__ = ["LoggingRows", "logging_rows"]
