"""Objective-aware parametrisation: softmax policies over all actions or over the logging support (thesis, Section 7.3.2)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from manyarms_thesis.harness.claims import Claim
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.figures import Drawn
from manyarms_thesis.harness.learning import Compared, by_data, on_every_data
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Cell
from manyarms_thesis.pwll.common import (
    AUTHORS_BATCH,
    AUTHORS_RATE,
    LARGE,
    LEARNED,
    PAPER,
    SMOKE,
    WHOLE,
    configurations,
    learners,
    logged_cells,
    worlds,
)
from manyarms_thesis.pwll.figures import COUNTED, by_batch

OBJECTIVES = ("IPS", "cLPI")
SUPPORT = ", support"


def _cells(sizes: Sizes) -> Iterator[Cell]:
    for data, world in worlds(sizes).items():
        for words, how in configurations(sizes):
            methods = learners(OBJECTIVES, sizes, **how)
            methods |= learners(OBJECTIVES, sizes, **how, suffix=SUPPORT, space="support")
            yield from logged_cells(f"{data}, {words}", world, methods, sizes["runs"], **how)


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
    yield from on.steadier_both(["IPS" + SUPPORT], ["IPS"], statement, "2322")


def _figures(results: Results, folder: Path) -> Iterator[Drawn]:
    for data, panels in by_data(results).items():
        title = f"All actions against the logging support, on {data}"
        seen = "Dotted lines: policies over the logging support alone; other lines: over all actions."
        for column, end in COUNTED:
            yield by_batch(results, panels, folder, f"support-{data}-{end}", title, column=column, seen=seen)


SUPPORTED = LEARNED.experiment(
    "pwll-support",
    order=7,
    title="Objective-aware parametrisation: the logging support in place of all actions",
    thesis_lines="2320-2330, 5463-5470",
    question="Does restricting a policy to the actions that the logging policy plays make IPS, and cLPI, easier to optimise?",
    setting="In {told}, IPS and cLPI learn policies over all actions and over the logging support, with every learning rate "
    "({rates}), schedule ({schedules}) and batch size ({batches}) of Adam, {runs} times each.",
    scales={
        "smoke": SMOKE | {"batches": [32, 256], "schedules": ["constant", "one-cycle"], "rates": [0.1]},
        "quick": LARGE | {
            "rows": 10_000, "epochs": 3, "told": WHOLE.format(rows="10,000"),
            "batches": [AUTHORS_BATCH, 256], "schedules": ["constant", "one-cycle"], "rates": [0.01, 0.1],
        },
        "paper": PAPER | {
            "batches": [AUTHORS_BATCH, 256, 2_048], "schedules": ["constant", "one-cycle"],
            "rates": [AUTHORS_RATE, 0.01, 0.1],
        },
    },
    build=_cells,
    claims=_claims,
    figures=_figures,
    remarks=[
        "A rate of 5e-5 and batches of 32 are those of the authors' public code, who take more than a hundred thousand steps; at "
        "5e-5 nothing could move in the few hundred of quick, which has 0.01 in its place.",
        "On the support, only the vectors of actions that a batch lists are touched, and Adam is lazy: the others keep their "
        "moments until they are listed again.",
    ],
)  # fmt: skip

__all__ = ["SUPPORTED"]
