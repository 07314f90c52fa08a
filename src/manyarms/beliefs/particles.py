"""Actions that are draws of a cloud: a posterior that is exact for the cloud, whatever its shape.

A prior of single actions that can be drawn from, as a diffusion with one chain per action, is replaced by N draws c_1, ...,
c_N of its centre, each blurred by Sigma_1: theta_a ~ (1/N) sum_i N(c_i, Sigma_1). This mixture has its posterior in closed
form. With the leaf's evidence about the centre, Q_a = Sigma_1^-1 - Sigma_1^-1 S_a Sigma_1^-1 and b_a = Sigma_1^-1 S_a B_a,

    weight of c_i     log w_ai = b_a^T c_i - c_i^T Q_a c_i / 2 + constant
    given c_i         theta_a ~ N(S_a (Sigma_1^-1 c_i + B_a), S_a)

so that means and variances are sums over i, and the largest of m unplayed scores is one draw of a mixture's order statistic,
whatever m is (`largest_of_mixture`). Where draws lie farther apart than Sigma_1 reaches, the blur is widened until it reaches
(`joined`). What N draws cannot show stays out: of far more than N actions the best ones may lie beyond all of them.

Cost: N d^2 to learn a row, log N for each played action to decide, 4 N bytes for each played action.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from manyarms._base import validate
from manyarms._base.nested import prefixed, under
from manyarms._base.typing import AnyArray, Array, Ints, Spec
from manyarms.beliefs import leaf_scores
from manyarms.beliefs.actions.catalogue import Offer
from manyarms.beliefs.belief import BELIEFS, restored_parts
from manyarms.beliefs.contests import Cloud, Piece
from manyarms.beliefs.growable import GrowableArray
from manyarms.beliefs.independent_centres import IndependentCentres, identical_leaves
from manyarms.beliefs.leaves import Leaves
from manyarms.beliefs.likelihoods.base import Likelihood
from manyarms.beliefs.mixing import IdentityMixing
from manyarms.errors import InvalidInput
from manyarms.priors.diffusion import DiffusionPrior

PARTICLES = 2048
WEIGHTS_AT_A_TIME = 1 << 21


@BELIEFS.register("particles")
class ParticleBelief(IndependentCentres):
    """A belief whose actions are independent draws of a blurred cloud of centres (N, d)."""

    def __init__(self, centres: Array, leaves: Leaves, likelihood: Likelihood) -> None:
        """`leaves`: Leaves(IdentityMixing(), Sigma_1, K)."""
        pack = identical_leaves(leaves).packing
        self.centres = validate.as_array("centres", centres, (None, leaves.dim)).copy()
        tables = {
            "shares": GrowableArray((len(self.centres),), np.float32),  # cumulative weights: 1 at the end
            "mean": GrowableArray((leaves.dim,)),
            "spread": GrowableArray((pack.size,)),  # covariance of the centre, packed
        }
        super().__init__(leaves, likelihood, tables)
        self._halved = -pack.bilinear(self.centres, self.centres) / 2  # times a packed Q: -c^T Q c / 2
        self._products = self.centres[:, pack.rows] * self.centres[:, pack.columns]  # c c^T packed

    @classmethod
    def of_prior(
        cls, prior: DiffusionPrior, likelihood: Likelihood, particles: int = PARTICLES, seed: int = 0
    ) -> ParticleBelief:
        """The belief of a diffusion prior, one chain per action, by that many draws."""
        if not isinstance(prior, DiffusionPrior):
            raise InvalidInput("prior", validate.describe(prior), "a DiffusionPrior")
        particles = validate.count("particles", particles, least=2)
        validate.room("particles", particles, 16 * prior.dim * (prior.dim + 4), "draws")
        centres, reach = joined(prior.draw_centres(validate.seeded(seed), particles))
        return cls(centres, Leaves(IdentityMixing(), prior.covariances[0] + reach, prior.actions), likelihood)

    def _learn_centres(self, slots: Ints, G: Array, B: Array) -> None:
        pack, step = self.leaves.packing, max(1, WEIGHTS_AT_A_TIME // len(self.centres))
        for start in range(0, len(slots), step):
            some = slice(start, start + step)
            logs = B[some] @ self.centres.T + pack.pack(G[some]) @ self._halved.T
            weights = np.exp(logs - logs.max(axis=1, keepdims=True))
            weights /= weights.sum(axis=1, keepdims=True)
            mean = weights @ self.centres
            shares = np.cumsum(weights, axis=1)
            shares[:, -1] = 1.0
            self._tables["shares"].rows[slots[some]] = shares
            self._tables["mean"].rows[slots[some]] = mean
            self._tables["spread"].rows[slots[some]] = (
                weights @ self._products - mean[:, pack.rows] * mean[:, pack.columns]
            )

    def _draw_centres(self, slots: Ints, rng: np.random.Generator) -> Array:
        """By inverting each action's cumulative weights: a search by halves, all actions at once."""
        shares, u = self._tables["shares"].rows, rng.random(len(slots))
        low, high = np.zeros(len(slots), dtype=np.int64), np.full(len(slots), len(self.centres) - 1)
        for _ in range(len(self.centres).bit_length()):
            middle = (low + high) // 2
            beyond = shares[slots, middle] <= u
            low, high = np.where(beyond, np.minimum(middle + 1, high), low), np.where(beyond, high, middle)
        return self.centres[low]

    def _draw_best_unplayed(self, x: Array, sd: float, count: int, k: int, rng: np.random.Generator) -> Array:
        means = self.centres @ x
        if count <= len(means):
            return means[rng.integers(len(means), size=count)] + sd * rng.standard_normal(count)
        return largest_of_mixture(means, sd, count, k, rng)

    def _unplayed_rivals(self, x: Array, sd: float, count: int, rng: np.random.Generator) -> tuple[Piece, Cloud | None]:
        none = np.empty(0)
        return (none, none, none), (self.centres @ x, sd, count)

    def played_moments(self, X: Array, offer: Offer, *, spread: bool) -> tuple[Array, Array]:
        mean, variance = leaf_scores.scores(self.leaves, X, None, offer.slots)
        slots = self._slots(offer)
        for i, x in enumerate(X):
            pulled = self.leaves.pulled(x, slots)
            mean[i] += np.einsum("ad,ad->a", pulled, self._mean_centres(slots))
            if spread:
                coefficients = self.leaves.packing.bilinear(pulled, pulled)
                variance[i] += np.maximum(np.einsum("as,as->a", coefficients, self._tables["spread"].rows[slots]), 0.0)
        return mean, variance

    def unplayed_moments(self, x: Array, offer: Offer, *, spread: bool) -> tuple[Array, Array]:
        means = self.centres @ x
        variance = float(means.var() + x @ self.leaves.covariance @ x)
        return np.full(len(offer.counts), float(means.mean())), np.full(len(offer.counts), variance)

    def _mean_centres(self, slots: Ints) -> Array:
        return self._tables["mean"].rows[slots]

    def _draw_prior_centres(self, n: int, rng: np.random.Generator) -> Array:
        return self.centres[rng.integers(len(self.centres), size=n)]

    def _centre_moments(self) -> tuple[Array, Array]:
        centred = self.centres - self.centres.mean(axis=0)
        return self.centres.mean(axis=0), centred.T @ centred / len(centred)

    def listed_moments(self, Z: Array, ids: Ints, *, spread: bool) -> tuple[Array, Array]:
        """Exact: with u_a = Sigma_1^-1 S_a z_a, the variance has u_a^T Cov(m_a) u_a more."""
        mean, variance = super().listed_moments(Z, ids, spread=spread)
        leaves, pack = self.leaves, self.leaves.packing
        for start in range(0, len(ids) if spread else 0, leaves.chunk):
            some = slice(start, start + leaves.chunk)
            slots, u = self.catalogue.slots(ids[some]), Z[:, some].copy()
            played, slots = slots >= 0, slots[slots >= 0]
            u[:, played] = np.einsum("aji,naj->nai", leaves.pulls(slots), u[:, played])
            covariance = np.tile(self._centre_moments()[1], (len(played), 1, 1))
            covariance[played] = pack.unpack(self._tables["spread"].rows[slots])
            variance[:, some] += np.maximum(np.einsum("nai,aij,naj->na", u, covariance, u), 0.0)
        return mean, variance

    def action_posterior(self, ids: Ints) -> tuple[Array, Array]:
        """Exact: with P = S_a Sigma_1^-1, mean c_a + P E[m_a], covariance S_a + P Cov(m_a) P^T."""
        leaves, pack = self.leaves, self.leaves.packing
        centre, around = self._centre_moments()
        mean = np.tile(centre, (len(ids), 1))
        covariance = np.tile(leaves.covariance + around, (len(ids), 1, 1))
        slots = self.catalogue.slots(ids)
        played, slots = slots >= 0, slots[slots >= 0]
        S = pack.unpack(leaves.S.rows[slots])
        P = leaves.pulls(slots)
        mean[played] = leaves.c.rows[slots] + np.einsum("nij,nj->ni", P, self._tables["mean"].rows[slots])
        covariance[played] = S + P @ pack.unpack(self._tables["spread"].rows[slots]) @ np.swapaxes(P, 1, 2)
        return mean, covariance

    # ---- state

    def spec(self) -> Spec:
        return {"kind": self.kind, **self._parts_spec()}

    def arrays(self) -> dict[str, AnyArray]:
        return {**super().arrays(), "centres": self.centres, **prefixed("particles.", self._table_arrays())}

    @classmethod
    def restored(cls, spec: Spec, arrays: dict[str, AnyArray]) -> ParticleBelief:
        belief = cls(arrays["centres"], *restored_parts(spec, arrays))
        belief._restore(arrays, under("particles.", arrays))
        return belief

    @property
    def nbytes(self) -> int:
        """Bytes of everything it holds."""
        return super().nbytes + self.centres.nbytes + self._halved.nbytes + self._products.nbytes


def joined(draws: Array) -> tuple[Array, Array]:
    """The draws (N, d), moved together a little, and a blur (d, d) that reaches from one to the next.

    With mu and C the mean and covariance of the draws and h^2 their mean squared distance to the nearest other one, per dimension
    and in units of C, they become mu + sqrt(1 - h^2) (c_i - mu), and the blur is h^2 C: mean and covariance stay. A new draw of
    the same law is about as far from its nearest particle. On a curve in the plane h^2 is next to nothing; in many dimensions it
    tends to 1, and the cloud to the Gaussian with its moments.
    """
    mean = draws.mean(axis=0)
    centred = draws - mean
    C = centred.T @ centred / len(draws)
    values, vectors = np.linalg.eigh(C)
    wide = values > 1e-10 * max(values[-1], np.finfo(np.float64).tiny)
    if not wide.any():
        return draws, np.zeros_like(C)
    from scipy.spatial import cKDTree  # late: it takes a while to import, and only non-linear chains need it

    units = centred @ (vectors[:, wide] / np.sqrt(values[wide]))
    nearest = cKDTree(units).query(units, k=2)[0][:, 1]
    h2 = min(1.0, float(np.square(nearest).mean()) / units.shape[1])
    return mean + np.sqrt(1.0 - h2) * centred, h2 * C


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


__all__ = ["ParticleBelief", "joined", "largest_of_mixture"]
