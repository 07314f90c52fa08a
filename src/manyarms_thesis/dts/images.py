"""dTS with one parameter for all actions, on tasks of pictures, by the share of offline data (thesis, Appendix B.6.4)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path

from manyarms_thesis.dts.common import DTS
from manyarms_thesis.dts.image_tasks import image_dts, image_hierts, image_lints, image_task, source
from manyarms_thesis.dts.pretrained import DEPTH, prepared_regret
from manyarms_thesis.harness.claims import Claim, Measured, claim, increasing, ratio
from manyarms_thesis.harness.data import MADE_UP, flagged
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.figures import draw_series, online_looks, regret_curves
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Call, Cell

BASELINES = {"HierTS": Call(image_hierts), "LinTS": Call(image_lints)}
# the thesis's table (Appendix B.6.4): improvement of dTS's regret in per cent, by the share of offline data in per cent
PRINTED: Mapping[str, Mapping[float, float]] = {
    "HierTS": {1: 69.11, 5: 79.56, 25: 80.65, 50: 81.67},
    "LinTS": {1: 87.74, 5: 92.18, 25: 92.48, 50: 92.88},
}
WORDS = {"labels": "rewards by label", "model": "rewards by model"}


def _cells(sizes: Sizes) -> Iterator[Cell]:
    K, d, L, tasks = (sizes[name] for name in ("K", "d", "depth", "tasks"))
    for data, truth, percent in product(sizes["data"], sizes["truth"], sizes["percent"]):
        found = source(data)
        task = {"source": found, "actions": K, "dim": d, "percent": percent, "tasks": tasks}
        # the pre-training calls its source `data`, so that the pictures' own name goes by another
        told = {"data": "image-tasks", "pictures": data, "size": sizes["n"], "depth": L} | sizes.get("training", {})
        agents = {"dTS": Call(image_dts, {"prior": told | task, "tasks": tasks}), **BASELINES}
        parameters = {
            "pictures": data, "data": found, "truth": truth, "percent": float(percent), "K": K, "d": d, "L": L,
        }  # fmt: skip
        panel, world = (
            f"{data}, {WORDS[truth]}, {percent} % offline",
            Call(image_task, task | {"data": data, "truth": truth}),
        )
        yield Cell(panel, parameters, world, agents, sizes["rounds"], sizes["runs"], prepared_regret)


def improvement(results: Results, panel: str, baseline: str) -> Measured:
    """By how many per cent dTS's regret is below a baseline's; its error by the delta method over paired runs."""
    share = ratio(results, panel, baseline, "dTS")
    return Measured(100 * (1 - share.mean), 100 * share.standard_error)


def _groups(results: Results) -> dict[str, list[str]]:
    """Panels by data and truth, in rising order of offline data."""
    kinds = dict.fromkeys((results.parameter(p, "pictures"), results.parameter(p, "truth")) for p in results.panels)
    return {
        f"{pictures}, {WORDS[truth]}": sorted(
            results.where(pictures=pictures, truth=truth), key=lambda p: float(results.parameter(p, "percent"))
        )
        for pictures, truth in kinds
    }


def _by_share(results: Results, panels: list[str], baseline: str) -> dict[float, Measured]:
    return {float(results.parameter(p, "percent")): improvement(results, p, baseline) for p in panels}


def _claims(results: Results) -> list[Claim]:
    return flagged(results, _found(results), "made-up pictures")


def _found(results: Results) -> Iterator[Claim]:
    for name, panels in _groups(results).items():
        for baseline in BASELINES:
            by_share = _by_share(results, panels, baseline)
            for (percent, value), panel in zip(by_share.items(), panels, strict=True):
                yield claim(
                    f"dTS improves on {baseline}", "4036-4058", value, panel=panel,
                    detail=f"{baseline}'s regret less dTS's, in per cent of {baseline}'s",
                )  # fmt: skip
                wanted = PRINTED[baseline].get(percent)
                if wanted is not None:
                    yield claim(
                        f"With {percent:g} % of the offline data dTS improves on {baseline} by {wanted} %",
                        "4047-4054", Measured(value.mean - wanted, value.standard_error), panel=panel,
                        detail=f"measured {value} %, less the printed {wanted} %: holds where it is at least as much",
                    )  # fmt: skip
            if len(by_share) > 1:
                shares = {f"{percent:g} %": value for percent, value in by_share.items()}
                statement = f"More offline data increases dTS's improvement on {baseline}"
                yield increasing(shares, statement, "4036-4058", panel=name)


def _figures(results: Results, folder: Path) -> list[Path]:
    groups = {
        name: {f"over {baseline}": _by_share(results, panels, baseline) for baseline in BASELINES}
        for name, panels in _groups(results).items()
    }
    look = online_looks({"over HierTS": ("#009E73", "-"), "over LinTS": ("#D55E00", "-")})
    made_up = any(results.parameter(p, "data") == MADE_UP for p in results.panels)
    where = " (made-up pictures)" if made_up else ""
    return [
        draw_series(
            groups, folder, "improvement", f"Regret improvement of dTS{where}", xlabel="offline data, per cent",
            ylabel="per cent", level=0.0, ticks="evenly", look=look, from_zero=False,
        ),
        regret_curves(results, results.panels, folder, "regret", f"Regret on tasks of pictures{where}", columns=4),
    ]  # fmt: skip


def _warnings() -> list[str]:
    missing = [data for data in ("cifar100", "mnist") if source(data) == MADE_UP]
    if not missing:
        return []
    return [
        f"Where {' and '.join(missing)} would be, pictures are made up, because the data were not found. Set MANYARMS_DATA "
        "to the folder that holds them and run again."
    ]


IMAGES = DTS.experiment(
    "dts-images",
    order=8,
    title="dTS with one parameter for all actions, on tasks of pictures",
    thesis_lines="1524-1561, 4036-4058",
    scales={
        "smoke": {
            "rounds": 40, "runs": 2, "data": ["mnist"], "truth": ["labels", "model"], "percent": [1, 50], "K": 10,
            "d": 8, "n": 200, "depth": 5, "tasks": 2, "training": {"epochs": 100},
        },
        "quick": {
            "rounds": 500, "runs": 6, "data": ["cifar100"], "truth": ["labels", "model"], "percent": [1, 50], "K": 20,
            "d": 30, "n": 1_000, "depth": DEPTH, "tasks": 3,
        },
        "paper": {
            "rounds": 1_000, "runs": 50, "data": ["cifar100", "mnist"], "truth": ["labels", "model"],
            "percent": [1, 5, 25, 50], "K": 20, "d": 30, "n": 1_000, "depth": DEPTH, "tasks": 25,
        },
    },
    build=_cells,
    claims=_claims,
    figures=_figures,
    remarks=[
        "The thesis prints a table of relative regrets and refers to another paper for the setting. Here a task is a class, each "
        "round offers K pictures, one of that class among them, features are principal components, and offline estimates are "
        "the parameters of the other classes fitted to a share of the training pictures (worlds/images.py). CIFAR-100 is at "
        "16x16 pixels. K, d and T are this project's choice.",
        "Two truths: rewards by label (0.9 for the task's class, 0.1 otherwise), which no linear model can be, so that all "
        "regrets keep growing, and rewards by the linear model that fits the class best.",
        "With a single parameter HierTS and LinTS are one method with different priors. The thesis prints neither: HierTS has "
        "the mean and covariance of the offline estimates, LinTS N(0, I/d) and no offline data. Σ₁ of dTS is the schedule's: "
        "with one parameter there is nothing for a wide Σ₁ to explain.",
    ],
    warnings=_warnings,
)  # fmt: skip

__all__ = ["IMAGES"]
