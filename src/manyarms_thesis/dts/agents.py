"""The agents of the chapter, by the names of the thesis's figures (Section 4.4.1)."""

from __future__ import annotations

from typing import Any

import numpy as np

from manyarms._base.palette import PALETTE
from manyarms.agents import named as agents
from manyarms.errors import InvalidInput
from manyarms.priors.diffusion import DiffusionPrior
from manyarms_thesis.harness import online
from manyarms_thesis.harness.online import LOGISTIC, THESIS_EXPANSION, likelihood_of, linear_noise
from manyarms_thesis.harness.spec import Call

JACOBIAN, MOMENTS, MOMENTS_LOGISTIC = "dTS-NL, jacobian", "dTS-NL, moments", "dTS-NN, moments"
# the two ways of making two levels of a linear chain; the first one is the thesis's baseline
HIERTS_1, HIERTS_2 = "HierTS", "HierTS-2"
LOOKS = {MOMENTS: (PALETTE[0], "--"), MOMENTS_LOGISTIC: (PALETTE[3], "--"), HIERTS_2: (PALETTE[2], "--")}
BASELINES = ("LinTS", "LinUCB", "HierTS", "GLM-TS", "UCB-GLM")


def dts(
    *,
    world: Any,
    rounds: int,
    seed: int,
    likelihood: str = "linear",
    expansion: str = THESIS_EXPANSION,
    approximation: str = "thesis",
    misspecified: float | None = None,
) -> Any:
    """dTS with the world's own diffusion prior, or with one that is wrong by a level, by the thesis's rule or another one."""
    prior = world.prior()
    if misspecified is not None:
        prior = misspecify(prior, misspecified, seed)
    return agents.dTS(prior, likelihood_of(world, likelihood, expansion), approximation=approximation, seed=seed)


def hierts_of_top(*, world: Any, rounds: int, seed: int) -> Any:
    """The thesis's HierTS-1: all latents but psi_L integrated out (Section 4.4.1); linear links and rewards only."""
    prior = world.prior()
    return agents.HierTS(prior.two_level(prior.depth), linear_noise(world), seed=seed)


def hierts_of_first(*, world: Any, rounds: int, seed: int) -> Any:
    """The thesis's HierTS-2: all latents but psi_1 integrated out, exactly (Appendix B.3); linear links and rewards only."""
    return agents.HierTS(world.prior().two_level(1), linear_noise(world), seed=seed)


def misspecify(prior: DiffusionPrior, v: float, seed: int) -> DiffusionPrior:
    """W_l + e_1 and Sigma_l + e_2 with entries of e uniform on [v, v + 0.5] (thesis, Section 4.4.1).

    A covariance must be symmetric and positive definite, which Sigma_l + e_2 need not be. e_2 is replaced by the mean of itself
    and its transpose, whose entries still lie in [v, v + 0.5]; should an eigenvalue of the sum be below 0.01, it is raised to
    0.01 (at Sigma_l = I and d = 5 none ever is).
    """
    if prior.matrices is None:
        raise InvalidInput("prior", "links that are not linear", "linear links")
    rng = np.random.default_rng([seed, 1639])
    d = prior.dim
    links = [W + rng.uniform(v, v + 0.5, (d, d)) for W in prior.matrices]
    covariances = []
    for covariance in prior.covariances:
        noise = rng.uniform(v, v + 0.5, (d, d))
        values, vectors = np.linalg.eigh(covariance + (noise + noise.T) / 2)
        raised = (vectors * np.maximum(values, 0.01)) @ vectors.T
        covariances.append((raised + raised.T) / 2)
    return DiffusionPrior(prior.actions, d, links, covariances, prior.shared)


def agents_of(links: str, reward: str) -> dict[str, Call]:
    """The agents of the thesis's comparison.

    dTS-dr: d the links, r the rewards it takes for true, each L(inear) or N(on-linear). Where rewards are logistic the variant
    with linear rewards stands beside the right one. Where links are not linear, so do other rules for evidence
    (beliefs/from_prior.py), which the thesis does not have: moments everywhere, and Jacobians where rewards are linear.
    HierTS-2, of which the thesis speaks and which it leaves out of its comparison, is none of the baselines.
    """
    d = "L" if links == "linear" else "N"
    if reward == "logistic":
        baselines = {"GLM-TS": Call(online.glmts), "UCB-GLM": Call(online.ucbglm)}
        found = {f"dTS-{d}N": Call(dts, LOGISTIC), f"dTS-{d}L": Call(dts), **baselines}
        if links != "linear":
            found[MOMENTS_LOGISTIC] = Call(dts, {**LOGISTIC, "approximation": "moments"})
            found[MOMENTS] = Call(dts, {"approximation": "moments"})
        return found
    found = {f"dTS-{d}L": Call(dts), "LinTS": Call(online.lints), "LinUCB": Call(online.linucb)}
    if links == "linear":
        return {**found, HIERTS_1: Call(hierts_of_top), HIERTS_2: Call(hierts_of_first)}
    others = {JACOBIAN: "jacobian", MOMENTS: "moments"}
    return {**found, **{name: Call(dts, {"approximation": rule}) for name, rule in others.items()}}


__all__ = [
    "BASELINES", "HIERTS_1", "HIERTS_2", "JACOBIAN", "LOOKS", "MOMENTS", "MOMENTS_LOGISTIC", "agents_of", "dts",
    "hierts_of_first", "hierts_of_top", "misspecify",
]  # fmt: skip
