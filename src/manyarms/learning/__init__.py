"""Learning policies from logs by gradient ascent; needs PyTorch (the extra `torch`), the learned policies do not."""

from __future__ import annotations

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    from manyarms.errors import MissingExtra

    raise MissingExtra("torch", "torch", "learning policies from logs") from error

from manyarms.learning.blockwise import log_probability
from manyarms.learning.encoders import TorchEncoder
from manyarms.learning.loop import learn
from manyarms.learning.results import Epoch, Learned, Moment
from manyarms.learning.sampled import SampledSoftmax, TopProposal, gradient_gap
from manyarms.learning.settings import TrainingSettings

__all__ = [
    "Epoch",
    "Learned",
    "Moment",
    "SampledSoftmax",
    "TopProposal",
    "TorchEncoder",
    "TrainingSettings",
    "gradient_gap",
    "learn",
    "log_probability",
]
