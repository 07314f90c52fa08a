"""A plain, slow and obviously right reference: the joint Gaussian over (m, theta_1 ... theta_K), written out in full.

    m ~ N(mu, Sigma),    theta_a | m ~ N(W_a m, Sigma_a),    r = x^T theta_a + noise

Everything that the beliefs keep in pieces is one mean vector and one covariance matrix here, conditioned on all rows at
once by the textbook formula; and the Thompson sampler draws the root and every theta_a, and takes the largest x^T theta_a.
Beside it: random cases in every form that a belief can have, and the tests that compare two samples.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from manyarms._base.typing import Array, Ints
from manyarms.agents.agent import Agent
from manyarms.agents.decisions import Thompson
from manyarms.beliefs import (
    Belief,
    CommonMixing,
    FactoredRoot,
    GaussianRoot,
    IdentityMixing,
    KnownRoot,
    Leaves,
    Linear,
    MixingMatrices,
    MixingWeights,
    Root,
)
from manyarms.beliefs.mixing import Mixing

MIXINGS = ("identity", "common", "weights", "one-hot", "matrices")

Rows = tuple[Array, Ints, Array]  # contexts (n, d), actions (n,), rewards (n,)


@dataclass
class Joint:
    """N(mean, covariance) of (m, theta_1, ..., theta_K) laid end to end."""

    mean: Array
    covariance: Array
    root_dim: int
    dim: int

    @classmethod
    def prior(cls, root_mean: Array, root_covariance: Array, W: Array, Sigma: Array) -> Joint:
        """From the parts: W (K, d, p) and Sigma (K, d, d)."""
        K, d, p = W.shape
        stacked = np.concatenate([np.eye(p), W.reshape(K * d, p)])  # everything is `stacked @ m` plus its own noise
        covariance = stacked @ root_covariance @ stacked.T
        for a in range(K):
            own = slice(p + a * d, p + (a + 1) * d)
            covariance[own, own] += Sigma[a]
        return cls(stacked @ root_mean, covariance, p, d)

    @property
    def actions(self) -> int:
        return (len(self.mean) - self.root_dim) // self.dim

    def _of(self, a: int) -> slice:
        start = self.root_dim + a * self.dim
        return slice(start, start + self.dim)

    def given(self, rows: Rows, noise: float) -> Joint:
        """Conditioned on rewards r_i = x_i^T theta_{a_i} + N(0, noise^2)."""
        X, A, r = rows
        H = np.zeros((len(A), len(self.mean)))
        for i, (x, a) in enumerate(zip(X, A.tolist(), strict=True)):
            H[i, self._of(a)] = x
        seen = H @ self.covariance @ H.T + noise**2 * np.eye(len(A))
        gain = np.linalg.solve(seen, H @ self.covariance).T
        covariance = self.covariance - gain @ H @ self.covariance
        return Joint(self.mean + gain @ (r - H @ self.mean), (covariance + covariance.T) / 2, self.root_dim, self.dim)

    def given_gaussians(self, G: Array, B: Array) -> Joint:
        """Times exp(-theta_a^T G_a theta_a / 2 + B_a^T theta_a) for every action: G (K, d, d), B (K, d)."""
        precision = np.linalg.inv(self.covariance)
        information = precision @ self.mean
        for a in range(self.actions):
            precision[self._of(a), self._of(a)] += G[a]
            information[self._of(a)] += B[a]
        covariance = np.linalg.inv(precision)
        return Joint(covariance @ information, covariance, self.root_dim, self.dim)

    def root(self) -> tuple[Array, Array]:
        """Mean and covariance of m."""
        p = self.root_dim
        return self.mean[:p], self.covariance[:p, :p]

    def action(self, a: int) -> tuple[Array, Array]:
        """Mean and covariance of theta_a, everything else integrated out."""
        own = self._of(a)
        return self.mean[own], self.covariance[own, own]

    def conditional(self, a: int) -> tuple[Array, Array, Array]:
        """theta_a given m is N(intercept + slope m, covariance): the three of them."""
        own, p = self._of(a), self.root_dim
        slope: Array = np.asarray(np.linalg.solve(self.covariance[:p, :p], self.covariance[:p, own]).T)
        covariance = self.covariance[own, own] - slope @ self.covariance[:p, own]
        return self.mean[own] - slope @ self.mean[:p], slope, covariance

    def with_root(self, mean: Array, covariance: Array) -> Joint:
        """The same conditionals theta_a | m on another law of the root, as a factored root makes it."""
        parts = [self.conditional(a) for a in range(self.actions)]
        W, Sigma = np.stack([s for _, s, _ in parts]), np.stack([S for _, _, S in parts])
        changed = Joint.prior(mean, covariance, W, Sigma)
        changed.mean[self.root_dim :] += np.concatenate([c for c, _, _ in parts])
        return changed

    def scores(self, x: Array) -> tuple[Array, Array]:
        """Mean (K,) and covariance (K, K) of the scores x^T theta_a; x may be (K, d), a context for each action."""
        pick = np.zeros((self.actions, len(self.mean)))
        for a, z in enumerate(np.broadcast_to(x, (self.actions, self.dim))):
            pick[a, self._of(a)] = z
        return pick @ self.mean, pick @ self.covariance @ pick.T

    def thompson(self, x: Array, draws: int, rng: np.random.Generator, among: Ints | None = None, k: int = 1) -> Ints:
        """(draws, k): the textbook sampler. All of (m, theta) is drawn, and the k largest scores are taken in order."""
        values, vectors = np.linalg.eigh(self.covariance)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        drawn = self.mean + rng.standard_normal((draws, len(self.mean))) @ root.T
        scores = (drawn[:, self.root_dim :].reshape(draws, self.actions, self.dim) * x).sum(axis=2)
        if among is None:
            among = np.arange(self.actions)
        return np.asarray(among[np.argsort(-scores[:, among], axis=1)[:, :k]], dtype=np.int64)


@dataclass
class Case:
    """A belief before any data, and the same thing in full."""

    belief: Belief
    joint: Joint
    noise: float

    def agent(self, seed: int = 0) -> Agent:
        return Agent(self.belief, Thompson(), seed)


def covariance_matrix(rng: np.random.Generator, d: int, scale: float = 1.0) -> Array:
    """A random well-conditioned covariance."""
    A = rng.standard_normal((d, d))
    return scale * (A @ A.T / d + 0.5 * np.eye(d))


def random_case(
    seed: int,
    mixing: str = "weights",
    root: str = "gaussian",
    *,
    shared: bool = True,
    actions: int = 5,
    dim: int = 2,
    noise: float = 0.7,
    factored: str | None = None,
    spread: float = 1.0,
) -> Case:
    """A random prior of the named form. `spread` scales Sigma_a; `factored` takes the rule of a factored root."""
    rng = np.random.default_rng([seed, 1])
    own = np.stack([covariance_matrix(rng, dim, spread) for _ in range(actions)])
    if shared:
        own = np.broadcast_to(own[0], own.shape)
    effects = 3
    if mixing == "identity":
        form: Mixing = IdentityMixing()
        W = np.broadcast_to(np.eye(dim), (actions, dim, dim))
    elif mixing == "common":
        matrix = rng.standard_normal((dim, dim + 1))  # p != d on purpose
        form, W = CommonMixing(matrix), np.broadcast_to(matrix, (actions, dim, dim + 1))
    elif mixing in ("weights", "one-hot"):
        b = rng.uniform(-1, 1, (actions, effects))
        if mixing == "one-hot":
            b = np.eye(effects)[rng.integers(effects, size=actions)]
        form, W = MixingWeights(b), np.stack([np.kron(row, np.eye(dim)) for row in b])
    else:
        W = rng.standard_normal((actions, dim, dim + 1))
        form = MixingMatrices(W)
    p = W.shape[2]
    mean: Array = rng.standard_normal(int(p))
    above: Root
    if root == "known":
        covariance, above = np.zeros((p, p)), KnownRoot(mean)
    else:
        covariance = covariance_matrix(rng, p)
        above = GaussianRoot(mean, covariance)
        if factored is not None:
            above = FactoredRoot(mean, covariance, effects, factored)
    leaves = Leaves(form, own[0] if shared else own, actions)
    return Case(Belief(above, leaves, Linear(noise)), Joint.prior(mean, covariance, W, own), noise)


def random_rows(seed: int, n: int, dim: int, actions: Ints) -> Rows:
    """Rows in which some of `actions` come several times."""
    rng = np.random.default_rng([seed, 2])
    return rng.uniform(-1, 1, (n, dim)), rng.choice(actions, size=n), rng.standard_normal(n) + 0.5


def covariance_of_root(belief: Belief) -> Array:
    """Posterior covariance of the root."""
    factor = belief.root.factor()
    return np.asarray(factor @ factor.T)


def same_law(first: Ints, second: Ints) -> float:
    """p-value of the hypothesis that two samples of labels (or of rows of labels) have one distribution.

    Chi-square test of homogeneity; labels seen fewer than 20 times in both samples together are pooled.
    """
    both = np.concatenate([first, second]).reshape(len(first) + len(second), -1)
    base = int(both.max()) + 2  # -1 may stand for "nobody"
    codes = (both + 1) @ base ** np.arange(both.shape[1])
    labels, inverse = np.unique(codes, return_inverse=True)
    table = np.stack([np.bincount(part, minlength=len(labels)) for part in np.split(inverse, [len(first)])])
    often = table.sum(axis=0) >= 20
    pooled = np.column_stack([table[:, often], table[:, ~often].sum(axis=1)])
    pooled = pooled[:, pooled.sum(axis=0) > 0]
    if pooled.shape[1] == 1:
        return 1.0
    return float(stats.chi2_contingency(pooled).pvalue)


def matches(counts: Ints, probabilities: Array) -> float:
    """p-value of the hypothesis that labels were drawn with these probabilities."""
    rare = probabilities * counts.sum() < 5
    seen = np.append(counts[~rare], counts[rare].sum())
    expected = np.append(probabilities[~rare], probabilities[rare].sum()) * counts.sum()
    keep = expected > 0
    assert not seen[~keep].any()
    if keep.sum() == 1:
        return 1.0
    return float(stats.chisquare(seen[keep], expected[keep] * seen[keep].sum() / expected[keep].sum()).pvalue)
