"""meTS in the synthetic worlds that it assumes (thesis, Section 3.4.1)."""

from __future__ import annotations

from manyarms_thesis.harness.claims import Claim, claim, gain
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.figures import regret_curves
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Cell
from manyarms_thesis.mets.agents import LINEAR, LOGISTIC_AGENTS
from manyarms_thesis.mets.common import METS, REMARKS, beats_baselines, highest_regret, synthetic_cell


def _cells(sizes: Sizes) -> list[Cell]:
    return [
        synthetic_cell(sizes, LINEAR, sizes["K"]),
        synthetic_cell(sizes, (*LOGISTIC_AGENTS, "GLM-UCB"), sizes["K"], reward="logistic"),
    ]


def _claims(results: Results) -> list[Claim]:
    linear, logistic = results.panels
    others = [name for name in results.methods(logistic) if name != "GLM-UCB"]
    return [
        *beats_baselines(results, linear, "1238"),
        *beats_baselines(results, logistic, "1238"),
        claim(
            "meTS-GLM outperforms meTS-Lin in the logistic bandit", "1238",
            gain(results, logistic, "meTS-GLM", "meTS-Lin"), panel=logistic,
            detail="final regret of meTS-Lin less that of meTS-GLM, in the same worlds",
        ),
        highest_regret(results, logistic, "GLM-UCB", others, "1234"),
    ]  # fmt: skip


SYNTHETIC = METS.experiment(
    "mets-synthetic",
    order=1,
    title="meTS in synthetic linear and logistic bandits",
    thesis_lines="1229-1244",
    scales={
        "smoke": {"rounds": 150, "runs": 4, "K": 40},
        "quick": {"rounds": 5_000, "runs": 16, "K": 100},
        "paper": {"rounds": 5_000, "runs": 50, "K": 100},
    },
    build=_cells,
    claims=_claims,
    figures=lambda results, folder: [
        regret_curves(results, results.panels, folder, "regret", "Regret in synthetic problems", columns=2)
    ],
    remarks=[
        *REMARKS,
        "In the logistic world the linear agents (meTS-Lin, HierTS) take sigma = 1 for their noise.",
    ],
)

__all__ = ["SYNTHETIC"]
