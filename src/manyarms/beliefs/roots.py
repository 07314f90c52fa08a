"""The root of a belief: what all actions share.

A root takes evidence from below and gives draws, a mean and a covariance. Evidence comes in two forms:

- a row: "u^T m was seen as `value`, with `variance`". For linear rewards one observation (x, a, r) is exactly this, with
  u = W_a^T Sigma_a^-1 S_a x, value = r - x^T c_a and variance = sigma^2 + x^T S_a x (see leaves.py), a rank-one change;
- a block: changes of the precision and of the information vector, for batches and for refitted GLM leaves; or, where the squares
  in a precision would lose digits, many rows at once (folding.py). Of the information alone, where rewards are replaced by others
  (correcting.py).

What is computed when somebody asks is computed aside and then kept in one assignment: readers in several threads may ask at once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self, cast

import numpy as np

from manyarms._base import block_diagonal, linalg, validate
from manyarms._base.registry import Registry
from manyarms._base.typing import AnyArray, Array, Spec
from manyarms.beliefs import saved_state
from manyarms.errors import InvalidInput

ROWS_AT_A_TIME = 1 << 20  # numbers in rows that are folded into a root at once


class Root(ABC):
    """What a belief needs of its root."""

    known: ClassVar[bool] = False
    """A known root has no uncertainty and takes no evidence."""

    can_forget: ClassVar[bool] = False
    """Whether `forget` brings back its prior."""

    dim: int

    @property
    def normal(self) -> bool:
        """Whether its draws are mean + factor z with z standard normal, so that z may be chosen in a clever way."""
        return False

    @property
    def parts(self) -> int:
        """How many parts of it learn apart: `learn` is given a diagonal block for each of several, and the whole for one."""
        return 1

    @property
    def kind(self) -> str:
        """The name it is registered and saved under."""
        return ROOTS.name_of(type(self))

    @abstractmethod
    def observe(self, u: Array, variance: float, value: float) -> None:
        """Learn from one row."""

    @abstractmethod
    def learn(self, precision: Array, information: Array) -> None:
        """Learn from a block: precision (p, p), or (parts, p / parts, p / parts) where there are several, information (p,)."""

    def learn_rows(self, rows: Array, values: Array) -> None:
        """Learn that rows (n, p) times m were seen as values (n,), each with variance 1."""
        self.learn(rows.T @ rows, values @ rows)

    def exchange(self, precision: Array, information: Array) -> None:
        """Learn the difference of a block and one that it has learned, by rows perhaps: precisions of either sign."""
        self.learn(precision, information)

    def forget(self) -> None:
        """Be as before any evidence, where it can."""
        raise InvalidInput("root", type(self).__name__, "a root that can go back to its prior")

    def inform(self, information: Array) -> None:
        """Learn a change of the information (p,) alone."""
        part = self.dim // self.parts
        self.learn(np.zeros((part, part) if self.parts == 1 else (self.parts, part, part)), information)

    def size(self) -> float:
        """A bound on the prior variance of m in any direction, not below it and not far above."""
        factor = self.factor()
        return float(np.vdot(factor, factor))

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

    def options(self) -> Spec:
        """What, besides arrays, is needed to build it again."""
        return {}

    @abstractmethod
    def arrays(self) -> dict[str, AnyArray]:
        """Its state."""

    @classmethod
    @abstractmethod
    def restored(cls, options: Spec, arrays: dict[str, AnyArray]) -> Self:
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

    def inform(self, information: Array) -> None:
        pass

    def draw(self, rng: np.random.Generator, n: int) -> Array:
        return self._mean[None] if n == 1 else np.broadcast_to(self._mean, (n, self.dim))

    def mean(self) -> Array:
        return self._mean

    def size(self) -> float:
        return 0.0

    def factor(self) -> Array:
        return np.zeros((self.dim, self.dim))

    def gaussian_prior(self) -> tuple[Array, Array] | None:
        return self._mean, np.zeros((self.dim, self.dim))

    def arrays(self) -> dict[str, AnyArray]:
        return {"mean": self._mean}

    @classmethod
    def restored(cls, options: Spec, arrays: dict[str, AnyArray]) -> Self:
        return cls(arrays["mean"])


@ROOTS.register("gaussian")
class GaussianRoot(Root):
    """m ~ N(mean, covariance), updated exactly (thesis, proposition at Section 3.2.2).

    State: mean and a square root F of the covariance, which rows update in place in O(p^2); and beside them the precision and
    information of blocks that came since, so that changes of either sign may come (a GLM's leaf that is fitted again). What is
    known now, (F^-T F^-1 + E)^-1 = F (I + F^T E F)^-1 F^T, is made at the next use; the next row takes it over.
    """

    can_forget = True

    def __init__(self, mean: Array, covariance: Array) -> None:
        """`covariance` (p, p), or (L, p / L, p / L) of independent parts, which are then inverted and factorised one by one."""
        self._prior_mean = validate.as_array("mean", mean, (None,)).copy()
        self.dim = len(self._prior_mean)
        parts = parts_of("covariance", covariance, self.dim)
        self._prior_covariance = block_diagonal.dense(parts)
        self._factor = block_diagonal.dense(cast(Array, np.linalg.cholesky(parts)))
        self._mean = self._prior_mean.copy()
        self._forget_blocks()

    def _forget_blocks(self) -> None:
        self._precision, self._information = np.zeros((self.dim, self.dim)), np.zeros(self.dim)
        self._blocks = False
        self._now: tuple[Array, Array] | None = None

    @property
    def normal(self) -> bool:
        return True

    def observe(self, u: Array, variance: float, value: float) -> None:
        self._take_over()
        linalg.condition_factor(self._factor, self._mean, u, variance, value)

    def learn(self, precision: Array, information: Array) -> None:
        self._precision += precision
        self._information += information
        self._blocks, self._now = self._any_blocks(), None

    def exchange(self, precision: Array, information: Array) -> None:
        # its factor may have taken over what is taken back: then variances grow, which blocks beside it never do
        self._take_over()
        middle = self._factor.T @ precision @ self._factor
        lower = np.linalg.cholesky((middle + middle.T) / 2 + np.eye(self.dim))
        self._factor = np.linalg.solve(lower, self._factor.T).T.copy()
        told = information - precision @ self._mean
        self._mean = self._mean + self._factor @ (told @ self._factor)

    def forget(self) -> None:
        self._factor = cast(Array, np.linalg.cholesky(self._prior_covariance))
        self._mean = self._prior_mean.copy()
        self._forget_blocks()

    def relax(self, left: float) -> None:
        """Forget a part of the evidence: the precision becomes left Lambda + (1 - left) Lambda_0, the information likewise."""
        self._take_over()
        half, own = np.linalg.inv(self._factor), linalg.inverse(self._prior_covariance)
        precision = left * (half.T @ half) + (1 - left) * own
        information = left * (half.T @ (half @ self._mean)) + (1 - left) * (own @ self._prior_mean)
        self._factor = np.ascontiguousarray(linalg.factor_from_precision((precision + precision.T) / 2))
        self._mean = self._factor @ (information @ self._factor)

    def _any_blocks(self) -> bool:
        """By their content, which is saved: what comes next is done in the same way after loading, to the last bit."""
        return bool(self._precision.any() or self._information.any())

    def inform(self, information: Array) -> None:
        if not self._blocks:
            self._mean += self._factor @ (information @ self._factor)
            return
        self._information += information
        self._blocks = self._any_blocks()
        if self._now is not None:  # the factor stays
            self._now = self._moved_mean(self._now[1]), self._now[1]

    def learn_rows(self, rows: Array, values: Array) -> None:
        self._take_over()
        step = max(self.dim, ROWS_AT_A_TIME // self.dim)
        for start in range(0, len(rows), step):
            some = slice(start, start + step)
            self._mean, self._factor = linalg.condition_on_rows(self._factor, self._mean, rows[some], values[some])

    def _take_over(self) -> None:
        if self._blocks:
            self._mean, self._factor = self._posterior()
            self._forget_blocks()

    def _posterior(self) -> tuple[Array, Array]:
        """Mean and factor, now."""
        if not self._blocks:
            return self._mean, self._factor
        now = self._now
        if now is None:
            factor = linalg.evidence_factor(self._factor, self._precision)
            now = self._now = self._moved_mean(factor), factor
        return now

    def _moved_mean(self, factor: Array) -> Array:
        """The mean after the blocks, which have made this factor."""
        told = self._information - self._precision @ self._mean
        return self._mean + factor @ (told @ factor)

    def size(self) -> float:
        return float(np.abs(self._prior_covariance).sum(axis=1).max())

    def draw(self, rng: np.random.Generator, n: int) -> Array:
        mean, factor = self._posterior()
        return mean + rng.standard_normal((n, self.dim)) @ factor.T

    def mean(self) -> Array:
        return self._posterior()[0]

    def factor(self) -> Array:
        return self._posterior()[1]

    def precision(self) -> Array:
        """Posterior precision."""
        half = np.linalg.inv(self.factor())
        return cast(Array, half.T @ half)

    def gaussian_prior(self) -> tuple[Array, Array] | None:
        return self._prior_mean, self._prior_covariance

    def arrays(self) -> dict[str, AnyArray]:
        return {
            "prior_mean": self._prior_mean,
            "prior_covariance": self._prior_covariance,
            "precision": self._precision,
            "information": self._information,
            "factor": self._factor,
            "mean": self._mean,
        }

    @classmethod
    def restored(cls, options: Spec, arrays: dict[str, AnyArray]) -> Self:
        # its factor is among its arrays: the prior's covariance is checked and not factorised for it again
        mean = validate.as_array("prior_mean", arrays["prior_mean"], (None,))
        saved_state.table(arrays, "prior_covariance", (len(mean), len(mean)))
        root = cls(mean, np.ones((len(mean), 1, 1)))
        saved_state.check_like(root.arrays(), arrays)
        covariance = arrays["prior_covariance"]
        root._prior_covariance = validate.one_covariance("prior_covariance", covariance, root.dim)
        root._precision, root._information = arrays["precision"], arrays["information"]
        root._factor, root._mean = arrays["factor"], arrays["mean"]
        root._blocks = root._any_blocks()
        saved_state.check_moments(root.mean(), root.factor())
        return root


def parts_of(name: str, covariance: Array, dim: int) -> Array:
    """Covariances of a root's independent parts, checked: one of them where it is not given in parts."""
    array = validate.as_floats(name, covariance)
    if array.ndim != 3:
        return validate.one_covariance(name, array, dim)[None]
    if len(array) * array.shape[1] != dim:
        raise InvalidInput(name, f"shape {array.shape}", f"parts of a root of length {dim}")
    return validate.covariance(name, array)


__all__ = ["ROOTS", "GaussianRoot", "KnownRoot", "Root", "parts_of", "restore_root"]
