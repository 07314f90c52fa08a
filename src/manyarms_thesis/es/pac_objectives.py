"""The correction fixed to clipping: our bound against those that were made for it (thesis, lines 2753-2763)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from manyarms.worlds.supervised import Family
from manyarms_thesis.es.common import (
    BASELINES,
    CAPTION,
    LOOSER,
    NUMBERS,
    OURS,
    PAPER,
    QUICK,
    REMARKS,
    SMOKE,
    above,
    cells,
    improves,
    learners,
    made_up_warnings,
)
from manyarms_thesis.es.figures import lines, series
from manyarms_thesis.harness.claims import Claim
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Cell, Experiment
from manyarms_thesis.pwll.claims import ahead, by_data, flagged

NEAR_ZERO = 0.05  # an eta_0 up to here counts as too close to zero


def _cells(sizes: Mapping[str, Any]) -> list[Cell]:
    methods: dict[str, tuple[str, Family, Mapping[str, Any]]] = {OURS: ("bound", "gaussian", {"correction": "Clip"})}
    for author, method in BASELINES.items():
        methods[author] = (method, "gaussian", {"correction": "Clip"})
    return cells(sizes, learners(methods, sizes))


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
    return flagged(results, found)


def _figures(results: Results, folder: Path) -> list[Path]:
    drawn = {data: series(results, panels, results.agents(panels[0])) for data, panels in by_data(results).items()}
    return [lines(drawn, folder, "objectives", "Clipped weights, different bounds", columns=2)]


OBJECTIVES = Experiment(
    name="pac-objectives",
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
        *REMARKS,
        "tau = n^(-1/4) for all four; ours is the corollary for linear weights (lines 2711-2722).",
        LOOSER,
    ],
    warnings=made_up_warnings,
    caption=CAPTION,
    numbers=NUMBERS,
)

__all__ = ["OBJECTIVES"]
