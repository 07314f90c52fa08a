"""Smaller catalogues, K = 100 to 5,000, and smaller or larger logging supports k0 (thesis, lines 5597-5641)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from manyarms_thesis.harness.claims import Claim, claim, measured
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Cell, Experiment
from manyarms_thesis.pwll.builders import MADE_UP, cell, is_there
from manyarms_thesis.pwll.claims import OF_MODES, ahead, both, by_data, flagged
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
from manyarms_thesis.pwll.figures import against, epochs

LIKELIHOOD, LINEAR = "cLPI", "cIPS"


def _small_cells(sizes: Mapping[str, Any]) -> list[Cell]:
    cells = []
    for data, K in sizes["catalogues"]:
        known = data if is_there(data) else MADE_UP
        if known == MADE_UP and K > 300:
            continue  # there are no more items
        world = worlds(dict(sizes) | {"data": [known], "items": K})[known]
        world |= {"items": K, "users": None}
        world["dim"] = min(world["dim"], sizes["dim"])
        agents = learners((LIKELIHOOD, LINEAR, "IPS"), sizes, curve=True)
        cells.append(cell(f"{known}, K={K:,}", described(world) | {"K": K}, world, agents, sizes["runs"]))
    return cells


def _small_claims(results: Results) -> list[Claim]:
    small = [panel for panel in results.panels if results.parameter(panel, "K") <= 500]
    medium = [panel for panel in results.panels if results.parameter(panel, "K") >= 500]
    found = []
    if small:
        found += both(
            results,
            small,
            LIKELIHOOD,
            [LINEAR],
            "Where K <= 500, cLPI finds a better maximum than cIPS by the end",
            "5601",
        )
        found.append(_faster(results, small[0], LINEAR, LIKELIHOOD, "cIPS converges faster than cLPI where K <= 500"))
    if medium:
        found += both(results, medium, LIKELIHOOD, [LINEAR], "Where K >= 500, cLPI outperforms cIPS", "5601")
        found.append(_faster(results, medium[-1], LIKELIHOOD, LINEAR, "cLPI converges faster than cIPS where K >= 500"))
    return flagged(results, found)


def _faster(results: Results, panel: str, quick: str, slow: str, statement: str) -> Claim:
    """By the share of its own final value that each has after the first epoch."""
    shares = {}
    for agent in (quick, slow):
        values = results.values(panel, agent, "value").astype(float)
        shares[agent] = values[:, 1] / np.maximum(values[:, -1], 1e-12)
    return claim(
        statement, "5601", measured(shares[quick] - shares[slow]), panel=panel,
        detail=", ".join(f"share of {agent}'s final value after one epoch: {measured(s)}" for agent, s in shares.items()),
    )  # fmt: skip


FILMS = "ml-1m"
SMALL = Experiment(
    name="pwll-small",
    title="Smaller catalogues",
    thesis_lines="5597-5613",
    scales={
        "smoke": SMOKE | {"catalogues": [(FILMS, 60), (FILMS, 200)], "k0": 30},
        "quick": QUICK | {
            "catalogues": [(FILMS, 100), (FILMS, 500), (FILMS, 1_000), (FILMS, 3_706), ("gowalla", 5_000)],
        },
        "paper": PAPER | {
            "catalogues": [(FILMS, 100), (FILMS, 500), (FILMS, 1_000), (FILMS, 3_706), ("gowalla", 5_000)], "rows": 132_744,
        },
    },
    build=_small_cells,
    claims=_small_claims,
    figures=lambda results, folder: [
        epochs(results, results.panels, folder, "small", "Value over the epochs in smaller catalogues")
    ],
    remarks=[
        *REMARKS,
        "The items with most users are kept. MovieLens 1M has 3,706 films, and the place of K = 5,000 is taken by the most "
        "visited places of Gowalla. With K = 100 the logging policy's support, k0 = 100, is the whole catalogue.",
    ],
    warnings=made_up_warnings,
    caption=CAPTION,
    numbers=NUMBERS,
)  # fmt: skip


# ---- the logging support ----------------------------------------------------------------------------------------------


def _logging_cells(sizes: Mapping[str, Any]) -> list[Cell]:
    cells = []
    for data, world in worlds(sizes).items():
        for k0 in sizes["supports"]:
            here = world | {"k0": k0}
            agents = learners(("cLPI", "cIPS", "IX", "MIPS"), sizes)
            cells.append(cell(f"{data}, k0={k0:,}", described(here), here, agents, sizes["runs"]))
    return cells


def _logging_claims(results: Results) -> list[Claim]:
    found = []
    for data, panels in by_data(results).items():
        for column in ("value", OF_MODES):
            found.append(
                ahead(
                    results, panels, "cLPI", ["cIPS", "IX", "MIPS"],
                    "PWLL is better than IPS-based approaches for every size of the logging support", "5634", column=column,
                    panel=data,
                )
            )  # fmt: skip
    return flagged(results, found)


LOGGING = Experiment(
    name="pwll-logging",
    title="Smaller and larger logging supports",
    thesis_lines="5632-5641",
    scales={
        "smoke": SMOKE | {"supports": [10, 60]},
        "quick": QUICK | {"supports": [10, 30, 100, 300, 1_000]},
        "paper": PAPER | {"supports": [10, 50, 100, 500, 1_000]},
    },
    build=_logging_cells,
    claims=_logging_claims,
    figures=lambda results, folder: [
        against(results, by_data(results), "k0", folder, "supports", "Value by the size of the logging support", "k0")
    ],
    remarks=[*REMARKS, "The thesis does not print which sizes of support it tries."],
    warnings=made_up_warnings,
    caption=CAPTION,
    numbers=NUMBERS,
)  # fmt: skip

__all__ = ["LOGGING", "SMALL"]
