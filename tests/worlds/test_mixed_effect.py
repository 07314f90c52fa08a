"""The mixed-effect world is drawn from the prior it gives."""

from __future__ import annotations

import numpy as np
import pytest

from manyarms.errors import InvalidInput
from manyarms.worlds import MixedEffect


def test_theta_has_the_law_of_the_prior() -> None:
    weights = np.array([[1.0, 0.0], [0.6, -0.8], [0.0, 0.5]])
    seeds, size = 4000, 6
    worlds = [MixedEffect(3, 2, 2, weights=weights, effect_scale=2.0, action_scale=0.5, seed=s) for s in range(seeds)]
    theta = np.stack([world.theta.ravel() for world in worlds])
    prior = worlds[0].prior()
    mixing = np.kron(prior.weights, np.eye(2))  # every theta_a is its block of rows times Psi
    joint = mixing @ prior.effect_covariance @ mixing.T + np.kron(np.eye(3), prior.action_covariance)
    assert (np.abs(theta.mean(axis=0)) < 4.5 * np.sqrt(np.diag(joint) / seeds)).all()
    # an entry of a Gaussian's sample covariance has variance (S_ii S_jj + S_ij^2) / n
    error = np.sqrt((np.outer(np.diag(joint), np.diag(joint)) + joint**2) / seeds)
    assert (np.abs(theta.T @ theta / seeds - joint) < 4.5 * error).all()
    assert theta.shape == (seeds, size)


def test_theta_scatters_around_its_own_effects() -> None:
    world = MixedEffect(20_000, 3, 4, action_scale=0.7, seed=3)
    rest = world.theta - world.weights @ world.psi
    assert np.abs(rest.mean(axis=0)).max() < 4.5 * np.sqrt(0.7 / 20_000)
    assert np.abs(rest.T @ rest / 20_000 - 0.7 * np.eye(4)).max() < 4.5 * 0.7 * np.sqrt(2 / 20_000)


def test_weights_follow_their_rule() -> None:
    uniform = MixedEffect(20_000, 3, 2, seed=0)
    assert np.abs(uniform.weights).max() <= 1
    assert np.abs(uniform.weights.mean(axis=0)).max() < 4.5 * np.sqrt(1 / 3 / 20_000)
    assert np.abs((uniform.weights**2).mean(axis=0) - 1 / 3).max() < 4.5 * np.sqrt(4 / 45 / 20_000)
    assert uniform.kappa_b == pytest.approx((uniform.weights**2).sum(axis=1).max())
    onehot = MixedEffect(3000, 4, 2, weights="onehot", action_scale=0.0, seed=0)
    assert (onehot.weights.sum(axis=1) == 1).all() and set(onehot.weights.ravel()) == {0.0, 1.0}
    assert np.abs(onehot.weights.mean(axis=0) - 0.25).max() < 4.5 * np.sqrt(0.25 * 0.75 / 3000)
    np.testing.assert_allclose(onehot.theta, onehot.psi[onehot.weights.argmax(axis=1)])


def test_contexts_fill_the_cube() -> None:
    X = MixedEffect(2, 1, 3, seed=1).contexts(30_000)
    assert np.abs(X).max() <= 1
    assert np.abs(X.mean(axis=0)).max() < 4.5 * np.sqrt(1 / 3 / 30_000)
    assert np.abs(X.T @ X / 30_000 - np.eye(3) / 3).max() < 4.5 / 3 / np.sqrt(30_000)
    assert MixedEffect(2, 1, 3).kappa_x == 3.0


def test_a_world_is_a_function_of_its_seed() -> None:
    one, two, other = (MixedEffect(50, 3, 2, reward="logistic", seed=s) for s in (4, 4, 5))
    np.testing.assert_array_equal(one.theta, two.theta)
    X, Y = one.contexts(9), two.contexts(9)
    np.testing.assert_array_equal(X, Y)
    np.testing.assert_array_equal(one.reward(X, np.arange(9)), two.reward(Y, np.arange(9)))
    assert not np.array_equal(one.theta, other.theta)
    # the law of rewards, the pool and the scales do not reach into the draw of directions
    np.testing.assert_array_equal(one.weights, MixedEffect(50, 3, 2, context_pool=3, seed=4).weights)


def test_a_world_without_action_noise_gives_a_prior_with_a_floor() -> None:
    world = MixedEffect(30, 3, 2, action_scale=0.0, seed=2)
    np.testing.assert_allclose(world.theta, world.weights @ world.psi)
    np.testing.assert_array_equal(world.prior().action_covariance, 1e-8 * np.eye(2))
    np.testing.assert_array_equal(world.prior(floor=1e-4).action_covariance, 1e-4 * np.eye(2))
    known = MixedEffect(30, 3, 2, effect_scale=0.0, seed=2)
    assert not known.psi.any()
    np.testing.assert_array_equal(known.prior().effect_covariance, 1e-8 * np.eye(6))
    np.testing.assert_array_equal(MixedEffect(30, 3, 2).prior(floor=1e-4).action_covariance, np.eye(2))


def test_the_priors_of_the_baselines() -> None:
    world = MixedEffect(30, 3, 2, effect_scale=3.0, action_scale=1.0, seed=2)
    alone, shared, told = world.action_prior(), world.hierarchical_prior(), world.known_effects_prior()
    spread = 1 + 3 * (world.weights**2).sum(axis=1)
    np.testing.assert_allclose(alone.covariance, spread[:, None, None] * np.eye(2))
    assert not alone.mean.any()
    np.testing.assert_allclose(shared.covariance, 3 * np.eye(2))
    np.testing.assert_allclose(told.mean, world.weights @ world.psi)
    np.testing.assert_allclose(told.covariance, np.eye(2))
    assert (world.actions, world.effects, world.dim, world.likelihood, world.noise) == (30, 3, 2, "linear", 1.0)


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        ({"actions": 0}, "actions"),
        ({"dim": 0}, "dim"),
        ({"effects": 1.5}, "effects"),
        ({"noise": -1.0}, "noise"),
        ({"effect_scale": -1.0}, "effect_scale"),
        ({"action_scale": float("nan")}, "action_scale"),
        ({"weights": "two-hot"}, "weights"),
        ({"weights": np.ones((3, 2))}, "weights"),
        ({"context_pool": 0}, "context_pool"),
        ({"seed": -1}, "seed"),
        ({"reward": "gamma"}, "reward"),
    ],
)
def test_bad_arguments_are_refused_by_name(wrong: dict[str, object], name: str) -> None:
    arguments = {"actions": 4, "effects": 2, "dim": 2} | wrong
    with pytest.raises(InvalidInput, match=f"^{name}:"):
        MixedEffect(**arguments)  # type: ignore[arg-type]
