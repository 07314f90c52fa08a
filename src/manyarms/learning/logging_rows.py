"""pi0 of all actions at the rows of a batch, where an objective needs it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from manyarms.logs.data import LoggedData
from manyarms.policies.base import Policy
from manyarms.policies.softmax import SoftmaxPolicy


def logging_rows(log: LoggedData, device: torch.device, dtype: torch.dtype) -> Callable[[Tensor], Tensor]:
    """A function of contexts (b, d) that gives pi0 (b, K): for a plain softmax on the device itself, else by the policy."""
    logging = log.logging
    assert isinstance(logging, Policy)
    if isinstance(logging, SoftmaxPolicy) and logging.encoder is None:
        weights = torch.tensor(np.asarray(logging.actions) / logging.temperature, dtype=dtype, device=device)
        return lambda x: torch.softmax(x @ weights.T, dim=1)
    every = np.arange(log.action_count)

    def asked(x: Tensor) -> Tensor:
        X = x.double().cpu().numpy()
        found = logging.probabilities_of_many(X, np.broadcast_to(every, (len(X), len(every))))
        return torch.as_tensor(found).to(x)

    return asked


__all__ = ["logging_rows"]
