"""dTS in worlds drawn from a diffusion model, linear or not, as printed and with links of unit gain (thesis, lines 1613-1633)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from manyarms_thesis.dts.builders import BASELINES, JACOBIAN, synthetic_cell
from manyarms_thesis.dts.figures import regret_panels
from manyarms_thesis.harness.claims import Claim, claim, gain, measured, outperforms
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Cell, Experiment

REMARKS = [
    "A chain (its links) is drawn anew in every run. Regret is the expected one.",
    "Links scaled: every matrix is divided by the root of its fan-in (for W_l, of its columns that are not zero). As printed, "
    "with weights in [-1, 1], a chain of depth 4 makes what all actions have in common far larger than what sets them apart: "
    "a logistic reward is then nearly constant, and no choice matters.",
    "LinTS, LinUCB, GLM-TS and UCB-GLM have the marginal prior of an action, from 20,000 draws where links are not linear. "
    "HierTS is the thesis's HierTS-1 (all latents but the uppermost integrated out); it needs linear links and rewards. In "
    "logistic worlds dTS-LL and dTS-NL take sigma = 1 for their noise. “dTS-NL, jacobian” carries evidence up through linearised "
    "links, where the thesis's rule leaves the links out.",
]


def _cells(sizes: Mapping[str, Any]) -> list[Cell]:
    return [
        synthetic_cell(K, d, L, sizes["rounds"], runs, links=links, scaled=scaled, reward=reward)
        for scaled, runs in ((False, sizes["runs"]), (True, sizes["scaled_runs"]))
        for d, L in sizes["shapes"]
        for K in sizes["K"]
        for links in ("linear", "network")
        for reward in ("linear", "logistic")
    ]


def _claims(results: Results) -> list[Claim]:
    found = []
    for panel in results.panels:
        right, *others = [agent for agent in results.agents(panel) if agent.startswith("dTS") and agent != JACOBIAN]
        baselines = [agent for agent in results.agents(panel) if agent in BASELINES]
        found.append(outperforms(results, panel, right, baselines, f"{right} outperforms the baselines", "1631"))
        found += [
            outperforms(
                results, panel, wrong, baselines,
                f"{wrong}, right about the chain and wrong about the rewards, outperforms methods that know the rewards "
                "and ignore the chain", "1633",
            )
            for wrong in others
        ]  # fmt: skip
        if JACOBIAN in results.agents(panel):
            found.append(
                claim(
                    "Leaving the links out on the way up performs well: the rule with Jacobians has higher regret",
                    "3553-3556", gain(results, panel, right, JACOBIAN), panel=panel,
                    detail=f"final regret: {right} {measured(results.final(panel, right))}, with Jacobians "
                    f"{measured(results.final(panel, JACOBIAN))}",
                )
            )  # fmt: skip
    return found


def _figures(results: Results, folder: Path) -> list[Path]:
    return [
        regret_panels(results, results.where(scaled=scaled), folder, name, title)
        for scaled, name, title in (
            (False, "printed", "Regret in worlds drawn from a diffusion model, as printed"),
            (True, "scaled", "Regret in worlds drawn from a diffusion model, links scaled by 1/√(fan-in)"),
        )
    ]


SYNTHETIC = Experiment(
    name="dts-synthetic",
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

__all__ = ["REMARKS", "SYNTHETIC"]
