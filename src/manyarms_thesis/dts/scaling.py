"""How dTS's regret grows with K, d and L (thesis, Section 4.4.1)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from manyarms_thesis.dts.agents import dts
from manyarms_thesis.dts.common import CONTEXT_ACCURACY, DTS, REMARKS, SCALINGS, synthetic_cell, with_contexts
from manyarms_thesis.harness.claims import Claim, final_regrets, increasing
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.figures import Drawn, draw_series, final_series
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Call, Cell

AGENT = "dTS-LL"
NAMES = ("K", "d", "L")


def _cells(sizes: Sizes) -> Iterator[Cell]:
    shapes = [{**sizes["base"], name: value} for name in NAMES for value in sizes[name]]
    cells = {}
    for scaled, words in SCALINGS.items():
        for shape in shapes:
            panel = "{}, K={K:,}, d={d}, L={L}".format(words, **shape)
            cells[panel] = synthetic_cell(sizes, **shape, scaled=scaled, agents={AGENT: Call(dts)}, name=panel)
    return with_contexts(sizes, cells.values())


def _claims(results: Results) -> Iterator[Claim]:
    for name, panels in results.varying(NAMES).items():
        called = {f"{name}={results.parameter(panel, name):,}": panel for panel in panels}
        statement = f"The regret of {AGENT} increases with {name}"
        yield increasing(final_regrets(results, called, AGENT), statement, "1637")


def _figures(results: Results, folder: Path) -> list[Drawn]:
    groups = {f"varying {name}": final_series(results, panels, name) for name, panels in results.varying(NAMES).items()}
    labels, title = {f"varying {name}": name for name in NAMES}, "Final regret of dTS-LL against K, d and L"
    seen = "One size varies in each panel: the number of items K, their dimension d, or the depth L of the chain."
    return [draw_series(groups, folder, "scaling", title, xlabel=labels, seen=seen)]


SCALING = DTS.experiment(
    "dts-scaling",
    order=3,
    title="How dTS's regret grows with K, d and L",
    thesis_lines="1637",
    scales={
        "smoke": {"rounds": 60, "runs": 3, "base": {"K": 30, "d": 5, "L": 2}, "K": [10, 30], "d": [5, 10], "L": [2, 4]},
        "quick": {
            "rounds": 2_000, "runs": 10, "base": {"K": 100, "d": 5, "L": 2}, "K": [10, 100, 500, 1_000],
            "d": [5, 10, 15, 20], "L": [2, 4, 5, 6],
        },
        "paper": {
            "rounds": 5_000, "runs": 50, "base": {"K": 100, "d": 5, "L": 2}, "K": [10, 100, 500, 1_000],
            "d": [5, 10, 15, 20], "L": [2, 4, 5, 6], "context_runs": 20,
        },
    },
    build=_cells,
    claims=_claims,
    figures=_figures,
    accuracy=CONTEXT_ACCURACY,
    question="How much more does dTS lose when there are more items, when items have more features, or when the chain of hidden "
    "causes is longer?",
    setting="Linear diffusion worlds with linear rewards. One of K ({K}), d ({d}) and L ({L}) varies while the others stay at "
    "{base}; dTS-LL, which knows the chain, plays {rounds} rounds in {runs} worlds of each size.",
    remarks=[
        *REMARKS,
        "The thesis prints the lists of K, d and L, and not what the others are while one varies: K=100, d=5, L=2. The "
        "columns of W_l that are not zero are halved from level to level, as in its two printed cases.",
        "With a context for each action there are 20 runs at the thesis's sizes.",
    ],
)  # fmt: skip

__all__ = ["SCALING"]
