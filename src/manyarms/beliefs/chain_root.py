"""A diffusion chain as a root: dTS with latents shared by all actions (thesis, Chapter 4).

The leaves hang on m = f_1(psi_1) with W_a = I and Sigma_a = Sigma_1. Their evidence about m is additive, and a row changes it
by a rank-one term; the chain above it, L small matrices, is worked out anew when the next draw needs it.
"""

from __future__ import annotations

from typing import Self

import numpy as np

from manyarms._base import linalg
from manyarms._base.typing import AnyArray, Array, Spec, loose
from manyarms.beliefs import saved_state
from manyarms.beliefs.messages import Chain, ChainConditionals
from manyarms.beliefs.roots import ROOTS, Root
from manyarms.priors.diffusion import DiffusionPrior

MOMENT_DRAWS = 4096


@ROOTS.register("chain")
class ChainRoot(Root):
    """m = f_1(psi_1) with psi_1 at the end of a chain.

    Linear links: draws, mean and covariance are exact. Other links: draws follow the rule chosen (`messages.py`); mean and
    covariance, which only decisions that do not draw ask for, are moments of 4,096 draws with a fixed seed.
    """

    can_forget = True

    def __init__(self, prior: DiffusionPrior, rule: str = "thesis") -> None:
        self.chain = Chain(prior, rule)
        self.dim = prior.dim
        self._precision = np.zeros((self.dim, self.dim))
        self._information = np.zeros(self.dim)
        self._size: float | None = None  # a number about the prior: made when it is first asked for
        self._forget()

    def _forget(self) -> None:
        self._conditionals: ChainConditionals | None = None
        self._moments: tuple[Array, Array] | None = None

    @property
    def normal(self) -> bool:
        return bool(self.chain.exact)

    def observe(self, u: Array, variance: float, value: float) -> None:
        scaled = u / variance
        self._precision += np.outer(scaled, u)
        self._information += scaled * value
        self._forget()

    def learn(self, precision: Array, information: Array) -> None:
        self._precision += precision
        self._information += information
        self._forget()

    def forget(self) -> None:
        self._precision, self._information = np.zeros_like(self._precision), np.zeros_like(self._information)
        self._forget()

    def inform(self, information: Array) -> None:
        self._information += information
        self._forget()

    def draw(self, rng: np.random.Generator, n: int) -> Array:
        conditionals = self._conditionals
        if conditionals is None:
            conditionals = self._conditionals = self.chain.up(self._precision[None], self._information[None])
        return self.chain.down(conditionals, rng, n)

    def mean(self) -> Array:
        return self._both()[0]

    def factor(self) -> Array:
        return self._both()[1]

    def _both(self) -> tuple[Array, Array]:
        moments = self._moments
        if moments is None:
            moments = self._moments = self._exact_moments() if self.chain.exact else self._drawn_moments()
        return moments

    def size(self) -> float:
        if self._size is None:
            self._size = float(np.trace(self.chain.prior.centre_moments(draws=1000)[1]))
        return self._size

    def _exact_moments(self) -> tuple[Array, Array]:
        """The same posterior by marginalisation: m ~ N(0, Omega), evidence (G, B); Omega may be singular.

        With Omega = C C^T: covariance C (I + C^T G C)^-1 C^T, mean that times B.
        """
        prior = self.chain.prior
        values, vectors = np.linalg.eigh(prior.marginal().covariance - prior.covariances[0])
        C = vectors * np.sqrt(np.maximum(values, 0.0))
        factor = linalg.evidence_factor(C, self._precision)
        return factor @ (factor.T @ self._information), factor

    def _drawn_moments(self) -> tuple[Array, Array]:
        draws = self.draw(np.random.default_rng(0), MOMENT_DRAWS)
        mean = draws.mean(axis=0)
        _, R = np.linalg.qr((draws - mean) / np.sqrt(len(draws) - 1))
        return mean, R.T

    def options(self) -> Spec:
        return {"rule": self.chain.rule, "links": self.chain.prior.link_kinds}

    def arrays(self) -> dict[str, AnyArray]:
        return {**self.chain.prior.arrays(), "precision": self._precision, "information": self._information}

    @classmethod
    def restored(cls, options: Spec, arrays: dict[str, AnyArray]) -> Self:
        told = loose(options)
        root = cls(DiffusionPrior.restored(told["links"], arrays, actions=1, shared=True), told["rule"])
        saved_state.check_like(root.arrays(), arrays, "precision")
        root._precision, root._information = arrays["precision"], arrays["information"]
        return root


__all__ = ["ChainRoot"]
