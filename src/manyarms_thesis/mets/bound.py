"""The regret bound and the effective number of actions against measured regret (thesis, Section 3.3.1)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from manyarms.theory import mets_effective_actions as effective_actions
from manyarms.theory import mets_regret_bound
from manyarms_thesis.harness import regret_bounds
from manyarms_thesis.harness.claims import Claim, claim, final_regrets, gain, increasing
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.figures import BLACK
from manyarms_thesis.harness.online import play
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Cell, Columns, Run
from manyarms_thesis.mets.common import METS, synthetic_cell

METHOD = "meTS-Lin"
NAMES = ("K", "L", "d", "effect_variance", "action_variance")
SYMBOLS = {"K": "K", "L": "L", "d": "d", "effect_variance": "σ_Ψ²", "action_variance": "σ₀²"}
WORDS = {
    "K": "more actions", "L": "more effects", "d": "more dimensions", "effect_variance": "a larger σ_Ψ²",
    "action_variance": "a larger σ₀²",
}  # fmt: skip


def regret_and_bound(run: Run) -> Columns:
    """One run, with the bound at each checkpoint for the mixing weights of this very world and delta = 1 / T."""
    world, columns = play(run)
    K, L, sigma0, sigma_psi = world.actions, world.effects, math.sqrt(world.action_scale), math.sqrt(world.effect_scale)
    told = (K, L, world.dim, world.noise, sigma0, sigma_psi, world.kappa_x, world.kappa_b)
    return {
        **columns,
        "bound": np.array([mets_regret_bound(int(T), *told).total for T in columns["round"]]),
        "effective_actions": effective_actions(K, L, sigma0, sigma_psi),
    }


def _cells(sizes: Sizes) -> list[Cell]:
    cells = {}
    for chosen in ({**sizes["base"], name: value} for name in NAMES for value in sizes[name]):
        K, L, d, effect, action = (chosen[name] for name in NAMES)
        panel = f"K={K}, L={L}, d={d}, σ_Ψ²={effect:g}, σ₀²={action:g}"
        cells[panel] = synthetic_cell(
            sizes, (METHOD, "LinTS"), K, L, d, effect_variance=effect, action_variance=action, name=panel,
            task=regret_and_bound,
        )  # fmt: skip
    return list(cells.values())


def _claims(results: Results) -> Iterator[Claim]:
    statement = "The Bayes regret of meTS is below the theorem's bound (δ = 1/T), in every panel"
    yield regret_bounds.below_bound(results, METHOD, "bound", statement, "1170-1184")
    statement = "The bound is of order √T up to logarithms, and regret grows more slowly than T"
    yield regret_bounds.sublinear(results, METHOD, statement, "1184")
    for name, panels in results.varying(NAMES).items():
        values = final_regrets(results, {f"{name}={results.parameter(p, name):g}": p for p in panels}, METHOD)
        yield increasing(values, f"Regret grows with {WORDS[name]}, as the bound does", "1195")
    yield from _effective(results)


def _effective(results: Results) -> list[Claim]:
    """K_eff: regret follows sqrt(d K_eff (sigma_0^2 + sigma_Psi^2)), and a small K_eff means a large gain."""

    def scale(panel: str) -> float:
        d, effect, action = (float(results.parameter(panel, name)) for name in NAMES[2:])
        return d * (action + effect)

    share = {panel: regret_bounds.effective_share(results, panel, METHOD) for panel in results.panels}
    fewest = min(results.panels, key=share.__getitem__)
    root = "√(d K_eff (σ₀² + σ_Ψ²))"
    grows, saves = regret_bounds.effective_actions(results, results.panels, METHOD, scale, root, ("1191-1193", "1193"))
    far_below = claim(
        "Where K_eff is far below K, meTS has significantly lower regret than standard Thompson sampling", "1193",
        gain(results, fewest, METHOD, "LinTS"), panel=fewest,
        detail=f"K_eff / K = {share[fewest]:.2f}; regret of LinTS less that of meTS-Lin",
    )  # fmt: skip
    return [grows, far_below, saves]


def _figures(results: Results, folder: Path) -> list[Path]:
    title, looks = "Measured regret and the theorem's bound", {"bound": (BLACK, ":")}
    return [regret_bounds.draw_bounds(results, results.varying(NAMES), SYMBOLS, METHOD, looks, folder, title)]


BASE = {"K": 100, "L": 3, "d": 2, "effect_variance": 3.0, "action_variance": 1.0}
BOUND = METS.experiment(
    "mets-bound",
    order=8,
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

__all__ = ["BOUND", "regret_and_bound"]
