"""The MovieLens world, on made-up files, and on the real ones where MANYARMS_DATA has them."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from manyarms.errors import DataError, InvalidInput
from manyarms.worlds import MovieLens
from manyarms.worlds.datasets import read_ratings, write_made_up_movielens
from manyarms.worlds.movielens import catalogue, factors

DATA = os.environ.get("MANYARMS_DATA")
needs_data = pytest.mark.skipif(not DATA, reason="MANYARMS_DATA is not set")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_made_up_movielens(tmp_path_factory.mktemp("made-up"), users=150, movies=120)


def test_movies_are_actions_and_users_are_contexts(folder: Path) -> None:
    world = MovieLens(30, 3, folder=folder, seed=1)
    learned = factors(read_ratings(folder=folder), 3)
    assert len(set(world.movies)) == 30
    np.testing.assert_array_equal(world.theta, learned.items[world.movies - 1])  # made-up ids are 1, 2, ...
    X = world.contexts(4000)
    whose = np.abs(X[:, None, :] - learned.users[None, :, :]).sum(axis=2).argmin(axis=1)
    np.testing.assert_array_equal(X, learned.users[whose])
    counts = np.bincount(whose, minlength=150)  # uniform: chi-square with 149 degrees of freedom
    assert ((counts - 4000 / 150) ** 2 / (4000 / 150)).sum() < 149 + 4.5 * np.sqrt(2 * 149)
    assert (np.einsum("nd,nd->n", X, X) <= world.kappa_x * (1 + 1e-12)).all()
    assert world.provenance.startswith("made-up data, not MovieLens")
    assert (world.actions, world.dim, world.effects, world.likelihood, world.noise) == (30, 3, 5, "linear", 0.5)


def test_priors_follow_the_rule_of_the_thesis(folder: Path) -> None:
    world = MovieLens(40, 3, effects=4, folder=folder)
    movies = world.catalogue.movies
    v = movies.var(axis=0)
    prior = world.prior()
    np.testing.assert_allclose(prior.action_covariance, 0.25 * np.diag(v), rtol=1e-10)
    np.testing.assert_allclose(prior.effect_covariance, 0.75 * np.kron(np.eye(4), np.diag(v)), rtol=1e-10)
    np.testing.assert_allclose(prior.weights.sum(axis=1), 1.0)
    # the centre of a cluster is the mean of its movies, each as far as it belongs
    whole = world.catalogue.prior
    centres = whole.weights.T @ movies / whole.weights.sum(axis=0)[:, None]
    np.testing.assert_allclose(prior.effect_mean, centres, atol=0.05 * np.sqrt(v.max()))
    alone, shared = world.action_prior(), world.hierarchical_prior()
    np.testing.assert_allclose(alone.mean, movies.mean(axis=0))
    np.testing.assert_allclose(alone.covariance, np.diag(v), rtol=1e-10)
    np.testing.assert_allclose(shared.covariance + shared.action_covariance, alone.covariance)
    np.testing.assert_allclose(shared.mean, alone.mean)


def test_priors_can_be_learned_from_a_part_of_the_movies(folder: Path) -> None:
    whole, part = (MovieLens(30, 3, effects=3, folder=folder, learned_from=n) for n in (None, 40))
    np.testing.assert_array_equal(part.theta, whole.theta)  # the world is the same, only the priors differ
    movies = whole.catalogue.movies
    mean, v = part.action_prior().mean, np.diagonal(part.action_prior().covariance)
    assert not np.allclose(mean, movies.mean(axis=0)) and not np.allclose(v, movies.var(axis=0))
    # a part of 40 has moments near those of the 120
    assert (np.abs(mean - movies.mean(axis=0)) < 5 * np.sqrt(movies.var(axis=0) / 40)).all()
    np.testing.assert_allclose(part.prior().action_covariance, 0.25 * np.diag(np.ravel(v)[:3]), rtol=1e-10)
    assert part.catalogue.prior.weights.shape == (len(movies), 3)
    everything = MovieLens(30, 3, effects=3, folder=folder, learned_from=10_000)
    np.testing.assert_array_equal(everything.prior().effect_mean, whole.prior().effect_mean)
    with pytest.raises(InvalidInput, match="learned_from"):
        MovieLens(30, 3, effects=3, folder=folder, learned_from=0)


def test_runs_share_the_preparation_and_differ_in_their_movies(folder: Path) -> None:
    one, two, same = (MovieLens(20, 3, folder=folder, seed=s) for s in (1, 2, 1))
    assert one.catalogue is two.catalogue
    assert set(one.movies) != set(two.movies)
    np.testing.assert_array_equal(one.movies, same.movies)
    np.testing.assert_array_equal(one.contexts(5), same.contexts(5))
    with pytest.raises(ValueError, match="read-only"):
        one.catalogue.movies[0, 0] = 0.0
    again = one.replay(5)
    assert again.theta is one.theta and not np.array_equal(again.contexts(50), one.contexts(50))


@pytest.mark.parametrize("reward", ["linear", "logistic"])
def test_regret_agrees_with_brute_force(folder: Path, reward: str) -> None:
    world = MovieLens(25, 3, reward=reward, folder=folder)  # type: ignore[arg-type]
    X = world.contexts(80)
    scores = X @ world.theta.T
    means = scores if reward == "linear" else 1 / (1 + np.exp(-scores))
    played = np.arange(80) % 25
    np.testing.assert_allclose(world.regret(X, played), means.max(axis=1) - means[np.arange(80), played], atol=1e-12)


def test_bad_arguments(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidInput, match="actions: expected at most 120"):
        MovieLens(121, 3, folder=folder)
    with pytest.raises(InvalidInput, match="dim"):
        MovieLens(10, 0, folder=folder)
    with pytest.raises(InvalidInput, match="effects"):
        MovieLens(10, 2, effects=121, folder=folder)
    monkeypatch.delenv("MANYARMS_DATA", raising=False)
    with pytest.raises(DataError, match="MANYARMS_DATA"):
        MovieLens(10, 2)


@pytest.mark.data
@needs_data
def test_the_real_files_have_their_published_sizes() -> None:
    ratings = read_ratings("ml-1m")
    assert (len(ratings), len(ratings.user_ids), len(ratings.item_ids)) == (1_000_209, 6040, 3706)
    np.testing.assert_array_equal(np.bincount(ratings.ratings.astype(int))[1:], [56174, 107557, 261197, 348971, 226310])
    older = read_ratings("ml-100k")
    assert (len(older), len(older.user_ids), len(older.item_ids)) == (100_000, 943, 1682)


@pytest.mark.data
@needs_data
def test_the_real_world_is_learned_well() -> None:
    ratings = read_ratings("ml-1m")
    learned = factors(ratings, 5)
    errors = ratings.ratings - learned.predict(ratings.users, ratings.items)
    assert np.sqrt((errors**2).mean()) < 0.83 < ratings.ratings.std()
    world = MovieLens(100, 5, seed=0)
    assert world.catalogue is catalogue(ratings, 5, 5, None)  # learned once in a process
    X = world.contexts(500)
    best = world.mean_reward(X, world.optimal(X)[0]).mean()
    assert best > world.mean_reward(X, np.arange(500) % 100).mean() + 1.0
    assert world.provenance == "MovieLens ml-1m: 1,000,209 ratings of 3,706 movies by 6,040 users"
