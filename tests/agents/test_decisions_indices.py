"""Greedy, UCB and pessimistic decisions: indices are those of the brute-force posterior, ties go to the lowest id."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.special import expit

import manyarms as ma
from brute_force import MIXINGS, Joint, random_case, random_rows
from manyarms._base.typing import Array, Ints
from manyarms.agents.agent import Agent
from manyarms.beliefs import Belief
from manyarms.beliefs.actions import search

K, D = 7, 2
Index = ma.Greedy | ma.agents.UCB | ma.agents.Pessimistic
DECISIONS: list[tuple[Index, float]] = [
    (ma.Greedy(), 0.0),
    (ma.agents.UCB(1.5), 1.5),
    (ma.agents.Pessimistic(0.8), -0.8),
]


def ranking(joint: Joint, x: Array, width: float, among: list[int], k: int) -> list[int]:
    """The best k by mean + width * sd of the joint posterior, equal ones by id."""
    mean, covariance = joint.scores(x)
    index = mean + width * np.sqrt(np.diag(covariance))
    return sorted(among, key=lambda a: (-index[a], a))[:k]


@given(
    seed=st.integers(0, 10**6),
    mixing=st.sampled_from(MIXINGS),
    root=st.sampled_from(("known", "gaussian")),
    shared=st.booleans(),
    n=st.integers(0, 20),
    few=st.sampled_from((1, 4096)),
)
@settings(max_examples=80)
def test_the_best_by_brute_force_on_every_mixing(
    seed: int, mixing: str, root: str, shared: bool, n: int, few: int
) -> None:
    case = random_case(seed, mixing, root, shared=shared, actions=K, dim=D)
    joint = case.joint
    rng = np.random.default_rng(seed)
    if n:
        rows = random_rows(seed, n, D, np.array([0, 2, 5]))
        case.belief.observe(*rows)
        joint = joint.given(rows, case.noise)
    case.belief.leaves.catalogue.retire(np.array([2, 4]))
    alive = [0, 1, 3, 5, 6]
    X = rng.uniform(-1, 1, (3, D))
    some = rng.permutation(alive)[:3].tolist()
    before, search.FEW = search.FEW, few
    try:
        for decision, width in DECISIONS:
            agent = Agent(case.belief, decision, 0)
            for options, among in (
                ({}, alive),
                ({"candidates": some}, some),
                ({"exclude": some}, [a for a in alive if a not in some]),
            ):
                for k in (1, 2):
                    found = np.asarray(agent.decide(X, k=k, **options))
                    for x, mine in zip(X, found.tolist(), strict=True):
                        wanted = ranking(joint, x, width, among, k)
                        if mine != wanted:  # rounding may swap what is equal
                            mean, covariance = joint.scores(x)
                            index = mean + width * np.sqrt(np.diag(covariance))
                            assert_allclose(index[mine], index[wanted], rtol=0, atol=1e-9)
    finally:
        search.FEW = before


@given(
    seed=st.integers(0, 10**6),
    mixing=st.sampled_from(MIXINGS),
    root=st.sampled_from(("known", "gaussian")),
    shared=st.booleans(),
)
def test_marginal_moments_of_played_and_unplayed_actions(seed: int, mixing: str, root: str, shared: bool) -> None:
    case = random_case(seed, mixing, root, shared=shared, actions=K, dim=D)
    rows = random_rows(seed, 12, D, np.array([0, 2, 5]))
    case.belief.observe(*rows)
    joint = case.joint.given(rows, case.noise)
    x = np.random.default_rng(seed).uniform(-1, 1, D)
    mean, covariance = joint.scores(x)
    offer = case.belief.leaves.catalogue.offer()
    have, spread = case.belief.played_moments(x[None], offer, spread=True)
    ids = offer.ids_of_slots()
    assert_allclose(have[0], mean[ids], rtol=0, atol=1e-8)
    assert_allclose(spread[0], np.diag(covariance)[ids], rtol=0, atol=1e-8)
    have, spread = case.belief.unplayed_moments(x, offer, spread=True)
    for place, count in enumerate(offer.counts.tolist()):
        for rank in range(count):
            a = offer.member(place, rank)
            assert_allclose(have[place], mean[a], rtol=0, atol=1e-8)
            assert_allclose(spread[place], covariance[a, a], rtol=0, atol=1e-8)


def glm_agent(decision: Index) -> tuple[Agent, Array, Array]:
    """An agent with clicks, and mean and sd of x^T theta for each of its actions."""
    rng = np.random.default_rng(2)
    prior = ma.MixedEffectPrior(rng.uniform(-1, 1, (K, 2)), rng.standard_normal((2, D)), np.eye(4), 0.5 * np.eye(D))
    belief = ma.beliefs.belief_of(prior, ma.Logistic())
    rows = random_rows(1, 60, D, np.array([0, 2, 5]))
    agent = Agent(belief, decision, 0)
    agent.observe(rows[0], rows[1], (rows[2] > 0.5).astype(float))
    x = np.array([0.9, -0.4])
    posteriors = [agent.posterior(a) for a in range(K)]
    return agent, np.array([x @ m for m, _ in posteriors]), np.sqrt([x @ S @ x for _, S in posteriors])


@pytest.mark.parametrize("width", [0.0, 0.3, 2.0])
def test_generalised_rewards_on_both_scales(width: float) -> None:
    """UCB-GLM adds the width to x^T theta, GLM-UCB to the expected reward: another order."""
    x = np.array([0.9, -0.4])
    agent, mean, sd = glm_agent(ma.agents.UCB(width))
    assert np.asarray(agent.decide(x, k=K)).tolist() == np.argsort(-(mean + width * sd)).tolist()
    agent, mean, sd = glm_agent(ma.agents.UCB(width, on_mean=True))
    assert np.asarray(agent.decide(x, k=K)).tolist() == np.argsort(-(expit(mean) + width * sd)).tolist()


def test_the_default_widths() -> None:
    """LinUCB: sqrt(lambda d) + sqrt(d log((1 + n l^2 / (lambda s^2)) n)); UCB-GLM: 2 sqrt(d/2 log(1 + 2n/d) + log n)."""
    prior = ma.ActionPrior(5, np.zeros(2), 0.5 * np.eye(2))
    width = ma.LinUCB(prior, ma.Linear(0.3), horizon=200, context_norm=1.5).decision.options()["width"]
    lam, d, n = 2.0, 2, 200
    assert width == pytest.approx(np.sqrt(lam * d) + np.sqrt(d * np.log((1 + n * 1.5**2 / (lam * 0.09)) * n)))
    wanted = 2 * np.sqrt(d / 2 * np.log(1 + 2 * n / d) + np.log(n))
    for make, on_mean in ((ma.agents.UCBGLM, False), (ma.agents.GLMUCB, True)):
        options = make(prior, horizon=200).decision.options()
        assert options == {"width": pytest.approx(wanted), "on_mean": on_mean}
        assert make(prior, width=0.25).decision.options()["width"] == 0.25


# ---- ties -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mixing", MIXINGS)
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize(("decision", "width"), DECISIONS, ids=lambda d: getattr(d, "kind", None))
def test_a_context_of_zeros_takes_the_lowest_ids(mixing: str, shared: bool, decision: Index, width: float) -> None:
    case = random_case(3, mixing, shared=shared, actions=K, dim=D)
    agent = Agent(case.belief, decision, 0)
    zeros = np.zeros(D)
    assert np.asarray(agent.decide(zeros, k=3)).tolist() == [0, 1, 2]
    agent.observe(*random_rows(3, 9, D, np.array([1, 6, 0])))
    assert np.asarray(agent.decide(zeros, k=3)).tolist() == [0, 1, 2]
    agent.retire([1, 2])
    assert np.asarray(agent.decide(zeros, k=4)).tolist() == [0, 3, 4, 5]
    assert np.asarray(agent.decide(zeros, k=3, exclude=[0, 4])).tolist() == [3, 5, 6]
    assert np.asarray(agent.decide(zeros, k=2, candidates=[6, 5, 3])).tolist() == [3, 5]
    assert agent.decide(zeros, candidates=[6, 5]) == 5


def lowest_of_the_alike(agent: Agent, x: Array, options: dict[str, Any], k: int) -> list[int]:
    return np.asarray(agent.decide(x, k=k, **options)).tolist()  # type: ignore[no-any-return]


def test_interchangeable_actions_are_taken_by_id() -> None:
    """Equal rows of weights, spread over the catalogue; the best kind is exhausted before the next begins."""
    b = np.array([[1.0, 0], [0, 1], [1, 0], [0, 1], [1, 0], [0, 1]])
    prior = ma.MixedEffectPrior(b, np.array([[1.0], [2.0]]), np.eye(2), np.eye(1))
    agent = ma.agents.GreedyAgent(prior, seed=0)
    x = np.ones(1)
    assert lowest_of_the_alike(agent, x, {}, 6) == [1, 3, 5, 0, 2, 4]
    assert lowest_of_the_alike(agent, x, {"exclude": [1]}, 4) == [3, 5, 0, 2]
    assert lowest_of_the_alike(agent, x, {"candidates": [5, 4, 2]}, 3) == [5, 2, 4]
    agent.retire(3)
    assert lowest_of_the_alike(agent, x, {}, 4) == [1, 5, 0, 2]
    new = agent.add_actions(weights=[[0.0, 1.0]])
    assert lowest_of_the_alike(agent, x, {}, 3) == [1, 5, int(new[0])]
    agent.observe(x, 1, 2.0)  # exactly as expected: the played one stays level with its kind, in mean
    assert lowest_of_the_alike(agent, x, {}, 2)[0] == 1


def test_a_common_prior_with_a_million_actions() -> None:
    agent = ma.LinUCB(ma.ActionPrior(1_000_000, np.zeros(D), np.eye(D)), seed=0)
    x = np.array([1.0, 0.0])
    assert agent.decide(x) == 0
    agent.observe(x, 0, -5.0)
    agent.observe(x, 2, -5.0)
    assert np.asarray(agent.decide(x, k=3)).tolist() == [1, 3, 4]
    assert np.asarray(agent.decide(x, k=2, exclude=[1, 3])).tolist() == [4, 5]


def test_batches_are_their_rows() -> None:
    case = random_case(5, "weights", actions=K, dim=D)
    agent = Agent(case.belief, ma.agents.UCB(1.0), 0)
    agent.observe(*random_rows(5, 15, D, np.arange(4)))
    X = np.random.default_rng(0).uniform(-1, 1, (40, D))
    batch = agent.decide(X)
    assert isinstance(batch, np.ndarray)
    singles: Ints = np.array([agent.decide(x) for x in X])
    assert (batch == singles).all()


def test_optimism_explores_and_pessimism_does_not() -> None:
    """Two actions of equal mean: the optimist takes the one less known, the pessimist the one better known."""
    prior = ma.ActionPrior(2, np.zeros(1), np.eye(1))
    x = np.ones(1)
    for decision, wanted in ((ma.agents.UCB(1.0), 1), (ma.agents.Pessimistic(1.0), 0)):
        agent = Agent(ma.beliefs.belief_of(prior, ma.Linear()), decision, 0)
        agent.observe(x, 0, 0.0)
        assert agent.decide(x) == wanted


def test_roots_that_are_factored_give_their_own_spread() -> None:
    """The index follows the root it has: mean-field understates the spread, and the index with it."""
    rows = random_rows(11, 40, D, np.arange(4))
    x = np.array([0.7, 0.7])
    spreads: dict[str | None, Array] = {}
    for rule in (None, "mean-field"):
        case = random_case(11, "weights", actions=K, dim=D, factored=rule)
        belief: Belief = case.belief
        belief.observe(*rows)
        offer = belief.leaves.catalogue.offer()
        spreads[rule] = belief.unplayed_moments(x, offer, spread=True)[1]
        joint = case.joint.given(rows, case.noise)
        factor = belief.root.factor()
        changed = joint.with_root(belief.root.mean(), factor @ factor.T)
        live = np.flatnonzero(offer.counts)
        assert_allclose(spreads[rule][live], np.diag(changed.scores(x)[1])[live], rtol=1e-8)
