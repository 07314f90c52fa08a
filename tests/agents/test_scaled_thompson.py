"""Scaled Thompson sampling: the law of drawing all scores from N(mean, scale^2 Cov), whatever the belief and the search."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import manyarms as ma
from brute_force import Case, Joint, random_case, random_rows, same_law
from every_agent import EVERY, rows_for
from manyarms import checks
from manyarms._base.typing import Array, Ints
from manyarms.agents import ScaledThompson
from manyarms.agents.agent import Agent
from manyarms.beliefs.actions import blocks, search
from manyarms.errors import InvalidInput

K, D = 8, 2
X = np.array([0.8, -0.5])
DRAWS, TEXTBOOK = 3000, 40_000

CASES: dict[str, Callable[[], Case]] = {
    "common prior": lambda: random_case(12, "identity", "known", actions=K, dim=D, noise=0.5, spread=0.4),
    "common root": lambda: random_case(12, "identity", actions=K, dim=D, noise=0.5, spread=0.4),
    "one-hot": lambda: random_case(12, "one-hot", actions=K, dim=D, noise=0.5, spread=0.4),
    "weights": lambda: random_case(12, "weights", actions=K, dim=D, noise=0.5, spread=0.4),
    "own covariances": lambda: random_case(12, "weights", shared=False, actions=K, dim=D, noise=0.5, spread=0.4),
    "any W": lambda: random_case(12, "matrices", actions=K, dim=D, noise=0.5, spread=0.4),
}


@pytest.fixture(params=["few", "many"])
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """few: units are drawn directly. many: they go through blocks of two, or scans in pieces of three."""
    if request.param == "many":
        monkeypatch.setattr(search, "FEW", 1)
        monkeypatch.setattr(search, "PIECE", 3)
        monkeypatch.setattr(blocks, "BLOCK", 2)
    yield request.param


def learned(name: str, scale: float) -> tuple[Agent, Joint]:
    case, rows = CASES[name](), random_rows(3, 9, D, np.array([1, 4, 6]))
    agent = Agent(case.belief, ScaledThompson(scale), 7)
    agent.observe(*rows)
    return agent, case.joint.given(rows, case.noise)


def textbook(joint: Joint, scale: float, k: int, among: Ints) -> Ints:
    """(n, k): all scores drawn from N(mean, scale^2 Cov), the k largest in order."""
    mean, covariance = joint.scores(X)
    drawn = np.random.default_rng(9).multivariate_normal(mean, scale**2 * covariance, TEXTBOOK, method="eigh")
    return np.asarray(among[np.argsort(-drawn[:, among], axis=1)[:, :k]])


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("scale", [0.3, 1.0, 2.0])
def test_the_best_two_in_order(name: str, scale: float, path: str) -> None:
    agent, joint = learned(name, scale)
    ours = np.asarray(agent.decide(np.tile(X, (DRAWS, 1)), k=2))
    assert same_law(ours, textbook(joint, scale, 2, np.arange(K))) > 1e-6
    assert same_law(ours[:, :1], textbook(joint, scale, 1, np.arange(K))) > 1e-6


def test_filters_and_retired_actions(path: str) -> None:
    agent, joint = learned("weights", 0.5)
    agent.retire([4, 7])
    among = np.array([0, 1, 2, 3, 5, 6])
    many = np.tile(X, (DRAWS, 1))
    assert same_law(np.asarray(agent.decide(many, k=1)), textbook(joint, 0.5, 1, among)) > 1e-6
    some = np.array([5, 6, 1, 0])
    assert same_law(np.asarray(agent.decide(many, k=2, candidates=some)), textbook(joint, 0.5, 2, some)) > 1e-6
    left = np.array([0, 2, 3, 6])
    assert same_law(np.asarray(agent.decide(many, k=2, exclude=[1, 5])), textbook(joint, 0.5, 2, left)) > 1e-6


@pytest.mark.parametrize("name", EVERY)
def test_a_scale_of_one_is_thompson_sampling(name: str) -> None:
    """Every kind of belief; those with one parameter for all actions have two with the same features."""
    agent = EVERY[name]()
    agent.observe(*rows_for(agent, 2, 10, [1, 4, 6, 9]))
    x: Array = np.random.default_rng(5).uniform(-1, 1, agent.dim)
    if not agent.belief.per_action:
        x = np.random.default_rng(5).uniform(-1, 1, (12, agent.dim))
        x[3] = x[8]
    many = np.broadcast_to(x, (DRAWS, *x.shape)).copy()
    usual = np.asarray(agent.decide(many, k=2))
    agent.decision = ScaledThompson(1.0)
    assert same_law(np.asarray(agent.decide(many, k=2))[:, :1], usual[:, :1]) > 1e-6
    assert same_law(np.asarray(agent.decide(many, k=2)), usual) > 1e-6


@pytest.mark.parametrize("name", [name for name in EVERY if "chains" not in name])
def test_towards_zero_it_is_greedy(name: str) -> None:
    agent = EVERY[name]()
    agent.observe(*rows_for(agent, 2, 30, [1, 4, 6, 9]))
    Z = np.random.default_rng(5).uniform(-1, 1, (6, 12, agent.dim))
    contexts = Z[:, 0] if agent.belief.per_action else Z
    agent.decision = ScaledThompson(1e-6)
    for Y, ours in (
        (Z[:, :1].repeat(12, axis=1) if agent.belief.per_action else Z, agent.decide(contexts, draw=0)),
        (Z, agent.decide(action_contexts=Z, draw=0)),
    ):
        mean = agent.belief.listed_moments(Y, np.arange(12), spread=False)[0]
        found = np.take_along_axis(mean, np.asarray(ours)[:, None], axis=1)[:, 0]
        np.testing.assert_allclose(found, mean.max(axis=1), rtol=0, atol=1e-4)


def test_equal_features_of_one_parameter_are_taken_alike() -> None:
    agent = ma.agents.jointTS(ma.ActionPrior(1, np.zeros(3), np.eye(3)), 6, ma.Linear(1.0), seed=1)
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((6, 3))
    agent.observe(rng.standard_normal((9, 3)), np.zeros(9, dtype=int), rng.standard_normal(9))
    Z[1] = Z[4] = 2 * agent.posterior(0)[0]  # their score is usually the best
    agent.decision = ScaledThompson(0.4)
    for decided in (agent.decide(np.tile(Z, (4000, 1, 1))), agent.decide(action_contexts=np.tile(Z, (4000, 1, 1)))):
        one, other = (int((np.asarray(decided) == a).sum()) for a in (1, 4))
        assert one + other > 1000 and abs(one - other) < 5.5 * np.sqrt(one + other)


def test_propensities_are_estimated_from_draws() -> None:
    agent, joint = learned("one-hot", 0.5)
    wanted = np.bincount(textbook(joint, 0.5, 1, np.arange(K))[:, 0], minlength=K) / TEXTBOOK
    for action in range(K):
        found = agent.propensity(X, action, draws=2000)
        assert not found.exact and found.draws == 2000
        error = np.hypot(found.standard_error, np.sqrt(wanted[action] / TEXTBOOK) + 1e-4)
        assert abs(found.value - wanted[action]) < 5.5 * error


def test_it_is_an_agent_like_any_other(tmp_path: Path) -> None:
    prior = ma.MixedEffectPrior.isotropic(np.random.default_rng(0).uniform(-1, 1, (9, 2)), 3)
    checks.check_agent(lambda seed: Agent(ma.beliefs.belief_of(prior, ma.Linear()), ScaledThompson(), seed))
    agent, _ = learned("weights", 0.7)
    agent.save(tmp_path)
    again = ma.load(tmp_path)
    assert again.decision == ScaledThompson(0.7)
    many = np.tile(X, (20, 1))
    np.testing.assert_array_equal(again.decide(many, k=3), agent.decide(many, k=3))


@pytest.mark.parametrize("scale", [0.0, -1.0, 1e-7, 1e7, float("nan"), "half", True])
def test_what_cannot_be_a_scale_is_refused(scale: Any) -> None:
    with pytest.raises(InvalidInput) as refused:
        ScaledThompson(scale)
    assert refused.value.argument == "scale"
