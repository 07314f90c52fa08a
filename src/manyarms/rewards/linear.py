"""Reward models that are a table of parameters: what all of them can do, and DM (Freq), the plainest.

r_hat(x, a) = g(x^T theta_a)        g the likelihood's mean; the identity for linear rewards
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import cast

import numpy as np
import numpy.typing as npt

from manyarms._base import validate
from manyarms._base.best_action import BestAction
from manyarms._base.tables import Shown, Table, text_of
from manyarms._base.text import counted
from manyarms._base.top_k import inner_product_top_k
from manyarms._base.typing import Array, Ints
from manyarms.beliefs import Likelihood, Linear
from manyarms.beliefs.sums import Sums, batches
from manyarms.engine import IN_THIS_PROCESS, On, elsewhere
from manyarms.errors import InvalidInput, UnknownAction
from manyarms.logs.data import LogSource
from manyarms.logs.row_sketch import RowSketch
from manyarms.logs.schema import NOTHING, Schema
from manyarms.policies.base import shaped
from manyarms.policies.softmax import TopSoftmaxPolicy
from manyarms.rewards.base import CatalogueModel
from manyarms.rewards.divided import partial_sums
from manyarms.rewards.reading import log_source, rows_of, schema_for

MATRICES_AT_A_TIME = 1 << 21  # numbers in full d x d matrices that are alive at once
# sums over a million rows are rounded by about this: a smaller eigenvalue of G, beside the largest, may be one of 0
UNSEEN = 1e-13
# beside the trace of G: with a larger ridge solving loses at most half of the digits
SMALLEST_RIDGE = 1e-8


class LinearModel(Shown):
    """r_hat(x, a) = g(x^T theta_a) for a table of parameters (K, d), g the likelihood's mean (identity for linear rewards).

    Actions are rows. `schema` is that of the log it was learned from, and goes to the policies and agents that it makes.
    """

    training_rows: RowSketch | None = None
    """A sketch of the rows that it was learned from, where that is known: its policies carry it."""

    def __init__(self, parameters: npt.ArrayLike, likelihood: Likelihood = Linear()) -> None:
        # a copy; not a read-only one, which PyTorch would complain of where the model goes into an objective
        self._parameters = validate.as_array("parameters", parameters, (None, None)).copy()
        self.likelihood = validate.instance("likelihood", likelihood, Likelihood, "a likelihood, such as Linear()")
        self.schema: Schema = NOTHING

    def __repr__(self) -> str:
        law = type(self.likelihood).__name__
        return f"<{type(self).__name__}: {self.action_count:,} actions, d={self.dim}, {law}>"

    @property
    def parameters(self) -> Array:
        """(K, d), one row an action."""
        return self._parameters

    @property
    def action_count(self) -> int:
        """K."""
        return len(self._parameters)

    @property
    def dim(self) -> int:
        """d."""
        return int(self._parameters.shape[1])

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Numbers between which every prediction lies; None where there are none."""
        return (0.0, 1.0) if self.likelihood.binary else None

    @property
    def weights(self) -> Array | None:
        """(K, d) with r_hat(x, a) = x^T weights_a where predictions are linear; None elsewhere."""
        return self.parameters if self.likelihood.exact else None

    def predict(self, X: npt.ArrayLike, actions: npt.ArrayLike) -> Array:
        """r_hat(x_i, a_i), (n,)."""
        rows, ids = self._contexts(X), self._ids(actions)
        if ids.shape != (len(rows),):
            raise InvalidInput("actions", f"shape {ids.shape}", f"one action for each of the {len(rows)} contexts")
        return self.likelihood.mean(np.einsum("nd,nd->n", rows, self.parameters[ids]))

    def block(self, X: Array, ids: Ints) -> Array:
        """r_hat(x_i, a_j) of contexts (b, d) and actions (k,), as (b, k)."""
        return self.likelihood.mean(X @ self.parameters[ids].T)

    def decide(self, X: npt.ArrayLike, k: int | None = None) -> int | Ints:
        """The action with the largest r_hat, or the k best: int or (k,) for one context, (n,) or (n, k) for many."""
        given = validate.as_floats("X", X)
        rows = self._contexts(given[None] if given.ndim == 1 else given)
        if k is None:
            ids = self._best(rows)[0][:, None]  # every mean grows with the score, so the scores decide
        else:
            ids, _ = inner_product_top_k(rows, self.parameters, self._offered(k))
        return shaped(ids, k, given)

    def greedy_policy(self) -> TopSoftmaxPolicy:
        """The greedy decision as a policy, 1 for the best action and 0 for the others: for estimators, and to be saved."""
        policy = TopSoftmaxPolicy(self.parameters, 1)
        policy.schema = self.schema
        policy.training_rows = self.training_rows
        return policy

    @cached_property
    def _best(self) -> BestAction:
        return BestAction(self.parameters)

    def _offered(self, k: int) -> int:
        number = validate.count("k", k)
        if number > self.action_count:
            raise InvalidInput("k", number, f"at most {self.action_count}, the number of actions")
        return number

    def _contexts(self, X: npt.ArrayLike) -> Array:
        return validate.rows("X", X, self.dim, "contexts")

    def _ids(self, actions: npt.ArrayLike) -> Ints:
        try:
            ids = validate.integers("actions", cast(Ints, [actions]) if np.isscalar(actions) else actions)
        except InvalidInput as error:
            raise UnknownAction("actions", validate.describe(actions), "integers, ids of actions") from error
        return validate.action_ids("actions", ids, self.action_count)

    def _table(self) -> Table:
        rows = [("likelihood", repr(self.likelihood)), ("parameters", text_of(self._parameters))]
        title = f"{type(self).__name__}: {counted(self.action_count, 'action')}, contexts of length {self.dim:,}"
        return Table(title, rows=rows)


class Clipped:
    """A reward model whose predictions are cut off at the range that rewards can have.

    A linear model may predict clicks of -0.1: cut off, it is nearer to the truth, and its known bounds give the direct method
    and DR intervals that hold for any number of rows (empirical Bernstein). `decide` still orders actions by the model itself.
    """

    def __init__(self, model: CatalogueModel, low: float = 0.0, high: float = 1.0) -> None:
        validate.instance("model", model, CatalogueModel, "a reward model that knows its catalogue")
        low, high = validate.number("low", low), validate.number("high", high)
        if not low < high:
            raise InvalidInput("low, high", f"{low:g} and {high:g}", "two finite numbers, the lower first")
        self.model = model
        self.bounds = (low, high)

    def __repr__(self) -> str:
        return f"<Clipped to [{self.bounds[0]:g}, {self.bounds[1]:g}]: {self.model!r}>"

    @property
    def action_count(self) -> int:
        """K."""
        return self.model.action_count

    @property
    def dim(self) -> int:
        """d."""
        return self.model.dim

    def predict(self, X: npt.ArrayLike, actions: npt.ArrayLike) -> Array:
        """r_hat(x_i, a_i), (n,)."""
        return np.clip(self.model.predict(X, actions), *self.bounds)

    def block(self, X: Array, ids: Ints) -> Array:
        """r_hat(x_i, a_j) of contexts (b, d) and actions (k,), as (b, k)."""
        return np.clip(self.model.block(X, ids), *self.bounds)

    def decide(self, X: npt.ArrayLike, k: int | None = None) -> int | Ints:
        """The best action of every context by the model, or the best k."""
        return self.model.decide(X, k)


class DirectFrequentist:
    """DM (Freq): for every action a ridge regression of its own, (G_a + lam I)^-1 B_a (thesis, Appendix C.4.1).

    G_a = sum x x^T and B_a = sum r x over the rows of a; an action without rows has the parameter 0. Linear rewards.
    """

    def __init__(self, lam: float = 1.0) -> None:
        self.lam = validate.positive("lam", lam)

    def fit(self, source: LogSource, *, on: On = IN_THIS_PROCESS) -> LinearModel:
        """The model of a log, or of anything that gives one in chunks. on: see `sdm`."""
        source = log_source(source)
        validate.room("source", source.action_count, 16 * source.dim, f"actions with {source.dim:,} numbers each")
        parameters, model_rows = np.zeros((source.action_count, source.dim)), RowSketch()
        for sums, sketch in _sums_of(source, on):
            parameters[sums.ids] = _estimates(sums, np.arange(len(sums)), self.lam)
            model_rows = sketch or model_rows
        model = LinearModel(parameters)
        model.training_rows = model_rows
        model.schema = schema_for(model.action_count, source)
        return model


def offline_estimates(
    source: LogSource, lam: float = 1.0, *, least: int | None = None, on: On = IN_THIS_PROCESS
) -> Array:
    """(n, d): the ridge regressions of all actions with at least `least` rows in a log, what `manyarms.pretrain` learns from.

    source: a log in memory, or one that streams: it is read once, and what is held follows the actions in it. lam: the ridge.
    least: by default d, since fewer rows than a context has numbers do not determine a parameter. In order of the actions' rows.
    on: see `sdm`.
    """
    lam, source = validate.positive("lam", lam), log_source(source)
    least = source.dim if least is None else validate.count("least", least)
    found, seen = [], 0
    for sums, _ in _sums_of(source, on):
        enough = np.flatnonzero(sums.counts >= least)
        found.append(_estimates(sums, enough[np.argsort(sums.ids[enough])], lam))
        seen += len(sums)
    estimates = np.concatenate(found)
    if len(estimates) < 2:
        came = f"{len(estimates)} of {seen:,} actions with at least {least:,} rows"
        raise InvalidInput("source", came, "at least 2 such actions (`least` may be smaller)")
    return estimates


def _sums_of(source: LogSource, on: On) -> Iterator[tuple[Sums, RowSketch | None]]:
    """The sums of a log, a part of the actions after the other, in their order; with the first comes the sketch of its rows."""
    if elsewhere(on):
        for part, noted in partial_sums(source, on):
            yield part.tables()[0], noted
        return
    sums, sketch = Sums(source.dim, source.action_count), RowSketch()
    for rows in batches(rows_of(source, sketch=sketch), source.action_count):
        sums.add(*rows)
    yield sums, sketch


def _estimates(sums: Sums, places: Ints, lam: float) -> Array:
    """(n, d): the ridge regressions of the actions at these places."""
    out, step = np.empty((len(places), sums.packing.dim)), max(1, MATRICES_AT_A_TIME // sums.packing.dim**2)
    for start in range(0, len(places), step):
        some = places[start : start + step]
        out[start : start + step] = _ridge(sums.packing.unpack(sums.G[some]), sums.B[some], lam)
    return out


def _ridge(G: Array, B: Array, lam: float) -> Array:
    """(G_a + lam I)^-1 B_a, row by row.

    B lies in the range of G. So in a direction that no row of the action shows the solution is 0 whatever lam is, and where lam
    is lost in the rounding of G that has to be said: there the two would be divided by each other.
    """
    dim, out = B.shape[1], np.empty(B.shape)
    lost = lam < SMALLEST_RIDGE * np.trace(G, axis1=1, axis2=2)
    out[~lost] = np.linalg.solve(G[~lost] + lam * np.eye(dim), B[~lost, :, None])[:, :, 0]
    if lost.any():
        values, vectors = np.linalg.eigh(G[lost])
        seen = values > UNSEEN * values[:, -1:]
        parts = np.einsum("aij,ai->aj", vectors, B[lost])
        parts = np.divide(parts, values + lam, where=seen, out=np.zeros(parts.shape))
        out[lost] = np.einsum("aij,aj->ai", vectors, parts)
    return out


__all__ = ["MATRICES_AT_A_TIME", "Clipped", "DirectFrequentist", "LinearModel", "offline_estimates"]
