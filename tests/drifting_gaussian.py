"""Drift by brute force: the joint Gaussian of the root and of every action at every time that matters, conditioned on rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from manyarms._base.typing import Array, Ints
from manyarms.beliefs import Belief
from manyarms.priors import ActionPrior, HierarchicalPrior, LatentPrior, MixedEffectPrior
from manyarms.priors.base import ParameterPrior


class Dense:
    """(m, theta_a(t_1), ..., theta_a(t_T)) for all actions a of a belief that has seen nothing, and what rows say of it."""

    def __init__(self, belief: Belief, times: Array, rate: float) -> None:
        leaves, d, p, K = belief.leaves, belief.dim, belief.root.dim, belief.catalogue.size
        self.dim, self.p, self.times = d, p, list(dict.fromkeys(times.tolist()))
        T = len(self.times)
        W = np.stack([leaves.mixing.apply(np.arange(K), unit) for unit in np.eye(p)], axis=2)  # (K, d, p)
        up = np.vstack([np.eye(p), *(W[a] for a in range(K) for _ in range(T))])
        factor = belief.root.factor()
        self.mean, self.covariance = up @ belief.root.mean(), up @ factor @ factor.T @ up.T
        stamps = np.array(self.times)
        correlation = np.exp(-rate * np.abs(stamps[:, None] - stamps[None]))
        own = leaves.prior_covariance(np.arange(K))
        for a in range(K):
            place = slice(p + a * T * d, p + (a + 1) * T * d)
            self.covariance[place, place] += np.kron(correlation, own[a])

    def place(self, action: int, time: float) -> slice:
        """Where theta_a(t) stands."""
        start = self.p + (action * len(self.times) + self.times.index(time)) * self.dim
        return slice(start, start + self.dim)

    def rows(self, X: Array, actions: Ints, times: Array) -> Array:
        """The rows as a matrix."""
        H = np.zeros((len(X), len(self.mean)))
        for i, (x, a, t) in enumerate(zip(X, actions.tolist(), times.tolist(), strict=True)):
            H[i, self.place(a, t)] = x
        return H

    def learn(self, X: Array, actions: Ints, rewards: Array, times: Array, noise_variance: float) -> None:
        """Condition on rows."""
        H = self.rows(X, actions, times)
        gain = np.linalg.solve(H @ self.covariance @ H.T + noise_variance * np.eye(len(X)), H @ self.covariance).T
        self.mean = self.mean + gain @ (rewards - H @ self.mean)
        self.covariance = self.covariance - gain @ H @ self.covariance

    def root(self) -> tuple[Array, Array]:
        """Mean and covariance of the root."""
        return self.mean[: self.p], self.covariance[: self.p, : self.p]

    def action(self, action: int, time: float) -> tuple[Array, Array]:
        """Mean and covariance of an action at a time."""
        place = self.place(action, time)
        return self.mean[place], self.covariance[place, place]


def covariance(dim: int, rng: np.random.Generator) -> Array:
    """A covariance whose condition is moderate."""
    half = rng.standard_normal((dim, dim))
    return half @ half.T / dim + 0.5 * np.eye(dim)


PRIORS = ("independent", "own means", "own covariances", "hierarchical", "mixed effects", "matrices")


def a_prior(kind: str, rng: np.random.Generator, actions: int = 4, dim: int = 2) -> ParameterPrior:
    """A prior of that kind, at random."""
    K, d = actions, dim
    match kind:
        case "independent":
            return ActionPrior(K, rng.standard_normal(d), covariance(d, rng))
        case "own means":
            return ActionPrior(K, rng.standard_normal((K, d)), covariance(d, rng))
        case "own covariances":
            return ActionPrior(K, rng.standard_normal((K, d)), np.stack([covariance(d, rng) for _ in range(K)]))
        case "hierarchical":
            return HierarchicalPrior(K, rng.standard_normal(d), covariance(d, rng), covariance(d, rng))
        case "mixed effects":
            effects = rng.standard_normal((2, d))
            return MixedEffectPrior(rng.standard_normal((K, 2)), effects, covariance(2 * d, rng), covariance(d, rng))
    return LatentPrior(rng.standard_normal((K, d, 3)), rng.standard_normal(3), covariance(3, rng), covariance(d, rng))


@dataclass
class TimedRows:
    """Rows and their times."""

    X: Array
    actions: Ints
    rewards: Array
    times: Array

    @classmethod
    def drawn(cls, number: int, actions: int, dim: int, span: float, rng: np.random.Generator) -> TimedRows:
        """So many rows over a span of time, in order, some of them at the same time; the last action has none."""
        times = np.sort(rng.integers(0, 50, number) * (span / 50))
        some = rng.integers(max(1, actions - 1), size=number)
        return cls(rng.standard_normal((number, dim)), some, rng.standard_normal(number), times)

    def __len__(self) -> int:
        return len(self.times)

    def some(self, where: slice | Ints) -> tuple[Array, Ints, Array, Array]:
        """Contexts, actions, rewards and times of some of them."""
        return self.X[where], self.actions[where], self.rewards[where], self.times[where]
