"""meTS in synthetic bandits with varying K, d and L (thesis, Section 3.4.1 and Appendix A.4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from manyarms_thesis.harness.claims import Claim, final_regrets, gains, increasing, saved
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.figures import draw_series, final_series, regret_curves
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Cell
from manyarms_thesis.mets.agents import LINEAR, LOGISTIC_AGENTS
from manyarms_thesis.mets.common import METS, REMARKS, beats_baselines, synthetic_cell


def _cells(sizes: Sizes) -> Iterator[Cell]:
    for reward, agents in (("linear", LINEAR), ("logistic", LOGISTIC_AGENTS)):
        for d in sizes["d"]:
            for K in sizes["K"]:
                yield synthetic_cell(sizes, agents, K, sizes["L"][0], d, reward=reward)
    for L in sizes["L"][1:]:
        yield synthetic_cell(sizes, LINEAR, sizes["K"][-1], L, sizes["d"][0])


def _claims(results: Results) -> Iterator[Claim]:
    effects, dims, sizes = (results.levels(name) for name in ("L", "d", "K"))
    for panel in results.where(L=effects[0]):
        yield from beats_baselines(results, panel, "3366")
    for reward, method, baseline in (("linear", "meTS-Lin", "LinTS"), ("logistic", "meTS-GLM", "GLM-TS")):
        panels = {(d, K): results.where(reward=reward, d=d, K=K, L=effects[0])[0] for d in dims for K in sizes}
        for d in dims:
            by_size, where = {f"K={K}": panels[d, K] for K in sizes}, f"{reward}, d={d}"
            regrets, ahead = final_regrets(results, by_size, method), gains(results, by_size, method, baseline)
            yield increasing(regrets, f"A higher K leads to a higher regret of {method}", "1238", panel=where)
            statement = f"The gain of {method} over {baseline} becomes smaller when K/L decreases (by K)"
            yield increasing(ahead, statement, "3366", panel=where)
        for K in sizes:
            regrets = final_regrets(results, {f"d={d}": panels[d, K] for d in dims}, method)
            statement = f"A higher d leads to a higher regret of {method}"
            yield increasing(regrets, statement, "1238", panel=f"{reward}, K={K}")
    yield from _growing_effects(results, effects, sizes[-1], dims[0])


def _growing_effects(results: Results, effects: Sequence[int], K: int, d: int) -> Iterator[Claim]:
    panels = {f"L={L}": results.where(reward="linear", d=d, K=K, L=L)[0] for L in effects}
    falling = dict(reversed(panels.items()))
    where = f"linear, K={K}, d={d}"
    regrets, ahead = final_regrets(results, panels, "meTS-Lin"), gains(results, falling, "meTS-Lin", "LinTS")
    yield increasing(regrets, "A higher L leads to a higher regret of meTS-Lin", "1238", panel=where)
    statement = "The gain of meTS-Lin over LinTS becomes smaller when K/L decreases (by L)"
    yield increasing(ahead, statement, "3366", panel=where)
    shares = {name: saved(results, panel, "meTS-Lin", "LinTS") for name, panel in falling.items()}
    statement = "The gain of meTS-Lin, as a share of LinTS's regret, becomes smaller when K/L decreases (by L)"
    yield increasing(shares, statement, "3366", panel=where)


def _figures(results: Results, folder: Path) -> Iterator[Path]:
    for reward in ("linear", "logistic"):
        panels = results.where(reward=reward, L=results.levels("L")[0])
        title = f"Regret in {reward} problems with varying d and K"
        yield regret_curves(results, panels, folder, f"regret-{reward}", title, columns=len(results.levels("K")))
    last = results.panels[-1]
    K, d = results.parameter(last, "K"), results.parameter(last, "d")
    panels = results.where(reward="linear", K=K, d=d)
    more_effects = {f"linear, K={K}, d={d}": final_series(results, panels, "L")}
    yield draw_series(more_effects, folder, "effects", "Final regret with more effects", xlabel="L")


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
