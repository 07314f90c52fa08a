"""The prior of a PAC-Bayes certificate: a Gaussian over parameters, and where it came from.

A bound holds for priors that do not depend on its rows. Nobody can check how a prior was made, but that it was learned from
the very rows of the log can be seen, and is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import Protocol, runtime_checkable

import numpy as np

from manyarms._base import validate
from manyarms._base.typing import AnyArray, Array
from manyarms.errors import InvalidInput
from manyarms.logs.data import CHUNK, LoggedData, LogSource
from manyarms.logs.inspection.sketches import mixed
from manyarms.policies.encoders import ContextEncoder
from manyarms.policies.randomised import gaussian_kl
from manyarms.policies.softmax import SoftmaxPolicy

STEP = np.uint64(0x9E3779B97F4A7C15)  # of splitmix64, whose finaliser is `mixed`


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


@dataclass(frozen=True, eq=False)
class PolicyPrior:
    """N(mean, sigma^2 I) over the parameters (K, l) of all actions; Gumbel noise, where a policy has it, is the same in both.

    learned_from: the log that the mean was learned from, whose rows must not be those of the certificate. encoder: what is
    made of contexts first, which must be the policy's own: it is not part of what the divergence measures.
    """

    mean: Array
    sigma: float = 1.0
    encoder: ContextEncoder | None = None
    learned_from: LogSource | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean", validate.as_array("mean", self.mean, (None, None)))
        object.__setattr__(self, "sigma", validate.positive("sigma", self.sigma))

    @classmethod
    def of(cls, policy: object, learned_from: LogSource | None = None, *, sigma: float | None = None) -> PolicyPrior:
        """The prior around a policy: its own mean and sigma, or N(beta / T, 1) for a softmax (thesis, Section 8.5)."""
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


# ---- rows in common


class OtherRows:
    """Refuses a log that has a row in common with another, chunk by chunk: by event ids where both have them, else by content.

    Rounds that merely look alike (the same context, action and reward, from few contexts) are told apart by event ids, or by
    timestamps, if both logs have them. 8 bytes a row of the other log are kept (an event id, where there are some).
    """

    def __init__(self, argument: str, learned_from: LogSource, first: LoggedData) -> None:
        self.argument = argument
        parts = learned_from.chunks(CHUNK)
        start = next(parts)
        self.fields = _fields(start, first)
        self._seen = np.sort(np.concatenate([_marks(part, self.fields) for part in chain([start], parts)]))
        self._rows = 0

    def check(self, part: LoggedData) -> None:
        """The next chunk of the log."""
        marks = _marks(part, self.fields)
        place = np.minimum(np.searchsorted(self._seen, marks), len(self._seen) - 1)
        common = self._seen[place] == marks
        if common.any():
            at = self._rows + int(np.argmax(common))
            how = ", ".join(self.fields).replace("event_ids", "event id")
            advice = (
                "" if self.fields == ("event_ids",) else " (rounds that only look alike are told apart by event ids)"
            )
            raise InvalidInput(
                self.argument, f"a log that shares rows with the certificate's: the same {how} as row {at}",
                f"rows that the certificate does not use, as log.split gives them{advice}",
            )  # fmt: skip
        self._rows += len(part)


def require_other_rows(argument: str, learned_from: LogSource, log: LogSource) -> None:
    """Refuse two logs with a row in common."""
    parts = log.chunks(CHUNK)
    first = next(parts)
    rows = OtherRows(argument, learned_from, first)
    for part in chain([first], parts):
        rows.check(part)


def _fields(*firsts: LoggedData) -> tuple[str, ...]:
    if all(one.event_ids is not None for one in firsts):
        return ("event_ids",)
    plain = ("contexts", "actions", "rewards")
    return (*plain, "timestamps") if all(one.timestamps is not None for one in firsts) else plain


def _marks(part: LoggedData, fields: tuple[str, ...]) -> AnyArray:
    """A number of 64 bits, or an event id, for every row."""
    if fields == ("event_ids",):
        assert part.event_ids is not None
        return part.event_ids
    columns = []
    for name in fields:
        array = getattr(part, name)
        if array.dtype.kind == "f":
            array = np.ascontiguousarray(array + 0.0, dtype=np.float64)  # -0 is 0
        columns.append(np.ascontiguousarray(array).view(np.uint64).reshape(len(part), -1))
    mark = np.zeros(len(part), dtype=np.uint64)
    for column in np.concatenate(columns, axis=1).T:
        mark = mixed((mark ^ mixed(column + STEP)) + STEP)
    return mark


__all__ = ["OtherRows", "PolicyPrior", "Randomised", "require_other_rows"]
