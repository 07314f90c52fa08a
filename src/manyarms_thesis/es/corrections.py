"""Exponential smoothing against the corrections of Su et al. and of Metelli et al. in learning (thesis, Appendix E.3.6)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from manyarms._base.palette import PALETTE
from manyarms_thesis.es.common import (
    LEARNED,
    OURS,
    PAPER,
    QUICK,
    SMOKE,
    Method,
    above,
    cells,
    every,
    left_out_best,
    named,
    on_data_of_the_thesis,
    tuned_lead,
)
from manyarms_thesis.es.figures import every_series, lines, look_of, shade
from manyarms_thesis.harness.claims import Claim, measured
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.figures import Drawn, Look
from manyarms_thesis.harness.learning import Compared
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Cell

BOUND, PRINCIPLE = f"{OURS}, bound", f"{OURS}, LP"
SU, METELLI = "Su et al.", "Metelli et al."
KINDS = {SU: ("Su", 0), METELLI: ("Metelli", 3)}  # the correction, and the family of colours
MODEST = 0.5


def _cells(sizes: Sizes) -> Iterator[Cell]:
    methods: dict[str, Method] = {
        BOUND: ("bound", "gaussian", {"correction": "ES"}),
        PRINCIPLE: ("heuristic", "gaussian", {"correction": "ES"}),
    }
    for kind, (correction, _) in KINDS.items():
        for value in sizes[correction]:
            how = {"correction": correction, "value": value}
            methods[f"{kind}, lambda={value:g}"] = ("estimate", "gaussian", how)
    return cells(sizes, methods)


@on_data_of_the_thesis
def _claims(on: Compared) -> Iterator[Claim]:
    # the thesis compares its method, which is the bound; the principle is this project's addition
    for ours, stated in ((BOUND, "6330"), (PRINCIPLE, "")):
        for kind in KINDS:
            etas = ", ".join(f"{on.results.parameter(panel, 'eta0'):g}" for panel in on.panels)
            yield every(
                on, tuned_lead(on, [ours], named(on, kind)), f"{ours}: outperforms {kind} with a tuned parameter", stated,
                f"at eta0 = {etas}, our value less that of the parameter that is best on the other runs of the same eta0",
            )  # fmt: skip
    modest, good = above(on, 0.0, MODEST), above(on, MODEST)
    if not modest.panels or not good.panels:
        return
    for kind in KINDS:
        gaps = {
            name: group.level(BOUND)
            - left_out_best(np.stack([group.level(other) for other in named(on, kind)], axis=1))
            for name, group in (("modest", modest), ("good", good))
        }
        yield on.claim(
            f"The gap to {kind} is more significant when the logging policy is not performing well", "6330",
            measured(gaps["modest"] - gaps["good"]),
            "lead of our bound over the other's best parameter, chosen on the other runs: "
            + ", ".join(f"{name} logging {measured(gap)}" for name, gap in gaps.items()),
        )  # fmt: skip


def _look(name: str, place: int) -> Look:
    kind, _, rest = name.partition(", ")
    if kind not in KINDS:
        return {BOUND: (PALETTE[2], "-"), PRINCIPLE: (PALETTE[2], "--")}.get(name) or look_of(name, place)
    value = float(rest.partition("=")[2])
    share = value if kind == METELLI else float(np.clip(np.log10(value) / 6 + 0.33, 0, 1))
    return shade(KINDS[kind][1], share), "-"


def _figures(results: Results, folder: Path) -> list[Drawn]:
    title = "Smoothing against shrinkage (Su) and harmonic weights (Metelli)"
    seen = (
        "Our bound and our principle beside the plain estimates with other corrections, at several of their parameters."
    )
    return [lines(every_series(results), folder, "corrections", title, look=_look, seen=seen)]


CORRECTIONS = LEARNED.experiment(
    "es-corrections",
    order=5,
    title="Other corrections of importance weights in learning",
    thesis_lines="6328-6336",
    question="Does exponential smoothing learn better policies than the corrections of importance weights by Su et al. and by "
    "Metelli et al., and most so where the logging policy performs badly?",
    setting="The bandit logs of es-bounds ({data}; eta0={etas}), Gaussian policies, {epochs} epochs: our bound and our principle "
    "against the estimates with Su et al.'s lambda={Su} and Metelli et al.'s lambda={Metelli}. Exact values on test rows, "
    "over {runs} logs.",
    scales={
        "smoke": SMOKE | {"etas": [0.0, 0.5, 1.0], "Su": [100.0], "Metelli": [0.1]},
        "quick": QUICK
        | {"etas": [0.0, 0.1, 0.3, 1.0], "Su": [1.0, 100.0, 10_000.0], "Metelli": [0.001, 0.1, 0.5], "runs": 5},
        "paper": PAPER
        | {
            "data": ["mnist", "fashion-mnist"],
            "etas": [round(0.1 * i, 1) for i in range(11)],
            "Su": [0.1, 1.0, 10.0, 100.0, 1_000.0, 10_000.0],
            "Metelli": [0.001, 0.01, 0.1, 0.3, 0.5, 0.9],
        },
    },
    build=_cells,
    claims=_claims,
    figures=_figures,
    remarks=[
        "Su: lambda w / (lambda + w^2); Metelli: w / (1 - lambda + lambda w) (Section 8.2). The thesis takes their tuning "
        "from their papers; here a grid of parameters is run and each is shown. What is compared is the parameter of the grid "
        "that has the best true value in the other runs, for each eta0: more than tuning by the rows of a log can know. "
        "Their objective is the estimate alone, with Gaussian policies and sigma = 1.",
    ],
)

__all__ = ["CORRECTIONS"]
