"""What the logarithm does: cLPI against cIPS over tau, and RegKL against RegKL-LIN over beta (thesis, Appendix D.4.5)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from manyarms_thesis.harness.claims import Claim
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.figures import Drawn
from manyarms_thesis.harness.learning import Compared, by_data, on_every_data
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Cell
from manyarms_thesis.pwll.common import LEARNED, PAPER, QUICK, SMOKE, learners, logged_cells, worlds
from manyarms_thesis.pwll.figures import against_both

TWINS = {"tau": ("cLPI", "cIPS"), "beta": ("RegKL", "RegKL-LIN")}


def _cells(sizes: Sizes) -> Iterator[Cell]:
    for data, world in worlds(sizes).items():
        for name, twins in TWINS.items():
            for value in sizes[f"{name}s"]:
                methods = learners(twins, sizes, **{name: value})
                title, swept = f"{data}, {name}={value:g}", {"of": name, name: value}
                yield from logged_cells(title, world, methods, sizes["runs"], **swept)


@on_every_data
def _claims(on: Compared) -> Iterator[Claim]:
    for name, (log, linear) in TWINS.items():
        swept, line = on.where(of=name), "5566" if name == "tau" else "5568"
        yield from swept.ahead_both(log, [linear], f"{log} dominates {linear} for every {name}", line)
        statement = f"The logarithm gives greater robustness to {name}: {log} against {linear}"
        yield from swept.steadier_both([log], [linear], statement, "5571")


def _figures(results: Results, folder: Path) -> Iterator[Drawn]:
    for name, twins in TWINS.items():
        groups = {data: results.where(data=data, of=name) for data in by_data(results)}
        title = f"{twins[0]} (log) against {twins[1]} (linear)"
        yield from against_both(results, groups, name, folder, f"log-{name}", title, name)


LOG = LEARNED.experiment(
    "pwll-log",
    order=12,
    title="The logarithm, and the parameters tau and beta",
    thesis_lines="5561-5595",
    question="Is it the logarithm that makes policy-weighted likelihoods better, and less sensitive to tau and beta?",
    setting="In {told}, cLPI meets its linear twin cIPS at every tau ({taus}), and RegKL its linear twin RegKL-LIN at every "
    "beta ({betas}), {runs} times each.",
    scales={
        "smoke": SMOKE | {"taus": [0.001, 0.1], "betas": [0.1, 1.0]},
        "quick": QUICK | {"taus": [0.0001, 0.001, 0.01, 0.1, 1.0], "betas": [0.1, 0.2, 0.5, 1.0]},
        "paper": PAPER | {"taus": [0.0001, 0.001, 0.01, 0.1, 1.0], "betas": [0.1, 0.2, 0.5, 1.0, 2.0]},
    },
    build=_cells,
    claims=_claims,
    figures=_figures,
    remarks=[
        "The thesis prints no values of tau, and of beta only that it is at least 0.1: below it exp(1 / beta) passes "
        "22,026. At tau = 1 cLPI weights all rewards alike. RegKL weights every row, also those without reward: unless beta "
        "is small it imitates the logging policy.",
    ],
)  # fmt: skip

__all__ = ["LOG"]
