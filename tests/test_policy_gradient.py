"""Objectives against their printed formulas, gradients against finite differences, and a loop that climbs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyarms import policy_gradient as pg
from manyarms._typing import Array
from manyarms.errors import InvalidInput
from manyarms.linear_models import LinearModel
from manyarms.logs.data import LoggedData
from manyarms.policies import FixedPolicy, SoftmaxPolicy
from manyarms.policies import base as blocks
from manyarms.reward_models import dm_frequentist
from manyarms.weights import ClipPropensities, ClipWeights, ExponentialAlpha
from manyarms.worlds.latent import Latent
from manyarms.worlds.logged import log_from, skewed_policy

K, D = 7, 3


def a_log(rng: np.random.Generator, n: int = 40) -> LoggedData:
    policy = FixedPolicy(rng.dirichlet(np.ones(K)))
    X = rng.standard_normal((n, D))
    A = policy.sample(X, rng)
    return LoggedData(X, A, rng.standard_normal(n), K, propensities=policy.probabilities[A], logging=policy)


def objectives(rng: np.random.Generator) -> dict[str, pg.Objective]:
    model = LinearModel(rng.standard_normal((K, D)))
    return {
        "IPS": pg.IPS(),
        "cIPS": pg.IPS(ClipPropensities(0.1)),
        "ES": pg.IPS(ExponentialAlpha(0.6)),
        "snIPS": pg.SelfNormalisedIPS(),
        "MIPS": pg.MIPS(np.arange(K) % 3),
        "PC": pg.PC(pg.nearest(rng.standard_normal((K, 2)), 3)),
        "DR": pg.DR(model, ClipPropensities(0.1)),
        "DM": pg.DM(model),
    }


def printed(name: str, objective: pg.Objective, log: LoggedData, beta: Array) -> float:
    """The formulas of the thesis, lines 4742-4790, with all probabilities in one dense array."""
    scores = log.contexts @ beta.T
    pi = np.exp(scores - scores.max(axis=1, keepdims=True))
    pi /= pi.sum(axis=1, keepdims=True)
    assert isinstance(log.logging, FixedPolicy)
    pi0 = log.logging.probabilities
    n, r, A = len(log), log.rewards, log.actions
    mine = pi[np.arange(n), A]
    if name == "IPS":
        return float((mine / pi0[A] * r).mean())
    if name == "cIPS":
        return float((mine / np.maximum(pi0[A], 0.1) * r).mean())
    if name == "ES":
        return float((mine / pi0[A] ** 0.6 * r).mean())
    if name == "snIPS":
        return float((mine / pi0[A] * r).sum() / (mine / pi0[A]).sum())
    if isinstance(objective, pg.MIPS):
        same = objective.labels[A][:, None] == objective.labels[None]
        return float(((pi * same).sum(axis=1) / (pi0 * same).sum(axis=1) * r).mean())
    if isinstance(objective, pg.PC):
        inside = np.zeros((n, K))
        np.put_along_axis(inside, objective.neighbours[A], 1.0, axis=1)
        return float(((pi * inside).sum(axis=1) / (pi0 * inside).sum(axis=1) * r).mean())
    assert isinstance(objective, pg.DR | pg.DM)
    model = objective.model.block(log.contexts, np.arange(K))
    direct = (pi * model).sum(axis=1)
    if name == "DM":
        return float(direct.mean())
    return float((mine / np.maximum(pi0[A], 0.1) * (r - model[np.arange(n), A]) + direct).mean())


@pytest.mark.parametrize("name", ["IPS", "cIPS", "ES", "snIPS", "MIPS", "PC", "DR", "DM"])
@given(seed=st.integers(0, 2**31 - 1))
def test_objectives_are_the_printed_ones_and_gradients_are_theirs(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    log, objective = a_log(rng), objectives(rng)[name]
    beta = rng.standard_normal((K, D))
    value, gradient = pg.value_and_gradient(beta, log.contexts, objective.weights(log))
    assert value == pytest.approx(printed(name, objective, log, beta), rel=1e-10, abs=1e-12)
    direction = rng.standard_normal((K, D))
    step = 1e-6
    ahead, behind = (printed(name, objective, log, beta + sign * step * direction) for sign in (1, -1))
    assert float(np.vdot(gradient, direction)) == pytest.approx((ahead - behind) / (2 * step), rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("name", ["IPS", "snIPS", "MIPS", "PC", "DR"])
def test_blocks_do_not_show(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    log, objective, beta = a_log(rng), objectives(rng)[name], rng.standard_normal((K, D))
    weights = objective.weights(log)
    whole = pg.value_and_gradient(beta, log.contexts, weights)
    monkeypatch.setattr(blocks, "ROWS", 9)
    monkeypatch.setattr(blocks.action_blocks, "__defaults__", (3,))
    parts = pg.value_and_gradient(beta, log.contexts, weights)
    assert parts[0] == pytest.approx(whole[0], rel=1e-12)
    np.testing.assert_allclose(parts[1], whole[1], atol=1e-12)


def test_a_batch_is_an_unbiased_part_of_the_log() -> None:
    rng = np.random.default_rng(3)
    log, beta = a_log(rng, 60), rng.standard_normal((K, D))
    for name in ("cIPS", "MIPS", "PC", "DR"):
        weights = objectives(np.random.default_rng(0))[name].weights(log)
        whole = pg.value_and_gradient(beta, log.contexts, weights)[1]
        order = rng.permutation(60)
        parts = [pg.value_and_gradient(beta, log.contexts[i], weights.rows(i))[1] for i in np.split(order, 4)]
        np.testing.assert_allclose(np.mean(parts, axis=0), whole, atol=1e-12)


@pytest.mark.parametrize("name", ["IPS", "snIPS", "DR", "MIPS", "PC"])
def test_learning_climbs_its_own_objective(name: str) -> None:
    """Full steps: the objective ends above where it began, and the history tells it."""
    world = Latent(K, D, 2, seed=1)
    log = log_from(world, 600, skewed_policy(K, seed=2))
    model = dm_frequentist(log)
    objective = {
        "IPS": pg.IPS(ClipPropensities(0.02)), "snIPS": pg.SelfNormalisedIPS(), "DR": pg.DR(model),
        "MIPS": pg.MIPS(np.arange(K) % 3), "PC": pg.PC(pg.nearest(world.theta, 2)),
    }[name]  # fmt: skip
    told: list[int] = []
    learned = pg.learn_policy(log, objective, epochs=60, batch=None, progress=lambda epoch, value: told.append(epoch))
    assert learned.history[-1] > learned.history[0] and told[-1] == 60
    value, _ = pg.value_and_gradient(learned.policy.weights, log.contexts, objective.weights(log))
    assert value > learned.history[0]
    X = world.contexts(4_000)
    uniform, best = float((X @ world.theta.T).mean()), float(world.optimal(X)[1].mean())
    got = float(learned.policy.expectation(X, lambda x, ids: x @ world.theta[ids].T).mean())
    if name != "MIPS":  # clusters that mean nothing teach nothing
        assert got > uniform + 0.5 * (best - uniform)


def test_dm_learns_the_greedy_policy_of_its_model() -> None:
    rng = np.random.default_rng(5)
    theta = 2 * rng.standard_normal((4, 2))
    X = rng.standard_normal((400, 2))
    log = LoggedData(X, rng.integers(4, size=400), rng.standard_normal(400), 4)
    learned = pg.learn_policy(log, pg.DM(LinearModel(theta)), epochs=300, batch=None, learning_rate=0.3)
    assert (learned.policy.decide(X) == (X @ theta.T).argmax(axis=1)).mean() > 0.95


def test_batches_starts_and_seeds() -> None:
    log = a_log(np.random.default_rng(0), 100)
    one, two = (pg.learn_policy(log, pg.IPS(), epochs=3, batch=16, seed=4) for _ in range(2))
    np.testing.assert_array_equal(one.policy.weights, two.policy.weights)
    other = pg.learn_policy(log, pg.IPS(), epochs=3, batch=16, seed=5)
    assert np.abs(one.policy.weights - other.policy.weights).max() > 0
    start = np.ones((K, D))
    moved = pg.learn_policy(log, pg.IPS(), epochs=1, batch=None, learning_rate=1e-6, start=start)
    np.testing.assert_allclose(moved.policy.weights, start, atol=1e-5)
    assert (start == 1).all()
    shrunk = pg.learn_policy(log, pg.IPS(), epochs=200, batch=None, decay=10.0, start=start)
    assert np.abs(shrunk.policy.weights).max() < 0.2
    assert isinstance(one.policy, SoftmaxPolicy)


def test_neighbours_hold_the_action_itself() -> None:
    table = pg.nearest(np.array([[0.0], [1.0], [1.1], [5.0]]), 2)
    assert [set(row) for row in table.tolist()] == [{0, 1}, {1, 2}, {1, 2}, {2, 3}]


def test_bad_input_is_refused() -> None:
    rng = np.random.default_rng(0)
    log = a_log(rng)
    bare = LoggedData(log.contexts, log.actions, log.rewards, K)
    logged_only = LoggedData(log.contexts, log.actions, log.rewards, K, propensities=log.propensities)
    for call in (
        lambda: pg.learn_policy(bare, pg.IPS()),
        lambda: pg.learn_policy(bare, pg.SelfNormalisedIPS()),
        lambda: pg.learn_policy(logged_only, pg.MIPS(np.zeros(K))),
        lambda: pg.learn_policy(logged_only, pg.PC(np.zeros((K, 1), dtype=np.int64))),
        lambda: pg.learn_policy(log, pg.IPS(ClipWeights(10.0))),
        lambda: pg.learn_policy(log, pg.MIPS(np.zeros(K - 1))),
        lambda: pg.learn_policy(log, pg.PC(np.zeros((K - 1, 1), dtype=np.int64))),
        lambda: pg.learn_policy(log, pg.IPS(), epochs=0),
        lambda: pg.learn_policy(log, pg.IPS(), learning_rate=0.0),
        lambda: pg.learn_policy(log, pg.IPS(), start=np.zeros((K, D + 1))),
        lambda: pg.nearest(np.zeros((3, 1)), 4),
    ):
        with pytest.raises(InvalidInput):
            call()
