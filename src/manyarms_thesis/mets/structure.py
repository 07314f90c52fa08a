"""What the structure is worth (thesis, Section 3.3.2): effects known, actions without deviations, effects ignored."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from manyarms_thesis.harness.claims import (
    Claim,
    claim,
    gain,
    gains,
    increasing,
    logarithm,
    lower_regret,
    measured,
    outperforms,
    ratio,
    slope,
)
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.figures import draw_series, final_series
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Cell
from manyarms_thesis.mets.agents import KNOWN
from manyarms_thesis.mets.common import EFFECT_VARIANCE, METS, synthetic_cell

# sigma_0^2: as in the other experiments; far below sigma_Psi^2; none at all
USUAL, SMALL, NONE = 1.0, 0.03, 0.0
AGENTS = {
    USUAL: ("meTS-Lin", KNOWN, "LinTS", "LinUCB"),
    SMALL: ("meTS-Lin", "LinTS", "LinUCB"),
    NONE: ("meTS-Lin", "LinTS"),
}


def _cells(sizes: Sizes) -> Iterator[Cell]:
    fewest = sizes["L"][0]
    wanted = [(K, fewest, USUAL) for K in sizes["K"]]
    wanted += [(sizes["K"][-1], L, USUAL) for L in sizes["L"][1:]]
    wanted += [(K, fewest, variance) for variance in (SMALL, NONE) for K in sizes["K"]]
    for K, L, variance in wanted:
        name = f"K={K:,}, L={L}, σ₀²={variance:g}"
        yield synthetic_cell(sizes, AGENTS[variance], K, L, action_variance=variance, name=name)


def _claims(results: Results) -> list[Claim]:
    effects = results.levels("L")
    L = effects[0]
    by_variance = {
        variance: {results.parameter(panel, "K"): panel for panel in results.where(action_variance=variance, L=L)}
        for variance in (USUAL, SMALL, NONE)
    }
    largest = max(by_variance[USUAL])
    by_effects = {n: results.where(action_variance=USUAL, K=largest, L=n)[0] for n in effects}
    return [
        *_known_effects(results, by_variance[USUAL], by_effects),
        *_no_deviations(results, by_variance[USUAL], by_variance[NONE]),
        *_marginalised(results, by_variance[USUAL], by_variance[SMALL]),
    ]


def _known_effects(results: Results, by_size: Mapping[int, str], by_effects: Mapping[int, str]) -> Iterator[Claim]:
    for panel in by_size.values():
        statement = "Knowing the effects reduces regret: meTS pays for learning them"
        yield lower_regret(results, panel, KNOWN, "meTS-Lin", statement, "1199-1203")
    # what learning the effects costs is the difference between the two, and it should grow with L
    ends = {f"L={L}": by_effects[L] for L in (min(by_effects), max(by_effects))}
    statement = "With known effects the dependence of regret on L is gone: what learning them costs grows with L"
    yield increasing(gains(results, ends, KNOWN, "meTS-Lin"), statement, "1199-1203")


def _no_deviations(results: Results, usual: Mapping[int, str], none: Mapping[int, str]) -> Iterator[Claim]:
    fewest, most = min(none), max(none)
    regrets = {K: [measured(results.final(panels[K], "meTS-Lin")) for panels in (usual, none)] for K in none}
    with_deviations, without = (regrets[most][i] - regrets[fewest][i] for i in (0, 1))
    yield claim(
        "Without deviations from the effects (σ₀ = 0) regret does not depend on K: the dependence arises from σ₀",
        "1203-1207", with_deviations - without,
        detail=f"growth of meTS-Lin's final regret from K={fewest} to K={most}: {with_deviations} with σ₀²=1, "
        f"{without} with σ₀=0; the figure is the difference",
    )  # fmt: skip
    for K, (deviating, exact) in regrets.items():
        statement = "Without deviations from the effects regret is lower than with them"
        yield claim(statement, "1203-1207", deviating - exact, panel=f"K={K:,}")


def _marginalised(results: Results, usual: Mapping[int, str], small: Mapping[int, str]) -> Iterator[Claim]:
    for panel in (*usual.values(), *small.values()):
        statement = "Ignoring the effects (marginalising them out) leads to larger regret when K > L"
        yield claim(statement, "1209-1222", gain(results, panel, "meTS-Lin", "LinTS"), panel=panel)
    for panel in small.values():
        statement = "meTS significantly outperforms classical methods when effects are more uncertain than actions"
        yield outperforms(results, panel, "meTS-Lin", ("LinTS", "LinUCB"), statement, "1222")
    sizes = np.array(sorted(small), dtype=np.float64)
    ratios = [logarithm(ratio(results, small[int(K)], "meTS-Lin", "LinTS")) for K in sizes]
    yield claim(
        "The improvement over marginalising grows with K/L, at the order of √(K/L), where effects are far more "
        "uncertain than actions", "1222", slope(np.log(sizes), ratios),
        detail="slope of log(regret of LinTS / regret of meTS-Lin) against log K: above zero it grows, and 0.5 "
        "would be the root; ratios " + ", ".join(
            f"K={K:.0f}: {math.exp(value.mean):.2f}" for K, value in zip(sizes, ratios, strict=True)
        ),
    )  # fmt: skip


def _figures(results: Results, folder: Path) -> list[Path]:
    L, K = min(results.levels("L")), max(results.levels("K"))
    groups = {
        f"{text} (σ₀²={variance:g}), L={L}": final_series(results, results.where(action_variance=variance, L=L), "K")
        for text, variance in (("as usual", USUAL), ("small deviations", SMALL), ("no deviations", NONE))
    }
    effects = {f"K={K:,}, σ₀²=1": final_series(results, results.where(action_variance=USUAL, K=K), "L")}
    return [
        draw_series(groups, folder, "structure", "Final regret with more or less structure", xlabel="K"),
        draw_series(effects, folder, "effects", "Final regret with more effects, known and unknown", xlabel="L"),
    ]


STRUCTURE = METS.experiment(
    "mets-structure",
    order=3,
    title="What the structure is worth: effects known, exact, or ignored",
    thesis_lines="1197-1222",
    scales={
        "smoke": {"rounds": 120, "runs": 4, "K": [10, 40], "L": [3, 6]},
        "quick": {"rounds": 3_000, "runs": 12, "K": [20, 100, 500], "L": [3, 10]},
        "paper": {"rounds": 5_000, "runs": 50, "K": [20, 100, 500], "L": [3, 10]},
    },
    build=_cells,
    claims=_claims,
    figures=_figures,
    remarks=[
        "The thesis argues this with bounds and prints no sizes: d=2, σ_Ψ²=3, σ=1 are those of its synthetic problems, "
        f"K, L and the small σ₀²={SMALL} are this project's choice. Where σ₀=0 the agents' prior has the variance "
        f"1e-8 in its place. Effect variance {EFFECT_VARIANCE:g} throughout."
    ],
)

__all__ = ["STRUCTURE"]
