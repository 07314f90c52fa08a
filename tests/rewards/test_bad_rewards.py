"""Reward models at their edges: ridges that rounding swallows, nothing asked for, and what is refused by name."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

import manyarms as ma
from manyarms import rewards, worlds
from manyarms.errors import InvalidInput

WORLD = worlds.MixedEffect(6, 2, 3, seed=0)
PRIOR, LOG = WORLD.prior(), worlds.log_from(WORLD, 60)


def exact_ridge(X: np.ndarray, r: np.ndarray, lam: float) -> np.ndarray:
    """(X^T X + lam I)^-1 X^T r in two dimensions, in rational numbers."""
    x, rewards_, ridge = (
        [[Fraction(v) for v in row] for row in X.tolist()],
        [Fraction(v) for v in r.tolist()],
        Fraction(lam),
    )
    a, b, d = (sum(row[i] * row[j] for row in x) for i, j in ((0, 0), (0, 1), (1, 1)))
    p, q = (sum(row[i] * value for row, value in zip(x, rewards_, strict=True)) for i in (0, 1))
    a, d = a + ridge, d + ridge
    determinant = a * d - b * b
    return np.array([float((d * p - b * q) / determinant), float((a * q - b * p) / determinant)])


@pytest.mark.parametrize("lam", [1.0, 1e-9, 1e-13, 1e-17, 1e-60, 1e-99])
@pytest.mark.parametrize("size", [1.0, 1e6])
def test_a_ridge_may_be_as_small_as_it_likes(lam: float, size: float) -> None:
    """One row leaves a direction open, where the ridge decides: the answer is 0 there however small it is."""
    X = size * np.array([[0.3, -0.7], [1.1, 0.4], [0.2, 0.9], [0.5, 0.1]])
    actions, r = np.array([0, 1, 1, 1]), np.array([1.0, 0.5, -2.0, 0.25])
    found = rewards.dm_frequentist(ma.LoggedData(X, actions, r, 3, np.full(4, 0.5)), lam).parameters
    for action in (0, 1):
        mine = actions == action
        expected = exact_ridge(X[mine], r[mine], lam)
        assert np.allclose(found[action], expected, rtol=1e-6, atol=0), action
    assert not found[2].any()


def test_a_model_keeps_its_parameters() -> None:
    given = np.ones((3, 2))
    model = rewards.LinearModel(given)
    given[...] = 7.0
    assert model.parameters.max() == 1


def test_of_no_action_there_are_no_posteriors() -> None:
    mean, covariance = rewards.sdm(LOG, PRIOR).posterior([])
    assert mean.shape == (0, 3) and covariance.shape == (0, 3, 3)


def test_a_two_level_prior_can_be_fitted() -> None:
    prior = ma.priors.TwoLevelPrior(6, np.eye(3), np.eye(3), np.eye(3))
    same = ma.HierarchicalPrior(6, np.zeros(3), np.eye(3), np.eye(3))
    one, other = ma.fit_prior(LOG, prior), ma.fit_prior(LOG, same)
    assert np.isclose(one.log_evidence, other.log_evidence)
    assert isinstance(one.prior, ma.priors.TwoLevelPrior)


BAD: dict[str, tuple[Callable[[], object], str]] = {
    "no log": (lambda: rewards.sdm(3, PRIOR), "source"),
    "a log's class": (lambda: rewards.dm_frequentist(ma.LoggedData), "source"),
    "no belief": (lambda: rewards.BeliefModel("x"), "belief"),
    "a diffusion to fit": (lambda: ma.fit_prior(LOG, ma.DiffusionPrior(6, 3, [np.eye(3)], [1.0, 1.0])), "structure"),
    "a flag that is an array": (lambda: ma.fit_prior(LOG, PRIOR, action=np.array([True, False])), "action"),
    "a seed that is an array": (lambda: ma.fit_prior(LOG, PRIOR, seed=np.array([1])), "seed"),
    "calibration of nothing": (lambda: rewards.calibration([], LOG), "model"),
    "bounds that are text": (lambda: rewards.Clipped(rewards.sdm(LOG, PRIOR), "a", 1), "low"),
    "bounds of a class": (lambda: rewards.Clipped(rewards.LinearModel), "model"),
    "a decision by name": (lambda: rewards.warm_start(LOG, PRIOR, decision="greedy"), "decision"),
    "a decision's class": (lambda: rewards.sdm(LOG, PRIOR).agent(ma.agents.Greedy), "decision"),
    "masked contexts": (lambda: rewards.sdm(LOG, PRIOR).decide(np.ma.array(np.ones(3), mask=[1, 0, 0])), "X"),
    "masked actions": (
        lambda: rewards.sdm(LOG, PRIOR).predict(np.ones((2, 3)), np.ma.array([1, 2], mask=[1, 0])),
        "actions",
    ),
    "actions that do not fit": (lambda: rewards.sdm(LOG, PRIOR).moments_of(np.ones((2, 3)), [1]), "actions"),
    "no chance at all": (lambda: rewards.pessimism_width(3, 0.0), "delta"),
    "a likelihood by name": (lambda: rewards.LinearModel(np.ones((2, 2)), "linear"), "likelihood"),
}


@pytest.mark.parametrize(("call", "says"), BAD.values(), ids=BAD)
def test_it_is_refused_by_name(call: Callable[[], object], says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        call()
