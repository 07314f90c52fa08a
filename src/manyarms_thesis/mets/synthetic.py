"""meTS in the synthetic worlds that it assumes (thesis, Section 3.4.1)."""

from __future__ import annotations

from collections.abc import Iterator

from manyarms_thesis.harness.claims import Claim, claim, gain
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.figures import regret_curves
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Cell
from manyarms_thesis.mets.agents import AT_MODES, LINEAR, LOGISTIC_AGENTS
from manyarms_thesis.mets.common import (
    CONTEXT_ACCURACY,
    LOOKS,
    METS,
    MODES_REMARK,
    REMARKS,
    at_modes,
    beats_baselines,
    both_schemes,
    context_schemes,
    highest_regret,
    synthetic_cell,
)


def _cells(sizes: Sizes) -> Iterator[Cell]:
    linear = synthetic_cell(sizes, LINEAR, sizes["K"])
    logistic = synthetic_cell(sizes, (*LOGISTIC_AGENTS, "GLM-UCB", *AT_MODES), sizes["K"], reward="logistic")
    return both_schemes(sizes, [linear, logistic])


def _claims(results: Results) -> list[Claim]:
    linear, logistic = results.panels
    return [
        *beats_baselines(results, linear, "1238"),
        *beats_baselines(results, logistic, "1238"),
        claim(
            "meTS-GLM outperforms meTS-Lin in the logistic bandit", "1238",
            gain(results, logistic, "meTS-GLM", "meTS-Lin"), panel=logistic,
            detail="final regret of meTS-Lin less that of meTS-GLM, in the same worlds",
        ),
        highest_regret(results, logistic, "GLM-UCB", LOGISTIC_AGENTS, "1234"),
        *at_modes(results, [logistic]),
    ]  # fmt: skip


def _across(results: Results) -> Iterator[Claim]:
    linear, logistic = results.variant("").panels
    yield from context_schemes(results, "meTS-Lin", "LinTS", [linear])
    yield from context_schemes(results, "meTS-GLM", "GLM-TS", [logistic])


SYNTHETIC = METS.experiment(
    "mets-synthetic",
    order=1,
    title="meTS in synthetic linear and logistic bandits",
    thesis_lines="1229-1244",
    scales={
        "smoke": {"rounds": 150, "runs": 4, "K": 40},
        "quick": {"rounds": 5_000, "runs": 16, "K": 100},
        "paper": {"rounds": 5_000, "runs": 50, "context_runs": 20, "K": 100},
    },
    build=_cells,
    accuracy=CONTEXT_ACCURACY,
    claims=_claims,
    across=_across,
    figures=lambda results, folder: [
        regret_curves(
            results, results.panels, folder, "regret", "Regret in synthetic problems", columns=2, looks=LOOKS,
            seen="What each agent loses against always playing the best action, with rewards that are numbers (linear) and with "
            "clicks (logistic).",
        )
    ],
    question="Many actions are made of a few shared ingredients (effects). Does an agent that learns the ingredients, meTS, lose "
    "less than agents that learn every action alone, or that share one mean among all?",
    setting="Every one of {K} actions mixes L = 3 effects with known weights, in d = 2 dimensions; effects are more uncertain "
    "(variance 3) than what sets actions apart from them (variance 1). meTS and its factored variants play {rounds} rounds "
    "against LinTS, LinUCB and HierTS with linear rewards, and against GLM-TS, UCB-GLM and HierTS with clicks, {runs} times.",
    remarks=[
        *REMARKS,
        MODES_REMARK,
        "In the logistic world the linear agents (meTS-Lin, HierTS) take sigma = 1 for their noise.",
    ],
)  # fmt: skip

__all__ = ["SYNTHETIC"]
