"""Noisy rewards: R = 1[A in H] (1 - B) + B s with B ~ Bernoulli(epsilon) (thesis, lines 5532-5559)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from manyarms_thesis.harness.claims import Claim, claim, least, measured
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Cell, Experiment
from manyarms_thesis.pwll.builders import CATALOGUE, cell
from manyarms_thesis.pwll.claims import both, by_data, final, flagged
from manyarms_thesis.pwll.common import (
    CAPTION,
    NUMBERS,
    PAPER,
    QUICK,
    REMARKS,
    SMOKE,
    described,
    learners,
    made_up_warnings,
    worlds,
)  # fmt: skip
from manyarms_thesis.pwll.figures import against

LIKELIHOODS, ESTIMATES = ("cLPI", "RegKL"), ("cIPS", "IX", "POTEC")


def _cells(sizes: Mapping[str, Any]) -> list[Cell]:
    cells = []
    for data, world in worlds(sizes).items():
        if data == CATALOGUE:
            continue  # its rewards are random already
        for shift in sizes["shifts"]:
            for noise in sizes["noises"]:
                here = world | {"noise": noise, "shift": shift}
                parameters = described(world) | {"noise": noise, "shift": shift}
                agents = learners((*LIKELIHOODS, *ESTIMATES), sizes)
                panel = f"{data}, epsilon={noise:g}, s={shift:g}"
                cells.append(cell(panel, parameters, here, agents, sizes["runs"]))
    return cells


def _claims(results: Results) -> list[Claim]:
    found = []
    for data, panels in by_data(results).items():
        for name in LIKELIHOODS:
            found += both(
                results, panels, name, ESTIMATES,
                f"PWLL objectives maintain a clear advantage under noise: {name} over IPS-based methods", "5549", panel=data,
            )  # fmt: skip
        without = [panel for panel in panels if results.parameter(panel, "shift") == 0]
        worse = {
            f"{agent}, epsilon {results.parameter(a, 'noise')} to {results.parameter(b, 'noise')}":
            measured(final(results, a, agent)) - measured(final(results, b, agent))
            for agent in results.agents(panels[0])
            for a, b in zip(without[:1], without[-1:], strict=True)
        }  # fmt: skip
        nearest, difference = least(worse)
        found.append(
            claim(
                "More noise harms all methods where s = 0", "5549", difference, panel=data,
                detail=f"loss of value: {', '.join(f'{k} {v}' for k, v in worse.items())}; least convincing: {nearest}",
            )
        )  # fmt: skip
        hardest = [panel for panel in panels if results.parameter(panel, "shift") > 0][-1:]
        for panel in hardest:
            found.append(
                claim(
                    "RegKL outperforms cLPI where noise and shift are large", "5549",
                    measured(final(results, panel, "RegKL") - final(results, panel, "cLPI")), panel=panel,
                    detail=f"RegKL {measured(final(results, panel, 'RegKL'))}, "
                    f"cLPI {measured(final(results, panel, 'cLPI'))}",
                )
            )  # fmt: skip
    return flagged(results, found)


def _figures(results: Results, folder: Path) -> list[Path]:
    groups: dict[str, list[str]] = {}
    for panel in results.panels:
        groups.setdefault(f"{results.parameter(panel, 'data')}, s={results.parameter(panel, 'shift'):g}", []).append(
            panel
        )
    return [against(results, groups, "noise", folder, "noise", "Value under noisy rewards", "epsilon")]


NOISE = Experiment(
    name="pwll-noise",
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
        *REMARKS,
        "Values include the noise: (1 - epsilon) v + epsilon s for a policy that earns v without it. That alone lowers or raises "
        "all values alike as epsilon grows.",
    ],
    warnings=made_up_warnings,
    caption=CAPTION,
    numbers=NUMBERS,
)  # fmt: skip

__all__ = ["NOISE"]
