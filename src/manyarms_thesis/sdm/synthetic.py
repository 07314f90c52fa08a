"""sDM against direct methods and learned policies, in its own worlds (thesis, Section 6.5 and Appendix C.4.1)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from manyarms_thesis.harness.claims import Claim
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Cell
from manyarms_thesis.sdm.claims import METHOD, beats, relative, shrinking
from manyarms_thesis.sdm.common import BASELINE_REMARKS, BASELINES, LOGGING, METRIC, SDM, latent_cell
from manyarms_thesis.sdm.figures import reward_curves
from manyarms_thesis.sdm.learners import LEARNERS


def _cells(sizes: Sizes) -> Iterator[Cell]:
    for logging, latents in (("uniform", sizes["latent"]), ("skewed", sizes["latent_skewed"])):
        for K in sizes["K"]:
            for latent in latents:
                yield latent_cell(sizes, K, latent, LEARNERS, logging=logging)


def _claims(results: Results) -> Iterator[Claim]:
    for panel in results.panels:
        statement = "sDM outperforms all baselines, at every size of the log"
        yield beats(results, panel, METHOD, BASELINES, statement, "2000")
        statement = "The gap to the most competitive baseline is larger when the log is small"
        yield shrinking(results, panel, METHOD, "DM (Bayes)", statement, "2000")
    for panel in results.panels:
        levels = {name: float(relative(results, panel, name).mean(axis=1).mean()) for name in BASELINES}
        best = max(levels, key=levels.__getitem__)
        others = [name for name in BASELINES if name != "DM (Bayes)"]
        made = beats(results, panel, "DM (Bayes)", others, "DM (Bayes) is the most competitive baseline", "2007")
        yield replace(made, detail=f"{made.detail}; the best baseline over all sizes is {best}")


SYNTHETIC = SDM.experiment(
    "sdm-synthetic",
    order=1,
    title="sDM against direct methods and learned policies, in synthetic problems",
    thesis_lines="1990-2005, 4742-4788",
    scales={
        "smoke": {"n": [50, 300], "runs": 3, "K": [40], "latent": [5], "latent_skewed": [5]},
        "quick": {"n": [100, 300, 1_000], "runs": 10, "K": [100, 1_000], "latent": [5, 10, 20], "latent_skewed": [10]},
        "paper": {
            "n": [100, 300, 1_000, 3_000, 10_000], "runs": 50, "K": [100, 1_000], "latent": [5, 10, 20],
            "latent_skewed": [5, 10, 20],
        },
    },
    build=_cells,
    claims=_claims,
    figures=lambda results, folder: [
        reward_curves(
            results, results.where(logging=logging), folder, f"reward-{logging}", f"Relative reward, {logging} logging"
        )
        for logging in ("uniform", "skewed")
    ],
    remarks=[METRIC, BASELINE_REMARKS, LOGGING, "The sizes of log are this project's choice."],
)  # fmt: skip

__all__ = ["SYNTHETIC"]
