"""Made-up catalogues: rates in closed form, exact values and propensities, segments as the logging policy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit

import manyarms as ma
from manyarms.errors import InvalidInput, UnknownAction
from manyarms.policies import SegmentSoftmaxPolicy, SoftmaxPolicy, TopSoftmaxPolicy, UniformPolicy
from manyarms.worlds.catalogue import CatalogueWorld


@pytest.fixture(scope="module")
def world() -> CatalogueWorld:
    return CatalogueWorld(3000, 9, rank=4, k0=20, segments=30, test=200, seed=5)


def test_rates_are_a_sigmoid_of_an_inner_product(world: CatalogueWorld) -> None:
    X, theta = world.contexts(50, 1), world.parameters()
    rates = world.ceiling * expit(X @ theta.T)
    np.testing.assert_allclose(world.values(X, np.arange(world.actions)), rates, rtol=1e-5)
    ids = np.random.default_rng(0).integers(world.actions, size=(50, 7))
    np.testing.assert_allclose(world.mean_reward(X, ids), np.take_along_axis(rates, ids, axis=1), rtol=1e-5)
    assert rates.max() < world.ceiling
    # tastes have the stated rank beside the constant
    assert np.linalg.matrix_rank(theta[:, 1:], tol=1e-4) == 4


def test_contexts_and_scores_have_unit_variance() -> None:
    world = CatalogueWorld(2000, 9, rank=4, skew=0.0, kinds=2000, seed=1)
    X = world.contexts(20_000, 2)
    np.testing.assert_array_equal(X[:, 0], 1.0)
    np.testing.assert_allclose(X[:, 1:].var(axis=0), 1.0, atol=0.1)
    tastes = X[:500, 1:] @ world.parameters()[:, 1:].T
    assert tastes.var() == pytest.approx(1.0, abs=0.15)
    known = X[:500, 1:] @ world.embeddings[:, 1:].T
    assert np.corrcoef(tastes.ravel(), known.ravel())[0, 1] == pytest.approx(world.knowledge, abs=0.05)


def test_popularity_follows_zipfs_law() -> None:
    world = CatalogueWorld(5000, 4, rank=2, strength=0.0, skew=0.4, ceiling=1.0, click_rate=0.001, seed=2)
    rates = world.values(world.contexts(1), np.arange(5000))[0]
    odds = rates / (1 - rates)
    order = np.argsort(world.ranks)
    np.testing.assert_allclose(np.diff(np.log(odds[order])) / np.diff(np.log(np.arange(1, 5001))), -0.4, rtol=1e-6)


def test_uniform_play_earns_the_click_rate(world: CatalogueWorld) -> None:
    value = world.value(UniformPolicy(world.actions), world.contexts(3000, 9))
    # half a per cent of the rate is the calibration's own sample
    assert abs(value - world.click_rate) < 4 * value.standard_error + 0.02 * world.click_rate


def test_values_are_exact_sums(world: CatalogueWorld) -> None:
    X = world.test_contexts
    every = np.broadcast_to(np.arange(world.actions), (len(X), world.actions))
    rates = world.values(X, np.arange(world.actions))
    for policy in (SoftmaxPolicy(world.embeddings), TopSoftmaxPolicy(world.embeddings, 7), world.logging):
        each = (policy.probabilities_of_many(X, every) * rates).sum(axis=1)
        value = world.value(policy)
        assert value == pytest.approx(each.mean(), rel=1e-5)
        assert value.standard_error == pytest.approx(each.std(ddof=1) / np.sqrt(len(X)), rel=1e-3)


def test_the_best_value_is_the_largest_rate(world: CatalogueWorld) -> None:
    rates = world.values(world.test_contexts, np.arange(world.actions))
    assert world.best_value() == pytest.approx(rates.max(axis=1).mean(), rel=1e-5)
    ids, best = world.best_actions(world.test_contexts)
    np.testing.assert_allclose(best, rates.max(axis=1), rtol=1e-5)
    np.testing.assert_array_equal(ids, rates.argmax(axis=1))
    # a sharp softmax of the truth comes close, nothing exceeds it, and logging is better than chance
    oracle = world.value(SoftmaxPolicy(world.parameters(), 0.01))
    assert world.click_rate < world.value(world.logging) < oracle <= world.best_value() * (1 + 1e-6)
    assert oracle > 0.98 * world.best_value()


@pytest.mark.slow
@pytest.mark.parametrize("segments", [30, None])
def test_the_log_has_exact_propensities_and_supports(segments: int | None) -> None:
    world = CatalogueWorld(2000, 6, rank=3, k0=15, segments=segments, click_rate=0.05, seed=5)
    log = world.log(20_000, seed=3)
    assert log.propensities is not None and log.support is not None and log.support_probabilities is not None
    part = slice(0, 500)
    found = world.logging.probabilities_of(log.contexts[part], log.actions[part])
    np.testing.assert_allclose(log.propensities[part], found, rtol=1e-4)
    place = log.support == log.actions[:, None]
    np.testing.assert_array_equal(log.support_probabilities[place], log.propensities)
    np.testing.assert_allclose(log.support_probabilities.sum(axis=1), 1.0)
    expected = world.value(world.logging, log.contexts)
    assert abs(log.rewards.mean() - expected) < 4 * log.rewards.std() / np.sqrt(len(log))
    # actions are drawn with the probabilities that are written beside them
    first = place[:, 0]
    chance = log.support_probabilities[:, 0]
    assert abs(first.mean() - chance.mean()) < 4 * np.sqrt((chance * (1 - chance)).mean() / len(log))


def test_a_seed_gives_the_same_world_and_log() -> None:
    first, again = (CatalogueWorld(500, 5, rank=2, k0=5, segments=10, seed=8) for _ in range(2))
    np.testing.assert_array_equal(first.embeddings, again.embeddings)
    np.testing.assert_array_equal(first.test_contexts, again.test_contexts)
    np.testing.assert_array_equal(first.log(100).actions, again.log(100).actions)
    np.testing.assert_array_equal(first.log(100).rewards, again.log(100).rewards)
    assert not np.array_equal(first.log(100, seed=1).actions, again.log(100).actions)


@pytest.mark.parametrize(
    "settings",
    [
        {"actions": 1},
        {"dim": 1},
        {"rank": 9},
        {"click_rate": 0.4},
        {"click_rate": 0.0},
        {"knowledge": 1.2},
        {"segments": 0},
        {"temperature": 0.0},
        {"test": 1},
    ],
)
def test_bad_settings_are_refused(settings: dict[str, float]) -> None:
    with pytest.raises(InvalidInput):
        CatalogueWorld(**({"actions": 100, "dim": 9, "rank": 3} | settings))  # type: ignore[arg-type]


def test_bad_questions_are_refused(world: CatalogueWorld) -> None:
    with pytest.raises(InvalidInput, match="policy"):
        world.value(UniformPolicy(3))
    with pytest.raises(InvalidInput, match="contexts"):
        world.best_value(np.ones((3, 4)))
    with pytest.raises(InvalidInput, match="ids"):
        world.mean_reward(world.test_contexts, [1, 2])


# ---- the policy of segments


def test_segments_play_their_lists(rng: np.random.Generator, tmp_path: Path) -> None:
    beta, centres = rng.standard_normal((40, 3)), 5 * np.eye(3)
    lists = np.array([[0, 1, 2], [7, 8, 9], [39, 0, 20]])
    policy = SegmentSoftmaxPolicy(beta, centres, lists, temperature=0.5)
    X = centres[[2, 0, 1, 1]] + 0.1 * rng.standard_normal((4, 3))
    ids, chances = policy.support(X)
    np.testing.assert_array_equal(ids, lists[[2, 0, 1, 1]])
    mass = np.exp(np.einsum("nd,nkd->nk", X, beta[ids]) / 0.5)
    np.testing.assert_allclose(chances, mass / mass.sum(axis=1, keepdims=True))
    policy.save(tmp_path / "policy")
    again = ma.load(tmp_path / "policy")
    assert isinstance(again, SegmentSoftmaxPolicy)
    np.testing.assert_array_equal(again.support(X)[1], chances)


@pytest.mark.parametrize("lists", [[[0, 0], [1, 2]], [[0, 1]], [[0, 50], [1, 2]]])
def test_wrong_lists_are_refused(lists: list[list[int]]) -> None:
    with pytest.raises((InvalidInput, UnknownAction)):
        SegmentSoftmaxPolicy(np.ones((4, 2)), np.ones((2, 2)), lists)
