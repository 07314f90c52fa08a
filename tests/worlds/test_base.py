"""Rewards, optimal actions and regret of any world."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from manyarms._base.best_action import BestAction
from manyarms.errors import InvalidInput, UnknownAction
from manyarms.worlds import MixedEffect, RewardDistribution

KINDS = ("linear", "logistic", "poisson")


def small_world(kind: str, **options: object) -> MixedEffect:
    return MixedEffect(40, 3, 2, reward=kind, effect_scale=0.5, action_scale=0.3, seed=7, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", KINDS)
def test_rewards_have_the_mean_and_the_variance_of_their_law(kind: str) -> None:
    world = small_world(kind, noise=0.7)
    x, draws = world.contexts(1)[0], 40_000
    for a in (0, 5, 39):
        rewards = world.reward(np.tile(x, (draws, 1)), np.full(draws, a))
        mean = world.mean_reward(x, a)
        variance = {"linear": 0.49, "logistic": mean * (1 - mean), "poisson": mean}[kind]
        assert abs(rewards.mean() - mean) < 4.5 * np.sqrt(variance / draws)
        if kind == "logistic":
            assert set(rewards) == {0.0, 1.0}  # then the mean is the whole law
            continue
        fourth = ((rewards - mean) ** 4).mean()
        assert abs(rewards.var() - variance) < 4.5 * np.sqrt((fourth - variance**2) / draws)


@pytest.mark.parametrize(
    ("kind", "link"), [("linear", lambda u: u), ("logistic", lambda u: 1 / (1 + np.exp(-u))), ("poisson", np.exp)]
)
def test_mean_reward_is_the_link_of_the_score(kind: str, link: object) -> None:
    world = small_world(kind)
    X, A = world.contexts(50), np.arange(50) % 40
    by_hand = np.array([link(x @ world.theta[a]) for x, a in zip(X, A, strict=True)])  # type: ignore[operator]
    np.testing.assert_allclose(world.mean_reward(X, A), by_hand, rtol=1e-12)
    assert world.mean_reward(X[3], A[3]) == pytest.approx(by_hand[3])


@pytest.mark.parametrize("kind", KINDS)
def test_rewards_are_floats_of_the_right_kind(kind: str) -> None:
    world = small_world(kind)
    X = world.contexts(500)
    rewards = world.reward(X, np.arange(500) % 40)
    assert rewards.dtype == np.float64 and rewards.shape == (500,)
    assert isinstance(world.reward(X[0], 3), float) and isinstance(world.reward(X[0], np.int64(3)), float)
    if kind == "logistic":
        assert set(rewards) == {0.0, 1.0}
    if kind == "poisson":
        assert (rewards >= 0).all() and (rewards == np.rint(rewards)).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("actions", [1, 7, 5000])
def test_optimal_and_regret_agree_with_brute_force(kind: str, actions: int) -> None:
    world = MixedEffect(actions, 3, 4, reward=kind, effect_scale=0.5, action_scale=0.2, seed=1)  # type: ignore[arg-type]
    X = world.contexts(60)
    every = np.stack([world.mean_reward(X, np.full(60, a)) for a in range(actions)], axis=1)
    ids, values = world.optimal(X)
    np.testing.assert_array_equal(ids, every.argmax(axis=1))
    np.testing.assert_allclose(values, every.max(axis=1), rtol=1e-12)
    played = np.random.default_rng(0).integers(actions, size=60)
    regret = world.regret(X, played)
    np.testing.assert_allclose(regret, every.max(axis=1) - every[np.arange(60), played], rtol=1e-9, atol=1e-12)
    assert (regret >= 0).all()
    assert world.regret(X[0], int(played[0])) == pytest.approx(regret[0], abs=1e-12)
    assert world.regret(X, ids) == pytest.approx(np.zeros(60), abs=1e-12)


@pytest.mark.parametrize("dim", [1, 3, 12, 40])
@pytest.mark.parametrize("shape", ["round", "flat", "subspace", "twins", "zero", "far"])
def test_the_search_is_exact_for_every_shape_of_catalogue(dim: int, shape: str) -> None:
    rng = np.random.default_rng(dim)
    theta = rng.normal(size=(9000, dim))
    if shape == "flat":
        theta *= np.logspace(0, -9, dim)
    elif shape == "subspace":
        theta = rng.normal(size=(9000, 2)) @ rng.normal(size=(2, dim))
    elif shape == "twins":
        theta = theta[rng.integers(5, size=9000)]
    elif shape == "zero":
        theta *= 0
    elif shape == "far":
        theta += 100
    X = rng.uniform(-1, 1, size=(70, dim))
    X[0] = 0
    ids, scores = BestAction(theta)(X)
    brute = (X @ theta.T).max(axis=1)
    np.testing.assert_allclose(scores, brute, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(np.einsum("nd,nd->n", X, theta[ids]), brute, rtol=1e-12, atol=1e-12)


def test_the_search_never_holds_contexts_times_actions() -> None:
    world = MixedEffect(100_000, 3, 6, seed=0)
    X = world.contexts(2000)
    tracemalloc.start()
    world.optimal(X)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 60e6  # 2000 x 100,000 scores would take 1,600 MB


def test_contexts_and_rewards_have_streams_of_their_own() -> None:
    one, two = small_world("linear"), small_world("linear")
    X = one.contexts(20)
    first = two.contexts(8)
    two.reward(first, np.zeros(8, dtype=np.int64))  # rewards in between do not move the contexts
    np.testing.assert_array_equal(X, np.concatenate([first, two.contexts(12)]))


def test_pooled_contexts_continue_like_one_stream_and_repeat() -> None:
    one, two = small_world("linear", context_pool=5), small_world("linear", context_pool=5)
    X = one.contexts(31)
    np.testing.assert_array_equal(X, np.concatenate([two.contexts(n) for n in (1, 2, 7, 21)]))
    assert len(np.unique(X, axis=0)) == 5
    assert (np.abs(X) <= 1).all() and one.kappa_x == 2


def test_a_replay_is_the_same_world_with_fresh_streams() -> None:
    world = small_world("linear", context_pool=30)
    X = world.contexts(10)
    rewards = world.reward(X, np.arange(10))
    other, again = world.replay(99), world.replay(7)
    assert other.theta is world.theta and other.source is world.source
    assert not np.array_equal(other.contexts(10), X)
    np.testing.assert_array_equal(again.contexts(10), X)
    np.testing.assert_array_equal(again.reward(X, np.arange(10)), rewards)
    ahead = small_world("linear", context_pool=30)
    ahead.contexts(10)
    np.testing.assert_array_equal(world.contexts(3), ahead.contexts(3))  # the replays did not move the original


def test_a_seed_sequence_is_a_seed_and_is_left_as_it_was() -> None:
    seed = np.random.SeedSequence(5).spawn(3)[2]
    one, two = MixedEffect(5, 2, 3, seed=seed), MixedEffect(5, 2, 3, seed=seed)
    np.testing.assert_array_equal(one.theta, two.theta)
    assert seed.n_children_spawned == 0
    assert not np.array_equal(one.theta, MixedEffect(5, 2, 3, seed=5).theta)
    assert not np.array_equal(MixedEffect(5, 2, 3, seed=None).theta, MixedEffect(5, 2, 3, seed=None).theta)


def test_bad_decisions_are_refused_by_name() -> None:
    world = small_world("linear")
    X = world.contexts(3)
    for bad in (40, -1, True, 0.5):
        with pytest.raises(UnknownAction, match="a:"):
            world.reward(X[0], bad)  # type: ignore[call-overload]
    with pytest.raises(UnknownAction, match="got 41"):
        world.regret(X, np.array([0, 41, 2]))
    with pytest.raises(InvalidInput, match="a: expected one action for each of the 3 contexts"):
        world.reward(X, np.array([0, 1]))
    with pytest.raises(InvalidInput, match="x: expected an array of shape"):
        world.regret(X, 0)
    with pytest.raises(InvalidInput, match="nan"):
        world.mean_reward(np.array([np.nan, 0.0]), 0)
    with pytest.raises(InvalidInput, match="contexts"):
        world.optimal(np.ones((2, 3)))
    with pytest.raises(InvalidInput, match="n: expected an integer"):
        world.contexts(-1)
    assert world.contexts(0).shape == (0, 2) and world.optimal(np.ones((0, 2)))[0].shape == (0,)


def test_reward_laws_are_checked() -> None:
    with pytest.raises(InvalidInput, match="reward"):
        RewardDistribution("gamma")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="noise"):
        RewardDistribution("linear", 0.0)
    with pytest.raises(InvalidInput, match="Poisson mean"):
        RewardDistribution("poisson").draw(np.array([1e30]), np.random.default_rng(0))
