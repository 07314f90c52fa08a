"""sDM on MovieLens, with a structure learned by a mixture and a model that is not the truth (thesis, lines 2016-2026)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from manyarms_thesis.harness.claims import Claim
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Call, Cell, Experiment
from manyarms_thesis.mets.builders import MADE_UP
from manyarms_thesis.mets.movielens import source
from manyarms_thesis.sdm.builders import CAPTION, HERE, LEARNERS, NUMBERS, TASK
from manyarms_thesis.sdm.claims import METHOD, beats
from manyarms_thesis.sdm.figures import reward_curves
from manyarms_thesis.sdm.synthetic import BASELINE_REMARKS, BASELINES, METRIC

DIM, EFFECTS, NOISE = 5, 5, 1.0
LEARNED_FROM = 1_000  # movies of which priors and clusters are learned (thesis, line 2019)


def _cells(sizes: Mapping[str, Any]) -> list[Cell]:
    data = source()
    cells = []
    for K in sizes["K"]:
        world = {
            "source": data, "actions": K, "dim": DIM, "noise": NOISE, "effects": EFFECTS, "sizes": list(sizes["n"]),
            "learned_from": LEARNED_FROM,
        }  # fmt: skip
        parameters = {"K": K, "d": DIM, "latent": DIM * EFFECTS, "logging": "uniform", "data": data}
        setting = Call(f"{HERE}:movielens_setting", world)
        cells.append(Cell(f"K={K:,}", parameters, setting, LEARNERS, max(sizes["n"]), sizes["runs"], TASK))
    return cells


def _claims(results: Results) -> list[Claim]:
    found = [
        beats(
            results, panel, METHOD, BASELINES,
            "On MovieLens sDM outperforms the baselines although its structure is only learned", "2021",
        )
        for panel in results.panels
    ]  # fmt: skip
    if results.parameter(results.panels[0], "data") == MADE_UP:
        found = [replace(made, statement=f"[made-up ratings, not MovieLens] {made.statement}") for made in found]
    return found


def _warnings() -> list[str]:
    if source() != MADE_UP:
        return []
    return [
        "THESE ARE NOT MOVIELENS RESULTS. The ratings are made up (400 users, 300 movies), because the data set was "
        "not found. Set MANYARMS_DATA to the folder that holds ml-1m and run again."
    ]


MOVIELENS = Experiment(
    name="sdm-movielens",
    title="sDM on MovieLens with a learned structure",
    thesis_lines="2016-2026",
    scales={
        "smoke": {"n": [50, 300], "runs": 3, "K": [60]},
        "quick": {"n": [100, 300, 1_000], "runs": 12, "K": [100, 1_000]},
        "paper": {"n": [100, 300, 1_000, 3_000, 10_000], "runs": 50, "K": [100, 1_000]},
    },
    build=_cells,
    claims=_claims,
    figures=lambda results, folder: [
        reward_curves(results, results.panels, folder, "reward", "Relative reward on MovieLens", columns=2)
    ],
    remarks=[
        METRIC,
        BASELINE_REMARKS,
        f"Mixture and prior moments are learned from the vectors of {LEARNED_FROM:,} rated movies drawn once, the same for all "
        "methods; the thesis says “the same subset of data (of size 1000)”. Here MIPS has the mixture's five clusters, and "
        "PC the centres that the mixture gives each movie.",
    ],
    warnings=_warnings,
    caption=CAPTION,
    numbers=NUMBERS,
)

__all__ = ["MOVIELENS"]
