"""Best against best: what is chosen is chosen by validation users and other runs, and judged by test users."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from manyarms._base.typing import Array
from manyarms_thesis.catalogue import Experiment
from manyarms_thesis.harness.data import MADE_UP
from manyarms_thesis.harness.learning import MODE, Compared, best_elsewhere, between, between_choices
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Call, Cell, solve
from manyarms_thesis.pwll.common import ESTIMATES, LIKELIHOODS
from manyarms_thesis.pwll.optimisation import OPTIMISATION, best_against_best
from manyarms_thesis.pwll.problems import logged_problem
from manyarms_thesis.pwll.support import SUPPORTED
from manyarms_thesis.pwll.training import train, validation

pytest.importorskip("torch")
OBJECTIVES = (*LIKELIHOODS, *ESTIMATES)
PANELS, RUNS, GROUPS = 3, 5, 6


def compared(values: Array, liked: Array) -> Compared:
    """Runs with these values of test users (objectives, panels, runs, groups) and of validation users (no groups)."""
    runs = values.shape[2]
    methods = {name: Call(dict) for name in OBJECTIVES}
    cells = [Cell(f"p{i}", {"data": MADE_UP}, Call(dict), methods, 1, runs, solve) for i in range(values.shape[1])]
    rows: dict[tuple[str, str, int], Any] = {}
    for a, name in enumerate(OBJECTIVES):
        for i, cell in enumerate(cells):
            for r in range(runs):
                groups = values[a, i, r]
                rows[cell.panel, name, r] = {
                    "value": groups.mean(), "value_by_group": groups, validation("value"): liked[a, i, r]
                }  # fmt: skip
    return Compared(Results("x", "smoke", cells, rows), [cell.panel for cell in cells])


def test_the_best_is_chosen_by_validation_users_of_other_runs() -> None:
    values = np.zeros((len(OBJECTIVES), PANELS, RUNS, GROUPS))
    liked = np.zeros((len(OBJECTIVES), PANELS, RUNS))
    clpi, potec = OBJECTIVES.index("cLPI"), OBJECTIVES.index("POTEC")
    liked[clpi, 1], liked[potec, 2] = 0.5, 0.4  # the choice of every run
    liked[OBJECTIVES.index("BPR"), 0, 3] = 1.9  # in run 3 alone, and a run does not choose for itself
    values[clpi, 1], values[potec, 2] = 0.3, 0.1
    values[:, 0] = 9.0  # what test users like best, and nobody asks
    values[OBJECTIVES.index("BPR"), 0] = 0.2
    made = best_against_best(compared(values, liked), "value")
    # for the others BPR has 1.9 / 4 = 0.475 on average, which is below cLPI's 0.5
    assert made.figure == pytest.approx(0.2) and made.holds
    assert "cLPI in “p1” 0.3" in made.detail and "POTEC in “p2” 0.1" in made.detail and "BPR in" not in made.detail
    liked[OBJECTIVES.index("BPR"), 0, 3] = 2.1  # 0.525: now it is the choice of the four others
    made = best_against_best(compared(values, liked), "value")
    assert made.figure == pytest.approx((4 * 0.1 + 0.2) / 5)
    assert "BPR in “p0” and cLPI in “p1”" in made.detail or "cLPI in “p1” and BPR in “p0”" in made.detail


def test_nothing_is_decided_where_nothing_differs() -> None:
    """Seven estimates and four likelihoods, all alike: the largest of the estimates is above, the one chosen elsewhere is not."""
    rng, trials, naive, found, decided = np.random.default_rng(0), 200, [], [], 0
    for _ in range(trials):
        logs = rng.standard_normal((len(OBJECTIVES), PANELS, RUNS))  # what a log's luck adds, for all users alike
        values = logs[..., None] + rng.standard_normal((len(OBJECTIVES), PANELS, RUNS, GROUPS))
        liked = logs + rng.standard_normal(logs.shape)
        made = best_against_best(compared(values, liked), "value")
        found.append(made.figure)
        decided += made.verdict != "undecided"
        means = values.mean(axis=(2, 3)).reshape(len(OBJECTIVES), -1)
        naive.append(means[: len(LIKELIHOODS)].max() - means[len(LIKELIHOODS) :].max())
    error = np.std(found) / np.sqrt(trials)
    assert abs(np.mean(found)) < 5 * error
    assert np.mean(naive) < -5 * np.std(naive) / np.sqrt(trials)
    assert decided / trials < 0.0455 + 5 * np.sqrt(0.0455 * 0.9545 / trials)


def test_the_same_choice_in_every_run_is_a_plain_difference() -> None:
    rng = np.random.default_rng(1)
    values = rng.standard_normal((len(OBJECTIVES), PANELS, RUNS, GROUPS))
    on = compared(values, values.mean(axis=3))
    one, other = ("p0", "cLPI"), ("p1", "IPS")
    for places, against in (([one] * RUNS, None), ([one] * RUNS, [other] * RUNS)):
        plain = between(on.results, one, None if against is None else other)
        assert between_choices(on.results, places, against) == plain
    table = values[OBJECTIVES.index("cLPI"), 0] - values[OBJECTIVES.index("IPS"), 1]
    assert between(on.results, one, other).mean == pytest.approx(table.mean())
    mixed = between_choices(on.results, [one, other, one, one, one], None)
    by_hand = values[OBJECTIVES.index("cLPI"), 0].mean(axis=1)
    by_hand[1] = values[OBJECTIVES.index("IPS"), 1, 1].mean()
    assert mixed.mean == pytest.approx(by_hand.mean())


def test_best_elsewhere() -> None:
    assert best_elsewhere(np.array([[9.0, 0.0], [0.0, 1.0], [0.0, 1.0]])).tolist() == [1, 0, 0]


def test_a_run_says_what_validation_users_get_where_it_is_asked() -> None:
    made = logged_problem(seed=2, data=MADE_UP, dim=5, k0=20, clusters=12, rows=400)
    how: dict[str, Any] = {"steps": 14, "seed": 0, "objective": "cLPI", "epochs": 2, "batch": 64, "rate": 0.1}
    with_, without = train(problem=made, validated=True, **how), train(problem=made, **how)
    assert set(with_) - set(without) == {validation(MODE), validation("value")}
    assert np.array_equal(np.asarray(with_["value"]), np.asarray(without["value"]))
    assert 0 < float(np.asarray(with_[validation("value")])) != float(np.asarray(with_["value"])[-1])


def test_adams_runs_are_validated_and_quick_has_enough_of_them() -> None:
    for scale in ("smoke", "quick", "paper"):
        for cell in OPTIMISATION.cells(scale):
            asked = {call.parameters.get("validated", False) for call in cell.methods.values()}
            assert asked == {cell.parameters["optimiser"] == "adam"}
    assert {cell.runs for cell in OPTIMISATION.cells("quick")} == {5}


@pytest.mark.parametrize("experiment", [OPTIMISATION, SUPPORTED], ids=lambda e: e.name)
def test_no_rate_of_quick_is_so_small_that_nothing_could_move(experiment: Experiment) -> None:
    """Adam moves a parameter by at most its rate in a step: at 5e-5 all objectives collapse alike within a few hundred."""
    sizes = experiment.scales["quick"]
    steps = sizes["epochs"] * sizes["rows"] / max(sizes["batches"])
    assert min(sizes["rates"]) * steps >= 0.5
    assert set(sizes["rates"]) <= set(experiment.scales["paper"]["rates"])
