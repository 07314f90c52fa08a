"""What the logarithm does: cLPI against cIPS over tau, and RegKL against RegKL-LIN over beta (thesis, Appendix D.4.5)."""

from __future__ import annotations

from pathlib import Path

from manyarms_thesis.harness.claims import Claim
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.learning import ahead_both, by_data, flag_data, steadier
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Cell
from manyarms_thesis.pwll.common import LEARNED, PAPER, QUICK, SMOKE, learners, logged_cell, worlds
from manyarms_thesis.pwll.figures import against

TWINS = {"tau": ("cLPI", "cIPS"), "beta": ("RegKL", "RegKL-LIN")}


def _cells(sizes: Sizes) -> list[Cell]:
    cells = []
    for data, world in worlds(sizes).items():
        for name, twins in TWINS.items():
            for value in sizes[f"{name}s"]:
                methods = learners(twins, sizes, **{name: value})
                title, swept = f"{data}, {name}={value:g}", {"of": name, name: value}
                cells.append(logged_cell(title, world, methods, sizes["runs"], **swept))
    return cells


def _claims(results: Results) -> list[Claim]:
    found = []
    for data in by_data(results):
        for name, (log, linear) in TWINS.items():
            panels = results.where(data=data, of=name)
            line = "5566" if name == "tau" else "5568"
            found += ahead_both(
                results, panels, log, [linear], f"{log} dominates {linear} for every {name}", line, panel=data
            )
            found.append(
                steadier(
                    results, panels, [log], [linear],
                    f"The logarithm gives greater robustness to {name}: {log} against {linear}", "5571", panel=data,
                )
            )  # fmt: skip
    return flag_data(results, found)


def _figures(results: Results, folder: Path) -> list[Path]:
    paths = []
    for name, twins in TWINS.items():
        groups = {data: results.where(data=data, of=name) for data in by_data(results)}
        title = f"{twins[0]} (log) against {twins[1]} (linear)"
        paths.append(against(results, groups, name, folder, f"log-{name}", title, name))
    return paths


LOG = LEARNED.experiment(
    "pwll-log",
    order=11,
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
        "The thesis prints no values of tau, and of beta only that it is at least 0.1: below it exp(1 / beta) passes 22,026. At "
        "tau = 1 cLPI is LPI. RegKL weights every row, also those without reward: unless beta is small it imitates the "
        "logging policy.",
    ],
)  # fmt: skip

__all__ = ["LOG"]
