"""Leaving a plateau: the identity of gradients, kinds of actions, Adam's epsilon, and the experiment in small."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from manyarms._base.typing import Array
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import items_of
from manyarms_thesis.harness.work import execute
from manyarms_thesis.pwll.escape import ESCAPE, OPTIMISERS, leave_plateau
from manyarms_thesis.pwll.escape_ascent import (
    RATES,
    Catalogue,
    Optimiser,
    Start,
    ascend,
    at_zero,
    checkpoints,
    draw_catalogue,
    first_gradients,
    tuned_rate,
)
from manyarms_thesis.pwll.everywhere import extremes, for_all
from manyarms_thesis.pwll.finite_softmax import Objective

BOTH = pytest.mark.parametrize("objective", ["likelihood", "value"])
SMALL = {"contexts": 3, "dim": 4, "k0": 6, "rows": 2_000, "luck": 0.5, "tau": 0.01, "scale": 1.0, "spread": 1.0}


def drawn(K: int = 40, start: Start = "zero", kinds: int = 10**6, seed: int = 0, **more: float) -> Catalogue:
    return draw_catalogue(**{**SMALL, **more}, K=K, kinds=kinds, start=start, seed=seed)  # type: ignore[arg-type]


def unfolded(kinds: Catalogue) -> Catalogue:
    """Every action by itself."""
    each = np.repeat(np.arange(len(kinds.counts)), kinds.counts.astype(int))
    return Catalogue(
        kinds.contexts, np.ones(len(each)), kinds.weights[:, each], kinds.rewards[:, each], kinds.start[each]
    )


def by_torch(problem: Catalogue, beta: Array, objective: Objective) -> Array:
    """The gradient by automatic differentiation, for catalogues without kinds."""
    table = torch.tensor(beta, requires_grad=True)
    log_pi = torch.log_softmax(torch.tensor(problem.contexts) @ table.T, dim=1)
    (torch.tensor(problem.weights) * (log_pi if objective == "likelihood" else log_pi.exp())).sum().backward()
    assert table.grad is not None
    return np.asarray(table.grad.numpy())


@BOTH
@pytest.mark.parametrize("start", ["zero", "random", "logging"])
def test_gradients_are_those_of_automatic_differentiation(objective: Objective, start: Start) -> None:
    problem = drawn(start=start)
    found = problem.gradient(problem.masses(problem.start), objective)
    np.testing.assert_allclose(found, by_torch(problem, problem.start, objective), atol=1e-14)


@BOTH
def test_gradients_of_kinds_are_slopes_of_the_objective(objective: Objective) -> None:
    """A kind's parameters move all of its actions: the slope is the gradient of one of them, times their number."""
    problem, tiny = drawn(K=60, start="random", kinds=5), 1e-6
    found = problem.gradient(problem.masses(problem.start), objective) * problem.counts[:, None]
    for place in (0, len(problem.counts) - 1):
        for j in range(4):
            up, down = problem.start.copy(), problem.start.copy()
            up[place, j] += tiny
            down[place, j] -= tiny
            slope = (problem.objective(up, objective) - problem.objective(down, objective)) / (2 * tiny)
            assert found[place, j] == pytest.approx(slope, abs=1e-7)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("K", [20, 1_000])
def test_at_a_uniform_start_the_gradient_of_cips_is_that_of_clpi_over_K(seed: int, K: int) -> None:
    likelihood, value = first_gradients(drawn(K=K, seed=seed))
    assert np.abs(likelihood).max() > 1e-3
    np.testing.assert_allclose(K * value, likelihood, atol=1e-13)
    # away from it there is no such factor
    likelihood, value = first_gradients(drawn(K=K, seed=seed, start="random"))
    assert np.abs(K * value - likelihood).max() > 0.05 * np.abs(likelihood).max()


def test_the_uniform_start_of_a_log_is_its_zero_start() -> None:
    problem = drawn(start="random")
    np.testing.assert_allclose(problem.masses(at_zero(problem).start), 1 / 40)


@BOTH
@pytest.mark.parametrize("kind", ["SGD", "Adam"])
@pytest.mark.parametrize(("start", "kinds"), [("zero", 1), ("random", 7), ("logging", 7)])
def test_kinds_are_the_same_as_all_actions_by_themselves(
    objective: Objective, kind: str, start: Start, kinds: int
) -> None:
    short = drawn(K=150, start=start, kinds=kinds)
    full = unfolded(short)
    assert short.actions == full.actions == 150 and len(short.counts) < 40
    ends = []
    for problem in (short, full):
        beta, optimiser = problem.start.copy(), Optimiser(kind, 3.0 if kind == "SGD" else 0.05, 1e-10)
        for _ in range(60):
            optimiser.step(beta, problem.gradient(problem.masses(beta), objective))
        masses = problem.masses(beta)
        ends.append((problem.value(masses), problem.mode_value(masses), problem.objective(beta, objective)))
    assert ends[0] == pytest.approx(ends[1], rel=1e-9)


def test_a_catalogue_holds_what_was_asked_for() -> None:
    problem = drawn(K=5_000, start="logging", kinds=30)
    logged = (problem.rewards > 0).any(axis=0)
    assert problem.actions == 5_000 and problem.counts[logged].max() == 1
    assert ((problem.rewards > 0).sum(axis=1) == 6).all() and problem.rewards.max() <= 0.5
    assert not problem.weights[:, ~logged].any()
    others = problem.counts[~logged]
    assert len(others) == 30 and others.max() - others.min() <= 1
    # the embeddings of logged actions have the largest scores
    scores = problem.contexts @ problem.start.T
    for c in range(3):
        assert scores[c, problem.rewards[c] > 0].min() > scores[c, problem.rewards[c] == 0].max()
    # weights are, on average, the rewards of what was logged more often than tau
    many = drawn(rows=400_000, tau=0.0)
    np.testing.assert_allclose(many.weights * 3, many.rewards, atol=0.02)


def test_a_catalogue_may_be_logged_whole() -> None:
    problem = drawn(K=6)
    assert problem.actions == len(problem.counts) == 6


def test_the_best_likelihood_is_reached_by_ascent() -> None:
    problem = drawn(K=40)
    found = ascend(problem, "likelihood", Optimiser("SGD", 1.0), 4_000, 0.0)
    assert found.left == 0.0
    assert found.values[-1] == pytest.approx(problem.value(problem.best_likelihood), rel=0.02)


def test_modes_that_tie_count_alike() -> None:
    problem = drawn(K=40)
    assert problem.mode_value(problem.masses(problem.start)) == pytest.approx(problem.rewards.mean())


def test_adam_is_that_of_torch() -> None:
    rng = np.random.default_rng(0)
    table = torch.nn.Parameter(torch.zeros(5, 3, dtype=torch.float64))
    theirs = torch.optim.Adam([table], lr=0.1, eps=1e-3)
    beta, ours = np.zeros((5, 3)), Optimiser("Adam", 0.1, 1e-3)
    for _ in range(20):
        gradient = rng.standard_normal((5, 3)) * 1e-3
        ours.step(beta, gradient)
        table.grad = torch.tensor(-gradient)
        theirs.step()
    np.testing.assert_allclose(beta, table.detach().numpy(), rtol=1e-9)


def test_adam_cancels_a_factor_that_is_above_its_epsilon_only() -> None:
    gradient = np.array([[1.0, -2.0]])

    def after(factor: float, epsilon: float) -> Array:
        beta, optimiser = np.zeros((1, 2)), Optimiser("Adam", 0.01, epsilon)
        for _ in range(10):
            optimiser.step(beta, factor * gradient)
        return beta

    np.testing.assert_allclose(after(1e-6, 1e-14), after(1.0, 1e-14), rtol=1e-6)
    # far below epsilon it is SGD with the rate over epsilon
    np.testing.assert_allclose(after(1e-6, 1.0), 10 * 0.01 * 1e-6 * gradient, rtol=1e-5)


def test_sgd_waits_K_times_and_adam_does_not() -> None:
    """A tenfold K waits ten times as long under SGD, and under Adam once gradients are below epsilon; else hardly longer."""
    waits: dict[str, list[float]] = {"SGD": [], "Adam, small": [], "Adam, large": []}
    for K in (100, 1_000):
        problem = drawn(K=K, kinds=1, seed=3)
        target = problem.value(problem.best_likelihood) / 2
        for name, optimiser in (
            ("SGD", Optimiser("SGD", 3.0)),
            ("Adam, small", Optimiser("Adam", 0.05, 1e-14)),
            ("Adam, large", Optimiser("Adam", 0.05, 0.1)),
        ):
            waits[name].append(ascend(problem, "value", optimiser, 20_000, target).left)
    assert 5 < waits["SGD"][1] / waits["SGD"][0] < 20
    assert 5 < waits["Adam, large"][1] / waits["Adam, large"][0] < 20
    assert waits["Adam, small"][1] / waits["Adam, small"][0] < 2.5
    # one that does not leave says so
    assert math.isnan(ascend(drawn(K=1_000, kinds=1), "value", Optimiser("SGD", 0.01), 20, 1.0).left)


def test_rates_are_those_that_suit_the_likelihood() -> None:
    problem = drawn(K=100)
    rate = tuned_rate(problem, "SGD", 0.0, 50)
    reached = {}
    for other in RATES["SGD"]:
        beta = problem.start.copy()
        for _ in range(50):
            Optimiser("SGD", other).step(beta, problem.gradient(problem.masses(beta), "likelihood"))
        reached[other] = problem.objective(beta, "likelihood")
    assert reached[rate] == max(reached.values())


def test_a_run_reports_when_it_left_and_by_which_gradient() -> None:
    columns = leave_plateau(problem=drawn(K=100), steps=200, seed=0, objective="likelihood", epsilon=1e-8)
    assert columns["left"] == 1.0 and 0 < float(columns["waited"]) < 200  # type: ignore[arg-type]
    assert float(columns["identity"]) < 1e-12 and columns["rate"] == 0.01  # type: ignore[arg-type]
    assert len(np.asarray(columns["t"])) == len(np.asarray(columns["value"])) == len(np.asarray(columns["mode_value"]))


def test_checkpoints_have_both_ends() -> None:
    assert checkpoints(1_000, 25)[:2] == [0, 1] and checkpoints(1_000, 25)[-1] == 1_000


def test_one_counterexample_refutes() -> None:
    assert for_all(np.array([0.1, 0.2, 0.15])).above_zero
    assert for_all(np.array([5.0, 5.0, -1e-3])).below_zero
    assert for_all(np.array([0.0, 0.0, -1e-12]), 1e-9).above_zero
    assert extremes(np.array([1.0, 1.0])) == "1" and extremes(np.array([1.0, 2.0])) == "1 to 2"


def test_the_experiment_in_small(tmp_path: Path) -> None:
    cells = ESCAPE.build({"K": [500, 5_000], "starts": ["zero", "random", "logging"], "steps": 250, "runs": 2})
    assert all(list(cell.methods)[::2] == [f"cIPS, {one}" for one in OPTIMISERS] for cell in cells)
    rows = {
        (item.cell.panel, item.method, number): columns
        for item in items_of(ESCAPE.name, cells, seed=0)
        for number, columns in execute(item).items()
    }
    results = Results(ESCAPE.name, "smoke", cells, rows)
    made = {claim.statement.split(":")[0]: claim for claim in ESCAPE.claims(results)}
    assert all(np.isfinite(claim.figure) for claim in made.values())
    assert made["At the uniform policy the gradient of cIPS is that of cLPI over K"].holds
    assert {claim.thesis_lines for claim in made.values()} == {""}, "the thesis speaks of other instances"
    drawings = ESCAPE.figures(results, tmp_path)
    assert [one.path.stem for one in drawings] == ["escape", "values", "epsilon"]
    assert all(one.path.with_suffix(".png").exists() and one.caption.endswith(".") for one in drawings)


def test_all_scales_reach_large_catalogues_and_three_epsilons() -> None:
    for scale in ("quick", "paper"):
        cells = ESCAPE.cells(scale)
        assert max(cell.parameters["K"] for cell in cells) == 1_000_000
        assert {cell.parameters["start"] for cell in cells} == {"zero", "random", "logging"}
        assert len(cells[0].methods) == 8
