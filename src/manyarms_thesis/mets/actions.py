"""meTS and LinTS as the catalogue grows to 100,000 actions (thesis, Section 3.4.1)."""

from __future__ import annotations

from collections.abc import Iterator

from manyarms_thesis.harness.claims import Claim, gains, increasing, lower_regret
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.figures import draw_series, final_series, regret_curves
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Cell
from manyarms_thesis.mets.common import METS, REMARKS, synthetic_cell


def _cells(sizes: Sizes) -> list[Cell]:
    agents = ("meTS-Lin", "meTS-Lin-Fa", "meTS-Lin-Fb", "LinTS")
    return [synthetic_cell(sizes, agents, K) for K in sizes["K"]]


def _claims(results: Results) -> Iterator[Claim]:
    by_size = {f"K={results.parameter(panel, 'K'):,}": panel for panel in results.panels}
    for size, panel in by_size.items():
        statement = f"meTS-Lin has substantially lower regret than LinTS at {size}"
        yield lower_regret(results, panel, "meTS-Lin", "LinTS", statement, "1247")
    gaps = gains(results, by_size, "meTS-Lin", "LinTS")
    yield increasing(gaps, "The gap between LinTS and meTS-Lin widens as K grows", "1247")


ACTIONS = METS.experiment(
    "mets-actions",
    order=4,
    title="Final regret as the catalogue grows",
    thesis_lines="1246-1252",
    scales={
        "smoke": {"rounds": 150, "runs": 3, "K": [100, 1_000]},
        "quick": {"rounds": 2_000, "runs": 8, "K": [100, 1_000, 10_000, 100_000]},
        "paper": {"rounds": 5_000, "runs": 50, "K": [100, 1_000, 10_000, 100_000]},
    },
    build=_cells,
    claims=_claims,
    figures=lambda results, folder: [
        draw_series(
            {"linear, L=3, d=2": final_series(results, results.panels, "K")}, folder, "actions",
            "Final cumulative regret against the number of actions", xlabel="K",
        ),
        regret_curves(results, results.panels, folder, "regret", "Regret as the catalogue grows", columns=2),
    ],
    remarks=REMARKS,
)  # fmt: skip

__all__ = ["ACTIONS"]
