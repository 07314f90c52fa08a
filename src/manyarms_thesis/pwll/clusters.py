"""MIPS and POTEC with few and many clusters (thesis, Appendix D.4.7)."""

from __future__ import annotations

from collections.abc import Iterator

from manyarms_thesis.harness.claims import Claim, listed
from manyarms_thesis.harness.data import MADE_UP
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.learning import Compared, by_data, finals, lead, on_every_data
from manyarms_thesis.harness.spec import Cell
from manyarms_thesis.pwll.common import LEARNED, PAPER, QUICK, SMOKE, learners, logged_cell, worlds
from manyarms_thesis.pwll.figures import against


def _cells(sizes: Sizes) -> Iterator[Cell]:
    methods = learners(("MIPS", "POTEC", "cLPI"), sizes)
    for data, world in worlds(sizes).items():
        for count in sizes["counts"]:
            if data != MADE_UP or count <= 100:
                yield logged_cell(f"{data}, {count:,} clusters", world | {"clusters": count}, methods, sizes["runs"])


@on_every_data
def _claims(on: Compared) -> Iterator[Claim]:
    yield on.ahead("POTEC", ["MIPS"], "POTEC generally outperforms MIPS for all numbers of clusters", "5619")
    statement = "cLPI outperforms MIPS and POTEC, whatever the number of clusters"
    yield from on.ahead_both("cLPI", ["POTEC", "MIPS"], statement, "5619-5621")
    # cLPI does not know of clusters: its panel is that of POTEC's best number of them
    best = max(on.panels, key=lambda panel: float(on.results.final(panel, "POTEC", "value").mean()))
    yield on.claim(
        "cLPI outperforms POTEC even with the best number of clusters", "5621", lead(on.results, best, "cLPI", "POTEC"),
        f"best for POTEC: {best}; {listed(finals(on.results, best, ('POTEC', 'cLPI')))}",
    )  # fmt: skip
    yield on.steadier(["cLPI"], ["POTEC", "MIPS"], "MIPS and POTEC are unstable across numbers of clusters", "5619")


CLUSTERS = LEARNED.experiment(
    "pwll-clusters",
    order=13,
    title="MIPS and POTEC with few and many clusters",
    thesis_lines="5615-5630",
    scales={
        "smoke": SMOKE | {"counts": [5, 20, 80]},
        "quick": QUICK | {"counts": [20, 50, 200, 500, 1_000]},
        "paper": PAPER | {"counts": [100, 500, 1_000, 2_000, 5_000]},
    },
    build=_cells,
    claims=_claims,
    figures=lambda results, folder: [
        against(results, by_data(results), "clusters", folder, "clusters", "Value by the number of clusters", "clusters")
    ],
    remarks=["The thesis does not print which numbers of clusters it tries, but for 1,000."],
)  # fmt: skip

__all__ = ["CLUSTERS"]
