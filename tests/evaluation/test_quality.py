"""Evaluation of evaluation, and evaluation of logs larger than what is held."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import manyarms as ma
from manyarms.estimators import DM, DR, MIPS, PC
from manyarms.evaluation import evaluate, quality, true_value
from manyarms.evaluation.quality import draw_log
from manyarms.logs import LoggedData, open_log, to_parquet
from manyarms.policies import EpsilonMixture, SoftmaxPolicy, UniformPolicy


@pytest.fixture(scope="module")
def setting():
    world = ma.worlds.MixedEffect(12, 3, 3, reward="logistic", effect_scale=0.5, context_pool=30, seed=2)
    logging = EpsilonMixture(SoftmaxPolicy(0.3 * world.theta), 0.3)
    return world, SoftmaxPolicy(0.8 * world.theta), logging


class Model:
    """Half right."""

    bounds = (0.0, 1.0)

    def __init__(self, world):
        self.theta = 0.5 * world.theta

    def predict(self, X, actions):
        return 1 / (1 + np.exp(-np.einsum("nd,nd->n", X, self.theta[actions])))

    def block(self, X, ids):
        return 1 / (1 + np.exp(-(X @ self.theta[ids].T)))


def test_truth_is_exact_on_a_pool_and_close_otherwise(setting):
    world, policy, _ = setting
    value, error = true_value(world, policy)
    X = world.source.rows
    p = policy.probabilities_of_many(X, np.tile(np.arange(12), (30, 1)))
    assert value == pytest.approx((p / (1 + np.exp(-(X @ world.theta.T)))).sum(axis=1).mean(), abs=1e-12)
    assert error == 0
    free = ma.worlds.MixedEffect(12, 3, 3, reward="logistic", seed=2)
    first, second = (true_value(free, policy, rows=5000) for _ in range(2))
    assert abs(first[0] - second[0]) < 5 * first[1] and first[1] > 0


def test_quality_sees_what_theory_says(setting):
    world, policy, logging = setting
    runs, rows = 250, 400
    found = quality(
        world, policy, logging, rows=rows, runs=runs, estimators=["ips", "snips", "es:0.3"], level=0.9, replicates=100,
        bias=False, fit=lambda log: Model(world), with_model=lambda model: [DM(model), DR(model)],
    )  # fmt: skip
    by = {one.name: one for one in found}
    assert list(by) == ["ips", "snips", "es", "dm", "dr"]
    for name in ("ips", "snips", "dr"):
        assert abs(by[name].bias) < 4 * by[name].bias_error
        assert by[name].standard_error ** 2 == pytest.approx(by[name].variance, rel=0.4)
        for kind in ("normal", "bootstrap"):
            assert by[name].covered(kind).of_value > 0.9 - 4 * np.sqrt(0.09 / runs)
    for name in ("es", "dm"):  # biased: its interval is for its mean, and covers that
        assert abs(by[name].bias) > 6 * by[name].bias_error
        assert by[name].covered().of_value < 0.5
        assert by[name].covered().of_mean > 0.9 - 4 * np.sqrt(0.09 / runs)
    for one in found:
        assert one.mse == pytest.approx(one.bias**2 + one.variance * (runs - 1) / runs, rel=1e-9)
    assert by["dr"].variance < by["ips"].variance


def test_a_file_streams_to_the_same_estimates(setting, tmp_path, rng):
    world, policy, logging = setting
    log = draw_log(world, logging, 3000, rng, keep_policy=False)
    to_parquet(log, tmp_path / "log.parquet", rows_per_group=500)
    source = open_log(tmp_path / "log.parquet")
    held, streamed = evaluate(policy, log), evaluate(policy, source, chunk=700)
    for one, other in zip(held.estimates, streamed.estimates, strict=True):
        assert one.value == pytest.approx(other.value, rel=1e-12)
        for left, right in zip(one.intervals, other.intervals, strict=True):
            assert (left.low, left.high) == pytest.approx((right.low, right.high), rel=1e-9)
    assert held.warnings == streamed.warnings


@pytest.mark.slow
def test_memory_is_blocks_and_not_rows_times_actions(rng):
    """2,000 rows x 20,000 actions would be 320 MB; estimates of every kind stay below a tenth of it."""
    n, K, d = 2000, 20_000, 8
    beta = rng.standard_normal((K, d)) / 2
    X = rng.standard_normal((n, d))
    logging = UniformPolicy(K)
    actions = logging.sample(X, rng)
    log = LoggedData(X, actions, rng.random(n), K, propensities=np.full(n, 1 / K), logging=logging)
    some = ["ips", "snips", "ls", MIPS(np.arange(K) % 50), PC(beta, k=10), PC(beta, radius=0.4)]
    policy = SoftmaxPolicy(beta)
    tracemalloc.start()
    evaluate(policy, log, some, bias=False)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 64e6, f"{peak / 1e6:.0f} MB"


def test_bias_terms_stream_too(rng):
    """For two softmax policies over 5,000 actions, against sums written out."""
    n, K, d = 30, 5000, 4
    ours, theirs = SoftmaxPolicy(rng.standard_normal((K, d))), SoftmaxPolicy(rng.standard_normal((K, d)) / 2)
    X = rng.standard_normal((n, d))
    actions = theirs.sample(X, rng)
    p0 = theirs.probabilities_of(X, actions)
    log = LoggedData(X, actions, rng.random(n), K, propensities=p0, logging=theirs)
    found = evaluate(ours, log, ["es:0.5"], bias=True, replicates=0)["es"]
    every = np.tile(np.arange(K), (n, 1))
    pi, pi0 = ours.probabilities_of_many(X, every), theirs.probabilities_of_many(X, every)
    high = pi[np.arange(n), actions] / p0**0.5 * log.rewards + (pi * (1 - pi0**0.5)).sum(axis=1)
    assert found.interval.high == pytest.approx(high.mean() + 1.959964 * high.std(ddof=1) / np.sqrt(n), rel=1e-6)
