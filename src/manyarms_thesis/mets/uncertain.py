"""meTS where its structure matters less: actions more uncertain than effects (thesis, Appendix A.4.4)."""

from __future__ import annotations

from collections.abc import Iterator

from manyarms_thesis.harness.claims import Claim, claim, gain, outperforms
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.figures import regret_curves
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Cell
from manyarms_thesis.mets.agents import LINEAR_BASELINES
from manyarms_thesis.mets.common import CONTEXT_ACCURACY, METS, REMARKS, both_schemes, synthetic_cell


def _cells(sizes: Sizes) -> Iterator[Cell]:
    agents = ("meTS-Lin", "meTS-Lin-Fa", *LINEAR_BASELINES)
    for which, effect, action in (("actions", 1.0, 3.0), ("effects", 3.0, 1.0)):
        for K in sizes["K"]:
            name = f"{which} more uncertain, K={K}"
            yield synthetic_cell(sizes, agents, K, effect_variance=effect, action_variance=action, name=name)


def _claims(results: Results) -> Iterator[Claim]:
    for panel in results.where(action_variance=3.0):
        K = results.parameter(panel, "K")
        (other,) = results.where(action_variance=1.0, K=K)
        statement = "meTS-Lin still outperforms the baselines when actions are more uncertain than effects"
        yield outperforms(results, panel, "meTS-Lin", LINEAR_BASELINES, statement, "3412")
        here, there = (gain(results, name, "meTS-Lin", "LinTS") for name in (panel, other))
        yield claim(
            "The gap to LinTS shrinks when the actions are more uncertain than the effects", "3412", there - here,
            panel=f"K={K}", detail=f"gap with uncertain effects {there}, with uncertain actions {here}",
        )  # fmt: skip


UNCERTAIN = METS.experiment(
    "mets-uncertain",
    order=7,
    title="meTS where actions are more uncertain than effects",
    thesis_lines="3411-3420",
    scales={
        "smoke": {"rounds": 120, "runs": 4, "K": [20, 40]},
        "quick": {"rounds": 3_000, "runs": 12, "K": [20, 50, 100]},
        "paper": {"rounds": 5_000, "runs": 50, "context_runs": 20, "K": [20, 50, 100]},
    },
    build=lambda sizes: both_schemes(sizes, _cells(sizes)),
    accuracy=CONTEXT_ACCURACY,
    claims=_claims,
    figures=lambda results, folder: [
        regret_curves(
            results, results.panels, folder, "regret", "Regret by what is uncertain",
            columns=len(results.panels) // 2,
            seen="Above, actions are more uncertain than effects, and sharing helps less; below, the other way round.",
        )
    ],
    question="meTS gains by learning effects that are shared. Is it still ahead where the effects tell little, because actions "
    "deviate from them more than the effects themselves vary?",
    setting="K = {K} actions, L = 3 effects, d = 2 dimensions, linear rewards; the effects' variance is 1 and that of the "
    "deviations 3, and beside it the other way round. meTS and its factored variant play {rounds} rounds against LinTS, LinUCB "
    "and HierTS, {runs} times.",
    remarks=[
        *REMARKS,
        "The panels with uncertain effects are the thesis's first setting, run beside the others for the comparison.",
    ],
)  # fmt: skip

__all__ = ["UNCERTAIN"]
