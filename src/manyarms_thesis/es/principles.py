"""A bound against learning principles with weights to tune: ours, London's, and sample variance (thesis, Appendix E.3.5)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from manyarms._base.palette import PALETTE
from manyarms.worlds.supervised import Family
from manyarms_thesis.es.common import (
    LEARNED,
    LONDON,
    OURS,
    PAPER,
    QUICK,
    SMOKE,
    Method,
    above,
    cells,
    every,
    named,
    on_data_of_the_thesis,
    tuned_lead,
)
from manyarms_thesis.es.figures import every_series, lines, look_of, shade
from manyarms_thesis.harness.claims import Claim, listed, measured
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.figures import Drawn, Look
from manyarms_thesis.harness.learning import Compared
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Cell

BOUND = f"{OURS}, bound"
SVP = "SVP"
# method, family of policies, correction, whose weights, family of colours
KINDS: Mapping[str, tuple[str, Family, str, str, int]] = {
    f"{OURS}, LP": ("heuristic", "gaussian", "ES", "weights", 1),
    f"{LONDON}, LP": ("distance", "softmax", "Clip", "weights", 0),
    SVP: ("svp", "softmax", "Clip", "svp", 3),
}


def _cells(sizes: Sizes) -> Iterator[Cell]:
    methods: dict[str, Method] = {BOUND: ("bound", "gaussian", {"correction": "ES"})}
    for kind, (method, family, correction, weights, _) in KINDS.items():
        for weight in sizes[weights]:
            methods[f"{kind}, {weight:g}"] = (method, family, {"correction": correction, "weights": [weight] * 3})
    return cells(sizes, methods)


@on_data_of_the_thesis
def _claims(on: Compared) -> Iterator[Claim]:
    informed = above(on, 0.0)
    ours, theirs = tuned = (f"{OURS}, LP", f"{LONDON}, LP")
    yield _wide_range(on, ours, theirs)
    leads = {
        f"{other} at {panel}": lead for other in (theirs, SVP) for panel, lead in
        tuned_lead(on, named(on, ours), named(on, other)).items()
    }  # fmt: skip
    yield every(
        on, leads, "Our learning principle is to be preferred to those that penalise the distance or the variance alone, each "
        "with its best weight", "2560", "ours less the other, weights chosen on the other runs of the same eta0",
    )  # fmt: skip
    for kind in tuned:
        values = {name.rpartition(", ")[2]: on.level(name) for name in named(on, kind)}
        table = np.stack(list(values.values()), axis=1)
        yield on.claim(
            f"{kind}: sensitive to the choice of hyper-parameters, the worst of which loses more than a tenth", "6319",
            measured(table.max(axis=1) - table.min(axis=1) - 0.1 * table.max(axis=1)),
            "mean values over eta0: "
            + listed({f"{kind}, {weight}": measured(value) for weight, value in values.items()}),
        )  # fmt: skip
    statement = "Our bound achieves the best performance except for the uniform logging policy"
    yield informed.ahead(BOUND, [name for kind in tuned for name in named(on, kind)], statement, "6319")
    statement = "Our bound outperforms sample variance penalisation except for the uniform logging policy"
    yield informed.ahead(BOUND, named(on, SVP), statement, "")


def _wide_range(on: Compared, ours: str, theirs: str) -> Claim:
    """The median difference over the weights, which are the same for both principles, at each eta_0."""
    pairs = {
        mine.rpartition(", ")[2]: on.over(mine) - on.over(other)
        for mine, other in zip(named(on, ours), named(on, theirs), strict=True)
    }
    medians = np.median(list(pairs.values()), axis=0)  # (runs, panels)
    means = listed({weight: measured(table.mean(axis=1)) for weight, table in pairs.items()})
    return every(
        on, {panel: measured(medians[:, place]) for place, panel in enumerate(on.panels)},
        "For a wide range of hyper-parameters, more than half, our learning principle outperforms London's", "6319",
        f"ours less London's with the same weight, means over eta0: {means}; the median over weights at each eta0",
    )  # fmt: skip


def _look(name: str, place: int) -> Look:
    kind, _, weight = name.rpartition(", ")
    if kind not in KINDS:
        return (PALETTE[2], "-") if name == BOUND else look_of(name, place)
    share = (np.log10(float(weight)) + 5) / 6  # dark for the largest weights
    return shade(KINDS[kind][-1], float(np.clip(share, 0, 1))), "--" if kind == SVP else "-"


def _figures(results: Results, folder: Path) -> list[Drawn]:
    title = "Our bound against tuned principles"
    seen = "Our bound, without a weight, beside our and London's principle and SVP at several weights, the larger the darker."
    return [lines(every_series(results), folder, "principles", title, look=_look, seen=seen)]


PRINCIPLES = LEARNED.experiment(
    "es-principles",
    order=4,
    title="Bound optimisation and learning principles",
    thesis_lines="6309-6326, 2555-2560",
    question="Is it better to maximise a bound that has nothing to tune, or a pessimistic objective whose weights have to be "
    "chosen? And which of the latter?",
    setting="The bandit logs of es-bounds ({data}; eta0={etas}), {epochs} epochs: our bound with Gaussian policies; our learning "
    "principle and London's with weights {weights}; sample variance penalisation (SVP) with {svp}. Exact values on test "
    "rows, over {runs} logs.",
    scales={
        "smoke": SMOKE | {"etas": [0.0, 0.5], "weights": [1e-5, 0.1], "svp": [1.0]},
        "quick": QUICK | {"etas": [0.0, 0.1, 0.3, 1.0], "weights": [1e-5, 1e-3, 0.1], "svp": [0.1, 10.0]},
        "paper": PAPER
        | {
            "data": ["fashion-mnist"],
            "etas": [round(0.1 * i, 1) for i in range(11)],
            "weights": [1e-5, 1e-4, 1e-3, 1e-2, 1e-1],
            "svp": [0.01, 0.1, 1.0, 10.0],
        },
    },
    build=_cells,
    claims=_claims,
    figures=_figures,
    remarks=[
        "Our principle has the same number for its three weights and Gaussian policies with sigma = 1, London's has softmax "
        "policies and clipping, both as in Appendix E.3.5; SVP, with clipping and softmax policies, takes off its weight times "
        "sqrt(Var / n) of a batch; the thesis leaves it out as similar to London's principle.",
    ],
)

__all__ = ["PRINCIPLES"]
