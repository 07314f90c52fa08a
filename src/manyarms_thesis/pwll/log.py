"""What the logarithm does: cLPI against cIPS over tau, and RegKL against RegKL-LIN over beta (thesis, lines 5561-5595)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from manyarms_thesis.harness.claims import Claim
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Cell, Experiment
from manyarms_thesis.pwll.builders import cell
from manyarms_thesis.pwll.claims import both, flagged, steadier
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

TWINS = {"tau": ("cLPI", "cIPS"), "beta": ("RegKL", "RegKL-LIN")}


def _cells(sizes: Mapping[str, Any]) -> list[Cell]:
    cells = []
    for data, world in worlds(sizes).items():
        for name, twins in TWINS.items():
            for value in sizes[f"{name}s"]:
                agents = learners(twins, sizes, **{name: value})
                parameters = described(world) | {"of": name, name: value}
                cells.append(cell(f"{data}, {name}={value:g}", parameters, world, agents, sizes["runs"]))
    return cells


def _claims(results: Results) -> list[Claim]:
    found = []
    for data in dict.fromkeys(results.parameter(panel, "data") for panel in results.panels):
        for name, (log, linear) in TWINS.items():
            panels = results.where(data=data, of=name)
            line = "5566" if name == "tau" else "5568"
            found += both(
                results, panels, log, [linear], f"{log} dominates {linear} for every {name}", line, panel=data
            )
            found.append(
                steadier(
                    results, panels, [log], [linear],
                    f"The logarithm gives greater robustness to {name}: {log} against {linear}", "5571", panel=data,
                )
            )  # fmt: skip
    return flagged(results, found)


def _figures(results: Results, folder: Path) -> list[Path]:
    paths = []
    for name, twins in TWINS.items():
        groups = {
            data: results.where(data=data, of=name)
            for data in dict.fromkeys(results.parameter(panel, "data") for panel in results.panels)
        }
        title = f"{twins[0]} (log) against {twins[1]} (linear)"
        paths.append(against(results, groups, name, folder, f"log-{name}", title, name))
    return paths


LOG = Experiment(
    name="pwll-log",
    title="The logarithm, and the parameters tau and beta",
    thesis_lines="5561-5595",
    scales={
        "smoke": SMOKE | {"taus": [0.001, 0.1], "betas": [0.1, 1.0]},
        "quick": QUICK | {"runs": 3, "taus": [0.0001, 0.001, 0.01, 0.1, 1.0], "betas": [0.1, 0.2, 0.5, 1.0]},
        "paper": PAPER | {"taus": [0.0001, 0.001, 0.01, 0.1, 1.0], "betas": [0.1, 0.2, 0.5, 1.0, 2.0]},
    },
    build=_cells,
    claims=_claims,
    figures=_figures,
    remarks=[
        *REMARKS,
        "The thesis prints no values of tau, and of beta only that it is at least 0.1: below it exp(1 / beta) passes 22,026. At "
        "tau = 1 cLPI is LPI. RegKL weights every row, also those without reward: unless beta is small it imitates the "
        "logging policy.",
    ],
    warnings=made_up_warnings,
    caption=CAPTION,
    numbers=NUMBERS,
)  # fmt: skip

__all__ = ["LOG"]
