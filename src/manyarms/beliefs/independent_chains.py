"""One diffusion chain per action: what a prior pre-trained on single actions' parameters says.

The centre of each action is the end f_1(psi_1) of a chain of its own, and the evidence about it climbs that chain by the
rules of messages.py. Unplayed actions are independent draws of the same diffusion. All of them are drawn afresh in every
decision, in blocks: their largest score has the law of the prior whatever K is, and costs what K chains cost. A fixed set of
N draws in their place is cheap and wrong: where the largest of m scores reaches a tail of y/m, the set's own tail is y (1 +
e) / m with e of variance m / (y N), which moves its distribution function exp(-y) by about 0.43 sqrt(m/N). `ParticleBelief`
makes such a set its prior, and says so. (Links that are all linear need none of this: independent Gaussian actions,
`belief_of`.)
"""

from __future__ import annotations

import numpy as np

from manyarms._base import validate
from manyarms._base.nested import prefixed, under
from manyarms._base.typing import AnyArray, Array, Ints, Spec, loose
from manyarms.beliefs import leaf_scores
from manyarms.beliefs.actions.catalogue import Offer
from manyarms.beliefs.belief import BELIEFS, Rounds, restored_parts
from manyarms.beliefs.growable import GrowableArray
from manyarms.beliefs.independent_centres import IndependentCentres, identical_leaves, largest
from manyarms.beliefs.leaves import Leaves
from manyarms.beliefs.likelihoods.base import Likelihood
from manyarms.beliefs.messages import Chain, ChainConditionals
from manyarms.beliefs.mixing import IdentityMixing
from manyarms.errors import InvalidInput
from manyarms.priors.diffusion import DiffusionPrior

CHAINS_AT_A_TIME = 1 << 15
POSTERIOR_DRAWS = 4096


@BELIEFS.register("independent-chains")
class IndependentChains(IndependentCentres):
    """A belief whose actions have independent diffusion priors, by a rule for evidence on its way up ("thesis", "jacobian")."""

    def __init__(
        self, prior: DiffusionPrior, likelihood: Likelihood, rule: str = "thesis", leaves: Leaves | None = None
    ) -> None:
        if not isinstance(prior, DiffusionPrior):
            raise InvalidInput("prior", validate.describe(prior), "a DiffusionPrior")
        leaves = (
            Leaves(IdentityMixing(), prior.covariances[0], prior.actions)
            if leaves is None
            else identical_leaves(leaves)
        )
        L, d = prior.depth, prior.dim
        if leaves.dim != d:
            raise InvalidInput("leaves", f"parameters of length {leaves.dim}", f"length {d}, as the prior has it")
        shapes = {"towards": (L, d, d), "offset": (L, d), "factor": (L, d, d)}
        super().__init__(leaves, likelihood, {name: GrowableArray(shape) for name, shape in shapes.items()})
        self.chain = Chain(prior, rule)
        self._moments: tuple[Array, Array] | None = None

    def evidence(self, X: Array, actions: Ints, rewards: Array) -> Rounds:
        rows = super().evidence(X, actions, rewards)
        if not self.likelihood.exact and self.likelihood.expansion != "mle":
            self._centre_moments()  # they ask the links, which may fail: once, and before anything changes
        return rows

    def _learn_centres(self, slots: Ints, G: Array, B: Array) -> None:
        found = self.chain.up(G, B)
        for name, table in self._tables.items():
            table.rows[slots] = getattr(found, name)

    def _conditionals(self, slots: Ints) -> ChainConditionals:
        return ChainConditionals(**{name: table.rows[slots] for name, table in self._tables.items()})

    def _draw_centres(self, slots: Ints, rng: np.random.Generator) -> Array:
        return self.chain.down(self._conditionals(slots), rng, len(slots))

    def _draw_prior_centres(self, n: int, rng: np.random.Generator) -> Array:
        return self.chain.prior.draw_centres(rng, n)

    def _centre_moments(self) -> tuple[Array, Array]:
        moments = self._moments
        if moments is None:
            moments = self._moments = self.chain.prior.centre_moments()
        return moments

    def _mean_centres(self, slots: Ints) -> Array:
        """f_1 at the end of the chain of conditional means."""
        if not len(slots):
            return np.empty((0, self.dim))
        return self.chain.prior.links[0](self.chain.path(self._conditionals(slots))[0])

    def _draw_best_unplayed(self, x: Array, sd: float, count: int, k: int, rng: np.random.Generator) -> Array:
        best = np.empty(0)
        for start in range(0, count, CHAINS_AT_A_TIME):
            some = min(CHAINS_AT_A_TIME, count - start)
            scores = self.chain.prior.draw_centres(rng, some) @ x + sd * rng.standard_normal(some)
            best = largest(np.concatenate([best, scores]), k)
        return best

    def played_moments(self, X: Array, offer: Offer, *, spread: bool) -> tuple[Array, Array]:
        """Means along the chains of conditional means; variances are not to be had in closed form."""
        self._refuse(spread)
        mean, variance = leaf_scores.scores(self.leaves, X, None, offer.slots)
        slots = self._slots(offer)
        centres = self._mean_centres(slots)
        for i, x in enumerate(X):
            mean[i] += np.einsum("ad,ad->a", self.leaves.pulled(x, slots), centres)
        return mean, variance

    def unplayed_moments(self, x: Array, offer: Offer, *, spread: bool) -> tuple[Array, Array]:
        self._refuse(spread)
        return np.full(len(offer.counts), float(self._centre_moments()[0] @ x)), np.zeros(len(offer.counts))

    def listed_moments(self, Z: Array, ids: Ints, *, spread: bool) -> tuple[Array, Array]:
        self._refuse(spread)
        return super().listed_moments(Z, ids, spread=spread)

    def predictive(self, X: Array, actions: Ints) -> tuple[Array, Array]:
        """By moments of draws, as `action_posterior` has them: each action once."""
        ids, rows = np.unique(actions, return_inverse=True)
        mean, covariance = self.action_posterior(ids)
        return np.einsum("nd,nd->n", X, mean[rows]), np.einsum("ni,nij,nj->n", X, covariance[rows], X)

    def _refuse(self, spread: bool) -> None:
        if spread:
            expected = "Thompson or greedy, for this rule; approximation='particles' or 'moments' has variances"
            raise InvalidInput("decision", "one that needs variances", expected)

    def action_posterior(self, ids: Ints) -> tuple[Array, Array]:
        """Moments of draws m with a fixed seed: with P = S_a Sigma_1^-1, mean c_a + P E[m], covariance S_a + P Cov(m) P^T."""
        rng, leaves = np.random.default_rng(0), self.leaves
        mean, covariance = np.empty((len(ids), self.dim)), np.empty((len(ids), self.dim, self.dim))
        for i, action in enumerate(ids.tolist()):
            slot = self.catalogue.slot_of.get(action)
            if slot is None:
                pull, own, c = np.eye(self.dim), leaves.covariance, np.zeros(self.dim)
                centres = self.chain.prior.draw_centres(rng, POSTERIOR_DRAWS)
            else:
                own, c = leaves.packing.unpack(leaves.S.rows[slot]), leaves.c.rows[slot]
                pull = leaves.pulls(np.array([slot]))[0].T
                centres = self.chain.down(self._conditionals(np.array([slot])), rng, POSTERIOR_DRAWS)
            moved = centres @ pull
            mean[i] = c + moved.mean(axis=0)
            covariance[i] = own + np.cov(moved.T).reshape(self.dim, self.dim)
        return mean, covariance

    # ---- state

    def spec(self) -> Spec:
        chain = {"rule": self.chain.rule, "links": self.chain.prior.link_kinds}
        return {"kind": self.kind, "chain": chain, **self._parts_spec()}

    def arrays(self) -> dict[str, AnyArray]:
        return {**super().arrays(), **prefixed("chain.", self.chain.prior.arrays() | self._table_arrays())}

    @classmethod
    def restored(cls, spec: Spec, arrays: dict[str, AnyArray]) -> IndependentChains:
        told = loose(spec)
        leaves, likelihood = restored_parts(told, arrays)
        options, parts = told["chain"], under("chain.", arrays)
        prior = DiffusionPrior.restored(options["links"], parts, leaves.catalogue.size, shared=False)
        belief = cls(prior, likelihood, options["rule"], leaves)
        belief._restore(arrays, parts)
        return belief


__all__ = ["IndependentChains"]
