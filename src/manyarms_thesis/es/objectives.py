"""The correction fixed to clipping: our bound against those that were made for it (thesis, Section 8.7.1)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from manyarms_thesis.es.common import BASELINES, LEARNED, LOOSER, OURS, PAPER, QUICK, SMOKE, above, cells, improves
from manyarms_thesis.es.figures import every_series, lines
from manyarms_thesis.harness.claims import Claim
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.learning import Compared, on_every_data
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Cell

NEAR_ZERO = 0.05  # an eta_0 up to here counts as too close to zero


def _cells(sizes: Sizes) -> Iterator[Cell]:
    bounds = {OURS: "bound", **BASELINES}
    return cells(sizes, {author: (method, "gaussian", {"correction": "Clip"}) for author, method in bounds.items()})


@on_every_data
def _claims(on: Compared) -> Iterator[Claim]:
    for other in BASELINES:
        statement = f"With clipping too, our objective outperforms {other} when eta0 is not too close to zero"
        yield above(on, NEAR_ZERO).ahead(OURS, [other], statement, "2757")
    yield improves(on, "All methods improve upon the logging policy", "2757")


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
