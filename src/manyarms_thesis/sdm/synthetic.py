"""sDM in its own worlds: against all baselines, and as the catalogue grows (thesis, lines 1990-2014, 4742-4788)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from manyarms_thesis.harness.claims import Claim, increasing, measured
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.series import draw_series
from manyarms_thesis.harness.spec import Call, Cell, Experiment
from manyarms_thesis.sdm.builders import CAPTION, EVALUATED, HERE, LEARNERS, NUMBERS, TASK
from manyarms_thesis.sdm.claims import METHOD, beats, lead, relative, shrinking, sizes_of
from manyarms_thesis.sdm.figures import look_of, reward_curves

DIM, LATENT_VARIANCE, ACTION_VARIANCE, NOISE = 10, 3.0, 1.0, 1.0
BASELINES = ("DM (Bayes)", "DM (Freq)", "IPS", "snIPS", "DR", "MIPS", "PC")
METRIC = (
    f"Relative reward is V(learned policy) / V(best policy) of each run, both exact given {EVALUATED:,} fresh contexts and "
    "averaged over runs. A policy learned by gradient counts with its own value or with that of its most probable "
    "actions, whichever is better on average."
)
BASELINE_REMARKS = (
    "DM (Freq) has ridge 1. IPS and DR clip propensities at 1/(4K). Linear softmax policies are learned by 300 steps of Adam "
    "(rate 0.1, 512 rows a step) from zero; 2,000 steps change little (K=100: DR gains 0.04 at n=1,000 and nothing at "
    "n=10,000, the others gain nothing). MIPS has √K clusters and PC √K/2 nearest neighbours, by the actions' "
    "prior means W_a μ, which is what DM (Bayes) knows of them too. The thesis prints none of these."
)
LOGGING = (
    "Skewed logging plays actions with probabilities in proportion to 1/rank, in a random order and whatever the "
    "context; the thesis does not print its other logging policies."
)


def latent_cell(
    K: int,
    latent: int,
    agents: Mapping[str, Call],
    sizes: Sequence[int],
    runs: int,
    *,
    logging: str = "uniform",
    name: str | None = None,
    task: str = TASK,
    **world: Any,
) -> Cell:
    """A panel of the latent world; the log has as many rows as the largest size."""
    setting = {
        "actions": K, "dim": DIM, "latent_dim": latent, "noise": NOISE, "latent_scale": LATENT_VARIANCE,
        "action_scale": ACTION_VARIANCE, "sizes": list(sizes), "logging": logging, **world,
    }  # fmt: skip
    parameters = {"K": K, "d": setting["dim"], "latent": latent, "logging": logging, **world}
    panel = name or f"{logging} logging, K={K:,}, d'={latent}"
    return Cell(panel, parameters, Call(f"{HERE}:latent_setting", setting), agents, max(sizes), runs, task)


def _synthetic_cells(sizes: Mapping[str, Any]) -> list[Cell]:
    return [
        latent_cell(K, latent, LEARNERS, sizes["n"], sizes["runs"], logging=logging)
        for logging in ("uniform", "skewed")
        for K in sizes["K"]
        for latent in sizes["latent" if logging == "uniform" else "latent_skewed"]
    ]


def _synthetic_claims(results: Results) -> list[Claim]:
    found = []
    for panel in results.panels:
        found.append(
            beats(
                results, panel, METHOD, BASELINES,
                "sDM outperforms all baselines, at every size of the log", "2000",
            )
        )  # fmt: skip
        found.append(
            shrinking(
                results, panel, METHOD, "DM (Bayes)",
                "The gap to the most competitive baseline is larger when the log is small", "2000",
            )
        )  # fmt: skip
    for panel in results.panels:
        levels = {name: measured(relative(results, panel, name).mean(axis=1)) for name in BASELINES}
        best = max(levels, key=lambda name: levels[name].mean)
        others = [name for name in BASELINES if name != "DM (Bayes)"]
        made = beats(results, panel, "DM (Bayes)", others, "DM (Bayes) is the most competitive baseline", "2007")
        found.append(replace(made, detail=f"{made.detail}; the best baseline over all sizes is {best}"))
    return found


SYNTHETIC = Experiment(
    name="sdm-synthetic",
    title="sDM against direct methods and learned policies, in synthetic problems",
    thesis_lines="1990-2005, 4742-4788",
    scales={
        "smoke": {"n": [50, 300], "runs": 3, "K": [40], "latent": [5], "latent_skewed": [5]},
        "quick": {"n": [100, 300, 1_000], "runs": 10, "K": [100, 1_000], "latent": [5, 10, 20], "latent_skewed": [10]},
        "paper": {
            "n": [100, 300, 1_000, 3_000, 10_000], "runs": 50, "K": [100, 1_000], "latent": [5, 10, 20],
            "latent_skewed": [5, 10, 20],
        },
    },
    build=_synthetic_cells,
    claims=_synthetic_claims,
    figures=lambda results, folder: [
        reward_curves(
            results, results.where(logging=logging), folder, f"reward-{logging}", f"Relative reward, {logging} logging"
        )
        for logging in ("uniform", "skewed")
    ],
    remarks=[METRIC, BASELINE_REMARKS, LOGGING, "The sizes of log are this project's choice."],
    caption=CAPTION,
    numbers=NUMBERS,
)  # fmt: skip


def _actions_cells(sizes: Mapping[str, Any]) -> list[Cell]:
    agents = {name: LEARNERS[name] for name in (METHOD, "DM (Bayes)")}
    return [latent_cell(K, sizes["latent"], agents, sizes["n"], sizes["runs"], name=f"K={K:,}") for K in sizes["K"]]


def _actions_claims(results: Results) -> list[Claim]:
    gaps = {panel: lead(results, panel, METHOD, "DM (Bayes)")[sizes_of(results, panel)[-1]] for panel in results.panels}
    last = results.panels[-1]
    return [
        increasing(gaps, "The gap between sDM and DM (Bayes) grows with the number of actions", "2007"),
        beats(results, last, METHOD, ["DM (Bayes)"], "sDM is ahead of DM (Bayes) in the largest catalogue", "2007"),
    ]


def _actions_figures(results: Results, folder: Path) -> list[Path]:
    points = {
        agent: {
            float(results.parameter(panel, "K")): measured(relative(results, panel, agent)[:, -1])
            for panel in results.panels
        }
        for agent in (METHOD, "DM (Bayes)")
    }
    n = sizes_of(results, results.panels[0])[-1]
    title = "Relative reward as the catalogue grows"
    return [draw_series({f"n={n:,}": points}, look_of, "actions K", "relative reward", folder, "actions", title)]


ACTIONS = Experiment(
    name="sdm-actions",
    title="sDM and DM (Bayes) as the catalogue grows",
    thesis_lines="2007-2014",
    scales={
        "smoke": {"n": [1_000], "runs": 3, "K": [10, 100, 1_000], "latent": 10},
        "quick": {"n": [1_000], "runs": 20, "K": [10, 100, 1_000, 10_000, 100_000], "latent": 10},
        "paper": {"n": [1_000], "runs": 50, "K": [10, 100, 1_000, 10_000, 100_000], "latent": 10},
    },
    build=_actions_cells,
    claims=_actions_claims,
    figures=_actions_figures,
    remarks=[METRIC, "The thesis does not print d' here; it is 10. Uniform logging."],
    caption=CAPTION,
    numbers=NUMBERS,
)

__all__ = ["ACTIONS", "BASELINES", "BASELINE_REMARKS", "DIM", "METRIC", "SYNTHETIC", "latent_cell"]
