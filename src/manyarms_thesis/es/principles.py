"""A bound against learning principles with weights to tune: ours, London's, and sample variance (thesis, Appendix E.3.5)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from manyarms._base.html import PALETTE
from manyarms_thesis.es.common import LEARNED, LONDON, OURS, PAPER, QUICK, SMOKE, Method, above, cells
from manyarms_thesis.es.figures import every_series, lines, look_of, shade
from manyarms_thesis.harness.claims import Claim, claim, listed, measured
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.figures import Look
from manyarms_thesis.harness.learning import ahead, by_data, flag_data, level
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Cell

BOUND = f"{OURS}, bound"
SVP = "SVP"
KINDS = {f"{OURS}, LP": 1, f"{LONDON}, LP": 0, SVP: 2}  # and their families of colours


def _cells(sizes: Sizes) -> list[Cell]:
    methods: dict[str, Method] = {BOUND: ("bound", "gaussian", {"correction": "ES"})}
    for weight in sizes["weights"]:
        same = {"weights": [weight] * 3}
        methods[f"{OURS}, LP, {weight:g}"] = ("heuristic", "gaussian", {"correction": "ES", **same})
    for weight in sizes["weights"]:
        methods[f"{LONDON}, LP, {weight:g}"] = ("distance", "softmax", {"correction": "Clip", "weights": [weight] * 3})
    for weight in sizes["svp"]:
        methods[f"{SVP}, {weight:g}"] = ("svp", "softmax", {"correction": "Clip", "weights": [weight] * 3})
    return cells(sizes, methods)


def _of(results: Results, panels: list[str], kind: str) -> list[str]:
    return [name for name in results.methods(panels[0]) if name.rpartition(", ")[0] == kind]


def _claims(results: Results) -> list[Claim]:
    found: list[Claim] = []
    for data, panels in by_data(results).items():
        informed = above(results, panels, 0.0)
        kinds = {kind: _of(results, panels, kind) for kind in KINDS}
        tuned = [agent for agents in kinds.values() for agent in agents]
        ours, theirs = (list(kinds)[place] for place in (0, 1))
        pairs = {
            mine.rpartition(", ")[2]: level(results, informed, [mine]) - level(results, informed, [other])
            for mine, other in zip(kinds[ours], kinds[theirs], strict=True)
        }
        won = sum(measured(difference).above_zero for difference in pairs.values())
        found.append(
            claim(
                "Our learning principle outperforms London's for a wide range of weights: for more than half of them", "6319",
                measured(np.median(list(pairs.values()), axis=0)), panel=data,
                detail=f"the median difference; {won} of {len(pairs)} hold by two standard errors: "
                + ", ".join(f"{weight}: {measured(difference)}" for weight, difference in pairs.items()),
            )
        )  # fmt: skip
        for kind in (ours, theirs):
            table = np.stack([level(results, informed, [agent]) for agent in kinds[kind]], axis=1)
            lost = table.max(axis=1) - table.min(axis=1) - 0.1 * table.max(axis=1)
            found.append(
                claim(
                    f"{kind}: sensitive to its weights, the worst of which loses more than a tenth", "6319", measured(lost),
                    panel=data, detail="mean values over eta0 > 0: "
                    + listed({name: measured(level(results, informed, [name])) for name in kinds[kind]}),
                )
            )  # fmt: skip
        found.append(
            ahead(
                results, informed, BOUND, tuned,
                "Our bound, without anything to tune, achieves the best performance but for the uniform logging policy", "6319",
                panel=data,
            )
        )  # fmt: skip
    return flag_data(results, found)


def _look(name: str, place: int) -> Look:
    kind, _, weight = name.rpartition(", ")
    if kind not in KINDS:
        return (PALETTE[2], "-") if name == BOUND else look_of(name, place)
    share = (np.log10(float(weight)) + 5) / 6  # dark for the largest weights
    return shade(KINDS[kind] if kind != SVP else 3, float(np.clip(share, 0, 1))), "--" if kind == SVP else "-"


def _figures(results: Results, folder: Path) -> list[Path]:
    return [
        lines(
            every_series(results),
            folder,
            "principles",
            "Our bound against tuned principles: dark is a large weight",
            look=_look,
        )
    ]


PRINCIPLES = LEARNED.experiment(
    "es-principles",
    order=4,
    title="Bound optimisation and learning principles",
    thesis_lines="6309-6326, 2555-2559",
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
