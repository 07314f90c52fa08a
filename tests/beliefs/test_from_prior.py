"""Every prior becomes the belief that it describes, and marginalised it keeps every action's marginal law."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.testing import assert_allclose

import manyarms as ma
from brute_force import Joint, covariance_matrix, random_rows
from manyarms._base.typing import Array
from manyarms.beliefs import belief_of, independent_belief_of, joint_belief_of
from manyarms.errors import InvalidInput
from manyarms.priors import ParameterPrior

K, D, P = 6, 2, 3
Made = tuple[ParameterPrior, Joint]


def own(rng: np.random.Generator, per_action: bool) -> Array:
    return np.stack([covariance_matrix(rng, D) for _ in range(K)]) if per_action else covariance_matrix(rng, D)


def joint(mean: Array, covariance: Array, W: Array, Sigma: Array) -> Joint:
    return Joint.prior(mean, covariance, np.broadcast_to(W, (K, D, len(mean))), np.broadcast_to(Sigma, (K, D, D)))


def hierarchical(rng: np.random.Generator, per_action: bool) -> Made:
    mean, covariance, Sigma = rng.standard_normal(D), covariance_matrix(rng, D), own(rng, per_action)
    return ma.HierarchicalPrior(K, mean, covariance, Sigma), joint(mean, covariance, np.eye(D), Sigma)


def mixed(rng: np.random.Generator, per_action: bool) -> Made:
    b, mean = rng.uniform(-1, 1, (K, P)), rng.standard_normal((P, D))
    covariance, Sigma = covariance_matrix(rng, P * D), own(rng, per_action)
    W = np.stack([np.kron(row, np.eye(D)) for row in b])
    return ma.MixedEffectPrior(b, mean, covariance, Sigma), joint(mean.ravel(), covariance, W, Sigma)


def latent(rng: np.random.Generator, per_action: bool) -> Made:
    W, mean = rng.standard_normal((K, D, P)), rng.standard_normal(P)
    covariance, Sigma = covariance_matrix(rng, P), own(rng, per_action)
    return ma.priors.LatentPrior(W, mean, covariance, Sigma), joint(mean, covariance, W, Sigma)


def two_level(rng: np.random.Generator, per_action: bool) -> Made:
    W = np.array([[1.0, 0.5, 0.0], [2.0, 1.0, 0.0]])  # of rank one: no HierarchicalPrior says the same
    covariance, Sigma = covariance_matrix(rng, P), covariance_matrix(rng, D)
    return ma.priors.TwoLevelPrior(K, W, covariance, Sigma), joint(np.zeros(P), covariance, W, Sigma)


def diffusion(rng: np.random.Generator, per_action: bool) -> Made:
    W1, W2 = rng.uniform(-1, 1, (2, D, D))
    S1, S2, S3 = (covariance_matrix(rng, D) for _ in range(3))
    prior = ma.DiffusionPrior(K, D, [W1, W2], [S1, S2, S3])
    return prior, joint(np.zeros(D), W1 @ (S2 + W2 @ S3 @ W2.T) @ W1.T, np.eye(D), S1)


PRIORS: dict[str, Callable[[np.random.Generator, bool], Made]] = {
    "hierarchical": hierarchical,
    "mixed effects": mixed,
    "latent": latent,
    "two levels": two_level,
    "diffusion": diffusion,
}


@pytest.mark.parametrize("per_action", [False, True])
@pytest.mark.parametrize("name", PRIORS)
def test_structured_beliefs_are_the_joint_gaussian(name: str, per_action: bool, rng: np.random.Generator) -> None:
    prior, truth = PRIORS[name](rng, per_action)
    belief, rows = belief_of(prior, ma.Linear(0.6)), random_rows(1, 25, D, np.arange(K - 1))
    belief.observe(*rows)
    after = truth.given(rows, 0.6)
    mean, covariance = belief.action_posterior(np.arange(K))
    for a in range(K):
        assert_allclose(mean[a], after.action(a)[0], atol=1e-9)
        assert_allclose(covariance[a], after.action(a)[1], atol=1e-9)


@pytest.mark.parametrize("per_action", [False, True])
@pytest.mark.parametrize("name", PRIORS)
def test_marginalised_beliefs_are_the_joints_marginals(name: str, per_action: bool, rng: np.random.Generator) -> None:
    """LinTS of a structured prior: each action's own marginal of the joint Gaussian, conditioned on its own rows alone."""
    prior, truth = PRIORS[name](rng, per_action)
    agent = ma.LinTS(prior, ma.Linear(0.6), seed=0)
    X, A, r = random_rows(1, 25, D, np.arange(K - 1))
    for a in range(K):
        for got, wanted in zip(agent.posterior(a), truth.action(a), strict=True):
            assert_allclose(got, wanted, atol=1e-9)
    agent.observe(X, A, r)
    for a in range(K):
        mean, covariance = truth.action(a)
        alone = Joint.prior(mean, covariance, np.eye(D)[None], np.zeros((1, D, D)))
        mine = a == A
        mean, covariance = alone.given((X[mine], np.zeros(mine.sum(), dtype=np.int64), r[mine]), 0.6).action(0)
        assert_allclose(agent.posterior(a)[0], mean, atol=1e-9)
        assert_allclose(agent.posterior(a)[1], covariance, atol=1e-9)


@pytest.mark.parametrize("name", PRIORS)
def test_every_agent_of_independent_actions_takes_every_prior(name: str, rng: np.random.Generator) -> None:
    prior, _ = PRIORS[name](rng, False)
    for make in (ma.LinTS, ma.LinUCB, ma.agents.GLMTS, ma.agents.UCBGLM, ma.agents.GLMUCB):
        agent = make(prior, seed=0)
        assert agent.belief.root.known and 0 <= agent.decide([0.3, -0.2]) < K
    for make in (ma.agents.GreedyAgent, ma.agents.EpsilonGreedyAgent):
        assert not make(prior, seed=0).belief.root.known


def test_an_action_prior_is_its_own_marginal() -> None:
    prior = ma.ActionPrior(K, np.zeros(D), np.eye(D))
    assert prior.marginal() is prior
    own_means = ma.ActionPrior(K, np.arange(K * D).reshape(K, D), np.eye(D))
    mean, _ = independent_belief_of(own_means, ma.Linear()).action_posterior(np.arange(K))
    assert_allclose(mean, own_means.mean)


def test_what_makes_no_belief_is_refused(rng: np.random.Generator) -> None:
    prior, _ = hierarchical(rng, False)
    for call, argument in (
        (lambda: belief_of("prior", ma.Linear()), "prior"),  # type: ignore[arg-type]
        (lambda: ma.LinTS("prior"), "prior"),  # type: ignore[arg-type]
        (lambda: belief_of(prior, "linear"), "likelihood"),  # type: ignore[arg-type]
        (lambda: ma.LinTS(prior, ma.Logistic()), "likelihood"),
        (lambda: belief_of(prior, ma.Linear(), factored=True), "factored"),
        (lambda: joint_belief_of(hierarchical(rng, True)[0], 4, ma.Linear()), "prior"),
        (lambda: joint_belief_of(latent(rng, False)[0], 4, ma.Linear()), "weights"),
    ):
        with pytest.raises(InvalidInput) as error:
            call()
        assert error.value.argument == argument
