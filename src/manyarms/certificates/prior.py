"""The prior of a PAC-Bayes certificate: a Gaussian over parameters, and where it came from.

A bound holds for priors that do not depend on its rows. Nobody can check how a prior was made, but that it was learned from
the very rows of the log can be seen, and is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from manyarms._base import validate
from manyarms._base.tables import Shown
from manyarms._base.typing import AnyArray, Array
from manyarms.errors import InvalidInput
from manyarms.estimators.inputs import require_log
from manyarms.logs.data import LogSource
from manyarms.logs.row_sketch import RowSketch
from manyarms.policies.encoders import ContextEncoder
from manyarms.policies.randomised import gaussian_kl
from manyarms.policies.softmax import SoftmaxPolicy


@runtime_checkable
class Randomised(Protocol):
    """A policy that plays a rule with parameters drawn from N(actions, sigma^2 I)."""

    @property
    def actions(self) -> AnyArray:
        """mu, (K, l)."""

    @property
    def sigma(self) -> float:
        """The standard deviation of every parameter."""

    @property
    def encoder(self) -> ContextEncoder | None:
        """What is made of a context first."""


@dataclass(frozen=True, eq=False, repr=False)
class PolicyPrior(Shown):
    """N(mean, sigma^2 I) over the parameters (K, l) of all actions; Gumbel noise, where a policy has it, is the same in both.

    learned_from: the log that the mean was learned from, or its sketch; its rows must not be those of the certificate.
    encoder: what is made of contexts first, which must be the policy's own: it is not part of what the divergence measures.
    """

    mean: Array
    sigma: float = 1.0
    encoder: ContextEncoder | None = None
    learned_from: LogSource | RowSketch | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean", validate.owned(validate.as_array("mean", self.mean, (None, None))))
        object.__setattr__(self, "sigma", validate.positive("sigma", self.sigma))
        if self.encoder is not None and not isinstance(self.encoder, ContextEncoder):
            raise InvalidInput("encoder", validate.describe(self.encoder), "an encoder of manyarms.policies, or None")
        if self.learned_from is not None and not isinstance(self.learned_from, RowSketch):
            require_log(self.learned_from, "learned_from")

    @classmethod
    def of(
        cls, policy: object, learned_from: LogSource | RowSketch | None = None, *, sigma: float | None = None
    ) -> PolicyPrior:
        """The prior around a policy: its own mean and sigma, or N(beta / T, 1) for a softmax (thesis, Section 8.5).

        learned_from: the log that the policy was learned from; by default what the policy itself carries of it.
        """
        if learned_from is None:
            learned_from = getattr(policy, "training_rows", None)
        if isinstance(policy, type):
            raise InvalidInput("prior", validate.describe(policy), "a policy, and not a class of them")
        if isinstance(policy, SoftmaxPolicy):
            mean = np.asarray(policy.actions, dtype=np.float64) / policy.temperature
            return cls(mean, 1.0 if sigma is None else sigma, policy.encoder, learned_from)
        if isinstance(policy, Randomised):
            mean = np.asarray(policy.actions, dtype=np.float64)
            return cls(mean, float(policy.sigma) if sigma is None else sigma, policy.encoder, learned_from)
        raise InvalidInput("prior", validate.describe(policy), "a Gaussian, mixed-logit or softmax policy")

    def divergence(self, policy: Randomised) -> float:
        """KL(N(mu, sigma^2 I) || prior), exactly (`gaussian_kl`); the thesis's bound on it needs sigma <= sigma0."""
        mu = np.asarray(policy.actions, dtype=np.float64)
        if mu.shape != self.mean.shape:
            came = f"a policy with parameters of shape {mu.shape}"
            raise InvalidInput("prior", came, f"one with the prior's {self.mean.shape}")
        if not _same(policy.encoder, self.encoder):
            raise InvalidInput(
                "prior", "an encoder that is not the policy's",
                "the same encoder in both, learned elsewhere: a bound counts the parameters of actions only",
            )  # fmt: skip
        return gaussian_kl(mu, float(policy.sigma), self.mean, self.sigma)


def _same(one: ContextEncoder | None, other: ContextEncoder | None) -> bool:
    if one is other:
        return True
    if one is None or other is None or type(one) is not type(other) or one.spec() != other.spec():
        return False
    ours, theirs = one.arrays(), other.arrays()
    return ours.keys() == theirs.keys() and all(np.array_equal(ours[name], theirs[name]) for name in ours)


__all__ = ["PolicyPrior", "Randomised"]
