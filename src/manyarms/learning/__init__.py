"""Learning policies from logs by gradient ascent; needs PyTorch (the extra `torch`), the learned policies do not.

What needs PyTorch is imported when it is first asked for.
"""

from __future__ import annotations

from importlib import import_module as _import_module
from typing import TYPE_CHECKING

from manyarms.learning.learner import learn
from manyarms.learning.results import Epoch, Learnable, Learned, Moment
from manyarms.learning.settings import TrainingSettings

if TYPE_CHECKING:
    from manyarms.learning.blockwise import log_probability
    from manyarms.learning.encoders import TorchEncoder
    from manyarms.learning.sampled import SampledSoftmax, TopProposal, gradient_gap

_WITH_TORCH = {
    "SampledSoftmax": "sampled",
    "TopProposal": "sampled",
    "TorchEncoder": "encoders",
    "gradient_gap": "sampled",
    "log_probability": "blockwise",
}


def __getattr__(name: str) -> object:
    if name not in _WITH_TORCH:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(_import_module(f"{__name__}.{_WITH_TORCH[name]}"), name)
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        # an AttributeError, so that hasattr and help work without the extra
        raise AttributeError(f"{__name__}.{name} needs PyTorch: pip install 'manyarms[torch]'") from error


__all__ = [
    "Epoch",
    "Learnable",
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
