"""sDM and DM (Bayes) as the catalogue grows (thesis, Section 6.5.1)."""

from __future__ import annotations

from pathlib import Path

from manyarms_thesis.harness.claims import Claim, increasing, measured
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.figures import Drawn
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Cell
from manyarms_thesis.sdm.claims import METHOD, beats, lead, relative, sizes_of
from manyarms_thesis.sdm.common import METRIC, SDM, latent_cell
from manyarms_thesis.sdm.figures import draw_rewards
from manyarms_thesis.sdm.learners import LEARNERS


def _cells(sizes: Sizes) -> list[Cell]:
    learners = {name: LEARNERS[name] for name in (METHOD, "DM (Bayes)")}
    return [latent_cell(sizes, K, sizes["latent"], learners, name=f"K={K:,}") for K in sizes["K"]]


def _claims(results: Results) -> list[Claim]:
    gaps = {panel: lead(results, panel, METHOD, "DM (Bayes)")[sizes_of(results, panel)[-1]] for panel in results.panels}
    last = results.panels[-1]
    return [
        increasing(
            gaps, "The gap between sDM and DM (Bayes) becomes more significant when the number of actions grows", "2007"
        ),
        beats(
            results, last, METHOD, ["DM (Bayes)"],
            "sDM has improved scalability compared to DM (Bayes): it is ahead in the largest catalogue", "2007",
        ),
    ]  # fmt: skip


def _figures(results: Results, folder: Path) -> list[Drawn]:
    points = {
        agent: {
            float(results.parameter(panel, "K")): measured(relative(results, panel, agent)[:, -1])
            for panel in results.panels
        }
        for agent in (METHOD, "DM (Bayes)")
    }
    n = sizes_of(results, results.panels[0])[-1]
    title = "Relative reward as the catalogue grows"
    seen = (
        f"How near the best policy's reward a log of {n:,} rows brings sDM and DM (Bayes), the more actions there are."
    )
    return [draw_rewards({f"n={n:,}": points}, folder, "actions", title, xlabel="actions K", seen=seen)]


ACTIONS = SDM.experiment(
    "sdm-actions",
    order=2,
    title="sDM and DM (Bayes) as the catalogue grows",
    thesis_lines="2007-2014",
    question="Does sDM, which learns about every action from the rows of all of them, keep its lead over DM (Bayes), which "
    "learns about each action alone, as the catalogue grows and the log does not?",
    setting="sDM's linear-Gaussian worlds with {K} actions, d=10, d'={latent} and σ=1; a uniform policy logs {n} rows. Both "
    "methods know the prior of the world; policies are valued exactly, over {runs} worlds.",
    scales={
        "smoke": {"n": [1_000], "runs": 3, "K": [10, 100, 1_000], "latent": 10},
        "quick": {"n": [1_000], "runs": 20, "K": [10, 100, 1_000, 10_000, 100_000], "latent": 10},
        "paper": {"n": [1_000], "runs": 50, "K": [10, 100, 1_000, 10_000, 100_000], "latent": 10},
    },
    build=_cells,
    claims=_claims,
    figures=_figures,
    remarks=[METRIC, "The thesis does not print d' here; it is 10. Uniform logging."],
)

__all__ = ["ACTIONS"]
