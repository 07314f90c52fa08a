"""Agents by their names: each is one belief and one decision, and reads like it.

| name              | root                | W_a          | likelihood | decision        |
| ----------------- | ------------------- | ------------ | ---------- | --------------- |
| LinTS, LinUCB     | known               | -            | linear     | Thompson, UCB   |
| GLMTS, UCBGLM     | known               | -            | logistic   | Thompson, UCB   |
| GLMUCB            | known               | -            | logistic   | UCB on rewards  |
| HierTS            | Gaussian            | I            | any        | Thompson        |
| meTS              | Gaussian (factored) | b_a^T kron I | any        | Thompson        |
| dTS               | diffusion chain     | I            | any        | Thompson        |
| jointTS           | any                 | one leaf     | any        | Thompson        |
"""

from __future__ import annotations

import math

import numpy as np

from manyarms._base import validate
from manyarms.agents.agent import Agent, Seed
from manyarms.agents.decisions import UCB, Decision, EpsilonGreedy, Greedy, Thompson, Uniform
from manyarms.beliefs import (
    Belief,
    ChainRoot,
    Common,
    FactoredRoot,
    GaussianRoot,
    Identity,
    JointBelief,
    KnownRoot,
    Leaves,
    Likelihood,
    Linear,
    Logistic,
    Matrices,
    OwnChains,
    Root,
    Weights,
)
from manyarms.beliefs.joint import FeatureMap
from manyarms.errors import InvalidInput
from manyarms.priors.diffusion import DiffusionPrior, TwoLevelPrior
from manyarms.priors.gaussian import ActionPrior, HierarchicalPrior, MixedEffectPrior, Prior

AnyPrior = Prior | TwoLevelPrior | DiffusionPrior


def belief_of(
    prior: AnyPrior, likelihood: Likelihood, factored: bool | str = False, approximation: str = "thesis"
) -> Belief:
    """The belief that a prior and a likelihood make."""
    if isinstance(prior, MixedEffectPrior):
        mean, covariance = prior.effect_mean.ravel(), prior.effect_covariance
        root: Root = GaussianRoot(mean, covariance)
        if factored:
            rule = "mean-field" if factored is True else str(factored)
            root = FactoredRoot(mean, covariance, prior.effects, rule)
        return Belief(root, Leaves(Weights(prior.weights), prior.action_covariance), likelihood)
    if isinstance(prior, HierarchicalPrior):
        leaves = Leaves(Identity(), prior.action_covariance, prior.actions)
        return Belief(GaussianRoot(prior.mean, prior.covariance), leaves, likelihood)
    if isinstance(prior, ActionPrior):
        if prior.mean.ndim == 1:
            return Belief(KnownRoot(prior.mean), Leaves(Identity(), prior.covariance, prior.actions), likelihood)
        # a mean of its own for every action: W_a is that mean as a column, on a root that is known to be 1
        return Belief(KnownRoot(np.ones(1)), Leaves(Matrices(prior.mean[:, :, None]), prior.covariance), likelihood)
    if isinstance(prior, TwoLevelPrior):
        leaves = Leaves(Common(prior.matrix), prior.action_covariance, prior.actions)
        return Belief(GaussianRoot(np.zeros(len(prior.covariance)), prior.covariance), leaves, likelihood)
    if isinstance(prior, DiffusionPrior):
        if not prior.shared:
            return OwnChains(prior, likelihood, approximation)
        leaves = Leaves(Identity(), prior.covariances[0], prior.actions)
        return Belief(ChainRoot(prior, approximation), leaves, likelihood)
    kinds = "an ActionPrior, a HierarchicalPrior, a MixedEffectPrior, a TwoLevelPrior or a DiffusionPrior"
    raise InvalidInput("prior", validate.describe(prior), kinds)


def _independent(prior: AnyPrior) -> ActionPrior:
    """A prior over independent actions; mixed effects are integrated out action by action (thesis, line 1236)."""
    if isinstance(prior, MixedEffectPrior | DiffusionPrior):
        return prior.marginal()
    if isinstance(prior, HierarchicalPrior):
        return ActionPrior(prior.actions, prior.mean, prior.covariance + prior.action_covariance)
    if not isinstance(prior, ActionPrior):
        raise InvalidInput("prior", validate.describe(prior), "an ActionPrior, or a prior that can be marginalised")
    return prior


def _agent(name: str, prior: AnyPrior, likelihood: Likelihood, decision: Decision, seed: Seed) -> Agent:
    return Agent(belief_of(_independent(prior), likelihood), decision, seed, name)


def meTS(
    prior: MixedEffectPrior, likelihood: Likelihood = Linear(), *, factored: bool | str = False, seed: Seed = None
) -> Agent:
    """Mixed-effect Thompson sampling: playing one action teaches about all that share its effects (thesis, lines 916-1150).

    likelihood: Linear(noise), Logistic() or Poisson(). factored: False for the exact effect posterior, True or "mean-field" for
    independent effects with the exact mean, "blockwise" for the cheap version that drops all cross terms.
    """
    if not isinstance(prior, MixedEffectPrior):
        raise InvalidInput("prior", validate.describe(prior), "a MixedEffectPrior")
    kind = "Lin" if isinstance(likelihood, Linear) else "GLM"
    name = f"meTS-{kind}" + ("" if not factored else "-Fb" if factored == "blockwise" else "-Fa")
    return Agent(belief_of(prior, likelihood, factored), Thompson(), seed, name)


def HierTS(
    prior: HierarchicalPrior | TwoLevelPrior | MixedEffectPrior, likelihood: Likelihood = Linear(), *, seed: Seed = None
) -> Agent:
    """Hierarchical Thompson sampling: all actions vary around one shared mean, which is learned."""
    if isinstance(prior, MixedEffectPrior):
        prior = prior.single_effect()
    if not isinstance(prior, HierarchicalPrior | TwoLevelPrior):
        raise InvalidInput("prior", validate.describe(prior), "a HierarchicalPrior (or a MixedEffectPrior)")
    return Agent(belief_of(prior, likelihood), Thompson(), seed, "HierTS")


def dTS(
    prior: DiffusionPrior,
    likelihood: Likelihood = Linear(),
    *,
    approximation: str = "thesis",
    seed: Seed = None,
) -> Agent:
    """Diffusion Thompson sampling: the actions hang on a chain of latents (thesis, lines 1278-1561).

    prior: links and covariances, with one chain shared by all actions or one per action (`DiffusionPrior`).
    Linear links give the exact posterior. For others `approximation` is "thesis", which leaves the links out on the way up,
    or "jacobian", which linearises them (beliefs/messages.py; docs/diffusion.md compares the two).
    """
    if not isinstance(prior, DiffusionPrior):
        raise InvalidInput("prior", validate.describe(prior), "a DiffusionPrior")
    links = "L" if prior.matrices is not None else "N"
    name = f"dTS-{links}{'L' if isinstance(likelihood, Linear) else 'N'}"
    return Agent(belief_of(prior, likelihood, approximation=approximation), Thompson(), seed, name)


def jointTS(
    prior: DiffusionPrior | HierarchicalPrior | ActionPrior,
    actions: int,
    likelihood: Likelihood = Linear(),
    *,
    feature_map: FeatureMap | None = None,
    context_shape: tuple[int, ...] | None = None,
    approximation: str = "thesis",
    seed: Seed = None,
) -> Agent:
    """Thompson sampling with one parameter for all actions and features phi(x, a) (thesis, lines 1524-1561).

    A context is the (K, d) matrix of the actions' features, or of `context_shape` where a `feature_map` turns it into one.
    The prior is that of the one parameter: a diffusion gives dTS's joint variant, the others LinTS and HierTS.
    """
    inner = belief_of(prior, likelihood, approximation=approximation)
    if isinstance(inner, OwnChains):  # one action: a chain of its own is a shared one
        inner = belief_of(prior.with_actions(1, shared=True), likelihood, approximation=approximation)  # type: ignore[union-attr]
    if not inner.leaves.shared:
        raise InvalidInput("prior", "one covariance per action", "the prior of a single parameter")
    belief = JointBelief(
        inner.root, inner.leaves.mixing, inner.leaves.covariance, likelihood, actions, feature_map, context_shape
    )
    return Agent(belief, Thompson(), seed, "jointTS")


def _must_be_linear(name: str, likelihood: Likelihood, instead: str) -> None:
    if not isinstance(likelihood, Linear):
        raise InvalidInput("likelihood", validate.describe(likelihood), f"Linear() for {name}; {instead} takes others")


def LinTS(prior: AnyPrior, likelihood: Likelihood = Linear(), *, seed: Seed = None) -> Agent:
    """Thompson sampling with independent linear actions. A structured prior is marginalised action by action."""
    _must_be_linear("LinTS", likelihood, "GLMTS")
    return _agent("LinTS", prior, likelihood, Thompson(), seed)


def GLMTS(prior: AnyPrior, likelihood: Likelihood = Logistic(), *, seed: Seed = None) -> Agent:
    """Thompson sampling with independent actions and a generalised linear reward (Laplace approximation)."""
    return _agent("GLM-TS", prior, likelihood, Thompson(), seed)


def LinUCB(
    prior: AnyPrior,
    likelihood: Linear = Linear(),
    *,
    horizon: int = 10_000,
    context_norm: float | None = None,
    width: float | None = None,
    seed: Seed = None,
) -> Agent:
    """Optimism with independent linear actions: the largest mean + width * posterior sd.

    The default width is that of Abbasi-Yadkori et al. (2011) for n = `horizon` rounds,
    sqrt(lambda d) + sqrt(d log((1 + n l^2 / (lambda sigma^2)) n)), with lambda the largest mean prior precision and
    l = `context_norm` the largest norm of a context (default sqrt(d), contexts in [-1, 1]^d).
    """
    _must_be_linear("LinUCB", likelihood, "UCBGLM")
    independent = _independent(prior)
    if width is None:
        n, d = validate.count("horizon", horizon), independent.dim
        norm = math.sqrt(d) if context_norm is None else validate.positive("context_norm", context_norm)
        precisions = np.linalg.inv(independent.covariance)
        lam = float(np.trace(precisions, axis1=-2, axis2=-1).max()) / d
        width = math.sqrt(lam * d) + math.sqrt(d * math.log((1 + n * norm**2 / (lam * likelihood.variance)) * n))
    return _agent("LinUCB", independent, likelihood, UCB(width), seed)


def _glm_width(dim: int, horizon: int) -> float:
    """2 sqrt(d/2 log(1 + 2n/d) + log n), after Li et al. (2017)."""
    n = validate.count("horizon", horizon)
    return 2 * math.sqrt(dim / 2 * math.log(1 + 2 * n / dim) + math.log(n))


def UCBGLM(
    prior: AnyPrior,
    likelihood: Likelihood = Logistic(),
    *,
    horizon: int = 10_000,
    width: float | None = None,
    seed: Seed = None,
) -> Agent:
    """Optimism with a generalised linear reward, on the scale of x^T theta (after Li et al., 2017)."""
    independent = _independent(prior)
    width = _glm_width(independent.dim, horizon) if width is None else width
    return _agent("UCB-GLM", independent, likelihood, UCB(width), seed)


def GLMUCB(
    prior: AnyPrior,
    likelihood: Likelihood = Logistic(),
    *,
    horizon: int = 10_000,
    width: float | None = None,
    seed: Seed = None,
) -> Agent:
    """Optimism with a generalised linear reward, on the scale of rewards (after Filippi et al., 2010)."""
    independent = _independent(prior)
    width = _glm_width(independent.dim, horizon) if width is None else width
    return _agent("GLM-UCB", independent, likelihood, UCB(width, on_mean=True), seed)


def GreedyAgent(prior: AnyPrior, likelihood: Likelihood = Linear(), *, seed: Seed = None) -> Agent:
    """Always the largest posterior mean, with any prior."""
    return Agent(belief_of(prior, likelihood), Greedy(), seed, "Greedy")


def EpsilonGreedyAgent(
    prior: AnyPrior, likelihood: Likelihood = Linear(), *, epsilon: float = 0.1, seed: Seed = None
) -> Agent:
    """Greedy, but with probability epsilon any action."""
    return Agent(belief_of(prior, likelihood), EpsilonGreedy(epsilon), seed, "epsilon-greedy")


def UniformAgent(actions: int, dim: int, *, seed: Seed = None) -> Agent:
    """Any action, all alike: the control that every method must beat."""
    dim = validate.count("dim", dim)
    prior = ActionPrior(actions, np.zeros(dim), np.eye(dim))
    return Agent(belief_of(prior, Linear()), Uniform(), seed, "Uniform")
