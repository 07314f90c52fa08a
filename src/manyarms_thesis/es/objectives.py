"""The correction fixed to clipping: our bound against those that were made for it (thesis, Section 8.7.1)."""

from __future__ import annotations

from pathlib import Path

from manyarms_thesis.es.common import (
    BASELINES,
    LEARNED,
    LOOSER,
    OURS,
    PAPER,
    QUICK,
    SMOKE,
    Method,
    above,
    cells,
    improves,
)
from manyarms_thesis.es.figures import every_series, lines
from manyarms_thesis.harness.claims import Claim
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.learning import ahead, by_data, flag_data
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Cell

NEAR_ZERO = 0.05  # an eta_0 up to here counts as too close to zero


def _cells(sizes: Sizes) -> list[Cell]:
    methods: dict[str, Method] = {OURS: ("bound", "gaussian", {"correction": "Clip"})}
    for author, method in BASELINES.items():
        methods[author] = (method, "gaussian", {"correction": "Clip"})
    return cells(sizes, methods)


def _claims(results: Results) -> list[Claim]:
    found: list[Claim] = []
    for data, panels in by_data(results).items():
        for other in BASELINES:
            found.append(
                ahead(
                    results, above(results, panels, NEAR_ZERO), OURS, [other],
                    f"With clipping too, our objective outperforms {other} when eta0 is not too close to zero", "2757",
                    panel=data,
                )
            )  # fmt: skip
        found.append(improves(results, panels, "All methods improve upon the logging policy", "2757", data))
    return flag_data(results, found)


def _figures(results: Results, folder: Path) -> list[Path]:
    return [lines(every_series(results), folder, "objectives", "Clipped weights, different bounds", columns=2)]


OBJECTIVES = LEARNED.experiment(
    "pac-objectives",
    order=6,
    title="Pessimistic objectives for clipping",
    thesis_lines="2750-2763",
    scales={
        "smoke": SMOKE | {"etas": [0.0, 0.5]},
        "quick": QUICK | {"etas": [0.0, 0.1, 0.3, 0.5, 1.0]},
        "paper": PAPER | {"data": ["mnist", "fashion-mnist"], "etas": [round(0.1 * i, 1) for i in range(11)]},
    },
    build=_cells,
    claims=_claims,
    figures=_figures,
    remarks=[
        "tau = n^(-1/4) for all four; ours is the corollary for linear weights (Section 8.6.1).",
        LOOSER,
    ],
)

__all__ = ["OBJECTIVES"]
