"""How dTS's regret grows with K, d and L (thesis, Section 4.4.1)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from manyarms_thesis.dts.agents import dts
from manyarms_thesis.dts.common import DTS, REMARKS, SCALINGS, synthetic_cell
from manyarms_thesis.harness.claims import Claim, final_regrets, increasing
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.figures import draw_series, final_series, online_looks
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Call, Cell

AGENT = "dTS-LL"
NAMES = ("K", "d", "L")


def _cells(sizes: Sizes) -> list[Cell]:
    shapes = [{**sizes["base"], name: value} for name in NAMES for value in sizes[name]]
    cells = {}
    for scaled, words in SCALINGS.items():
        for shape in shapes:
            panel = "{}, K={K:,}, d={d}, L={L}".format(words, **shape)
            cells[panel] = synthetic_cell(sizes, **shape, scaled=scaled, agents={AGENT: Call(dts)}, name=panel)
    return list(cells.values())


def _claims(results: Results) -> Iterator[Claim]:
    for scaled, words in SCALINGS.items():
        for name, panels in results.varying(NAMES, scaled=scaled).items():
            called = {f"{name}={results.parameter(panel, name):,}": panel for panel in panels}
            statement = f"The regret of {AGENT} increases with {name}"
            yield increasing(final_regrets(results, called, AGENT), statement, "1637", panel=words)


def _figures(results: Results, folder: Path) -> list[Path]:
    panels = {words: results.varying(NAMES, scaled=scaled) for scaled, words in SCALINGS.items()}
    groups = {
        f"varying {name}": {
            f"{AGENT}, {words}": final_series(results, varying[name], name)[AGENT] for words, varying in panels.items()
        }
        for name in NAMES
    }
    look = online_looks({f"{AGENT}, as printed": ("#0072B2", "-"), f"{AGENT}, links scaled": ("#56B4E9", "--")})
    labels, title = {f"varying {name}": name for name in NAMES}, "Final regret of dTS-LL against K, d and L"
    return [draw_series(groups, folder, "scaling", title, xlabel=labels, look=look)]


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
            "d": [5, 10, 15, 20], "L": [2, 4, 5, 6],
        },
    },
    build=_cells,
    claims=_claims,
    figures=_figures,
    remarks=[
        *REMARKS,
        "The thesis prints the lists of K, d and L, and not what the others are while one varies: K=100, d=5, L=2. The "
        "columns of W_l that are not zero are halved from level to level, as in its two printed cases.",
    ],
)  # fmt: skip

__all__ = ["SCALING"]
