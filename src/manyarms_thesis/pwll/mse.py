"""How well objectives estimate the value of the policies that they learn, beside what these are worth.

Thesis, lines 2309, 5472-5508.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from manyarms._base.typing import Array
from manyarms_thesis.harness.claims import Claim, claim, least, measured
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Cell, Experiment
from manyarms_thesis.pwll.builders import cell
from manyarms_thesis.pwll.claims import OF_MODES, OF_MODES_WORDS, flagged
from manyarms_thesis.pwll.common import (
    CAPTION,
    ESTIMATES,
    NUMBERS,
    PAPER,
    QUICK,
    REMARKS,
    SMOKE,
    described,
    learners,
    made_up_warnings,
    worlds,
)  # fmt: skip
from manyarms_thesis.pwll.figures import epochs, finals, mean_over, scatter

LIKELIHOODS = ("LPI", "cLPI", "RegKL")  # BPR compares scores: there is nothing in it to be read as a value


def _cells(sizes: Mapping[str, Any]) -> list[Cell]:
    agents = learners((*ESTIMATES, *LIKELIHOODS), sizes, curve=True, estimates=True)
    return [cell(data, described(world), world, agents, sizes["runs"]) for data, world in worlds(sizes).items()]


def errors(results: Results, panel: str, agent: str) -> Array:
    """(runs, epochs): squared errors of the objective as an estimate, after each epoch."""
    return np.asarray(results.values(panel, agent, "squared_error").astype(float)[:, 1:])


def _claims(results: Results) -> list[Claim]:
    found = []
    for panel in results.panels:
        mse = {agent: errors(results, panel, agent).mean(axis=1) for agent in results.agents(panel)}
        worse = {f"{a} over {b}": measured(mse[a] - mse[b]) for a in LIKELIHOODS for b in ESTIMATES}
        nearest, difference = least(worse)
        shown = ", ".join(f"{agent} {measured(values)}" for agent, values in mse.items())
        found.append(
            claim(
                "PWLL objectives are poor value estimators: each has a larger MSE than every estimate", "2309", difference,
                panel=panel, detail=f"MSE, averaged over the epochs: {shown}; least convincing: {nearest}",
            )
        )  # fmt: skip
        for column in ("value", OF_MODES):
            found.append(_accurate_is_not_better(results, panel, mse, column))
    return flagged(results, found)


def _accurate_is_not_better(results: Results, panel: str, mse: Mapping[str, Array], column: str) -> Claim:
    """The best policy that a PWLL objective learned is better than that of the most accurate estimate."""
    accurate = min(ESTIMATES, key=lambda agent: float(mse[agent].mean()))
    values = {agent: results.final(panel, agent, column) for agent in results.agents(panel)}
    best = max(LIKELIHOODS, key=lambda agent: float(values[agent].mean()))
    order = [np.argsort(np.argsort([float(source[a].mean()) for a in mse])) for source in (mse, values)]
    rank = float(np.corrcoef(order[0], order[1])[0, 1])
    of = OF_MODES_WORDS if column == OF_MODES else ""
    return claim(
        f"A low MSE does not yield a better policy: PWLL learns a better one than the most accurate estimate{of}", "2309",
        measured(values[best] - values[accurate]), panel=panel,
        detail=f"{best} {measured(values[best])}, {accurate} (least MSE) {measured(values[accurate])}; rank correlation of "
        f"MSE and value over all {len(mse)} objectives: {rank:.2f}",
    )  # fmt: skip


def _figures(results: Results, folder: Path) -> list[Path]:
    points = {}
    for panel in results.panels:
        values = finals(results, panel)
        points[panel] = {a: (mean_over(errors(results, panel, a)), values[a]) for a in results.agents(panel)}
    labels = ("MSE as an estimate, mean over epochs", "value of the learned policy, test users")
    return [
        scatter(points, labels, folder, "mse-value", "Accuracy of the objective and value of the policy it learns"),
        epochs(
            results, results.panels, folder, "mse-progress", "Squared error of the objective as an estimate", log=True,
            column="squared_error",
        ),
    ]  # fmt: skip


MSE = Experiment(
    name="pwll-mse",
    title="Accuracy as an estimate, and the value of the learned policy",
    thesis_lines="2309, 5472-5508",
    scales={"smoke": SMOKE, "quick": QUICK | {"runs": 3}, "paper": PAPER},
    build=_cells,
    claims=_claims,
    figures=_figures,
    remarks=[
        *REMARKS,
        "The estimate is the objective on the whole log that it is trained on; the truth is the policy's exact value for the "
        "users of that log (in the made-up catalogue, at the test contexts). The thesis leaves objectives with a large MSE out "
        "of its figures; here none is left out, but for BPR, which is no function of probabilities.",
    ],
    warnings=made_up_warnings,
    caption=CAPTION,
    numbers={**NUMBERS, "squared_error": "squared error, last epoch"},
)  # fmt: skip

__all__ = ["MSE", "errors"]
