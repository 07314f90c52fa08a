"""From a prior and a likelihood to a belief: the one way, for agents and reward models alike.

| prior             | root                           | W_a          | Sigma_a           |
| ----------------- | ------------------------------ | ------------ | ----------------- |
| ActionPrior       | known                          | I, or mean_a | covariance        |
| HierarchicalPrior | Gaussian                       | I            | action_covariance |
| MixedEffectPrior  | Gaussian, or factored          | b_a^T kron I | action_covariance |
| LatentPrior       | Gaussian                       | any          | action_covariance |
| TwoLevelPrior     | Gaussian                       | W            | action_covariance |
| DiffusionPrior    | Gaussian by moments, or chain  | I            | Sigma_1           |

A diffusion with one chain per action has no root: actions are draws of a cloud (particles.py) or have a chain each
(independent_chains.py). Where they are Gaussian, with linear links or by moments, it is an ActionPrior.
"""

from __future__ import annotations

import numpy as np

from manyarms._base import linalg, validate
from manyarms._base.typing import Array
from manyarms.beliefs.belief import Belief
from manyarms.beliefs.chain_root import ChainRoot
from manyarms.beliefs.drift.memory import Forgetting
from manyarms.beliefs.drift.settings import Discount, Drift, SlidingWindow
from manyarms.beliefs.factored_root import FACTORED, FactoredRoot
from manyarms.beliefs.independent_chains import IndependentChains
from manyarms.beliefs.joint import FeatureMap, JointBelief
from manyarms.beliefs.leaves import Leaves
from manyarms.beliefs.likelihoods.base import Likelihood
from manyarms.beliefs.messages import RULES
from manyarms.beliefs.mixing import CommonMixing, IdentityMixing, Mixing, MixingMatrices, MixingWeights
from manyarms.beliefs.particles import ParticleBelief
from manyarms.beliefs.roots import GaussianRoot, KnownRoot, Root
from manyarms.errors import InvalidInput
from manyarms.priors.base import ParameterPrior
from manyarms.priors.diffusion import DiffusionPrior, TwoLevelPrior
from manyarms.priors.gaussian import ActionPrior, HierarchicalPrior, MixedEffectPrior
from manyarms.priors.latent import LatentPrior

APPROXIMATIONS = ("moments", *RULES, "particles")
LEAST_VARIANCE = 1e-8  # of a root by moments, beside the largest variance of an action


def belief_of(
    prior: ParameterPrior,
    likelihood: Likelihood,
    *,
    factored: bool | str = False,
    approximation: str | None = None,
    drift: Forgetting | None = None,
) -> Belief:
    """The belief that a prior and a likelihood make.

    drift: how rewards change, `Drift` (a model), `Discount` or `SlidingWindow`; None: nothing is forgotten.

    factored: of mixed effects, False for the exact posterior of the effects, True or "mean-field" for independent effects with
    the exact mean, "blockwise" for the cheap version that drops all cross terms (`FactoredRoot`).
    approximation: of diffusions with links that are not linear; with linear ones every rule is the exact posterior. "moments",
    the default for a shared chain: a Gaussian root with the mean and covariance of f_1(psi_1). "particles", the default for one
    chain per action: a cloud of draws (beliefs/particles.py). "thesis" or "jacobian": evidence goes up the chain
    (beliefs/messages.py). One chain per action by "moments" is LinTS.
    """
    rule, factored, drift = _rule(approximation, prior), _factored(factored), _forgetting(drift)
    if isinstance(prior, DiffusionPrior) and not prior.shared:
        if rule == "moments" or prior.matrices is not None:
            return independent_belief_of(prior, likelihood, drift=drift)
        if drift is not None:
            raise InvalidInput("drift", validate.describe(drift), f"None for a chain per action by {rule!r}")
        if rule == "particles":
            return ParticleBelief.of_prior(prior, likelihood)
        return IndependentChains(prior, likelihood, rule)
    root, mixing, covariance = _parts(prior, factored, rule)
    return Belief(root, _leaves(drift)(mixing, covariance, prior.actions), likelihood).forgets(drift)


def independent_belief_of(prior: ParameterPrior, likelihood: Likelihood, *, drift: Forgetting | None = None) -> Belief:
    """The belief of independent actions, each with its marginal prior: LinTS, LinUCB, GLM-TS, DM (Bayes).

    What actions share is integrated out action by action (thesis, Sections 3.4.1 and 6.4.2).
    """
    return belief_of(marginal_of(prior), likelihood, drift=drift)


def joint_belief_of(
    prior: ParameterPrior,
    actions: int,
    likelihood: Likelihood,
    *,
    feature_map: FeatureMap | None = None,
    context_shape: tuple[int, ...] | None = None,
    approximation: str | None = None,
    drift: Forgetting | None = None,
) -> JointBelief:
    """The belief about one parameter that all actions share; `prior` is that of the one parameter.

    approximation: as in `belief_of`; of the one chain there is, "moments" by default. drift: as there; the one parameter drifts.
    """
    drift = _forgetting(drift)
    root, mixing, covariance = _parts(prior, False, _rule(approximation, None))
    if covariance.ndim != 2:
        raise InvalidInput("prior", "one covariance per action", "the prior of a single parameter")
    leaves = _leaves(drift)(mixing, covariance, 1)
    return JointBelief(root, leaves, likelihood, actions, feature_map, context_shape).forgets(drift)


def _forgetting(drift: object) -> Forgetting | None:
    """What `drift` may be, checked."""
    if drift is None or isinstance(drift, Drift | Discount | SlidingWindow):
        return drift
    raise InvalidInput(
        "drift", validate.describe(drift), "Drift(half_life=...), Discount(half_life=...) or SlidingWindow(length=...)"
    )


def _leaves(drift: Forgetting | None) -> type[Leaves]:
    return Leaves if drift is None else drift.leaves_type


def marginal_of(prior: ParameterPrior) -> ActionPrior:
    """The prior of independent actions with the same marginals."""
    if not isinstance(prior, ParameterPrior):
        expected = "a prior of the actions' parameters, such as ActionPrior(K, mean, covariance)"
        raise InvalidInput("prior", validate.describe(prior), expected)
    return prior.marginal()


def _rule(approximation: str | None, prior: ParameterPrior | None) -> str:
    """The rule that is asked for, or the default of this prior."""
    if approximation is not None:
        return validate.one_of("approximation", approximation, APPROXIMATIONS)
    return "particles" if isinstance(prior, DiffusionPrior) and not prior.shared else "moments"


def _factored(factored: bool | str) -> bool | str:
    """Whether, and how, effects are factored."""
    if isinstance(factored, bool | np.bool_):
        return bool(factored)
    if not isinstance(factored, str) or factored not in FACTORED:
        expected = f"False, True, {' or '.join(map(repr, FACTORED))}"
        raise InvalidInput("factored", validate.describe(factored), expected)
    return factored


def _root_by_moments(prior: DiffusionPrior) -> GaussianRoot:
    """f_1(psi_1) as a Gaussian with its mean and covariance: exact where links are linear.

    The covariance may be singular, and a root needs its inverse. So no variance of the root is below 1e-8 of the largest
    variance v of an action: without data a score x^T theta is too wide by at most 1e-8 v |x|^2 (its standard deviation by a ten
    thousandth of the largest), and a common direction that the links rule out opens only to evidence of a precision near 1e8 / v.
    """
    mean, covariance = prior.centre_moments()
    largest = float(np.linalg.eigvalsh(covariance + prior.covariances[0])[-1])
    return GaussianRoot(mean, linalg.raised(covariance, LEAST_VARIANCE * largest))


def _parts(prior: ParameterPrior, factored: bool | str, rule: str) -> tuple[Root, Mixing, Array]:
    """The root, W_a and Sigma_a of a prior."""
    if factored and not isinstance(prior, MixedEffectPrior):
        raise InvalidInput("factored", repr(factored), "False: only the effects of a MixedEffectPrior can be factored")
    match prior:
        case ActionPrior(mean=mean) if mean.ndim == 1:
            return KnownRoot(mean), IdentityMixing(), prior.covariance
        case ActionPrior():  # a mean of its own for every action: W_a is that mean as a column, on a root known to be 1
            return KnownRoot(np.ones(1)), MixingMatrices(prior.mean[:, :, None]), prior.covariance
        case HierarchicalPrior():
            return GaussianRoot(prior.mean, prior.covariance), IdentityMixing(), prior.action_covariance
        case MixedEffectPrior():
            mean = prior.effect_mean.ravel()
            covariance = prior.effect_covariance if prior.effect_blocks is None else prior.effect_blocks
            root: Root
            if factored:
                how = "mean-field" if factored is True else str(factored)
                root = FactoredRoot(mean, covariance, prior.effects, how)
            else:
                root = GaussianRoot(mean, covariance)
            return root, MixingWeights(prior.weights), prior.action_covariance
        case LatentPrior():
            root = GaussianRoot(prior.mean, prior.covariance)
            return root, MixingMatrices(prior.matrices), prior.action_covariance
        case TwoLevelPrior():
            root = GaussianRoot(np.zeros(len(prior.covariance)), prior.covariance)
            return root, CommonMixing(prior.matrix), prior.action_covariance
        case DiffusionPrior():
            if rule == "particles":
                raise InvalidInput(
                    "approximation", "'particles' for a chain that actions share", "one chain per action (shared=False)"
                )
            root = _root_by_moments(prior) if rule == "moments" else ChainRoot(prior, rule)
            return root, IdentityMixing(), prior.covariances[0]
    kinds = "ActionPrior, HierarchicalPrior, MixedEffectPrior, LatentPrior, TwoLevelPrior or DiffusionPrior"
    raise InvalidInput("prior", validate.describe(prior), f"a prior of the actions' parameters: {kinds}")


__all__ = ["belief_of", "independent_belief_of", "joint_belief_of", "marginal_of"]
