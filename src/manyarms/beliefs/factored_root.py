"""A root of several effects that are drawn apart from each other."""

from __future__ import annotations

from typing import Self, cast

import numpy as np

from manyarms._base import block_diagonal, linalg, validate
from manyarms._base.typing import AnyArray, Array, Spec, loose
from manyarms.beliefs import saved_state
from manyarms.beliefs.roots import ROOTS, GaussianRoot, Root, parts_of
from manyarms.errors import InvalidInput

FACTORED = ("mean-field", "blockwise")
"""How effects can be factored; `FactoredRoot` says what each is."""


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

    can_forget = True

    def __init__(self, mean: Array, covariance: Array, effects: int, rule: str = "mean-field") -> None:
        """`covariance` (L d, L d), or (L, d, d) of effects that are independent to begin with."""
        rule = _rule(rule)
        mean = validate.as_array("mean", mean, (None,))
        self.dim = len(mean)
        self.effects = validate.count("effects", effects)
        if self.dim % self.effects:
            raise InvalidInput("effects", effects, f"a divisor of the root's length {self.dim}")
        self.block = self.dim // self.effects
        # the prior of each effect given the others, and what came since: precision and information, block by block
        self.exact: GaussianRoot | None = None
        if rule == "blockwise" and np.shape(covariance) == (self.effects, self.block, self.block):
            self._prior_mean = mean.reshape(self.effects, self.block).copy()
            self._prior_factor = cast(Array, np.linalg.cholesky(parts_of("covariance", covariance, self.dim)))
        else:
            exact = GaussianRoot(mean, covariance)
            self.exact = exact if rule == "mean-field" else None
            self._prior_mean = exact.mean().reshape(self.effects, self.block).copy()
            blocks = block_diagonal.diagonal_blocks(exact.precision(), self.effects)
            self._prior_factor = linalg.factor_from_precision(blocks)
        self._precision = np.zeros((self.effects, self.block, self.block))
        self._information = np.zeros((self.effects, self.block))
        self._now: tuple[Array, Array] | None = None

    @property
    def rule(self) -> str:
        """Mean-field or blockwise."""
        return "blockwise" if self.exact is None else "mean-field"

    @property
    def parts(self) -> int:
        return self.effects if self.exact is None else 1

    @property
    def normal(self) -> bool:
        return True

    def observe(self, u: Array, variance: float, value: float) -> None:
        parts = u.reshape(self.effects, self.block)
        self._precision += parts[:, :, None] * (parts / variance)[:, None, :]
        if self.exact is not None:
            self.exact.observe(u, variance, value)
        else:
            self._information += parts * (value / variance)
        self._now = None

    def learn(self, precision: Array, information: Array) -> None:
        whole = precision.ndim == 2
        self._precision += block_diagonal.diagonal_blocks(precision, self.effects) if whole else precision
        if self.exact is not None:
            self.exact.learn(precision, information)
        else:
            self._information += information.reshape(self.effects, self.block)
        self._now = None

    def exchange(self, precision: Array, information: Array) -> None:
        if self.exact is None:
            self.learn(precision, information)
            return
        self._precision += block_diagonal.diagonal_blocks(precision, self.effects)
        self.exact.exchange(precision, information)
        self._now = None

    def forget(self) -> None:
        self._precision, self._information = np.zeros_like(self._precision), np.zeros_like(self._information)
        if self.exact is not None:
            self.exact.forget()
        self._now = None

    def learn_rows(self, rows: Array, values: Array) -> None:
        parts = rows.reshape(len(rows), self.effects, self.block)
        self._precision += np.einsum("nli,nlj->lij", parts, parts)
        if self.exact is not None:
            self.exact.learn_rows(rows, values)
        else:
            self._information += np.einsum("nli,n->li", parts, values)
        self._now = None

    def inform(self, information: Array) -> None:
        if self.exact is not None:
            self.exact.inform(information)
        else:
            self._information += information.reshape(self.effects, self.block)
        if self._now is not None:  # the factors stay
            self._now = self._means(self._now[1]), self._now[1]

    def size(self) -> float:
        if self.exact is not None:
            return self.exact.size()
        return float(np.einsum("lij,lij->l", self._prior_factor, self._prior_factor).max())

    def _posterior(self) -> tuple[Array, Array]:
        """(L, d) means and (L, d, d) factors of the effects."""
        now = self._now
        if now is None:
            factor = linalg.evidence_factor(self._prior_factor, self._precision)
            now = self._now = self._means(factor), factor
        return now

    def _means(self, factor: Array) -> Array:
        """(L, d): the means that go with these factors."""
        if self.exact is not None:
            return self.exact.mean().reshape(self.effects, self.block)
        told = self._information - np.einsum("lij,lj->li", self._precision, self._prior_mean)
        return cast(Array, self._prior_mean + np.einsum("lij,lkj,lk->li", factor, factor, told))

    def draw(self, rng: np.random.Generator, n: int) -> Array:
        mean, factor = self._posterior()
        z = rng.standard_normal((n, self.effects, self.block, 1))
        return cast(Array, (mean + np.matmul(factor, z)[..., 0]).reshape(n, self.dim))

    def mean(self) -> Array:
        return self._posterior()[0].ravel()

    def factor(self) -> Array:
        return block_diagonal.dense(self._posterior()[1])

    def options(self) -> Spec:
        return {"effects": self.effects, "rule": self.rule}

    def arrays(self) -> dict[str, AnyArray]:
        own: dict[str, AnyArray] = {
            "block_precision": self._precision,
            "block_information": self._information,
            "block_prior_mean": self._prior_mean,
            "block_prior_factor": self._prior_factor,
        }
        return own if self.exact is None else {**own, **self.exact.arrays()}

    @classmethod
    def restored(cls, options: Spec, arrays: dict[str, AnyArray]) -> Self:
        # all that it knows of its prior lies in its arrays: it is made of any prior of the right size
        told = loose(options)
        effects, block = arrays["block_information"].shape
        saved_state.table(arrays, "block_precision", (effects, block, block))
        identity = np.broadcast_to(np.eye(block), (effects, block, block))
        root = cls(np.zeros(effects * block), identity, **{**told, "rule": "blockwise"})
        if _rule(told["rule"]) == "mean-field":
            saved_state.table(arrays, "prior_mean", (root.dim,))
            root.exact = GaussianRoot.restored({}, arrays)
        saved_state.check_like(root.arrays(), arrays)
        root._precision, root._information = arrays["block_precision"], arrays["block_information"]
        root._prior_mean, root._prior_factor = arrays["block_prior_mean"], arrays["block_prior_factor"]
        saved_state.check_moments(*root._posterior())
        return root


def _rule(rule: object) -> str:
    if not isinstance(rule, str) or rule not in FACTORED:
        raise InvalidInput("factored", validate.describe(rule), " or ".join(map(repr, FACTORED)))
    return rule


__all__ = ["FACTORED", "FactoredRoot"]
