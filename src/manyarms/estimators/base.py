"""What an objective is, and what an estimator is: an objective that estimates a policy's value.

    request = objective.prepare(log)             which of the policy's probabilities it needs, and the log's part of every term
    answers                                      what the policy says: log pi of the asked actions, masses of groups, expectations
    objective.value(answers, batch)              a scalar, which `learn` climbs; for most the mean of one term per row:
    objective.terms(answers, columns)            what `evaluate` averages

An objective never sees a policy's parameters, and whoever asks the policy never sees a formula: `learn` answers requests with
torch tensors that can be differentiated, `evaluate` with NumPy arrays from any policy. Formulas are written once for both.
Nothing here imports torch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Protocol

import numpy as np

from manyarms._base.arrays import exp, log
from manyarms._base.registry import Registry
from manyarms._base.text import labelled
from manyarms._base.typing import AnyArray, Array, Bools, Ints
from manyarms.errors import InvalidInput
from manyarms.estimators.logging_policy import CellFunction
from manyarms.estimators.oracles import FiniteProblem
from manyarms.logs.data import LoggedData

Tensor = Any
"""A NumPy array or a torch tensor."""

IdsOf = Callable[[Ints], Ints]
"""Ids (b, m) of the rows `index` (b,), where a table for all rows (n, m) would be too large."""

ColumnOf = Callable[[Ints], Array]
"""Numbers (b,) of the rows `index` (b,), where they cost much and may not be needed at all rows."""

Draw = Callable[[Ints, int, np.random.Generator], Ints]
"""Random ids (b, m) of the rows `index` (b,), m of each."""

LogColumns = Mapping[str, AnyArray | ColumnOf]
"""Numbers of every row by name: rewards, propensities, weights, ..."""

Range = tuple[float, float]


class ModelValues(Protocol):
    """A reward model as it is averaged under a policy; its `weights` (K, d), if it has some, mean that it is x^T weights_a."""

    def block(self, X: Array, ids: Ints, /) -> Array:
        """values(x_i, a_j) of contexts (b, d) and ids (k,), as (b, k)."""


@dataclass
class Answers:
    """What a policy says of the b rows that it was asked about.

    Learning gives log pi, whose derivatives are safe where pi is tiny; evaluation gives pi itself. `pi`, `log_pi` and `mass`
    are either, whichever was given.
    """

    log_probability: Tensor = None
    """(b, m): log pi(ids_ij|x_i), -inf at padding (-1)."""

    scores: Tensor | None = None
    """(b, m): scores at ids in place of log-probabilities, for requests with `raw_scores`."""

    group_log_mass: Tensor = None
    """(b,): log of the sum of pi(a|x_i) over the actions with labels[a] == wanted[i]."""

    expectation: Tensor | None = None
    """(b,): the sum over a of pi(a|x_i) values(x_i, a)."""

    probabilities: Tensor | None = None
    """(b, K): pi(a|x_i) of all actions, for requests with `all_actions`."""

    draws: Tensor | None = None
    """(S, b, K): pi_theta(a|x_i) at S draws of theta, for requests with `draws` and policies that draw."""

    own_draws: Tensor | None = None
    """(S, b): the same at the first of the row's ids."""

    divergence: Tensor | None = None
    """KL of the distribution of parameters from its prior, for policies that have one."""

    probability: Tensor = None
    """(b, m): pi(ids_ij|x_i), 0 at padding, in place of log_probability."""

    group_mass: Tensor = None
    """(b,): in place of group_log_mass."""

    sums: dict[Hashable, Array] = field(default_factory=dict)
    """(b,) each: the sums over actions that the request asked for."""

    @property
    def pi(self) -> Tensor:
        """(b, m): pi(ids_ij|x_i)."""
        return exp(self.log_probability) if self.probability is None else self.probability

    @property
    def log_pi(self) -> Tensor:
        """(b, m): log pi(ids_ij|x_i)."""
        return log(self.probability) if self.log_probability is None else self.log_probability

    @property
    def mass(self) -> Tensor:
        """(b,): pi of the wanted group."""
        return exp(self.group_log_mass) if self.group_mass is None else self.group_mass


@dataclass(frozen=True)
class LinearTerms:
    """Terms that are a weight times pi, or times log pi, of the logged action, and whose sum over a batch's size is the value."""

    weights: Array
    """(n,)."""

    of_log: bool
    """Whether it is log pi."""


@dataclass
class Request:
    """What an objective needs of the n rows of a log: of the policy, and of the log itself."""

    columns: LogColumns = field(default_factory=dict)
    """(n,) or (n, m) each."""

    logged: bool = True
    """Whether the logged action is asked for: it is then the first column of ids."""

    ids: Ints | IdsOf | None = None
    """(n, m): further actions, -1 pads; or a function of row numbers."""

    active: Bools | None = None
    """(n,): the other rows have value 0 and gradient 0, whatever the policy; None where all rows count."""

    labels: Tensor = None
    """(K,): the group of every action, for the mass of a group."""

    wanted: Ints | None = None
    """(n,): the group that each row asks for."""

    model: ModelValues | None = None
    """For `expectation`."""

    sums: Mapping[Hashable, CellFunction] = field(default_factory=dict)
    """Sums over all actions of functions of pi and pi0, which evaluation alone can answer."""

    raw_scores: bool = False
    """Scores are wanted, and no log-probabilities: then nothing has to be normalised."""

    all_actions: bool = False
    """Every action counts, pi and pi0 of all of them are wanted: for catalogues of at most some ten thousand actions."""

    divergence: bool = False
    """The divergence from the prior is wanted: the policy must have one."""

    squared_distance: float = 0.0
    """This many times ||theta - start||^2 is taken off by the optimiser."""

    draws: bool = False
    """Single draws of the parameters are wanted beside their average."""

    rising: bool = False
    """More probability for a listed action never lowers the objective: engines may then do without signs."""

    negatives: int = 0
    """The number of random ids that are appended as last columns of ids, fresh for every batch."""

    draw: Draw | None = None
    """Who draws those; uniformly from all actions unless given."""

    def computed(self, rows: int) -> Request:
        """The same with every column as an array (n,): functions are asked at the active rows, and are 1 elsewhere."""
        index = np.arange(rows) if self.active is None else np.flatnonzero(self.active)
        found: dict[str, AnyArray] = {}
        for name, column in self.columns.items():
            if callable(column):
                found[name] = np.ones(rows)
                found[name][index] = column(index)
            else:
                found[name] = column
        return replace(self, columns=found)

    def rows(self, index: Ints) -> Request:
        """The same of some rows, all of them active."""
        columns = {name: column(index) if callable(column) else column[index] for name, column in self.columns.items()}
        ids = self.ids(index) if callable(self.ids) else None if self.ids is None else self.ids[index]
        wanted = None if self.wanted is None else self.wanted[index]
        draw = None if self.draw is None else partial(_draw_of, self.draw, index)
        return replace(self, columns=columns, ids=ids, wanted=wanted, draw=draw, active=None)

    def drawn(self, index: Ints, actions: int, rng: np.random.Generator) -> Ints:
        """(b, negatives): random ids of the rows `index`."""
        if self.draw is None:
            return rng.integers(0, actions, (len(index), self.negatives))
        return self.draw(index, self.negatives, rng)


def _draw_of(draw: Draw, rows: Ints, index: Ints, count: int, rng: np.random.Generator) -> Ints:
    return draw(rows[index], count, rng)


@dataclass
class Batch:
    """The b active rows of a batch: their numbers, for the objective; and what a policy is asked about them, for an engine."""

    columns: Mapping[str, Tensor]
    size: int
    """How many rows the batch has, active or not."""

    logging: Tensor | None = None
    """(b, K): pi0(a|x_i) of all actions, for requests with `all_actions`; or (b, k) of those in `logging_ids`."""

    logging_ids: Tensor | None = None
    """(b, k): the only actions that the logging policy may have played, where the log lists them."""

    x: Tensor = None  # (b, d) contexts
    h: Tensor = None  # (b, l) features, over the temperature
    ids: Tensor = None  # (b, m), -1 pads
    wanted: Tensor | None = None  # (b,) groups
    lists: Tensor | None = None  # (b, k) actions on offer, -1 pads
    offsets: Tensor | None = None  # (b, k) added to the scores of listed actions: minus log(S q) for sampled ones
    seed: int = 0  # for engines that draw


class Objective(ABC):
    """Something to be maximised over policies."""

    name: ClassVar[str]
    """What it was registered as, unless it says so itself."""

    summary: ClassVar[str] = ""
    """What it is, in one line, for lists."""

    parameter: ClassVar[str | None] = None
    """The parameter that a number after a colon stands for, as in "clpi:0.01"."""

    learnable: ClassVar[bool] = True
    """Whether `learn` can climb it."""

    row_by_row: bool = False
    """Whether `prepare` makes of a row what it would make of it among any other rows, but for a column "rounds", the number of
    rows of the log: `learn` then takes logs that are larger than memory, part by part."""

    @property
    def settings(self) -> dict[str, float]:
        """The parameters by name."""
        return {}

    @property
    def label(self) -> str:
        """The name with its parameters."""
        return labelled(self.name, self.settings)

    @property
    def distance(self) -> float:
        """The weight of distance / n ||theta - theta0||^2, which is taken off by whoever holds the parameters; 0: none."""
        return 0.0

    def __repr__(self) -> str:
        return f"<objective {self.label}>"

    def resolved(self, rows: int) -> Objective:
        """The same with the parameters that were left open chosen for a log of n rows."""
        return self

    @abstractmethod
    def prepare(self, log: LoggedData) -> Request:
        """What the objective needs of a log, which is checked here."""

    def prepare_part(self, part: LoggedData, rounds: int) -> Request:
        """What `prepare` makes of these rows in a log of so many, `rounds`; refused where that is not known to be so."""
        if not self.row_by_row:
            raise InvalidInput(
                "objective", f"{self.label}, which may look at all rows of a log together",
                "one that looks at them one by one (row_by_row), or the log in memory (read_log), for a log read in parts",
            )  # fmt: skip
        request = self.prepare(part)
        if "rounds" not in request.columns:
            return request
        return replace(request, columns={**request.columns, "rounds": np.full(len(part), float(rounds))})

    @abstractmethod
    def value(self, answers: Answers, batch: Batch) -> Tensor:
        """The objective on a batch, a scalar."""

    def linear_terms(self, log: LoggedData) -> LinearTerms | None:
        """The terms of a log's rows, where the value is linear in pi or log pi: learning then needs no derivatives of `value`."""
        return None

    def oracle(self, problem: FiniteProblem) -> Array:
        """The policy (nx, K) that maximises the objective's mean over all logs of a finite problem."""
        raise InvalidInput("objective", self.name, "an objective whose best policy has a closed form")


class RowObjective(Objective):
    """An objective that is a mean over rows of one term each; rows that are not active count with 0."""

    self_normalised: bool = False
    """Whether the sum of terms is over the sum of weights in place of the number of rows."""

    @abstractmethod
    def terms(self, answers: Answers, columns: Mapping[str, Tensor]) -> Tensor:
        """(b,): the terms of the rows."""

    def value(self, answers: Answers, batch: Batch) -> Tensor:
        """The sum over the active rows, over the number of all rows."""
        return self.terms(answers, batch.columns).sum() / batch.size

    def keeps(self, terms: object) -> bool:
        """Whether terms are those of this function, and the value is their sum: no subclass has written others."""
        return type(self).terms is terms and type(self).value is RowObjective.value


class Estimator(RowObjective):
    """An objective that estimates a policy's value: `evaluate` averages its terms, and says what is known of them.

    What is not known here, is not relied on: an estimate without a span has no Bernstein interval, one without bias terms an
    interval for its own mean only.
    """

    by_default: ClassVar[bool] = False
    """Whether `evaluate` shows it where no estimators are named, and what it needs is there."""

    weighted: ClassVar[bool] = True
    """Whether it weighs rows by pi / pi0 in some form."""

    unbiased: bool = False
    """Whether the mean of the terms is the policy's value (under the conditions in the note)."""

    consistent: bool = False
    """Whether a biased estimate still tends to the policy's value: snips, where all actions are in support."""

    never_above: bool = False
    """Whether the mean is at most the policy's value where rewards are at least 0, also with actions left out."""

    unit_rewards: bool = False
    """Whether rewards must lie in [0, 1]; `evaluate` moves others there and the values back, where their range is known."""

    log_smoothing: float = 0.0
    """As of a correction: the parameter of a confidence bound that needs no bound on the weights; 0 where there is none."""

    note: str = ""
    """What to know of the estimate, in one line."""

    def __repr__(self) -> str:
        return f"<estimator {self.label}>"

    def resolved(self, rows: int) -> Estimator:
        return self

    def weights(self, answers: Answers, columns: Mapping[str, Tensor]) -> Tensor | None:
        """(b,): the importance weights that the terms used; None where there are none."""
        return None

    def baseline(self, answers: Answers, columns: Mapping[str, Tensor]) -> Tensor | None:
        """(b,): what is added to a self-normalised ratio, as a plain mean; None where there is nothing."""
        return None

    def span(self, rewards: Range | None, floor: float) -> Range | None:
        """Numbers between which all terms lie, if such are known, for rewards in a range and propensities of at least `floor`."""
        return None

    # ---- bias: what the mean of the terms may be off by, from pi and pi0 of all actions

    def bias_sums(self) -> dict[Hashable, CellFunction]:
        """The sums over actions that `bracket` needs, by name."""
        return {}

    def bracket(self, values: Array, answers: Answers, rewards: Range) -> tuple[Array, Array] | None:
        """(n,) each: terms whose mean is at most the policy's value, and terms whose mean is at least that."""
        return None

    def span_with_bias(self, rewards: Range, floor: float) -> Range | None:
        """Numbers between which the terms of `bracket` lie, if such are known."""
        return None


OBJECTIVES: Registry[type[Objective]] = Registry(
    "objective", package="manyarms.estimators", group="manyarms.objectives", named=True
)
"""Objectives and estimators by name; `manyarms.estimators.named` also knows the IPS family by the names of its corrections."""


def some_rows(weights: Array) -> Bools | None:
    """Which rows have a weight other than 0; None where all have."""
    there = weights != 0
    return None if there.all() else np.asarray(there)


def weighted_span(bound: float | None, factor: Range | None, baseline: Range | None) -> Range | None:
    """The range of w * factor + baseline for weights in [0, bound]; None where one of them is unknown."""
    if bound is None or factor is None or baseline is None:
        return None
    return baseline[0] + min(0.0, bound * factor[0]), baseline[1] + max(0.0, bound * factor[1])


__all__ = [
    "OBJECTIVES", "Answers", "Batch", "ColumnOf", "Draw", "Estimator", "FiniteProblem", "IdsOf", "LogColumns", "ModelValues",
    "Objective", "Range", "Request", "RowObjective", "Tensor", "some_rows", "weighted_span",
]  # fmt: skip
