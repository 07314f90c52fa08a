"""dTS's regret bound against measured regret and against LinTS's bounds (thesis, Section 4.3 and Appendices B.4 and B.6.5)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from manyarms._base.palette import PALETTE
from manyarms._base.seeds import seed_of
from manyarms.priors.diffusion import DiffusionPrior
from manyarms.theory.diffusion import (
    deviations,
    dts_effective_actions,
    dts_regret_bound_of,
    lints_frequentist_bound,
    lints_regret_bound,
)
from manyarms.theory.diffusion import rate_scenario as scenario
from manyarms.worlds import Diffusion
from manyarms_thesis.dts.agents import dts
from manyarms_thesis.dts.bound_claims import (
    BAYES,
    FREQUENTIST,
    METHOD,
    NAMES,
    SCENARIOS,
    WORDS,
    all_claims,
    at_random,
    series,
)
from manyarms_thesis.dts.common import CONTEXT_ACCURACY, DTS, with_contexts
from manyarms_thesis.harness.claims import Measured, measured
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.figures import BLACK, GREY, Drawn, draw_series, final_series, online_looks
from manyarms_thesis.harness.online import ACTION_CONTEXTS_REMARK, lints, play
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Call, Cell, Columns, Run

RANDOM = "playing at random"
AGENTS = {METHOD: Call(dts), "LinTS": Call(lints)}
LOOKS = {
    "bound": (BLACK, ":"), "bound, tight": ("#555555", "-."), "bound, as printed": (GREY, "--"), BAYES: (PALETTE[4], ":"),
    FREQUENTIST: (PALETTE[6], ":"), RANDOM: (PALETTE[3], "--"),
}  # fmt: skip


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


def regret_and_bounds(run: Run) -> Columns:
    """One run, with all bounds at each checkpoint for the very links of this world; delta = 1 / T."""
    return _regret_and_bounds(run, action_contexts=False)


def regret_and_bounds_of_action_contexts(run: Run) -> Columns:
    """The same where every action has a context of its own; the theorem needs no more than that contexts are bounded."""
    return _regret_and_bounds(run, action_contexts=True)


def _regret_and_bounds(run: Run, *, action_contexts: bool) -> Columns:
    world, columns = play(run, action_contexts=action_contexts)
    prior, noise, kappa = world.prior(), world.noise, world.kappa_x
    K, d = prior.actions, prior.dim
    spread = prior.marginal().covariance
    widest, radius = math.sqrt(np.linalg.eigvalsh(spread)[-1]), math.sqrt(K * float(np.trace(spread)))
    of = dict(sigma=noise, kappa_x=kappa)
    bounds: Mapping[str, Callable[[int], float]] = {
        "bound": lambda T: dts_regret_bound_of(prior, T, **of).total,
        "bound, as printed": lambda T: dts_regret_bound_of(prior, T, **of, first="printed").total,
        "bound, tight": lambda T: dts_regret_bound_of(prior, T, **of, tight=True).total,
        BAYES: lambda T: lints_regret_bound(T, K, d, noise, widest, kappa_x=kappa).total,
        FREQUENTIST: lambda T: lints_frequentist_bound(T, K, d, noise, radius, kappa_x=kappa),
    }
    return {
        **columns,
        **{name: np.array([bound(int(T)) for T in columns["round"]]) for name, bound in bounds.items()},
        "effective_actions": dts_effective_actions(K, deviations(prior), noise),
    }


def _cells(sizes: Sizes) -> Iterator[Cell]:
    return with_contexts(sizes, _printed(sizes), regret_and_bounds_of_action_contexts)


def _printed(sizes: Sizes) -> list[Cell]:
    cells: dict[str, Cell] = {}

    def add(panel: str, parameters: Mapping[str, Any], variances: list[float], active: list[int], noise: float) -> None:
        world = {"actions": parameters["K"], "dim": parameters["d"]}
        world |= {"variances": variances, "active": active, "noise": noise}
        problem = Call(bounded_world, world)
        cells[panel] = Cell(panel, parameters, problem, AGENTS, sizes["rounds"], sizes["runs"], regret_and_bounds)

    for chosen in ({**sizes["base"], name: value} for name in NAMES for value in sizes[name]):
        K, d, L, v, u, share = (chosen[key] for key in NAMES)
        active = [max(1, round(share * d))] * L
        panel = f"K={K}, d={d}, L={L}, σ₁²={v:g}, other σ²={u:g}, {active[0]} columns"
        add(panel, {**chosen, "scenario": "none"}, [v] + [u] * L, active, 1.0)
    for name, d, K in product(SCENARIOS, sizes["scenario_d"], sizes["scenario_K"]):
        sigmas, active = scenario(name, d)
        variances = [value**2 for value in sigmas]
        parameters = {
            "K": K, "d": d, "L": len(active), "action_variance": variances[0],
            "latent_variance": variances[-1], "columns": 0.5, "scenario": name,
        }  # fmt: skip
        # the scenarios assume noise of at least the largest deviation
        add(f"{name} variances, d={d}, K={K}", parameters, variances, active, max(sigmas))
    return list(cells.values())


def _figures(results: Results, folder: Path) -> list[Drawn]:
    bounds = ("bound", "bound, as printed", "bound, tight", BAYES)
    groups = {}
    for name, panels in series(results).items():
        curves = final_series(results, panels, name)
        curves |= {one: final_series(results, panels, name, methods=[METHOD], column=one)[METHOD] for one in bounds}
        curves[RANDOM] = {
            float(results.parameter(panel, name)): Measured(at_random(results, panel), 0.0) for panel in panels
        }
        groups[f"varying {WORDS[name]}"] = curves
    drawn = draw_series(
        groups, folder, "bound", "Measured regret, the theorem's bound and LinTS's Bayesian bound",
        xlabel={f"varying {WORDS[name]}": WORDS[name] for name in series(results)}, ylabel="regret after T rounds",
        look=online_looks(LOOKS), log_y=True,
        seen="A bound that lies above the dashed curve of playing at random says nothing: it is vacuous there.",
    )  # fmt: skip
    return [drawn, _comparison(results, folder)]


def _comparison(results: Results, folder: Path) -> Drawn:
    """The thesis's two drawings (Appendix B.6.5): dTS's bound beside LinTS's, over rounds, at the smallest and largest K."""
    panels = series(results)["K"]
    groups = {}
    for panel in (panels[0], panels[-1]):
        rounds = results.values(panel, METHOD, "round")[0]
        chosen = np.unique([int(np.abs(rounds - t).argmin()) for t in np.geomspace(rounds[0], rounds[-1], 5)])
        curves = {
            **{column: results.values(panel, METHOD, column) for column in ("bound", BAYES, FREQUENTIST)},
            **{agent: results.values(panel, agent, "regret") for agent in (METHOD, "LinTS")},
        }
        groups[f"K={results.parameter(panel, 'K')}"] = {
            curve: {float(rounds[i]): measured(values[:, i]) for i in chosen} for curve, values in curves.items()
        }
    title = "dTS's bound beside those of LinTS, over rounds"
    return draw_series(
        groups, folder, "comparison", title, xlabel="round", ylabel="regret", log_y=True, look=online_looks(LOOKS),
        seen="The thesis's comparison of bounds, with what was measured below them, for the fewest and the most items.",
    )  # fmt: skip


BASE = {"K": 100, "d": 5, "L": 2, "action_variance": 1.0, "latent_variance": 1.0, "columns": 1}
BOUND = DTS.experiment(
    "dts-bound",
    order=9,
    title="dTS's regret bound against measured regret and LinTS's bounds",
    thesis_lines="1564-1607, 3586-3618, 4059-4075",
    scales={
        "smoke": {
            "rounds": 80, "runs": 3, "base": {**BASE, "K": 20}, "K": [10, 20], "d": [3, 5], "L": [1, 2],
            "action_variance": [0.1, 1.0], "latent_variance": [1.0, 3.0], "columns": [0.5, 1],
            "scenario_d": [4], "scenario_K": [10, 20],
        },
        "quick": {
            "rounds": 2_000, "runs": 10, "base": BASE, "K": [20, 50, 100, 500], "d": [3, 5, 10], "L": [1, 2, 4],
            "action_variance": [0.1, 0.3, 1.0], "latent_variance": [1.0, 3.0], "columns": [0.5, 1],
            "scenario_d": [8], "scenario_K": [20, 100],
        },
        "paper": {
            "rounds": 5_000, "runs": 50, "base": BASE, "K": [20, 50, 100, 200, 500, 1_000], "d": [3, 5, 10, 20],
            "L": [1, 2, 4, 6], "action_variance": [0.1, 0.3, 1.0, 3.0], "latent_variance": [0.3, 1.0, 3.0],
            "columns": [0.5, 1], "scenario_d": [8, 16], "scenario_K": [20, 100, 1_000], "context_runs": 10,
        },
    },
    build=_cells,
    claims=all_claims,
    figures=_figures,
    accuracy=CONTEXT_ACCURACY,
    question="Does the theorem's ceiling on dTS's losses hold, does it say anything at realistic sizes, and is it lower than the "
    "known ceilings for LinTS?",
    setting="Linear diffusion worlds that fulfil the theorem's assumptions. From {base} on, one size varies at a time: K ({K}), "
    "d ({d}), L ({L}) and the variances; dTS-LL and LinTS play {rounds} rounds in {runs} worlds, beside the bounds for these "
    "very worlds.",
    remarks=[
        ACTION_CONTEXTS_REMARK + " There are 10 runs with a context for each action at the thesis's sizes.",
        "A bound is vacuous where it is above the regret of playing at random, which needs no theorem: T times the expected "
        "largest of K scores, σ₁ √(d/3) E max of K standard normals with a shared context (what items have in common cancels), "
        "and with the variances of all levels in place of σ₁² with a context each. Only sizes where a bound is below that "
        "count for the claim that regret stays below it.",
        "Worlds fulfil the theorem's assumption A4: W_l has entries uniform on [-1, 1], divided by its largest singular value. "
        "Contexts are uniform on [-1, 1]^d, so that ||x||² is at most d and not 1: the bounds are those for κ_x = d "
        "(manyarms.theory). δ = 1/T.",
        "“bound” is the theorem with its first latent term corrected (log(1 + K σ₂²/σ₁²), since the evidence about ψ₁ is a sum "
        "over K actions); “as printed” leaves the K out; “tight” keeps what the proof gives away. The frequentist bound takes "
        "the root of E‖θ‖² for the radius of θ.",
        "The scenarios take σ = max σ_l, as the thesis assumes, and σ_l² = 2^l where it prints σ_l = 2^l, since that is what "
        "its rates come from. It prints no sizes for any of this: K, d, L and the variances are this project's choice.",
    ],
)  # fmt: skip

__all__ = ["BOUND", "bounded_world", "regret_and_bounds"]
