"""Optimisation is the bottleneck: objectives under batch sizes, learning rates and schedules (thesis, Section 7.3.1)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from manyarms_thesis.harness.claims import Claim, claim, measured
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.learning import MODE, OF_MODES, ahead, ahead_both, by_data, flag_data, over, steadier
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Cell
from manyarms_thesis.pwll.common import (
    ESTIMATES,
    LEARNED,
    LIKELIHOODS,
    PAPER,
    QUICK,
    SMOKE,
    learners,
    logged_cell,
    worlds,
)
from manyarms_thesis.pwll.figures import against, by_batch

# SGD is shown for one objective of each kind that needs no reward model
PLAIN_LIKELIHOODS, PLAIN_ESTIMATES = ("cLPI", "LPI"), ("IPS", "ES", "MIPS")


def _cells(sizes: Sizes) -> list[Cell]:
    cells = []
    for data, world in worlds(sizes).items():
        for rate in sizes["rates"]:
            for schedule in sizes["schedules"]:
                for batch in sizes["batches"]:
                    how: dict[str, Any] = {"schedule": schedule, "batch": batch, "rate": rate}
                    methods = learners((*ESTIMATES, *LIKELIHOODS), sizes, **how)
                    title = f"{data}, rate {rate:g}, {schedule}, batch {batch}"
                    cells.append(logged_cell(title, world, methods, sizes["runs"], optimiser="adam", **how))
        for rate in sizes["sgd_rates"]:
            how = {"schedule": "constant", "batch": sizes["batch"], "rate": rate, "optimiser": "sgd"}
            methods = learners((*PLAIN_LIKELIHOODS, *PLAIN_ESTIMATES), sizes, **how)
            cells.append(logged_cell(f"{data}, SGD, rate {rate:g}", world, methods, sizes["runs"], **how))
    return cells


def _claims(results: Results) -> list[Claim]:
    found = []
    for data in by_data(results):
        panels = results.where(data=data, optimiser="adam")
        for column in ("value", MODE):
            found.append(
                steadier(
                    results, panels, LIKELIHOODS, ESTIMATES,
                    "Objectives that estimate a value are sensitive to batch size and learning rate, PWLL objectives are robust",
                    "2307", panel=data, column=column,
                )
            )  # fmt: skip
            found.append(_best_against_best(results, panels, data, column))
        found += ahead_both(
            results, panels, "cLPI", ["POTEC"], "POTEC is surpassed by cLPI, in every configuration", "2307", panel=data
        )
        found.append(
            ahead(
                results, panels, "POTEC", ["OffCEM"],
                "There is a consistent gap between POTEC and OffCEM, in every configuration", "2311", panel=data,
            )
        )  # fmt: skip
        plain = results.where(data=data, optimiser="sgd")
        found.append(
            steadier(
                results, plain, PLAIN_LIKELIHOODS, PLAIN_ESTIMATES,
                "The same with SGD in place of Adam: estimates are sensitive to the rate, PWLL objectives are robust", "2307",
                panel=data,
            )
        )  # fmt: skip
        found += [
            ahead(
                results, plain, name, PLAIN_ESTIMATES, f"With SGD in place of Adam, {name} outperforms estimates at every rate",
                "2307", panel=data,
            )
            for name in PLAIN_LIKELIHOODS
        ]  # fmt: skip
    return flag_data(results, found)


def _best_against_best(results: Results, panels: list[str], data: str, column: str) -> Claim:
    """The best PWLL objective against the best estimate, each with the configuration that suits it best on average."""
    best = {}
    for family in (LIKELIHOODS, ESTIMATES):
        values = {
            (agent, i): over(results, panels, agent, column)[:, i] for agent in family for i in range(len(panels))
        }
        best[family] = max(values, key=lambda key: float(values[key].mean())), values
    (one, i), ours = best[LIKELIHOODS]
    (other, j), theirs = best[ESTIMATES]
    means = ", ".join(
        f"{agent} {over(results, panels, agent, column).mean():.4g}" for agent in (*LIKELIHOODS, *ESTIMATES)
    )
    of = OF_MODES if column == MODE else ""
    # different panels have logs of their own: no pairs
    difference = measured(ours[one, i]) - measured(theirs[other, j])
    detail = (
        f"best of each family: {one} in “{panels[i]}” {measured(ours[one, i])}, {other} in “{panels[j]}” "
        f"{measured(theirs[other, j])}; means over all configurations: {means}"
    )
    return claim(
        f"PWLL objectives outperform those that estimate a value, each in its best configuration{of}", "2307", difference,
        panel=data, detail=detail,
    )  # fmt: skip


def _figures(results: Results, folder: Path) -> list[Path]:
    paths = []
    for data in by_data(results):
        panels = results.where(data=data, optimiser="adam")
        for column, of in (("value", "policies"), (MODE, "their most probable actions")):
            title = f"Value of {of} on {data}, by batch size"
            paths.append(by_batch(results, panels, folder, f"batches-{data}-{column}", title, column=column))
        paths.append(
            against(
                results, {data: results.where(data=data, optimiser="sgd")}, "rate", folder, f"sgd-{data}",
                f"Value of policies on {data}, with SGD in place of Adam", "learning rate",
            )
        )  # fmt: skip
    return paths


OPTIMISATION = LEARNED.experiment(
    "pwll-optimisation",
    order=5,
    title="Objectives under batch sizes, learning rates and schedules",
    thesis_lines="2304-2318",
    scales={
        "smoke": SMOKE | {
            "batches": [32, 256], "schedules": ["constant", "one-cycle"], "rates": [0.1], "sgd_rates": [10, 100],
        },
        "quick": QUICK | {
            "runs": 2, "batches": [64, 512], "schedules": ["constant", "one-cycle"], "rates": [0.01, 0.1],
            "sgd_rates": [1, 10, 100, 1_000],
        },
        "paper": PAPER | {
            "batches": [32, 256, 2_048], "schedules": ["constant", "one-cycle"],
            "rates": [0.001, 0.01], "sgd_rates": [1, 10, 100, 1_000, 10_000],
        },
    },
    build=_cells,
    claims=_claims,
    figures=_figures,
    remarks=[
        "Adam divides gradients by their size: a plateau slows it only where gradients sink to its constant of 1e-8, which takes "
        "catalogues far larger than those of the quick scale. SGD, which the propositions on plateaus are about, is this "
        "project's addition, with a constant rate.",
    ],
)  # fmt: skip

__all__ = ["OPTIMISATION"]
