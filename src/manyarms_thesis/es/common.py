"""What the experiments on exponential smoothing share: the chapter, sizes, panels, and claims' helpers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from manyarms._base.typing import Array
from manyarms.worlds.supervised import Family
from manyarms_thesis.es.learners import ROWS, features_of, is_there, logged_rows, supervised_problem, train
from manyarms_thesis.harness.claims import Claim, Measured, claim, least, listed, measured
from manyarms_thesis.harness.data import MADE_UP, missing_data
from manyarms_thesis.harness.experiments import Chapter, Sizes
from manyarms_thesis.harness.learning import (
    Compared,
    Place,
    best_elsewhere,
    between_choices,
    learning_cell,
    on_every_data,
)
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Call, Cell

OURS, LONDON, SAKHI1, SAKHI2 = "Ours", "London et al.", "Sakhi et al. 1", "Sakhi et al. 2"
BASELINES: Mapping[str, str] = {LONDON: "london", SAKHI1: "sakhi1", SAKHI2: "sakhi2"}
REAL = ("mnist", "fashion-mnist", "emnist", "cifar100")
COMPARABLE = 0.25  # what is less than this share of a difference that matters counts as comparable

SMOKE: dict[str, Any] = {
    "data": ["fashion-mnist"], "rows": 1_500, "test_rows": 500, "shrink": 4, "epochs": 2, "batch": 128, "rate": 0.01, "runs": 2,
    "draws": 64,
}  # fmt: skip
QUICK: dict[str, Any] = {
    "data": ["fashion-mnist"], "rows": 20_000, "test_rows": 4_000, "shrink": 2, "epochs": 5, "batch": 128, "rate": 0.003,
    "runs": 3, "draws": 256,
}  # fmt: skip
PAPER: dict[str, Any] = {
    "data": ["mnist", "fashion-mnist", "emnist", "cifar100"], "test_rows": None, "shrink": 1, "epochs": 20, "batch": 128,
    "rate": 0.001, "runs": 3, "draws": 2_048,
}  # fmt: skip

NUMBERS = {
    "value": "value of the policy, test rows",
    "mode_value": "value of its most probable actions",
    "logging_value": "value of the logging policy",
    "divergence": "KL from the prior",
    "milliseconds_a_round": "ms a step",
}
MEASURE = (
    "The value is exact: the mean over test rows of the policy's probability of the right label, with Gaussian policies by "
    "quadrature, with mixed-logit ones by 2,048 draws (256 in quick, 64 in smoke). Where the thesis draws one action a test row, "
    "nothing is drawn here. Runs differ in the log and in the order of training; data and logging policy are the same for all. "
    "A round, in this page's settings, is a step of the optimiser."
)
CHOICES = (
    "Adam at a rate of 0.001: the thesis says 0.1 (Section 8.5) and its code 0.001; at 0.1 steps are so coarse that the bound "
    "ends lower (FashionMNIST, eta_0 = 0.1, after six epochs: 0.17 instead of 0.25). Quick has 20,000 of the 60,000 training "
    "rows, 14 x 14 pixels, 5 epochs and a rate of 0.003; as many rows a pixel as the whole set has. sigma is learned, and the KL "
    "divergence is exact where the thesis bounds it (Appendix E.3.3). Mixed-logit policies have one noise an action."
)
DATA = (
    "EMNIST is used where its idx files are found. CIFAR-100's features come from a file features.npz (x_train, y_train, x_test, "
    "y_test) in its folder, where there is one; without it from its pixels, with which no linear policy is any good."
)
LOOSER = (
    "Why ours need not win: at its best lambda, and where lambda / (tau n) is small, Sakhi et al. 2's bound is "
    "V_hat - sqrt(kl/2n) - sqrt(2 kl V / n); ours takes off the bias B as well and has V plus the logged second moment in "
    "the place of V, since it holds on both sides. For the same clipping it is therefore the looser lower bound of the two."
)


def warnings() -> list[str]:
    """What must not be overlooked when data are missing."""
    return missing_data(
        REAL, is_there,
        "NO PICTURES WERE FOUND. The rows are made up (5 classes around random centres): nothing here says anything about real "
        "data.",
    )  # fmt: skip


# estimates and certificates where the truth is known
ES = Chapter("es", 5)
# policies learned from supervised data
LEARNED = Chapter("es", 5, (MEASURE, CHOICES), warnings, numbers=NUMBERS)
Method = tuple[str, Family, Mapping[str, Any]]
"""A learner: the method and its options (`learners.objective_of`), and the family of policies."""


def worlds(sizes: Sizes) -> dict[str, dict[str, Any]]:
    """Parameters of the settings of a scale, but for eta_0, by the name of the data.

    Data sets that are not found are left out; where none is, made-up rows take their place.
    """
    found = [data for data in sizes["data"] if is_there(data)] or [MADE_UP]
    common = {"test_rows": sizes["test_rows"], "shrink": sizes["shrink"]}
    out = {}
    for data in found:
        if data == MADE_UP:
            out[data] = {"data": data, "rows": min(sizes.get("rows", 5_000), 5_000), "test_rows": 1_000}
        else:
            out[data] = {"data": data, "rows": sizes.get("rows", ROWS[data]), **common}
    return out


def cells(sizes: Sizes, methods: Mapping[str, Method]) -> Iterator[Cell]:
    """One panel for each data set and eta_0, with the same learners and the scale's optimiser."""
    common = {name: sizes[name] for name in ("epochs", "batch", "rate", "draws")}
    learners = {
        name: Call(train, {"method": method, "family": family, **common, **more})
        for name, (method, family, more) in methods.items()
    }
    for data, world in worlds(sizes).items():
        for eta0 in sizes["etas"]:
            parameters = {"data": data, "eta0": float(eta0), "rows": world["rows"]}
            problem = Call(supervised_problem, world | {"eta0": float(eta0)})
            panel = f"{data}, eta0={eta0:g}"
            yield learning_cell(panel, parameters, problem, logged_rows(world), learners, sizes["runs"])


def above(on: Compared, eta0: float, upto: float = np.inf) -> Compared:
    """Panels with eta_0 above a number (and at most another)."""
    return replace(on, panels=[panel for panel in on.panels if eta0 < on.results.parameter(panel, "eta0") <= upto])


def named(on: Compared, kind: str) -> list[str]:
    """The learners of a kind, whose names begin with it."""
    return [name for name in on.results.methods(on.panels[0]) if name.startswith(f"{kind}, ")]


def improves(on: Compared, statement: str, lines: str, methods: Sequence[str] = ()) -> Claim:
    """Every learner, or each of some, ends above the logging policy in every panel; the figure is the least convincing gain."""
    results = on.results
    gains = {
        f"{method} in {name}": measured(
            results.final(name, method, "value") - results.final(name, method, "logging_value")
        )
        for name in on.panels
        for method in methods or results.methods(name)
    }
    nearest, gained = least(gains)
    won = sum(value.above_zero for value in gains.values())
    detail = f"{won} of {len(gains)} by two standard errors; the figure is the least convincing gain, of {nearest}"
    return claim(statement, lines, gained, panel=on.data, detail=detail, parts=list(gains.values()))


def stated(data: str, lines: str) -> str:
    """The lines of a statement, where the thesis makes it about such data; "" elsewhere.

    It has no made-up rows, and CIFAR-100 by the features of a network only.
    """
    return lines if data in REAL and (data != "cifar100" or features_of(data) is not None) else ""


def on_data_of_the_thesis(judge: Callable[[Compared], Iterable[Claim]]) -> Callable[[Results], list[Claim]]:
    """What a function claims of every data set; of the thesis only where it has the data."""

    def one(on: Compared) -> Iterator[Claim]:
        for made in judge(on):
            yield replace(made, thesis_lines=stated(on.data, made.thesis_lines))

    return on_every_data(one)


def every(on: Compared, differences: Mapping[str, Measured], statement: str, lines: str, what: str) -> Claim:
    """Several differences are all above zero; the figure is the least convincing one. what: these are, in words."""
    nearest, difference = least(differences)
    detail = f"{what}: {listed(differences)}; least convincing: {nearest}"
    return claim(statement, lines, difference, panel=on.data, detail=detail, parts=list(differences.values()))


def within(differences: Array, scale: Array, share: float = COMPARABLE) -> Measured:
    """(runs,) each: a share of what matters (its scale), less how far two numbers are apart; above zero where they are alike.

    Runs that all say the same have no error to go by, and decide nothing.
    """
    side = 1.0 if differences.mean() >= 0 else -1.0
    left = measured(share * scale - side * differences)
    return replace(left, standard_error=math.nan) if left.standard_error == 0 else left


def left_out_best(table: Array) -> Array:
    """(runs,): for each run the value of the column that is best on average over the other runs."""
    return np.asarray(table[np.arange(len(table)), best_elsewhere(table)])


def tuned_lead(on: Compared, ones: Sequence[str], others: Sequence[str]) -> dict[str, Measured]:
    """By panel, the best of some learners less the best of others, both chosen on the other runs of the panel."""
    leads = {}
    for panel in on.panels:
        mine, theirs = (_chosen(on.results, panel, names) for names in (ones, others))
        leads[panel] = between_choices(on.results, mine, theirs)
    return leads


def _chosen(results: Results, panel: str, names: Sequence[str]) -> list[Place]:
    """Which of some learners of a panel each run takes."""
    table = np.stack([results.final(panel, name, "value") for name in names], axis=1)
    return [(panel, names[column]) for column in best_elsewhere(table)]


__all__ = [
    "BASELINES", "COMPARABLE", "DATA", "ES", "LEARNED", "LONDON", "LOOSER", "OURS", "PAPER", "QUICK", "SAKHI1", "SAKHI2", "SMOKE",
    "Method", "above", "cells", "every", "improves", "left_out_best", "named", "on_data_of_the_thesis", "stated", "tuned_lead",
    "warnings", "within", "worlds",
]  # fmt: skip
