"""meTS with wrong hyper-parameters (thesis, Appendix A.4.3)."""

from __future__ import annotations

from collections.abc import Iterator

from manyarms_thesis.harness.claims import Claim, claim, measured, outperforms
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.figures import regret_curves
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Cell
from manyarms_thesis.mets.agents import LINEAR_BASELINES
from manyarms_thesis.mets.common import METS, REMARKS, synthetic_cell


def _cells(sizes: Sizes) -> list[Cell]:
    return [synthetic_cell(sizes, ("meTS-Lin-mis", "meTS-Lin", *LINEAR_BASELINES), K) for K in sizes["K"]]


def _claims(results: Results) -> Iterator[Claim]:
    for panel in results.panels:
        statement = "Misspecified meTS-Lin still performs better than well-specified baselines"
        yield outperforms(results, panel, "meTS-Lin-mis", LINEAR_BASELINES, statement, "3402")
        best = min(LINEAR_BASELINES, key=lambda name: float(results.final(panel, name).mean()))
        wrong, right, baseline = (results.final(panel, name) for name in ("meTS-Lin-mis", "meTS-Lin", best))
        yield claim(
            "Misspecified meTS-Lin performs similarly to meTS-Lin: it is nearer to it than to the best baseline",
            "3402", measured((baseline - wrong) - (wrong - right)), panel=panel,
            detail=f"lost to misspecification {measured(wrong - right)}; still ahead of {best} by "
            f"{measured(baseline - wrong)}; the figure is the second less the first",
        )  # fmt: skip


MISSPECIFIED = METS.experiment(
    "mets-misspecified",
    order=6,
    title="meTS with wrong hyper-parameters",
    thesis_lines="3400-3410",
    scales={
        "smoke": {"rounds": 150, "runs": 4, "K": [20, 40]},
        "quick": {"rounds": 4_000, "runs": 16, "K": [20, 50, 100]},
        "paper": {"rounds": 5_000, "runs": 50, "K": [20, 50, 100]},
    },
    build=_cells,
    claims=_claims,
    figures=lambda results, folder: [
        regret_curves(results, results.panels, folder, "regret", "Regret with misspecified hyper-parameters")
    ],
    remarks=[
        *REMARKS,
        "The effects' prior mean is zero in this world, so that its constant c2 changes nothing. “Similarly” is "
        "measured as: nearer to well-specified meTS-Lin than to the best baseline.",
    ],
)

__all__ = ["MISSPECIFIED"]
