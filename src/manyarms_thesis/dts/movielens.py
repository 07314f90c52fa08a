"""dTS on MovieLens, with a prior pre-trained on the movies' vectors (thesis, line 1692)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from manyarms_thesis.dts.figures import regret_panels
from manyarms_thesis.dts.pretrained import DEPTH, TASK, agent_call
from manyarms_thesis.dts.swissroll import LOOKS, OWN, SHARED
from manyarms_thesis.harness.claims import Claim, claim, gain, measured
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Call, Cell, Experiment
from manyarms_thesis.mets import builders
from manyarms_thesis.mets.builders import MADE_UP, REAL
from manyarms_thesis.mets.movielens import NOISE, source

# more than there are: all movies of the data
EVERYTHING = 1_000_000


def movies_prior(data: str, dim: int, sizes: Mapping[str, Any]) -> dict[str, Any]:
    """What a prior of the movies is trained on: all movies' vectors."""
    told = {"data": "movies", "size": EVERYTHING, "depth": sizes["depth"], "source": data, "dim": dim}
    return told | dict(sizes.get("training", {}))


def movies_world(data: str, K: int, d: int) -> Call:
    """K movies with linear rewards."""
    world = {"source": data, "actions": K, "dim": d, "reward": "linear", "noise": NOISE}
    return Call(f"{builders.HERE}:movielens_world", world)


def _cells(sizes: Mapping[str, Any]) -> list[Cell]:
    data = source()
    cells = []
    for d in sizes["d"]:
        told = {"prior": movies_prior(data, d, sizes), "preparations": sizes["preparations"]}
        agents = {
            OWN: agent_call("dTS", **told), SHARED: agent_call("dTS", **told, shared=True), "LinTS": agent_call("LinTS"),
        }  # fmt: skip
        for K in sizes["K"]:
            parameters = {"K": K, "d": d, "L": sizes["depth"], "data": data}
            world = movies_world(data, K, d)
            cells.append(Cell(f"K={K}, d={d}", parameters, world, agents, sizes["rounds"], sizes["runs"], task=TASK))
    return cells


def _claims(results: Results) -> list[Claim]:
    found = [
        claim(
            f"On MovieLens {agent} outperforms LinTS", "1692", gain(results, panel, agent, "LinTS"), panel=panel,
            detail=f"final regret: {agent} {measured(results.final(panel, agent))}, "
            f"LinTS {measured(results.final(panel, 'LinTS'))}",
        )
        for panel in results.panels
        for agent in (OWN, SHARED)
    ]  # fmt: skip
    return mark_made_up(results, found)


def mark_made_up(results: Results, claims: list[Claim], panels: str = "") -> list[Claim]:
    """Claims that rest on made-up ratings say so; `panels` restricts this to panels whose names begin so."""
    if all(cell.parameters.get("data") != MADE_UP for cell in results.cells.values()):
        return claims
    return [
        replace(made, statement=f"[made-up ratings, not MovieLens] {made.statement}")
        if made.panel.startswith(panels)
        else made
        for made in claims
    ]


def warnings() -> list[str]:
    """Made-up data are named as such."""
    if source() == REAL:
        return []
    return [
        "THESE ARE NOT MOVIELENS RESULTS. The ratings are made up (400 users, 300 movies), because the data set was "
        "not found. Set MANYARMS_DATA to the folder that holds ml-1m and run again."
    ]


def _figures(results: Results, folder: Path) -> list[Path]:
    made_up = results.parameter(results.panels[0], "data") == MADE_UP
    title = f"Regret with a pre-trained prior, {'made-up ratings (not MovieLens)' if made_up else 'MovieLens 1M'}"
    return [regret_panels(results, results.panels, folder, "regret", title, columns=3, looks=LOOKS)]


MOVIELENS = Experiment(
    name="dts-movielens",
    title="dTS on MovieLens with a pre-trained prior",
    thesis_lines="1692",
    scales={
        "smoke": {
            "rounds": 40, "runs": 2, "K": [20], "d": [2], "preparations": 1, "depth": 6, "training": {"epochs": 100},
        },
        "quick": {"rounds": 1_000, "runs": 8, "K": [100], "d": [2, 5], "preparations": 2, "depth": DEPTH},
        "paper": {"rounds": 5_000, "runs": 50, "K": [100], "d": [2, 5, 10], "preparations": 5, "depth": DEPTH},
    },
    build=_cells,
    claims=_claims,
    figures=_figures,
    remarks=[
        "The prior is pre-trained on the vectors of all movies, those that become actions among them, as the thesis's words "
        "are; LinTS has the mean and the variances of the same vectors. Rewards are x^Tθ + noise of σ = 0.5 with users' "
        "vectors as contexts (thesis, lines 1256-1262). The thesis prints neither K, d nor T for this figure.",
        "“dTS” has one chain per action, “dTS, shared chain” the thesis's one chain for all, with Σ₁ as wide as the movies.",
    ],
    warnings=warnings,
)  # fmt: skip

__all__ = ["MOVIELENS", "mark_made_up", "movies_prior", "movies_world", "warnings"]
