"""dTS where the truth is no diffusion model: actions on a Swiss roll, a prior pre-trained on it (thesis, Section 4.4)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from manyarms_thesis.dts.common import CONTEXT_ACCURACY, DTS, clouds, contexts_matter, with_contexts
from manyarms_thesis.dts.pretrained import (
    DEPTH,
    GIVEN_PRIORS,
    LOOKS,
    OWN,
    PARTICLES,
    READINGS,
    SHARED,
    own_shared_and_lints,
    prepared_regret,
    prepared_regret_of_action_contexts,
    pretrained,
    swiss_roll_points,
    swiss_world,
)
from manyarms_thesis.dts.swissroll_claims import all_claims, ratios_of, series
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.figures import Drawn, draw_series, online_looks, regret_curves
from manyarms_thesis.harness.online import ACTION_CONTEXTS_REMARK
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Call, Cell


def _cells(sizes: Sizes) -> Iterator[Cell]:
    usual = sizes["pretraining_size"]
    pairs = [(n, sizes["depth"]) for n in sizes["n"]] + [(usual, L) for L in sizes["L"]]
    world = Call(swiss_world, {"actions": sizes["K"], "noise": 1.0})
    cells = []
    for n, L in dict.fromkeys(pairs):
        prior = {"data": "swiss-roll", "size": n, "depth": L, **sizes.get("training", {})}
        agents = own_shared_and_lints(prior, sizes["preparations"])
        parameters = {"n": n, "L": L, "K": sizes["K"], "depth_usual": sizes["depth"], "n_usual": usual}
        panel = f"n={n:,}, L={L}"
        cells.append(Cell(panel, parameters, world, agents, sizes["rounds"], sizes["runs"], prepared_regret))
    return with_contexts(sizes, cells, prepared_regret_of_action_contexts)


def _figures(results: Results, folder: Path) -> list[Drawn]:
    by_size, by_depth = series(results)
    groups = {
        label: {
            agent: {float(n): value for n, value in ratios_of(results, panels, agent).items()}
            for agent in (OWN, SHARED, PARTICLES)
        }
        for label, panels in (("pre-training size n", by_size), ("depth L", by_depth))
    }
    ends = [by_size[min(by_size)], by_size[max(by_size)]]
    return [
        draw_series(
            groups, folder, "ratios", "Regret of LinTS over that of dTS, Swiss roll", xlabel={name: name for name in groups},
            ylabel="ratio (above 1: dTS is better)", level=1.0, look=online_looks(LOOKS),
            seen="LinTS's regret over dTS's, by the number of points that the prior was trained on (left) and by the depth of "
            "the diffusion (right); the dashed line is a tie.",
        ),
        regret_curves(
            results, ends, folder, "regret", "Regret on the Swiss roll", looks=LOOKS,
            seen="With the smallest and the largest pre-training set.",
        ),
        # what was learned beforehand is the same in every variant
        *([] if results.cells[ends[0]].variant else [_pictures(results, by_size, folder)]),
    ]  # fmt: skip


def _pictures(results: Results, by_size: Mapping[int, str], folder: Path) -> Drawn:
    """Samples of pre-trained priors over true ones (thesis, Appendix B.6.1)."""
    true = swiss_roll_points(1_000, 999)
    groups = {}
    for wanted in (50, 1_000, 10_000):
        n = min(by_size, key=lambda size: abs(size - wanted))
        prior = results.cells[by_size[n]].methods[OWN].parameters["prior"]
        groups[f"n={n:,}"] = {"Swiss roll": true, "pre-trained diffusion": pretrained(**prior, seed=0).sample(1_000, 1)}
    return clouds(
        groups, folder, "samples", "True action parameters and draws of the pre-trained prior",
        caption="Does the diffusion learn the roll? A thousand points of the true Swiss roll, from which items are drawn, and a "
        "thousand draws of the diffusion that was pre-trained on n other points of it, for three of the n. The axes are the "
        "two coordinates of an item's parameter.",
    )  # fmt: skip


SWISSROLL = DTS.experiment(
    "dts-swissroll",
    order=5,
    title="dTS with a prior pre-trained on a Swiss roll",
    thesis_lines="1643-1690, 3973-4010",
    scales={
        "smoke": {
            "rounds": 40, "runs": 2, "K": 15, "preparations": 1, "n": [10, 50, 200], "pretraining_size": 200,
            "depth": 6, "L": [2, 6, 10], "training": {"epochs": 150},
        },
        "quick": {
            "rounds": 500, "runs": 8, "K": 50, "preparations": 2, "n": [10, 50, 1_000, 10_000],
            "pretraining_size": 10_000, "depth": DEPTH, "L": [2, 10, 40, 80],
        },
        "paper": {
            "rounds": 5_000, "runs": 50, "K": 100, "preparations": 5,
            "n": [10, 50, 100, 500, 1_000, 5_000, 10_000, 50_000], "pretraining_size": 10_000, "depth": DEPTH,
            "L": [2, 5, 10, 20, 40, 60, 80, 100], "context_runs": 10,
        },
    },
    build=_cells,
    claims=all_claims,
    figures=_figures,
    across=contexts_matter(lambda results, panel: PARTICLES, "LinTS"),
    accuracy=CONTEXT_ACCURACY,
    question="Can a diffusion model that was trained on past items serve as prior knowledge about new ones, and how many past "
    "items and how deep a model does it take?",
    setting="{K} items lie on a Swiss roll in the plane. A diffusion of depth {depth} is pre-trained on {n} other points of the "
    "roll, and one of depth {L} on {pretraining_size}; dTS with that prior and LinTS with the roll's exact mean and covariance "
    "play {rounds} rounds in {runs} worlds.",
    remarks=[
        GIVEN_PRIORS,
        ACTION_CONTEXTS_REMARK,
        *READINGS,
        "LinTS has the Gaussian with the exact mean and covariance of the actions' law, the best that a Gaussian can be.",
        "Runs take turns with the pre-trainings, which have data and seeds of their own. Pre-training: manyarms.pretrain with "
        "its defaults (cosine schedule, 6,000 steps of Adam, early stopping on held-out rows).",
        "The thesis prints neither K, T nor the noise here: K=100, T=5,000, σ=1; and neither the roll's scale: "
        "worlds/swiss_roll.py has one and a half turns with a standard deviation of about one. With a context for each action "
        "there are 10 runs at the thesis's sizes.",
    ],
)  # fmt: skip

__all__ = ["SWISSROLL"]
