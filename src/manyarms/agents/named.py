"""Agents by their names: each is one belief and one decision, and reads like it.

All take `seed` (of their random numbers), `catalogue` (the ids of the actions, in the order of the prior's rows) and `encoder`
(which makes contexts of rows of a table), as `Agent` does, and `drift`: how rewards change, ma.Drift(half_life=...), a model,
ma.beliefs.Discount(half_life=...) or ma.beliefs.SlidingWindow(length=...); None: nothing is forgotten.

| name              | root                | W_a          | likelihood | decision        |
| ----------------- | ------------------- | ------------ | ---------- | --------------- |
| LinTS, LinUCB     | known               | -            | linear     | Thompson, UCB   |
| GLMTS, UCBGLM     | known               | -            | logistic   | Thompson, UCB   |
| GLMUCB            | known               | -            | logistic   | UCB on rewards  |
| HierTS            | Gaussian            | I            | any        | Thompson        |
| meTS              | Gaussian (factored) | b_a^T kron I | any        | Thompson        |
| dTS               | Gaussian, or chain  | I            | any        | Thompson        |
| jointTS           | any                 | one leaf     | any        | Thompson        |
"""

from __future__ import annotations

import math

import numpy as np

from manyarms._base import validate
from manyarms.agents.agent import Agent, Seed
from manyarms.agents.decisions import UCB, EpsilonGreedy, Greedy, Thompson, Uniform
from manyarms.beliefs import Belief, Likelihood, Linear, Logistic, belief_of, independent_belief_of, joint_belief_of
from manyarms.beliefs.drift.memory import Forgetting
from manyarms.beliefs.from_prior import marginal_of
from manyarms.beliefs.joint import FeatureMap
from manyarms.errors import InvalidInput
from manyarms.logs.schema import ActionsLike, EncoderLike
from manyarms.priors.base import ParameterPrior
from manyarms.priors.diffusion import DiffusionPrior, TwoLevelPrior
from manyarms.priors.gaussian import ActionPrior, HierarchicalPrior, MixedEffectPrior


def meTS(
    prior: MixedEffectPrior,
    likelihood: Likelihood = Linear(),
    *,
    factored: bool | str = False,
    drift: Forgetting | None = None,
    seed: Seed = None,
    catalogue: ActionsLike | None = None,
    encoder: EncoderLike | None = None,
) -> Agent:
    """Mixed-effect Thompson sampling: playing one action teaches about all that share its effects (thesis, Chapter 3).

    likelihood: Linear(noise), Logistic() or Poisson(). factored: False for the exact effect posterior, True or "mean-field" for
    independent effects with the exact mean, "blockwise" for the cheap version that drops all cross terms.
    """
    if not isinstance(prior, MixedEffectPrior):
        raise InvalidInput("prior", validate.describe(prior), "a MixedEffectPrior")
    belief = belief_of(prior, likelihood, factored=factored, drift=drift)
    name = "meTS-Lin" if belief.likelihood.exact else "meTS-GLM"
    return Agent(
        belief,
        Thompson(),
        seed,
        name + ("" if not factored else "-Fb" if factored == "blockwise" else "-Fa"),
        catalogue,
        encoder,
    )


def HierTS(
    prior: HierarchicalPrior | TwoLevelPrior | MixedEffectPrior,
    likelihood: Likelihood = Linear(),
    *,
    drift: Forgetting | None = None,
    seed: Seed = None,
    catalogue: ActionsLike | None = None,
    encoder: EncoderLike | None = None,
) -> Agent:
    """Hierarchical Thompson sampling: all actions vary around one shared mean, which is learned."""
    if isinstance(prior, MixedEffectPrior):
        prior = prior.single_effect()
    if not isinstance(prior, HierarchicalPrior | TwoLevelPrior):
        raise InvalidInput("prior", validate.describe(prior), "a HierarchicalPrior (or a MixedEffectPrior)")
    return Agent(belief_of(prior, likelihood, drift=drift), Thompson(), seed, "HierTS", catalogue, encoder)


def dTS(
    prior: DiffusionPrior,
    likelihood: Likelihood = Linear(),
    *,
    approximation: str | None = None,
    drift: Forgetting | None = None,
    seed: Seed = None,
    catalogue: ActionsLike | None = None,
    encoder: EncoderLike | None = None,
) -> Agent:
    """Diffusion Thompson sampling: the actions hang on a chain of latents (thesis, Chapter 4).

    prior: links and covariances, with one chain shared by all actions or one per action (`DiffusionPrior`).
    Linear links give the exact posterior. For others `approximation` says how evidence about the actions becomes evidence about
    the chain: "moments" (the end of the chain is a Gaussian with its mean and covariance; the default for a shared chain),
    "particles" (it is a cloud of draws; the default for one chain per action, and only there), "thesis" (links are left out on
    the way up) or "jacobian" (they are linearised). docs/methods.md says which one when. One chain per action by "moments" is
    LinTS.
    """
    if not isinstance(prior, DiffusionPrior):
        raise InvalidInput("prior", validate.describe(prior), "a DiffusionPrior")
    belief = belief_of(prior, likelihood, approximation=approximation, drift=drift)
    links, rewards = ("L" if linear else "N" for linear in (prior.matrices is not None, belief.likelihood.exact))
    return Agent(belief, Thompson(), seed, f"dTS-{links}{rewards}", catalogue, encoder)


def jointTS(
    prior: DiffusionPrior | HierarchicalPrior | ActionPrior,
    actions: int,
    likelihood: Likelihood = Linear(),
    *,
    feature_map: FeatureMap | None = None,
    context_shape: tuple[int, ...] | None = None,
    approximation: str | None = None,
    drift: Forgetting | None = None,
    seed: Seed = None,
    catalogue: ActionsLike | None = None,
    encoder: EncoderLike | None = None,
) -> Agent:
    """Thompson sampling with one parameter for all actions and features phi(x, a) (thesis, Section 4.2.2).

    A context is the (K, d) matrix of the actions' features, or of `context_shape` where a `feature_map` turns it into one.
    The prior is that of the one parameter: a diffusion gives dTS's joint variant, the others LinTS and HierTS. approximation: as
    for `dTS` with a shared chain; by "moments", the default, the one parameter has a Gaussian prior.
    """
    belief = joint_belief_of(
        prior, actions, likelihood, feature_map=feature_map, context_shape=context_shape, approximation=approximation,
        drift=drift,
    )  # fmt: skip
    return Agent(belief, Thompson(), seed, "jointTS", catalogue, encoder)


def _linear_belief(
    name: str, prior: ParameterPrior, likelihood: Likelihood, instead: str, drift: Forgetting | None
) -> Belief:
    """The belief of independent actions, refused unless rewards are linear."""
    belief = independent_belief_of(prior, likelihood, drift=drift)
    if not belief.likelihood.exact:
        raise InvalidInput("likelihood", validate.describe(likelihood), f"Linear() for {name}; {instead} takes others")
    return belief


def LinTS(
    prior: ParameterPrior,
    likelihood: Likelihood = Linear(),
    *,
    drift: Forgetting | None = None,
    seed: Seed = None,
    catalogue: ActionsLike | None = None,
    encoder: EncoderLike | None = None,
) -> Agent:
    """Thompson sampling with independent linear actions. A structured prior is marginalised action by action."""
    return Agent(
        _linear_belief("LinTS", prior, likelihood, "GLMTS", drift), Thompson(), seed, "LinTS", catalogue, encoder
    )


def GLMTS(
    prior: ParameterPrior,
    likelihood: Likelihood = Logistic(),
    *,
    drift: Forgetting | None = None,
    seed: Seed = None,
    catalogue: ActionsLike | None = None,
    encoder: EncoderLike | None = None,
) -> Agent:
    """Thompson sampling with independent actions and a generalised linear reward: the textbook's Laplace approximation."""
    return Agent(independent_belief_of(prior, likelihood, drift=drift), Thompson(), seed, "GLM-TS", catalogue, encoder)


def LinUCB(
    prior: ParameterPrior,
    likelihood: Linear = Linear(),
    *,
    horizon: int = 10_000,
    context_norm: float | None = None,
    width: float | None = None,
    drift: Forgetting | None = None,
    seed: Seed = None,
    catalogue: ActionsLike | None = None,
    encoder: EncoderLike | None = None,
) -> Agent:
    """Optimism with independent linear actions: the largest mean + width * posterior sd.

    The default width is that of Abbasi-Yadkori et al. (2011) for n = `horizon` rounds,
    sqrt(lambda d) + sqrt(d log((1 + n l^2 / (lambda sigma^2)) n)), with lambda the largest mean prior precision and
    l = `context_norm` the largest norm of a context (default sqrt(d), contexts in [-1, 1]^d).
    """
    independent = marginal_of(prior)
    belief = _linear_belief("LinUCB", independent, likelihood, "UCBGLM", drift)
    n, d = validate.count("horizon", horizon), belief.dim
    if width is None:
        norm = math.sqrt(d) if context_norm is None else validate.positive("context_norm", context_norm)
        precisions = np.linalg.inv(independent.covariance)
        lam = float(np.trace(precisions, axis1=-2, axis2=-1).max()) / d
        width = math.sqrt(lam * d) + math.sqrt(d * math.log((1 + n * norm**2 / (lam * likelihood.noise_variance)) * n))
    return Agent(belief, UCB(width), seed, "LinUCB", catalogue, encoder)


def _glm_width(dim: int, horizon: int) -> float:
    """2 sqrt(d/2 log(1 + 2n/d) + log n), after Li et al. (2017)."""
    n = validate.count("horizon", horizon)
    return 2 * math.sqrt(dim / 2 * math.log(1 + 2 * n / dim) + math.log(n))


def UCBGLM(
    prior: ParameterPrior,
    likelihood: Likelihood = Logistic(),
    *,
    horizon: int = 10_000,
    width: float | None = None,
    drift: Forgetting | None = None,
    seed: Seed = None,
    catalogue: ActionsLike | None = None,
    encoder: EncoderLike | None = None,
) -> Agent:
    """Optimism with a generalised linear reward, on the scale of x^T theta (after Li et al., 2017).

    Mean and spread are those of the posterior, by default the Laplace approximation at its mode; Logistic(expansion="mle") is
    nearer to the paper, which takes the maximum likelihood.
    """
    belief = independent_belief_of(prior, likelihood, drift=drift)
    usual = _glm_width(belief.dim, horizon)
    return Agent(belief, UCB(usual if width is None else width), seed, "UCB-GLM", catalogue, encoder)


def GLMUCB(
    prior: ParameterPrior,
    likelihood: Likelihood = Logistic(),
    *,
    horizon: int = 10_000,
    width: float | None = None,
    drift: Forgetting | None = None,
    seed: Seed = None,
    catalogue: ActionsLike | None = None,
    encoder: EncoderLike | None = None,
) -> Agent:
    """Optimism with a generalised linear reward, on the scale of rewards (after Filippi et al., 2010); see UCBGLM."""
    belief = independent_belief_of(prior, likelihood, drift=drift)
    usual = _glm_width(belief.dim, horizon)
    return Agent(belief, UCB(usual if width is None else width, on_mean=True), seed, "GLM-UCB", catalogue, encoder)


def GreedyAgent(
    prior: ParameterPrior,
    likelihood: Likelihood = Linear(),
    *,
    drift: Forgetting | None = None,
    seed: Seed = None,
    catalogue: ActionsLike | None = None,
    encoder: EncoderLike | None = None,
) -> Agent:
    """Always the largest posterior mean, with any prior."""
    return Agent(belief_of(prior, likelihood, drift=drift), Greedy(), seed, "Greedy", catalogue, encoder)


def EpsilonGreedyAgent(
    prior: ParameterPrior,
    likelihood: Likelihood = Linear(),
    *,
    epsilon: float = 0.1,
    drift: Forgetting | None = None,
    seed: Seed = None,
    catalogue: ActionsLike | None = None,
    encoder: EncoderLike | None = None,
) -> Agent:
    """Greedy, but with probability epsilon any action."""
    return Agent(
        belief_of(prior, likelihood, drift=drift), EpsilonGreedy(epsilon), seed, "epsilon-greedy", catalogue, encoder
    )


def UniformAgent(
    actions: int,
    dim: int,
    *,
    seed: Seed = None,
    catalogue: ActionsLike | None = None,
    encoder: EncoderLike | None = None,
) -> Agent:
    """Any action, all alike: the control that every method must beat."""
    dim = validate.square_room("dim", validate.count("dim", dim), 8)
    prior = ActionPrior(actions, np.zeros(dim), np.eye(dim))
    return Agent(belief_of(prior, Linear()), Uniform(), seed, "Uniform", catalogue, encoder)


__all__ = [
    "GLMTS",
    "GLMUCB",
    "UCBGLM",
    "EpsilonGreedyAgent",
    "GreedyAgent",
    "HierTS",
    "LinTS",
    "LinUCB",
    "UniformAgent",
    "dTS",
    "jointTS",
    "meTS",
]
