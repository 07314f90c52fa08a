"""Evidence on its way up a diffusion chain, and draws on their way down.

Let level 0 be f_1(psi_1), the mean of the actions, and let the leaves' evidence about it be a precision G_0 and an information
vector B_0 (what `Leaves` passes to any root). Going up, for l = 1, ..., L, with Sigma = Sigma_(l+1):

    evidence about psi_l          (G_l, B_l) = pull-back of the evidence about f_l(psi_l) through f_l
    psi_l | psi_(l+1), data       N(S_l (Sigma^-1 f_(l+1)(psi_(l+1)) + B_l), S_l),    S_l = (Sigma^-1 + G_l)^-1
    evidence about f_(l+1)        (Sigma^-1 - Sigma^-1 S_l Sigma^-1, Sigma^-1 S_l B_l)

(thesis, Section 4.2.1 and Appendix B.1.2; f_(L+1) = 0). Only the pull-back differs:

    exact      linear links, (W^T G W, W^T B): the posterior of the linear-Gaussian chain
    thesis     any links, (G, B) itself: the links are left out on the way up (thesis, Appendix B.2)
    jacobian   any links, linearised at a point p: f(psi) ~ f(p) + J (psi - p) gives (J^T G J, J^T (B - G (f(p) - J p))),
               exact for linear links

With no evidence all three give back the prior. Everything has a leading axis, one chain per entry.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from manyarms._base import linalg, validate
from manyarms._base.typing import Array
from manyarms.beliefs.chain_level import ChainLevel
from manyarms.priors.diffusion import DiffusionPrior

RULES = ("thesis", "jacobian")


@dataclass
class ChainConditionals:
    """Posterior conditionals of n chains: psi_l = towards_l f_(l+1)(psi_(l+1)) + offset_l + factor_l z, by level from 1 to L."""

    towards: Array  # (n, L, d, d): S_l Sigma_(l+1)^-1
    offset: Array  # (n, L, d): S_l B_l
    factor: Array  # (n, L, d, d): S_l = factor factor^T


class Chain:
    """A diffusion prior with what the messages need of it, computed once."""

    def __init__(self, prior: DiffusionPrior, rule: str = "thesis") -> None:
        self.rule = validate.one_of("approximation", rule, RULES)
        self.prior = validate.instance("prior", prior, DiffusionPrior, "a DiffusionPrior")
        self.exact = prior.matrices is not None
        self.precisions = linalg.inverse(prior.covariances)
        self.factors = np.linalg.cholesky(prior.covariances)
        self._levels = [ChainLevel(*pair) for pair in zip(self.factors, self.precisions, strict=True)]

    def up(self, G: Array, B: Array) -> ChainConditionals:
        """ChainConditionals of n chains from their evidence G (n, d, d), B (n, d)."""
        points = self._prior_path() if self.rule == "jacobian" and not self.exact else None
        conditionals = self._up(G, B, points)
        if points is not None:  # linearise once more where the first posterior lies
            conditionals = self._up(G, B, self.path(conditionals))
        return conditionals

    def _up(self, G: Array, B: Array, points: list[Array] | None) -> ChainConditionals:
        n, d, L = len(G), self.prior.dim, self.prior.depth
        conditionals = ChainConditionals(np.empty((n, L, d, d)), np.empty((n, L, d)), np.empty((n, L, d, d)))
        for level in range(1, L + 1):
            G, B = self._pull_back(level, G, B, points)
            if n == 1:
                root, towards, offset, G_up, B_up = self._levels[level].up(G[0], B[0])
                conditionals.towards[0, level - 1] = towards
                conditionals.offset[0, level - 1] = offset
                conditionals.factor[0, level - 1] = root
                G, B = G_up[None], B_up[None]
                continue
            # S = C (I + C^T G C)^-1 C^T with C C^T = Sigma: sound however small or large Sigma is
            root = linalg.evidence_factor(self.factors[level], G)
            S, own = root @ np.swapaxes(root, -1, -2), self.precisions[level][None]
            offset = np.einsum("nij,nj->ni", S, B)
            conditionals.towards[:, level - 1] = linalg.pulls(own, G, S)
            conditionals.offset[:, level - 1] = offset
            conditionals.factor[:, level - 1] = root
            G, B = linalg.told(own, G, B, S, offset)
        return conditionals

    def _pull_back(self, level: int, G: Array, B: Array, points: list[Array] | None) -> tuple[Array, Array]:
        if self.exact:
            assert self.prior.matrices is not None
            W = self.prior.matrices[level - 1]
            return W.T @ G @ W, B @ W
        if points is None:
            return G, B
        link, at = self.prior.links[level - 1], np.broadcast_to(points[level - 1], B.shape)
        J = link.jacobian(at)
        gap = link(at) - np.einsum("nij,nj->ni", J, at)
        left = np.swapaxes(J, -1, -2)
        return left @ G @ J, np.einsum("nij,nj->ni", left, B - np.einsum("nij,nj->ni", G, gap))

    def _prior_path(self) -> list[Array]:
        """psi_1, ..., psi_L of the prior with no noise, (1, d) each."""
        psi = np.zeros((1, self.prior.dim))
        out = [psi]
        for level in range(self.prior.depth - 1, 0, -1):
            psi = self.prior.links[level](psi)
            out.append(psi)
        return out[::-1]

    def path(self, conditionals: ChainConditionals) -> list[Array]:
        """psi_1, ..., psi_L with no noise: the chain of conditional means, (n, d) each."""
        psi = conditionals.offset[:, -1]
        out = [psi]
        for level in range(self.prior.depth - 1, 0, -1):
            psi = np.einsum("nij,nj->ni", conditionals.towards[:, level - 1], self.prior.links[level](psi))
            psi = psi + conditionals.offset[:, level - 1]
            out.append(psi)
        return out[::-1]

    def down(self, conditionals: ChainConditionals, rng: np.random.Generator, n: int) -> Array:
        """(n, d) draws of f_1(psi_1): n from one chain, or one from each of n chains."""
        prior = self.prior
        one = len(conditionals.offset) == 1

        def noisy(level: int, mean: Array) -> Array:
            z = rng.standard_normal((n, prior.dim))
            factor = conditionals.factor[:, level - 1]
            step: Array = z @ factor[0].T if one else np.matmul(factor, z[:, :, None])[:, :, 0]
            return mean + step

        psi = noisy(prior.depth, conditionals.offset[:, -1])
        for level in range(prior.depth - 1, 0, -1):
            mean, towards = prior.links[level](psi), conditionals.towards[:, level - 1]
            mean = mean @ towards[0].T if one else np.matmul(towards, mean[:, :, None])[:, :, 0]
            psi = noisy(level, mean + conditionals.offset[:, level - 1])
        return prior.links[0](psi)
