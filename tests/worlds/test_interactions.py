"""Interaction data as a logged bandit: nothing leaks, propensities and values are exact."""

from __future__ import annotations

import copy
import os

import numpy as np
import pytest

from manyarms._base.typing import Array
from manyarms.errors import InvalidInput
from manyarms.policies import SoftmaxPolicy, TopSoftmaxPolicy, UniformPolicy
from manyarms.worlds.interaction_files import Interactions, interactions_of, read_interactions
from manyarms.worlds.interactions import InteractionWorld, halves
from manyarms.worlds.rounds import Value

needs_data = pytest.mark.skipif(not os.environ.get("MANYARMS_DATA"), reason="MANYARMS_DATA is not set")
PARTS = ("train", "validation", "test")


def made_up(users: int = 120, items: int = 60, seed: int = 0) -> Interactions:
    """Users and items of three kinds; users are seen with some dozen items, mostly of their kind."""
    rng = np.random.default_rng(seed)
    like = np.where(rng.integers(3, size=users)[:, None] == np.arange(items) % 3, 0.6, 0.15)
    who, what = np.nonzero(rng.random((users, items)) < like)
    return interactions_of(who, what, "made up")


@pytest.fixture(scope="module")
def data() -> Interactions:
    return made_up()


@pytest.fixture(scope="module")
def world(data: Interactions) -> InteractionWorld:
    return InteractionWorld(data, 5, k0=12, min_items=8, temperature=0.5, precision="float64", seed=3)


def test_histories_are_halved_and_users_split(data: Interactions, world: InteractionWorld) -> None:
    found = world.halves
    seen, hidden = found.seen.toarray(), found.hidden.toarray()
    assert not (seen * hidden).any()
    whole = np.zeros((data.user_count, data.item_count))
    whole[data.users, data.items] = 1
    np.testing.assert_array_equal(seen + hidden, whole[whole.sum(axis=1) >= 8])
    difference = seen.sum(axis=1) - hidden.sum(axis=1)
    assert set(difference.tolist()) <= {0.0, 1.0}
    sizes = [world.users(part) for part in PARTS]
    assert sum(sizes) == world.users()
    assert sizes[0] == round(0.8 * world.users())
    assert sizes[1] == round(0.1 * world.users())


def test_embeddings_are_the_right_singular_vectors_of_what_training_users_were_seen_with(
    world: InteractionWorld,
) -> None:
    matrix = world.halves.seen.toarray()[world.halves.part_of == 0]
    _, values, rows = np.linalg.svd(matrix, full_matrices=False)
    np.testing.assert_allclose(world.halves.singular_values, values[:5], rtol=1e-10)
    for found, expected in zip(world.halves.vectors.T, rows, strict=False):
        assert found[np.abs(found).argmax()] > 0
        np.testing.assert_allclose(found, expected * np.sign(found @ expected), atol=1e-9)
    # the default scale: rows of mean squared length 1
    assert np.mean(np.sum(world.embeddings**2, axis=1)) == pytest.approx(1.0)


def test_embeddings_of_whole_histories_still_know_nothing_of_other_users(data: Interactions) -> None:
    told = InteractionWorld(data, 5, k0=12, min_items=8, history="whole", seed=3)
    found = told.halves
    matrix = (found.seen + found.hidden).toarray()[found.part_of == 0]
    _, values, rows = np.linalg.svd(matrix, full_matrices=False)
    np.testing.assert_allclose(found.singular_values, values[:5], rtol=1e-10)
    for vector, expected in zip(found.vectors.T, rows, strict=False):
        np.testing.assert_allclose(vector, expected * np.sign(vector @ expected), atol=1e-9)


def test_numbers_of_users_in_the_parts(data: Interactions, world: InteractionWorld) -> None:
    many = InteractionWorld(data, 5, k0=12, min_items=8, test_users=40, validation_users=7, seed=3)
    assert [many.users(part) for part in PARTS] == [world.users() - 47, 7, 40]
    some = InteractionWorld(data, 5, k0=12, min_items=8, test_users=40, seed=3)
    assert [some.users(part) for part in PARTS[1:]] == [world.users("validation"), 40]
    other = InteractionWorld(data, 5, k0=12, min_items=8, validation_users=7, seed=3)
    assert [other.users(part) for part in PARTS[1:]] == [7, world.users("test")]
    with pytest.raises(InvalidInput, match="validation_users"):
        InteractionWorld(data, 5, min_items=8, test_users=10_000)


def test_a_value_is_the_mean_over_users(world: InteractionWorld) -> None:
    each = world.values(world.logging, "test")
    assert each.shape == (world.users("test"),)
    assert float(world.value(world.logging)) == pytest.approx(each.mean())


def test_contexts_are_the_mean_embedding_of_the_seen_half(world: InteractionWorld) -> None:
    rows = np.flatnonzero(world.halves.part_of == 2)
    for i, row in enumerate(rows):
        seen = np.flatnonzero(world.halves.seen.toarray()[row])
        np.testing.assert_allclose(world.contexts("test")[i], world.embeddings[seen].mean(axis=0))
        ids = world.hidden("test")[i]
        np.testing.assert_array_equal(ids[ids >= 0], np.flatnonzero(world.halves.hidden.toarray()[row]))


def test_the_same_seed_gives_the_same_world(data: Interactions, world: InteractionWorld) -> None:
    halves.cache_clear()
    again = InteractionWorld(data, 5, k0=12, min_items=8, temperature=0.5, precision="float64", seed=3)
    np.testing.assert_array_equal(again.embeddings, world.embeddings)
    first, second = world.log(rounds=50, seed=4), again.log(rounds=50, seed=4)
    np.testing.assert_array_equal(first.actions, second.actions)
    np.testing.assert_array_equal(first.rewards, second.rewards)
    other = InteractionWorld(data, 5, k0=12, min_items=8, seed=4)
    assert not np.array_equal(other.halves.part_of, world.halves.part_of)


def dense_value(world: InteractionWorld, probabilities: Array, part: str = "test") -> float:
    rows = world.halves.part_of == PARTS.index(part)
    return float((probabilities * world.halves.hidden.toarray()[rows]).sum(axis=1).mean())


@pytest.mark.parametrize("part", PARTS)
def test_values_are_sums_over_the_hidden_items(world: InteractionWorld, part: str) -> None:
    X = world.contexts(part)  # type: ignore[arg-type]
    every = np.broadcast_to(np.arange(world.actions), (len(X), world.actions))
    for policy in (
        SoftmaxPolicy(3 * world.embeddings),
        TopSoftmaxPolicy(world.embeddings, 4),
        UniformPolicy(world.actions),
        world.logging,
    ):
        expected = dense_value(world, policy.probabilities_of_many(X, every), part)
        value = world.value(policy, part)  # type: ignore[arg-type]
        assert value == pytest.approx(expected, rel=1e-12)
        assert value <= world.best_value(part)  # type: ignore[arg-type]


def test_the_log_has_exact_propensities_and_supports(world: InteractionWorld) -> None:
    log = world.log("train", rounds=2000, seed=1)
    assert log.propensities is not None and log.support is not None and log.support_probabilities is not None
    np.testing.assert_allclose(log.propensities, world.logging.probabilities_of(log.contexts, log.actions), rtol=1e-9)
    place = log.support == log.actions[:, None]
    np.testing.assert_array_equal(place.sum(axis=1), 1)
    np.testing.assert_array_equal(log.support_probabilities[place], log.propensities)
    np.testing.assert_allclose(log.support_probabilities.sum(axis=1), 1.0)
    hidden = world.halves.hidden.toarray()
    np.testing.assert_array_equal(log.rewards, hidden[log.groups, log.actions])
    # what is logged is what is played: the mean reward is the logging policy's value
    value = world.value(world.logging, "train")
    assert abs(log.rewards.mean() - value) < 4 * log.rewards.std() / np.sqrt(len(log)) + 4 * value.standard_error


def test_importance_weights_give_the_value_of_another_policy(world: InteractionWorld) -> None:
    log = world.log("train", rounds=20_000, seed=2)
    target = TopSoftmaxPolicy(world.embeddings, 12, 1.0)
    assert log.propensities is not None
    terms = target.probabilities_of(log.contexts, log.actions) / log.propensities * log.rewards
    users = np.bincount(np.unique(log.groups, return_inverse=True)[1])
    assert len(users) == world.users("train")
    error = terms.std() / np.sqrt(len(terms)) + 1 / np.sqrt(len(terms))
    assert abs(terms.mean() - world.value(target, "train")) < 4 * error


def test_one_round_a_user_unless_asked(world: InteractionWorld) -> None:
    log = world.log("validation", support=False)
    np.testing.assert_array_equal(log.contexts, world.contexts("validation"))
    assert log.support is None and log.propensities is not None


@pytest.mark.parametrize("shift", [0.0, 0.5])
def test_noise_replaces_rewards_by_the_shift(data: Interactions, world: InteractionWorld, shift: float) -> None:
    noisy = InteractionWorld(
        data, 5, k0=12, min_items=8, temperature=0.5, precision="float64", noise=0.3, shift=shift, seed=3
    )
    clean = world.value(world.logging, "train")
    assert noisy.value(noisy.logging, "train") == pytest.approx(0.7 * clean + 0.3 * shift)
    rewards = noisy.log(rounds=20_000).rewards
    assert set(np.unique(rewards).tolist()) == {0.0, shift, 1.0}
    assert rewards.mean() == pytest.approx(0.7 * clean + 0.3 * shift, abs=4 * 0.5 / np.sqrt(20_000))


def test_a_small_scale_makes_the_logging_policy_uniform_over_its_support(data: Interactions) -> None:
    plain = InteractionWorld(data, 5, k0=12, min_items=8, scale=1.0, seed=3)
    chances = plain.log().support_probabilities
    assert chances is not None and chances.max() < 1.2 / 12
    np.testing.assert_allclose(plain.embeddings.T @ plain.embeddings, np.eye(5), atol=1e-6)
    sharp = InteractionWorld(data, 5, k0=12, min_items=8, scale=1.0, temperature=0.001, seed=3).log()
    assert sharp.support_probabilities is not None
    assert sharp.support_probabilities[:, 0].mean() > 0.5  # where a uniform one has 1/12


def test_items_and_users_can_be_fewer(data: Interactions) -> None:
    small = InteractionWorld(data, 3, items=20, users=40, min_items=4, seed=0)
    assert (small.actions, small.users()) == (20, 40)
    audience = np.bincount(data.items)
    assert audience[small.item_ids].min() >= np.delete(audience, small.item_ids).max()


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        ({"dim": 60}, "dim"),
        ({"min_items": 1}, "min_items"),
        ({"min_items": 59}, "at least 10"),
        ({"k0": 0}, "k0"),
        ({"temperature": 0.0}, "temperature"),
        ({"scale": -1.0}, "scale"),
        ({"noise": 1.5}, "noise"),
        ({"precision": "float16"}, "precision"),
    ],
)
def test_bad_settings_are_refused(data: Interactions, settings: dict[str, object], what: str) -> None:
    with pytest.raises(InvalidInput, match=what):
        InteractionWorld(data, **({"dim": 5, "min_items": 8} | settings))  # type: ignore[arg-type]


def test_bad_questions_are_refused(world: InteractionWorld) -> None:
    with pytest.raises(InvalidInput, match="part"):
        world.contexts("all")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="policy"):
        world.value(UniformPolicy(3))


def test_a_value_is_a_number_and_keeps_its_error() -> None:
    value = Value.of(np.array([0.0, 1.0, 1.0, 0.0]))
    assert value == 0.5 and value.value == 0.5
    assert value.standard_error == pytest.approx(np.sqrt(1 / 3) / 2)
    for again in (copy.copy(value), copy.deepcopy(value)):
        assert again == value and again.standard_error == value.standard_error


@pytest.mark.data
@needs_data
def test_a_real_logging_policy_beats_chance() -> None:
    world = InteractionWorld(read_interactions("ml-100k"), 16, k0=50, seed=0)
    assert world.value(world.logging) > 3 * world.value(UniformPolicy(world.actions))
    assert world.log().rewards.mean() > 0
