"""The regret bound and the effective number of actions against measured regret (thesis, Section 3.3.1)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from manyarms.theory import mets_effective_actions as effective_actions
from manyarms.theory import mets_regret_bound
from manyarms_thesis.harness import regret_bounds
from manyarms_thesis.harness.claims import Claim, claim, final_regrets, gain, increasing
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.figures import BLACK, GREY, Drawn
from manyarms_thesis.harness.online import play
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Cell, Columns, Run
from manyarms_thesis.mets.agents import NO_LEARNING
from manyarms_thesis.mets.common import CONTEXT_ACCURACY, METS, REMARKS, both_schemes, synthetic_cell

METHOD = "meTS-Lin"
NAMES = ("K", "L", "d", "effect_variance", "action_variance")
SYMBOLS = {"K": "K", "L": "L", "d": "d", "effect_variance": "σ_Ψ²", "action_variance": "σ₀²"}
WORDS = {
    "K": "more actions", "L": "more effects", "d": "more dimensions", "effect_variance": "a larger σ_Ψ²",
    "action_variance": "a larger σ₀²",
}  # fmt: skip


def regret_and_bound(run: Run) -> Columns:
    """One run, with the bound at each checkpoint for the mixing weights of this very world and delta = 1 / T."""
    return _beside_bound(*play(run))


def regret_and_bound_of_action_contexts(run: Run) -> Columns:
    """The same with a context for each action.

    The proof (thesis, Appendix A.3.4) carries over word for word: it compares x^T theta_a over actions given the contexts, which
    may differ by action as long as each has ||x||^2 <= kappa_x, and only the context that was played enters the sum over rounds.
    """
    return _beside_bound(*play(run, action_contexts=True))


def _beside_bound(world: Any, columns: Mapping[str, Any]) -> Columns:
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
            sizes, (METHOD, "LinTS", NO_LEARNING), K, L, d, effect_variance=effect, action_variance=action, name=panel,
            task=regret_and_bound,
        )  # fmt: skip
    return list(both_schemes(sizes, cells.values(), regret_and_bound_of_action_contexts))


def _claims(results: Results) -> Iterator[Claim]:
    statement = "The Bayes regret of meTS is below the theorem's bound (δ = 1/T) wherever the bound is not vacuous"
    yield regret_bounds.below_bound(results, METHOD, "bound", statement, "1170-1184", no_learning=NO_LEARNING)
    statement = "The bound is of order √T up to logarithms, and regret grows more slowly than T"
    yield regret_bounds.sublinear(results, METHOD, statement, "")
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
    grows, saves = regret_bounds.effective_actions(results, results.panels, METHOD, scale, root, ("", ""))
    far_below = claim(
        "Where K_eff is far below K, meTS has significantly lower regret than standard Thompson sampling", "1193",
        gain(results, fewest, METHOD, "LinTS"), panel=fewest,
        detail=f"K_eff / K = {share[fewest]:.2f}; regret of LinTS less that of meTS-Lin",
    )  # fmt: skip
    return [grows, far_below, saves]


def _figures(results: Results, folder: Path) -> list[Drawn]:
    title, looks = "Measured regret and the theorem's bound", {"bound": (BLACK, ":"), NO_LEARNING: (GREY, "--")}
    seen = (
        "The theorem's bound on meTS's regret (dotted) beside what was measured, one parameter varying in each panel. Where the "
        "dotted line is above the grey one, what is lost without learning, the bound is vacuous."
    )
    return [
        regret_bounds.draw_bounds(results, results.varying(NAMES), SYMBOLS, METHOD, looks, folder, title, seen=seen)
    ]


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
            "rounds": 5_000, "runs": 50, "context_runs": 20, "base": BASE, "K": [20, 50, 100, 200, 500], "L": [3, 5, 10, 20],
            "d": [2, 5, 10], "effect_variance": [0.3, 1.0, 3.0, 10.0], "action_variance": [0.1, 0.3, 1.0, 3.0],
        },
    },
    build=_cells,
    accuracy=CONTEXT_ACCURACY,
    claims=_claims,
    figures=_figures,
    question="The theorem promises that meTS loses at most so much. Is the promise kept, does it say anything at these horizons, "
    "and does regret follow the quantities that the bound depends on?",
    setting="K = {K} actions, L = {L} effects, d = {d} dimensions, effects of variance {effect_variance} and deviations of "
    "variance {action_variance}, one of them varied at a time; linear rewards. meTS, LinTS and uniform play, which never learns, "
    "play {rounds} rounds, {runs} times, and the bound is worked out for each world.",
    remarks=[
        *REMARKS,
        "Vacuous: a bound that is not below what is lost without learning (two standard errors) does not count as covering. All "
        "actions have prior mean zero, so that every policy that never looks at rewards has the same Bayes regret, E max_a x^T "
        "θ_a a round; it is measured by uniform play in the same worlds.",
        "With a context for each action the theorem holds as it stands: its proof compares actions given the round's contexts, "
        "and needs only ‖x‖² ≤ κ_x of each of them.",
        "The bound takes κ_x = d (contexts in [-1, 1]^d) and κ_b = max_a ||b_a||² of each run's own weights. The "
        "thesis prints no experiment for its theorem: which parameters vary, and how far, is this project's choice."
    ],
)  # fmt: skip

__all__ = ["BOUND", "regret_and_bound"]
