"""Worlds refuse what they cannot be made of, before anything is allocated, and keep what they are made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import manyarms as ma
from manyarms import worlds
from manyarms.errors import InvalidInput
from manyarms.worlds.latent import Latent
from manyarms.worlds.supervised import Fit

MANY = 10**13


def small(**options: Any) -> worlds.MixedEffect:
    return worlds.MixedEffect(12, 2, 3, seed=0, **options)


def agent(seed: int = 0) -> ma.Agent:
    return ma.meTS(small().prior(), seed=seed)


def catalogue(**options: Any) -> worlds.CatalogueWorld:
    return worlds.CatalogueWorld(50, 4, rank=2, k0=5, segments=3, test=10, **options)


ROWS, LABELS = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) % 3
BAD: dict[str, tuple[Callable[[], object], str]] = {
    "mixed effects": (lambda: worlds.MixedEffect(MANY, 2, 3), "actions: expected at most"),
    "effects": (lambda: worlds.MixedEffect(12, MANY, 3), "effects: expected at most"),
    "a pool": (lambda: small(context_pool=MANY), "context_pool: expected at most"),
    "contexts": (lambda: small().contexts(MANY), "n: expected at most"),
    "latents": (lambda: Latent(MANY, 3, 3), "actions: expected at most"),
    "a roll": (lambda: worlds.SwissRoll(MANY), "actions: expected at most"),
    "points of a roll": (lambda: worlds.SwissRoll(3).sample(MANY), "at most"),
    "a diffusion": (lambda: worlds.Diffusion(ma.DiffusionPrior(MANY, 2, [np.eye(2)], [1.0, 1.0])), "actions"),
    "a chain": (lambda: worlds.synthetic_chain(5, 10**9, 2), "dim: expected at most"),
    "a catalogue": (lambda: worlds.CatalogueWorld(MANY), "actions: expected at most"),
    "rounds": (lambda: catalogue().log(MANY), "rounds: expected at most"),
    "a skewed policy": (lambda: worlds.skewed_policy(MANY), "actions: expected at most"),
    "rounds of a world": (lambda: worlds.log_from(small(), MANY), "n: expected at most"),
    "a cube of half a dimension": (lambda: worlds.Cube(2.5), "dim"),
    "a pool of NaN": (lambda: worlds.Pool(np.full((3, 2), np.nan)), "rows"),
    "a masked action": (lambda: small().reward(np.ones((2, 3)), np.ma.array([1, 2], mask=[True, False])), "a: "),
    "an action of 70 bits": (lambda: small().reward(np.ones(3), 2**70), "a: "),
    "a Poisson mean beyond all numbers": (
        lambda: small(reward="poisson", effect_scale=1e90).regret(np.ones(3), 0),
        "Poisson",
    ),
    "a skew beyond all numbers": (lambda: catalogue(skew=1e50), "skew"),
    "a rate at the ceiling": (lambda: catalogue(click_rate=0.3 * (1 - 1e-16)), "click_rate"),
    "a frozen temperature": (lambda: catalogue(temperature=1e-99), "temperature"),
    "ids beyond the catalogue": (lambda: catalogue().mean_reward(np.ones((1, 4)), [[50]]), "ids"),
    "the value of nothing": (lambda: catalogue().value(None), "policy"),
    "the value of a class": (lambda: catalogue().value(ma.policies.UniformPolicy), "policy"),
    "a log of no world": (lambda: worlds.log_from(3, 5), "world"),
    "a log of no policy": (lambda: worlds.log_from(small(), 5, "uniform"), "policy"),
    "checkpoints beyond the end": (lambda: worlds.simulate(small(), agent(), 5, [6]), "checkpoints"),
    "half a checkpoint": (lambda: worlds.simulate(small(), agent(), 5, [1.5]), "checkpoints"),
    "no chunk": (lambda: worlds.simulate(small(), agent(), 5, chunk=0), "chunk"),
    "a class for a world": (lambda: worlds.simulate(worlds.MixedEffect, agent(), 5), "world"),
    "masked rows": (lambda: worlds.SupervisedWorld.from_data(np.ma.array(ROWS, mask=ROWS > 1), LABELS), "X"),
    "masked labels": (lambda: worlds.SupervisedWorld.from_data(ROWS, np.ma.array(LABELS, mask=LABELS > 1)), "y"),
    "a fit that is no Fit": (lambda: worlds.SupervisedWorld.from_data(ROWS, LABELS, fit=0.5), "fit"),
    "an inverse temperature of 1e99": (lambda: worlds.SupervisedWorld.from_data(ROWS, LABELS).log(1e99), "eta0"),
    "a policy that is a number": (lambda: worlds.SupervisedWorld.from_data(ROWS, LABELS).value(3), "policy"),
}


@pytest.mark.parametrize(("call", "says"), BAD.values(), ids=BAD)
def test_it_is_refused_by_name(call: Callable[[], object], says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        call()


def test_a_world_keeps_its_pool_weights_and_parameters() -> None:
    rows, weights = np.ones((4, 2)), np.ones((12, 2))
    pool, world = worlds.Pool(rows), small(weights=weights)
    theta = world.theta.copy()
    rows[...], weights[...] = 7.0, 7.0
    assert pool.rows.max() == 1 and world.weights.max() == 1
    assert np.array_equal(world.theta, theta) and not world.theta.flags.writeable


def test_sizes_of_a_byte_do_not_overflow() -> None:
    byte = np.uint8
    assert worlds.MixedEffect(byte(200), byte(30), byte(20)).prior().effect_covariance.shape == (600, 600)
    assert Latent(byte(200), byte(20), byte(30)).theta.shape == (200, 20)
    run = worlds.simulate(small(), agent(), byte(200), chunk=byte(100))
    whole = worlds.simulate(small(), agent(), 200, chunk=100)
    assert np.array_equal(run.regret, whole.regret) and run.rounds[-1] == 200
    assert Fit(epochs=byte(3)).epochs == 3 and type(Fit(epochs=byte(3)).epochs) is int
