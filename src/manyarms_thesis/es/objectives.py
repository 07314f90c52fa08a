"""The correction fixed to clipping: our bound against those that were made for it (thesis, Section 8.7.1)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from manyarms_thesis.es.common import (
    BASELINES,
    LEARNED,
    LOOSER,
    OURS,
    PAPER,
    QUICK,
    SMOKE,
    above,
    cells,
    improves,
    on_data_of_the_thesis,
)
from manyarms_thesis.es.figures import every_series, lines
from manyarms_thesis.harness.claims import Claim
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.figures import Drawn
from manyarms_thesis.harness.learning import Compared
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Cell

NEAR_ZERO = 0.05  # an eta_0 up to here counts as too close to zero


def _cells(sizes: Sizes) -> Iterator[Cell]:
    bounds = {OURS: "bound", **BASELINES}
    return cells(sizes, {author: (method, "gaussian", {"correction": "Clip"}) for author, method in bounds.items()})


@on_data_of_the_thesis
def _claims(on: Compared) -> Iterator[Claim]:
    for other in BASELINES:
        statement = f"With clipping too, our objective outperforms {other} when eta0 is not too close to zero"
        yield above(on, NEAR_ZERO).ahead(OURS, [other], statement, "2757")
    yield improves(on, "All methods improve upon the logging policy", "2757")


def _figures(results: Results, folder: Path) -> list[Drawn]:
    seen = "What four bounds for the same clipped weights learn, beside the logging policy, the better that is."
    return [
        lines(every_series(results), folder, "objectives", "Clipped weights, different bounds", columns=2, seen=seen)
    ]


OBJECTIVES = LEARNED.experiment(
    "pac-objectives",
    order=6,
    title="Pessimistic objectives for clipping",
    thesis_lines="2750-2763",
    question="With the correction fixed to clipping, does the thesis's bound learn better policies than the three bounds that "
    "were made for clipping?",
    setting="The bandit logs of es-bounds ({data}, those that are found; eta0={etas}), Gaussian policies, {epochs} epochs; "
    "clipping at n^(-1/4) for all four bounds. Exact values on test rows, over {runs} logs.",
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
