"""dTS in worlds drawn from a diffusion model, linear or not, as printed and with links of unit gain (thesis, Section 4.4.1)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from manyarms_thesis.dts.agents import BASELINES, HIERTS_1, HIERTS_2, JACOBIAN, LOOKS
from manyarms_thesis.dts.common import (
    CONTEXT_ACCURACY,
    DEAR,
    DTS,
    REMARKS,
    contexts_matter,
    synthetic_cell,
    with_contexts,
)
from manyarms_thesis.harness.claims import Claim, Measured, claim, gain, lower_regret, outperforms, ratio
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.figures import Drawn, regret_curves
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Cell

COMPARABLE = 0.1  # as a share of regret, as in the other experiments of the chapter


def _cells(sizes: Sizes) -> Iterator[Cell]:
    cells = [
        synthetic_cell({**sizes, "runs": runs}, K, d, L, links=links, scaled=scaled, reward=reward)
        for scaled, runs in ((False, sizes["runs"]), (True, sizes["scaled_runs"]))
        for d, L in sizes["shapes"]
        for K in sizes["K"]
        for links in ("linear", "network")
        for reward in ("linear", "logistic")
    ]
    return with_contexts(sizes, cells)


def _of_thesis(results: Results, panel: str) -> list[str]:
    """The thesis's dTS in a panel, the one that is right about the rewards first."""
    return [agent for agent in results.methods(panel) if agent.startswith("dTS") and ", " not in agent]


def _claims(results: Results) -> Iterator[Claim]:
    for panel in results.panels:
        right, *others = _of_thesis(results, panel)
        baselines = [agent for agent in results.methods(panel) if agent in BASELINES]
        if _nothing_matters(results, panel):
            yield claim(
                f"{right} outperforms the baselines", "1631", Measured(0.0, math.nan), panel=panel,
                detail="no choice matters here: every regret is below a millionth a round",
            )  # fmt: skip
            continue
        yield outperforms(results, panel, right, baselines, f"{right} outperforms the baselines", "1631")
        for wrong in others:
            yield outperforms(
                results, panel, wrong, baselines,
                f"{wrong}, right about the chain and wrong about the rewards, outperforms methods that know the rewards "
                "and ignore the chain", "1633",
            )  # fmt: skip
        yield from _rules(results, panel, right, baselines)
        if HIERTS_2 in results.methods(panel):
            yield from _two_levels(results, panel, right)


def _two_levels(results: Results, panel: str, right: str) -> Iterator[Claim]:
    """The two ways of making two levels of a linear chain, and dTS beside the one that is exact (thesis, Appendix B.3)."""
    yield claim(
        "HierTS-2 outperforms HierTS-1 when K > L", "3582", gain(results, panel, HIERTS_2, HIERTS_1), panel=panel,
        detail="final regret of HierTS-1 (the baseline HierTS) less that of HierTS-2, in the same worlds",
    )  # fmt: skip
    yield _comparable(results, panel, right)


def _comparable(results: Results, panel: str, right: str) -> Claim:
    """The regrets of dTS and of HierTS-2 differ by less than a tenth."""
    over = ratio(results, panel, right, HIERTS_2)
    room = replace(over, mean=COMPARABLE - abs(over.mean - 1))
    return claim(
        f"{right} and HierTS-2 have comparable regret", "", room, panel=panel,
        detail=f"a tenth less the distance from one of HierTS-2's regret over that of {right}, {over}; HierTS-1's over it: "
        f"{ratio(results, panel, right, HIERTS_1)}",
    )  # fmt: skip


def _nothing_matters(results: Results, panel: str) -> bool:
    """Whether rewards are so near 0 or 1 for all actions that nobody can lose anything, as in deep logistic worlds."""
    lost = [float(results.final(panel, method).mean()) for method in results.methods(panel)]
    return max(lost) < 1e-6 * results.cells[panel].rounds


def _rules(results: Results, panel: str, right: str, baselines: list[str]) -> Iterator[Claim]:
    """The thesis's rule beside others that it does not have."""
    moments = f"{right}, moments"
    if moments in results.methods(panel):
        statement = f"{right} by moments has lower regret than by the thesis's rule"
        yield lower_regret(results, panel, moments, right, statement, "")
        yield outperforms(results, panel, moments, baselines, f"{right} by moments outperforms the baselines", "")
    if JACOBIAN in results.methods(panel):
        statement = "The thesis's rule, which leaves the links out on the way up, has lower regret than one that linearises them"
        yield lower_regret(results, panel, right, JACOBIAN, statement, "")


def _figures(results: Results, folder: Path) -> Iterator[Drawn]:
    for reward, seen in (
        ("linear", "dTS, which knows how the items hang together, against methods that learn every item alone (LinTS, LinUCB) or "
         "with one level of sharing (HierTS)."),
        ("logistic", "The same with yes-no rewards: dTS right (second letter N) and wrong (L) about the rewards, against GLM-TS "
         "and UCB-GLM, which learn every item alone."),
    ):  # fmt: skip
        title = f"Regret in worlds drawn from a diffusion model, {reward} rewards"
        panels = results.where(reward=reward)
        yield regret_curves(results, panels, folder, reward, title, columns=2, looks=LOOKS, seen=seen)


SYNTHETIC = DTS.experiment(
    "dts-synthetic",
    order=1,
    title="dTS where the truth is a diffusion model",
    thesis_lines="1613-1633",
    scales={
        "smoke": {
            "rounds": 60, "runs": 2, "scaled_runs": 2, "K": [20, 200], "shapes": [[5, 2], [20, 4]], "context_K": 20,
        },
        "quick": {
            "rounds": 1_500, "runs": 6, "scaled_runs": 6, "K": [100, 1_000], "shapes": [[5, 2], [20, 4]],
            "context_K": 100,
        },
        "paper": {
            "rounds": 5_000, "runs": 50, "scaled_runs": 10, "K": [100, 10_000], "shapes": [[5, 2], [20, 4]],
            "context_K": 100, "context_runs": 20,
        },
    },
    build=_cells,
    claims=_claims,
    figures=_figures,
    across=contexts_matter(lambda results, panel: _of_thesis(results, panel)[0], "LinTS"),
    accuracy=CONTEXT_ACCURACY,
    question="If items are related through a chain of hidden causes, and a recommender knows that chain, how much less does it "
    "lose while it learns than one that learns every item alone?",
    setting="Items' parameters are drawn from a diffusion model, linear or a small random network, with dimension and depth "
    "{shapes}; {K} items, {rounds} rounds, linear or yes-no rewards. dTS, which knows the model, meets LinTS, LinUCB and HierTS "
    "(GLM-TS and UCB-GLM for yes-no rewards) in {runs} worlds each.",
    remarks=[
        *REMARKS,
        "HierTS-2 has all latents but ψ₁ integrated out, which is exact: with linear links its posterior of the items is that of "
        "dTS. The thesis speaks of it (Appendix B.3) and leaves it out of its comparison, so that it is none of the baselines. "
        "That dTS and HierTS-2 are comparable the thesis says of their regret bounds; of their regret this project says it, and "
        "means less than a tenth apart.",
        DEAR.format("100", "20"),
    ],
)  # fmt: skip

__all__ = ["SYNTHETIC"]
