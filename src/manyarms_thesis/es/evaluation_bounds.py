"""How tight are bounds for a policy that was fixed beforehand: logarithmic smoothing, IX, Bernstein, ES (thesis, Section 8.3.3).

The thesis leaves asymmetric, tighter bounds to its follow-up on logarithmic smoothing; this compares their lower ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from manyarms._base.palette import PALETTE
from manyarms.certificates import certify
from manyarms.logs import LoggedData
from manyarms.worlds import SupervisedWorld
from manyarms_thesis.es.common import ES, warnings, worlds
from manyarms_thesis.es.coverage import SURE, plausible
from manyarms_thesis.es.figures import lines
from manyarms_thesis.es.learners import DELTA, world_of
from manyarms_thesis.harness.claims import Claim, Measured, least, measured
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.figures import BLACK, Look, Series, final_series
from manyarms_thesis.harness.learning import Compared, lead, on_every_data
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Call, Cell, Columns, solve_log

BOUNDS = {"LS": "ls", "IX": "ix-tail", "empirical Bernstein": "bernstein", "ES": "es"}
TRUTH = "true value"


@dataclass(frozen=True, eq=False)
class Drawn:
    """A world, a log of independent draws from its rows, and a policy that has not seen them."""

    world: SupervisedWorld
    log: LoggedData
    target: float


def drawn(*, seed: int, data: str, rows: int, eta0: float, target: float, rounds: int, **world: Any) -> Drawn:
    """eta0: of the logging policy; target: the same of the policy to be valued."""
    made = world_of(data, rows, **world)
    return Drawn(made, made.log(eta0, seed % (1 << 32), rows=rounds), target)


def lower_end(*, problem: Drawn, seed: int, name: str) -> Columns:
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


@on_every_data
def _claims(on: Compared) -> Iterator[Claim]:
    for other in BOUNDS:
        if other == "LS":
            continue
        leads = {panel: lead(on.results, panel, "LS", other, "lower") for panel in on.panels}
        nearest, difference = least(leads)
        won = sum(value.above_zero for value in leads.values())
        yield on.claim(
            f"Logarithmic smoothing is tighter than {other}: its lower end is higher", "2530, 2794", difference,
            f"in {won} of {len(leads)} panels by two standard errors; least convincing: {nearest}; "
            + ", ".join(f"{panel}: {value}" for panel, value in leads.items()),
        )  # fmt: skip
    for name in BOUNDS:
        hits = {panel: on.results.final(panel, name, "covered") for panel in on.panels}
        chance = min(plausible(int(len(one) - one.sum()), len(one)) for one in hits.values())
        worst = min(hits, key=lambda panel: float(hits[panel].mean()))
        point = measured(hits[worst])
        yield Claim(
            f"{name}: the true value is above the lower end in at least {1 - DELTA:.0%} of logs", "2530", point.mean,
            point.standard_error, chance >= SURE, on.data, f"the lowest share over panels, in {worst}",
        )  # fmt: skip


def _look(name: str, place: int) -> Look:
    return (BLACK, ":") if name == TRUTH else (PALETTE[place % len(PALETTE)], "-")


def _figures(results: Results, folder: Path) -> list[Path]:
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
        )
    ]  # fmt: skip


EVALUATION_BOUNDS = ES.experiment(
    "ls-bounds",
    order=9,
    title="Evaluation bounds for a fixed policy",
    thesis_lines="2530, 2794",
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
        "ES's bound has a term for contexts, sqrt(log(4 sqrt(n) / delta) / 2n), that bounds for a fixed policy do without.",
    ],
    warnings=warnings,
    caption="Mean lower end over logs; the bars are one standard error long on each side. Dotted: the true value.",
    numbers={"truth": "true value", "lower": "lower end", "gap": "true value less lower end", "covered": "share covered"},
)  # fmt: skip

__all__ = ["BOUNDS", "EVALUATION_BOUNDS", "Drawn", "drawn", "lower_end"]
