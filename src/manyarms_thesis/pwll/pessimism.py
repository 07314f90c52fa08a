"""Pessimism: V - lambda sqrt(Var / n), and V - lambda / n ||theta - theta0||^2, against cLPI (thesis, lines 5643-5655)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from manyarms_thesis.harness.claims import Claim, claim, measured
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Cell, Experiment
from manyarms_thesis.pwll.builders import cell
from manyarms_thesis.pwll.claims import both, by_data, final, flagged
from manyarms_thesis.pwll.common import (
    CAPTION,
    NUMBERS,
    PAPER,
    QUICK,
    REMARKS,
    SMOKE,
    TUNED,
    described,
    learners,
    made_up_warnings,
    worlds,
)  # fmt: skip
from manyarms_thesis.pwll.figures import against

PENALISED = {"SVP": ("IPS", "svp"), "cIPS": ("cIPS", "distance"), "ES": ("ES", "distance"), "LS": ("LS", "distance")}


def _cells(sizes: Mapping[str, Any]) -> list[Cell]:
    cells = []
    for data, world in worlds(sizes).items():
        for weight in sizes["weights"]:
            agents = learners(("cLPI",), sizes, start="logging")
            for name, (objective, penalty) in PENALISED.items():
                made = learners((objective,), sizes, schedule=TUNED, start="logging", **{penalty: weight})
                agents[f"{name}, pessimistic"] = made[objective]
            parameters = described(world) | {"weight": weight}
            cells.append(cell(f"{data}, lambda={weight:g}", parameters, world, agents, sizes["runs"]))
    return cells


def _claims(results: Results) -> list[Claim]:
    found = []
    for data, panels in by_data(results).items():
        for name in PENALISED:
            found += both(
                results, panels, "cLPI", [f"{name}, pessimistic"], f"Pessimistic {name} fails to outperform cLPI for any lambda",
                "5647", panel=data,
            )  # fmt: skip
        first, last = panels[0], panels[-1]
        for name in PENALISED:
            if name == "SVP":
                continue
            agent = f"{name}, pessimistic"
            start = results.values(last, agent, "value").astype(float)[:, 0]
            near = abs(final(results, first, agent) - start) - abs(final(results, last, agent) - start)
            found.append(
                claim(
                    f"With a large lambda the policy stays too close to where it starts: {name}", "5647", measured(near),
                    panel=data,
                    detail=f"value at the start {measured(start)}, {first} {measured(final(results, first, agent))}, "
                    f"{last} {measured(final(results, last, agent))}",
                )
            )  # fmt: skip
    return flagged(results, found)


def _figures(results: Results, folder: Path) -> list[Path]:
    title = "Pessimistic objectives against cLPI"
    return [against(results, by_data(results), "weight", folder, "pessimism", title, "lambda")]


PESSIMISM = Experiment(
    name="pwll-pessimism",
    title="Pessimism does not solve optimisation problems",
    thesis_lines="5643-5655",
    scales={
        "smoke": SMOKE | {"weights": [0.01, 100.0]},
        "quick": QUICK | {"weights": [0.01, 0.1, 1.0, 10.0, 100.0]},
        "paper": PAPER | {"weights": [0.001, 0.01, 0.1, 1.0, 10.0, 100.0]},
    },
    build=_cells,
    claims=_claims,
    figures=_figures,
    remarks=[
        *REMARKS,
        "Here all policies start at theta_0, the logging policy's embeddings over all actions, which the distance is taken "
        "from. SVP is IPS with lambda times the root of a batch's variance over n. cLPI has no lambda: its line is level "
        "but for its runs.",
    ],
    warnings=made_up_warnings,
    caption=CAPTION,
    numbers=NUMBERS,
)  # fmt: skip

__all__ = ["PESSIMISM"]
