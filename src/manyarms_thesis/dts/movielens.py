"""dTS on MovieLens, with a prior pre-trained on the movies' vectors (thesis, Section 4.4.2)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from manyarms_thesis.dts.common import CONTEXT_ACCURACY, DTS, contexts_matter, with_contexts
from manyarms_thesis.dts.pretrained import (
    DEPTH,
    GIVEN_PRIORS,
    LOOKS,
    OWN,
    PARTICLES,
    READINGS,
    SHARED,
    own_shared_and_lints,
    prepared_regret,
    prepared_regret_of_action_contexts,
)
from manyarms_thesis.dts.swissroll_claims import of_rules
from manyarms_thesis.harness import movielens
from manyarms_thesis.harness.claims import Claim, lower_regret
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.figures import Drawn, regret_curves
from manyarms_thesis.harness.online import ACTION_CONTEXTS_REMARK
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Call, Cell

NOISE = 0.5
# more than there are: all movies of the data
EVERYTHING = 1_000_000


def movies_prior(data: str, dim: int, sizes: Sizes) -> dict[str, Any]:
    """What a prior of the movies is trained on: all movies' vectors."""
    told = {"data": "movies", "size": EVERYTHING, "depth": sizes["depth"], "source": data, "dim": dim}
    return told | dict(sizes.get("training", {}))


def movies_world(data: str, K: int, d: int) -> Call:
    """K movies with linear rewards."""
    world = {"source": data, "actions": K, "dim": d, "reward": "linear", "noise": NOISE}
    return Call(movielens.movielens_world, world)


def _cells(sizes: Sizes) -> Iterator[Cell]:
    return with_contexts(sizes, _printed(sizes), prepared_regret_of_action_contexts)


def _printed(sizes: Sizes) -> Iterator[Cell]:
    data = movielens.source()
    for d in sizes["d"]:
        agents = own_shared_and_lints(movies_prior(data, d, sizes), sizes["preparations"])
        for K in sizes["K"]:
            parameters, world = {"K": K, "d": d, "L": sizes["depth"], "data": data}, movies_world(data, K, d)
            yield Cell(f"K={K}, d={d}", parameters, world, agents, sizes["rounds"], sizes["runs"], prepared_regret)


def _claims(results: Results) -> list[Claim]:
    found = [
        lower_regret(results, panel, agent, "LinTS", f"On MovieLens {agent} outperforms LinTS", lines)
        for panel in results.panels
        for agent, lines in ((OWN, "1692"), (SHARED, ""))  # as pre-trained; with a Σ₁ that the thesis does not have
    ]
    found += [made for panel in results.panels for made in of_rules(results, panel)]
    return movielens.flag_ratings(results, found)


def _figures(results: Results, folder: Path) -> list[Drawn]:
    title = f"Regret with a pre-trained prior, {movielens.source_title(results)}"
    seen = "dTS with a diffusion trained on all movies' vectors, by several rules, and LinTS with their mean and variances."
    return [regret_curves(results, results.panels, folder, "regret", title, looks=LOOKS, seen=seen)]


MOVIELENS = DTS.experiment(
    "dts-movielens",
    order=6,
    title="dTS on MovieLens with a pre-trained prior",
    thesis_lines="1692",
    scales={
        "smoke": {
            "rounds": 40, "runs": 2, "K": [20], "d": [2], "preparations": 1, "depth": 6, "training": {"epochs": 100},
        },
        "quick": {"rounds": 1_000, "runs": 8, "K": [100], "d": [2, 5], "preparations": 2, "depth": DEPTH},
        "paper": {
            "rounds": 5_000, "runs": 50, "K": [100], "d": [2, 5, 10], "preparations": 5, "depth": DEPTH,
            "context_runs": 20,
        },
    },
    accuracy=CONTEXT_ACCURACY,
    across=contexts_matter(lambda results, panel: PARTICLES, "LinTS"),
    question="On films and their viewers, does a prior that was learned from the whole catalogue help to find out what people "
    "like?",
    setting="{K} films of MovieLens with {d} features each from a factorisation of the ratings; a diffusion of depth {depth} is "
    "pre-trained on all films' features. In each of {rounds} rounds a viewer comes and a film is shown; dTS with that prior and "
    "LinTS with the films' mean and variances play {runs} times.",
    build=_cells,
    claims=_claims,
    figures=_figures,
    remarks=[
        GIVEN_PRIORS,
        "The prior is pre-trained on the vectors of all movies, those that become actions among them, as the thesis's words "
        "are; LinTS has the mean and the variances of the same vectors. Rewards are x^Tθ + noise of σ = 0.5 with users' "
        "vectors as contexts (thesis, Section 3.4.2), where the thesis's words here are “the rating the user gives to a movie”: "
        "most ratings are not there, so that the factorisation stands for them. The thesis prints neither K, d nor T for this "
        "figure.",
        ACTION_CONTEXTS_REMARK + " Here that means another user for each movie.",
        *READINGS,
    ],
    warnings=movielens.warnings,
)  # fmt: skip

__all__ = ["MOVIELENS", "movies_prior", "movies_world"]
