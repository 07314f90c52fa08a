"""dTS's regret bound against measured regret and against LinTS's bounds (thesis, lines 1564-1607, 3586-3618, 4059-4075)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from manyarms._base.html import PALETTE
from manyarms.theory.diffusion import (
    deviations,
    dts_effective_actions,
    dts_regret_bound_of,
    lints_frequentist_bound,
    lints_regret_bound,
)
from manyarms.theory.diffusion import rate_scenario as scenario
from manyarms_thesis.dts.bound_claims import BAYES, FREQUENTIST, METHOD, NAMES, WORDS, all_claims, series
from manyarms_thesis.dts.builders import HERE, agent_call
from manyarms_thesis.dts.figures import against
from manyarms_thesis.harness.claims import measured
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.simulate import columns, online_regret
from manyarms_thesis.harness.spec import Call, Cell, Experiment

TASK = "manyarms_thesis.dts.bound:bound_task"
AGENTS = {METHOD: agent_call("dTS"), "LinTS": agent_call("LinTS")}
LOOKS = {
    "bound": ("#1a1a1a", ":"), "bound, tight": ("#555555", "-."), "bound, as printed": ("#8a8a8a", "--"),
    BAYES: (PALETTE[4], ":"), FREQUENTIST: (PALETTE[6], ":"),
}  # fmt: skip


def bound_task(*, world: Call, agent: Call, rounds: int, world_seed: int, agent_seed: int) -> dict[str, npt.ArrayLike]:
    """One run, with all bounds at each checkpoint for the very links of this world; delta = 1 / T."""
    built = world(seed=world_seed)
    acting = agent(world=built, rounds=rounds, seed=agent_seed)
    run = online_regret(built, acting, rounds)
    prior, noise, kappa = built.prior(), built.noise, built.kappa_x
    K, d = prior.actions, prior.dim
    spread = prior.marginal().covariance
    widest, radius = math.sqrt(np.linalg.eigvalsh(spread)[-1]), math.sqrt(K * float(np.trace(spread)))
    bounds: dict[str, list[float]] = {
        name: [] for name in ("bound", "bound, as printed", "bound, tight", BAYES, FREQUENTIST)
    }
    for T in (int(t) for t in run.rounds):
        of = dict(sigma=noise, kappa_x=kappa)
        bounds["bound"].append(dts_regret_bound_of(prior, T, **of).total)
        bounds["bound, as printed"].append(dts_regret_bound_of(prior, T, **of, first="printed").total)
        bounds["bound, tight"].append(dts_regret_bound_of(prior, T, **of, tight=True).total)
        bounds[BAYES].append(lints_regret_bound(T, K, d, noise, widest, kappa_x=kappa).total)
        bounds[FREQUENTIST].append(lints_frequentist_bound(T, K, d, noise, radius, kappa_x=kappa))
    return {
        **columns(run, acting),
        **{name: np.array(values) for name, values in bounds.items()},
        "effective_actions": dts_effective_actions(K, deviations(prior), noise),
    }


def _cells(sizes: Mapping[str, Any]) -> list[Cell]:
    rounds, runs, base = sizes["rounds"], sizes["runs"], sizes["base"]
    cells: dict[str, Cell] = {}
    for name in NAMES:
        for value in sizes[name]:
            chosen = {**base, name: value}
            K, d, L, v, u, share = (chosen[key] for key in NAMES)
            active = [max(1, round(share * d))] * L
            panel = f"K={K}, d={d}, L={L}, σ₁²={v:g}, other σ²={u:g}, {active[0]} columns"
            cells[panel] = _cell(panel, {**chosen, "scenario": "none"}, [v] + [u] * L, active, 1.0, rounds, runs)
    for name in ("decreasing", "constant"):
        for d in sizes["scenario_d"]:
            for K in sizes["scenario_K"]:
                sigmas, active = scenario("decreasing" if name == "decreasing" else "constant", d)
                variances = [value**2 for value in sigmas]
                # the scenarios assume noise of at least the largest deviation
                noise = max(sigmas)
                panel = f"{name} variances, d={d}, K={K}"
                parameters = {
                    "K": K, "d": d, "L": len(active), "action_variance": variances[0],
                    "latent_variance": variances[-1], "columns": 0.5, "scenario": name,
                }  # fmt: skip
                cells[panel] = _cell(panel, parameters, variances, active, noise, rounds, runs)
    return list(cells.values())


def _cell(
    panel: str,
    parameters: Mapping[str, Any],
    variances: list[float],
    active: list[int],
    noise: float,
    rounds: int,
    runs: int,
) -> Cell:
    K, d = parameters["K"], parameters["d"]
    world = {"actions": K, "dim": d, "variances": variances, "active": active, "noise": noise}
    return Cell(panel, parameters, Call(f"{HERE}:bounded_world", world), AGENTS, rounds, runs, task=TASK)


def _figures(results: Results, folder: Path) -> list[Path]:
    labels = {f"varying {WORDS[name]}": WORDS[name] for name in NAMES}
    groups = {}
    for name, panels in series(results).items():
        points: dict[str, dict[float, Any]] = {}
        for curve, agent, column in (
            (METHOD, METHOD, "regret"), ("LinTS", "LinTS", "regret"), ("bound", METHOD, "bound"),
            ("bound, as printed", METHOD, "bound, as printed"), ("bound, tight", METHOD, "bound, tight"),
            (BAYES, METHOD, BAYES),
        ):  # fmt: skip
            points[curve] = {
                float(results.parameter(panel, name)): measured(results.final(panel, agent, column)) for panel in panels
            }
        groups[f"varying {WORDS[name]}"] = points
    drawn = [
        against(
            groups, labels, folder, "bound", "Measured regret, the theorem's bound and LinTS's Bayesian bound",
            ylabel="regret after T rounds", logarithmic=True, looks=LOOKS,
        )
    ]  # fmt: skip
    return [*drawn, _comparison(results, folder)]


def _comparison(results: Results, folder: Path) -> Path:
    """The thesis's two drawings (lines 4063-4075): dTS's bound beside LinTS's, over rounds, at the largest K."""
    panels = series(results)["K"]
    groups = {}
    for panel in (panels[0], panels[-1]):
        rounds = results.values(panel, METHOD, "round")[0]
        keep = np.unique([int(np.abs(rounds - t).argmin()) for t in np.geomspace(rounds[0], rounds[-1], 5)])
        groups[f"K={results.parameter(panel, 'K')}"] = {
            curve: {
                float(rounds[i]): measured(results.values(panel, agent, column).astype(np.float64)[:, i]) for i in keep
            }
            for curve, agent, column in (
                ("bound", METHOD, "bound"), (BAYES, METHOD, BAYES), (FREQUENTIST, METHOD, FREQUENTIST),
                (METHOD, METHOD, "regret"), ("LinTS", "LinTS", "regret"),
            )
        }  # fmt: skip
    title = "dTS's bound beside those of LinTS, over rounds"
    return against(
        groups, "round", folder, "comparison", title, ylabel="regret", logarithmic=True, looks=LOOKS
    )  # fmt: skip


BASE = {"K": 100, "d": 5, "L": 2, "action_variance": 1.0, "latent_variance": 1.0, "columns": 1}
BOUND = Experiment(
    name="dts-bound",
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
            "columns": [0.5, 1], "scenario_d": [8, 16], "scenario_K": [20, 100, 1_000],
        },
    },
    build=_cells,
    claims=all_claims,
    figures=_figures,
    remarks=[
        "Worlds fulfil the theorem's assumption A4: W_l has entries uniform on [-1, 1], divided by its largest singular value. "
        "Contexts are uniform on [-1, 1]^d, so that ||x||² is at most d and not 1: the bounds are those for κ_x = d "
        "(diffusion_bounds.py). δ = 1/T.",
        "“bound” is the theorem with its first latent term corrected (log(1 + K σ₂²/σ₁²), since the evidence about ψ₁ is a sum "
        "over K actions); “as printed” leaves the K out; “tight” keeps what the proof gives away. The frequentist bound takes "
        "the root of E‖θ‖² for the radius of θ.",
        "The scenarios take σ = max σ_l, as the thesis assumes, and σ_l² = 2^l where it prints σ_l = 2^l, since that is what "
        "its rates come from. It prints no sizes for any of this: K, d, L and the variances are this project's choice.",
    ],
)  # fmt: skip

__all__ = ["BOUND", "bound_task"]
