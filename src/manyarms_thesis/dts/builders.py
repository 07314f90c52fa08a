"""Worlds and agents of the dTS chapter from plain parameters: what a cell's calls name."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from manyarms.agents import named as agents
from manyarms.beliefs.likelihoods import Linear, Logistic
from manyarms.errors import InvalidInput
from manyarms.priors.diffusion import DiffusionPrior
from manyarms.priors.gaussian import ActionPrior
from manyarms.worlds.diffusion import Diffusion, synthetic_chain
from manyarms_thesis.harness.spec import Call, Cell, seed_of
from manyarms_thesis.mets.builders import LINEAR_NOISE_IN_LOGISTIC_WORLDS

HERE = "manyarms_thesis.dts.builders"
# draws behind the moments of LinTS's prior where links are not linear: their error is far below the prior's own width
MOMENT_DRAWS = 20_000


def columns_of(d: int, L: int) -> list[int]:
    """d_1, ..., d_L, the columns of W_l that are not zero: (5, 2) at d = 5 and (20, 10, 5, 2) at d = 20 (thesis, line 1616).

    Halving from level to level gives these, and says what to do at other sizes.
    """
    return [max(1, d // 2**level) for level in range(L)]


def diffusion_world(
    *, actions: int, dim: int, depth: int, links: str, scaled: bool, reward: str, seed: int
) -> Diffusion:
    """The thesis's synthetic world (lines 1614-1618): a chain drawn anew for every seed, Sigma_l = I, sigma = 1."""
    # a seed of its own: the world draws its actions from `seed` itself
    chain = synthetic_chain(actions, dim, depth, links=links, scaled=scaled, seed=seed_of("chain", seed))
    return Diffusion(chain, reward=reward, noise=1.0, seed=seed)


def bounded_world(
    *, actions: int, dim: int, variances: Sequence[float], active: Sequence[int], noise: float, seed: int
) -> Diffusion:
    """A world that fulfils the theorem's assumption A4: lambda_1(W_l^T W_l) = 1 and Sigma_l = variances[l - 1] I.

    W_l has entries uniform on [-1, 1], active[l - 1] columns that are not zero, and is divided by its largest singular value.
    """
    rng = np.random.default_rng(seed_of("chain", seed))
    links = []
    for columns in active:
        W = rng.uniform(-1.0, 1.0, (dim, dim))
        W[:, columns:] = 0.0
        links.append(W / np.linalg.norm(W, 2))
    return Diffusion(DiffusionPrior(actions, dim, links, list(variances)), reward="linear", noise=noise, seed=seed)


def marginal_of(prior: DiffusionPrior) -> ActionPrior:
    """The prior of agents that learn every action alone: exact where links are linear, else from draws."""
    return prior.marginal(MOMENT_DRAWS)


def diffusion_agent(
    *,
    kind: str,
    world: Any,
    rounds: int,
    seed: int,
    likelihood: str = "linear",
    approximation: str = "thesis",
    misspecified: float | None = None,
) -> Any:
    """An agent for a world with a diffusion prior of its own. `kind` names the method; its prior follows from the world's."""
    linear = Linear(world.noise if world.likelihood == "linear" else LINEAR_NOISE_IN_LOGISTIC_WORLDS)
    laws: dict[str, Linear | Logistic] = {"linear": linear, "logistic": Logistic()}
    if likelihood not in laws:
        raise InvalidInput("likelihood", repr(likelihood), "'linear' or 'logistic'")
    law, prior = laws[likelihood], world.prior()
    if misspecified is not None:
        prior = misspecify(prior, misspecified, seed)
    widest = math.sqrt(world.kappa_x)
    makers: dict[str, Callable[[], Any]] = {
        "dTS": lambda: agents.dTS(prior, law, approximation=approximation, seed=seed),
        # HierTS-1: all latents but psi_L integrated out (thesis, line 1627); HierTS-2: all but psi_1, which is exact
        "HierTS-1": lambda: agents.HierTS(prior.two_level(prior.depth), law, seed=seed),
        "HierTS-2": lambda: agents.HierTS(prior.two_level(1), law, seed=seed),
        "LinTS": lambda: agents.LinTS(marginal_of(prior), law, seed=seed),
        "GLMTS": lambda: agents.GLMTS(marginal_of(prior), law, seed=seed),
        "LinUCB": lambda: agents.LinUCB(marginal_of(prior), linear, horizon=rounds, context_norm=widest, seed=seed),
        "UCBGLM": lambda: agents.UCBGLM(marginal_of(prior), law, horizon=rounds, seed=seed),
    }
    if kind not in makers:
        raise InvalidInput("kind", repr(kind), "one of " + ", ".join(makers))
    return makers[kind]()


def misspecify(prior: DiffusionPrior, v: float, seed: int) -> DiffusionPrior:
    """W_l + e_1 and Sigma_l + e_2 with entries of e uniform on [v, v + 0.5] (thesis, line 1639).

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


def agent_call(kind: str, **parameters: Any) -> Call:
    """An agent as a cell names it."""
    return Call(f"{HERE}:diffusion_agent", {"kind": kind, **parameters})


def agents_of(links: str, reward: str) -> dict[str, Call]:
    """The agents of the thesis's comparison (line 1627), by the names of its figures.

    dTS-dr: d the links, r the rewards it takes for true, each L(inear) or N(on-linear). Where rewards are logistic the variant
    with linear rewards stands beside the right one. Where links are not linear, and rewards are, so does the other rule for
    evidence on its way up (beliefs/messages.py), which the thesis does not have.
    """
    d = "L" if links == "linear" else "N"
    if reward == "linear":
        found = {f"dTS-{d}L": agent_call("dTS"), "LinTS": agent_call("LinTS"), "LinUCB": agent_call("LinUCB")}
        if links == "linear":
            return {**found, "HierTS": agent_call("HierTS-1")}
        return {**found, JACOBIAN: agent_call("dTS", approximation="jacobian")}
    return {
        f"dTS-{d}N": agent_call("dTS", likelihood="logistic"),
        f"dTS-{d}L": agent_call("dTS"),
        "GLM-TS": agent_call("GLMTS", likelihood="logistic"),
        "UCB-GLM": agent_call("UCBGLM", likelihood="logistic"),
    }


JACOBIAN = "dTS-NL, jacobian"
BASELINES = ("LinTS", "LinUCB", "HierTS", "GLM-TS", "UCB-GLM")


def synthetic_cell(
    K: int,
    d: int,
    L: int,
    rounds: int,
    runs: int,
    *,
    links: str = "linear",
    scaled: bool = False,
    reward: str = "linear",
    chosen: Mapping[str, Call] | None = None,
    name: str | None = None,
) -> Cell:
    """A panel of the synthetic world."""
    parameters = {"links": links, "scaled": scaled, "reward": reward, "K": K, "d": d, "L": L}
    world = {"actions": K, "dim": d, "depth": L, "links": links, "scaled": scaled, "reward": reward}
    what = f"{'linear' if links == 'linear' else 'non-linear'} links{', scaled' if scaled else ''}"
    panel = name or f"{what}, {reward} rewards, K={K:,}, d={d}, L={L}"
    called = agents_of(links, reward) if chosen is None else chosen
    return Cell(panel, parameters, Call(f"{HERE}:diffusion_world", world), called, rounds, runs)


__all__ = [
    "BASELINES", "JACOBIAN", "agent_call", "agents_of", "bounded_world", "columns_of", "diffusion_agent", "diffusion_world",
    "marginal_of", "misspecify", "synthetic_cell",
]  # fmt: skip
