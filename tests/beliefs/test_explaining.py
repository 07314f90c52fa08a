"""Explanations: their parts are those of the joint Gaussian written out, and add up to the moments that decisions read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import manyarms as ma
from brute_force import MIXINGS, random_case, random_rows
from every_agent import EVERY, D, K, rows_for
from manyarms.errors import InvalidInput
from manyarms.logs import Encoding
from manyarms.policies import EpsilonMixture, Layers, SoftmaxPolicy, TwoStagePolicy, UniformPolicy

RNG = np.random.default_rng(9)
DIM = 2


@given(
    seed=st.integers(0, 10_000),
    mixing=st.sampled_from(MIXINGS),
    shared=st.booleans(),
    n=st.integers(0, 20),
)
def test_parts_are_those_of_the_joint_gaussian(seed: int, mixing: str, shared: bool, n: int) -> None:
    case = random_case(seed, mixing, shared=shared)
    rows = random_rows(seed, n, DIM, np.arange(4))  # the last one is never played
    if n:
        case.belief.observe(*rows)
    joint = case.joint.given(rows, case.noise) if n else case.joint
    m, C = joint.root()
    x = np.random.default_rng(seed).uniform(-1, 1, DIM)
    for a in range(5):
        found = case.belief.explain(x, a)
        intercept, slope, S = joint.conditional(a)
        assert found.root is not None
        np.testing.assert_allclose(found.root, x * (slope @ m), atol=1e-8)
        np.testing.assert_allclose(found.leaf, x * intercept, atol=1e-8)
        np.testing.assert_allclose(found.leaf_variance, x @ S @ x, atol=1e-8)
        np.testing.assert_allclose(found.root_variance, x @ slope @ C @ slope.T @ x, atol=1e-8)
        mean, V = joint.action(a)
        np.testing.assert_allclose(found.score, x @ mean, atol=1e-8)
        np.testing.assert_allclose(found.variance, x @ V @ x, atol=1e-8)
        np.testing.assert_allclose(found.variance_shares, x * (V @ x) / (x @ V @ x), atol=1e-6)
        np.testing.assert_allclose(found.contributions, x * mean, atol=1e-8)


@pytest.mark.parametrize("rule", ["mean-field", "blockwise"])
def test_factored_roots(rule: str) -> None:
    case = random_case(3, "weights", factored=rule)
    rows = random_rows(3, 15, DIM, np.arange(4))
    case.belief.observe(*rows)
    factor = case.belief.root.factor()
    joint = case.joint.given(rows, case.noise).with_root(case.belief.root.mean(), factor @ factor.T)
    x = np.array([0.4, -1.1])
    for a in range(5):
        found, (intercept, _, S) = case.belief.explain(x, a), joint.conditional(a)
        np.testing.assert_allclose(found.leaf, x * intercept, atol=1e-8)
        np.testing.assert_allclose(found.contributions, x * joint.action(a)[0], atol=1e-8)
        np.testing.assert_allclose(found.leaf_variance, x @ S @ x, atol=1e-8)
        np.testing.assert_allclose(found.variance, x @ joint.action(a)[1] @ x, atol=1e-8)


@pytest.mark.parametrize("shared", [True, False])
def test_a_known_root_is_a_prior_mean_that_data_pull_away_from(shared: bool) -> None:
    case = random_case(5, "matrices", "known", shared=shared)
    rows = random_rows(5, 9, DIM, np.arange(3))
    case.belief.observe(*rows)
    joint, x = case.joint.given(rows, case.noise), np.array([0.7, 0.2])
    for a in range(5):
        found = case.belief.explain(x, a)
        mean, S = joint.action(a)
        prior, own = case.joint.action(a)
        np.testing.assert_allclose(found.contributions, x * mean, atol=1e-8)
        np.testing.assert_allclose(found.root, x * (S @ np.linalg.solve(own, prior)), atol=1e-8)
        np.testing.assert_allclose([found.variance, found.root_variance], [x @ S @ x, 0.0], atol=1e-8)


@pytest.mark.parametrize("name", EVERY)
def test_every_belief_adds_up_to_what_decisions_read(name: str) -> None:
    agent = EVERY[name]()
    X, actions, rewards = rows_for(agent, 1, 40, [0, 1, 2, 5])
    agent.observe(X, actions, rewards)
    belief, z = agent.belief, RNG.uniform(-1, 1, D)
    for a in (0, 5, 9):
        found = agent.explain(z, a)
        means, covariances = belief.action_posterior(np.array([a]))
        scale = 1e-8 * max(1.0, float(np.abs(found.contributions).max()))
        np.testing.assert_allclose(found.contributions, z * means[0], atol=scale)
        np.testing.assert_allclose(found.variance, z @ covariances[0] @ z, rtol=1e-7)
        assert found.variance_shares is not None
        np.testing.assert_allclose(found.variance_shares.sum(), 1.0)
        if belief.kind != "independent-chains":  # which have no variances for decisions
            mean, variance = belief.listed_moments(z[None, None], np.array([a]), spread=True)
            np.testing.assert_allclose(found.score, mean[0, 0], atol=scale)
            np.testing.assert_allclose(found.variance, variance[0, 0], rtol=1e-7)
        assert (found.root is None) == (belief.kind in ("particles", "independent-chains"))
        assert found.quantity == ("expected reward" if belief.likelihood.exact else "linear predictor")
        if found.root is not None and a == 9 and belief.per_action:
            assert not found.leaf.any()  # never played: all that is known of it is shared
            assert found.root_share in (1.0, None)


def test_features_of_actions_that_a_map_makes() -> None:
    phi = RNG.standard_normal((K, D, D))
    agent = ma.agents.jointTS(
        ma.HierarchicalPrior(1, np.zeros(D), np.eye(D), np.eye(D)), K, feature_map=lambda x: phi @ x, context_shape=(D,)
    )
    x = RNG.uniform(-1, 1, D)
    agent.observe(x, 3, 1.5)
    found = agent.explain(x, 4)
    np.testing.assert_allclose(found.features, phi[4] @ x)
    np.testing.assert_allclose(found.score, phi[4] @ x @ agent.posterior(4)[0], atol=1e-10)


def test_names_and_printing() -> None:
    columns = {"age": [20.0, 30.0, 40.0], "country": ["a", "b", "a"]}
    encoder = Encoding().fit(columns, ["age", "country"])
    prior = ma.HierarchicalPrior(3, np.ones(encoder.dim), np.eye(encoder.dim), np.eye(encoder.dim))
    agent = ma.HierTS(prior, seed=0, catalogue=["one", "two", "three"], encoder=encoder)
    row = {"age": 30.0, "country": "b"}
    agent.observe(row, "two", 3.0)
    found = agent.explain(row, "two")
    assert found.names == tuple(encoder.names)
    told: Any = found.to_json()
    sizes = [abs(part["contribution"]) for part in told["features"]]
    assert sizes == sorted(sizes, reverse=True)
    np.testing.assert_allclose(sum(part["root"] + part["leaf"] for part in told["features"]), told["score"])
    np.testing.assert_allclose(sum(part["variance_share"] for part in told["features"]), 1.0)
    assert encoder.names[0] in str(found)
    assert "root" in str(found)
    nothing = agent.explain(np.zeros(encoder.dim), "one")
    assert (nothing.score, nothing.sd, nothing.root_share, nothing.root_variance_share) == (0.0, 0.0, None, None)


def test_policies_of_linear_scores() -> None:
    beta, x = RNG.standard_normal((6, D)), RNG.uniform(-1, 1, D)
    soft = SoftmaxPolicy(beta, 0.5)
    for policy in (soft, EpsilonMixture(soft, 0.1)):
        found = policy.explain(x, 2)
        np.testing.assert_allclose(found.contributions, x * beta[2] / 0.5)
        np.testing.assert_allclose(found.features, x)
        assert (found.variance, found.root, found.quantity) == (None, None, "score")
    encoder = Layers([RNG.standard_normal((4, D))], [np.ones(D)])
    made = SoftmaxPolicy(beta.astype(np.float32), encoder=encoder)
    found = made.explain(x[:4], 2)
    np.testing.assert_allclose(found.contributions, encoder.encode(x[None, :4])[0] * beta[2], rtol=1e-5)
    assert found.name(1) == "h[1]"
    staged = TwoStagePolicy(beta[:3], np.arange(6) % 3, beta)
    np.testing.assert_allclose(staged.explain(x, 5).contributions, x * beta[2])
    with pytest.raises(InvalidInput, match="linear"):
        UniformPolicy(6).explain(x, 2)


@pytest.mark.parametrize("wrong", [np.ones(D + 1), np.ones((2, D)), "x", None, [np.nan] * D])
def test_what_is_no_context_is_refused(wrong: Any) -> None:
    for thing in (EVERY["meTS"](), EVERY["jointTS"](), EVERY["dTS, particles"](), SoftmaxPolicy(np.ones((3, D)))):
        with pytest.raises(InvalidInput):
            thing.explain(wrong, 1)


@pytest.mark.parametrize("wrong", [-1, 99, "one", None, 1.5, [1], True])
def test_what_is_no_action_is_refused(wrong: Any) -> None:
    for thing in (EVERY["meTS"](), EVERY["jointTS"](), EVERY["dTS, particles"](), SoftmaxPolicy(np.ones((3, D)))):
        with pytest.raises(InvalidInput):
            thing.explain(np.ones(D), wrong)
