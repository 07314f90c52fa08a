"""meTS in the synthetic worlds that it assumes, up to 100,000 actions (thesis, lines 1229-1252)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from manyarms_thesis.harness.claims import Claim, claim, gain, increasing, measured, outperforms
from manyarms_thesis.harness.figures import final_regret, regret_curves
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Call, Cell, Experiment
from manyarms_thesis.mets.builders import (
    HERE,
    LINEAR,
    LINEAR_BASELINES,
    LOGISTIC,
    LOGISTIC_BASELINES,
    chosen,
)

EFFECT_VARIANCE, ACTION_VARIANCE = 3.0, 1.0
REMARKS = [
    "One context is shared by all actions of a round, as the thesis's words say; regret is the expected one. "
    "meTS-Lin-Fa is the mean-field factorisation (exact mean, blockwise inverse of the exact precision); meTS-Lin-Fb "
    "keeps only the diagonal blocks in precision and mean.",
]


def synthetic_cell(
    K: int,
    L: int,
    d: int,
    agents: Sequence[str],
    rounds: int,
    runs: int,
    *,
    reward: str = "linear",
    effect_variance: float = EFFECT_VARIANCE,
    action_variance: float = ACTION_VARIANCE,
    name: str | None = None,
    **more: Any,
) -> Cell:
    """A panel of the mixed-effect world."""
    parameters = {
        "reward": reward, "K": K, "L": L, "d": d,
        "effect_variance": effect_variance, "action_variance": action_variance,
    }  # fmt: skip
    world = {
        "actions": K, "effects": L, "dim": d, "reward": reward,
        "effect_scale": effect_variance, "action_scale": action_variance,
    }  # fmt: skip
    panel = name or f"{reward}, K={K:,}, L={L}, d={d}"
    return Cell(panel, parameters, Call(f"{HERE}:mixed_effect_world", world), chosen(*agents), rounds, runs, **more)


def beats_baselines(results: Results, panel: str, lines: str, without: Sequence[str] = ()) -> list[Claim]:
    """meTS and its factored variant against the baselines of a panel, but for those that the thesis leaves out."""
    linear = results.parameter(panel, "reward") == "linear"
    methods = ("meTS-Lin", "meTS-Lin-Fa") if linear else ("meTS-GLM", "meTS-GLM-Fa")
    known = LINEAR_BASELINES if linear else LOGISTIC_BASELINES
    baselines = [name for name in known if name in results.agents(panel) and name not in without]
    return [
        outperforms(
            results, panel, method, baselines,
            f"{method} outperforms all baselines that ignore the structure or use it in part", lines,
        )
        for method in methods
    ]  # fmt: skip


def _synthetic_cells(sizes: Mapping[str, Any]) -> list[Cell]:
    K, rounds, runs = sizes["K"], sizes["rounds"], sizes["runs"]
    return [
        synthetic_cell(K, 3, 2, LINEAR, rounds, runs),
        synthetic_cell(K, 3, 2, (*LOGISTIC, "GLM-UCB"), rounds, runs, reward="logistic"),
    ]


def _synthetic_claims(results: Results) -> list[Claim]:
    linear, logistic = results.panels
    others = [agent for agent in results.agents(logistic) if agent != "GLM-UCB"]
    return [
        *beats_baselines(results, linear, "1238"),
        *beats_baselines(results, logistic, "1238"),
        claim(
            "meTS-GLM outperforms meTS-Lin in the logistic bandit", "1238",
            gain(results, logistic, "meTS-GLM", "meTS-Lin"), panel=logistic,
            detail="final regret of meTS-Lin less that of meTS-GLM, in the same worlds",
        ),
        highest_regret(results, logistic, "GLM-UCB", others, "1234"),
    ]  # fmt: skip


def highest_regret(results: Results, panel: str, agent: str, others: Sequence[str], lines: str) -> Claim:
    """An agent that the thesis leaves out for its regret against the worst of the others."""
    means = {name: measured(results.final(panel, name)) for name in others}
    worst = max(means, key=lambda name: means[name].mean)
    return claim(
            f"{agent} is left out of the comparison for its very high regret", lines,
            gain(results, panel, worst, agent), panel=panel,
            detail=f"final regret of {agent} ({measured(results.final(panel, agent))}) less that of the highest "
            f"other, {worst} ({means[worst]}), in the same worlds",
    )  # fmt: skip


SYNTHETIC = Experiment(
    name="mets-synthetic",
    title="meTS in synthetic linear and logistic bandits",
    thesis_lines="1229-1244",
    scales={
        "smoke": {"rounds": 150, "runs": 4, "K": 40},
        "quick": {"rounds": 5_000, "runs": 16, "K": 100},
        "paper": {"rounds": 5_000, "runs": 50, "K": 100},
    },
    build=_synthetic_cells,
    claims=_synthetic_claims,
    figures=lambda results, folder: [
        regret_curves(results, results.panels, folder, "regret", "Regret in synthetic problems", columns=2)
    ],
    remarks=[
        *REMARKS,
        "In the logistic world the linear agents (meTS-Lin, HierTS) take sigma = 1 for their noise.",
    ],
)


def _actions_cells(sizes: Mapping[str, Any]) -> list[Cell]:
    agents = ("meTS-Lin", "meTS-Lin-Fa", "meTS-Lin-Fb", "LinTS")
    return [synthetic_cell(K, 3, 2, agents, sizes["rounds"], sizes["runs"]) for K in sizes["K"]]


def _actions_claims(results: Results) -> list[Claim]:
    gaps = {}
    found = []
    for panel in results.panels:
        size = f"K={results.parameter(panel, 'K'):,}"
        gaps[size] = gain(results, panel, "meTS-Lin", "LinTS")
        found.append(
            claim(
                f"meTS-Lin has substantially lower regret than LinTS at {size}", "1247", gaps[size], panel=panel,
                detail=f"final regret: meTS-Lin {measured(results.final(panel, 'meTS-Lin'))}, "
                f"LinTS {measured(results.final(panel, 'LinTS'))}",
            )
        )  # fmt: skip
    found.append(increasing(gaps, "The gap between LinTS and meTS-Lin widens as K grows", "1247"))
    return found


ACTIONS = Experiment(
    name="mets-actions",
    title="Final regret as the catalogue grows",
    thesis_lines="1246-1252",
    scales={
        "smoke": {"rounds": 150, "runs": 3, "K": [100, 1_000]},
        "quick": {"rounds": 2_000, "runs": 8, "K": [100, 1_000, 10_000, 100_000]},
        "paper": {"rounds": 5_000, "runs": 50, "K": [100, 1_000, 10_000, 100_000]},
    },
    build=_actions_cells,
    claims=_actions_claims,
    figures=lambda results, folder: [
        final_regret(
            results, {"linear, L=3, d=2": results.panels}, "K", folder, "actions",
            "Final cumulative regret against the number of actions",
        ),
        regret_curves(results, results.panels, folder, "regret", "Regret as the catalogue grows", columns=2),
    ],
    remarks=REMARKS,
)  # fmt: skip

__all__ = ["ACTIONS", "REMARKS", "SYNTHETIC", "beats_baselines", "highest_regret", "synthetic_cell"]
