"""sDM with a linear likelihood where rewards are binary (thesis, Appendix C.4.2)."""

from __future__ import annotations

from collections.abc import Iterator

from manyarms_thesis.harness.claims import Claim
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Call, Cell
from manyarms_thesis.sdm.claims import beats
from manyarms_thesis.sdm.common import BASELINE_REMARKS, METRIC, SDM, latent_cell
from manyarms_thesis.sdm.figures import reward_curves
from manyarms_thesis.sdm.learners import LEARNERS, learn_sdm

LINEAR = ("DM (Bayes)-Lin", "DM (Freq)-Lin")
GRADIENT = ("IPS", "snIPS", "DR", "MIPS", "PC")
BINARY_LEARNERS = {
    "sDM-Lin": LEARNERS["sDM"],
    "sDM-Log": Call(learn_sdm, {"likelihood": "logistic"}),
    "DM (Bayes)-Lin": LEARNERS["DM (Bayes)"],
    "DM (Freq)-Lin": LEARNERS["DM (Freq)"],
    **{name: LEARNERS[name] for name in GRADIENT},
}


def _cells(sizes: Sizes) -> Iterator[Cell]:
    for K in sizes["K"]:
        for latent in sizes["latent"]:
            name = f"binary rewards, K={K:,}, d'={latent}"
            yield latent_cell(sizes, K, latent, BINARY_LEARNERS, name=name, reward="logistic")


def _claims(results: Results) -> list[Claim]:
    statement = "sDM still outperforms all methods despite a misspecified likelihood"
    return [beats(results, panel, "sDM-Lin", (*LINEAR, *GRADIENT), statement, "4794") for panel in results.panels]


LIKELIHOOD = SDM.experiment(
    "sdm-likelihood",
    order=4,
    title="sDM with a linear likelihood where rewards are binary",
    thesis_lines="4790-4803",
    question="Does sDM keep its lead when rewards are binary and it takes them for linear with Gaussian noise?",
    setting="sDM's synthetic worlds with Bernoulli rewards of the logistic function of x^T θ_a: {K} actions, d=10, d'={latent}; "
    "a uniform policy logs {n} rows. Direct methods assume a linear likelihood (-Lin); policies are valued exactly, over "
    "{runs} worlds.",
    scales={
        "smoke": {"n": [50, 300], "runs": 3, "K": [40], "latent": [10]},
        "quick": {"n": [100, 300, 1_000], "runs": 20, "K": [100, 1_000], "latent": [10]},
        "paper": {"n": [100, 300, 1_000, 3_000, 10_000], "runs": 50, "K": [100, 1_000], "latent": [5, 10, 20]},
    },
    build=_cells,
    claims=_claims,
    figures=lambda results, folder: [
        reward_curves(
            results, results.panels, folder, "reward", "Relative reward where rewards are binary",
            seen="What is learned from binary rewards by methods that take them for Gaussian (-Lin), by sDM with the right "
            "likelihood (sDM-Log), and by gradient.",
        )
    ],
    remarks=[
        METRIC,
        BASELINE_REMARKS,
        "Rewards are Bernoulli with the logistic function of x^T θ_a; linear likelihoods take σ = 1. In these worlds the scores "
        "have standard deviations of about six: most probabilities are near 0 or 1, and many actions are nearly best. DM (Bayes) "
        "plays unseen actions by their prior means, which is very good in some worlds and very bad in others.",
        "sDM-Log, with the right likelihood through the Laplace approximation, is this project's addition. A Gaussian at the "
        "maximum of each action's own likelihood (thesis, Section 3.2.3) has next to no precision where an action has few "
        "rows, all with the same reward: on 100 rows the latent vector keeps 0.99 of its prior variance, and sDM-Log decides by "
        "prior means too. The linear likelihood has no such flat ends.",
    ],
)  # fmt: skip

__all__ = ["LIKELIHOOD"]
