"""dTS against LinTS as the catalogue grows to 50,000 actions (thesis, Section 4.4.1)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from manyarms_thesis.dts.agents import dts
from manyarms_thesis.dts.common import (
    CONTEXT_ACCURACY,
    DEAR,
    DTS,
    REMARKS,
    SCALINGS,
    contexts_matter,
    synthetic_cell,
    with_contexts,
)
from manyarms_thesis.harness.claims import Claim, gains, increasing, lower_regret
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.figures import Drawn, draw_series, final_series
from manyarms_thesis.harness.online import lints
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Call, Cell

OURS = "dTS-LL"
AGENTS = {OURS: Call(dts), "LinTS": Call(lints)}


def _cells(sizes: Sizes) -> Iterator[Cell]:
    cells = [
        synthetic_cell(sizes, K, sizes["d"], sizes["L"], scaled=scaled, agents=AGENTS, name=f"{words}, K={K:,}")
        for scaled, words in SCALINGS.items()
        for K in sizes["K"]
    ]
    return with_contexts(sizes, cells)


def _claims(results: Results) -> Iterator[Claim]:
    panels = {f"K={results.parameter(panel, 'K'):,}": panel for panel in results.panels}
    for panel in panels.values():
        yield lower_regret(results, panel, OURS, "LinTS", "dTS-LL has lower regret than LinTS", "1635")
    if len(panels) > 1:
        statement = "The gap between dTS-LL and LinTS widens as K increases"
        yield increasing(gains(results, panels, OURS, "LinTS"), statement, "1635")


def _figures(results: Results, folder: Path) -> list[Drawn]:
    groups = {"dTS-LL and LinTS": final_series(results, results.panels, "K")}
    seen = (
        "What each method has lost after the last round, by the number of items; the distance of the curves is the gap."
    )
    title = "Final cumulative regret against the number of actions"
    return [draw_series(groups, folder, "actions", title, xlabel="K", seen=seen)]


ACTIONS = DTS.experiment(
    "dts-actions",
    order=2,
    title="dTS and LinTS as the catalogue grows",
    thesis_lines="1635",
    scales={
        "smoke": {"rounds": 100, "runs": 3, "d": 5, "L": 2, "K": [10, 1_000], "context_K": 1_000},
        "quick": {"rounds": 2_000, "runs": 8, "d": 5, "L": 2, "K": [10, 100, 1_000, 10_000], "context_K": 1_000},
        "paper": {
            "rounds": 5_000, "runs": 50, "d": 5, "L": 2, "K": [10, 100, 1_000, 10_000, 50_000], "context_K": 10_000,
            "context_runs": 10,
        },
    },
    build=_cells,
    claims=_claims,
    figures=_figures,
    across=contexts_matter(lambda results, panel: OURS, "LinTS"),
    accuracy=CONTEXT_ACCURACY,
    question="Does knowing how items hang together pay more the more items there are?",
    setting="Linear diffusion worlds of dimension {d} and depth {L} with {K} items; dTS-LL and LinTS play {rounds} rounds in "
    "{runs} worlds of each size.",
    remarks=[
        *REMARKS,
        "The thesis prints neither d and L nor the values of K between 10 and 50,000: d=5, L=2 are its smaller "
        "problem, the values of K this project's choice. A gap cannot widen for ever: where K is beyond T, most actions "
        "can never be tried, and both methods live on their prior.",
        DEAR.format("10,000", "10"),
    ],
)  # fmt: skip

__all__ = ["ACTIONS"]
