"""Optimisation is the bottleneck: objectives under batch sizes, learning rates and schedules (thesis, Section 7.3.1)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from manyarms_thesis.harness.claims import Claim, measured
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.learning import MODE, Compared, by_data, of_modes, on_every_data
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Cell
from manyarms_thesis.pwll.common import (
    ESTIMATES,
    LEARNED,
    LIKELIHOODS,
    PAPER,
    QUICK,
    SMOKE,
    configurations,
    learners,
    logged_cell,
    worlds,
)
from manyarms_thesis.pwll.figures import against, by_batch

# SGD is shown for one objective of each kind that needs no reward model
PLAIN_LIKELIHOODS, PLAIN_ESTIMATES = ("cLPI", "LPI"), ("IPS", "ES", "MIPS")


def _cells(sizes: Sizes) -> Iterator[Cell]:
    for data, world in worlds(sizes).items():
        for words, how in configurations(sizes):
            methods = learners((*ESTIMATES, *LIKELIHOODS), sizes, **how)
            yield logged_cell(f"{data}, {words}", world, methods, sizes["runs"], optimiser="adam", **how)
        for rate in sizes["sgd_rates"]:
            how = {"schedule": "constant", "batch": sizes["batch"], "rate": rate, "optimiser": "sgd"}
            methods = learners((*PLAIN_LIKELIHOODS, *PLAIN_ESTIMATES), sizes, **how)
            yield logged_cell(f"{data}, SGD, rate {rate:g}", world, methods, sizes["runs"], **how)


@on_every_data
def _claims(every: Compared) -> Iterator[Claim]:
    on, plain = (every.where(optimiser=name) for name in ("adam", "sgd"))
    for column in ("value", MODE):
        yield on.steadier(
            LIKELIHOODS, ESTIMATES,
            "Objectives that estimate a value are sensitive to batch size and learning rate, PWLL objectives are robust", "2307",
            column,
        )  # fmt: skip
        yield _best_against_best(on, column)
    yield from on.ahead_both("cLPI", ["POTEC"], "POTEC is surpassed by cLPI, in every configuration", "2307")
    statement = "There is a consistent gap between POTEC and OffCEM, in every configuration"
    yield on.ahead("POTEC", ["OffCEM"], statement, "2311")
    statement = "The same with SGD in place of Adam: estimates are sensitive to the rate, PWLL objectives are robust"
    yield plain.steadier(PLAIN_LIKELIHOODS, PLAIN_ESTIMATES, statement, "2307")
    for name in PLAIN_LIKELIHOODS:
        statement = f"With SGD in place of Adam, {name} outperforms estimates at every rate"
        yield plain.ahead(name, PLAIN_ESTIMATES, statement, "2307")


def _best_against_best(on: Compared, column: str) -> Claim:
    """The best PWLL objective against the best estimate, each with the configuration that suits it best on average."""
    values = {agent: on.over(agent, column) for agent in (*LIKELIHOODS, *ESTIMATES)}
    best = []
    for family in (LIKELIHOODS, ESTIMATES):
        places = [(agent, i) for agent in family for i in range(len(on.panels))]
        agent, i = max(places, key=lambda place: float(values[place[0]][:, place[1]].mean()))
        best.append((f"{agent} in “{on.panels[i]}”", measured(values[agent][:, i])))
    (one, ours), (other, theirs) = best
    means = ", ".join(f"{agent} {value.mean():.4g}" for agent, value in values.items())
    return on.claim(
        f"PWLL objectives outperform those that estimate a value, each in its best configuration{of_modes(column)}", "2307",
        ours - theirs,  # different panels have logs of their own: no pairs
        f"best of each family: {one} {ours}, {other} {theirs}; means over all configurations: {means}",
    )  # fmt: skip


def _figures(results: Results, folder: Path) -> Iterator[Path]:
    for data in by_data(results):
        adam, sgd = (results.where(data=data, optimiser=name) for name in ("adam", "sgd"))
        for column, of in (("value", "policies"), (MODE, "their most probable actions")):
            title = f"Value of {of} on {data}, by batch size"
            yield by_batch(results, adam, folder, f"batches-{data}-{column}", title, column=column)
        title = f"Value of policies on {data}, with SGD in place of Adam"
        yield against(results, {data: sgd}, "rate", folder, f"sgd-{data}", title, "learning rate")


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
