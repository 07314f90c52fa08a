"""Objective-aware parametrisation: softmax policies over all actions or over the logging support (thesis, Section 7.3.2)."""

from __future__ import annotations

from pathlib import Path

from manyarms_thesis.harness.claims import Claim
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.learning import ahead, ahead_both, by_data, flag_data, steadier
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Cell
from manyarms_thesis.pwll.common import LEARNED, PAPER, QUICK, SMOKE, learners, logged_cell, worlds
from manyarms_thesis.pwll.figures import by_batch

OBJECTIVES = ("IPS", "cLPI")
SUPPORT = ", support"


def _cells(sizes: Sizes) -> list[Cell]:
    cells = []
    for data, world in worlds(sizes).items():
        for rate in sizes["rates"]:
            for schedule in sizes["schedules"]:
                for batch in sizes["batches"]:
                    how = {"schedule": schedule, "batch": batch, "rate": rate}
                    methods = learners(OBJECTIVES, sizes, **how)
                    methods |= learners(OBJECTIVES, sizes, **how, suffix=SUPPORT, space="support")
                    title = f"{data}, rate {rate:g}, {schedule}, batch {batch}"
                    cells.append(logged_cell(title, world, methods, sizes["runs"], **how))
    return cells


def _claims(results: Results) -> list[Claim]:
    found = []
    for data, panels in by_data(results).items():
        for name in OBJECTIVES:
            statement = (
                "IPS restricted to the logging support achieves higher reward than IPS over all actions, in every configuration"
                if name == "IPS"
                else "cLPI achieves even better performance with the restricted support, in every configuration"
            )
            found += ahead_both(results, panels, name + SUPPORT, [name], statement, "2322", panel=data)
        found.append(
            steadier(
                results, panels, ["IPS" + SUPPORT], ["IPS"],
                "IPS over all actions is unstable across batch sizes and schedules, restricted to the support it is robust",
                "2322", panel=data,
            )
        )  # fmt: skip
        found.append(
            ahead(
                results, panels, "cLPI" + SUPPORT, [*OBJECTIVES, "IPS" + SUPPORT],
                "cLPI with the restricted support is best of all", "5522", panel=data,
            )
        )  # fmt: skip
    return flag_data(results, found)


def _figures(results: Results, folder: Path) -> list[Path]:
    return [
        by_batch(results, panels, folder, f"support-{data}", f"All actions against the logging support, on {data}")
        for data, panels in by_data(results).items()
    ]


SUPPORTED = LEARNED.experiment(
    "pwll-support",
    order=6,
    title="Objective-aware parametrisation: the logging support in place of all actions",
    thesis_lines="2320-2330, 5463-5470",
    scales={
        "smoke": SMOKE | {"batches": [32, 256], "schedules": ["constant", "one-cycle"], "rates": [0.1]},
        "quick": QUICK | {
            "batches": [64, 256, 1_024], "schedules": ["constant", "one-cycle"], "rates": [0.01, 0.1],
        },
        "paper": PAPER | {
            "batches": [32, 256, 2_048], "schedules": ["constant", "one-cycle"],
            "rates": [0.001, 0.01],
        },
    },
    build=_cells,
    claims=_claims,
    figures=_figures,
    remarks=[
        "On the support, only the vectors of actions that a batch lists are touched, and Adam is lazy: the others keep their "
        "moments until they are listed again.",
    ],
)  # fmt: skip

__all__ = ["SUPPORTED"]
