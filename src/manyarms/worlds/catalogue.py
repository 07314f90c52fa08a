"""A made-up catalogue of up to a million actions: skewed popularity, tastes of low rank, and a click rate in closed form.

    x = (1, z)                z around one of `kinds` centres, of mean 0 and variance 1 in every coordinate
    p_a = log(K / rank_a)     a random order of popularity; exp(skew p_a) falls as rank^-skew, Zipf's law
    r(x, a) = ceiling sigmoid(offset + skew (p_a - 1) + strength z^T B v_a)

B (d-1, rank) has orthonormal columns and v_a ~ N(0, I / rank), so that z^T B v_a has variance 1 over users and actions.
The offset makes uniform play earn `click_rate`. Rewards are Bernoulli with mean r(x, a). What the logging policy has, and
a learner may start from, is a blurred picture of the truth: `embeddings`, whose tastes have correlation `knowledge` with
the true ones.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit

from manyarms._base import validate
from manyarms._base.best_action import BestAction
from manyarms._base.linalg import GATHERED
from manyarms._base.typing import AnyArray, Array, Ints
from manyarms.errors import InvalidInput
from manyarms.logs.data import LoggedData
from manyarms.policies.base import Policy
from manyarms.policies.segments import SegmentSoftmaxPolicy
from manyarms.policies.softmax import TopSoftmaxPolicy
from manyarms.policies.support import SupportedPolicy
from manyarms.worlds.rounds import Value, draw_from, policy_over, support_of

WITHIN_KIND = 0.3  # share of a context's variance that is the user's own, not the kind's
MOST_SKEW, MOST_STRENGTH = 100.0, 1e6  # scores and their sigmoids stay numbers, also in float32
LEAST_TEMPERATURE = 1e-9  # scores over it stay numbers in float32, too
LARGEST_SHARE = 1 - 1e-9  # of the ceiling that uniform play may earn
CALIBRATION = 200_000  # pairs of a context and an action on which uniform play's click rate is set


class CatalogueWorld:
    """Contexts, Bernoulli clicks of known mean, a logging policy with a small support, and the true value of any policy.

    actions, dim: K and d (at least 2). rank: of the tastes, at most d - 1. skew: Zipf's exponent, 0 where all are equally
    popular. strength: how much tastes do. knowledge: in [0, 1], how much of the tastes the embeddings tell. segments: the
    logging policy plays from lists of k0 actions made for this many segments of contexts, at a cost that does not depend on
    K; None makes it the softmax of each context's own best k0, which costs K d products a round. test: how many contexts
    `value` looks at. Embeddings are float32.
    """

    def __init__(
        self,
        actions: int = 100_000,
        dim: int = 32,
        *,
        rank: int = 8,
        skew: float = 0.2,
        strength: float = 1.0,
        knowledge: float = 0.5,
        click_rate: float = 0.01,
        ceiling: float = 0.3,
        kinds: int = 50,
        k0: int = 100,
        temperature: float = 1.0,
        segments: int | None = 1000,
        test: int = 1000,
        seed: int = 0,
    ) -> None:
        self.actions, self.dim = validate.count("actions", actions, least=2), validate.count("dim", dim, least=2)
        dim, rank, kinds = self.dim, validate.count("rank", rank), validate.count("kinds", kinds)
        if rank > dim - 1:
            raise InvalidInput("rank", rank, f"at most dim - 1 = {dim - 1}")
        self.skew = validate.number("skew", skew, least=0, most=MOST_SKEW)
        self.strength = validate.number("strength", strength, least=0, most=MOST_STRENGTH)
        self.knowledge = validate.probability("knowledge", knowledge)
        self.ceiling = validate.probability("ceiling", ceiling)
        self.click_rate = validate.positive("click_rate", click_rate)
        if self.click_rate >= LARGEST_SHARE * self.ceiling:
            raise InvalidInput("click_rate", self.click_rate, f"less than the ceiling, {self.ceiling:g}")
        self.k0 = min(validate.count("k0", k0), self.actions)
        self.temperature = validate.number("temperature", temperature, least=LEAST_TEMPERATURE)
        self.segments = None if segments is None else validate.count("segments", segments)
        *seeds, self._segment_seed, self._test_seed = np.random.SeedSequence(validate.seed(seed)).spawn(5)
        itself, blur, calibration = (np.random.default_rng(child) for child in seeds)
        self._test = validate.room("test", validate.count("test", test, least=2), 24 * dim, "contexts")
        validate.room("actions", self.actions, 12 * dim + 4 * rank + 32, f"actions of {dim:,} numbers")
        validate.room("dim", dim, 24 * CALIBRATION, "dimensions")
        validate.room("rank", rank, 32 * dim, f"dimensions of taste out of {dim:,}")
        validate.room("kinds", kinds, 8 * dim, f"centres of {dim:,} numbers")
        self._kinds = itself.standard_normal((kinds, dim - 1))
        self.basis: Array = np.linalg.qr(itself.standard_normal((dim - 1, rank)))[0]
        self.tastes: AnyArray = itself.standard_normal((self.actions, rank), dtype=np.float32) / np.float32(
            np.sqrt(rank)
        )
        self.ranks: Ints = itself.permutation(self.actions) + 1  # 1 is the most popular
        self._base: Array = self.skew * (np.log(self.actions / self.ranks) - 1.0)
        self.embeddings = self._blurred(blur)
        self.offset = self._calibrated(calibration)

    def __repr__(self) -> str:
        return f"CatalogueWorld(actions={self.actions:,}, dim={self.dim}, rank={self.basis.shape[1]})"

    # ---- contexts and rewards

    def contexts(self, rounds: int, seed: int | np.random.Generator = 0) -> Array:
        """n contexts, (n, d), the first coordinate 1."""
        rng, n = validate.seeded(seed), validate.count("rounds", rounds)
        validate.room("rounds", n, 32 * self.dim, f"contexts of {self.dim:,} numbers")
        own = rng.standard_normal((n, self.dim - 1))
        kind = self._kinds[rng.integers(len(self._kinds), size=n)]
        return np.concatenate([np.ones((n, 1)), np.sqrt(1 - WITHIN_KIND) * kind + np.sqrt(WITHIN_KIND) * own], axis=1)

    def values(self, X: Array, ids: Ints) -> Array:
        """r(x, a) of contexts (b, d) and ids (k,), (b, k)."""
        return self._rate(self._wishes(X) @ self.tastes[ids].T + self._base[ids])

    def mean_reward(self, X: npt.ArrayLike, ids: npt.ArrayLike) -> Array:
        """r(x_i, a_ij) of contexts (n, d) and ids (n, m), (n, m)."""
        rows, chosen = self._rows(X), validate.action_ids("ids", ids, self.actions, ndim=2)
        if len(chosen) != len(rows):
            raise InvalidInput("ids", f"shape {chosen.shape}", f"ids of shape ({len(rows)}, m)")
        wishes, out = self._wishes(rows), np.empty(chosen.shape)
        step = max(1, GATHERED // max(1, chosen.shape[1] * wishes.shape[1]))
        for start in range(0, len(rows), step):
            part = slice(start, start + step)
            scores = np.matmul(self.tastes[chosen[part]], wishes[part, :, None])[..., 0]
            out[part] = self._rate(scores + self._base[chosen[part]])
        return out

    def parameters(self) -> Array:
        """theta (K, d) with r(x, a) = ceiling sigmoid(x^T theta_a): the truth as an array, which the world itself never makes."""
        return np.concatenate([(self.offset + self._base)[:, None], self.strength * self.tastes @ self.basis.T], axis=1)

    # ---- logging

    @cached_property
    def logging(self) -> SupportedPolicy:
        """The logging policy; lists of segments are made when it is first asked for."""
        best = TopSoftmaxPolicy(self.embeddings, self.k0, self.temperature)
        if self.segments is None:
            return best
        centres = self.contexts(self.segments, np.random.default_rng(self._segment_seed))
        return SegmentSoftmaxPolicy(self.embeddings, centres, best.support(centres)[0], self.temperature)

    def log(self, rounds: int, seed: int = 0, *, support: bool = True) -> LoggedData:
        """Rounds of the logging policy with exact propensities.

        support: whether the log keeps the k0 actions of every round with their probabilities (16 k0 bytes a round).
        """
        rng, support = np.random.default_rng(validate.seed(seed)), validate.flag("support", support)
        X = self.contexts(rounds, rng)
        ids, probabilities = support_of(self.logging, X)
        every = np.arange(len(X))
        column = draw_from(probabilities, every, rng)
        actions = ids[every, column]
        rewards = rng.random(len(X)) < self.mean_reward(X, actions[:, None])[:, 0]
        return LoggedData(
            X,
            actions,
            rewards.astype(np.float64),
            self.actions,
            propensities=probabilities[every, column],
            support=ids if support else None,
            support_probabilities=probabilities if support else None,
            logging=self.logging,
        )

    # ---- true values

    @cached_property
    def test_contexts(self) -> Array:
        """The contexts on which values are taken, the same for every policy."""
        return self.contexts(self._test, np.random.default_rng(self._test_seed))

    def value(self, policy: Policy, contexts: npt.ArrayLike | None = None) -> Value:
        """The expected reward of a policy: exact at every test context (or those given), with the error of their mean.

        Two policies share the contexts: their difference has a smaller error than the two values suggest.
        """
        policy_over(policy, self.actions)
        X = self.test_contexts if contexts is None else self._rows(contexts)
        if isinstance(policy, SupportedPolicy):
            ids, probabilities = policy.support(X)
            return Value.of(np.einsum("nk,nk->n", probabilities, self.mean_reward(X, ids)))
        return Value.of(policy.expectation(X, self.values))

    def best_value(self, contexts: npt.ArrayLike | None = None) -> Value:
        """The mean over contexts of the largest r(x, a)."""
        X = self.test_contexts if contexts is None else self._rows(contexts)
        ids, _ = self.best_actions(X)
        return Value.of(self.mean_reward(X, ids[:, None])[:, 0])

    def best_actions(self, contexts: npt.ArrayLike) -> tuple[Ints, Array]:
        """The action with the largest r(x, a) for each context, and that rate."""
        X = self._rows(contexts)
        ids, scores = self._best(np.concatenate([np.ones((len(X), 1)), self._wishes(X)], axis=1))
        return ids, self._rate(scores)

    @cached_property
    def _best(self) -> BestAction:
        # in rank + 1 dimensions few actions are looked at
        return BestAction(np.concatenate([self._base[:, None], self.tastes], axis=1))

    # ---- parts

    def _wishes(self, X: Array) -> Array:
        """strength z^T B, (b, rank)."""
        return self.strength * (X[:, 1:] @ self.basis)

    def _rate(self, scores: Array) -> Array:
        return np.asarray(self.ceiling * expit(self.offset + scores), dtype=np.float64)

    def _blurred(self, rng: np.random.Generator) -> AnyArray:
        """(K, d): the popularity's part as it is, and tastes of correlation `knowledge` with the true ones."""
        out = np.empty((self.actions, self.dim), dtype=np.float32)
        out[:, 0] = self._base
        np.matmul(self.tastes, (self.knowledge * self.strength * self.basis.T).astype(np.float32), out=out[:, 1:])
        noise = rng.standard_normal((self.actions, self.dim - 1), dtype=np.float32)
        # z^T noise has the variance of z^T B v: both are 1
        noise *= np.float32(self.strength * np.sqrt((1 - self.knowledge**2) / (self.dim - 1)))
        out[:, 1:] += noise
        return out

    def _calibrated(self, rng: np.random.Generator) -> float:
        """The offset with which uniform play earns the click rate, on a large sample of pairs."""
        from scipy.optimize import brentq

        X = self.contexts(CALIBRATION, rng)
        ids = rng.integers(self.actions, size=len(X))
        scores = np.einsum("nr,nr->n", self._wishes(X), self.tastes[ids]) + self._base[ids]
        wanted = self.click_rate / self.ceiling
        width = float(np.abs(scores).max()) + 1.0
        middle = float(logit(wanted))
        return float(brentq(lambda b: expit(b + scores).mean() - wanted, middle - width, middle + width))

    def _rows(self, contexts: npt.ArrayLike) -> Array:
        return validate.as_array("contexts", contexts, (None, self.dim))


__all__ = ["CatalogueWorld"]
