"""How tight are bounds for a policy that was fixed beforehand: logarithmic smoothing, IX, Bernstein, ES (thesis, Section 8.3.3).

The thesis leaves asymmetric, tighter bounds to its follow-up on logarithmic smoothing; this compares their lower ends.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from manyarms._base.palette import PALETTE
from manyarms.certificates import certify
from manyarms.logs import LoggedData
from manyarms.worlds import SupervisedWorld
from manyarms_thesis.es.common import ES, every, on_data_of_the_thesis, warnings, worlds
from manyarms_thesis.es.coverage import Tally, covers
from manyarms_thesis.es.figures import lines
from manyarms_thesis.es.learners import DELTA, world_of
from manyarms_thesis.harness.claims import Claim, Measured, claim, listed
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.figures import BLACK, Drawn, Look, Series, final_series
from manyarms_thesis.harness.learning import Compared, lead
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Call, Cell, Columns, solve_log

BOUNDS = {"LS": "ls", "IX": "ix-tail", "empirical Bernstein": "bernstein", "ES": "es"}
TRUTH = "true value"


@dataclass(frozen=True, eq=False)
class Valued:
    """A world, a log of independent draws from its rows, and a policy that has not seen them."""

    world: SupervisedWorld
    log: LoggedData
    target: float


def drawn(*, seed: int, data: str, rows: int, eta0: float, target: float, rounds: int, **world: Any) -> Valued:
    """eta0: of the logging policy; target: the same of the policy to be valued."""
    made = world_of(data, rows, **world)
    return Valued(made, made.log(eta0, seed % (1 << 32), rows=rounds), target)


def lower_end(*, problem: Valued, seed: int, name: str) -> Columns:
    """The lower end of one bound at delta, over its default grid, which is paid for."""
    policy = problem.world.logging(problem.target)
    truth = float(problem.world.value(policy, "logged"))
    found = certify(policy, problem.log, delta=DELTA, bound=name, two_sided=False)
    return {
        "lower": found.lower, "truth": truth, "gap": truth - found.lower, "covered": float(found.lower <= truth),
    }  # fmt: skip


def _cells(sizes: Sizes) -> Iterator[Cell]:
    methods = {label: Call(lower_end, {"name": name}) for label, name in BOUNDS.items()}
    for data, world in worlds(sizes).items():
        for eta0, target in sizes["pairs"]:
            for rounds in sizes["rounds"]:
                parameters = {"data": data, "eta0": eta0, "target": target, "n": rounds}
                problem = Call(drawn, world | {"eta0": eta0, "target": target})
                panel = f"{data}, {eta0:g} to {target:g}, n={rounds:,}"
                yield Cell(panel, parameters, problem, methods, rounds, sizes["runs"], solve_log)


# the thesis says that its follow-up is tighter than its own bound; of other bounds only that it is among the tightest
TIGHTER: Mapping[str, str] = {"ES": "2530, 2794"}


@on_data_of_the_thesis
def _claims(on: Compared) -> Iterator[Claim]:
    for other in BOUNDS:
        if other != "LS":
            yield _tighter(on, other)
    for name in BOUNDS:
        yield _covers(on, name)


def _covers(on: Compared, name: str) -> Claim:
    """Logs of all panels together, which are independent: those of one panel are too few to show 95 %.

    None is a statement of the thesis, whose bound takes off a bias as well and has one lambda.
    """
    tallies = {panel: _tally(on, panel, name) for panel in on.panels}
    statement = (
        f"{name}: the true value is above the lower end in at least {1 - DELTA:.0%} of logs, of all panels together"
    )
    every_log = Tally(
        *(sum(getattr(one, part) for one in tallies.values()) for part in ("logs", "informative", "misses"))
    )
    detail = f". Covered: {listed(tallies)}"
    return covers(statement, "", {"all panels": every_log}, panel=on.data, detail=detail)


def _tally(on: Compared, panel: str, name: str) -> Tally:
    """A lower end that is not above 0 says nothing of a value that cannot be below."""
    low, hits = (on.results.final(panel, name, column) for column in ("lower", "covered"))
    return Tally.of(hits, np.asarray(low <= 0))


def _tighter(on: Compared, other: str) -> Claim:
    """The lower end of logarithmic smoothing is higher in every panel in which one of the two says anything."""
    statement = f"Logarithmic smoothing is tighter than {other}: its lower end is higher"
    said = [panel for panel in on.panels if any(_tally(on, panel, name).informative for name in ("LS", other))]
    idle = f"LS less {other}; both are vacuous in {len(on.panels) - len(said)} of {len(on.panels)} panels, which do not count"
    if not said:
        return claim(statement, TIGHTER.get(other, ""), Measured(math.nan, math.nan), panel=on.data, detail=idle)
    leads = {panel: lead(on.results, panel, "LS", other, "lower") for panel in said}
    return every(on, leads, statement, TIGHTER.get(other, ""), idle)


def _look(name: str, place: int) -> Look:
    return (BLACK, ":") if name == TRUTH else (PALETTE[place % len(PALETTE)], "-")


def _figures(results: Results, folder: Path) -> list[Drawn]:
    pairs = dict.fromkeys(
        tuple(results.parameter(p, name) for name in ("data", "eta0", "target")) for p in results.panels
    )
    groups: dict[str, Series] = {}
    for data, eta0, target in pairs:
        those = results.where(data=data, eta0=eta0, target=target)
        truth = final_series(results, those, "n", methods=["LS"], column="truth")["LS"]
        series = final_series(results, those, "n", column="lower")
        series[TRUTH] = {n: Measured(value.mean, 0.0) for n, value in truth.items()}
        groups[f"{data}: logged at {eta0:g}, valued at {target:g}"] = series
    return [
        lines(
            groups, folder, "lower-ends", "Lower ends for a policy that was fixed beforehand", xlabel="rows of the log",
            ylabel="lower end (95 %)", look=_look, ticks="log",
            seen="How near the true value (dotted) each bound's lower end comes as the log grows; an end at 0 says nothing.",
        )
    ]  # fmt: skip


EVALUATION_BOUNDS = ES.experiment(
    "ls-bounds",
    order=9,
    title="Evaluation bounds for a fixed policy",
    thesis_lines="2530, 2794",
    question="How tight are bounds on the value of a policy that was fixed beforehand: is logarithmic smoothing tighter than the "
    "thesis's own bound, implicit exploration and Bernstein's?",
    setting="Bandit logs of {data} (those that are found) with {rounds} rows; logged by a softmax policy and valued for "
    "another, of inverse temperatures {pairs}. All of delta=0.05 is on the lower end; means of {runs} logs.",
    scales={
        "smoke": {
            "data": ["fashion-mnist"], "rows": 2_000, "test_rows": 10, "shrink": 4, "pairs": [[0.3, 1.0]], "rounds": [100, 1_000],
            "runs": 10,
        },
        "quick": {
            "data": ["fashion-mnist"], "rows": 10_000, "test_rows": 10, "shrink": 2,
            "pairs": [[0.0, 0.5], [0.3, 1.0], [-0.2, 1.0]], "rounds": [100, 300, 1_000, 3_000, 10_000], "runs": 40,
        },
        "paper": {
            "data": ["mnist", "fashion-mnist", "cifar100"], "test_rows": 10, "shrink": 1,
            "pairs": [[0.0, 0.5], [0.3, 1.0], [-0.2, 1.0], [0.5, 0.5]], "rounds": [100, 300, 1_000, 3_000, 10_000, 30_000],
            "runs": 100,
        },
    },
    build=_cells,
    claims=_claims,
    figures=_figures,
    remarks=[
        "Logs are independent draws from the rows that the logging policy was not fitted to, and the true value is that on "
        "these rows. The policy is the softmax of the same parameters at another inverse temperature. All of delta = 0.05 is on "
        "the lower end; every bound takes the best of its default grid (lambda, gamma or smoothing around 1/sqrt(n), tau from "
        "n^(-1/2) to n^(-1/4), alpha from 0.5 to 1) and pays for it.",
        "No lower end is that of a printed bound: ES's pays no bias B_n, and has a grid where the thesis has one lambda and one "
        "alpha. Coverage is that of all panels together, whose logs are independent; one panel's are too few to show 95 %.",
        "ES's bound has a term for contexts, sqrt(log(4 sqrt(n) / delta) / 2n), that bounds for a fixed policy do without.",
    ],
    warnings=warnings,
    numbers={"truth": "true value", "lower": "lower end", "gap": "true value less lower end", "covered": "share covered"},
)  # fmt: skip

__all__ = ["BOUNDS", "EVALUATION_BOUNDS", "Valued", "drawn", "lower_end"]
