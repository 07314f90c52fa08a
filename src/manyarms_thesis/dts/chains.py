"""One chain shared by all actions against one chain each, and two rules for evidence on its way up (thesis, Section 4.1).

The thesis's latents are shared by all actions. With links pre-trained on single actions' parameters this says that all actions
lie within Sigma_1 of one point. Here both readings, both rules for Sigma_1 and both approximations meet the same worlds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from manyarms._base.palette import PALETTE
from manyarms_thesis.dts.common import DTS
from manyarms_thesis.dts.movielens import movies_prior, movies_world
from manyarms_thesis.dts.pretrained import DEPTH, prepared_lints, prepared_regret, pretrained_dts, swiss_world
from manyarms_thesis.harness import movielens
from manyarms_thesis.harness.claims import Claim, lower_regret
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.figures import regret_curves
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Call, Cell

# narrow: the schedule's Sigma_1; wide: that of the estimates; J: the rule with Jacobians; M: that of moments
OWN, NARROW, WIDE = "own", "shared, narrow", "shared, wide"
OWN_JACOBIAN, WIDE_JACOBIAN, WIDE_MOMENTS = f"{OWN}, J", f"{WIDE}, J", f"{WIDE}, M"
VARIANTS: Mapping[str, Mapping[str, Any]] = {
    OWN: {},
    OWN_JACOBIAN: {"approximation": "jacobian"},
    NARROW: {"shared": True, "first": "schedule"},
    WIDE: {"shared": True, "first": "spread"},
    WIDE_JACOBIAN: {"shared": True, "first": "spread", "approximation": "jacobian"},
    WIDE_MOMENTS: {"shared": True, "first": "spread", "approximation": "moments"},
}
LOOKS = {
    OWN: (PALETTE[0], "-"), OWN_JACOBIAN: (PALETTE[0], "--"), NARROW: (PALETTE[3], "-."), WIDE: (PALETTE[2], "-"),
    WIDE_JACOBIAN: (PALETTE[2], "--"), WIDE_MOMENTS: (PALETTE[2], ":"),
}  # fmt: skip
ROLL, MOVIES = "Swiss roll", "MovieLens"


def _cells(sizes: Sizes) -> Iterator[Cell]:
    data = movielens.source()
    roll = {"data": "swiss-roll", "size": sizes["n"], "depth": sizes["depth"], **sizes.get("training", {})}
    for K in sizes["K"]:
        for name, prior, world, d, more in (
            (ROLL, roll, Call(swiss_world, {"actions": K, "noise": 1.0}), 2, {}),
            (MOVIES, movies_prior(data, sizes["d"], sizes), movies_world(data, K, sizes["d"]), sizes["d"], {"data": data}),
        ):  # fmt: skip
            told = {"prior": prior, "preparations": sizes["preparations"]}
            agents = {variant: Call(pretrained_dts, {**told, **how}) for variant, how in VARIANTS.items()}
            agents["LinTS"] = Call(prepared_lints)
            parameters, panel = {"world": name, "K": K, "d": d, "L": sizes["depth"], **more}, f"{name}, K={K}, d={d}"
            yield Cell(panel, parameters, world, agents, sizes["rounds"], sizes["runs"], prepared_regret)


STATEMENTS = (
    ("One chain per action has lower regret than LinTS", "1688-1692", OWN, "LinTS"),
    ("The shared chain of the thesis, Σ₁ from the schedule, has lower regret than LinTS", "1286-1300", NARROW, "LinTS"),
    ("The shared chain with Σ₁ as wide as the estimates has lower regret than LinTS", "1286-1300", WIDE, "LinTS"),
    ("One chain per action has lower regret than the thesis's shared chain", "1286-1300", OWN, NARROW),
    ("One chain per action has lower regret than a shared chain with a wide Σ₁", "1286-1300", OWN, WIDE),
    ("For own chains the thesis's rule has lower regret than that with Jacobians", "3553-3556", OWN, OWN_JACOBIAN),
    ("For a shared chain the thesis's rule has lower regret than that with Jacobians", "3553-3556", WIDE, WIDE_JACOBIAN),
)  # fmt: skip


def _claims(results: Results) -> list[Claim]:
    found = [
        lower_regret(results, panel, ours, theirs, statement, lines)
        for panel in results.panels
        for statement, lines, ours, theirs in STATEMENTS
    ]
    return movielens.flag_ratings(results, found, MOVIES)


def _figures(results: Results, folder: Path) -> list[Path]:
    title = "Regret by how the chain is read and how evidence goes up"
    return [regret_curves(results, results.panels, folder, "chains", title, columns=2, looks=LOOKS)]


CHAINS = DTS.experiment(
    "dts-chains",
    order=10,
    title="One chain for all actions or one each; two rules for evidence",
    thesis_lines="1286-1300, 3539-3566",
    scales={
        "smoke": {
            "rounds": 30, "runs": 2, "K": [12], "n": 200, "d": 2, "depth": 5, "preparations": 1,
            "training": {"epochs": 100},
        },
        "quick": {"rounds": 500, "runs": 6, "K": [100], "n": 10_000, "d": 5, "depth": DEPTH, "preparations": 2},
        "paper": {"rounds": 5_000, "runs": 50, "K": [100], "n": 10_000, "d": 5, "depth": DEPTH, "preparations": 5},
    },
    build=_cells,
    claims=_claims,
    figures=_figures,
    remarks=[
        "The thesis makes no such comparison: its statements about pre-trained priors are put to each reading of its model. "
        "“own” has one chain per action; of a shared chain Σ₁ is “narrow”, that of the schedule (what the diffusion says of one "
        "action), or “wide”, the estimates' covariance (manyarms.priors.pretraining). “J” carries evidence up through "
        "linearised links (beliefs/messages.py), “M” has a Gaussian with the moments of the chain's end.",
    ],
    warnings=movielens.warnings,
)  # fmt: skip

__all__ = ["CHAINS"]
