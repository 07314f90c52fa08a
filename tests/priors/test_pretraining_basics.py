"""Pre-training: links equal the chain they stand for, samples have the right law, and bad input is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import manyarms as ma
from manyarms.errors import InvalidInput
from manyarms.priors.pretraining import chain_links, noise_schedule

pytest.importorskip("torch")


@pytest.mark.parametrize("schedule", ["cosine", "linear"])
@pytest.mark.parametrize("depth", [2, 5, 40, 100])
def test_every_schedule_goes_all_the_way_to_noise(schedule: str, depth: int) -> None:
    betas = noise_schedule(schedule, depth)
    assert betas.shape == (depth,) and (betas > 0).all() and (betas < 1).all()
    assert np.prod(1 - betas) < 1e-3


@pytest.mark.parametrize("depth", [2, 10, 60])
def test_with_the_exact_noise_predictor_a_gaussian_comes_out(depth: int) -> None:
    """Gaussian data: eps(z, l) = sqrt(1 - abar_l) z, so N = 0, and the chain's draws are N(m, V) at any depth."""
    rng = np.random.default_rng(0)
    unit, mean = np.array([[1.0, 0.0], [0.7, 0.5]]), np.array([2.0, -1.0])
    betas = noise_schedule("cosine", depth)
    nothing = ((np.zeros((3, 2)), np.zeros(3)), (np.zeros((2, 3)), np.zeros(2)))
    links = chain_links(mean, unit, betas, nothing, np.zeros((depth, 3)))
    V = unit @ unit.T
    prior = ma.DiffusionPrior(1, 2, links, [*(b * V for b in betas), V], shared=False)
    theta = prior.with_actions(40_000).draw(rng)
    assert (np.abs(theta.mean(axis=0) - mean) < 5 * np.sqrt(np.diag(V) / 40_000)).all()
    np.testing.assert_allclose(np.cov(theta.T), V, atol=0.04)


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    return ma.worlds.SwissRoll(5).sample(600)


@pytest.fixture(scope="module")
def trained(rows: np.ndarray) -> ma.priors.Pretrained:
    return ma.pretrain(rows, depth=6, hidden=16, epochs=60, seed=1)


def test_training_is_deterministic_and_learns(rows: np.ndarray, trained: ma.priors.Pretrained) -> None:
    again = ma.pretrain(rows, depth=6, hidden=16, epochs=60, seed=1)
    np.testing.assert_array_equal(again.sample(50), trained.sample(50))
    assert trained.history.held_out[-1] < trained.history.held_out[0]
    np.testing.assert_allclose(trained.sample(4_000).std(axis=0), rows.std(axis=0), rtol=0.25)


def test_saving_keeps_every_link(trained: ma.priors.Pretrained, tmp_path: Path) -> None:
    trained.save(tmp_path)
    again = ma.load(tmp_path)
    psi = np.random.default_rng(0).standard_normal((9, 2))
    for one, other in zip(trained.links, again.links, strict=True):
        np.testing.assert_array_equal(one(psi), other(psi))


def test_priors_of_both_kinds_decide(trained: ma.priors.Pretrained) -> None:
    for shared in (False, True):
        agent = ma.dTS(trained.prior(30, shared=shared), seed=0)
        agent.observe(np.ones(2), 3, 1.0)
        assert 0 <= agent.decide(np.ones(2)) < 30
    wide, narrow = trained.prior(3, shared=True), trained.prior(3)
    assert np.trace(wide.covariances[0]) > np.trace(narrow.covariances[0])


def test_ten_rows_are_enough_to_run() -> None:
    rng = np.random.default_rng(0)
    trained = ma.pretrain(rng.standard_normal((10, 5)), depth=3, epochs=20)
    assert np.isfinite(trained.sample(100)).all()


BAD = {
    "no rows": lambda: ma.pretrain(np.empty((0, 2))),
    "one row": lambda: ma.pretrain(np.ones((1, 2))),
    "constant rows": lambda: ma.pretrain(np.ones((20, 2))),
    "NaN": lambda: ma.pretrain([[0.0, 1.0], [np.nan, 2.0], [1.0, 1.0]]),
    "a depth of zero": lambda: ma.pretrain(np.eye(5), depth=0),
    "an unknown schedule": lambda: ma.pretrain(np.eye(5), depth=3, schedule="steps"),
    "a schedule of another length": lambda: ma.pretrain(np.eye(5), depth=4, schedule=[0.5, 0.9, 0.9]),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name: str) -> None:
    with pytest.raises(InvalidInput):
        BAD[name]()
