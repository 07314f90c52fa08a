"""The root of a belief: what all actions share.

A root takes evidence from below and gives draws, a mean and a covariance. Evidence comes in two forms:

- a row: "u^T m was seen as `value`, with `variance`". For linear rewards one observation (x, a, r) is exactly this, with
  u = W_a^T Sigma_a^-1 S_a x, value = r - x^T c_a and variance = sigma^2 + x^T S_a x (see leaves.py), a rank-one change;
- a block: changes of the precision and of the information vector, for batches and for refitted GLM leaves.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self, cast

import numpy as np

from manyarms._base import linalg, validate
from manyarms._base.registry import Registry
from manyarms._base.typing import AnyArray, Array
from manyarms.errors import InvalidInput


class Root(ABC):
    """What a belief needs of its root."""

    known: ClassVar[bool] = False
    """A known root has no uncertainty and takes no evidence."""

    dim: int

    @property
    def kind(self) -> str:
        """The name it is registered and saved under."""
        return ROOTS.name_of(type(self))

    @abstractmethod
    def observe(self, u: Array, variance: float, value: float) -> None:
        """Learn from one row."""

    @abstractmethod
    def learn(self, precision: Array, information: Array) -> None:
        """Learn from a block."""

    @abstractmethod
    def draw(self, rng: np.random.Generator, n: int) -> Array:
        """(n, p) independent draws from the posterior."""

    @abstractmethod
    def mean(self) -> Array:
        """(p,) posterior mean."""

    @abstractmethod
    def factor(self) -> Array:
        """(p, p) matrix S with S S^T the posterior covariance."""

    def gaussian_prior(self) -> tuple[Array, Array] | None:
        """Prior mean (p,) and covariance (p, p) where the root is one Gaussian vector; None where it is anything else."""
        return None

    def options(self) -> dict[str, Any]:
        """What, besides arrays, is needed to build it again."""
        return {}

    @abstractmethod
    def arrays(self) -> dict[str, AnyArray]:
        """Its state."""

    @classmethod
    @abstractmethod
    def restored(cls, options: dict[str, Any], arrays: dict[str, AnyArray]) -> Self:
        """The root that `options` and `arrays` describe."""


ROOTS: Registry[type[Root]] = Registry("root", package="manyarms.beliefs", group="manyarms.roots")


def restore_root(spec: dict[str, Any], arrays: dict[str, AnyArray]) -> Root:
    """The root that its kind, options and arrays describe."""
    options = dict(spec)
    return ROOTS[options.pop("kind")].restored(options, arrays)


@ROOTS.register("known")
class KnownRoot(Root):
    """m is known: the actions are independent (LinTS, LinUCB, GLM-TS)."""

    known = True

    def __init__(self, mean: Array) -> None:
        self._mean = validate.as_array("mean", mean, (None,)).copy()
        self.dim = len(self._mean)

    def observe(self, u: Array, variance: float, value: float) -> None:
        pass

    def learn(self, precision: Array, information: Array) -> None:
        pass

    def draw(self, rng: np.random.Generator, n: int) -> Array:
        return np.broadcast_to(self._mean, (n, self.dim))

    def mean(self) -> Array:
        return self._mean

    def factor(self) -> Array:
        return np.zeros((self.dim, self.dim))

    def gaussian_prior(self) -> tuple[Array, Array] | None:
        return self._mean, np.zeros((self.dim, self.dim))

    def arrays(self) -> dict[str, AnyArray]:
        return {"mean": self._mean}

    @classmethod
    def restored(cls, options: dict[str, Any], arrays: dict[str, AnyArray]) -> Self:
        return cls(arrays["mean"])


@ROOTS.register("gaussian")
class GaussianRoot(Root):
    """m ~ N(mean, covariance), updated exactly (thesis, proposition at Section 3.2.2).

    State: precision and information (additive, so that evidence can be exchanged), and beside them the mean and a square
    root S of the covariance, which rows update in place in O(p^2); a block only marks them to be factorised at the next use.
    """

    def __init__(self, mean: Array, covariance: Array) -> None:
        self._prior_mean = validate.as_array("mean", mean, (None,)).copy()
        self.dim = len(self._prior_mean)
        self._prior_covariance = validate.one_covariance("covariance", covariance, self.dim)
        self._precision = linalg.inverse(self._prior_covariance)
        self._information = self._precision @ self._prior_mean
        self._factor = cast(Array, np.linalg.cholesky(self._prior_covariance))
        self._mean = self._prior_mean.copy()
        self._stale = False

    def observe(self, u: Array, variance: float, value: float) -> None:
        self._refresh()
        linalg.condition_factor(self._factor, self._mean, u, variance, value)
        scaled = u / variance
        self._precision += np.outer(scaled, u)
        scaled *= value
        self._information += scaled

    def learn(self, precision: Array, information: Array) -> None:
        self._precision += precision
        self._information += information
        self._stale = True

    def _refresh(self) -> None:
        if self._stale:
            self._factor = linalg.factor_from_precision(self._precision)
            self._mean = self._factor @ (self._information @ self._factor)
            self._stale = False

    def draw(self, rng: np.random.Generator, n: int) -> Array:
        self._refresh()
        return self._mean + rng.standard_normal((n, self.dim)) @ self._factor.T

    def mean(self) -> Array:
        self._refresh()
        return self._mean

    def factor(self) -> Array:
        self._refresh()
        return self._factor

    def precision(self) -> Array:
        """Posterior precision."""
        return self._precision

    def gaussian_prior(self) -> tuple[Array, Array] | None:
        return self._prior_mean, self._prior_covariance

    def arrays(self) -> dict[str, AnyArray]:
        self._refresh()
        return {
            "prior_mean": self._prior_mean,
            "prior_covariance": self._prior_covariance,
            "precision": self._precision,
            "information": self._information,
            "factor": self._factor,
            "mean": self._mean,
        }

    @classmethod
    def restored(cls, options: dict[str, Any], arrays: dict[str, AnyArray]) -> Self:
        root = cls(arrays["prior_mean"], arrays["prior_covariance"])
        root._precision, root._information = arrays["precision"], arrays["information"]
        root._factor, root._mean = arrays["factor"], arrays["mean"]
        return root


@ROOTS.register("factored")
class FactoredRoot(Root):
    """L effects drawn independently of each other: the factored variants of meTS (thesis, Section 3.4.1).

    `mean-field`: the closest product of Gaussians to the exact posterior. Its mean is the exact mean, and effect l has
    the inverse of the exact precision's diagonal block as covariance; so it keeps the exact root beside it, and saves only
    the joint draw.
    `blockwise`: cross terms are dropped from precision *and* information, so that nothing larger than d x d is
    held: L times less memory, L^2 times less time, and a mean that is no longer the exact one. With many actions the
    dropped terms matter; docs/methods.md shows how much.
    """

    def __init__(self, mean: Array, covariance: Array, effects: int, rule: str = "mean-field") -> None:
        if not isinstance(rule, str) or rule not in ("mean-field", "blockwise"):
            raise InvalidInput("factored", validate.describe(rule), "'mean-field' or 'blockwise'")
        self.rule = rule
        exact = GaussianRoot(mean, covariance)
        self.exact = exact if rule == "mean-field" else None
        self.dim = exact.dim
        self.effects = validate.count("effects", effects)
        if self.dim % self.effects:
            raise InvalidInput("effects", effects, f"a divisor of the root's length {self.dim}")
        self.block = self.dim // self.effects
        self._precision = self._blocks(exact.precision())
        self._information = np.einsum("lij,lj->li", self._precision, exact.mean().reshape(self.effects, self.block))
        self._cached: tuple[Array, Array] | None = None

    def _blocks(self, matrix: Array) -> Array:
        four = matrix.reshape(self.effects, self.block, self.effects, self.block)
        return cast(Array, np.einsum("lilj->lij", four).copy())

    def observe(self, u: Array, variance: float, value: float) -> None:
        parts = u.reshape(self.effects, self.block)
        self._precision += parts[:, :, None] * (parts / variance)[:, None, :]
        if self.exact is not None:
            self.exact.observe(u, variance, value)
        else:
            self._information += parts * (value / variance)
        self._cached = None

    def learn(self, precision: Array, information: Array) -> None:
        self._precision += self._blocks(precision)
        if self.exact is not None:
            self.exact.learn(precision, information)
        else:
            self._information += information.reshape(self.effects, self.block)
        self._cached = None

    def _posterior(self) -> tuple[Array, Array]:
        """(L, d) means and (L, d, d) factors of the effects."""
        if self._cached is None:
            factor = linalg.factor_from_precision(self._precision)
            if self.exact is not None:
                mean = self.exact.mean().reshape(self.effects, self.block)
            else:
                mean = np.einsum("lij,lkj,lk->li", factor, factor, self._information)
            self._cached = (mean, factor)
        return self._cached

    def draw(self, rng: np.random.Generator, n: int) -> Array:
        mean, factor = self._posterior()
        z = rng.standard_normal((n, self.effects, self.block, 1))
        return cast(Array, (mean + np.matmul(factor, z)[..., 0]).reshape(n, self.dim))

    def mean(self) -> Array:
        return self._posterior()[0].ravel()

    def factor(self) -> Array:
        full = np.zeros((self.effects, self.block, self.effects, self.block))
        which = np.arange(self.effects)
        full[which, :, which, :] = self._posterior()[1]
        return full.reshape(self.dim, self.dim)

    def options(self) -> dict[str, Any]:
        return {"effects": self.effects, "rule": self.rule}

    def arrays(self) -> dict[str, AnyArray]:
        own: dict[str, AnyArray] = {"block_precision": self._precision, "block_information": self._information}
        return own if self.exact is None else {**own, **self.exact.arrays()}

    @classmethod
    def restored(cls, options: dict[str, Any], arrays: dict[str, AnyArray]) -> Self:
        precision, information = arrays["block_precision"], arrays["block_information"]
        if options["rule"] == "mean-field":
            root = cls(arrays["prior_mean"], arrays["prior_covariance"], **options)
            root.exact = GaussianRoot.restored({}, arrays)
        else:  # its prior has been folded into its blocks: any prior of the right size will do
            root = cls(np.zeros(information.size), np.eye(information.size), **options)
        root._precision, root._information = precision, information
        return root


__all__ = ["ROOTS", "FactoredRoot", "GaussianRoot", "KnownRoot", "Root", "restore_root"]
