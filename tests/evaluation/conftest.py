"""Small problems whose every probability and mean reward can be written out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from manyarms.logs.data import LoggedData
from manyarms.policies import FunctionPolicy, SoftmaxPolicy


class TableModel:
    """A reward model given by parameters, squeezed into (0, 1)."""

    bounds = (0.0, 1.0)

    def __init__(self, theta):
        self.theta = theta

    def predict(self, X, actions):
        return 1 / (1 + np.exp(-np.einsum("nd,nd->n", X, self.theta[actions])))

    def block(self, X, ids):
        return 1 / (1 + np.exp(-(X @ self.theta[ids].T)))


@dataclass
class Problem:
    """m contexts that are drawn uniformly, K actions, two policies and Bernoulli rewards, all as tables (m, K)."""

    contexts: np.ndarray
    pi: np.ndarray
    pi0: np.ndarray
    means: np.ndarray
    policy: SoftmaxPolicy
    logging: object
    model: TableModel
    embeddings: np.ndarray

    @property
    def truth(self):
        return float((self.pi * self.means).sum(axis=1).mean())

    def mean_of(self, cells):
        """The expectation over contexts of the sum over actions."""
        return float(cells.sum(axis=1).mean())

    def draw(self, rows, rng):
        """Contexts' indices, actions and rewards."""
        i = rng.integers(len(self.contexts), size=rows)
        upto = self.pi0.cumsum(axis=1)[i]
        a = np.minimum((upto < rng.random(rows)[:, None] * upto[:, -1:]).sum(axis=1), self.pi0.shape[1] - 1)
        return i, a, (rng.random(rows) < self.means[i, a]).astype(float)

    def log(self, rows, rng, **fields):
        """A log with propensities; fields such as logging=... are added."""
        i, a, r = self.draw(rows, rng)
        return self.log_of(i, a, r, **fields)

    def log_of(self, i, a, r, **fields):
        K = self.pi.shape[1]
        return LoggedData(self.contexts[i], a, r, K, propensities=self.pi0[i, a], **fields)

    def with_support(self, rows, rng, **fields):
        """A log that lists the whole support of each round, the most likely first."""
        i, a, r = self.draw(rows, rng)
        order = np.argsort(-self.pi0, axis=1)
        ids, p = order[i], np.take_along_axis(self.pi0, order, 1)[i]
        return i, self.log_of(i, a, r, support=ids, support_probabilities=p, **fields)


def make_problem(seed=0, contexts=5, actions=7, dim=3, gap=1.0, never=False):
    """gap: how far the policy is from the logging policy. never: the logging policy leaves out the last action."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((contexts, dim))
    beta, shift = rng.standard_normal((actions, dim)), rng.standard_normal((actions, dim))
    policy = SoftmaxPolicy(beta + gap * shift)
    pi0 = SoftmaxPolicy(beta).probabilities_of_many(X, np.tile(np.arange(actions), (contexts, 1)))
    if never:
        pi0[:, -1] = 0.0
        pi0 /= pi0.sum(axis=1, keepdims=True)
    key = {tuple(x): i for i, x in enumerate(X.tolist())}

    def table(rows, ids):
        return pi0[[key[tuple(x)] for x in rows.tolist()], ids]

    pi = policy.probabilities_of_many(X, np.tile(np.arange(actions), (contexts, 1)))
    return Problem(
        X, pi, pi0, rng.uniform(0.1, 0.9, (contexts, actions)), policy, FunctionPolicy(table, actions),
        TableModel(rng.standard_normal((actions, dim))), rng.standard_normal((actions, 2)),
    )  # fmt: skip


@pytest.fixture
def problem():
    return make_problem()


@pytest.fixture(scope="session")
def new_problem():
    """The maker itself, for other sizes."""
    return make_problem
