"""What the experiments on meTS share: the synthetic problem and claims against the baselines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from manyarms.worlds import MixedEffect
from manyarms_thesis.harness.claims import Claim, claim, gain, measured, outperforms
from manyarms_thesis.harness.experiments import Chapter, Sizes
from manyarms_thesis.harness.online import online_regret
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Call, Cell, Task
from manyarms_thesis.mets.agents import AGENTS, LINEAR_BASELINES, LOGISTIC_BASELINES

METS = Chapter("mets", 1)
EFFECT_VARIANCE, ACTION_VARIANCE = 3.0, 1.0
REMARKS = [
    "One context is shared by all actions of a round, as the thesis's words say; regret is the expected one. "
    "meTS-Lin-Fa is the mean-field factorisation (exact mean, blockwise inverse of the exact precision); meTS-Lin-Fb "
    "keeps only the diagonal blocks in precision and mean.",
]


def mixed_effect_world(*, seed: int, **parameters: Any) -> MixedEffect:
    """The synthetic world (thesis, Section 3.4.1)."""
    return MixedEffect(**parameters, seed=seed)


def synthetic_cell(
    sizes: Sizes,
    agents: Sequence[str] | Mapping[str, Call],
    K: int,
    L: int = 3,
    d: int = 2,
    *,
    reward: str = "linear",
    effect_variance: float = EFFECT_VARIANCE,
    action_variance: float = ACTION_VARIANCE,
    name: str | None = None,
    task: Task = online_regret,
) -> Cell:
    """A panel of the mixed-effect world; agents by the thesis's names, or made to order."""
    parameters = {
        "reward": reward, "K": K, "L": L, "d": d,
        "effect_variance": effect_variance, "action_variance": action_variance,
    }  # fmt: skip
    world = {
        "actions": K, "effects": L, "dim": d, "reward": reward,
        "effect_scale": effect_variance, "action_scale": action_variance,
    }  # fmt: skip
    panel = name or f"{reward}, K={K:,}, L={L}, d={d}"
    methods = agents if isinstance(agents, Mapping) else {agent: AGENTS[agent] for agent in agents}
    return Cell(panel, parameters, Call(mixed_effect_world, world), methods, sizes["rounds"], sizes["runs"], task)


def beats_baselines(results: Results, panel: str, lines: str, without: Sequence[str] = ()) -> list[Claim]:
    """meTS and its factored variant against the baselines of a panel, but for those that the thesis leaves out."""
    linear = results.parameter(panel, "reward") == "linear"
    methods = ("meTS-Lin", "meTS-Lin-Fa") if linear else ("meTS-GLM", "meTS-GLM-Fa")
    known = LINEAR_BASELINES if linear else LOGISTIC_BASELINES
    baselines = [name for name in known if name in results.methods(panel) and name not in without]
    return [
        outperforms(
            results, panel, method, baselines,
            f"{method} outperforms all baselines that ignore the structure or use it in part", lines,
        )
        for method in methods
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


__all__ = [
    "EFFECT_VARIANCE",
    "METS",
    "REMARKS",
    "beats_baselines",
    "highest_regret",
    "mixed_effect_world",
    "synthetic_cell",
]
