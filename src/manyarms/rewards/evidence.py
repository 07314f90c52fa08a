"""How probable a log's rewards are under a prior, everything integrated out: the marginal likelihood, with its gradient.

    m ~ N(mu, s1 Sigma),    theta_a | m ~ N(W_a m, s0 Sigma_a),    r = x^T theta_a + noise of variance t

Per action only G = sum x x^T, B = sum r x and the number of rows are needed, and of all rows n and sum r^2. With C C^T = Sigma_a
and the eigenvectors U and eigenvalues l_i of C^T G C, everything about an action is diagonal: let D_i = t + s0 l_i,
b = U^T C^T B and M = U^T C^-1 W_a (rows M_i). Then

    log p(rewards) = - n/2 log(2 pi t) - sum r^2 / (2 t)
                     + sum_(a,i) [- 1/2 log(D_i / t) + s0 b_i^2 / (2 t D_i)]                       theta_a integrated out
                     - 1/2 log|s1 Sigma| - mu^T Sigma^-1 mu / (2 s1) - 1/2 log|P| + 1/2 h^T P^-1 h     m integrated out

    P = Sigma^-1 / s1 + sum_(a,i) (l_i / D_i) M_i^T M_i        h = Sigma^-1 mu / s1 + sum_(a,i) (b_i / D_i) M_i^T

which are the latent posterior's precision and information (thesis, Section 6.3.2). With m_hat = P^-1 h, u_i = M_i m_hat and
q_i = M_i P^-1 M_i^T + u_i^2 the derivatives are

    d/dt   - n/(2t) + sum r^2/(2t^2) + sum [1/(2t) - 1/(2 D) - s0 b^2 (D + t)/(2 t^2 D^2) + l q/(2 D^2) - u b/D^2]
    d/ds0  sum [- l/(2 D) + b^2/(2 D^2) + l^2 q/(2 D^2) - u b l/D^2]
    d/ds1  - d'/(2 s1) + [tr(Sigma^-1 P^-1) + (m_hat - mu)^T Sigma^-1 (m_hat - mu)] / (2 s1^2)

One evaluation costs one product of all M with themselves. A known root (independent actions) has u_i = (U^T C^-1 mu_a)_i and
q_i = u_i^2, and its part is sum [u b/D - l u^2/(2 D)]. For a GLM, G and B are those of the Gaussian that stands for
an action's likelihood, expanded at p (likelihoods/base.py), t is 1, and the first line is l(p) - B^T p + p^T G p / 2.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from manyarms._base import linalg
from manyarms._base.typing import Array, Ints
from manyarms.beliefs import Belief
from manyarms.beliefs.belief import Rounds
from manyarms.beliefs.sums import Sums, batches
from manyarms.errors import InvalidInput

CACHED = 1 << 25  # numbers in the rows M that are cached between evaluations; more are computed anew each time
AT_A_TIME = 1 << 21  # numbers in work at once


@dataclass(frozen=True, eq=False)
class Statistics:
    """All that the evidence needs of a log. G packed (P, d(d+1)/2), B (P, d), of the actions `ids` (P,).

    rows n and squares sum r^2 for linear rewards; for a GLM rows is 0, and `constant` has the first line.
    """

    ids: Ints
    G: Array
    B: Array
    rows: int
    squares: float
    constant: float = 0.0


def statistics(chunks: Iterable[Rounds], belief: Belief) -> Statistics:
    """The sums of a log for a belief that has seen nothing; the belief of a GLM learns the log on the way."""
    if belief.likelihood.exact:
        sums, rows, squares = Sums(belief.dim, belief.catalogue.size), 0, 0.0
        for X, actions, rewards in batches(chunks, belief.catalogue.size):
            sums.add(X, actions, rewards)
            rows += len(rewards)
            squares += float(rewards @ rewards)
        return Statistics(sums.ids, np.ascontiguousarray(sums.G), np.ascontiguousarray(sums.B), rows, squares)
    likelihood = belief.likelihood
    belief.fold(chunks)
    state = belief.arrays()
    G, B, modes = state["leaves.G"].copy(), state["leaves.B"].copy(), state["glm.modes"]
    score = np.einsum("nd,nd->n", state["glm.X"], np.repeat(modes, state["glm.lengths"], axis=0))
    quadratic = np.vdot(belief.leaves.packing.bilinear(modes, modes), G)
    constant = float(state["glm.r"] @ score - likelihood.potential(score).sum() - np.vdot(modes, B) + 0.5 * quadratic)
    return Statistics(state["leaves.played"].copy(), G, B, 0, 0.0, constant)


class Evidence:
    """The log marginal likelihood of a log as a function of (t, s0, s1), for the shapes of a prior."""

    def __init__(self, statistics: Statistics, belief: Belief) -> None:
        """`belief` gives the prior's shapes: mu, Sigma, W_a and Sigma_a; what it may have learned is not used."""
        root, leaves = belief.root, belief.leaves
        prior = root.gaussian_prior()
        if prior is None:
            raise InvalidInput(
                "structure", f"a {type(root).__name__}", "independent actions or one Gaussian latent vector"
            )
        self.statistics = statistics
        self.mixing = leaves.mixing
        self.dim = leaves.dim
        self.known = root.known
        ids, pack = statistics.ids, leaves.packing
        self.eigenvalues = np.empty((len(ids), self.dim))
        self.b = np.empty((len(ids), self.dim))
        self._towards = np.empty((len(ids), self.dim, self.dim))  # U^T C^-1
        for some in self._blocks(self.dim):
            C = np.linalg.cholesky(leaves.prior_covariance(ids[some]))
            middle = np.swapaxes(C, 1, 2) @ pack.unpack(statistics.G[some]) @ C
            values, U = np.linalg.eigh((middle + np.swapaxes(middle, 1, 2)) / 2)
            self.eigenvalues[some] = np.maximum(values, 0.0)
            turned = np.swapaxes(U, 1, 2)
            self.b[some] = np.einsum("aij,aj->ai", turned @ np.swapaxes(C, 1, 2), statistics.B[some])
            self._towards[some] = turned @ np.linalg.inv(C)
        self.mean, covariance = prior
        if self.known:
            self._u = np.einsum("aij,aj->ai", self._towards, self.mixing.apply(ids, self.mean)) if len(ids) else self.b
            return
        self.precision = linalg.inverse(covariance)
        self._log_determinant = float(np.linalg.slogdet(covariance)[1])
        self._cache: list[Array] | None = None
        if len(ids) * self.dim * len(self.mean) <= CACHED:
            self._cache = [self._make(some) for some in self._blocks(len(self.mean))]

    def _blocks(self, width: int) -> Iterator[slice]:
        step = max(1, AT_A_TIME // (self.dim * max(width, self.dim)))
        for start in range(0, len(self.statistics.ids), step):
            yield slice(start, start + step)

    def _make(self, some: slice) -> Array:
        """(actions x d, d') the rows M_i of some actions."""
        ids, towards = self.statistics.ids[some], self._towards[some]
        rows = [self.mixing.lift_all(ids, towards[:, i, :]) for i in range(self.dim)]
        return np.ascontiguousarray(np.stack(rows, axis=1)).reshape(len(ids) * self.dim, -1)

    def _rows(self) -> Iterator[tuple[slice, Array]]:
        for number, some in enumerate(self._blocks(len(self.mean))):
            yield some, self._make(some) if self._cache is None else self._cache[number]

    def __call__(self, noise_variance: float, action_scale: float, latent_scale: float = 1.0) -> tuple[float, Array]:
        """log p(rewards), and its derivatives by the logarithms of t, s0 and s1, (3,)."""
        t, s = noise_variance, action_scale
        data, l, b = self.statistics, self.eigenvalues, self.b
        D = t + s * l
        value = data.constant - 0.5 * float(np.log1p(s * l / t).sum()) + 0.5 * s / t * float((b**2 / D).sum())
        by_t = 0.5 * float((1 / t - 1 / D - s * b**2 * (D + t) / (t**2 * D**2)).sum())
        by_s = 0.5 * float((b**2 / D**2 - l / D).sum())
        value -= 0.5 * data.rows * math.log(2 * math.pi * t) + 0.5 * data.squares / t
        by_t += 0.5 * (data.squares / t**2 - data.rows / t)
        more, u, q, by_latent = self._known_root(D) if self.known else self._latent_root(D, latent_scale)
        by_t += float(((0.5 * l * q - u * b) / D**2).sum())
        by_s += float((l * (0.5 * l * q - u * b) / D**2).sum())
        return value + more, np.array([t * by_t, s * by_s, latent_scale * by_latent])

    def _known_root(self, D: Array) -> tuple[float, Array, Array, float]:
        l, b, u = self.eigenvalues, self.b, self._u
        return float(((u * b - 0.5 * l * u**2) / D).sum()), u, u**2, 0.0

    def _latent_root(self, D: Array, scale: float) -> tuple[float, Array, Array, float]:
        weight, pull = self.eigenvalues / D, self.b / D
        P, h = self.precision / scale, self.precision @ self.mean / scale
        for some, M in self._rows():
            P = P + (M * weight[some].reshape(-1, 1)).T @ M
            h = h + pull[some].ravel() @ M
        factor = linalg.factor_from_precision((P + P.T) / 2)
        latent = factor @ (h @ factor)
        size = len(latent)
        value = -0.5 * (
            size * math.log(scale) + self._log_determinant + float(self.mean @ self.precision @ self.mean) / scale
        )
        value += float(np.log(np.abs(np.diag(factor))).sum()) + 0.5 * float(h @ latent)
        u, q = np.empty(D.shape), np.empty(D.shape)
        for some, M in self._rows():
            mine = M @ latent
            u[some] = mine.reshape(-1, self.dim)
            q[some] = (np.square(M @ factor).sum(axis=1) + mine**2).reshape(-1, self.dim)
        away = latent - self.mean
        spread = float(np.vdot(self.precision @ factor, factor))  # tr(Sigma^-1 P^-1)
        by_scale = -0.5 * size / scale + 0.5 * (spread + float(away @ self.precision @ away)) / scale**2
        return value, u, q, by_scale


__all__ = ["Evidence", "Statistics", "statistics"]
