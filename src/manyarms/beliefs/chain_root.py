"""A diffusion chain as a root: dTS with latents shared by all actions (thesis, lines 1278-1523).

The leaves hang on m = f_1(psi_1) with W_a = I and Sigma_a = Sigma_1. Their evidence about m is additive, and a row changes it
by a rank-one term; the chain above it, L small matrices, is worked out anew when the next draw needs it.
"""

from __future__ import annotations

import numpy as np

from manyarms._base.typing import AnyArray, Array
from manyarms.beliefs.messages import Chain, Layers
from manyarms.priors.diffusion import DiffusionPrior
from manyarms.priors.links import restore_link

MOMENT_DRAWS = 4096


class ChainRoot:
    """m = f_1(psi_1) with psi_1 at the end of a chain.

    Linear links: draws, mean and covariance are exact. Other links: draws follow the rule chosen (`messages.py`); mean and
    covariance, which only decisions that do not draw ask for, are moments of 4,096 draws with a fixed seed.
    """

    kind = "chain"
    known = False

    def __init__(self, prior: DiffusionPrior, rule: str = "thesis") -> None:
        self.chain = Chain(prior, rule)
        self.dim = prior.dim
        self._precision = np.zeros((self.dim, self.dim))
        self._information = np.zeros(self.dim)
        self._forget()

    def _forget(self) -> None:
        self._layers: Layers | None = None
        self._moments: tuple[Array, Array] | None = None

    def observe(self, u: Array, variance: float, value: float) -> None:
        scaled = u / variance
        self._precision += np.outer(scaled, u)
        self._information += scaled * value
        self._forget()

    def learn(self, precision: Array, information: Array) -> None:
        self._precision += precision
        self._information += information
        self._forget()

    def draw(self, rng: np.random.Generator, n: int) -> Array:
        if self._layers is None:
            self._layers = self.chain.up(self._precision[None], self._information[None])
        return self.chain.down(self._layers, rng, n)

    def mean(self) -> Array:
        return self._both()[0]

    def factor(self) -> Array:
        return self._both()[1]

    def _both(self) -> tuple[Array, Array]:
        if self._moments is None:
            self._moments = self._exact_moments() if self.chain.exact else self._drawn_moments()
        return self._moments

    def _exact_moments(self) -> tuple[Array, Array]:
        """The same posterior by marginalisation: m ~ N(0, Omega), evidence (G, B); Omega may be singular.

        With Omega = C C^T: covariance C (I + C^T G C)^-1 C^T, mean that times B.
        """
        prior = self.chain.prior
        values, vectors = np.linalg.eigh(prior.marginal().covariance - prior.covariances[0])
        C = vectors * np.sqrt(np.maximum(values, 0.0))
        lower = np.linalg.cholesky(np.eye(self.dim) + C.T @ self._precision @ C)
        factor = np.linalg.solve(lower, C.T).T
        return factor @ (factor.T @ self._information), factor

    def _drawn_moments(self) -> tuple[Array, Array]:
        draws = self.draw(np.random.default_rng(0), MOMENT_DRAWS)
        mean = draws.mean(axis=0)
        _, R = np.linalg.qr((draws - mean) / np.sqrt(len(draws) - 1))
        return mean, R.T

    def options(self) -> dict[str, object]:
        return {"rule": self.chain.rule, "links": [link.kind for link in self.chain.prior.links]}

    def arrays(self) -> dict[str, AnyArray]:
        return {**chain_arrays(self.chain.prior), "precision": self._precision, "information": self._information}

    def restore(self, arrays: dict[str, AnyArray]) -> None:
        self._precision, self._information = arrays["precision"], arrays["information"]
        self._forget()


def chain_arrays(prior: DiffusionPrior) -> dict[str, AnyArray]:
    """The arrays of a diffusion prior, links included."""
    out: dict[str, AnyArray] = {"covariances": prior.covariances}
    for i, link in enumerate(prior.links):
        out.update({f"link{i}.{name}": array for name, array in link.arrays().items()})
    return out


def restore_chain(kinds: list[str], arrays: dict[str, AnyArray], actions: int, shared: bool) -> DiffusionPrior:
    """The diffusion prior that `chain_arrays` describes."""
    links = []
    for i, kind in enumerate(kinds):
        prefix = f"link{i}."
        links.append(restore_link(kind, {n[len(prefix) :]: a for n, a in arrays.items() if n.startswith(prefix)}))
    covariances = arrays["covariances"]
    return DiffusionPrior(actions, int(covariances.shape[1]), links, list(covariances), shared)
