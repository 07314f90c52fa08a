"""Objective-aware parametrisation: softmax policies over all actions or over the logging support (thesis, Section 7.3.2)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from manyarms_thesis.harness.claims import Claim
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.learning import Compared, by_data, on_every_data
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Cell
from manyarms_thesis.pwll.common import LEARNED, PAPER, QUICK, SMOKE, configurations, learners, logged_cell, worlds
from manyarms_thesis.pwll.figures import by_batch

OBJECTIVES = ("IPS", "cLPI")
SUPPORT = ", support"


def _cells(sizes: Sizes) -> Iterator[Cell]:
    for data, world in worlds(sizes).items():
        for words, how in configurations(sizes):
            methods = learners(OBJECTIVES, sizes, **how)
            methods |= learners(OBJECTIVES, sizes, **how, suffix=SUPPORT, space="support")
            yield logged_cell(f"{data}, {words}", world, methods, sizes["runs"], **how)


@on_every_data
def _claims(on: Compared) -> Iterator[Claim]:
    statement = (
        "IPS restricted to the logging support achieves higher reward than IPS over all actions, in every configuration"
    )
    yield from on.ahead_both("IPS" + SUPPORT, ["IPS"], statement, "2322")
    statement = "cLPI achieves even better performance with the restricted support, in every configuration"
    yield from on.ahead_both("cLPI" + SUPPORT, ["cLPI"], statement, "2322")
    statement = (
        "IPS over all actions is unstable across batch sizes and schedules, restricted to the support it is robust"
    )
    yield on.steadier(["IPS" + SUPPORT], ["IPS"], statement, "2322")
    statement = "cLPI with the restricted support is best of all"
    yield on.ahead("cLPI" + SUPPORT, [*OBJECTIVES, "IPS" + SUPPORT], statement, "5522")


def _figures(results: Results, folder: Path) -> Iterator[Path]:
    for data, panels in by_data(results).items():
        title = f"All actions against the logging support, on {data}"
        yield by_batch(results, panels, folder, f"support-{data}", title)


SUPPORTED = LEARNED.experiment(
    "pwll-support",
    order=6,
    title="Objective-aware parametrisation: the logging support in place of all actions",
    thesis_lines="2320-2330, 5463-5470",
    scales={
        "smoke": SMOKE | {"batches": [32, 256], "schedules": ["constant", "one-cycle"], "rates": [0.1]},
        "quick": QUICK | {
            "batches": [64, 256, 1_024], "schedules": ["constant", "one-cycle"], "rates": [0.01, 0.1],
        },
        "paper": PAPER | {
            "batches": [32, 256, 2_048], "schedules": ["constant", "one-cycle"],
            "rates": [0.001, 0.01],
        },
    },
    build=_cells,
    claims=_claims,
    figures=_figures,
    remarks=[
        "On the support, only the vectors of actions that a batch lists are touched, and Adam is lazy: the others keep their "
        "moments until they are listed again.",
    ],
)  # fmt: skip

__all__ = ["SUPPORTED"]
