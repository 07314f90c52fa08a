"""Smaller and larger logging supports k0 (thesis, Appendix D.4.8)."""

from __future__ import annotations

from collections.abc import Iterator

from manyarms_thesis.harness.claims import Claim
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.learning import Compared, by_data, on_every_data
from manyarms_thesis.harness.spec import Cell
from manyarms_thesis.pwll.common import LARGE, LEARNED, PAPER, SMOKE, learners, logged_cells, worlds
from manyarms_thesis.pwll.figures import against_both


def _cells(sizes: Sizes) -> Iterator[Cell]:
    methods = learners(("cLPI", "cIPS", "IX", "MIPS"), sizes)
    for data, world in worlds(sizes).items():
        for k0 in sizes["supports"]:
            yield from logged_cells(f"{data}, k0={k0:,}", world | {"k0": k0}, methods, sizes["runs"])


@on_every_data
def _claims(on: Compared) -> list[Claim]:
    statement = "PWLL is better than IPS-based approaches for every size of the logging support"
    return on.ahead_both("cLPI", ["cIPS", "IX", "MIPS"], statement, "5634")


LOGGING_SUPPORT = LEARNED.experiment(
    "pwll-logging",
    order=15,
    title="Smaller and larger logging supports",
    thesis_lines="5632-5641",
    question="Are policy-weighted likelihoods better than IPS-based methods, whether the logging policy plays few actions or "
    "many?",
    setting="In {told}, the logging policy plays the {supports} best actions of each user; cLPI, cIPS, IX and MIPS learn from "
    "each log, {runs} times.",
    scales={
        "smoke": SMOKE | {"supports": [10, 60]},
        "quick": LARGE | {"supports": [10, 100, 1_000]},
        "paper": PAPER | {"supports": [10, 50, 100, 500, 1_000]},
    },
    build=_cells,
    claims=_claims,
    figures=lambda results, folder: against_both(
        results, by_data(results), "k0", folder, "supports", "Smaller and larger logging supports", "the size of the support, k0",
    ),
    remarks=["The thesis does not print which sizes of support it tries."],
)  # fmt: skip

__all__ = ["LOGGING_SUPPORT"]
