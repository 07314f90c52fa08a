"""How well objectives estimate the value of the policies that they learn, beside what these are worth.

Thesis, Section 7.3.1 and Appendix D.4.2-5508.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path

import numpy as np

from manyarms._base.text import in_words
from manyarms._base.typing import Array
from manyarms_thesis.harness.claims import Claim, Measured, claim, least, listed, measured
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.figures import Drawn
from manyarms_thesis.harness.learning import (
    IN_WORDS,
    MODE,
    Place,
    best_elsewhere,
    between_choices,
    counted,
    finals,
    flag_data,
)
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Cell
from manyarms_thesis.pwll.common import ESTIMATES, LEARNED, NUMBERS, PAPER, QUICK, SMOKE, learners, logged_cells, worlds
from manyarms_thesis.pwll.figures import COUNTED, epochs, scatter
from manyarms_thesis.pwll.training import validation

LIKELIHOODS = ("LPI", "cLPI", "RegKL")  # BPR compares scores: there is nothing in it to be read as a value


def _cells(sizes: Sizes) -> Iterator[Cell]:
    methods = learners((*ESTIMATES, *LIKELIHOODS), sizes, curve=True, estimates=True, validated=True)
    for data, world in worlds(sizes).items():
        yield from logged_cells(data, world, methods, sizes["runs"])


def errors(results: Results, panel: str, agent: str) -> Array:
    """(runs, epochs): squared errors of the objective as an estimate, after each epoch."""
    return np.asarray(results.values(panel, agent, "squared_error")[:, 1:])


def _claims(results: Results) -> list[Claim]:
    return flag_data(results, chain.from_iterable(_of_panel(results, panel) for panel in results.panels))


def _of_panel(results: Results, panel: str) -> Iterator[Claim]:
    mse = {agent: errors(results, panel, agent).mean(axis=1) for agent in results.methods(panel)}
    usual = np.mean([magnitude(mse[agent]) for agent in ESTIMATES], axis=0)
    above = {agent: measured(magnitude(mse[agent]) - usual) for agent in LIKELIHOODS}
    nearest, difference = least(above)
    shown = listed({learner: _as_power(values) for learner, values in mse.items()})
    yield claim(
        "PWLL objectives are poor value estimators: the MSE of each is above what estimates have on average (powers of ten)",
        "2309", difference, panel=panel,
        detail=f"logarithm (base 10) of the MSE, which is averaged over the epochs: {shown}; least convincing: {nearest}",
        parts=list(above.values()),
    )  # fmt: skip
    for column in (MODE, "value"):
        yield _accurate_is_not_better(results, panel, mse, column)


def magnitude(mse: Array) -> Array:
    """Powers of ten; an infinite error, of a logarithm of a probability that is zero, counts as the largest number there is."""
    return np.asarray(np.log10(np.clip(mse, np.finfo(float).tiny, np.finfo(float).max)))


def _as_power(mse: Array) -> str:
    return "infinite" if np.isinf(mse).all() else str(measured(magnitude(mse)))


def _accurate_is_not_better(results: Results, panel: str, mse: Mapping[str, Array], column: str) -> Claim:
    """The best policy that a PWLL objective learned is better than that of the most accurate estimate."""
    accurate = min(ESTIMATES, key=lambda agent: float(mse[agent].mean()))
    values = {agent: results.final(panel, agent, column) for agent in results.methods(panel)}
    liked = np.stack([results.final(panel, agent, validation(column)) for agent in LIKELIHOODS], axis=1)
    best: list[Place] = [(panel, LIKELIHOODS[i]) for i in best_elsewhere(liked)]
    order = [np.argsort(np.argsort([float(source[a].mean()) for a in mse])) for source in (mse, values)]
    rank = float(np.corrcoef(order[0], order[1])[0, 1])
    return claim(
        f"A low MSE does not yield a better policy: PWLL learns a better one than the most accurate estimate{counted(column)}",
        "2309",
        between_choices(results, best, [(panel, accurate)] * len(best), column, standing=True),
        panel=panel,
        detail=f"{in_words(list(dict.fromkeys(agent for _, agent in best)))}, chosen for every run by validation users and the "
        f"other runs, {between_choices(results, best, None, column)}; {accurate} (least MSE) "
        f"{_of(results, panel, accurate, column)}; rank correlation of "
        f"MSE and value over all {len(mse)} objectives: {rank:.2f}",
    )  # fmt: skip


def _of(results: Results, panel: str, agent: str, column: str) -> Measured:
    return finals(results, panel, [agent], column)[agent]


def _figures(results: Results, folder: Path) -> Iterator[Drawn]:
    for column, end in COUNTED:
        points = {
            panel: {
                learner: (measured(errors(results, panel, learner).mean(axis=1)), value)
                for learner, value in finals(results, panel, results.methods(panel), column).items()
            }
            for panel in results.panels
        }
        labels = ("MSE as an estimate, mean over epochs", IN_WORDS[column])
        title = "Accuracy of the objective and value of the policy it learns"
        caption = (
            f"One point an objective: its mean squared error as an estimate of the value of the policy that it is learning, on a "
            f"logarithmic axis, and the {IN_WORDS[column]} of the policy that it ends with, for test users. Means over runs."
        )
        yield scatter(points, labels, folder, f"mse-value-{end}", title, caption)
    yield epochs(
        results, results.panels, folder, "mse-progress", "Squared error of the objective as an estimate", log_y=True,
        column="squared_error",
    )  # fmt: skip


MSE = LEARNED.experiment(
    "pwll-mse",
    order=9,
    title="Accuracy as an estimate, and the value of the learned policy",
    thesis_lines="2309, 5472-5508",
    question="Does an objective that estimates a policy's value accurately also learn a better policy?",
    setting="In {told}, ten objectives are trained for {epochs} epochs, {runs} times; after each epoch the objective is "
    "compared with the true value of the policy for the users of the log.",
    scales={"smoke": SMOKE, "quick": QUICK, "paper": PAPER},
    build=_cells,
    claims=_claims,
    figures=_figures,
    remarks=[
        "The estimate is the objective on the whole log that it is trained on; the truth is the policy's exact value for the "
        "users of that log (in the made-up catalogue, at the test contexts). The thesis leaves objectives with a large MSE out "
        "of its figures; here none is left out, but for BPR, which is no function of probabilities.",
    ],
    numbers={**NUMBERS, "squared_error": "squared error, last epoch"},
)  # fmt: skip

__all__ = ["MSE", "errors"]
