"""Noisy rewards: R = 1[A in H] (1 - B) + B s with B ~ Bernoulli(epsilon) (thesis, Appendix D.4.4)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from manyarms_thesis.harness.claims import Claim, claim, least, listed
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.figures import Drawn
from manyarms_thesis.harness.learning import MODE, Compared, between, by_data, counted, finals, lead, on_every_data
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Cell
from manyarms_thesis.pwll.common import FEW, LEARNED, PAPER, QUICK, SMOKE, learners, logged_cells, worlds
from manyarms_thesis.pwll.figures import against_both
from manyarms_thesis.pwll.problems import CATALOGUE

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
                yield from logged_cells(title, world | noisy, methods, sizes["runs"], **noisy)


@on_every_data
def _claims(on: Compared) -> Iterator[Claim]:
    results = on.results
    for name in LIKELIHOODS:
        statement = f"PWLL objectives maintain a clear advantage under noise: {name} over IPS-based methods"
        yield from on.ahead_both(name, ESTIMATES, statement, "5549")
    for shift in results.levels("shift"):
        yield from _by_noise(on.where(shift=shift), shift)
    for panel in [panel for panel in on.panels if results.parameter(panel, "shift") > 0][-1:]:
        for column in (MODE, "value"):
            yield claim(
                f"RegKL outperforms cLPI where noise and shift are large{counted(column)}", "5549",
                lead(results, panel, "RegKL", "cLPI", column, standing=True), panel=panel,
                detail=listed(finals(results, panel, ("RegKL", "cLPI"), column)),
            )  # fmt: skip


def _by_noise(on: Compared, shift: float) -> Iterator[Claim]:
    """What more noise does to values, which it is a part of: it lowers all where s = 0, and raises them where s is large."""
    results = on.results
    ends = on.panels[0], on.panels[-1]
    if not shift:
        statement, told, (first, last) = "More noise harms all methods where s = 0", "loss of value", ends
    else:
        statement = f"More noise raises the level of all methods where s = {shift:g}"
        told, (last, first) = "gain of value", ends
    noise = [results.parameter(panel, "noise") for panel in ends]
    for column in (MODE, "value"):
        changes = {
            f"{name}, epsilon {noise[0]} to {noise[1]}": between(results, (first, name), (last, name), column)
            for name in results.methods(on.panels[0])
        }
        nearest, difference = least(changes)
        yield on.claim(
            f"{statement}{counted(column)}", "5549", difference,
            f"{told}: {listed(changes)}; least convincing: {nearest}", list(changes.values()),
        )  # fmt: skip


def _figures(results: Results, folder: Path) -> Iterator[Drawn]:
    groups = {
        f"{data}, s={shift:g}": results.where(data=data, shift=shift)
        for data in by_data(results)
        for shift in results.levels("shift")
    }
    seen = "One drawing for each shift s that noise puts in place of a reward."
    yield from against_both(
        results, groups, "noise", folder, "noise", "Learning from noisy rewards", "epsilon", seen=seen
    )


NOISE = LEARNED.experiment(
    "pwll-noise",
    order=11,
    title="Learning from noisy rewards",
    thesis_lines="5532-5559",
    question="Do policy-weighted likelihoods keep their advantage over IPS-based methods where rewards are noisy?",
    setting="In {told}, a share epsilon ({noises}) of the rewards is replaced by s ({shifts}); cLPI, RegKL, cIPS, IX and "
    "POTEC learn from each log, {runs} times.",
    scales={
        "smoke": SMOKE | {"noises": [0.1, 0.3], "shifts": [0.0, 0.5]},
        "quick": QUICK | {
            "rows": 6_000, "epochs": 3, "told": FEW.format(rows="6,000"), "noises": [0.1, 0.3], "shifts": [0.0, 0.5],
        },
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
