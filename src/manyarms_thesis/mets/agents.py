"""The agents of the chapter, by the names under which the thesis's figures show them (Section 3.4.1)."""

from __future__ import annotations

from typing import Any

import numpy as np

from manyarms.agents import named as agents
from manyarms.priors.gaussian import MixedEffectPrior
from manyarms_thesis.harness import online
from manyarms_thesis.harness.online import LOGISTIC, THESIS_EXPANSION, likelihood_of, linear_noise
from manyarms_thesis.harness.spec import Call


def mets(
    *,
    world: Any,
    rounds: int,
    seed: int,
    likelihood: str = "linear",
    expansion: str = THESIS_EXPANSION,
    factored: str | bool = False,
) -> Any:
    """meTS with the world's own prior."""
    return agents.meTS(world.prior(), likelihood_of(world, likelihood, expansion), factored=factored, seed=seed)


def misspecified_mets(*, world: Any, rounds: int, seed: int) -> Any:
    """meTS with a wrong prior."""
    return agents.meTS(misspecified(world.prior(), seed), linear_noise(world), seed=seed)


def mets_knowing_effects(*, world: Any, rounds: int, seed: int) -> Any:
    """What meTS is once the effects are known: every action alone, around its mean."""
    return agents.LinTS(world.known_effects_prior(), linear_noise(world), seed=seed)


def misspecified(prior: MixedEffectPrior, seed: int) -> MixedEffectPrior:
    """The prior with its four parts multiplied by constants drawn uniformly from (0, 2) (thesis, Appendix A.4.3)."""
    c = np.random.default_rng([seed, 3403]).uniform(0.0, 2.0, size=4)
    # (0, 2) is open: zero itself would not be a covariance
    c1, c2, c3, c4 = (float(value) for value in np.maximum(c, 1e-6))
    return prior.scaled(effect_covariance=c1, effect_mean=c2, action_covariance=c3, weights=c4)


KNOWN = "meTS, effects known"
NO_LEARNING = "no learning"
AGENTS: dict[str, Call] = {
    "meTS-Lin": Call(mets),
    "meTS-Lin-Fa": Call(mets, {"factored": "mean-field"}),
    "meTS-Lin-Fb": Call(mets, {"factored": "blockwise"}),
    "meTS-Lin-mis": Call(misspecified_mets),
    KNOWN: Call(mets_knowing_effects),
    "LinTS": Call(online.lints),
    "LinUCB": Call(online.linucb),
    "HierTS": Call(online.hierts),
    "meTS-GLM": Call(mets, LOGISTIC),
    "meTS-GLM-Fa": Call(mets, {**LOGISTIC, "factored": "mean-field"}),
    "meTS-GLM, mode": Call(mets, {**LOGISTIC, "expansion": "mode"}),
    "GLM-TS": Call(online.glmts),
    "GLM-TS, mode": Call(online.glmts, {"expansion": "mode"}),
    "UCB-GLM": Call(online.ucbglm),
    "GLM-UCB": Call(online.glmucb),
    NO_LEARNING: Call(online.no_learning),
}
# agents that expand a likelihood at a mode, and the same by the thesis's rule
AT_MODES = {"meTS-GLM, mode": "meTS-GLM", "GLM-TS, mode": "GLM-TS"}
LINEAR = ("meTS-Lin", "meTS-Lin-Fa", "meTS-Lin-Fb", "LinTS", "LinUCB", "HierTS")
LOGISTIC_AGENTS = ("meTS-GLM", "meTS-GLM-Fa", "meTS-Lin", "GLM-TS", "UCB-GLM", "HierTS")
LINEAR_BASELINES = ("LinTS", "LinUCB", "HierTS")
LOGISTIC_BASELINES = ("GLM-TS", "UCB-GLM", "HierTS")

__all__ = [
    "AGENTS", "AT_MODES", "KNOWN", "LINEAR", "LINEAR_BASELINES", "LOGISTIC_AGENTS", "LOGISTIC_BASELINES", "NO_LEARNING", "mets",
    "mets_knowing_effects", "misspecified", "misspecified_mets",
]  # fmt: skip
