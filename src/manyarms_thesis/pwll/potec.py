"""POTEC, which is OffCEM for a two-stage policy, against OffCEM and MIPS; and the number of clusters.

Thesis, lines 2113-2126, 2311, 5438-5459 (parametrisations) and 5615-5630 (clusters).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from manyarms_thesis.harness.claims import Claim, Measured, claim, measured
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Cell, Experiment
from manyarms_thesis.pwll.builders import MADE_UP, cell
from manyarms_thesis.pwll.claims import ahead, both, by_data, final, flagged, steadier
from manyarms_thesis.pwll.common import (
    CAPTION,
    NUMBERS,
    PAPER,
    QUICK,
    REMARKS,
    SMOKE,
    described,
    learners,
    made_up_warnings,
    worlds,
)  # fmt: skip
from manyarms_thesis.pwll.figures import against, epochs

NAMES = ("MIPS", "OffCEM", "POTEC", "cLPI")
LIGHT = ", light"
# from W = 0 every policy is uniform, as from beta = 0
WEIGHTS = {"": {"weight": "heavy"}, LIGHT: {"weight": "light"}}


def _potec_cells(sizes: Mapping[str, Any]) -> list[Cell]:
    cells = []
    for data, world in worlds(sizes).items():
        for schedule in sizes["schedules"]:
            agents = {
                name: call
                for suffix, weight in WEIGHTS.items()
                for name, call in learners(NAMES, sizes, schedule=schedule, suffix=suffix, curve=True, **weight).items()
            }
            parameters = described(world) | {"schedule": schedule}
            cells.append(cell(f"{data}, {schedule}", parameters, world, agents, sizes["runs"]))
    return cells


def _potec_claims(results: Results) -> list[Claim]:
    found = []
    for data, panels in by_data(results).items():
        for suffix, kind in (("", "heavyweight"), (LIGHT, "lightweight")):
            found += both(
                results, panels, f"POTEC{suffix}", [f"OffCEM{suffix}"],
                f"POTEC's optimisation of clusters is more effective than OffCEM's of actions ({kind})", "2311", panel=data,
            )  # fmt: skip
            found.append(
                ahead(
                    results, panels, f"POTEC{suffix}", [f"MIPS{suffix}"],
                    f"POTEC outperforms MIPS ({kind})", "5619", panel=data,
                )
            )  # fmt: skip
            found += both(
                results, panels, f"cLPI{suffix}", [f"POTEC{suffix}"], f"POTEC is surpassed by cLPI ({kind})", "2307",
                panel=data,
            )  # fmt: skip
    return flagged(results, found)


POTEC = Experiment(
    name="pwll-potec",
    title="POTEC against OffCEM and MIPS, with heavy and light policies",
    thesis_lines="2113-2126, 2311, 5438-5459",
    scales={
        "smoke": SMOKE | {"schedules": ["constant"]},
        "quick": QUICK | {"schedules": ["constant", "one-cycle"]},
        "paper": PAPER | {"schedules": ["constant", "one-cycle"]},
    },
    build=_potec_cells,
    claims=_potec_claims,
    figures=lambda results, folder: [
        epochs(results, results.panels, folder, "potec", "Value over the epochs: two stages against one")
    ],
    remarks=[
        *REMARKS,
        "Light policies learn a matrix W, from W = 0: phi_0(x)^T W beta_0,a over actions, and the same with the mean "
        "embedding of every cluster for POTEC.",
    ],
    warnings=made_up_warnings,
    caption=CAPTION,
    numbers=NUMBERS,
)  # fmt: skip


# ---- the number of clusters -------------------------------------------------------------------------------------------


def _cluster_cells(sizes: Mapping[str, Any]) -> list[Cell]:
    cells = []
    for data, world in worlds(sizes).items():
        counts = [count for count in sizes["counts"] if data != MADE_UP or count <= 100]
        for count in counts:
            here = world | {"clusters": count}
            agents = learners(("MIPS", "POTEC", "cLPI"), sizes)
            cells.append(cell(f"{data}, {count:,} clusters", described(here), here, agents, sizes["runs"]))
    return cells


def _cluster_claims(results: Results) -> list[Claim]:
    found = []
    for data, panels in by_data(results).items():
        found.append(
            ahead(
                results, panels, "POTEC", ["MIPS"], "POTEC generally outperforms MIPS for all numbers of clusters", "5619",
                panel=data,
            )
        )  # fmt: skip
        found += both(
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
    return flagged(results, found)


def _tuned(results: Results, panels: list[str], data: str) -> Claim:
    """cLPI against POTEC with its best number of clusters; cLPI does not know of clusters, its panel is POTEC's."""
    best = max(panels, key=lambda panel: float(final(results, panel, "POTEC").mean()))
    difference: Measured = measured(final(results, best, "cLPI") - final(results, best, "POTEC"))
    return claim(
        "cLPI outperforms POTEC even with the best number of clusters", "5621", difference, panel=data,
        detail=f"best for POTEC: {best}, {measured(final(results, best, 'POTEC'))}; "
        f"cLPI {measured(final(results, best, 'cLPI'))}",
    )  # fmt: skip


CLUSTERS = Experiment(
    name="pwll-clusters",
    title="MIPS and POTEC with few and many clusters",
    thesis_lines="5615-5630",
    scales={
        "smoke": SMOKE | {"counts": [5, 20, 80]},
        "quick": QUICK | {"counts": [20, 50, 200, 500, 1_000]},
        "paper": PAPER | {"counts": [100, 500, 1_000, 2_000, 5_000]},
    },
    build=_cluster_cells,
    claims=_cluster_claims,
    figures=lambda results, folder: [
        against(results, by_data(results), "clusters", folder, "clusters", "Value by the number of clusters", "clusters")
    ],
    remarks=[*REMARKS, "The thesis does not print which numbers of clusters it tries, but for 1,000."],
    warnings=made_up_warnings,
    caption=CAPTION,
    numbers=NUMBERS,
)  # fmt: skip

__all__ = ["CLUSTERS", "POTEC"]
