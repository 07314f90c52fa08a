"""dTS in worlds drawn from a diffusion model, linear or not, as printed and with links of unit gain (thesis, Section 4.4.1)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from manyarms_thesis.dts.agents import BASELINES, JACOBIAN, MOMENTS
from manyarms_thesis.dts.common import DTS, REMARKS, synthetic_cell
from manyarms_thesis.harness.claims import Claim, lower_regret, outperforms
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.figures import regret_curves
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Cell


def _cells(sizes: Sizes) -> list[Cell]:
    return [
        synthetic_cell({**sizes, "runs": runs}, K, d, L, links=links, scaled=scaled, reward=reward)
        for scaled, runs in ((False, sizes["runs"]), (True, sizes["scaled_runs"]))
        for d, L in sizes["shapes"]
        for K in sizes["K"]
        for links in ("linear", "network")
        for reward in ("linear", "logistic")
    ]


def _claims(results: Results) -> Iterator[Claim]:
    for panel in results.panels:
        own = [agent for agent in results.methods(panel) if agent.startswith("dTS")]
        right, *others = [agent for agent in own if agent not in (JACOBIAN, MOMENTS)]
        baselines = [agent for agent in results.methods(panel) if agent in BASELINES]
        yield outperforms(results, panel, right, baselines, f"{right} outperforms the baselines", "1631")
        for wrong in others:
            yield outperforms(
                results, panel, wrong, baselines,
                f"{wrong}, right about the chain and wrong about the rewards, outperforms methods that know the rewards "
                "and ignore the chain", "1633",
            )  # fmt: skip
        if JACOBIAN in results.methods(panel):
            statement = "Leaving the links out on the way up performs well: the rule with Jacobians has higher regret"
            yield lower_regret(results, panel, right, JACOBIAN, statement, "3553-3556")


def _figures(results: Results, folder: Path) -> Iterator[Path]:
    title = "Regret in worlds drawn from a diffusion model, "
    for scaled, name, words in ((False, "printed", "as printed"), (True, "scaled", "links scaled by 1/√(fan-in)")):
        yield regret_curves(results, results.where(scaled=scaled), folder, name, title + words, columns=4)


SYNTHETIC = DTS.experiment(
    "dts-synthetic",
    order=1,
    title="dTS where the truth is a diffusion model",
    thesis_lines="1613-1633",
    scales={
        "smoke": {"rounds": 60, "runs": 2, "scaled_runs": 2, "K": [20, 200], "shapes": [[5, 2], [20, 4]]},
        "quick": {"rounds": 1_500, "runs": 6, "scaled_runs": 6, "K": [100, 1_000], "shapes": [[5, 2], [20, 4]]},
        "paper": {"rounds": 5_000, "runs": 50, "scaled_runs": 10, "K": [100, 10_000], "shapes": [[5, 2], [20, 4]]},
    },
    build=_cells,
    claims=_claims,
    figures=_figures,
    remarks=REMARKS,
)

__all__ = ["SYNTHETIC"]
