"""The experiments of the meTS chapter: their sizes, claims and figures, on made-up regrets."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from manyarms_thesis.catalogue import Experiment, catalogue, find
from manyarms_thesis.harness.data import MADE_UP
from manyarms_thesis.harness.online import ACTION_CONTEXTS, linucb, no_learning
from manyarms_thesis.harness.regret_bounds import below_bound
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Cell, items_of
from manyarms_thesis.mets.agents import AT_MODES, NO_LEARNING, misspecified
from manyarms_thesis.mets.bound import BOUND, regret_and_bound, regret_and_bound_of_action_contexts
from manyarms_thesis.mets.common import equal_variance_world, mixed_effect_world
from manyarms_thesis.mets.movielens import MOVIELENS

EXPERIMENTS = [experiment for name, experiment in catalogue().items() if name.startswith("mets-")]
ALL = pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda e: e.name)


def made_up(experiment: Experiment, ours: float = 1.0, theirs: float = 2.0, bound: float = 50.0) -> Results:
    """Regrets of about `ours` times the root of the round for meTS, `theirs` for the others, 100 for who does not learn."""
    cells = experiment.cells("smoke")
    rng = np.random.default_rng(0)
    rows = {}
    for cell in cells:
        for agent in cell.methods:
            for run in range(cell.runs):
                rounds = np.arange(1, cell.rounds + 1)
                level = 100.0 if agent == NO_LEARNING else ours if agent.startswith("meTS") else theirs
                level += 0.01 * rng.standard_normal()
                rows[cell.panel, agent, run] = {
                    "round": rounds, "regret": level * np.sqrt(rounds), "milliseconds_a_round": np.array(0.1),
                    "agent_bytes": np.array(1000), "bound": bound * np.sqrt(rounds),
                    "effective_actions": np.array(5.0 + cell.parameters["K"]),
                }  # fmt: skip
    return Results(experiment.name, "smoke", cells, rows)


@ALL
def test_paper_has_the_sizes_of_the_thesis(experiment: Experiment) -> None:
    cells = experiment.cells("paper")
    assert {(cell.rounds, cell.runs) for cell in cells if not cell.variant} == {(5_000, 50)}
    assert {(cell.rounds, cell.runs) for cell in cells if cell.variant} == {(5_000, 20)}


@ALL
def test_claims_and_figures(experiment: Experiment, tmp_path: Path) -> None:
    results = made_up(experiment)
    claims = experiment.judge(results)
    assert claims
    for made in claims:
        numbers = [int(number) for number in re.findall(r"\d+", made.thesis_lines)]
        assert all(916 <= number <= 3420 for number in numbers)
        assert np.isfinite(made.figure)
        assert not (numbers and ACTION_CONTEXTS in made.panel)
    better = [
        made for made in claims if "outperforms all baselines" in made.statement or "lower regret" in made.statement
    ]
    assert all(made.holds for made in better)
    for drawn in experiment.draw(results, tmp_path):
        assert drawn.path.suffix == ".svg"
        assert drawn.path.exists()
        assert drawn.path.with_suffix(".png").stat().st_size > 5_000
        assert drawn.caption.endswith(".")


@ALL
def test_every_experiment_says_what_it_asks_and_how(experiment: Experiment) -> None:
    assert experiment.question.endswith("?")
    for scale in experiment.scales:
        assert "{" not in experiment.setting_at(scale)


@ALL
@pytest.mark.parametrize("scale", ["smoke", "paper"])
def test_every_panel_is_run_again_with_a_context_for_each_action(experiment: Experiment, scale: str) -> None:
    most = experiment.scales[scale].get("context_K")
    printed, each = (
        [cell for cell in experiment.cells(scale) if (cell.variant == ACTION_CONTEXTS) == again]
        for again in (False, True)
    )
    again = [cell for cell in printed if most is None or cell.parameters["K"] <= most]
    assert [cell.panel for cell in each] == [f"{cell.panel}, {ACTION_CONTEXTS}" for cell in again]
    for cell, other in zip(again, each, strict=True):
        assert (cell.methods, cell.problem, cell.parameters) == (other.methods, other.problem, other.parameters)
        assert other.task.__name__ == f"{cell.task.__name__}_of_action_contexts"


@ALL
def test_a_method_that_is_worse_does_not_hold(experiment: Experiment) -> None:
    claims = experiment.judge(made_up(experiment, ours=2.0, theirs=1.0))
    better = [
        made
        for made in claims
        if any(word in made.statement for word in ("outperforms", "lower regret than", "performs better"))
    ]
    assert not any(made.holds for made in better)


def printed(name: str) -> list[Cell]:
    """The worlds of an experiment that the thesis prints, at its sizes."""
    return [cell for cell in find(name).cells("paper") if not cell.variant and "weights" not in cell.parameters]


def test_sizes_of_the_thesis() -> None:
    (linear, logistic) = printed("mets-synthetic")
    assert [linear.parameters[name] for name in ("K", "L", "d")] == [100, 3, 2]
    assert logistic.parameters["reward"] == "logistic"
    assert [cell.parameters["K"] for cell in printed("mets-actions")] == [100, 1_000, 10_000, 100_000]
    grid = printed("mets-grid")
    assert len([cell for cell in grid if cell.parameters["L"] == 3]) == 12
    uncertain = printed("mets-uncertain")[0].parameters
    assert (uncertain["effect_variance"], uncertain["action_variance"]) == (1.0, 3.0)


def test_logistic_panels_have_agents_that_expand_at_a_mode() -> None:
    for name in ("mets-synthetic", "mets-grid", "mets-movielens", "mets-glm"):
        cells = [cell for cell in find(name).cells("paper") if cell.problem.parameters.get("reward") == "logistic"]
        assert cells
        for cell in cells:
            modes = [method for method in cell.methods if method.endswith("GLM-TS, mode") or method in AT_MODES]
            assert "GLM-TS, mode" in modes
            assert all(cell.methods[method].parameters["expansion"] == "mode" for method in modes)


@ALL
def test_every_agent_of_every_smoke_cell_can_play(experiment: Experiment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MANYARMS_DATA", raising=False)
    seen = set()
    for item in items_of(experiment.name, experiment.cells("smoke"), seed=0):
        kind = (item.cell.parameters.get("reward"), item.method, item.cell.task, item.cell.problem.function)
        if kind in seen:
            continue
        seen.add(kind)
        columns = item.cell.task(replace(item.run(0), rounds=6))
        assert np.isfinite(np.asarray(columns["regret"])).all()


@pytest.mark.parametrize("effects", [1, 3, 20])
def test_weights_of_unit_length_give_every_action_the_same_marginal_covariance(effects: int) -> None:
    world = equal_variance_world(
        actions=7, effects=effects, dim=2, reward="linear", effect_scale=3.0, action_scale=1.0, seed=5
    )
    marginal = world.prior().marginal()
    np.testing.assert_allclose(
        np.broadcast_to(marginal.covariance, (7, 2, 2)), np.tile(4.0 * np.eye(2), (7, 1, 1)), rtol=1e-12
    )
    assert np.abs(world.weights).max() <= 1


def test_an_effects_variance_that_falls_with_their_number_fixes_the_marginal_variance_on_average() -> None:
    cells = [cell for cell in find("mets-grid").cells("paper") if "σ_Ψ²" in cell.panel and not cell.variant]
    assert [cell.parameters["L"] for cell in cells] == [5, 10, 20]
    for cell in cells:
        # weights are uniform on [-1, 1]: E b^2 = 1/3
        marginal = cell.parameters["action_variance"] + cell.parameters["L"] / 3 * cell.parameters["effect_variance"]
        assert marginal == pytest.approx(4.0)
        world = cell.problem(seed=0)
        found = np.einsum("kii->k", np.asarray(world.prior().marginal().covariance)).mean() / 2
        assert found == pytest.approx(4.0, rel=0.2)


def coverage(no_learning: float, bound: float = 50.0, ours: float = 1.0) -> tuple[str, str]:
    """Verdict and detail on the bound, where its value, meTS's regret and what is lost without learning are made up."""
    results = made_up(BOUND, ours=ours, bound=bound).variant("")
    for (_, method, run), columns in results.runs.items():
        if method == NO_LEARNING:
            cast("dict[str, Any]", columns)["regret"] = no_learning * (1 + 0.001 * run) * np.sqrt(columns["round"])
    made = below_bound(results, "meTS-Lin", "bound", "below", "1170", no_learning=NO_LEARNING)
    return made.verdict, made.detail


def test_a_bound_below_what_is_lost_without_learning_covers() -> None:
    verdict, detail = coverage(no_learning=100.0)
    assert verdict == "held"
    assert "vacuous" not in detail


def test_a_vacuous_bound_decides_nothing() -> None:
    verdict, detail = coverage(no_learning=40.0)
    assert verdict == "undecided"
    assert "vacuous in all" in detail


def test_a_bound_that_is_broken_is_refuted() -> None:
    verdict, _ = coverage(no_learning=100.0, bound=50.0, ours=60.0)
    assert verdict == "refuted"


def test_only_panels_whose_bound_is_not_vacuous_count() -> None:
    results = made_up(BOUND).variant("")
    first, *others = results.panels
    for (panel, method, _), columns in results.runs.items():
        if panel == first and method == "meTS-Lin":
            cast("dict[str, Any]", columns)["bound"] = 1e6 * np.sqrt(columns["round"])
    made = below_bound(results, "meTS-Lin", "bound", "below", "1170", no_learning=NO_LEARNING)
    assert made.verdict == "held"
    assert made.parts[0] == len(others)
    assert f"1 of {1 + len(others)} panels the bound is vacuous" in made.detail
    assert first in made.detail


def test_who_does_not_learn_loses_what_the_best_action_is_worth() -> None:
    """All actions have prior mean zero: any policy that never looks at rewards loses E max_a x^T theta_a a round."""
    lost, best = [], []
    for seed in range(30):
        world = mixed_effect_world(actions=10, effects=3, dim=2, seed=seed)
        agent = no_learning(world=world, rounds=200, seed=seed)
        X = world.contexts(200)
        chosen = np.array([agent.decide(x) for x in X])
        lost.append(world.regret(X, chosen).mean())
        best.append((X @ world.theta.T).max(axis=1).mean())
    difference = np.array(lost) - np.array(best)
    assert abs(difference.mean()) < 4 * difference.std(ddof=1) / np.sqrt(30)


def test_the_bound_is_the_same_with_a_context_for_each_action() -> None:
    (item, *_) = items_of("mets-bound", BOUND.cells("smoke"), seed=0)
    run = replace(item.run(0), rounds=6)
    one, each = regret_and_bound(run), regret_and_bound_of_action_contexts(run)
    np.testing.assert_array_equal(np.asarray(one["bound"]), np.asarray(each["bound"]))


def test_made_up_ratings_are_called_made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MANYARMS_DATA", raising=False)
    results = made_up(MOVIELENS)
    assert {cell.parameters["data"] for cell in results.cells.values()} == {MADE_UP}
    assert all(made.statement.startswith("[made-up ratings, not MovieLens]") for made in MOVIELENS.judge(results))
    assert "NOT MOVIELENS" in MOVIELENS.warnings()[0]


def test_misspecification_draws_four_constants_between_zero_and_two() -> None:
    prior = mixed_effect_world(actions=4, effects=2, dim=2, seed=0).prior()
    drawn = [misspecified(prior, seed) for seed in range(50)]
    for ratios in (
        [p.effect_covariance[0, 0] / prior.effect_covariance[0, 0] for p in drawn],
        [p.action_covariance[0, 0] / prior.action_covariance[0, 0] for p in drawn],
        [p.weights[0, 0] / prior.weights[0, 0] for p in drawn],
    ):
        assert 0 < min(ratios) < 0.3
        assert 1.7 < max(ratios) < 2
    assert misspecified(prior, 3).weights[0, 0] == drawn[3].weights[0, 0]


def test_ucb_agents_know_the_horizon_and_the_largest_context() -> None:
    world = mixed_effect_world(actions=4, effects=2, dim=2, seed=0)
    short, long = (linucb(world=world, rounds=n, seed=0) for n in (10, 10_000))
    assert short.decision.width < long.decision.width
