"""Reward models from logs: DM (Freq), DM (Bayes) and sDM, and the policies that they lead to.

    r_hat(x, a) = E[r(x, a; theta) | log] = x^T mu_hat_a            (thesis, Sections 6.2.2 and 6.3.2)

DM (Freq) is a ridge regression for every action (linear.py). DM (Bayes) and sDM are a *belief* folded over a log: the
leaves and roots that an online agent learns with, and nothing written twice. They differ in the prior: independent actions
for DM (Bayes), a shared latent for sDM (mixed effects, any W_a, a structure learned by a mixture). Decisions are greedy, or
pessimistic.

    log or source  --sdm(prior)-->  BeliefModel  --.decide(X)-->  actions
                                                 --.agent(seed=0)-->  an online agent that goes on from there
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from typing import cast

import numpy as np
import numpy.typing as npt

from manyarms._base import linalg, validate
from manyarms._base.best_action import BestAction
from manyarms._base.top_k import top_k_by_rows
from manyarms._base.typing import Array, Ints
from manyarms.agents.agent import Agent, Seed
from manyarms.agents.decisions import Decision, Greedy, Pessimistic, Thompson
from manyarms.beliefs import Belief, Likelihood, Linear, belief_of, independent_belief_of
from manyarms.engine import IN_THIS_PROCESS, On, elsewhere
from manyarms.errors import InvalidInput
from manyarms.logs.data import LogSource
from manyarms.logs.row_sketch import RowSketch
from manyarms.logs.schema import Schema
from manyarms.policies.base import action_blocks, shaped
from manyarms.priors import MixedEffectPrior, ParameterPrior, mixture
from manyarms.rewards.divided import fold_divided
from manyarms.rewards.linear import MATRICES_AT_A_TIME, DirectFrequentist, LinearModel
from manyarms.rewards.reading import log_source, rows_of, schema_for

PAIRS_AT_A_TIME = 1 << 18  # numbers x_i x_j of rows that are in work at once

# ---- beliefs ----------------------------------------------------------------------------------------------------------


class BeliefModel(LinearModel):
    """A belief as a reward model: r_hat(x, a) = g(x^T mu_hat_a), mu_hat_a the marginal posterior mean of theta_a.

    For linear rewards this is E[r | log]. For the others it is the reward at the posterior mean, which orders actions as the
    greedy decision does. The tables of posteriors are made at the first use and again after the belief has learned more.
    """

    def __init__(self, belief: Belief) -> None:
        validate.instance("belief", belief, Belief, "a belief, such as belief_of(prior, likelihood)")
        if not belief.per_action:
            raise InvalidInput("belief", f"a {type(belief).__name__}", "one with a parameter for every action")
        self.belief = belief
        self.schema = Schema(catalogue=belief.catalogue.names)
        self.likelihood = belief.likelihood
        self._made_at = -1
        self._means: Array = np.empty((0, belief.dim))
        self._spreads: Array | None = None
        self._search: BestAction | None = None

    @property
    def action_count(self) -> int:
        """K."""
        return self.belief.catalogue.size

    @property
    def dim(self) -> int:
        """d."""
        return self.belief.dim

    def fold(self, source: LogSource, *, on: On = IN_THIS_PROCESS) -> BeliefModel:
        """Learn one more log; the same belief as if it had come with the first. on: see `sdm`."""
        known, new = self.schema, schema_for(self.action_count, log_source(source))
        if known.catalogue is not None and new.catalogue is not None and known.catalogue != new.catalogue:
            raise InvalidInput("source", "a log with other ids of actions", "the ids of what was learned before")
        if elsewhere(on):
            sketch = fold_divided(self.belief, source, on)
        else:
            sketch = RowSketch()
            self.belief.fold(rows_of(source, self.belief, sketch))
        if self.belief.training_rows is not None:
            sketch.include(self.belief.training_rows)
        self.belief.training_rows = sketch
        self.schema = known.beside(new)
        return self

    @property
    def training_rows(self) -> RowSketch | None:  # type: ignore[override]
        """A sketch of the rows of all logs that it learned; agents and policies that are made from it carry it."""
        return self.belief.training_rows

    # ---- posteriors ---------------------------------------------------------------------------------------------------

    def posterior(self, ids: npt.ArrayLike | None = None) -> tuple[Array, Array]:
        """Marginal posteriors of actions (None: of all): means mu_hat (k, d), covariances Sigma_hat (k, d, d).

        mu_hat_a = S_a (Sigma_a^-1 W_a m + B_a),  Sigma_hat_a = S_a + S_a Sigma_a^-1 W_a Cov(m) W_a^T Sigma_a^-1 S_a
        (thesis, Section 6.3.2), with m and Cov(m) those of the latent posterior.
        """
        which = np.arange(self.action_count) if ids is None else np.atleast_1d(self._ids(ids))
        if not len(which):
            return np.empty((0, self.dim)), np.empty((0, self.dim, self.dim))
        pieces = [self.belief.action_posterior(some) for some in self._chunks(which)]
        return np.concatenate([mean for mean, _ in pieces]), np.concatenate([spread for _, spread in pieces])

    def latent(self) -> tuple[Array, Array]:
        """Posterior mean and covariance of the latent vector (thesis, Section 6.3.2)."""
        factor = self.belief.root.factor()
        return self.belief.root.mean().copy(), factor @ factor.T

    @property
    def parameters(self) -> Array:
        """(K, d) posterior means."""
        self._refresh(spreads=False)
        return self._means

    def _refresh(self, *, spreads: bool) -> None:
        rows = int(self.belief.leaves.counts.rows.sum()) + self.action_count
        if rows == self._made_at and (self._spreads is not None or not spreads):
            return
        packing = linalg.packing(self.dim)
        means = np.empty((self.action_count, self.dim))
        packed = np.empty((self.action_count, packing.size)) if spreads else None
        for some in self._chunks(np.arange(self.action_count)):
            mean, spread = self.belief.action_posterior(some)
            means[some] = mean
            if packed is not None:
                packed[some] = packing.pack(spread)
        self._means, self._spreads, self._made_at, self._search = means, packed, rows, None

    def _chunks(self, ids: Ints) -> Iterator[Ints]:
        step = max(1, MATRICES_AT_A_TIME // (self.dim * max(self.dim, self.belief.root.dim)))
        for start in range(0, max(1, len(ids)), step):
            yield ids[start : start + step]

    def moments(self, X: npt.ArrayLike, ids: npt.ArrayLike) -> tuple[Array, Array]:
        """Posterior mean and variance of x_i^T theta_j for contexts (b, d) and actions (k,), as (b, k) each."""
        return self._moments(self._contexts(X), self._ids(ids))

    def moments_of(self, X: npt.ArrayLike, actions: npt.ArrayLike) -> tuple[Array, Array]:
        """Posterior mean and variance of x_i^T theta_(a_i), row by row, (n,) each."""
        rows, ids = self._contexts(X), self._ids(actions)
        if ids.shape != (len(rows),):
            raise InvalidInput("actions", f"shape {ids.shape}", f"one action for each of the {len(rows)} contexts")
        self._refresh(spreads=True)
        packing = linalg.packing(self.dim)
        mean, variance = np.empty(len(rows)), np.empty(len(rows))
        step = max(1, PAIRS_AT_A_TIME // packing.size)
        for start in range(0, len(rows), step):
            x, some = rows[start : start + step], ids[start : start + step]
            mean[start : start + step] = np.einsum("nd,nd->n", x, self._means[some])
            spreads = cast(Array, self._spreads)[some]
            variance[start : start + step] = np.einsum("np,np->n", packing.bilinear(x, x), spreads)
        return mean, np.maximum(variance, 0.0)

    def _moments(self, X: Array, some: Ints | slice) -> tuple[Array, Array]:
        self._refresh(spreads=True)
        packing = linalg.packing(self.dim)
        variance = packing.bilinear(X, X) @ cast(Array, self._spreads)[some].T
        return X @ self._means[some].T, np.maximum(variance, 0.0)

    # ---- decisions ----------------------------------------------------------------------------------------------------

    def decide(self, X: npt.ArrayLike, k: int | None = None, *, width: float = 0.0) -> int | Ints:
        """The action with the largest x^T mu_hat_a - width ||x||_(Sigma_hat_a), or the k best.

        width 0 is the greedy policy (thesis, Section 6.2.2), `pessimism_width(d, delta)` the pessimistic one (Appendix
        C.4.4). The same decisions as those of `greedy()` and `pessimistic()`, many contexts at a time.
        """
        width = validate.not_negative("width", width)
        if width == 0:
            return super().decide(X, k)
        given = validate.as_floats("X", X)
        rows = self._contexts(given[None] if given.ndim == 1 else given)

        def lower(part: slice) -> Iterator[Array]:
            for first, last in action_blocks(self.action_count):
                mean, variance = self._moments(rows[part], slice(first, last))
                yield mean - width * np.sqrt(variance)

        return shaped(top_k_by_rows(len(rows), self._offered(1 if k is None else k), lower)[0], k, given)

    @property
    def _best(self) -> BestAction:
        parameters = self.parameters
        if self._search is None:
            self._search = BestAction(parameters)
        return self._search

    def agent(self, decision: Decision | None = None, *, seed: Seed = None, name: str = "warm start") -> Agent:
        """An online agent that goes on from this belief (Thompson sampling unless said otherwise); the model keeps its own."""
        schema = self.schema
        return Agent(copy.deepcopy(self.belief), _decision(decision), seed, name, schema.catalogue, schema.encoder)

    def greedy(self) -> Agent:
        """sDM's decision: the largest posterior mean."""
        return self.agent(Greedy(), seed=0, name="greedy")

    def pessimistic(self, delta: float = 0.05) -> Agent:
        """The largest lower bound x^T mu_hat_a - alpha(d, delta) ||x||_(Sigma_hat_a)."""
        return self.agent(Pessimistic(pessimism_width(self.dim, delta)), seed=0, name="pessimistic")


def _decision(decision: Decision | None) -> Decision:
    """The decision of an agent, Thompson sampling where none is given."""
    if decision is None:
        return Thompson()
    return validate.instance("decision", decision, Decision, "a decision, such as Thompson() or Greedy()")


def pessimism_width(dim: int, delta: float) -> float:
    """alpha(d, delta) = sqrt(d + 2 sqrt(d log(1/delta)) + 2 log(1/delta)) (thesis, Appendix C.4.4).

    With probability at least 1 - delta the posterior has ||theta_a - mu_hat_a|| below it in the norm of Sigma_hat_a^-1, so that
    |x^T (theta_a - mu_hat_a)| <= alpha ||x||_(Sigma_hat_a) for every x at once.
    """
    d, delta = validate.count("dim", dim), validate.number("delta", delta, above=0, most=1)
    log = -math.log(delta)
    return math.sqrt(d + 2 * math.sqrt(d * log) + 2 * log)


# ---- from a log to a model --------------------------------------------------------------------------------------------


def sdm(
    source: LogSource, prior: ParameterPrior, likelihood: Likelihood = Linear(), *, on: On = IN_THIS_PROCESS
) -> BeliefModel:
    """The structured direct method: the belief of a structured prior folded over a log (thesis, Chapter 6).

    source: a log in memory, or one that streams; its propensities are not needed. prior: a MixedEffectPrior, a LatentPrior
    (any W_a), a HierarchicalPrior, or a diffusion. likelihood: Linear(noise), or Logistic() through Laplace.
    on: "local", in this process; or an engine whose workers divide the log among themselves, "ray", "ray://host:port" or one that
    is open (`manyarms.engine`): linear rewards, and a log in memory or a Parquet file or folder (open_log).
    """
    return BeliefModel(belief_of(prior, likelihood)).fold(source, on=on)


def warm_start(
    source: LogSource,
    prior: ParameterPrior,
    likelihood: Likelihood = Linear(),
    decision: Decision | None = None,
    *,
    seed: Seed = None,
    on: On = IN_THIS_PROCESS,
) -> Agent:
    """From a log to an online agent in one call: what it has learned is the log, and it goes on with every reward.

    on: see `sdm`.
    """
    decided = _decision(decision)
    model = sdm(source, prior, likelihood, on=on)
    return Agent(model.belief, decided, seed, "warm start", model.schema.catalogue, model.schema.encoder)


def dm_bayes(
    source: LogSource, prior: ParameterPrior, likelihood: Likelihood = Linear(), *, on: On = IN_THIS_PROCESS
) -> BeliefModel:
    """DM (Bayes): independent actions, each with its marginal prior (thesis, Section 6.2.1 and Appendix C.4.1). on: see `sdm`."""
    return BeliefModel(independent_belief_of(prior, likelihood)).fold(source, on=on)


def dm_frequentist(source: LogSource, lam: float = 1.0, *, on: On = IN_THIS_PROCESS) -> LinearModel:
    """DM (Freq): a ridge regression for every action. on: see `sdm`."""
    return DirectFrequentist(lam).fit(source, on=on)


def learned_structure(source: LogSource, effects: int, *, lam: float = 1.0, seed: int = 0) -> MixedEffectPrior:
    """A mixed-effect prior from a log: a Gaussian mixture of the parameters that DM (Freq) finds (thesis, Section 3.1.3).

    Use another part of the log than the one the prior will meet: `learn, use = log.split(0.2)`. Actions that are not in the log
    have the estimate 0 and count among those near it.
    """
    return mixture(dm_frequentist(source, lam).parameters, effects, seed=seed)


__all__ = [
    "BeliefModel",
    "dm_bayes",
    "dm_frequentist",
    "learned_structure",
    "pessimism_width",
    "sdm",
    "warm_start",
]
