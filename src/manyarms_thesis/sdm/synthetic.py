"""sDM against direct methods and learned policies, in its own worlds (thesis, Section 6.5 and Appendix C.4.1)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from manyarms_thesis.harness.claims import Claim
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.figures import Drawn
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Cell
from manyarms_thesis.sdm.claims import METHOD, beats, relative, shrinking
from manyarms_thesis.sdm.common import BASELINE_REMARKS, BASELINES, LOGGING, METRIC, SDM, latent_cell
from manyarms_thesis.sdm.figures import reward_curves
from manyarms_thesis.sdm.learners import LEARNERS

BAYES = "DM (Bayes)"


def _cells(sizes: Sizes) -> Iterator[Cell]:
    for logging, latents in (("uniform", sizes["latent"]), ("skewed", sizes["latent_skewed"])):
        for K in sizes["K"]:
            for latent in latents:
                yield latent_cell(sizes, K, latent, LEARNERS, logging=logging)


def _claims(results: Results) -> Iterator[Claim]:
    for panel in results.panels:
        # the thesis announces other logging policies, and prints none
        printed = results.parameter(panel, "logging") == "uniform"
        statement = "sDM consistently outperforms the baselines, at every size of the log"
        yield beats(results, panel, METHOD, BASELINES, statement, "2000" if printed else "")
        statement = "The gap to the baselines becomes even more significant when the sample size is small"
        yield shrinking(results, panel, METHOD, BASELINES, statement, "2000" if printed else "")
        levels = {name: float(relative(results, panel, name).mean()) for name in BASELINES}
        best = max(levels, key=levels.__getitem__)
        others = [name for name in BASELINES if name != BAYES]
        statement = "DM (Bayes) is the most competitive baseline"
        made = beats(results, panel, BAYES, others, statement, "2007" if printed else "")
        yield replace(made, detail=f"{made.detail}; the best baseline over all sizes is {best}")


def _figures(results: Results, folder: Path) -> Iterator[Drawn]:
    for logging, words in (
        ("uniform", "a uniform policy"),
        ("skewed", "a policy that plays few actions most of the time"),
    ):
        seen = f"How near the best policy's reward each method comes from the log of {words}."
        title = f"Relative reward, {logging} logging"
        yield reward_curves(results, results.where(logging=logging), folder, f"reward-{logging}", title, seen=seen)


SYNTHETIC = SDM.experiment(
    "sdm-synthetic",
    order=1,
    title="sDM against direct methods and learned policies, in synthetic problems",
    thesis_lines="1990-2005, 4742-4788",
    question="Does a policy learned with sDM's latent structure earn more than those of other direct methods and of importance "
    "weighting, and is its lead largest where data are few?",
    setting="Linear-Gaussian worlds with a latent vector: {K} actions, d=10, d'={latent}, σ=1, Σ=3I, Σ_a=I; a uniform policy "
    "logs {n} rows. sDM and DM (Bayes) know the prior; DM (Freq) does not; IPS, snIPS, DR, MIPS and PC learn softmax policies. "
    "Policies are valued exactly, over {runs} worlds.",
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
    figures=_figures,
    remarks=[METRIC, BASELINE_REMARKS, LOGGING, "The sizes of log are this project's choice."],
)  # fmt: skip

__all__ = ["SYNTHETIC"]
