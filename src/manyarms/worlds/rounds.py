"""What the worlds of logged rounds share: a true value with its error, and rounds of a logging policy with a support."""

from __future__ import annotations

from typing import Self

import numpy as np

from manyarms._base import validate
from manyarms._base.tables import Shown, Table
from manyarms._base.typing import Array, Ints
from manyarms.errors import InvalidInput
from manyarms.policies.base import Policy, first_above
from manyarms.policies.support import SupportedPolicy

DRAWS = 4096  # rounds whose supports are looked at together


class Value(Shown, float):
    """The true value of a policy: a number, with its standard error beside it.

    The sum over actions is exact at every context. The error is that of the mean over contexts, seen as a sample of all
    contexts there could be; the value on these contexts themselves has none.

    >>> Value(0.25, 0.01), Value(0.25, 0.01) + 1
    (Value(0.25 ± 0.01), 1.25)
    """

    standard_error: float

    def __new__(cls, value: float, standard_error: float = 0.0) -> Self:
        made = super().__new__(cls, value)
        made.standard_error = float(standard_error)
        return made

    def __reduce__(self) -> tuple[type[Self], tuple[float, float]]:  # copies and worker processes keep the error
        return type(self), (float(self), self.standard_error)

    def __repr__(self) -> str:
        return f"Value({float(self):.4g} ± {self.standard_error:.2g})"

    @property
    def value(self) -> float:
        """The number alone."""
        return float(self)

    @classmethod
    def of(cls, each: Array) -> Self:
        """The mean over contexts of what a policy earns at each of them, (n,)."""
        spread = float(each.std(ddof=1) / np.sqrt(len(each))) if len(each) > 1 else 0.0
        return cls(float(each.mean()), spread)

    def _table(self) -> Table:
        return Table(f"{float(self):.4g} ± {self.standard_error:.2g}")


def policy_over(policy: Policy, actions: int) -> Policy:
    """A policy over so many actions, or an error."""
    validate.instance("policy", policy, Policy, f"a policy over {actions:,} actions")
    if policy.action_count != actions:
        raise InvalidInput("policy", f"a policy over {policy.action_count} actions", f"one over {actions}")
    return policy


def support_of(policy: SupportedPolicy, X: Array) -> tuple[Ints, Array]:
    """Ids and probabilities of all contexts, their rows summing to 1."""
    ids, probabilities = policy.support(X)
    return ids, probabilities / probabilities.sum(axis=1, keepdims=True)


def draw_from(probabilities: Array, rows: Ints, rng: np.random.Generator) -> Ints:
    """One column for each of `rows` of a table of probabilities, (n,)."""
    out = np.empty(len(rows), dtype=np.int64)
    for start in range(0, len(rows), DRAWS):
        table = probabilities[rows[start : start + DRAWS]]
        upto = table.cumsum(axis=1)
        out[start : start + DRAWS] = first_above(upto, rng.random(len(table)) * upto[:, -1], table)
    return out


__all__ = ["Value", "draw_from", "policy_over", "support_of"]
