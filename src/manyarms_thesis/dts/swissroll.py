"""dTS where the truth is no diffusion model: actions on a Swiss roll, a prior pre-trained on it (thesis, Section 4.4)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from manyarms._base.palette import PALETTE
from manyarms_thesis.dts.common import DTS, clouds
from manyarms_thesis.dts.pretrained import (
    DEPTH,
    OWN,
    SHARED,
    own_shared_and_lints,
    prepared_regret,
    pretrained,
    swiss_roll_points,
    swiss_world,
)
from manyarms_thesis.harness.claims import Claim, Measured, claim, increasing, least, ratio
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.figures import draw_series, online_looks, regret_curves
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Call, Cell

LOOKS = {SHARED: (PALETTE[5], "--")}
# "comparable" (thesis, Section 4.4.2): at most a tenth more regret
COMPARABLE, FACTOR = 0.9, 1.5
REMARKS = [
    "The thesis's latents are shared by all actions. A prior pre-trained on single actions' parameters means one chain per "
    "action: that is “dTS” here; “dTS, shared chain” is the thesis's reading, with Σ₁ as wide as the estimates (with the "
    "schedule's small Σ₁ it would be sure that all actions are alike; dts-chains compares).",
    "LinTS has the Gaussian with the exact mean and covariance of the actions' law, the best that a Gaussian can be.",
    "Runs take turns with the pre-trainings, which have data and seeds of their own. Pre-training: manyarms.pretrain with its "
    "defaults (cosine schedule, 6,000 steps of Adam, early stopping on held-out rows).",
]


def _cells(sizes: Sizes) -> Iterator[Cell]:
    usual = sizes["pretraining_size"]
    pairs = [(n, sizes["depth"]) for n in sizes["n"]] + [(usual, L) for L in sizes["L"]]
    world = Call(swiss_world, {"actions": sizes["K"], "noise": 1.0})
    for n, L in dict.fromkeys(pairs):
        prior = {"data": "swiss-roll", "size": n, "depth": L, **sizes.get("training", {})}
        agents = own_shared_and_lints(prior, sizes["preparations"])
        parameters = {"n": n, "L": L, "K": sizes["K"], "depth_usual": sizes["depth"], "n_usual": usual}
        yield Cell(f"n={n:,}, L={L}", parameters, world, agents, sizes["rounds"], sizes["runs"], prepared_regret)


def _series(results: Results) -> tuple[dict[int, str], dict[int, str]]:
    """Panels by pre-training size at the usual depth, and by depth at the usual size."""
    first = results.panels[0]
    L, n = results.parameter(first, "depth_usual"), results.parameter(first, "n_usual")
    by_size = {results.parameter(panel, "n"): panel for panel in results.where(L=L)}
    by_depth = {results.parameter(panel, "L"): panel for panel in results.where(n=n)}
    return dict(sorted(by_size.items())), dict(sorted(by_depth.items()))


def _ratios(results: Results, panels: Mapping[int, str], agent: str) -> dict[int, Measured]:
    """LinTS's regret over that of dTS, by size or depth."""
    return {n: ratio(results, panel, agent, "LinTS") for n, panel in panels.items()}


def _claims(results: Results) -> Iterator[Claim]:
    by_size, by_depth = _series(results)
    for agent in (OWN, SHARED):
        yield from _by_size(agent, _ratios(results, by_size, agent))
        usual = results.parameter(results.panels[0], "depth_usual")
        yield from _by_depth(agent, _ratios(results, by_depth, agent), usual)


def _by_size(agent: str, ratios: Mapping[int, Measured]) -> Iterator[Claim]:
    fewest, largest = min(ratios), max(ratios)
    fifty = min(ratios, key=lambda n: abs(n - 50))
    statement = "Larger pre-training sizes increase the gap to LinTS (ratio of LinTS's regret to dTS's)"
    yield increasing({f"n={n:,}": value for n, value in ratios.items()}, statement, "1688", panel=agent)
    for n, wanted, words, meaning in (
        (fewest, COMPARABLE, f"With as few as {fewest} samples performance is comparable to LinTS",
         ": comparable means at most about a tenth more regret"),
        (fifty, FACTOR, f"With {fifty} samples dTS outperforms LinTS by a factor of {FACTOR}", ""),
        (largest, 1, f"With {largest:,} samples dTS outperforms LinTS", ""),
    ):  # fmt: skip
        above = Measured(ratios[n].mean - wanted, ratios[n].standard_error)
        yield claim(words, "1688", above, panel=agent, detail=f"ratio {ratios[n]} less {wanted}{meaning}")


def _by_depth(agent: str, ratios: Mapping[int, Measured], usual: int) -> Iterator[Claim]:
    nearest, difference = least({f"L={L}": ratios[usual] - value for L, value in ratios.items() if usual != L})
    shown = ", ".join(f"L={L}: {value}" for L, value in ratios.items())
    yield claim(
        f"A depth of about {usual} yields the best performance", "1690", difference, panel=agent,
        detail=f"ratio of LinTS's regret to dTS's: {shown}; least convincing against {nearest}",
    )  # fmt: skip
    deepest = max(ratios)
    if deepest > usual:
        yield claim(
            f"Beyond a depth of {usual} performance drops", "1690", ratios[usual] - ratios[deepest], panel=agent,
            detail=f"ratio at L={usual} less that at L={deepest}",
        )  # fmt: skip


def _figures(results: Results, folder: Path) -> list[Path]:
    by_size, by_depth = _series(results)
    groups = {
        label: {
            agent: {float(n): value for n, value in _ratios(results, panels, agent).items()} for agent in (OWN, SHARED)
        }
        for label, panels in (("pre-training size n", by_size), ("depth L", by_depth))
    }
    last = by_size[max(by_size)]
    return [
        draw_series(
            groups, folder, "ratios", "Regret of LinTS over that of dTS, Swiss roll", xlabel={name: name for name in groups},
            ylabel="ratio (above 1: dTS is better)", level=1.0, look=online_looks(LOOKS),
        ),
        regret_curves(results, [by_size[min(by_size)], last], folder, "regret", "Regret on the Swiss roll", looks=LOOKS),
        _pictures(results, by_size, folder),
    ]  # fmt: skip


def _pictures(results: Results, by_size: Mapping[int, str], folder: Path) -> Path:
    """Samples of pre-trained priors over true ones (thesis, Appendix B.6.1)."""
    true = swiss_roll_points(1_000, 999)
    groups = {}
    for wanted in (50, 1_000, 10_000):
        n = min(by_size, key=lambda size: abs(size - wanted))
        prior = results.cells[by_size[n]].methods[OWN].parameters["prior"]
        groups[f"n={n:,}"] = {"Swiss roll": true, "pre-trained diffusion": pretrained(**prior, seed=0).sample(1_000, 1)}
    return clouds(groups, folder, "samples", "True action parameters and draws of the pre-trained prior")


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
            "L": [2, 5, 10, 20, 40, 60, 80, 100],
        },
    },
    build=_cells,
    claims=_claims,
    figures=_figures,
    remarks=[
        *REMARKS,
        "The thesis prints neither K, T nor the noise here: K=100, T=5,000, σ=1; and neither the roll's scale: "
        "worlds/swiss_roll.py has one and a half turns with a standard deviation of about one.",
    ],
)  # fmt: skip

__all__ = ["LOOKS", "SWISSROLL"]
