"""sDM on MovieLens, with a structure learned by a mixture and a model that is not the truth (thesis, Section 6.5.2)."""

from __future__ import annotations

from collections.abc import Iterator

from manyarms_thesis.harness import movielens
from manyarms_thesis.harness.claims import Claim
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Call, Cell
from manyarms_thesis.sdm.claims import METHOD, beats
from manyarms_thesis.sdm.common import BASELINE_REMARKS, BASELINES, METRIC, SDM
from manyarms_thesis.sdm.figures import reward_curves
from manyarms_thesis.sdm.learners import LEARNERS, movielens_problem, value_by_size

DIM, EFFECTS, NOISE = 5, 5, 1.0
LEARNED_FROM = 1_000  # movies of which priors and clusters are learned (thesis, Section 6.5.2)


def _cells(sizes: Sizes) -> Iterator[Cell]:
    data = movielens.source()
    for K in sizes["K"]:
        world = {
            "source": data, "actions": K, "dim": DIM, "noise": NOISE, "effects": EFFECTS, "sizes": list(sizes["n"]),
            "learned_from": LEARNED_FROM,
        }  # fmt: skip
        parameters = {"K": K, "d": DIM, "latent": DIM * EFFECTS, "logging": "uniform", "data": data}
        problem = Call(movielens_problem, world)
        yield Cell(f"K={K:,}", parameters, problem, LEARNERS, max(sizes["n"]), sizes["runs"], value_by_size)


def _claims(results: Results) -> list[Claim]:
    statement = "On MovieLens sDM still outperforms the baselines, by learning its latent structure offline"
    lines = {panel: "2021" if results.parameter(panel, "data") == movielens.REAL else "" for panel in results.panels}
    found = [beats(results, panel, METHOD, BASELINES, statement, lines[panel]) for panel in results.panels]
    return movielens.flag_ratings(results, found)


MOVIELENS = SDM.experiment(
    "sdm-movielens",
    order=3,
    title="sDM on MovieLens with a learned structure",
    thesis_lines="2016-2026",
    question="Does sDM outperform the baselines on MovieLens, where its latent structure is not the truth and has to be learned "
    "from the movies?",
    setting="MovieLens 1M, factorised into 5-dimensional vectors: {K} random movies are the actions, users the contexts, and the "
    "reward is their product with noise of σ=1. A mixture of 5 components gives sDM its structure. A uniform policy logs {n} "
    "rows; means of {runs} runs.",
    scales={
        "smoke": {"n": [50, 300], "runs": 3, "K": [60]},
        "quick": {"n": [100, 300, 1_000], "runs": 12, "K": [100, 1_000]},
        "paper": {"n": [100, 300, 1_000, 3_000, 10_000], "runs": 50, "K": [100, 1_000]},
    },
    build=_cells,
    claims=_claims,
    figures=lambda results, folder: [
        reward_curves(
            results, results.panels, folder, "reward", "Relative reward on MovieLens", columns=2,
            seen="How near the best policy's reward each method comes where no model of them is the truth.",
        )
    ],
    remarks=[
        METRIC,
        BASELINE_REMARKS,
        f"Mixture and prior moments are learned from the vectors of {LEARNED_FROM:,} rated movies drawn once, the same for all "
        "methods; the thesis says “the same subset of data (of size 1000)”. Here MIPS has the mixture's five clusters, and "
        "PC the centres that the mixture gives each movie.",
    ],
    warnings=movielens.warnings,
)  # fmt: skip

__all__ = ["MOVIELENS"]
