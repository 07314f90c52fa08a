"""dTS against LinTS as the catalogue grows to 50,000 actions (thesis, Section 4.4.1)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from manyarms_thesis.dts.agents import dts
from manyarms_thesis.dts.common import DTS, REMARKS, SCALINGS, synthetic_cell
from manyarms_thesis.harness.claims import Claim, gains, increasing, lower_regret
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.figures import draw_series, final_series
from manyarms_thesis.harness.online import lints
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Call, Cell

AGENTS = {"dTS-LL": Call(dts), "LinTS": Call(lints)}


def _cells(sizes: Sizes) -> Iterator[Cell]:
    for scaled, words in SCALINGS.items():
        for K in sizes["K"]:
            name = f"{words}, K={K:,}"
            yield synthetic_cell(sizes, K, sizes["d"], sizes["L"], scaled=scaled, agents=AGENTS, name=name)


def _claims(results: Results) -> Iterator[Claim]:
    for scaled, words in SCALINGS.items():
        panels = {f"K={results.parameter(panel, 'K'):,}": panel for panel in results.where(scaled=scaled)}
        for panel in panels.values():
            yield lower_regret(results, panel, "dTS-LL", "LinTS", "dTS-LL has lower regret than LinTS", "1635")
        gaps, statement = (
            gains(results, panels, "dTS-LL", "LinTS"),
            "The gap between dTS-LL and LinTS widens as K increases",
        )
        yield increasing(gaps, statement, "1635", panel=words)


def _figures(results: Results, folder: Path) -> list[Path]:
    groups = {words: final_series(results, results.where(scaled=scaled), "K") for scaled, words in SCALINGS.items()}
    return [draw_series(groups, folder, "actions", "Final cumulative regret against the number of actions", xlabel="K")]


ACTIONS = DTS.experiment(
    "dts-actions",
    order=2,
    title="dTS and LinTS as the catalogue grows",
    thesis_lines="1635",
    scales={
        "smoke": {"rounds": 100, "runs": 3, "d": 5, "L": 2, "K": [10, 1_000]},
        "quick": {"rounds": 2_000, "runs": 8, "d": 5, "L": 2, "K": [10, 100, 1_000, 10_000]},
        "paper": {"rounds": 5_000, "runs": 50, "d": 5, "L": 2, "K": [10, 100, 1_000, 10_000, 50_000]},
    },
    build=_cells,
    claims=_claims,
    figures=_figures,
    remarks=[
        *REMARKS,
        "The thesis prints neither d and L nor the values of K between 10 and 50,000: d=5, L=2 are its smaller "
        "problem, the values of K this project's choice. A gap cannot widen for ever: where K is beyond T, most actions "
        "can never be tried, and both methods live on their prior.",
    ],
)

__all__ = ["ACTIONS"]
