"""The shipped checks, run over everything that we ship, and shown to catch what they should."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import manyarms as ma
from manyarms import checks

D, K, L = 3, 9, 2


def mixed(actions: int = K, *, per_action: bool = False) -> ma.MixedEffectPrior:
    rng = np.random.default_rng(0)
    own = np.eye(D) * 0.5
    if per_action:
        own = np.stack([np.eye(D) * s for s in rng.uniform(0.5, 1.5, actions)])
    return ma.MixedEffectPrior(rng.uniform(-1, 1, (actions, L)), rng.normal(size=(L, D)), 2 * np.eye(L * D), own)


def matrices() -> ma.beliefs.Belief:
    rng = np.random.default_rng(1)
    leaves = ma.beliefs.Leaves(ma.beliefs.MixingMatrices(rng.normal(size=(K, D, 4))), np.eye(D) * 0.7)
    return ma.beliefs.Belief(ma.beliefs.GaussianRoot(rng.normal(size=4), np.eye(4)), leaves, ma.Linear(0.8))


def chain(*, linear: bool, shared: bool = True) -> ma.DiffusionPrior:
    rng = np.random.default_rng(2)
    links = [
        rng.uniform(-1, 1, (D, D)) if linear else ma.priors.NetworkLink.random(D, 8, rng, scaled=True) for _ in range(2)
    ]
    return ma.DiffusionPrior(K, D, links, [0.5, np.full(D, 0.8), np.eye(D)], shared)


common = ma.ActionPrior(K, np.zeros(D), np.eye(D))
AGENTS: dict[str, Callable[[int], ma.Agent]] = {
    "meTS": lambda s: ma.meTS(mixed(), seed=s),
    "meTS per-action covariance": lambda s: ma.meTS(mixed(per_action=True), seed=s),
    "meTS-Fa": lambda s: ma.meTS(mixed(), factored=True, seed=s),
    "meTS-Fb": lambda s: ma.meTS(mixed(), factored="blockwise", seed=s),
    "meTS-GLM": lambda s: ma.meTS(mixed(), ma.Logistic(), seed=s),
    "meTS-GLM-Fa": lambda s: ma.meTS(mixed(), ma.Logistic(), factored=True, seed=s),
    "HierTS": lambda s: ma.HierTS(mixed().single_effect(), seed=s),
    "HierTS Poisson": lambda s: ma.HierTS(mixed().single_effect(), ma.beliefs.Poisson(), seed=s),
    "LinTS": lambda s: ma.LinTS(common, seed=s),
    "LinTS marginalised": lambda s: ma.LinTS(mixed(), seed=s),
    "LinUCB": lambda s: ma.LinUCB(common, horizon=100, seed=s),
    "GLM-TS": lambda s: ma.agents.GLMTS(common, seed=s),
    "UCB-GLM": lambda s: ma.agents.UCBGLM(common, horizon=100, seed=s),
    "GLM-UCB": lambda s: ma.agents.GLMUCB(common, horizon=100, seed=s),
    "greedy": lambda s: ma.agents.GreedyAgent(mixed(), seed=s),
    "pessimistic": lambda s: ma.Agent(ma.beliefs.belief_of(mixed(), ma.Linear()), ma.agents.Pessimistic(1.0), s),
    "knowledge gradient": lambda s: ma.Agent(
        ma.beliefs.belief_of(mixed(), ma.Linear()), ma.agents.KnowledgeGradient(20.0), s
    ),
    "scaled Thompson": lambda s: ma.Agent(ma.beliefs.belief_of(mixed(), ma.Linear()), ma.agents.ScaledThompson(0.5), s),
    "optimistic mixed effects": lambda s: ma.Agent(ma.beliefs.belief_of(mixed(), ma.Linear()), ma.agents.UCB(1.5), s),
    "epsilon-greedy": lambda s: ma.agents.EpsilonGreedyAgent(mixed(), epsilon=0.3, seed=s),
    "uniform": lambda s: ma.agents.UniformAgent(K, D, seed=s),
    "any W_a": lambda s: ma.Agent(matrices(), ma.Thompson(), s),
    "dTS-LL": lambda s: ma.dTS(chain(linear=True), seed=s),
    "dTS-LN": lambda s: ma.dTS(chain(linear=True), ma.Logistic(), seed=s),
    "dTS-NL": lambda s: ma.dTS(chain(linear=False), seed=s),
    "dTS-NN": lambda s: ma.dTS(chain(linear=False), ma.Logistic(), seed=s),
    "dTS-NL jacobian": lambda s: ma.dTS(chain(linear=False), approximation="jacobian", seed=s),
    "dTS, own chains": lambda s: ma.dTS(chain(linear=False, shared=False), seed=s),
    "dTS, own chains, logistic": lambda s: ma.dTS(chain(linear=True, shared=False), ma.Logistic(), seed=s),
    "HierTS-1": lambda s: ma.HierTS(chain(linear=True).two_level(2), seed=s),
}
BELIEFS: dict[str, Callable[[], ma.beliefs.Belief]] = {
    "independent, common": lambda: ma.beliefs.belief_of(common, ma.Linear(0.5)),
    "independent, own": lambda: ma.beliefs.belief_of(mixed().marginal(), ma.Linear(0.5)),
    "hierarchical": lambda: ma.beliefs.belief_of(mixed().single_effect(), ma.Linear(2.0)),
    "mixed effects": lambda: ma.beliefs.belief_of(mixed(), ma.Linear()),
    "mixed effects, own covariances": lambda: ma.beliefs.belief_of(mixed(per_action=True), ma.Linear()),
    "any W_a": matrices,
    "linear chain": lambda: ma.beliefs.belief_of(chain(linear=True), ma.Linear(0.5)),
    "HierTS-1": lambda: ma.beliefs.belief_of(chain(linear=True).two_level(2), ma.Linear(0.5)),
}


@pytest.mark.parametrize("check", checks.AGENT_CHECKS, ids=lambda c: c.__name__)
@pytest.mark.parametrize("name", AGENTS)
def test_agents(name: str, check: Callable[[checks.MakeAgent], None]) -> None:
    check(AGENTS[name])


@pytest.mark.parametrize("check", checks.BELIEF_CHECKS, ids=lambda c: c.__name__)
@pytest.mark.parametrize("name", BELIEFS)
def test_beliefs(name: str, check: Callable[[checks.MakeBelief], None]) -> None:
    check(BELIEFS[name])


def test_a_root_that_forgets_is_caught() -> None:
    class Forgetful(ma.beliefs.GaussianRoot):
        def observe(self, u: np.ndarray, variance: float, value: float) -> None:
            super().observe(u, 2 * variance, value)

    def make() -> ma.beliefs.Belief:
        prior = mixed()
        root = Forgetful(prior.effect_mean.ravel(), prior.effect_covariance)
        return ma.beliefs.Belief(
            root, ma.beliefs.Leaves(ma.beliefs.MixingWeights(prior.weights), prior.action_covariance), ma.Linear()
        )

    checks.no_data_gives_the_prior(make)
    with pytest.raises(checks.CheckFailed, match="agrees with brute force"):
        checks.check_belief(make)


def test_an_agent_that_ignores_filters_is_caught() -> None:
    class Stubborn(ma.Agent):
        def decide(self, x, *, candidates=None, exclude=None, k=None, rng=None):  # type: ignore[no-untyped-def]
            return super().decide(x, k=k, rng=rng)

    with pytest.raises(checks.CheckFailed, match="only candidates are chosen"):
        checks.check_agent(lambda s: Stubborn(ma.beliefs.belief_of(mixed(), ma.Linear()), ma.Greedy(), s))
