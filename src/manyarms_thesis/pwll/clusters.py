"""MIPS and POTEC with few and many clusters (thesis, Appendix D.4.7)."""

from __future__ import annotations

from collections.abc import Iterator

from manyarms_thesis.harness.claims import Claim, listed
from manyarms_thesis.harness.data import MADE_UP
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.learning import MODE, Compared, by_data, counted, finals, lead, on_every_data
from manyarms_thesis.harness.spec import Cell
from manyarms_thesis.pwll.common import LEARNED, PAPER, QUICK, SMOKE, learners, logged_cells, worlds
from manyarms_thesis.pwll.figures import against_both


def _cells(sizes: Sizes) -> Iterator[Cell]:
    methods = learners(("MIPS", "POTEC", "cLPI"), sizes)
    for data, world in worlds(sizes).items():
        for count in sizes["counts"]:
            if data != MADE_UP or count <= 100:
                panel = f"{data}, {count:,} clusters"
                yield from logged_cells(panel, world | {"clusters": count}, methods, sizes["runs"])


@on_every_data
def _claims(on: Compared) -> Iterator[Claim]:
    yield from on.ahead_both("POTEC", ["MIPS"], "POTEC generally outperforms MIPS for all numbers of clusters", "5619")
    statement = "cLPI outperforms MIPS and POTEC, whatever the number of clusters"
    yield from on.ahead_both("cLPI", ["POTEC", "MIPS"], statement, "5619-5621")
    for column in (MODE, "value"):
        # cLPI does not know of clusters: its panel is that of POTEC's best number of them
        best = max(on.panels, key=lambda panel: float(on.results.final(panel, "POTEC", column).mean()))
        yield on.claim(
            f"cLPI outperforms POTEC even with the best number of clusters{counted(column)}", "5621",
            lead(on.results, best, "cLPI", "POTEC", column, standing=True),
            f"best for POTEC: {best}; {listed(finals(on.results, best, ('POTEC', 'cLPI'), column))}",
        )  # fmt: skip
    statement = "MIPS and POTEC are unstable across numbers of clusters, cLPI is not"
    yield from on.steadier_both(["cLPI"], ["POTEC", "MIPS"], statement, "5619")


CLUSTERS = LEARNED.experiment(
    "pwll-clusters",
    order=14,
    title="MIPS and POTEC with few and many clusters",
    thesis_lines="5615-5630",
    question="How much do MIPS and POTEC depend on the number of clusters, and do they reach cLPI with the best one?",
    setting="In {told}, MIPS and POTEC learn with {counts} clusters, and cLPI without, {runs} times each.",
    scales={
        "smoke": SMOKE | {"counts": [5, 20, 80]},
        "quick": QUICK | {"counts": [20, 50, 200, 500, 1_000]},
        "paper": PAPER | {"counts": [100, 500, 1_000, 2_000, 5_000]},
    },
    build=_cells,
    claims=_claims,
    figures=lambda results, folder: against_both(
        results, by_data(results), "clusters", folder, "clusters", "MIPS, POTEC and cLPI", "the number of clusters",
        seen="cLPI knows nothing of clusters: its line is level but for its runs.",
    ),
    remarks=["The thesis does not print which numbers of clusters it tries, but for 1,000."],
)  # fmt: skip

__all__ = ["CLUSTERS"]
