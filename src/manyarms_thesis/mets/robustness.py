"""meTS with wrong hyper-parameters, and where its structure matters less (thesis, lines 3400-3420)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from manyarms_thesis.harness.claims import Claim, claim, gain, measured, outperforms
from manyarms_thesis.harness.figures import regret_curves
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Cell, Experiment
from manyarms_thesis.mets.builders import LINEAR_BASELINES
from manyarms_thesis.mets.synthetic import REMARKS, synthetic_cell


def _misspecified_cells(sizes: Mapping[str, Any]) -> list[Cell]:
    agents = ("meTS-Lin-mis", "meTS-Lin", *LINEAR_BASELINES)
    return [synthetic_cell(K, 3, 2, agents, sizes["rounds"], sizes["runs"]) for K in sizes["K"]]


def _misspecified_claims(results: Results) -> list[Claim]:
    found = []
    for panel in results.panels:
        found.append(
            outperforms(
                results, panel, "meTS-Lin-mis", LINEAR_BASELINES,
                "Misspecified meTS-Lin still performs better than well-specified baselines", "3402",
            )
        )  # fmt: skip
        best = min(LINEAR_BASELINES, key=lambda name: float(results.final(panel, name).mean()))
        wrong, right, baseline = (results.final(panel, name) for name in ("meTS-Lin-mis", "meTS-Lin", best))
        found.append(
            claim(
                "Misspecified meTS-Lin performs similarly to meTS-Lin: it is nearer to it than to the best baseline",
                "3402", measured((baseline - wrong) - (wrong - right)), panel=panel,
                detail=f"lost to misspecification {measured(wrong - right)}; still ahead of {best} by "
                f"{measured(baseline - wrong)}; the figure is the second less the first",
            )
        )  # fmt: skip
    return found


MISSPECIFIED = Experiment(
    name="mets-misspecified",
    title="meTS with wrong hyper-parameters",
    thesis_lines="3400-3410",
    scales={
        "smoke": {"rounds": 150, "runs": 4, "K": [20, 40]},
        "quick": {"rounds": 4_000, "runs": 16, "K": [20, 50, 100]},
        "paper": {"rounds": 5_000, "runs": 50, "K": [20, 50, 100]},
    },
    build=_misspecified_cells,
    claims=_misspecified_claims,
    figures=lambda results, folder: [
        regret_curves(results, results.panels, folder, "regret", "Regret with misspecified hyper-parameters")
    ],
    remarks=[
        *REMARKS,
        "The effects' prior mean is zero in this world, so that its constant c2 changes nothing. “Similarly” is "
        "measured as: nearer to well-specified meTS-Lin than to the best baseline.",
    ],
)


def _uncertain_cells(sizes: Mapping[str, Any]) -> list[Cell]:
    agents = ("meTS-Lin", "meTS-Lin-Fa", *LINEAR_BASELINES)
    return [
        synthetic_cell(
            K, 3, 2, agents, sizes["rounds"], sizes["runs"], effect_variance=effect, action_variance=action,
            name=f"{which} more uncertain, K={K}",
        )
        for which, effect, action in (("actions", 1.0, 3.0), ("effects", 3.0, 1.0))
        for K in sizes["K"]
    ]  # fmt: skip


def _uncertain_claims(results: Results) -> list[Claim]:
    found = []
    for panel in results.where(action_variance=3.0):
        K = results.parameter(panel, "K")
        (other,) = results.where(action_variance=1.0, K=K)
        found.append(
            outperforms(
                results, panel, "meTS-Lin", LINEAR_BASELINES,
                "meTS-Lin still outperforms the baselines when actions are more uncertain than effects", "3412",
            )
        )  # fmt: skip
        here, there = (gain(results, name, "meTS-Lin", "LinTS") for name in (panel, other))
        found.append(
            claim(
                "The gap to LinTS shrinks when the actions are more uncertain than the effects", "3412", there - here,
                panel=f"K={K}", detail=f"gap with uncertain effects {there}, with uncertain actions {here}",
            )
        )  # fmt: skip
    return found


UNCERTAIN = Experiment(
    name="mets-uncertain",
    title="meTS where actions are more uncertain than effects",
    thesis_lines="3411-3420",
    scales={
        "smoke": {"rounds": 120, "runs": 4, "K": [20, 40]},
        "quick": {"rounds": 3_000, "runs": 12, "K": [20, 50, 100]},
        "paper": {"rounds": 5_000, "runs": 50, "K": [20, 50, 100]},
    },
    build=_uncertain_cells,
    claims=_uncertain_claims,
    figures=lambda results, folder: [
        regret_curves(
            results, results.panels, folder, "regret", "Regret by what is uncertain",
            columns=len(results.panels) // 2,
        )
    ],
    remarks=[
        *REMARKS,
        "The panels with uncertain effects are the thesis's first setting, run beside the others for the comparison.",
    ],
)  # fmt: skip


__all__ = ["MISSPECIFIED", "UNCERTAIN"]
