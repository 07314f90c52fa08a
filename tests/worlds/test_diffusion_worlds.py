"""The worlds of the dTS chapter: laws of their parameters, exact regret, and files that are refused."""

from __future__ import annotations

import gzip
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import manyarms as ma
from manyarms.errors import DataError, InvalidInput, UnknownAction
from manyarms.priors.links import LinearLink, NetworkLink
from manyarms.worlds import Diffusion, Images, SwissRoll, synthetic_chain
from manyarms.worlds.image_features import train_network
from manyarms.worlds.image_files import read_images, write_made_up_images
from manyarms.worlds.swiss_roll import SCALE, START, STOP, moments

# ---- diffusion


def test_the_printed_linear_chains() -> None:
    for dim, depth, active in ((5, 2, (5, 2)), (20, 4, (20, 10, 5, 2))):
        chain = synthetic_chain(10, dim, depth, seed=3)
        assert chain.shared and chain.depth == depth
        np.testing.assert_array_equal(chain.covariances, np.broadcast_to(np.eye(dim), (depth + 1, dim, dim)))
        for link, columns in zip(chain.links, active, strict=True):
            assert isinstance(link, LinearLink)
            W = link.matrix
            assert (W[:, columns:] == 0).all() and (W[:, :columns] != 0).all()
            assert np.abs(W).max() <= 1 and W.min() < -0.5 and W.max() > 0.5


def test_the_printed_networks() -> None:
    for dim, hidden in ((5, 20), (20, 60), (4, 12)):
        chain = synthetic_chain(10, dim, 3, links="network", seed=1)
        for link in chain.links:
            assert isinstance(link, NetworkLink) and link.skip == 0
            (A, a), (B, b) = link.layers
            assert A.shape == (hidden, dim) and B.shape == (dim, hidden)
            assert np.abs(A).max() <= 1 and np.abs(B).max() <= 1 and not a.any() and not b.any()


def test_scaled_links_are_divided_by_the_root_of_the_fan_in() -> None:
    plain, scaled = (synthetic_chain(10, 8, 3, active=(8, 4, 2), scaled=scaled, seed=5) for scaled in (False, True))
    assert plain.matrices is not None and scaled.matrices is not None
    for W, V, columns in zip(plain.matrices, scaled.matrices, (8, 4, 2), strict=True):
        np.testing.assert_allclose(V * np.sqrt(columns), W)
    assert scaled.marginal().covariance.trace() < 0.3 * plain.marginal().covariance.trace()


def test_chains_differ_by_seed_only() -> None:
    first, same, other = (synthetic_chain(5, 3, 2, seed=seed).links[0].arrays()["matrix"] for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, same)
    assert not np.array_equal(first, other)


def test_actions_of_a_shared_chain_have_its_joint_law() -> None:
    """Over many worlds: Cov(theta_a) is the marginal, Cov(theta_a, theta_b) lacks Sigma_1."""
    chain = synthetic_chain(2, 2, 2, scaled=True, seed=1)
    theta = np.stack([Diffusion(chain, seed=seed).theta for seed in range(3000)]).reshape(3000, 4)
    V = chain.marginal().covariance
    expected = np.block([[V, V - np.eye(2)], [V - np.eye(2), V]])
    found = theta.T @ theta / len(theta)
    error = np.sqrt((np.outer(np.diag(expected), np.diag(expected)) + expected**2) / len(theta))
    assert (np.abs(found - expected) < 4.5 * error).all()


def test_actions_of_own_chains_are_independent() -> None:
    chain = synthetic_chain(4000, 2, 2, scaled=True, seed=1).with_actions(4000, shared=False)
    theta = Diffusion(chain, seed=3).theta
    V = chain.marginal().covariance
    error = np.sqrt((np.outer(np.diag(V), np.diag(V)) + V**2) / len(theta))
    assert (np.abs(theta.T @ theta / len(theta) - V) < 4.5 * error).all()


@pytest.mark.parametrize("reward", ["linear", "logistic"])
def test_a_diffusion_world_is_a_world(reward: str) -> None:
    chain = synthetic_chain(50, 5, 2, links="network", scaled=True, seed=1)
    world = Diffusion(chain, reward=reward, seed=2)
    X = world.contexts(100)
    assert X.shape == (100, 5) and np.abs(X).max() <= 1
    every = world.rewards.mean(X @ world.theta.T)
    ids, values = world.optimal(X)
    np.testing.assert_array_equal(ids, every.argmax(axis=1))
    np.testing.assert_allclose(world.regret(X, np.zeros(100, dtype=int)), every.max(axis=1) - every[:, 0], atol=1e-12)
    np.testing.assert_allclose(values, every.max(axis=1))
    np.testing.assert_array_equal(world.replay(2).contexts(100), X)
    assert world.prior() is chain and world.depth == 2 and world.likelihood == reward
    assert world.action_prior().actions == 50 and "depth=2" in repr(world)
    with pytest.raises(InvalidInput, match="linear links"):
        world.hierarchical_prior()


def test_the_two_level_prior_has_the_chains_marginal() -> None:
    world = Diffusion(synthetic_chain(5, 5, 2, seed=1))
    two = world.hierarchical_prior()
    np.testing.assert_allclose(two.covariance + two.action_covariance, world.action_prior().covariance)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"links": "cubic"}, "'linear' or 'network'"),
        ({"active": (5,)}, "2 numbers from 1 to 5"),
        ({"active": (6, 2)}, "2 numbers from 1 to 5"),
        ({"active": (5, 0)}, "active"),
        ({"links": "network", "active": (5, 2)}, "only linear links"),
        ({"links": "network", "hidden": 0}, "hidden"),
        ({"seed": -1}, "seed"),
    ],
)
def test_wrong_chains_are_refused(options: dict[str, object], says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        synthetic_chain(10, 5, 2, **options)  # type: ignore[arg-type]


def test_a_diffusion_world_needs_a_diffusion() -> None:
    with pytest.raises(InvalidInput, match="a DiffusionPrior"):
        Diffusion(ma.ActionPrior(3, np.zeros(2), np.eye(2)))  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="reward"):
        Diffusion(synthetic_chain(3, 2, 1), reward="cubic")


# ---- Swiss roll


def test_actions_lie_on_the_roll() -> None:
    theta = SwissRoll(5000, seed=1).theta
    t = np.linalg.norm(theta, axis=1) / SCALE
    np.testing.assert_allclose(theta, SCALE * t[:, None] * np.stack([np.cos(t), np.sin(t)], axis=1), atol=1e-12)
    assert stats.kstest(t, stats.uniform(START, STOP - START).cdf).pvalue > 1e-6


def test_the_rolls_moments_are_exact() -> None:
    for thickness in (0.0, 0.3):
        mean, covariance = moments(thickness)
        points = SwissRoll(1, thickness=thickness).sample(400_000, 5)
        np.testing.assert_allclose(points.mean(axis=0), mean, atol=0.01)
        np.testing.assert_allclose(np.cov(points.T), covariance, atol=0.01)
    prior = SwissRoll(7).action_prior()
    np.testing.assert_allclose(prior.mean, moments()[0])
    assert prior.actions == 7
    two = SwissRoll(7).hierarchical_prior()
    np.testing.assert_allclose(two.covariance + two.action_covariance, prior.covariance)


def test_samples_are_reproducible_and_not_the_actions() -> None:
    world = SwissRoll(100, seed=4)
    np.testing.assert_array_equal(world.sample(100, 4), SwissRoll(5, seed=1).sample(100, 4))
    assert not np.isclose(world.sample(100, 4)[:, None], world.theta).all(axis=2).any()
    X = world.contexts(20)
    assert (world.regret(X, world.optimal(X)[0]) < 1e-12).all()
    with pytest.raises(InvalidInput, match=r"manyarms\.pretrain"):
        world.prior()


# ---- pictures


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("pictures")
    write_made_up_images(base / "mnist", "mnist", classes=6, each=80)
    write_made_up_images(base / "cifar100", "cifar100", classes=8, each=60)
    return base


@pytest.mark.parametrize(("name", "classes", "pixels"), [("mnist", 6, 64), ("cifar100", 8, 192)])
def test_made_up_pictures_are_read_back(folder: Path, name: str, classes: int, pixels: int) -> None:
    found = read_images(name, folder)  # type: ignore[arg-type]
    assert found.classes == classes and found.train.shape[1] == found.test.shape[1] == pixels
    assert (np.bincount(found.train_classes) == len(found.train) // classes).all()
    assert found.provenance.startswith(f"made-up pictures, not {name}")
    assert read_images(name, folder / name) is found  # type: ignore[arg-type]


@pytest.mark.parametrize("truth", ["labels", "model"])
@pytest.mark.parametrize("reward", ["linear", "logistic"])
@pytest.mark.parametrize("data", ["mnist", "cifar100"])
def test_pictures_are_a_world_with_exact_regret(folder: Path, data: str, reward: str, truth: str) -> None:
    world = Images(7, 10, data=data, reward=reward, truth=truth, folder=folder, seed=2)  # type: ignore[arg-type]
    X = world.contexts(200)
    classes = read_images(data, folder).test_classes[X.astype(int)]  # type: ignore[arg-type]
    assert X.shape == (200, 7) and ((classes == world.target).sum(axis=1) == 1).all()
    phi = world.features(X)
    assert phi.shape == (200, 7, 10) and (phi[:, :, 0] == 1).all()
    if truth == "labels":
        every = np.where(classes == world.target, 0.9, 0.1)
    else:
        every = world.rewards.mean(phi @ world.theta)
    played = np.arange(200) % 7
    np.testing.assert_allclose(world.mean_reward(X, played), every[np.arange(200), played])
    np.testing.assert_allclose(world.regret(X, played), every.max(axis=1) - every[np.arange(200), played], atol=1e-12)
    ids, values = world.optimal(X)
    np.testing.assert_array_equal(ids, every.argmax(axis=1))
    np.testing.assert_allclose(values, every.max(axis=1))
    assert world.regret(X[0], int(ids[0])) == 0.0 and isinstance(world.reward(X[0], 1), float)
    draws = world.reward(np.tile(X[0], (20_000, 1)), np.full(20_000, 3))
    spread = 0.3 if reward == "linear" else np.sqrt(every[0, 3] * (1 - every[0, 3]))
    assert abs(draws.mean() - every[0, 3]) < 4.5 * spread / np.sqrt(20_000)
    np.testing.assert_array_equal(world.replay(2).contexts(200), X)


def test_the_features_are_principal_components(folder: Path) -> None:
    world = Images(5, 8, data="mnist", folder=folder)
    train = world._prepared.train
    np.testing.assert_allclose(np.cov(train[:, 1:].T), np.eye(7), atol=1e-8)
    np.testing.assert_allclose(train[:, 1:].mean(axis=0), 0, atol=1e-8)


@pytest.mark.parametrize("seen", [True, False])
def test_a_network_for_features_sees_offline_pictures_alone(folder: Path, seen: bool) -> None:
    """Whatever stands in all other pictures and labels, the network is the same: nothing of what is tested leaks into it."""
    pytest.importorskip("torch")
    pictures = read_images("mnist", folder)
    world = Images(5, 6, data="mnist", folder=folder, percent=20, seen=seen, seed=3)
    allowed = world.offline
    assert allowed.sum() == (96 if seen else 80)
    assert seen or not (pictures.train_classes[allowed] == world.target).any()
    network = train_network(pictures, allowed, 6, seed=1, steps=30)
    rng = np.random.default_rng(0)
    others = replace(
        pictures,
        train=np.where(allowed[:, None], pictures.train, rng.integers(0, 255, pictures.train.shape, dtype=np.uint8)),
        train_classes=np.where(allowed, pictures.train_classes, 0),
        test=np.zeros_like(pictures.test),
        test_classes=np.zeros_like(pictures.test_classes),
    )
    again = train_network(others, allowed, 6, seed=1, steps=30)
    for name, array in network.arrays.items():
        np.testing.assert_array_equal(again.arrays[name], array)
    assert not np.array_equal(
        train_network(pictures, allowed, 6, seed=2, steps=30).arrays["first"], network.arrays["first"]
    )
    found = network(pictures.train[allowed])
    np.testing.assert_allclose(found.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(found.std(axis=0), 1, atol=1e-6)


def test_features_of_a_network_tell_classes_apart(folder: Path) -> None:
    pytest.importorskip("torch")
    by_kind = {}
    for features in ("pca", "network"):
        world = Images(6, 6, data="mnist", folder=folder, truth="labels", percent=50, features=features, seed=1)  # type: ignore[arg-type]
        X = world.contexts(300)
        phi = world.features(X)
        assert phi.shape == (300, 6, 6) and (phi[..., 0] == 1).all()
        by_kind[features] = world.regret(X, (phi @ world.theta).argmax(axis=1)).mean()
    assert by_kind["network"] <= by_kind["pca"]
    network = train_network(read_images("mnist", folder), world.offline, 6, steps=5)
    given = Images(6, 6, data="mnist", folder=folder, features=network)
    np.testing.assert_array_equal(given._prepared.test[:, 1:], network(read_images("mnist", folder).test))
    with pytest.raises(InvalidInput, match="dim=7"):
        Images(6, 7, data="mnist", folder=folder, features=network)
    with pytest.raises(InvalidInput, match="pixels"):
        Images(6, 6, data="cifar100", folder=folder, features=network)
    with pytest.raises(InvalidInput, match="at least one picture"):
        train_network(read_images("mnist", folder), np.zeros(480, dtype=bool), 6)
    for bad in (np.ones(481, dtype=bool), np.arange(480)):
        with pytest.raises(InvalidInput, match="each of 480 training pictures"):
            train_network(read_images("mnist", folder), bad, 6)
    with pytest.raises(InvalidInput, match="seed"):
        train_network(read_images("mnist", folder), world.offline, 6, seed=-1)
    vague = given.vague_hierarchy()
    np.testing.assert_allclose(vague.covariance + vague.action_covariance, 2 * given.vague_prior().covariance)


def test_linear_fits_solve_their_weighted_least_squares(folder: Path) -> None:
    world = Images(5, 6, data="mnist", folder=folder, target=2)
    phi, labels = world._prepared.train, world._prepared.labels
    own = labels == 2
    weights = np.where(own, 1 / 5 / own.sum(), 4 / 5 / (~own).sum())
    root = np.sqrt(weights)[:, None]
    left = np.vstack([root * phi, np.sqrt(1 / 5 / own.sum()) * np.eye(6)])
    right = np.r_[root[:, 0] * np.where(own, 0.9, 0.1), np.zeros(6)]
    np.testing.assert_allclose(world.theta, np.linalg.lstsq(left, right, rcond=None)[0], rtol=1e-9)


def test_logistic_fits_are_stationary(folder: Path) -> None:
    world = Images(5, 6, data="mnist", folder=folder, target=2, reward="logistic")
    phi, labels = world._prepared.train, world._prepared.labels
    own = labels == 2
    weights = np.where(own, 1 / 5 / own.sum(), 4 / 5 / (~own).sum())
    slope = phi.T @ (weights * (world.rewards.mean(phi @ world.theta) - np.where(own, 0.9, 0.1)))
    np.testing.assert_allclose(slope + world.theta / 5 / own.sum(), 0, atol=1e-10)


def test_estimates_are_of_classes_and_get_noisier_with_less_data(folder: Path) -> None:
    options = {"data": "mnist", "folder": folder, "seed": 3}
    much, little = (Images(5, 6, percent=percent, **options) for percent in (100, 5))  # type: ignore[arg-type]
    seen, unseen = much.estimates(10), Images(5, 6, seen=False, **options).estimates(10)  # type: ignore[arg-type]
    assert seen.shape == (60, 6) and unseen.shape == (50, 6) and len(much.estimates()) >= 1000
    np.testing.assert_array_equal(seen, much.estimates(10))
    # within a class, copies differ by resampling alone; the task's own class lies near its parameter
    by_class, noisy = (found.reshape(10, 6, 6).std(axis=0).mean() for found in (seen, little.estimates(10)))
    assert noisy > 1.5 * by_class
    own = seen.reshape(10, 6, 6)[:, much.target].mean(axis=0)
    assert np.linalg.norm(own - much.theta) < 0.2 * np.linalg.norm(much.theta)
    np.testing.assert_allclose(much.action_prior().mean, much.estimates().mean(axis=0))
    two = much.hierarchical_prior()
    np.testing.assert_allclose(two.covariance + two.action_covariance, much.action_prior().covariance)


def test_a_joint_agent_learns_which_pictures_are_good(folder: Path) -> None:
    world = Images(6, 8, data="mnist", folder=folder, noise=0.1, seed=1)
    for prior in (world.action_prior(), world.hierarchical_prior(), world.vague_prior()):
        again = world.replay(5)
        agent = ma.agents.jointTS(prior, 6, ma.Linear(0.1), feature_map=again.features, context_shape=(6,), seed=0)
        X = again.contexts(300)
        lost = []
        for x in X:
            a = agent.decide(x)
            agent.observe(x, a, again.reward(x, a))
            lost.append(again.regret(x, a))
        assert np.mean(lost[-100:]) < 0.35 * again.regret(X, np.zeros(300, dtype=int)).mean()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"actions": 1}, "actions"),
        ({"dim": 1}, "dim"),
        ({"dim": 100}, "dim: expected at most 65"),
        ({"reward": "poisson"}, "'linear' or 'logistic'"),
        ({"truth": "guess"}, "'labels' or 'model'"),
        ({"percent": 0}, "percent"),
        ({"percent": 101}, "percent"),
        ({"high": 0.1, "low": 0.9}, "low < high"),
        ({"target": 6}, "a class from 0 to 5"),
        ({"data": "imagenet"}, "one of cifar100"),
        ({"features": "fourier"}, "features"),
    ],
)
def test_wrong_options_of_pictures_are_refused(folder: Path, options: dict[str, object], says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        Images(**{"data": "mnist", "folder": folder, **options})  # type: ignore[arg-type]


def test_wrong_pictures_and_places_are_refused(folder: Path) -> None:
    world = Images(5, 6, data="mnist", folder=folder)
    x = world.contexts(1)[0]
    with pytest.raises(UnknownAction):
        world.reward(x, 5)
    with pytest.raises(UnknownAction):
        world.reward(x, 1.5)  # type: ignore[call-overload]
    with pytest.raises(InvalidInput, match="numbers of 5 pictures"):
        world.reward(x[:4], 0)
    with pytest.raises(InvalidInput, match="numbers of pictures"):
        world.regret(x + 0.5, 0)
    with pytest.raises(InvalidInput, match="numbers of pictures"):
        world.regret(x + 1e6, 0)
    with pytest.raises(InvalidInput, match="one place"):
        world.regret(x, [0, 1])


def test_damaged_picture_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MANYARMS_DATA", raising=False)
    with pytest.raises(DataError, match="set MANYARMS_DATA"):
        read_images("mnist")
    with pytest.raises(DataError, match="no train-images"):
        read_images("mnist", tmp_path)
    made = write_made_up_images(tmp_path / "mnist", "mnist", classes=3, each=4)
    labels = made / "train-labels-idx1-ubyte.gz"
    whole = labels.read_bytes()
    content = gzip.decompress(whole)
    for damaged, says in (
        (whole[:-9], "truncated|cannot be read"),
        (gzip.compress(content[:-1]), "promises 12 bytes, but 11"),
        (gzip.compress(content[:6]), "truncated in its header"),
        (gzip.compress(b"\x00\x00\x0d" + content[3:]), "not an idx file"),
        (b"not gzip", "cannot be read"),
        (gzip.compress(content[:4] + (11).to_bytes(4, "big") + content[8:-1]), "do not go with labels"),
        (gzip.compress(content[:8] + b"\x07" * 12), "labels are not the numbers"),
    ):
        labels.write_bytes(damaged)
        with pytest.raises(DataError, match=says):
            read_images("mnist", tmp_path)
    colour = write_made_up_images(tmp_path / "cifar100", "cifar100", classes=3, each=4) / "cifar100_16x16.npz"
    np.savez(colour, x_train=np.zeros((12, 8, 8, 3), dtype=np.uint8))
    with pytest.raises(DataError, match="y_train, x_test, y_test are missing"):
        read_images("cifar100", tmp_path)
    colour.write_bytes(b"PK\x03\x04 no")
    with pytest.raises(DataError, match="cannot be read"):
        read_images("cifar100", tmp_path)


@pytest.mark.data
@pytest.mark.skipif(not os.environ.get("MANYARMS_DATA"), reason="MANYARMS_DATA is not set")
def test_the_real_pictures() -> None:
    world = Images(20, 30, data="mnist", percent=25, seed=0)
    assert world.provenance == "mnist: 60,000 + 10,000 pictures of 10 classes"
    assert world.estimates(2).shape == (20, 30)
