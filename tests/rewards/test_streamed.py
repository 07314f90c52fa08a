"""Priors, estimates and models from logs that stream: those of the log in memory, and no more memory for more rows."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import manyarms as ma
from manyarms._base import memory, validate
from manyarms.errors import InvalidInput
from manyarms.logs.data import LoggedData
from manyarms.priors.latent import LatentPrior
from manyarms.rewards import bayesian, dm_frequentist, fit_prior, offline_estimates, sdm
from manyarms.worlds.latent import Latent
from manyarms.worlds.logged import log_from

K, D = 40, 3


@pytest.fixture(scope="module")
def log() -> LoggedData:
    return log_from(Latent(K, D, 2, noise=0.6, seed=2), 6_000)


@pytest.fixture(scope="module")
def folder(log: LoggedData, tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("pyarrow")
    out = tmp_path_factory.mktemp("rounds")
    for i, start in enumerate(range(0, len(log), 1500)):
        ma.logs.to_parquet(log.rows(slice(start, start + 1500)), out / f"part-{i}.parquet", rows_per_group=400)
    return out


def prior() -> LatentPrior:
    true = Latent(K, D, 2, noise=0.6, seed=2).prior()
    return LatentPrior(true.matrices, true.mean, np.eye(2), np.eye(D))


@pytest.mark.parametrize("held_out", [0.0, 0.2])
def test_a_prior_fitted_to_a_folder_is_that_of_the_log(log: LoggedData, folder: Path, held_out: float) -> None:
    one = fit_prior(log, prior(), ma.Linear(1.0), held_out=held_out, seed=4)
    other = fit_prior(ma.open_log(folder), prior(), ma.Linear(1.0), held_out=held_out, seed=4)
    assert other.log_evidence == pytest.approx(one.log_evidence, rel=1e-10)
    assert other.action_scale == pytest.approx(one.action_scale, rel=1e-5)
    assert other.latent_scale == pytest.approx(one.latent_scale, rel=1e-5)
    assert (one.calibration is None) == (held_out == 0)
    if one.calibration is not None and other.calibration is not None:
        assert one.calibration.rows == other.calibration.rows  # the very same rows were held out
        assert other.calibration.log_density == pytest.approx(one.calibration.log_density, rel=1e-6)
        assert other.calibration.spread == pytest.approx(one.calibration.spread, rel=1e-5)


def test_models_of_a_folder_are_those_of_the_log(log: LoggedData, folder: Path) -> None:
    for make in (dm_frequentist, lambda source: sdm(source, prior(), ma.Linear(0.6))):
        one, other = make(log), make(ma.open_log(folder))
        np.testing.assert_allclose(other.parameters, one.parameters, rtol=1e-9, atol=1e-11)


# ---- estimates, for diffusion priors


def test_estimates_are_ridge_regressions_of_actions_with_enough_rows(folder: Path, log: LoggedData) -> None:
    short = log.rows(slice(0, 150))  # some actions have fewer than three rows
    counts = np.bincount(short.actions, minlength=K)
    for least in (None, 1, 5):
        found = offline_estimates(short, 0.5, least=least)
        enough = np.flatnonzero(counts >= (D if least is None else least))
        assert len(enough) > 2 and found.shape == (len(enough), D)
        for row, a in zip(found, enough, strict=True):
            X, r = short.contexts[short.actions == a], short.rewards[short.actions == a]
            np.testing.assert_allclose(row, np.linalg.solve(X.T @ X + 0.5 * np.eye(D), X.T @ r), atol=1e-10)
    np.testing.assert_allclose(offline_estimates(ma.open_log(folder)), offline_estimates(log), rtol=1e-9, atol=1e-11)


def test_estimates_of_too_few_actions_and_a_log_in_the_place_of_estimates_are_refused(log: LoggedData) -> None:
    with pytest.raises(InvalidInput, match="0 of 40 actions with at least 7,000 rows"):
        offline_estimates(log, least=7_000)
    with pytest.raises(InvalidInput, match="offline_estimates"):
        ma.pretrain(log)  # type: ignore[arg-type]


def test_a_diffusion_prior_from_a_folder_is_that_of_the_log(log: LoggedData, folder: Path) -> None:
    pytest.importorskip("torch")
    one, other = (
        ma.pretrain(offline_estimates(source), depth=2, hidden=4, epochs=3, seed=0)
        for source in (log, ma.open_log(folder))
    )
    np.testing.assert_allclose(other.mean, one.mean, rtol=1e-9)
    np.testing.assert_allclose(other.covariance, one.covariance, rtol=1e-8)
    assert one.rows == other.rows == K


# ---- memory


@dataclass
class Endless:
    """A log that is made as it is read."""

    rows: int
    action_count: int = 50
    dim: int = 8

    def chunks(self, rows: int = 0) -> Iterator[LoggedData]:
        rng = np.random.default_rng(0)
        theta = rng.standard_normal((self.action_count, self.dim))
        for start in range(0, self.rows, 2_000):
            n = min(2_000, self.rows - start)
            X, A = rng.standard_normal((n, self.dim)), rng.integers(self.action_count, size=n)
            yield LoggedData(X, A, np.einsum("nd,nd->n", X, theta[A]) + rng.standard_normal(n), self.action_count)


def of_endless(source: Endless) -> object:
    structure = ma.ActionPrior(source.action_count, np.zeros(source.dim), np.eye(source.dim))
    return fit_prior(source, structure, ma.Linear(1.0))


def peak(work: Callable[[Endless], object], rows: int) -> int:
    tracemalloc.start()
    work(Endless(rows))
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most


@pytest.mark.parametrize("work", [of_endless, offline_estimates, dm_frequentist])
def test_more_rows_need_no_more_memory(work: Callable[[Endless], object]) -> None:
    work(Endless(2_000))  # whatever is imported or made once
    short, long = peak(work, 140_000), peak(work, 340_000)
    assert long <= short + 200_000  # bytes: one more for each row would be seen


def test_rewards_that_are_not_linear_keep_rows_and_say_when_there_is_no_room(
    log: LoggedData, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(validate, "SMALL", 1000)
    monkeypatch.setattr(memory, "available", lambda: 100_000)
    binary = LoggedData(log.contexts, log.actions, (log.rewards > 0).astype(float), K)
    ma.logs.to_parquet(binary, folder.parent / "clicks.parquet", rows_per_group=500)
    with pytest.raises(
        InvalidInput, match=r"source: .*at most 1,562 rows, which a likelihood that is not linear keeps"
    ):
        sdm(ma.open_log(folder.parent / "clicks.parquet"), prior(), ma.Logistic())


def test_moments_of_many_rows_are_those_of_few(log: LoggedData, monkeypatch: pytest.MonkeyPatch) -> None:
    model = sdm(log, prior(), ma.Linear(0.6))
    whole = model.moments_of(log.contexts, log.actions)
    monkeypatch.setattr(bayesian, "PAIRS_AT_A_TIME", 700)
    for have, want in zip(model.moments_of(log.contexts, log.actions), whole, strict=True):
        np.testing.assert_allclose(have, want, rtol=1e-12)
