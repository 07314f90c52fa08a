"""Objective-aware parametrisation: softmax policies over all actions or over the logging support (thesis, lines 2320-2330)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from manyarms_thesis.harness.claims import Claim
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Cell, Experiment
from manyarms_thesis.pwll.builders import cell
from manyarms_thesis.pwll.claims import OF_MODES, ahead, by_data, flagged, steadier
from manyarms_thesis.pwll.common import (
    CAPTION,
    NUMBERS,
    PAPER,
    QUICK,
    REMARKS,
    SMOKE,
    described,
    learners,
    made_up_warnings,
    worlds,
)  # fmt: skip
from manyarms_thesis.pwll.figures import against

OBJECTIVES = ("IPS", "cLPI")
SUPPORT = ", support"


def _cells(sizes: Mapping[str, Any]) -> list[Cell]:
    cells = []
    for data, world in worlds(sizes).items():
        for rate in sizes["rates"]:
            for schedule in sizes["schedules"]:
                for batch in sizes["batches"]:
                    how = {"schedule": schedule, "batch": batch, "rate": rate}
                    agents = learners(OBJECTIVES, sizes, **how)
                    agents |= learners(OBJECTIVES, sizes, **how, suffix=SUPPORT, space="support")
                    panel = f"{data}, rate {rate:g}, {schedule}, batch {batch}"
                    cells.append(cell(panel, described(world) | how, world, agents, sizes["runs"]))
    return cells


def _claims(results: Results) -> list[Claim]:
    found = []
    for data, panels in by_data(results).items():
        for name in OBJECTIVES:
            lines = "2322"
            statement = (
                "IPS restricted to the logging support achieves higher reward than IPS over all actions, in every configuration"
                if name == "IPS"
                else "cLPI achieves even better performance with the restricted support, in every configuration"
            )
            for column in ("value", OF_MODES):
                found.append(
                    ahead(results, panels, name + SUPPORT, [name], statement, lines, column=column, panel=data)
                )
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
    return flagged(results, found)


def _figures(results: Results, folder: Path) -> list[Path]:
    paths = []
    for data, panels in by_data(results).items():
        groups: dict[str, list[str]] = {}
        for panel in panels:
            schedule, rate = results.parameter(panel, "schedule"), results.parameter(panel, "rate")
            groups.setdefault(f"{schedule}, rate {rate:g}", []).append(panel)
        paths.append(
            against(
                results, groups, "batch", folder, f"support-{data}",
                f"All actions against the logging support, on {data}", "batch size",
                columns=len({results.parameter(panel, "schedule") for panel in panels}),
            )
        )  # fmt: skip
    return paths


SUPPORTED = Experiment(
    name="pwll-support",
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
        *REMARKS,
        "On the support, only the vectors of actions that a batch lists are touched, and Adam is lazy: the others keep their "
        "moments until they are listed again.",
    ],
    warnings=made_up_warnings,
    caption=CAPTION,
    numbers=NUMBERS,
)  # fmt: skip

__all__ = ["SUPPORTED"]
