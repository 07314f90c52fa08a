"""POTEC, which is OffCEM for a two-stage policy, against OffCEM and MIPS (thesis, Section 7.1.2, Appendix D.4.1)."""

from __future__ import annotations

from collections.abc import Iterator

from manyarms_thesis.harness.claims import Claim
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.learning import Compared, on_every_data
from manyarms_thesis.harness.spec import Call, Cell
from manyarms_thesis.pwll.common import LEARNED, PAPER, QUICK, SMOKE, learners, logged_cells, worlds
from manyarms_thesis.pwll.figures import epochs_both

NAMES = ("MIPS", "OffCEM", "POTEC", "cLPI")
WEIGHTS = {"": "heavy", ", light": "light"}


def _cells(sizes: Sizes) -> Iterator[Cell]:
    for data, world in worlds(sizes).items():
        for schedule in sizes["schedules"]:
            methods: dict[str, Call] = {}
            for suffix, weight in WEIGHTS.items():
                methods |= learners(NAMES, sizes, schedule=schedule, suffix=suffix, curve=True, weight=weight)
            yield from logged_cells(f"{data}, {schedule}", world, methods, sizes["runs"], schedule=schedule)


@on_every_data
def _claims(on: Compared) -> Iterator[Claim]:
    for suffix, weight in WEIGHTS.items():
        potec, kind = f"POTEC{suffix}", f"{weight}weight"
        printed = weight == "heavy"  # the thesis defines light policies, and prints what came out of heavy ones
        statement = f"POTEC's optimisation of clusters is more effective than OffCEM's of actions ({kind})"
        yield from on.ahead_both(potec, [f"OffCEM{suffix}"], statement, "2311" if printed else "")
        yield from on.ahead_both(
            potec, [f"MIPS{suffix}"], f"POTEC outperforms MIPS ({kind})", "5619" if printed else ""
        )
        yield from on.ahead_both(
            f"cLPI{suffix}", [potec], f"POTEC is surpassed by cLPI ({kind})", "2307" if printed else ""
        )


POTEC = LEARNED.experiment(
    "pwll-potec",
    order=8,
    title="POTEC against OffCEM and MIPS, with heavy and light policies",
    thesis_lines="2113-2126, 2311, 5438-5459",
    question="Does optimising over clusters of actions in two stages, as POTEC does, give better policies than OffCEM, "
    "which has the same goal over single actions?",
    setting="In {told}, POTEC, OffCEM, MIPS and cLPI learn heavy and light policies for {epochs} epochs with each schedule "
    "({schedules}), {runs} times; k-means makes {clusters} clusters.",
    scales={
        "smoke": SMOKE | {"schedules": ["constant"]},
        "quick": QUICK | {"schedules": ["constant", "one-cycle"]},
        "paper": PAPER | {"schedules": ["constant", "one-cycle"]},
    },
    build=_cells,
    claims=_claims,
    figures=lambda results, folder: epochs_both(
        results, results.panels, folder, "potec", "POTEC, OffCEM, MIPS and cLPI over the epochs",
        seen="Dotted lines: light policies, which learn a matrix; other lines: heavy ones, which learn a vector an action or "
        "cluster.",
    ),
    remarks=[
        "Light policies learn a matrix W, from where heavy ones start: phi_0(x)^T W beta_0,a over actions, and the same "
        "with the mean embedding of every cluster for POTEC.",
    ],
)  # fmt: skip

__all__ = ["POTEC"]
