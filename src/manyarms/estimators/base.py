"""What an objective is: which numbers of a policy it asks for on a log's rows, and what it makes of them.

    objective.prepare(log) -> Rows          once: which actions, groups and reward model, and the log's part of every term
    engine: Rows, a batch, a policy -> Terms    log pi of the asked actions, masses of groups, expectations; differentiable
    objective.value(terms, batch) -> scalar     to be maximised

An objective never sees parameters, and an engine never sees a formula. Nothing here imports torch: tensors come in as
arguments and bring their own methods.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np

from manyarms._base.typing import AnyArray, Array, Bools, Ints
from manyarms.errors import InvalidInput
from manyarms.estimators.oracles import FiniteProblem
from manyarms.logs.data import LoggedData

Tensor = Any  # a torch tensor, or anything that has arithmetic and .exp(), .log(), .sum() and .sqrt()

IdsOf = Callable[[Ints], Ints]
"""Ids (b, m) of the rows `index` (b,), where a whole table (n, m) would be too large."""


class ModelValues(Protocol):
    """A reward model as engines see it: values(x, a) to be averaged under the policy."""

    @property
    def weights(self) -> Array | None:
        """(K, d) where values(x, a) = x^T weights_a; None where the model is of another kind."""

    def block(self, X: Array, ids: Ints, /) -> Array:
        """values(x_i, a_j) of contexts (b, d) and ids (k,), as (b, k)."""


@dataclass
class Terms:
    """What the policy says of the b active rows of a batch; every tensor can be differentiated."""

    log_probability: Tensor
    """(b, m): log pi(ids_ij|x_i), -inf at padding (-1); no columns where no ids were asked for."""

    scores: Tensor | None = None
    """(b, m): scores at ids in place of log-probabilities, for objectives that set `raw_scores`."""

    group_log_mass: Tensor | None = None
    """(b,): log of the sum of pi(a|x_i) over the actions with labels[a] == wanted[i]."""

    expectation: Tensor | None = None
    """(b,): the sum over a of pi(a|x_i) values(x_i, a)."""

    probabilities: Tensor | None = None
    """(b, K): pi(a|x_i) of all actions, for objectives that set `all_actions`."""

    draws: Tensor | None = None
    """(S, b, K): pi_theta(a|x_i) at S draws of theta, for objectives that set `draws` and policies that draw."""

    own_draws: Tensor | None = None
    """(S, b): the same at the first of the row's ids."""

    divergence: Tensor | None = None
    """KL of the distribution of parameters from its prior, for policies that have one."""


@dataclass
class Rows:
    """What an objective needs of the n rows of a log."""

    ids: Ints | IdsOf
    """(n, m), -1 pads; or a function of row numbers."""

    columns: dict[str, AnyArray] = field(default_factory=dict)
    """Numbers of every row, (n,) or (n, m): rewards, propensities, weights, ..."""

    active: Bools | None = None
    """(n,): the other rows have value 0 and gradient 0, whatever the policy; None where all rows count."""

    labels: Ints | None = None
    """(K,): the group of every action, for `group_log_mass`."""

    wanted: Ints | None = None
    """(n,): the group that each row asks for."""

    model: ModelValues | None = None
    """For `expectation`."""

    raw_scores: bool = False
    """Scores are wanted, and no log-probabilities: then nothing has to be normalised."""

    all_actions: bool = False
    """Every action counts, pi and pi0 of all of them are wanted: for catalogues of at most some ten thousand actions."""

    divergence: bool = False
    """The divergence from the prior is wanted: the policy must have one."""

    squared_distance: float = 0.0
    """So many times ||theta - start||^2 is taken off by the optimiser."""

    draws: bool = False
    """Single draws of the parameters are wanted beside their average."""

    rising: bool = False
    """More probability for a listed action never lowers the objective: engines may then do without signs."""

    negatives: int = 0
    """So many uniform random ids are appended as last columns of ids, fresh for every batch."""


@dataclass
class Batch:
    """The numbers of the b active rows of a batch, and how many rows the batch has in all."""

    columns: dict[str, Tensor]
    size: int
    logging: Tensor | None = None
    """(b, K): pi0(a|x_i) of all actions, for objectives that set `all_actions`."""


class Objective(ABC):
    """Something to be maximised over policies."""

    name: ClassVar[str]

    @property
    def settings(self) -> dict[str, float]:
        """The parameters by name."""
        return {}

    @property
    def label(self) -> str:
        """The name with its parameters."""
        inside = ", ".join(f"{name}={value:.3g}" for name, value in self.settings.items())
        return f"{self.name} ({inside})" if inside else self.name

    @property
    def distance(self) -> float:
        """The weight of distance / n ||theta - theta0||^2, which is taken off by whoever holds the parameters; 0: none."""
        return 0.0

    def __repr__(self) -> str:
        return f"<objective {self.label}>"

    @abstractmethod
    def prepare(self, log: LoggedData) -> Rows:
        """What the objective needs of a log, which is checked here."""

    @abstractmethod
    def value(self, terms: Terms, batch: Batch) -> Tensor:
        """The objective on a batch, a scalar."""

    def oracle(self, problem: FiniteProblem) -> Array:
        """The policy (nx, K) that maximises the objective's mean over all logs of a finite problem."""
        raise InvalidInput("objective", self.name, "an objective whose best policy has a closed form")


class RowObjective(Objective):
    """An objective that is a mean over rows of one term each; rows that are not active count with 0."""

    @abstractmethod
    def contributions(self, terms: Terms, batch: Batch) -> Tensor:
        """(b,): the terms of the active rows."""

    def value(self, terms: Terms, batch: Batch) -> Tensor:
        """The sum over the active rows, over the number of all rows."""
        return self.contributions(terms, batch).sum() / batch.size


def some_rows(weights: Array) -> Bools | None:
    """Which rows have a weight other than 0; None where all have."""
    there = weights != 0
    return None if there.all() else np.asarray(there)


__all__ = [
    "Batch",
    "FiniteProblem",
    "IdsOf",
    "ModelValues",
    "Objective",
    "RowObjective",
    "Rows",
    "Tensor",
    "Terms",
    "some_rows",
]
