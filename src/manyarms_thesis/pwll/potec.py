"""POTEC, which is OffCEM for a two-stage policy, against OffCEM and MIPS (thesis, Section 7.1.2, Appendix D.4.1)."""

from __future__ import annotations

from manyarms_thesis.harness.claims import Claim
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.learning import ahead, ahead_both, by_data, flag_data
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Cell
from manyarms_thesis.pwll.common import LEARNED, PAPER, QUICK, SMOKE, learners, logged_cell, worlds
from manyarms_thesis.pwll.figures import epochs

NAMES = ("MIPS", "OffCEM", "POTEC", "cLPI")
LIGHT = ", light"
# from W = 0 every policy is uniform, as from beta = 0
WEIGHTS = {"": {"weight": "heavy"}, LIGHT: {"weight": "light"}}


def _cells(sizes: Sizes) -> list[Cell]:
    cells = []
    for data, world in worlds(sizes).items():
        for schedule in sizes["schedules"]:
            methods = {
                name: call
                for suffix, weight in WEIGHTS.items()
                for name, call in learners(NAMES, sizes, schedule=schedule, suffix=suffix, curve=True, **weight).items()
            }
            cells.append(logged_cell(f"{data}, {schedule}", world, methods, sizes["runs"], schedule=schedule))
    return cells


def _claims(results: Results) -> list[Claim]:
    found = []
    for data, panels in by_data(results).items():
        for suffix, kind in (("", "heavyweight"), (LIGHT, "lightweight")):
            found += ahead_both(
                results, panels, f"POTEC{suffix}", [f"OffCEM{suffix}"],
                f"POTEC's optimisation of clusters is more effective than OffCEM's of actions ({kind})", "2311", panel=data,
            )  # fmt: skip
            found.append(
                ahead(
                    results, panels, f"POTEC{suffix}", [f"MIPS{suffix}"],
                    f"POTEC outperforms MIPS ({kind})", "5619", panel=data,
                )
            )  # fmt: skip
            found += ahead_both(
                results, panels, f"cLPI{suffix}", [f"POTEC{suffix}"], f"POTEC is surpassed by cLPI ({kind})", "2307",
                panel=data,
            )  # fmt: skip
    return flag_data(results, found)


POTEC = LEARNED.experiment(
    "pwll-potec",
    order=7,
    title="POTEC against OffCEM and MIPS, with heavy and light policies",
    thesis_lines="2113-2126, 2311, 5438-5459",
    scales={
        "smoke": SMOKE | {"schedules": ["constant"]},
        "quick": QUICK | {"schedules": ["constant", "one-cycle"]},
        "paper": PAPER | {"schedules": ["constant", "one-cycle"]},
    },
    build=_cells,
    claims=_claims,
    figures=lambda results, folder: [
        epochs(results, results.panels, folder, "potec", "Value over the epochs: two stages against one")
    ],
    remarks=[
        "Light policies learn a matrix W, from W = 0: phi_0(x)^T W beta_0,a over actions, and the same with the mean "
        "embedding of every cluster for POTEC.",
    ],
)  # fmt: skip

__all__ = ["POTEC"]
