"""What doubles cannot hold is refused, where it is first known and before anything changes (docs/accuracy.md)."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import manyarms as ma
from manyarms._base.typing import Array
from manyarms.agents.agent import Agent
from manyarms.beliefs import Belief, GaussianRoot, Leaves, MixingMatrices
from manyarms.errors import InvalidInput


def test_noise_that_vanishes_beside_the_prior_is_refused() -> None:
    prior = ma.HierarchicalPrior(3, np.zeros(2), np.eye(2), np.eye(2))
    for make in (ma.HierTS, ma.LinTS):
        with pytest.raises(InvalidInput, match=r"noise.*at least .*e-12.*1e-13"):
            make(prior, ma.Linear(1e-13))
        make(prior, ma.Linear(1e-11))
    for noise in (1e-60, 1e60):
        with pytest.raises(InvalidInput, match=r"noise.*between 1e-50 and 1e\+50"):
            ma.Linear(noise)


@pytest.mark.parametrize("likelihood", [ma.Linear(), ma.Logistic()])
def test_contexts_beyond_the_limit_are_refused_and_change_nothing(likelihood: ma.beliefs.Likelihood) -> None:
    prior = ma.MixedEffectPrior(np.ones((3, 2)), np.zeros((2, 2)), np.eye(4), np.eye(2))
    agent = ma.meTS(prior, likelihood, seed=0)
    agent.observe(np.ones((4, 2)), [0, 1, 0, 1], [1.0, 0.0, 1.0, 1.0])
    before = {name: array.copy() for name, array in agent.belief.arrays().items()}
    long = np.array([1e13, 0.0])
    for call in (
        lambda: agent.observe(long, 0, 1.0),
        lambda: agent.observe(np.stack([np.ones(2), long]), [2, 0], [1.0, 1.0]),
        lambda: agent.belief.fold(
            [(np.ones((1, 2)), np.array([2]), np.ones(1)), (long[None], np.array([2]), np.ones(1))]
        ),
    ):
        with pytest.raises(InvalidInput, match=r"x: .*contexts of length up to .*e\+11"):
            call()
        after = agent.belief.arrays()
        assert before.keys() == after.keys() and all((after[name] == before[name]).all() for name in before)
    with pytest.raises(InvalidInput, match="weights"):
        ma.meTS(prior, ma.Linear(), seed=0).add_actions(weights=[1e13, 0.0])
    leaves = Leaves(MixingMatrices(np.ones((2, 1, 1))), np.ones((2, 1, 1)))
    own = Agent(Belief(GaussianRoot(np.zeros(1), np.eye(1)), leaves, ma.Linear()), ma.Thompson(), 0)
    with pytest.raises(InvalidInput, match="covariance"):
        own.add_actions(weights=[[1.0]], covariance=[[1e25]])
    with pytest.raises(InvalidInput, match="covariance"):  # each alone would do
        own.add_actions(weights=[[8e11]], covariance=[[0.7e24]])
    with pytest.raises(InvalidInput, match="weights"):
        own.add_actions(weights=[[9e11]], covariance=[[0.7e24]])
    assert own.belief.catalogue.size == 2
    own.add_actions(weights=[[7e11]], covariance=[[0.4e24]])
    # a wide prior of one action is no limit to the others
    with pytest.raises(InvalidInput, match=r"x: .*contexts of length up to 1\.0"):
        own.observe([90.0], 2, 1.0)
    with pytest.raises(InvalidInput, match=r"x: .*contexts of length up to 1\.0"):
        own.observe([[90.0], [90.0]], [0, 2], [1.0, 1.0])
    own.observe([[90.0], [1.0]], [0, 2], [1.0, 1.0])
    own.observe([1e6], 1, 1.0)


def test_refused_weights_and_covariances_are_told_what_would_do() -> None:
    """What the message allows is taken, and a little more is not."""

    def own() -> Agent:
        leaves = Leaves(MixingMatrices(np.ones((2, 1, 2))), np.ones((2, 1, 1)))
        return Agent(Belief(GaussianRoot(np.zeros(2), 4 * np.eye(2)), leaves, ma.Linear(2.0)), ma.Thompson(), 0)

    def weighted(squares: float) -> Array:
        return np.sqrt(squares / 2) * np.ones((1, 1, 2))

    variance = 1e24
    with pytest.raises(InvalidInput, match=r"weights whose squares sum to at most 7\.5e\+23.*, got .*sum to 1e\+24"):
        own().add_actions(weights=weighted(1e24), covariance=[[variance]])
    own().add_actions(weights=weighted(0.7499e24), covariance=[[variance]])
    with pytest.raises(InvalidInput, match="weights"):
        own().add_actions(weights=weighted(0.7501e24), covariance=[[variance]])
    with pytest.raises(InvalidInput, match=r"variances that sum to at most 4e\+24.*, got .*sum to 5e\+24, and 8 from"):
        own().add_actions(weights=weighted(2.0), covariance=[[5e24]])
    with pytest.raises(InvalidInput, match=r"covariance: .*at most 4e\+24"):  # no weights would do beside it
        own().add_actions(weights=weighted(1e26), covariance=[[5e24]])
    rows = np.concatenate([weighted(1.0), weighted(9e24)])
    with pytest.raises(InvalidInput, match=r"weights whose squares sum to at most 1e\+24.*, got .*sum to 9e\+24"):
        own().add_actions(weights=rows, covariance=[[[1.0]], [[1.0]]])  # the second


@pytest.mark.parametrize("variance", [0.4e24, 1e22])
def test_contexts_are_held_to_their_limit_however_short_they_are(variance: float) -> None:
    agent = ma.LinTS(ma.ActionPrior(3, np.zeros(2), variance * np.eye(2)), ma.Linear(1.0), seed=0)
    longest = 1e12 / np.sqrt(2 * variance)
    agent.observe([0.99 * longest, 0.0], 0, 1.0)
    for length in (1.01 * longest, 60.0 * longest):
        with pytest.raises(InvalidInput, match=r"x: .*contexts of length up to"):
            agent.observe([length, 0.0], 0, 1.0)
        with pytest.raises(InvalidInput, match=r"x: .*contexts of length up to"):
            agent.observe([[0.0, 0.1], [length, 0.0]], [0, 1], [1.0, 1.0])


def test_glm_priors_have_the_limit_of_noise_1() -> None:
    for variance in (1e25, 1e90):
        with pytest.raises(InvalidInput, match=r"prior: .*at most 1e\+12"):
            ma.agents.GLMTS(ma.ActionPrior(3, np.zeros(2), variance * np.eye(2)), ma.Logistic())
    agent = ma.meTS(ma.MixedEffectPrior(np.ones((3, 2)), np.zeros((2, 2)), np.eye(4), np.eye(2)), ma.Logistic(), seed=0)
    with pytest.raises(InvalidInput, match="weights"):
        agent.add_actions(weights=[1e13, 0.0])
    ma.agents.GLMTS(ma.ActionPrior(3, np.zeros(2), 1e20 * np.eye(2)), ma.Logistic(), seed=0).observe([1.0, 0.0], 0, 1.0)


@pytest.mark.parametrize(
    ("covariance", "told"),
    [
        (1e-310 * np.eye(2), "variance of 1e-310"),
        (1e-200 * np.eye(2), "at least 1e-100"),
        ([[1.0, 1.0], [1.0, 1.0 + 1e-15]], "1e-14"),
        ([[1.0, 2.0], [2.0, 1.0]], "smallest eigenvalue -1"),
        ([[0.0, 0.0], [0.0, 1.0]], "smallest eigenvalue 0"),
        ([[1.0, 0.5], [0.4, 1.0]], "not symmetric"),
    ],
)
def test_covariances_that_doubles_cannot_hold_are_refused(covariance: Array, told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        ma.HierarchicalPrior(3, np.zeros(2), np.eye(2), covariance)
    stack = np.stack([1e-90 * np.eye(2), np.eye(2), np.asarray(covariance), np.eye(2)])
    with pytest.raises(InvalidInput, match=told) as caught:
        Leaves(ma.beliefs.IdentityMixing(), stack)
    assert "matrix at position 2" in str(caught.value)  # the bad one, not the smallest


def test_scales_alone_are_no_reason_to_refuse() -> None:
    """Components in other units, with variances 24 orders apart."""
    prior = ma.ActionPrior(2, np.zeros(2), np.diag([1e-12, 1e12]))
    agent = ma.LinTS(prior, ma.Linear(1.0), seed=0)
    agent.observe(np.array([1e6, 1e-6]), 0, 1.0)
    mean, covariance = agent.posterior(0)
    assert_allclose(mean * [1e6, 1e-6], [1 / 3, 1 / 3])
    assert_allclose(covariance * np.outer([1e6, 1e-6], [1e6, 1e-6]), np.eye(2) - 1 / 3)
