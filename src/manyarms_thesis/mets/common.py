"""What the experiments on meTS share: the synthetic problem and claims against the baselines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from manyarms._base.palette import PALETTE
from manyarms._base.seeds import seed_of
from manyarms._base.typing import Array
from manyarms.worlds import MixedEffect
from manyarms_thesis.harness.claims import Claim, claim, gain, gains, least, listed, measured, outperforms, ratio
from manyarms_thesis.harness.experiments import ACCURACY, Chapter, Sizes
from manyarms_thesis.harness.figures import Look
from manyarms_thesis.harness.online import (
    ACTION_CONTEXTS,
    ACTION_CONTEXTS_REMARK,
    online_regret,
    online_regret_of_action_contexts,
    with_action_contexts,
)
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Call, Cell, Task
from manyarms_thesis.mets.agents import AGENTS, AT_MODES, LINEAR_BASELINES, LOGISTIC_BASELINES

METS = Chapter("mets", 1)
EFFECT_VARIANCE, ACTION_VARIANCE = 3.0, 1.0
EQUAL = "equal marginal variance"
# sizes of the variants with a context for each action are no sizes of the printed worlds
CONTEXT_ACCURACY = (*ACCURACY, "context_runs", "context_K")
LOOKS: Mapping[str, Look] = {"meTS-GLM, mode": (PALETTE[3], ":"), "GLM-TS, mode": (PALETTE[1], ":")}
FEWER_RUNS = (
    "At the scale “paper” the variant with a context for each action has 20 runs, where the printed worlds have the thesis's "
    "50."
)
REMARKS = [
    "Regret is the expected one. meTS-Lin-Fa is the mean-field factorisation (exact mean, blockwise inverse of the exact "
    "precision); meTS-Lin-Fb keeps only the diagonal blocks in precision and mean.",
    ACTION_CONTEXTS_REMARK,
    FEWER_RUNS,
]
MODES_REMARK = (
    "meTS-GLM and GLM-TS expand an action's logistic likelihood at its maximum, as the thesis does (Section 3.2.3); beside them "
    "run the same agents with an expansion at a mode (“mode”), the library's default. No statement of the thesis rests on those."
)


def mixed_effect_world(*, seed: int, **parameters: Any) -> MixedEffect:
    """The synthetic world (thesis, Section 3.4.1)."""
    return MixedEffect(**parameters, seed=seed)


def equal_variance_world(*, seed: int, actions: int, effects: int, **parameters: Any) -> MixedEffect:
    """The same world with mixing weights of unit length: every action has the marginal covariance (σ₀² + σ_Ψ²) I, whatever L is.

    As printed, b_al ~ U(-1, 1) makes it (σ₀² + ‖b_a‖² σ_Ψ²) I with E ‖b_a‖² = L / 3: more effects also spread the actions'
    rewards further apart. At L = 3 the two worlds agree on average.
    """
    weights = unit_weights(actions, effects, seed)
    return MixedEffect(actions=actions, effects=effects, **parameters, weights=weights, seed=seed)


def unit_weights(actions: int, effects: int, seed: int) -> Array:
    """Mixing weights drawn from the cube as the thesis draws them, and scaled to length one."""
    weights = np.random.default_rng(seed_of("weights", seed)).uniform(-1.0, 1.0, (actions, effects))
    scaled: Array = weights / np.linalg.norm(weights, axis=1, keepdims=True)
    return scaled


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
    equal: bool = False,
) -> Cell:
    """A panel of the mixed-effect world; agents by the thesis's names, or made to order. equal: `equal_variance_world`."""
    parameters = {
        "reward": reward, "K": K, "L": L, "d": d,
        "effect_variance": effect_variance, "action_variance": action_variance,
    }  # fmt: skip
    world = {
        "actions": K, "effects": L, "dim": d, "reward": reward,
        "effect_scale": effect_variance, "action_scale": action_variance,
    }  # fmt: skip
    panel = name or f"{reward}, K={K:,}, L={L}, d={d}"
    problem = Call(mixed_effect_world, world)
    if equal:
        panel, problem = f"{panel}, {EQUAL}", Call(equal_variance_world, world)
        parameters["weights"] = "unit"
    methods = agents if isinstance(agents, Mapping) else {agent: AGENTS[agent] for agent in agents}
    return Cell(panel, parameters, problem, methods, sizes["rounds"], sizes["runs"], task)


def both_schemes(sizes: Sizes, cells: Iterable[Cell], task: Task = online_regret_of_action_contexts) -> Iterator[Cell]:
    """The cells, and again with a context for each action: of at most sizes["context_K"] actions, sizes["context_runs"] times."""
    return with_action_contexts(cells, task, most=sizes.get("context_K"), runs=sizes.get("context_runs"))


def printed(results: Results, **parameters: Any) -> list[str]:
    """Panels with the mixing weights and the effects' variance that the thesis prints, and with these parameters."""
    return results.where(weights=None, effect_variance=EFFECT_VARIANCE, **parameters)


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
            f"{agent}, left out of the comparison for its very high regret, has the highest", lines,
            gain(results, panel, worst, agent), panel=panel,
            detail=f"final regret of {agent} ({measured(results.final(panel, agent))}) less that of the highest "
            f"other, {worst} ({means[worst]}), in the same worlds",
    )  # fmt: skip


def at_modes(results: Results, panels: Sequence[str]) -> Iterator[Claim]:
    """Expanded at a mode, agents against their likes that follow the thesis's rule, and against each other."""
    pairs = {
        f"{agent} has less regret expanded at a mode than at the maximum of the likelihood, the thesis's rule": (
            mode,
            agent,
        )
        for mode, agent in AT_MODES.items()
    }
    pairs["meTS-GLM has less regret than GLM-TS where both expand at a mode"] = ("meTS-GLM, mode", "GLM-TS, mode")
    for statement, (method, other) in pairs.items():
        ahead = gains(results, {panel: panel for panel in panels}, method, other)
        nearest, difference = least(ahead)
        yield claim(
            statement, "", difference, panel=nearest, parts=list(ahead.values()),
            detail=f"final regret of {other} less that of {method}: {listed(ahead)}",
        )  # fmt: skip


def context_schemes(results: Results, method: str, baseline: str, panels: Sequence[str]) -> Iterator[Claim]:
    """What a baseline loses beside a method, with a context for each action against one context for all."""
    if ACTION_CONTEXTS not in results.variants:
        return
    schemes = [results.variant(name) for name in ("", ACTION_CONTEXTS)]
    for panel in panels:
        one, each = (ratio(scheme, panel, method, baseline) for scheme in schemes)
        yield claim(
            f"{baseline}'s regret over that of {method} is larger with a context for each action than with one for all", "",
            each - one, panel=panel, detail=f"one context for all: {one}; a context for each action: {each}",
        )  # fmt: skip


__all__ = [
    "CONTEXT_ACCURACY", "EFFECT_VARIANCE", "EQUAL", "FEWER_RUNS", "LOOKS", "METS", "MODES_REMARK", "REMARKS", "at_modes",
    "beats_baselines", "both_schemes", "context_schemes", "equal_variance_world", "highest_regret", "mixed_effect_world",
    "printed", "synthetic_cell", "unit_weights",
]  # fmt: skip
