"""What learning gives back, and what it says on the way."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from manyarms._base.validate import describe
from manyarms.certificates import Certificate
from manyarms.errors import InvalidInput
from manyarms.policies.randomised import GaussianPolicy, MixedLogitPolicy
from manyarms.policies.softmax import SoftmaxPolicy
from manyarms.policies.support_softmax import SupportSoftmaxPolicy
from manyarms.policies.two_stage import TwoStagePolicy

Learnable = SoftmaxPolicy | SupportSoftmaxPolicy | TwoStagePolicy | GaussianPolicy | MixedLogitPolicy
"""The policies that can be learned."""


def require_learnable(policy: object) -> None:
    """Refuse what cannot be learned."""
    if not isinstance(policy, Learnable):
        expected = "a policy that can be learned: softmax, support softmax, two-stage, Gaussian, mixed-logit"
        raise InvalidInput("policy", describe(policy), expected)


@dataclass(frozen=True)
class Epoch:
    """A line of the history."""

    epoch: int  # from 1
    objective: float  # mean over the epoch's batches, each before its step
    validation: float | None  # self-normalised estimate on held-out rows
    score: float | None  # whatever the caller measures, such as a true value
    rows_per_second: float
    learning_rate: float  # of the last batch


@dataclass(frozen=True)
class Moment:
    """Where a run stands, for a progress display."""

    epoch: int  # from 0
    batch: int  # from 0
    epochs: int
    batches: int  # in an epoch
    objective: float  # mean over this epoch so far; NaN where a GPU was not asked
    rows_per_second: float
    seconds_left: float
    history: tuple[Epoch, ...]


@dataclass(frozen=True)
class Learned:
    """A learned policy (plain arrays: it is saved and decides without PyTorch) and how it was found."""

    policy: SoftmaxPolicy | SupportSoftmaxPolicy | TwoStagePolicy | GaussianPolicy | MixedLogitPolicy
    history: tuple[Epoch, ...]
    objective: str
    settings: dict[str, Any] = field(default_factory=dict)
    certificate: Certificate | None = None  # of policies learned by a PACBayes objective
    notes: tuple[str, ...] = ()  # what to know of the result


__all__ = ["Epoch", "Learnable", "Learned", "Moment", "require_learnable"]
