"""A context in which prior scores do not vary: rounding must not leave a variance below zero."""

from __future__ import annotations

import numpy as np
import pytest

import manyarms as ma
from manyarms._base.typing import Array

DIM = 20


def with_a_direction_of_no_variance() -> tuple[Array, Array]:
    """A covariance that is valid, and a context in which x^T Sigma x comes out below zero."""
    rng = np.random.default_rng(0)
    eigenvalues = np.append(np.ones(DIM - 1), 1e-16)
    for _ in range(20_000):
        axes = np.linalg.qr(rng.standard_normal((DIM, DIM)))[0]
        covariance = (axes * eigenvalues) @ axes.T
        covariance = (covariance + covariance.T) / 2
        x = axes[:, -1]
        if x @ covariance @ x < 0:
            return covariance, x
    pytest.skip("products are rounded in another way here")


@pytest.mark.parametrize("actions", [1, 50, 6_000], ids=["one unit", "a few units", "blocks"])
def test_nothing_is_no_less_than_nothing(actions: int) -> None:
    covariance, x = with_a_direction_of_no_variance()
    weights = np.random.default_rng(1).uniform(-1, 1, (actions, 3))
    effects = np.random.default_rng(2).standard_normal((3, DIM))
    root = 1e-12 * np.eye(3 * DIM)  # a millionth of a standard deviation there, so that a best mean wins
    agent = ma.meTS(ma.MixedEffectPrior(weights, effects, root, covariance), seed=0)
    means = weights @ (effects @ x)
    assert means[agent.decide(x)] >= means.max() - 1e-4
