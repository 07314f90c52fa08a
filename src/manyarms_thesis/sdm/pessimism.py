"""Greedy against pessimistic decisions with sDM (thesis, Appendices C.4.4 and C.3.3)."""

from __future__ import annotations

from collections.abc import Iterator

from manyarms_thesis.harness.claims import Claim, claim, least, listed, measured
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Call, Cell
from manyarms_thesis.sdm.claims import METHOD, relative
from manyarms_thesis.sdm.common import METRIC, SDM, latent_grid
from manyarms_thesis.sdm.figures import reward_curves
from manyarms_thesis.sdm.learners import LEARNERS, learn_sdm


def _cells(sizes: Sizes) -> list[Cell]:
    learners = {METHOD: LEARNERS[METHOD]}
    learners |= {f"sDM, pessimistic, δ={delta:g}": Call(learn_sdm, {"delta": delta}) for delta in sizes["delta"]}
    learners |= {f"sDM, pessimistic, width {width:g}": Call(learn_sdm, {"width": width}) for width in sizes["width"]}
    return latent_grid(sizes, learners)


def _claims(results: Results) -> Iterator[Claim]:
    for panel in results.panels:
        means = {name: relative(results, panel, name).mean(axis=1) for name in results.methods(panel)}
        ahead = {name: measured(means[METHOD] - means[name]) for name in means if name != METHOD}
        # the thesis has the width alpha(d, delta); another width is this project's
        for kind, words, lines in (("δ=", "the pessimistic one", "4825"), ("width ", "one of a smaller width", "")):
            among = {name: value for name, value in ahead.items() if kind in name}
            if not among:
                continue
            name, difference = least(among)
            yield claim(
                f"The greedy policy has better average performance than {words}", lines, difference, panel=panel,
                detail=f"lead in relative reward, over all sizes: {listed(among)}; least: {name}", parts=list(among.values()),
            )  # fmt: skip


PESSIMISM = SDM.experiment(
    "sdm-pessimism",
    order=6,
    title="Greedy against pessimistic decisions with sDM",
    thesis_lines="4815-4831, 4726-4737",
    question="Averaged over worlds drawn from the prior, is the greedy policy better than a pessimistic one, as theory says?",
    setting="sDM's synthetic worlds with {K} actions, d=10, d'={latent} and σ=1; a uniform policy logs {n} rows. The same "
    "posterior decides greedily, or by mean less width times standard deviation, with the thesis's width at δ={delta} and "
    "with a width of {width}; means of {runs} worlds.",
    scales={
        "smoke": {"n": [50, 300], "runs": 6, "K": [40], "latent": [5, 10], "delta": [0.05], "width": [1.0]},
        "quick": {
            "n": [100, 300, 1_000, 3_000], "runs": 20, "K": [100, 1_000], "latent": [5, 10, 20], "delta": [0.05, 0.5],
            "width": [1.0],
        },
        "paper": {
            "n": [100, 300, 1_000, 3_000, 10_000], "runs": 50, "K": [100, 1_000], "latent": [5, 10, 20],
            "delta": [0.05, 0.5], "width": [1.0],
        },
    },
    build=_cells,
    claims=_claims,
    figures=lambda results, folder: [
        reward_curves(
            results, results.panels, folder, "reward", "Relative reward of greedy and pessimistic decisions",
            seen="What the same posteriors are worth when decisions are greedy, and when they are the more careful the larger "
            "the width.",
        )
    ],
    remarks=[
        METRIC,
        "δ is not printed in the thesis; α(10, 0.05) is 5.3 and α(10, 0.5) is 4.4. Width 1, one posterior standard deviation, "
        "is this project's addition. That greedy is best on average over the prior is a theorem (Appendix C.3.3): what "
        "is undecided here is so for want of runs.",
    ],
)  # fmt: skip

__all__ = ["PESSIMISM"]
