"""One diffusion chain per action: what a prior pre-trained on single actions' parameters says.

The leaves are the same as ever; above each played one stands a chain of its own, whose evidence is that leaf's,

    G = Sigma_1^-1 S_a G_a,    B = Sigma_1^-1 c_a        (leaves.py, messages.py)

Actions that nobody has played are independent draws of the same diffusion, so that only their number m matters. Up to `bank`
of them draw their chains afresh. More than that share a bank of draws of f_1(psi_1), made once: x^T theta is then a mixture of
as many Gaussians, and its largest of m draws is found by inverting the distribution function (noise.py), whatever m is.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy.special import ndtr

from manyarms._base.nested import prefixed, under
from manyarms._base.typing import AnyArray, Array, Ints
from manyarms.beliefs.actions.catalogue import Offer
from manyarms.beliefs.belief import BELIEFS, Belief, Rounds, noisy, restored_parts
from manyarms.beliefs.growable import GrowableArray
from manyarms.beliefs.leaves import Leaves
from manyarms.beliefs.likelihoods.base import Likelihood
from manyarms.beliefs.messages import Chain, ChainConditionals
from manyarms.beliefs.mixing import IdentityMixing
from manyarms.beliefs.roots import KnownRoot
from manyarms.errors import InvalidInput
from manyarms.priors.diffusion import DiffusionPrior
from manyarms.priors.gaussian import ActionPrior

BANK = 8192
POSTERIOR_DRAWS = 4096


class _NoRoot(KnownRoot):
    """Nothing is shared: evidence goes to the chain of the action itself."""

    known = False

    def gaussian_prior(self) -> None:
        return None


@BELIEFS.register("independent-chains")
class IndependentChains(Belief):
    """A belief whose actions have independent diffusion priors."""

    def __init__(
        self,
        prior: DiffusionPrior,
        likelihood: Likelihood,
        rule: str = "thesis",
        bank: int = BANK,
        leaves: Leaves | None = None,
    ) -> None:
        leaves = Leaves(IdentityMixing(), prior.covariances[0], prior.actions) if leaves is None else leaves
        super().__init__(_NoRoot(np.zeros(prior.dim)), leaves, likelihood)
        self.chain = Chain(prior, rule)
        L, d = prior.depth, prior.dim
        self._towards, self._offset = GrowableArray((L, d, d)), GrowableArray((L, d))
        self._factor, self._pull = GrowableArray((L, d, d)), GrowableArray((d, d))
        self._bank_size = bank
        self._bank: Array | None = None
        self._marginal: ActionPrior | None = None

    # ---- learning -----------------------------------------------------------------------------------------------------

    def observe(self, X: Array, actions: Ints, rewards: Array) -> None:
        """Learn checked rows; the chains of the actions touched are updated."""
        super().observe(X, actions, rewards)
        self._update_chains(np.array([self.catalogue.slot_of[a] for a in np.unique(actions).tolist()]))

    def fold(self, chunks: Iterable[Rounds]) -> None:
        """Learn checked rows that come in chunks; the chains of the actions touched are updated."""
        before = self.leaves.counts.rows.copy()
        super().fold(chunks)
        added = self.leaves.counts.rows.copy()
        added[: len(before)] -= before
        self._update_chains(np.flatnonzero(added))

    def _without_own_rows(self, slots: Ints) -> tuple[Array, Array]:
        """The marginal prior, the same for all: nothing is shared, so that a cavity is no more than that."""
        if self._marginal is None:
            self._marginal = self.chain.prior.marginal(POSTERIOR_DRAWS)
        mean, covariance = self._marginal.mean, self._marginal.covariance
        return np.broadcast_to(mean, (len(slots), *mean.shape)), np.broadcast_to(
            covariance, (len(slots), *covariance.shape)
        )

    def _update_chains(self, slots: Ints) -> None:
        leaves = self.leaves
        while len(self._offset) < len(leaves.counts):
            for table in self._tables().values():
                table.append(0.0)
        for start in range(0, len(slots), leaves.chunk):
            some = slots[start : start + leaves.chunk]
            pull = leaves.precision @ leaves.packing.unpack(leaves.S.rows[some])
            G = pull @ leaves.packing.unpack(leaves.G.rows[some])
            conditionals = self.chain.up((G + np.swapaxes(G, 1, 2)) / 2, leaves.c.rows[some] @ leaves.precision)
            self._pull.rows[some] = pull
            self._towards.rows[some], self._offset.rows[some] = conditionals.towards, conditionals.offset
            self._factor.rows[some] = conditionals.factor

    def _conditionals(self, slots: Ints | None) -> ChainConditionals:
        some = slice(None) if slots is None else slots
        return ChainConditionals(self._towards.rows[some], self._offset.rows[some], self._factor.rows[some])

    # ---- what decisions ask -------------------------------------------------------------------------------------------

    def draw_scores(self, X: Array, offer: Offer, rng: np.random.Generator) -> tuple[Array, Array]:
        nothing = np.zeros((len(X), 1))
        number = len(offer.ids_of_slots())
        if not number:
            return np.empty((len(X), 0)), nothing
        conditionals = self._conditionals(offer.slots)
        mean, variance = self.leaves.scores(X, None, offer.slots)
        pull = self._pull.rows if offer.slots is None else self._pull.rows[offer.slots]
        for i, x in enumerate(X):
            centres = self.chain.down(conditionals, rng, number)
            mean[i] += np.einsum("ad,ad->a", pull @ x, centres)
        return mean + np.sqrt(np.maximum(variance, 0.0)) * rng.standard_normal(mean.shape), nothing

    def best_unplayed(
        self, x: Array, root: Array, offer: Offer, floor: float, k: int, rng: np.random.Generator
    ) -> tuple[Array, Ints]:
        left, sd = offer.fresh, float(np.sqrt(x @ self.leaves.covariance @ x))
        if not left:
            return np.empty(0), np.empty(0, dtype=np.int64)
        if left <= self._bank_size:
            scores = self.chain.prior.draw_centres(rng, left) @ x
            scores += sd * rng.standard_normal(left)
        else:
            scores = largest_of_mixture(self._centres() @ x, sd, left, k, rng)
        scores = scores[scores > floor]
        if len(scores) > k:
            scores = -np.partition(-scores, k - 1)[:k]
        return scores, np.zeros(len(scores), dtype=np.int64)  # all unplayed actions are one unit

    def _centres(self) -> Array:
        if self._bank is None:
            self._bank = self.chain.prior.draw_centres(np.random.default_rng(0), self._bank_size)
        return self._bank

    def played_moments(self, X: Array, offer: Offer, *, spread: bool) -> tuple[Array, Array]:
        """Means along the chains of conditional means; variances are not to be had in closed form."""
        self._refuse(spread)
        mean, variance = self.leaves.scores(X, None, offer.slots)
        conditionals = self._conditionals(offer.slots)
        if len(conditionals.offset):
            centres = self.chain.prior.links[0](self.chain.path(conditionals)[0])
            pull = self._pull.rows if offer.slots is None else self._pull.rows[offer.slots]
            mean += np.einsum("aij,nj,ai->na", pull, X, centres)
        return mean, variance

    def unplayed_moments(self, x: Array, offer: Offer, *, spread: bool) -> tuple[Array, Array]:
        self._refuse(spread)
        return np.full(len(offer.counts), float(self._centres().mean(axis=0) @ x)), np.zeros(len(offer.counts))

    def draw_listed(self, Z: Array, ids: Ints, rng: np.random.Generator) -> Array:
        """Played actions draw from their chains, the others from the prior; each context has draws of its own."""

        def centres(_: int, some: Ints) -> Array:
            slots, out = self.catalogue.slots(some), np.empty((len(some), self.dim))
            played = slots >= 0
            if played.any():
                out[played] = self.chain.down(self._conditionals(slots[played]), rng, int(played.sum()))
            if not played.all():
                out[~played] = self.chain.prior.draw_centres(rng, int((~played).sum()))
            return out

        return noisy(*self.leaves.listed_scores(Z, ids, None, centres), rng)

    def listed_moments(self, Z: Array, ids: Ints, *, spread: bool) -> tuple[Array, Array]:
        """Means as `played_moments` and `unplayed_moments` have them."""
        self._refuse(spread)

        def centres(_: int, some: Ints) -> Array:
            slots = self.catalogue.slots(some)
            out = np.repeat(self._centres().mean(axis=0)[None], len(some), axis=0)
            if (slots >= 0).any():
                path = self.chain.path(self._conditionals(slots[slots >= 0]))
                out[slots >= 0] = self.chain.prior.links[0](path[0])
            return out

        return self.leaves.listed_scores(Z, ids, None, centres)

    def _refuse(self, spread: bool) -> None:
        if spread:
            raise InvalidInput("decision", "one that needs variances", "Thompson or greedy, for one chain per action")

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
                pull, c = self._pull.rows[slot], leaves.c.rows[slot]
                own = leaves.packing.unpack(leaves.S.rows[slot])
                centres = self.chain.down(self._conditionals(np.array([slot])), rng, POSTERIOR_DRAWS)
            moved = centres @ pull
            mean[i] = c + moved.mean(axis=0)
            covariance[i] = own + np.cov(moved.T).reshape(self.dim, self.dim)
        return mean, covariance

    # ---- state --------------------------------------------------------------------------------------------------------

    def spec(self) -> dict[str, Any]:
        chain = {"rule": self.chain.rule, "links": self.chain.prior.link_kinds, "bank": self._bank_size}
        return {"kind": self.kind, "chain": chain, **self._parts_spec()}

    def arrays(self) -> dict[str, AnyArray]:
        own = {name: table.rows for name, table in self._tables().items()}
        return {**super().arrays(), **prefixed("chain.", self.chain.prior.arrays() | own)}

    def _tables(self) -> dict[str, GrowableArray]:
        return {"towards": self._towards, "offset": self._offset, "factor": self._factor, "pull": self._pull}

    @classmethod
    def restored(cls, spec: dict[str, Any], arrays: dict[str, AnyArray]) -> IndependentChains:
        leaves, likelihood = restored_parts(spec, arrays)
        options, parts = spec["chain"], under("chain.", arrays)
        prior = DiffusionPrior.restored(options["links"], parts, leaves.catalogue.size, shared=False)
        belief = cls(prior, likelihood, options["rule"], options["bank"], leaves)
        belief._restore_rows(arrays)
        for name, table in belief._tables().items():
            table.extend(parts[name])
        return belief

    @property
    def nbytes(self) -> int:
        """Bytes of everything it holds."""
        return (
            super().nbytes
            + sum(t.nbytes for t in self._tables().values())
            + (0 if self._bank is None else self._bank.nbytes)
        )


def largest_of_mixture(means: Array, sd: float, count: int, k: int, rng: np.random.Generator) -> Array:
    """The k largest of `count` independent draws from the equal mixture of N(means_i, sd^2), k <= count.

    With tail(t) = mean of 1 - Phi((t - means_i) / sd), the j-th largest solves tail(t) = -expm1(log_cdf_j), where
    log_cdf_j = log_cdf_(j-1) - E / (count - j + 1) (noise.py). Newton on the logarithm of the tail, inside a bracket.
    """
    out, log_cdf = np.empty(k), 0.0
    high = float(means.max()) + 40.0 * sd
    for j in range(k):
        log_cdf -= float(rng.standard_exponential()) / (count - j)
        target = -np.expm1(log_cdf)
        low = float(means.min()) - 40.0 * sd
        t = out[j - 1] if j else float(means.max())
        for _ in range(200):
            z = (t - means) / sd
            tail = float(ndtr(-z).mean())
            if abs(tail - target) <= 1e-12 * target:
                break
            if tail > target:
                low = max(low, t)
            else:
                high = min(high, t)
            density = float(np.exp(-0.5 * z * z).mean()) / (sd * np.sqrt(2 * np.pi))
            step = tail * np.log(tail / target) / density if tail > 0 and density > 0 else np.inf
            new = t + step
            if not low < new < high:
                new = (low + high) / 2
            if new == t:
                break
            t = new
        out[j] = t
        high = t
    return out


__all__ = ["IndependentChains", "largest_of_mixture"]
