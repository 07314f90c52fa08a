"""meTS with wrong hyper-parameters (thesis, Appendix A.4.3)."""

from __future__ import annotations

from collections.abc import Iterator

from manyarms_thesis.harness.claims import Claim, claim, measured, outperforms
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.figures import regret_curves
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Cell
from manyarms_thesis.mets.agents import LINEAR_BASELINES
from manyarms_thesis.mets.common import CONTEXT_ACCURACY, METS, REMARKS, both_schemes, synthetic_cell


def _cells(sizes: Sizes) -> Iterator[Cell]:
    agents = ("meTS-Lin-mis", "meTS-Lin", *LINEAR_BASELINES)
    return both_schemes(sizes, (synthetic_cell(sizes, agents, K) for K in sizes["K"]))


def _claims(results: Results) -> Iterator[Claim]:
    for panel in results.panels:
        statement = "Misspecified meTS-Lin still performs better than well-specified baselines"
        yield outperforms(results, panel, "meTS-Lin-mis", LINEAR_BASELINES, statement, "3402")
        best = min(LINEAR_BASELINES, key=lambda name: float(results.final(panel, name).mean()))
        wrong, right, baseline = (results.final(panel, name) for name in ("meTS-Lin-mis", "meTS-Lin", best))
        yield claim(
            "Misspecified meTS-Lin performs similarly to meTS-Lin: it is nearer to it than to the best baseline",
            "3402", measured((baseline - wrong) - (wrong - right)), panel=panel,
            detail=f"lost to misspecification {measured(wrong - right)}; still ahead of {best} by "
            f"{measured(baseline - wrong)}; the figure is the second less the first",
        )  # fmt: skip


MISSPECIFIED = METS.experiment(
    "mets-misspecified",
    order=6,
    title="meTS with wrong hyper-parameters",
    thesis_lines="3400-3410",
    scales={
        "smoke": {"rounds": 150, "runs": 4, "K": [20, 40]},
        "quick": {"rounds": 4_000, "runs": 16, "K": [20, 50, 100]},
        "paper": {"rounds": 5_000, "runs": 50, "context_runs": 20, "K": [20, 50, 100]},
    },
    build=_cells,
    accuracy=CONTEXT_ACCURACY,
    claims=_claims,
    figures=lambda results, folder: [
        regret_curves(
            results, results.panels, folder, "regret", "Regret with misspecified hyper-parameters",
            seen="meTS-Lin-mis believes in variances and weights that are up to twice too large, or near zero.",
        )
    ],
    question="Nobody knows the variances and mixing weights exactly. How much does meTS lose when those it is told are off by a "
    "random factor between 0 and 2, and is it still ahead of agents that are told the truth?",
    setting="K = {K} actions, L = 3 effects, d = 2 dimensions, linear rewards. In every run four factors, uniform between 0 and "
    "2, multiply the effects' covariance and mean, the actions' covariance and the weights of meTS-Lin-mis. It plays {rounds} "
    "rounds beside meTS, LinTS, LinUCB and HierTS with the true ones, {runs} times.",
    remarks=[
        *REMARKS,
        "The effects' prior mean is zero in this world, so that its constant c2 changes nothing. “Similarly” is "
        "measured as: nearer to well-specified meTS-Lin than to the best baseline.",
    ],
)  # fmt: skip

__all__ = ["MISSPECIFIED"]
