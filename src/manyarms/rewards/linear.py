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
from manyarms.beliefs import Belief, Likelihood, Linear
from manyarms.beliefs.belief import Rounds
from manyarms.beliefs.sums import Sums, batches
from manyarms.errors import InvalidInput, UnknownAction
from manyarms.logs.data import CHUNK, LoggedData, LogSource
from manyarms.logs.row_sketch import RowSketch
from manyarms.logs.schema import NOTHING, Schema
from manyarms.policies.base import shaped
from manyarms.policies.softmax import TopSoftmaxPolicy
from manyarms.rewards.base import CatalogueModel

MATRICES_AT_A_TIME = 1 << 21  # numbers in full d x d matrices that are alive at once
IN_MEMORY = 1 << 24  # numbers in the contexts of a log in memory that are learned at once
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

    def fit(self, source: LogSource) -> LinearModel:
        """The model of a log, or of anything that gives one in chunks."""
        source, sketch = log_source(source), RowSketch()
        validate.room("source", source.action_count, 16 * source.dim, f"actions with {source.dim:,} numbers each")
        sums = _sums_of(source, sketch)
        parameters = np.zeros((source.action_count, source.dim))
        parameters[sums.ids] = _estimates(sums, np.arange(len(sums)), self.lam)
        model = LinearModel(parameters)
        model.training_rows = sketch
        model.schema = schema_for(model.action_count, source)
        return model


def offline_estimates(source: LogSource, lam: float = 1.0, *, least: int | None = None) -> Array:
    """(n, d): the ridge regressions of all actions with at least `least` rows in a log, what `manyarms.pretrain` learns from.

    source: a log in memory, or one that streams: it is read once, and what is held follows the actions in it. lam: the ridge.
    least: by default d, since fewer rows than a context has numbers do not determine a parameter. In order of the actions' rows.
    """
    lam, source = validate.positive("lam", lam), log_source(source)
    least = source.dim if least is None else validate.count("least", least)
    sums = _sums_of(source)
    enough = np.flatnonzero(sums.counts >= least)
    if len(enough) < 2:
        came = f"{len(enough)} of {len(sums):,} actions with at least {least:,} rows"
        raise InvalidInput("source", came, "at least 2 such actions (`least` may be smaller)")
    return _estimates(sums, enough[np.argsort(sums.ids[enough])], lam)


def _sums_of(source: LogSource, sketch: RowSketch | None = None) -> Sums:
    sums = Sums(source.dim, source.action_count)
    for rows in batches(rows_of(source, sketch=sketch), source.action_count):
        sums.add(*rows)
    return sums


def _estimates(sums: Sums, places: Ints, lam: float) -> Array:
    """(n, d): the ridge regressions of the actions at these places."""
    out, step = np.empty((len(places), sums.packing.dim)), max(1, MATRICES_AT_A_TIME // sums.packing.dim**2)
    for start in range(0, len(places), step):
        some = places[start : start + step]
        out[start : start + step] = _ridge(sums.packing.unpack(sums.G[some]), sums.B[some], lam)
    return out


def schema_for(actions: int, source: LogSource) -> Schema:
    """The encoder and the ids of a log, for what was learned from it; ids only where they are those of all actions."""
    found = Schema.of(source)
    whole = found.catalogue is not None and len(found.catalogue) == actions
    return found if whole else Schema(found.encoder)


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


def log_source(source: object, name: str = "source") -> LogSource:
    """A log, or anything that gives one in chunks."""
    return validate.instance(name, source, LogSource, "a log, or a source that gives one in chunks")


def rows_of(source: LogSource, belief: Belief | None = None, sketch: RowSketch | None = None) -> Iterator[Rounds]:
    """The rows of a log in chunks (contexts, actions, rewards), checked against what is to learn them; noted in a sketch."""
    log_source(source)
    if belief is not None:
        if source.dim != belief.dim:
            raise InvalidInput(
                "source", f"contexts of length {source.dim}", f"length {belief.dim}, as the prior has it"
            )
        if source.action_count > belief.catalogue.size:
            raise InvalidInput(
                "source", f"{source.action_count} actions", f"at most {belief.catalogue.size}, the prior's number"
            )
    stored = 0
    # of a log in memory a part is no copy, and the larger it is, the more rows of an action come together
    for chunk in source.chunks(max(CHUNK, IN_MEMORY // source.dim) if isinstance(source, LoggedData) else CHUNK):
        if belief is not None:
            belief.likelihood.check(chunk.rewards)
            if belief.likelihood.noise_variance is None and not isinstance(source, LoggedData):
                # its rows are held, and then once more by action
                stored += len(chunk)
                validate.room(
                    "source", stored, 16 * (source.dim + 1), "rows, which a likelihood that is not linear keeps"
                )
            ids = validate.action_ids("actions", chunk.actions, belief.catalogue.size)
            belief.catalogue.check_rows("actions", ids, unique=False)
        if sketch is not None:
            for part in chunk.chunks(CHUNK) if len(chunk) > CHUNK else [chunk]:
                sketch.add(part)
        yield chunk.contexts, chunk.actions, chunk.rewards
    if sketch is not None:
        sketch.end_of_log()


__all__ = [
    "MATRICES_AT_A_TIME", "Clipped", "DirectFrequentist", "LinearModel", "log_source", "offline_estimates", "rows_of",
    "schema_for",
]  # fmt: skip
