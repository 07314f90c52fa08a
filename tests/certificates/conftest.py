"""A tiny world in which every value is known: a few contexts, a few actions, Bernoulli rewards."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from manyarms.logs.data import LoggedData
from manyarms.policies import FunctionPolicy, SoftmaxPolicy
from manyarms.policies.randomised import GaussianPolicy


@dataclass
class World:
    contexts: np.ndarray  # (m, d), each as likely as the others
    pi0: np.ndarray  # (m, K)
    means: np.ndarray  # (m, K)
    logging: object
    start: np.ndarray  # (K, d), the logging policy's parameters

    @property
    def actions(self):
        return self.pi0.shape[1]

    def table(self, policy):
        """pi(a|x), (m, K)."""
        ids = np.tile(np.arange(self.actions), (len(self.contexts), 1))
        return policy.probabilities_of_many(self.contexts, ids)

    def value(self, policy):
        return float((self.table(policy) * self.means).sum(axis=1).mean())

    @property
    def logged_value(self):
        return float((self.pi0 * self.means).sum(axis=1).mean())

    def log(self, rows, rng, scale=1.0, whole=True, **fields):
        i = rng.integers(len(self.contexts), size=rows)
        upto = self.pi0.cumsum(axis=1)[i]
        a = np.minimum((upto < rng.random(rows)[:, None] * upto[:, -1:]).sum(axis=1), self.actions - 1)
        rewards = scale * (rng.random(rows) < self.means[i, a])
        logging = self.logging if whole else None
        return LoggedData(
            self.contexts[i],
            a,
            rewards.astype(float),
            self.actions,
            propensities=self.pi0[i, a],
            logging=logging,
            **fields,
        )


def make_world(seed=0, contexts=4, actions=5, dim=3, never=False):
    """never: the logging policy leaves out the last action."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((contexts, dim))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    start = rng.standard_normal((actions, dim))
    ids = np.tile(np.arange(actions), (contexts, 1))
    pi0 = SoftmaxPolicy(start).probabilities_of_many(X, ids)
    if never:
        pi0[:, -1] = 0.0
        pi0 /= pi0.sum(axis=1, keepdims=True)
    key = {tuple(x): i for i, x in enumerate(X.tolist())}

    # asked row by row, but looked up once a context: tests ask often
    def look(rows, ids):
        return pi0[np.array([key[tuple(x)] for x in rows.tolist()]), ids]

    logging = FunctionPolicy(look, actions) if never else SoftmaxPolicy(start)
    return World(X, pi0, rng.uniform(0.1, 0.9, (contexts, actions)), logging, start)


@pytest.fixture(scope="session")
def world():
    return make_world()


@pytest.fixture(scope="session")
def new_world():
    return make_world


@pytest.fixture(scope="session")
def learned(world):
    """A Gaussian policy some way from the logging policy's parameters."""
    rng = np.random.default_rng(5)
    return GaussianPolicy(world.start + 0.7 * rng.standard_normal(world.start.shape), 0.8)
