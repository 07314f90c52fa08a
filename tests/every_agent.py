"""An agent of every kind of belief, root and likelihood, all with contexts of one length."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import manyarms as ma
from manyarms._base.typing import Array, Ints
from manyarms.agents import Agent

K, L, D = 12, 3, 6
NOISE = ma.Linear(0.6)

_RNG = np.random.default_rng(0)
_WEIGHTS = _RNG.uniform(-1, 1, (K, L))
_ROOT = _RNG.standard_normal((L * D, L * D)) / 4
_OWN = np.stack([np.eye(D) * s for s in _RNG.uniform(0.5, 2, K)])
_MATRICES = _RNG.standard_normal((K, D, 4))


def _mixed(covariance: Array | None = None) -> ma.MixedEffectPrior:
    effects = _ROOT @ _ROOT.T + np.eye(L * D)
    means = np.linspace(-1, 1, L * D).reshape(L, D)
    return ma.MixedEffectPrior(_WEIGHTS, means, effects, np.eye(D) if covariance is None else covariance)


def _chain(*, linear: bool = False, shared: bool = True) -> ma.DiffusionPrior:
    rng = np.random.default_rng(2)
    links = [rng.uniform(-0.5, 0.5, (D, D)) if linear else ma.priors.NetworkLink.random(D, 8, rng) for _ in range(2)]
    return ma.DiffusionPrior(K, D, links, [0.5, 0.8, 1.0], shared)


def _of_matrices() -> Agent:
    b = ma.beliefs
    root = b.GaussianRoot(np.ones(4), np.eye(4))
    return Agent(b.Belief(root, b.Leaves(b.MixingMatrices(_MATRICES), np.eye(D)), NOISE), ma.agents.Thompson(), 1)


_COMMON = ma.ActionPrior(K, np.linspace(-0.5, 0.5, D), np.eye(D))
_SHARED = ma.HierarchicalPrior(K, np.linspace(-0.5, 0.5, D), np.eye(D), np.eye(D))
_NARROW = ma.ActionPrior(K, np.zeros(D), np.diag(np.logspace(0, -9, D)))

LINEAR: dict[str, Callable[[], Agent]] = {
    "LinTS": lambda: ma.LinTS(_COMMON, NOISE, seed=1),
    "LinTS, nearly singular": lambda: ma.LinTS(_NARROW, NOISE, seed=1),
    "LinTS, hardly any noise": lambda: ma.LinTS(_COMMON, ma.Linear(1e-5), seed=1),
    "LinTS, own covariances": lambda: ma.LinTS(ma.ActionPrior(K, np.ones((K, D)), _OWN), NOISE, seed=1),
    "HierTS": lambda: ma.HierTS(_SHARED, NOISE, seed=1),
    "HierTS, hardly any noise": lambda: ma.HierTS(_SHARED, ma.Linear(1e-5), seed=1),
    "HierTS, nearly singular": lambda: ma.HierTS(
        ma.HierarchicalPrior(K, np.zeros(D), np.eye(D), np.diag(np.logspace(0, -9, D))), NOISE, seed=1
    ),
    "meTS": lambda: ma.meTS(_mixed(), NOISE, seed=1),
    "meTS, own covariances": lambda: ma.meTS(_mixed(_OWN), NOISE, seed=1),
    "meTS, mean-field": lambda: ma.meTS(_mixed(), NOISE, factored=True, seed=1),
    "meTS, blockwise": lambda: ma.meTS(_mixed(), NOISE, factored="blockwise", seed=1),
    "matrices": _of_matrices,
    "dTS, linear links": lambda: ma.dTS(_chain(linear=True), NOISE, approximation="thesis", seed=1),
    "dTS, the thesis's rule": lambda: ma.dTS(_chain(), NOISE, approximation="thesis", seed=1),
    "dTS, jacobian": lambda: ma.dTS(_chain(), NOISE, approximation="jacobian", seed=1),
    "dTS, moments": lambda: ma.dTS(_chain(), NOISE, seed=1),
    "dTS, own chains": lambda: ma.dTS(_chain(shared=False), NOISE, approximation="thesis", seed=1),
    "dTS, particles": lambda: Agent(
        ma.beliefs.ParticleBelief.of_prior(_chain(shared=False), NOISE, particles=200), ma.agents.Thompson(), 1
    ),
    "jointTS": lambda: ma.agents.jointTS(_SHARED, K, NOISE, seed=1),
    "jointTS, independent": lambda: ma.agents.jointTS(ma.ActionPrior(1, np.zeros(D), np.eye(D)), K, NOISE, seed=1),
}
"""Rewards are Gaussian: posteriors are exact, or follow from exact evidence."""

GENERALISED: dict[str, Callable[[], Agent]] = {
    "GLM-TS": lambda: ma.agents.GLMTS(_COMMON, seed=1),
    "GLM-TS, counts": lambda: ma.agents.GLMTS(_COMMON, ma.beliefs.Poisson(), seed=1),
    "HierTS, clicks": lambda: ma.HierTS(_SHARED, ma.Logistic(), seed=1),
    "meTS, clicks": lambda: ma.meTS(_mixed(), ma.Logistic(), seed=1),
    "meTS, clicks, the thesis's rule": lambda: ma.meTS(_mixed(), ma.Logistic(expansion="mle"), seed=1),
    "meTS, clicks, mean-field": lambda: ma.meTS(_mixed(), ma.Logistic(), factored=True, seed=1),
    "meTS, counts, blockwise": lambda: ma.meTS(_mixed(), ma.beliefs.Poisson(), factored="blockwise", seed=1),
    "dTS, clicks, own chains": lambda: ma.dTS(_chain(shared=False), ma.Logistic(), approximation="thesis", seed=1),
    "jointTS, clicks": lambda: ma.agents.jointTS(_SHARED, K, ma.Logistic(), seed=1),
}
"""Rewards are clicks or counts, and an action's rows are expanded around a prior that does not change."""

CAVITY: dict[str, Callable[[], Agent]] = {
    "meTS, clicks, cavity": lambda: ma.meTS(_mixed(), ma.Logistic(expansion="cavity"), seed=1),
}
"""They are expanded around what is known when the action is fitted, so that the order of what comes has a part in it."""

EVERY = {**LINEAR, **GENERALISED, **CAVITY}


def rows_for(agent: Agent, seed: int, n: int, actions: list[int]) -> tuple[Array, Ints, Array]:
    """Rows (n, d), (n,), (n,) of these actions, with rewards that the agent's likelihood has."""
    rng = np.random.default_rng([seed, 3])
    rewards = rng.standard_normal(n) + 0.5
    if not agent.belief.likelihood.exact:
        rewards = rng.integers(2, size=n).astype(float)
    return rng.uniform(-1, 1, (n, D)), rng.choice(np.array(actions), size=n), rewards


def add_actions(agent: Agent, number: int, seed: int = 0) -> None:
    """New actions with the rows and covariances that this agent needs; nothing where none can be added."""
    if not agent.belief.per_action:
        return
    leaves, rng = agent.belief.leaves, np.random.default_rng([seed, 4])
    covariance = None if leaves.shared else np.stack([1.5 * np.eye(D)] * number)
    weights = None
    if leaves.mixing.features is not None:
        weights = rng.uniform(-1, 1, (number, leaves.mixing.features.shape[1]))
        if isinstance(leaves.mixing, ma.beliefs.MixingMatrices):
            weights = weights.reshape(number, D, -1)
    agent.add_actions(number, weights=weights, covariance=covariance)


def same_bits(first: Agent, second: Agent) -> str:
    """The first array in which two agents differ; nothing where they are equal to the last bit."""
    one, other = first.belief.arrays(), second.belief.arrays()
    assert one.keys() == other.keys()
    for name, array in one.items():
        if array.tobytes() != other[name].tobytes() or array.dtype != other[name].dtype:
            return name
    return ""
