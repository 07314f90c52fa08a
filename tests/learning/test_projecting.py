"""Embeddings and contexts of different lengths: a projection is learned by itself, said, saved, and the same in every engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import manyarms as ma
from manyarms.errors import InvalidInput
from manyarms.logs import LoggedData
from manyarms.policies.encoders import Projection

pytest.importorskip("torch")


def problem(
    seed: int, rows: int = 3000, actions: int = 12, dim: int = 6, width: int = 2
) -> tuple[LoggedData, Any, Any]:
    """Rewards from x^T W beta_a, uniform logging: what a projection to the embeddings can say, and nothing else can."""
    rng = np.random.default_rng(seed)
    W, beta = rng.normal(size=(dim, width)), rng.normal(size=(actions, width))
    X = rng.normal(size=(rows, dim))
    chosen = rng.integers(0, actions, rows)
    means = 1 / (1 + np.exp(-X @ W @ beta.T))
    rewards = (rng.random(rows) < means[np.arange(rows), chosen]).astype(float)
    return LoggedData(X, chosen, rewards, actions, np.full(rows, 1 / actions)), beta, means


def test_a_projection_is_learned_said_and_saved(tmp_path: Path) -> None:
    log, beta, means = problem(0)
    start = ma.SoftmaxPolicy(actions=beta)
    result = ma.learn(log, start, ma.IPS(), epochs=30, learning_rate=0.1, seed=0)
    assert any("projection" in note and "6" in note and "2" in note for note in result.notes)
    assert "projection" in str(result)
    policy = result.policy
    assert isinstance(policy, ma.SoftmaxPolicy) and isinstance(policy.encoder, Projection)
    assert policy.encoder.W.shape == (6, 2) and policy.dim == 6
    np.testing.assert_allclose(policy.actions, beta, rtol=1e-6)  # the embeddings stay: the projection was learned
    probabilities = np.stack([policy.probabilities_of(log.contexts, np.full(len(log), a)) for a in range(12)], axis=1)
    value = float((probabilities * means).sum(axis=1).mean())
    best, uniform = float(means.max(axis=1).mean()), float(means.mean())
    assert value > uniform + 0.5 * (best - uniform)  # the half of what is to be had
    policy.save(tmp_path / "policy")
    again = ma.load(tmp_path / "policy")
    x = log.contexts[:50]
    np.testing.assert_array_equal(again.decide(x), policy.decide(x))
    assert start.encoder is None and start.dim == 2  # what was given stays as it was


def test_it_is_the_start_from_a_projection_of_zeros() -> None:
    log, beta, _ = problem(1, rows=300)
    by_itself = ma.learn(log, ma.SoftmaxPolicy(actions=beta), ma.IPS(), epochs=2, seed=3, learning_rate=0.01)
    said = ma.SoftmaxPolicy(actions=beta, encoder=Projection(np.zeros((6, 2))))
    by_hand = ma.learn(log, said, ma.IPS(), epochs=2, seed=3, learning_rate=0.01)
    np.testing.assert_array_equal(by_itself.policy.encoder.W, by_hand.policy.encoder.W)  # type: ignore[union-attr]
    assert not any("projection" in note for note in by_hand.notes)


@pytest.mark.parametrize("objective", [ma.IPS(), ma.cLPI(tau=0.01), ma.RegKL(), ma.SNIPS()], ids=lambda o: o.name)
def test_every_engine_learns_it(objective: Any, tmp_path: Path) -> None:
    log, beta, _ = problem(2, rows=200)
    settings: dict[str, Any] = {"epochs": 2, "learning_rate": 0.01, "seed": 1, "precision": "fp64"}
    result = ma.learn(log, ma.SoftmaxPolicy(actions=beta), objective, **settings)
    assert np.abs(result.policy.encoder.W).max() > 0  # type: ignore[union-attr]
    both = ma.learn(log, ma.SoftmaxPolicy(actions=beta), objective, train="both", **settings)
    assert np.abs(np.asarray(both.policy.actions) - beta).max() > 0
    kept = ma.learn(log, ma.SoftmaxPolicy(actions=beta), objective, folder=tmp_path, **settings)
    again = ma.learn(
        log, ma.SoftmaxPolicy(actions=beta), objective, folder=tmp_path, **settings
    )  # from its last checkpoint
    np.testing.assert_array_equal(again.policy.encoder.W, kept.policy.encoder.W)  # type: ignore[union-attr]


def test_what_cannot_be_projected_is_refused() -> None:
    log, beta, _ = problem(3, rows=50)
    with pytest.raises(InvalidInput, match="train"):
        ma.learn(log, ma.SoftmaxPolicy(actions=beta), ma.IPS(), train="actions")
    with pytest.raises(InvalidInput, match="contexts of length 2"):
        ma.learn(log, ma.GaussianPolicy(beta), ma.IPS())
    with pytest.raises(InvalidInput, match="contexts of length 3"):
        wrong = ma.SoftmaxPolicy(actions=beta, encoder=Projection(np.zeros((3, 2))))
        ma.learn(log, wrong, ma.IPS())
