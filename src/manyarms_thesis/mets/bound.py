"""The regret bound and the effective number of actions against measured regret (thesis, lines 1170-1195)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from manyarms.theory import mets_effective_actions as effective_actions
from manyarms.theory import mets_regret_bound
from manyarms_thesis.harness.claims import Claim, Measured, claim, gain, increasing, least, measured
from manyarms_thesis.harness.figures import NAMES, final_regret
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.simulate import columns, online_regret
from manyarms_thesis.harness.spec import Call, Cell, Experiment
from manyarms_thesis.mets.structure import weighted_slope
from manyarms_thesis.mets.synthetic import synthetic_cell

TASK = "manyarms_thesis.mets.bound:bound_task"
METHOD = "meTS-Lin"


def bound_task(*, world: Call, agent: Call, rounds: int, world_seed: int, agent_seed: int) -> dict[str, npt.ArrayLike]:
    """One run, with the bound at each checkpoint for the mixing weights of this very world and delta = 1 / T."""
    built = world(seed=world_seed)
    acting = agent(world=built, rounds=rounds, seed=agent_seed)
    run = online_regret(built, acting, rounds)
    sigma0, sigma_psi = math.sqrt(built.action_scale), math.sqrt(built.effect_scale)
    bounds = [
        mets_regret_bound(
            int(T), built.actions, built.effects, built.dim, built.noise, sigma0, sigma_psi,
            built.kappa_x, built.kappa_b,
        ).total
        for T in run.rounds
    ]  # fmt: skip
    return {
        **columns(run, acting),
        "bound": np.array(bounds),
        "effective_actions": effective_actions(built.actions, built.effects, sigma0, sigma_psi),
    }


def _cells(sizes: Mapping[str, Any]) -> list[Cell]:
    rounds, runs, base = sizes["rounds"], sizes["runs"], sizes["base"]
    cells: dict[str, Cell] = {}
    for name in ("K", "L", "d", "effect_variance", "action_variance"):
        for value in sizes[name]:
            chosen = {**base, name: value}
            cell = _cell(chosen, rounds, runs)
            cells[cell.panel] = cell
    return list(cells.values())


def _cell(chosen: Mapping[str, Any], rounds: int, runs: int) -> Cell:
    K, L, d, effect, action = (chosen[name] for name in ("K", "L", "d", "effect_variance", "action_variance"))
    return synthetic_cell(
        K, L, d, (METHOD, "LinTS"), rounds, runs, effect_variance=effect, action_variance=action,
        name=f"K={K}, L={L}, d={d}, σ_Ψ²={effect:g}, σ₀²={action:g}", task=TASK,
    )  # fmt: skip


def _series(results: Results) -> dict[str, list[str]]:
    """The panels in which one parameter varies and the others have their usual value, in rising order."""
    names = ("K", "L", "d", "effect_variance", "action_variance")
    values = {name: [results.parameter(panel, name) for panel in results.panels] for name in names}
    usual = {name: max(set(values[name]), key=values[name].count) for name in names}
    return {
        name: sorted(
            results.where(**{other: usual[other] for other in names if other != name}),
            key=lambda panel: float(results.parameter(panel, name)),
        )
        for name in names
    }


def _claims(results: Results) -> list[Claim]:
    regret = {panel: measured(results.final(panel, METHOD)) for panel in results.panels}
    slack = {
        panel: measured(results.final(panel, METHOD, "bound") - results.final(panel, METHOD))
        for panel in results.panels
    }
    tightest, room = least(slack)
    ratios = [results.final(panel, METHOD, "bound").mean() / regret[panel].mean for panel in results.panels]
    series = _series(results)
    words = {
        "K": "more actions", "L": "more effects", "d": "more dimensions", "effect_variance": "a larger σ_Ψ²",
        "action_variance": "a larger σ₀²",
    }  # fmt: skip
    found = [
        claim(
            "The Bayes regret of meTS is below the theorem's bound (δ = 1/T), in every panel", "1170-1184", room,
            panel=tightest, detail=f"bound less regret; the bound is {min(ratios):.1f} to {max(ratios):.1f} times "
            "the measured regret",
        ),
        _sublinear(results),
    ]  # fmt: skip
    for name, panels in series.items():
        values = {f"{name}={results.parameter(panel, name):g}": regret[panel] for panel in panels}
        found.append(increasing(values, f"Regret grows with {words[name]}, as the bound does", "1195"))
    return [*found, *_effective(results, regret)]


def _sublinear(results: Results) -> Claim:
    """Bound and regret grow more slowly than T: the exponent between T/2 and T is below 1."""
    exponents = {}
    for panel in results.panels:
        values = results.values(panel, METHOD, "regret")
        half = values[:, values.shape[1] // 2 - 1].mean()
        ratio = values[:, -1] / values[:, -1].mean() - values[:, values.shape[1] // 2 - 1] / half
        doubled = math.log2(values[:, -1].mean() / half)
        exponents[panel] = Measured(1 - doubled, measured(ratio).standard_error / math.log(2))
    panel, room = least(exponents)
    shown = [1 - value.mean for value in exponents.values()]
    return claim(
        "The bound is of order √T up to logarithms, and regret grows more slowly than T", "1184", room, panel=panel,
        detail=f"one less the exponent of T between T/2 and T; the exponents are {min(shown):.2f} to "
        f"{max(shown):.2f}, and 0.5 is the bound's",
    )  # fmt: skip


def _effective(results: Results, regret: Mapping[str, Measured]) -> list[Claim]:
    """K_eff: regret follows sqrt(d K_eff (sigma_0^2 + sigma_Psi^2)), and a small K_eff means a large gain."""
    rate, share = {}, {}
    for panel in results.panels:
        K, d, effect, action = (
            float(results.parameter(panel, name)) for name in ("K", "d", "effect_variance", "action_variance")
        )
        effective = float(results.final(panel, METHOD, "effective_actions")[0])
        rate[panel] = 0.5 * math.log(d * effective * (action + effect))
        share[panel] = effective / K
    logs = [Measured(math.log(value.mean), value.standard_error / value.mean) for value in regret.values()]
    slope = weighted_slope(np.array(list(rate.values())), logs)
    fewest, most = min(share, key=lambda panel: share[panel]), max(share, key=lambda panel: share[panel])
    relative = {
        panel: measured(1 - results.final(panel, METHOD) / results.final(panel, "LinTS").mean())
        for panel in (fewest, most)
    }
    return [
        claim(
            "Regret grows with √(d K_eff (σ₀² + σ_Ψ²)), K_eff the effective number of actions", "1191-1193", slope,
            detail="slope of log regret against the logarithm of that root, over all panels; 1 would be proportional",
        ),
        claim(
            "Where K_eff is far below K, meTS has significantly lower regret than standard Thompson sampling",
            "1193", gain(results, fewest, METHOD, "LinTS"), panel=fewest,
            detail=f"K_eff / K = {share[fewest]:.2f}; regret of LinTS less that of meTS-Lin",
        ),
        claim(
            "The smaller K_eff / K, the larger the share of LinTS's regret that meTS saves", "1193",
            relative[fewest] - relative[most],
            detail=f"saved {relative[fewest]} at K_eff / K = {share[fewest]:.2f} ({fewest}), {relative[most]} at "
            f"{share[most]:.2f} ({most})",
        ),
    ]  # fmt: skip


def _figures(results: Results, folder: Path) -> list[Path]:
    series = _series(results)
    titles = {name: f"varying {NAMES.get(name, name)}" for name in series}
    groups = {titles[name]: panels for name, panels in series.items()}
    varying = {title: name for name, title in titles.items()}
    title = "Measured regret and the theorem's bound"
    return [final_regret(results, groups, varying, folder, "bound", title, extra="bound", logarithmic=True)]


BASE = {"K": 100, "L": 3, "d": 2, "effect_variance": 3.0, "action_variance": 1.0}
BOUND = Experiment(
    name="mets-bound",
    title="meTS's regret bound and effective number of actions against measured regret",
    thesis_lines="1170-1195",
    scales={
        "smoke": {
            "rounds": 100, "runs": 3, "base": {**BASE, "K": 30}, "K": [10, 30], "L": [3, 6], "d": [2, 3],
            "effect_variance": [1.0, 3.0], "action_variance": [0.1, 1.0],
        },
        "quick": {
            "rounds": 3_000, "runs": 12, "base": BASE, "K": [20, 50, 100, 200], "L": [3, 10], "d": [2, 5],
            "effect_variance": [1.0, 3.0], "action_variance": [0.1, 1.0, 3.0],
        },
        "paper": {
            "rounds": 5_000, "runs": 50, "base": BASE, "K": [20, 50, 100, 200, 500], "L": [3, 5, 10, 20],
            "d": [2, 5, 10], "effect_variance": [0.3, 1.0, 3.0, 10.0], "action_variance": [0.1, 0.3, 1.0, 3.0],
        },
    },
    build=_cells,
    claims=_claims,
    figures=_figures,
    remarks=[
        "The bound takes κ_x = d (contexts in [-1, 1]^d) and κ_b = max_a ||b_a||² of each run's own weights. The "
        "thesis prints no experiment for its theorem: which parameters vary, and how far, is this project's choice."
    ],
)  # fmt: skip

__all__ = ["BOUND", "bound_task"]
