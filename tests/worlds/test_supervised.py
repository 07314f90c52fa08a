"""Labelled rows as a bandit: what is logged was not learned from, propensities and values are exact."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from manyarms._base.typing import Array, Ints
from manyarms.errors import DataError, InvalidInput
from manyarms.policies import SoftmaxPolicy, UniformPolicy
from manyarms.worlds.image_files import ImageSet, read_images, write_made_up_images
from manyarms.worlds.supervised import Fit, SupervisedWorld, fit_softmax, shrunk


def labelled(n: int, classes: int = 4, dim: int = 6, seed: int = 0) -> tuple[Array, Ints]:
    """Rows around one centre a class."""
    centres = np.random.default_rng(99).normal(size=(classes, dim))
    rng = np.random.default_rng(seed)
    y = rng.integers(classes, size=n)
    return centres[y] + 0.7 * rng.normal(size=(n, dim)), y


@pytest.fixture(scope="module")
def world() -> SupervisedWorld:
    return SupervisedWorld(*labelled(2_000), *labelled(500, seed=1), seed=3)


def test_rows_are_normalised_and_the_split_is_5_to_95(world: SupervisedWorld) -> None:
    assert world.rows == 1_900
    assert (world.actions, world.dim) == (4, 6)
    for part in ("logged", "test"):
        np.testing.assert_allclose(np.linalg.norm(world.contexts(part), axis=1), 1, rtol=1e-12)
    X, y = labelled(2_000)
    ids = world.log(0.3).event_ids
    assert ids is not None
    index = ids.astype(int)
    assert len(set(index.tolist())) == 1_900
    np.testing.assert_allclose(world.contexts("logged"), X[index] / np.linalg.norm(X[index], axis=1, keepdims=True))
    np.testing.assert_array_equal(world.targets("logged"), y[index])


def test_logged_rows_do_not_influence_the_logging_policy(world: SupervisedWorld) -> None:
    X, y = labelled(2_000)
    ids = world.log(0.3).event_ids
    assert ids is not None
    X[ids.astype(int)] = np.random.default_rng(0).normal(size=(1_900, 6))
    other = SupervisedWorld(X, y, *labelled(500, seed=1), seed=3)
    np.testing.assert_array_equal(other.mu0, world.mu0)


def test_adam_ends_near_the_best_penalised_softmax(rng: np.random.Generator) -> None:
    X, y = labelled(300, classes=3, dim=4)
    fit = Fit(epochs=400, rate=0.02, decay=0.05, batch=300)
    found = fit_softmax(X, y, 3, fit, rng)

    def loss(flat: Array) -> float:
        mu = flat.reshape(3, 4)
        return float(-log_softmax(X @ mu.T, axis=1)[np.arange(300), y].mean() + 0.025 * (mu**2).sum())

    best = minimize(loss, np.zeros(12))
    assert loss(found.reshape(-1)) <= best.fun + 1e-6


def test_a_log_has_exact_propensities_and_rewards(world: SupervisedWorld) -> None:
    for eta0 in (-0.5, 0.0, 1.0):
        log = world.log(eta0, seed=5)
        dense = softmax(eta0 * log.contexts @ world.mu0.T, axis=1)
        assert log.propensities is not None
        np.testing.assert_allclose(log.propensities, dense[np.arange(len(log)), log.actions], rtol=1e-10)
        np.testing.assert_array_equal(log.rewards, log.actions == world.targets("logged"))
        assert isinstance(log.logging, SoftmaxPolicy)
        # the mean reward is a draw around the value on the same rows
        truth = world.value(log.logging, "logged")
        assert abs(log.rewards.mean() - truth) < 4 * np.sqrt(0.25 / len(log))


def test_the_same_seed_gives_the_same_log_and_another_one_another(world: SupervisedWorld) -> None:
    np.testing.assert_array_equal(world.log(0.5, seed=1).actions, world.log(0.5, seed=1).actions)
    assert (world.log(0.5, seed=1).actions != world.log(0.5, seed=2).actions).any()
    drawn = world.log(0.5, seed=1, rows=50)
    assert len(drawn) == 50
    assert drawn.event_ids is None


def test_the_logging_policy_is_better_the_larger_eta(world: SupervisedWorld) -> None:
    values = [float(world.value(world.logging(eta0))) for eta0 in (-1.0, -0.3, 0.0, 0.3, 1.0, 3.0)]
    assert values == sorted(values)
    assert values[2] == pytest.approx(0.25, abs=1e-12)


def test_values_are_the_mean_probability_of_the_right_label(world: SupervisedWorld) -> None:
    policy = world.logging(0.7)
    dense = softmax(0.7 * world.contexts() @ world.mu0.T, axis=1)
    assert world.value(policy) == pytest.approx(dense[np.arange(500), world.targets()].mean(), rel=1e-12)
    assert float(world.value(UniformPolicy(4))) == pytest.approx(0.25)


@pytest.mark.parametrize("family", ["gaussian", "mixed-logit", "softmax"])
def test_priors_have_the_logging_policys_mean(world: SupervisedWorld, family: str) -> None:
    prior = world.prior(0.4, family)  # type: ignore[arg-type]
    np.testing.assert_allclose(prior.actions, 0.4 * world.mu0)
    assert 0.25 < world.value(prior) < 1
    with pytest.raises(InvalidInput, match="family"):
        world.prior(0.4, "cauchy")  # type: ignore[arg-type]


def test_a_randomised_prior_with_little_noise_is_nearly_its_mean(world: SupervisedWorld) -> None:
    greedy = (world.contexts() @ world.mu0.T).argmax(axis=1) == world.targets()
    assert float(world.value(world.prior(1.0, "gaussian", 1e-4))) == pytest.approx(greedy.mean(), abs=2e-3)
    mixed = world.prior(1.0, "mixed-logit", 1e-4, draws=8)
    assert float(world.value(mixed)) == pytest.approx(float(world.value(world.logging(1.0))), abs=1e-3)


@pytest.mark.parametrize("name", ["mnist", "fashion-mnist", "emnist", "cifar100"])
def test_picture_files_in_their_own_formats(tmp_path: Path, name: ImageSet) -> None:
    folder = write_made_up_images(tmp_path / name, name, classes=5, each=60)
    pictures = read_images(name, folder)
    made = SupervisedWorld.from_images(name, folder, shrink=2, rows=200, test_rows=40)
    assert made.provenance == pictures.provenance
    assert "made-up" in made.log(0.5).notes[0]
    assert made.dim == pictures.train.shape[1] // 4
    assert (made.rows, len(made.targets()), made.actions) == (190, 40, 5)
    assert made.value(made.logging(1.0)) > 0.25  # ten rows teach something


def test_shrinking_averages_squares() -> None:
    picture = np.arange(16, dtype=np.uint8).reshape(1, 16)
    np.testing.assert_allclose(shrunk(picture, 2), [[2.5, 4.5, 10.5, 12.5]])
    colours = np.stack([picture, 2 * picture], axis=-1).reshape(1, 32)
    np.testing.assert_allclose(shrunk(colours, 2, 2)[0, 1::2], [5, 9, 21, 25])
    with pytest.raises(InvalidInput, match="shrink"):
        shrunk(picture, 3)


def test_features_from_a_file_and_any_rows_with_labels(tmp_path: Path) -> None:
    X, y = labelled(300)
    X_test, y_test = labelled(50, seed=2)
    np.savez(tmp_path / "features.npz", x_train=X, y_train=y, x_test=X_test, y_test=y_test)
    read = SupervisedWorld.from_features(tmp_path / "features.npz")
    np.testing.assert_array_equal(read.mu0, SupervisedWorld(X, y, X_test, y_test).mu0)
    with pytest.raises(DataError, match="no such file"):
        SupervisedWorld.from_features(tmp_path / "nothing.npz")
    words = np.array(["ant", "bee", "cat", "dog"])[y]
    from_words = SupervisedWorld.from_data(X, words, test_share=0.25)
    assert len(from_words.targets()) == 75
    assert from_words.labels.tolist() == ["ant", "bee", "cat", "dog"]


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"y": np.zeros(100, dtype=int)}, "one label"),
        ({"y": np.zeros(99, dtype=int)}, "shape"),
        ({"X": np.full((100, 6), np.nan)}, "finite"),
        ({"X": np.zeros((100, 5))}, "length"),
        ({"y_test": np.full(20, 17)}, "labels"),
        ({"rows": 1}, "at least two|enough"),
    ],
)
def test_bad_rows_are_refused(change: dict[str, object], what: str) -> None:
    X, y = labelled(100)
    X_test, y_test = labelled(20, seed=1)
    given: dict[str, object] = {"X": X, "y": y, "X_test": X_test, "y_test": y_test}
    with pytest.raises(InvalidInput, match=what):
        SupervisedWorld(**(given | change))  # type: ignore[arg-type]


def test_bad_settings_are_refused(world: SupervisedWorld) -> None:
    with pytest.raises(InvalidInput, match="share"):
        Fit(share=1.0)
    with pytest.raises(InvalidInput, match="eta0"):
        world.logging(float("nan"))
    with pytest.raises(InvalidInput, match="part"):
        world.value(world.logging(0.1), "train")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="actions"):
        world.value(UniformPolicy(3))
