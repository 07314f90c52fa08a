"""What the structure is worth (thesis, Section 3.3.2): effects known, actions without deviations, effects ignored."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from manyarms_thesis.harness.claims import (
    Claim,
    Measured,
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
from manyarms_thesis.harness.figures import Drawn, draw_series, final_series
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Cell
from manyarms_thesis.mets.agents import KNOWN
from manyarms_thesis.mets.common import (
    CONTEXT_ACCURACY,
    EFFECT_VARIANCE,
    EQUAL,
    METS,
    REMARKS,
    both_schemes,
    printed,
    synthetic_cell,
)

# sigma_0^2: as in the other experiments; far below sigma_Psi^2; none at all
USUAL, SMALL, NONE = 1.0, 0.03, 0.0
ROOT = 0.5
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
    K, agents = sizes["K"][-1], ("meTS-Lin", KNOWN, "LinTS")
    for L in sizes["L"]:
        yield synthetic_cell(sizes, agents, K, L, name=f"K={K:,}, L={L}, σ₀²={USUAL:g}", equal=True)


def _claims(results: Results) -> list[Claim]:
    effects = results.levels("L")
    L = effects[0]
    by_variance = {
        variance: {results.parameter(panel, "K"): panel for panel in printed(results, action_variance=variance, L=L)}
        for variance in (USUAL, SMALL, NONE)
    }
    largest = max(by_variance[USUAL])
    by_effects = {n: printed(results, action_variance=USUAL, K=largest, L=n)[0] for n in effects}
    equal = {n: results.where(weights="unit", L=n)[0] for n in effects}
    return [
        *_known_effects(results, by_variance[USUAL], by_effects, equal),
        *_no_deviations(results, by_variance[USUAL], by_variance[NONE]),
        *_marginalised(results, by_variance[USUAL], by_variance[SMALL]),
    ]


def _known_effects(
    results: Results, by_size: Mapping[int, str], by_effects: Mapping[int, str], equal: Mapping[int, str]
) -> Iterator[Claim]:
    for panel in by_size.values():
        statement = "Knowing the effects reduces regret: meTS pays for learning them"
        yield lower_regret(results, panel, KNOWN, "meTS-Lin", statement, "1199-1203")
    # with known effects the bound no longer depends on L; measured is the other side, what learning them costs
    statement = "What learning the effects costs grows with their number L"
    for panels, lines, where in ((by_effects, "1199-1203", ""), (equal, "", EQUAL)):
        ends = {f"L={L}": panels[L] for L in (min(panels), max(panels))}
        yield increasing(gains(results, ends, KNOWN, "meTS-Lin"), statement, lines, panel=where)


def _no_deviations(results: Results, usual: Mapping[int, str], none: Mapping[int, str]) -> Iterator[Claim]:
    fewest, most = min(none), max(none)
    regrets = {K: [measured(results.final(panels[K], "meTS-Lin")) for panels in (usual, none)] for K in none}
    with_deviations, without = (regrets[most][i] - regrets[fewest][i] for i in (0, 1))
    shown = f"growth of meTS-Lin's final regret from K={fewest} to K={most}: {with_deviations} with σ₀²=1, {without} with σ₀=0"
    yield claim(
        "The dependence of regret on K arises from the deviations of actions from the effects (σ₀)", "1207",
        with_deviations - without, detail=f"{shown}; the figure is the difference",
    )  # fmt: skip
    yield claim(
        "Without deviations from the effects (σ₀ = 0) regret is independent of K: its growth is nearer to none than to that with "
        "them", "1203-1207", with_deviations - (without if without.mean > 0 else -without).times(2),
        detail=f"{shown}; the figure is the first less twice the second",
    )  # fmt: skip
    for K, (deviating, exact) in regrets.items():
        statement = "Without deviations from the effects regret is lower than with them"
        yield claim(statement, "1195", deviating - exact, panel=f"K={K:,}")


def _marginalised(results: Results, usual: Mapping[int, str], small: Mapping[int, str]) -> Iterator[Claim]:
    for panel in (*usual.values(), *small.values()):
        statement = "Ignoring the effects (marginalising them out) leads to larger regret when K > L"
        yield claim(statement, "1209-1222", gain(results, panel, "meTS-Lin", "LinTS"), panel=panel)
    statement = "meTS significantly outperforms classical methods when effects are more uncertain than actions"
    for panels, lines in ((usual, "1222"), (small, "")):  # the thesis's own experiments have the usual variances
        for panel in panels.values():
            yield outperforms(results, panel, "meTS-Lin", ("LinTS", "LinUCB"), statement, lines)
    sizes = np.array(sorted(small), dtype=np.float64)
    ratios = [logarithm(ratio(results, small[int(K)], "meTS-Lin", "LinTS")) for K in sizes]
    grown = slope(np.log(sizes), ratios)
    shown = "slope of log(regret of LinTS / regret of meTS-Lin) against log K; ratios " + ", ".join(
        f"K={K:.0f}: {math.exp(value.mean):.2f}" for K, value in zip(sizes, ratios, strict=True)
    )
    where = "where effects are far more uncertain than actions"
    yield claim(f"The improvement over marginalising grows with K/L {where}", "1222", grown, detail=shown)
    yield claim(
        f"The improvement over marginalising is on the order of √(K/L) {where}: nearer to that root than to none", "1222",
        grown - Measured(ROOT / 2, 0.0),
        detail=f"{grown}, where {ROOT} is the root: the figure is what it is above half of that; {shown}",
    )  # fmt: skip


def _figures(results: Results, folder: Path) -> list[Drawn]:
    L, K = min(results.levels("L")), max(results.levels("K"))
    groups = {
        f"{text} (σ₀²={variance:g}), L={L}": final_series(results, printed(results, action_variance=variance, L=L), "K")
        for text, variance in (("as usual", USUAL), ("small deviations", SMALL), ("no deviations", NONE))
    }
    effects = {
        "weights as in the thesis": final_series(results, printed(results, action_variance=USUAL, K=K), "L"),
        "equal variance of every action": final_series(results, results.where(weights="unit"), "L"),
    }
    return [
        draw_series(
            groups, folder, "structure", "Final regret with more or less structure", xlabel="K",
            seen="The less actions deviate from what their effects say (from left to right), the less more actions cost meTS, "
            "and the more LinTS loses by ignoring the effects.",
        ),
        draw_series(
            effects, folder, "effects", f"Final regret with more effects, known and unknown, K={K:,}", xlabel="L", columns=2,
            seen="What learning the effects costs is the distance between meTS-Lin and meTS that knows them.",
        ),
    ]  # fmt: skip


STRUCTURE = METS.experiment(
    "mets-structure",
    order=3,
    title="What the structure is worth: effects known, exact, or ignored",
    thesis_lines="1197-1222",
    scales={
        "smoke": {"rounds": 120, "runs": 4, "K": [10, 40], "L": [3, 6]},
        "quick": {"rounds": 3_000, "runs": 12, "K": [20, 100, 500], "L": [3, 10]},
        "paper": {"rounds": 5_000, "runs": 50, "context_runs": 20, "K": [20, 100, 500], "L": [3, 10]},
    },
    build=lambda sizes: both_schemes(sizes, _cells(sizes)),
    accuracy=CONTEXT_ACCURACY,
    claims=_claims,
    figures=_figures,
    question="What is the structure worth: what would meTS gain if it were told the effects, does the number of actions stop "
    "mattering when actions are exactly what their effects say, and what does ignoring the effects cost?",
    setting="K = {K} actions and L = {L} effects in d = 2 dimensions with linear rewards; actions deviate from their effects as "
    "usual (variance 1), little (0.03) or not at all (0). meTS, meTS that knows the effects, LinTS and LinUCB play {rounds} "
    "rounds, {runs} times.",
    remarks=[
        *REMARKS,
        "The thesis argues this with bounds and prints no sizes: d=2, σ_Ψ²=3, σ=1 are those of its synthetic problems, "
        f"K, L and the small σ₀²={SMALL} are this project's choice. Where σ₀=0 the agents' prior has the variance "
        f"1e-8 in its place. Effect variance {EFFECT_VARIANCE:g} throughout.",
        "Equal marginal variance: mixing weights of length one (κ_b = 1, as the thesis's simplified rates assume), so that every "
        "action's marginal covariance is (σ₀² + σ_Ψ²) I for every L. With weights uniform on [-1, 1], as printed, it grows "
        "with L.",
    ],
)  # fmt: skip

__all__ = ["STRUCTURE"]
