"""Optimisation is the bottleneck: objectives under batch sizes, learning rates and schedules (thesis, Section 7.3.1)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from manyarms._base.text import in_words
from manyarms_thesis.harness.claims import Claim
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.figures import Drawn
from manyarms_thesis.harness.learning import (
    MODE,
    Compared,
    Place,
    best_elsewhere,
    between_choices,
    by_data,
    counted,
    on_every_data,
)
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Cell
from manyarms_thesis.pwll.common import (
    AUTHORS_BATCH,
    AUTHORS_RATE,
    ESTIMATES,
    FEW,
    LEARNED,
    LIKELIHOODS,
    PAPER,
    QUICK,
    SMOKE,
    configurations,
    learners,
    logged_cells,
    worlds,
)
from manyarms_thesis.pwll.figures import COUNTED, against, by_batch
from manyarms_thesis.pwll.training import validation

# SGD is shown for one objective of each kind that needs no reward model
PLAIN_LIKELIHOODS, PLAIN_ESTIMATES = ("cLPI", "LPI"), ("IPS", "ES", "MIPS")


def _cells(sizes: Sizes) -> Iterator[Cell]:
    for data, world in worlds(sizes).items():
        for words, how in configurations(sizes):
            methods = learners((*ESTIMATES, *LIKELIHOODS), sizes, validated=True, **how)
            yield from logged_cells(f"{data}, {words}", world, methods, sizes["runs"], optimiser="adam", **how)
        for rate in sizes["sgd_rates"]:
            how = {"schedule": "constant", "batch": sizes["batch"], "rate": rate, "optimiser": "sgd"}
            methods = learners((*PLAIN_LIKELIHOODS, *PLAIN_ESTIMATES), sizes, tuned=False, **how)
            yield from logged_cells(f"{data}, SGD, rate {rate:g}", world, methods, sizes["runs"], **how)


@on_every_data
def _claims(every: Compared) -> Iterator[Claim]:
    on, plain = (every.where(optimiser=name) for name in ("adam", "sgd"))
    statement = (
        "IPS-based objectives are sensitive to batch size and learning rate schedule, PWLL objectives are robust"
    )
    yield from on.steadier_both(LIKELIHOODS, ESTIMATES, statement, "2307")
    for column in (MODE, "value"):
        yield best_against_best(on, column)
    yield from on.ahead_both("cLPI", ["POTEC"], "POTEC is surpassed by cLPI, in every configuration", "2307")
    statement = "There is a consistent gap between POTEC and OffCEM, in every configuration"
    yield from on.ahead_both("POTEC", ["OffCEM"], statement, "2311")
    statement = "With SGD in place of Adam, IPS-based objectives are sensitive to the rate, PWLL objectives are robust"
    yield from plain.steadier_both(PLAIN_LIKELIHOODS, PLAIN_ESTIMATES, statement, "")
    for name in PLAIN_LIKELIHOODS:
        statement = f"With SGD in place of Adam, {name} outperforms IPS-based objectives at every rate"
        yield from plain.ahead_both(name, PLAIN_ESTIMATES, statement, "")


def best_against_best(on: Compared, column: str) -> Claim:
    """The best PWLL objective against the best estimate, each in the configuration that suits it best.

    What is best in a run is told by validation users and by the other runs, and the run's own policy is judged by test users:
    the largest of many values is above the truth where it is chosen and tested on the same ones.
    """
    best = [_best_of(on, family, column) for family in (LIKELIHOODS, ESTIMATES)]
    shown = [
        f"{in_words(chosen)} {between_choices(on.results, places, None, column)}"
        for places in best
        for chosen in [[f"{agent} in “{panel}”" for panel, agent in dict.fromkeys(places)]]
    ]
    means = ", ".join(f"{agent} {on.over(agent, column).mean():.4g}" for agent in (*LIKELIHOODS, *ESTIMATES))
    return on.claim(
        f"PWLL objectives outperform IPS-based ones, each family's best in its best configuration{counted(column)}", "2307",
        between_choices(on.results, best[0], best[1], column, standing=True),
        f"best of each family, chosen for every run by validation users and the other runs: {'; against '.join(shown)}; "
        f"means over all configurations: {means}",
    )  # fmt: skip


def _best_of(on: Compared, family: Sequence[str], column: str) -> list[Place]:
    """For each run the configuration and the objective of a family that validation users like best in the other runs."""
    places = [(panel, agent) for agent in family for panel in on.panels]
    liked = np.stack([on.results.final(*place, validation(column)) for place in places], axis=1)
    return [places[i] for i in best_elsewhere(liked)]


def _figures(results: Results, folder: Path) -> Iterator[Drawn]:
    for data in by_data(results):
        adam, sgd = (results.where(data=data, optimiser=name) for name in ("adam", "sgd"))
        for column, end in COUNTED:
            title = f"Objectives on {data}, by batch size, rate and schedule"
            seen = "One drawing for each rate and schedule; full lines are PWLL objectives, broken ones estimates of a value."
            yield by_batch(results, adam, folder, f"batches-{data}-{end}", title, column=column, seen=seen)
        for column, end in COUNTED:
            title = f"Objectives on {data}, with SGD in place of Adam"
            yield against(
                results, {data: sgd}, "rate", folder, f"sgd-{data}-{end}", title, "learning rate", column=column
            )


OPTIMISATION = LEARNED.experiment(
    "pwll-optimisation",
    order=6,
    title="Objectives under batch sizes, learning rates and schedules",
    thesis_lines="2304-2318",
    question="Are objectives that estimate a policy's value, such as IPS, harder to optimise than policy-weighted "
    "likelihoods (PWLL), and do their policies suffer from it?",
    setting="In {told}, eleven objectives are trained with every learning rate ({rates}), schedule ({schedules}) and batch size "
    "({batches}) of Adam, {runs} times each; rates of SGD are {sgd_rates}.",
    scales={
        "smoke": SMOKE | {
            "batches": [32, 256], "schedules": ["constant", "one-cycle"], "rates": [0.1], "sgd_rates": [10, 100],
        },
        "quick": QUICK | {
            "rows": 6_000, "epochs": 3, "told": FEW.format(rows="6,000"), "runs": 5, "batches": [AUTHORS_BATCH, 256],
            "schedules": ["constant", "one-cycle"], "rates": [0.01, 0.1], "sgd_rates": [10, 1_000],
        },
        "paper": PAPER | {
            "batches": [AUTHORS_BATCH, 256, 2_048], "schedules": ["constant", "one-cycle"],
            "rates": [AUTHORS_RATE, 0.01, 0.1], "sgd_rates": [1, 10, 100, 1_000, 10_000],
        },
    },
    build=_cells,
    claims=_claims,
    figures=_figures,
    remarks=[
        "A rate of 5e-5 and batches of 32 are those of the authors' public code. Quick has a few hundred steps where they "
        "have more than a hundred thousand, and at 5e-5 nothing could move in these: its 564 steps at 0.01 go about as far "
        "as 125,000 at 5e-5. Which objective and configuration is a family's best is told by validation users and by the "
        "other runs, and what it earns by test users. The objectives' own parameters are chosen once, with batches of 256, "
        "one-cycle and a rate of 0.1. Adam divides gradients by their size: a plateau slows it only where gradients sink to "
        "its constant of 1e-8. SGD, which the propositions on plateaus are about, is this project's addition, at a constant "
        "rate and with the parameters that are usual here.",
    ],
)  # fmt: skip

__all__ = ["OPTIMISATION", "best_against_best"]
