"""MIPS and POTEC with few and many clusters (thesis, Appendix D.4.7)."""

from __future__ import annotations

from manyarms_thesis.harness.claims import Claim, claim, listed
from manyarms_thesis.harness.data import MADE_UP
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.learning import ahead, ahead_both, by_data, finals, flag_data, lead, steadier
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Cell
from manyarms_thesis.pwll.common import LEARNED, PAPER, QUICK, SMOKE, learners, logged_cell, worlds
from manyarms_thesis.pwll.figures import against


def _cells(sizes: Sizes) -> list[Cell]:
    cells = []
    for data, world in worlds(sizes).items():
        counts = [count for count in sizes["counts"] if data != MADE_UP or count <= 100]
        for count in counts:
            methods = learners(("MIPS", "POTEC", "cLPI"), sizes)
            cells.append(
                logged_cell(f"{data}, {count:,} clusters", world | {"clusters": count}, methods, sizes["runs"])
            )
    return cells


def _claims(results: Results) -> list[Claim]:
    found = []
    for data, panels in by_data(results).items():
        found.append(
            ahead(
                results, panels, "POTEC", ["MIPS"], "POTEC generally outperforms MIPS for all numbers of clusters", "5619",
                panel=data,
            )
        )  # fmt: skip
        found += ahead_both(
            results, panels, "cLPI", ["POTEC", "MIPS"],
            "cLPI outperforms MIPS and POTEC, whatever the number of clusters", "5619-5621", panel=data,
        )  # fmt: skip
        found.append(_tuned(results, panels, data))
        found.append(
            steadier(
                results, panels, ["cLPI"], ["POTEC", "MIPS"], "MIPS and POTEC are unstable across numbers of clusters", "5619",
                panel=data,
            )
        )  # fmt: skip
    return flag_data(results, found)


def _tuned(results: Results, panels: list[str], data: str) -> Claim:
    """cLPI against POTEC with its best number of clusters; cLPI does not know of clusters, its panel is POTEC's."""
    best = max(panels, key=lambda panel: float(results.final(panel, "POTEC", "value").mean()))
    return claim(
        "cLPI outperforms POTEC even with the best number of clusters", "5621", lead(results, best, "cLPI", "POTEC"),
        panel=data, detail=f"best for POTEC: {best}; {listed(finals(results, best, ('POTEC', 'cLPI')))}",
    )  # fmt: skip


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
