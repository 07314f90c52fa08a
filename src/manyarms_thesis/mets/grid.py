"""meTS in synthetic bandits with varying K, d and L (thesis, Section 3.4.1 and Appendix A.4)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from manyarms_thesis.harness.claims import Claim, gain, increasing, measured, saved
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.figures import draw_regret, final_series, regret_curves
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Cell
from manyarms_thesis.mets.agents import LINEAR, LOGISTIC_AGENTS
from manyarms_thesis.mets.common import METS, REMARKS, beats_baselines, synthetic_cell


def _cells(sizes: Sizes) -> list[Cell]:
    rounds, runs, effects = sizes["rounds"], sizes["runs"], sizes["L"]
    cells = [
        synthetic_cell(K, effects[0], d, agents, rounds, runs, reward=reward)
        for reward, agents in (("linear", LINEAR), ("logistic", LOGISTIC_AGENTS))
        for d in sizes["d"]
        for K in sizes["K"]
    ]
    return cells + [synthetic_cell(sizes["K"][-1], L, sizes["d"][0], LINEAR, rounds, runs) for L in effects[1:]]


def _claims(results: Results) -> list[Claim]:
    effects, dims, sizes = (results.levels(name) for name in ("L", "d", "K"))
    found = [
        made
        for panel in results.panels
        if results.parameter(panel, "L") == effects[0]
        for made in beats_baselines(results, panel, "3366")
    ]
    for reward, method, baseline in (("linear", "meTS-Lin", "LinTS"), ("logistic", "meTS-GLM", "GLM-TS")):
        for d in dims:
            by_size = {f"K={K}": results.where(reward=reward, d=d, K=K, L=effects[0])[0] for K in sizes}
            found.append(
                increasing(
                    {name: measured(results.final(panel, method)) for name, panel in by_size.items()},
                    f"A higher K leads to a higher regret of {method}", "1238", panel=f"{reward}, d={d}",
                )
            )  # fmt: skip
            found.append(
                increasing(
                    {name: gain(results, panel, method, baseline) for name, panel in by_size.items()},
                    f"The gain of {method} over {baseline} becomes smaller when K/L decreases (by K)", "3366",
                    panel=f"{reward}, d={d}",
                )
            )  # fmt: skip
        for K in sizes:
            by_dim = {f"d={d}": results.where(reward=reward, d=d, K=K, L=effects[0])[0] for d in dims}
            found.append(
                increasing(
                    {name: measured(results.final(panel, method)) for name, panel in by_dim.items()},
                    f"A higher d leads to a higher regret of {method}", "1238", panel=f"{reward}, K={K}",
                )
            )  # fmt: skip
    return found + _growing_effects(results, effects, sizes[-1], dims[0])


def _growing_effects(results: Results, effects: Sequence[int], K: int, d: int) -> list[Claim]:
    panels = {f"L={L}": results.where(reward="linear", d=d, K=K, L=L)[0] for L in effects}
    falling = dict(reversed(panels.items()))
    where = f"linear, K={K}, d={d}"
    return [
        increasing(
            {name: measured(results.final(panel, "meTS-Lin")) for name, panel in panels.items()},
            "A higher L leads to a higher regret of meTS-Lin", "1238", panel=where,
        ),
        increasing(
            {name: gain(results, panel, "meTS-Lin", "LinTS") for name, panel in falling.items()},
            "The gain of meTS-Lin over LinTS becomes smaller when K/L decreases (by L)", "3366", panel=where,
        ),
        increasing(
            {name: saved(results, panel, "meTS-Lin", "LinTS") for name, panel in falling.items()},
            "The gain of meTS-Lin, as a share of LinTS's regret, becomes smaller when K/L decreases (by L)", "3366",
            panel=where,
        ),
    ]  # fmt: skip


def _figures(results: Results, folder: Path) -> list[Path]:
    drawn = [
        regret_curves(
            results, results.where(reward=reward, L=results.levels("L")[0]), folder, f"regret-{reward}",
            f"Regret in {reward} problems with varying d and K", columns=len(results.levels("K")),
        )
        for reward in ("linear", "logistic")
    ]  # fmt: skip
    last = results.panels[-1]
    K, d = results.parameter(last, "K"), results.parameter(last, "d")
    panels = results.where(reward="linear", K=K, d=d)
    more_effects = {f"linear, K={K}, d={d}": final_series(results, panels, "L")}
    return [*drawn, draw_regret(more_effects, "L", folder, "effects", "Final regret with more effects")]


GRID = METS.experiment(
    "mets-grid",
    order=2,
    title="meTS in synthetic bandits with varying K, d and L",
    thesis_lines="1238, 3357-3383",
    scales={
        "smoke": {"rounds": 60, "runs": 3, "K": [10, 30], "d": [2, 3], "L": [3, 6]},
        "quick": {"rounds": 1_000, "runs": 12, "K": [20, 50, 100], "d": [2, 5], "L": [3, 5, 10, 20]},
        "paper": {"rounds": 5_000, "runs": 50, "K": [20, 50, 100], "d": [2, 5], "L": [3, 5, 10, 20]},
    },
    build=_cells,
    claims=_claims,
    figures=_figures,
    remarks=[
        *REMARKS,
        "The thesis does not print the numbers of effects behind “a higher L”: they are this project's choice.",
    ],
)


__all__ = ["GRID"]
