"""Pessimism: V - lambda sqrt(Var / n), and V - lambda / n ||theta - theta0||^2, against cLPI (thesis, Appendix D.4.9)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from manyarms_thesis.harness.claims import Claim, measured
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.figures import Drawn
from manyarms_thesis.harness.learning import MODE, Compared, by_data, counted, on_every_data
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Cell
from manyarms_thesis.pwll.common import LARGE, LEARNED, PAPER, SMOKE, learners, logged_cells, worlds
from manyarms_thesis.pwll.figures import against_both

NEAR = 0.1  # of the way that is gone without a penalty
PENALISED = {"SVP": ("IPS", "svp"), "cIPS": ("cIPS", "distance"), "ES": ("ES", "distance"), "LS": ("LS", "distance")}


def _cells(sizes: Sizes) -> Iterator[Cell]:
    for data, world in worlds(sizes).items():
        for weight in sizes["weights"]:
            methods = learners(("cLPI",), sizes, start="logging")
            for name, (objective, penalty) in PENALISED.items():
                made = learners((objective,), sizes, start="logging", **{penalty: weight})
                methods[f"{name}, pessimistic"] = made[objective]
            yield from logged_cells(f"{data}, lambda={weight:g}", world, methods, sizes["runs"], weight=weight)


@on_every_data
def _claims(on: Compared) -> Iterator[Claim]:
    for name in PENALISED:
        statement = f"cLPI outperforms pessimistic {name}, whatever lambda"
        penalised = replace(on, panels=[panel for panel in on.panels if on.results.parameter(panel, "weight") > 0])
        yield from penalised.ahead_both("cLPI", [f"{name}, pessimistic"], statement, "5647")
    first, last = on.panels[0], on.panels[-1]
    if on.results.parameter(first, "weight") > 0:  # nothing says how far they go without
        return
    for name, (_, penalty) in PENALISED.items():
        if penalty != "distance":
            continue
        agent = f"{name}, pessimistic"
        for column in (MODE, "value"):
            start = on.results.values(last, agent, column)[:, 0]
            ends = {panel: on.results.final(panel, agent, column) for panel in (first, last)}
            moved = {panel: abs(end - start) for panel, end in ends.items()}
            yield on.claim(
                f"With a large lambda the policy stays where it starts: {name} gains or loses less than a tenth of what it does "
                f"without{counted(column)}", "5647",
                measured(NEAR * moved[first] - moved[last]),
                f"value at the start {measured(start)}, {first} {measured(ends[first])}, {last} {measured(ends[last])}",
            )  # fmt: skip


def _figures(results: Results, folder: Path) -> Iterator[Drawn]:
    title, seen = "Pessimistic objectives against cLPI", "cLPI has no lambda: its line is level but for its runs."
    yield from against_both(
        results, by_data(results), "weight", folder, "pessimism", title, "lambda", seen=seen, ticks="evenly"
    )


PESSIMISM = LEARNED.experiment(
    "pwll-pessimism",
    order=16,
    title="Pessimism does not solve optimisation problems",
    thesis_lines="5643-5655",
    question="Does pessimism, a penalty that keeps the learned policy near the logging policy, cure what makes IPS hard to "
    "optimise?",
    setting="In {told}, IPS with a variance penalty (SVP), and cIPS, ES and LS with a distance penalty, learn with each "
    "weight lambda ({weights}) from the logging policy's embeddings, as cLPI does without one, {runs} times each.",
    scales={
        "smoke": SMOKE | {"weights": [0.0, 0.01, 100.0]},
        "quick": LARGE | {"weights": [0.01, 1.0, 100.0]},
        "paper": PAPER | {"weights": [0.0, 0.0001, 0.001, 0.01, 0.1, 1.0, 10.0, 100.0]},
    },
    build=_cells,
    claims=_claims,
    figures=_figures,
    remarks=[
        "Here all policies start at theta_0, the logging policy's embeddings over all actions, which the distance is taken "
        "from, also in the world whose other experiments start at zero. Lambda = 0, no penalty, is no part of the "
        "statements about pessimism: it tells what the penalty does apart from what IPS does anyway; quick leaves it out. "
        "SVP is IPS with lambda times the root of a batch's variance over n. cLPI has no lambda: its line is level but for "
        "its runs.",
    ],
)  # fmt: skip

__all__ = ["PESSIMISM"]
