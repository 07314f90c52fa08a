"""Noisy rewards: R = 1[A in H] (1 - B) + B s with B ~ Bernoulli(epsilon) (thesis, Appendix D.4.4)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from manyarms_thesis.harness.claims import Claim, claim, least, listed
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.learning import Compared, by_data, finals, lead, on_every_data
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Cell
from manyarms_thesis.pwll.common import LEARNED, PAPER, QUICK, SMOKE, learners, logged_cell, worlds
from manyarms_thesis.pwll.figures import against
from manyarms_thesis.pwll.learners import CATALOGUE

LIKELIHOODS, ESTIMATES = ("cLPI", "RegKL"), ("cIPS", "IX", "POTEC")


def _cells(sizes: Sizes) -> Iterator[Cell]:
    methods = learners((*LIKELIHOODS, *ESTIMATES), sizes)
    for data, world in worlds(sizes).items():
        if data == CATALOGUE:
            continue  # its rewards are random already
        for shift in sizes["shifts"]:
            for noise in sizes["noises"]:
                noisy = {"noise": noise, "shift": shift}
                title = f"{data}, epsilon={noise:g}, s={shift:g}"
                yield logged_cell(title, world | noisy, methods, sizes["runs"], **noisy)


@on_every_data
def _claims(on: Compared) -> Iterator[Claim]:
    results = on.results
    for name in LIKELIHOODS:
        statement = f"PWLL objectives maintain a clear advantage under noise: {name} over IPS-based methods"
        yield from on.ahead_both(name, ESTIMATES, statement, "5549")
    without = on.where(shift=0).panels
    ends = without[0], without[-1]
    noise = [results.parameter(panel, "noise") for panel in ends]
    worse = {}
    for name in results.methods(on.panels[0]):
        first, last = (finals(results, panel, [name])[name] for panel in ends)
        worse[f"{name}, epsilon {noise[0]} to {noise[1]}"] = first - last
    nearest, difference = least(worse)
    yield on.claim(
        "More noise harms all methods where s = 0", "5549", difference,
        f"loss of value: {listed(worse)}; least convincing: {nearest}",
    )  # fmt: skip
    for panel in [panel for panel in on.panels if results.parameter(panel, "shift") > 0][-1:]:
        yield claim(
            "RegKL outperforms cLPI where noise and shift are large", "5549", lead(results, panel, "RegKL", "cLPI"),
            panel=panel, detail=listed(finals(results, panel, ("RegKL", "cLPI"))),
        )  # fmt: skip


def _figures(results: Results, folder: Path) -> list[Path]:
    groups = {
        f"{data}, s={shift:g}": results.where(data=data, shift=shift)
        for data in by_data(results)
        for shift in results.levels("shift")
    }
    return [against(results, groups, "noise", folder, "noise", "Value under noisy rewards", "epsilon")]


NOISE = LEARNED.experiment(
    "pwll-noise",
    order=10,
    title="Learning from noisy rewards",
    thesis_lines="5532-5559",
    scales={
        "smoke": SMOKE | {"noises": [0.1, 0.3], "shifts": [0.0, 0.5]},
        "quick": QUICK | {"noises": [0.1, 0.2, 0.3], "shifts": [0.0, 0.5]},
        "paper": PAPER | {"noises": [0.1, 0.2, 0.3], "shifts": [0.0, 0.5]},
    },
    build=_cells,
    claims=_claims,
    figures=_figures,
    remarks=[
        "Values include the noise: (1 - epsilon) v + epsilon s for a policy that earns v without it. That alone lowers or raises "
        "all values alike as epsilon grows.",
    ],
)  # fmt: skip

__all__ = ["NOISE"]
