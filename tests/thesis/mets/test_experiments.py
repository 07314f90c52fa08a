"""The experiments of the meTS chapter: their sizes, claims and figures, on made-up regrets."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from manyarms_thesis.catalogue import Experiment, catalogue, find
from manyarms_thesis.harness.data import MADE_UP
from manyarms_thesis.harness.online import linucb, online_regret
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import items_of
from manyarms_thesis.mets.agents import misspecified
from manyarms_thesis.mets.common import mixed_effect_world
from manyarms_thesis.mets.movielens import MOVIELENS

EXPERIMENTS = [experiment for name, experiment in catalogue().items() if name.startswith("mets-")]
ALL = pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda e: e.name)


def made_up(experiment: Experiment, ours: float = 1.0, theirs: float = 2.0) -> Results:
    """Regrets of about `ours` a round for meTS and `theirs` for everybody else."""
    cells = experiment.cells("smoke")
    rng = np.random.default_rng(0)
    rows = {}
    for cell in cells:
        for agent in cell.methods:
            for run in range(cell.runs):
                rounds = np.arange(1, cell.rounds + 1)
                level = (ours if agent.startswith("meTS") else theirs) + 0.01 * rng.standard_normal()
                rows[cell.panel, agent, run] = {
                    "round": rounds, "regret": level * np.sqrt(rounds), "milliseconds_a_round": np.array(0.1),
                    "agent_bytes": np.array(1000), "bound": 50.0 * np.sqrt(rounds), 
                    "effective_actions": np.array(5.0 + cell.parameters["K"]),
                }  # fmt: skip
    return Results(experiment.name, "smoke", cells, rows)


@ALL
def test_paper_has_the_sizes_of_the_thesis(experiment: Experiment) -> None:
    assert {(cell.rounds, cell.runs) for cell in experiment.cells("paper")} == {(5_000, 50)}


@ALL
def test_claims_and_figures(experiment: Experiment, tmp_path: Path) -> None:
    results = made_up(experiment)
    claims = experiment.claims(results)
    assert claims
    for made in claims:
        first, last = made.thesis_lines.split("-")[0], made.thesis_lines.split("-")[-1]
        assert 916 <= int(first) <= int(last) <= 3420
        assert np.isfinite(made.figure)
    better = [
        made for made in claims if "outperforms all baselines" in made.statement or "lower regret" in made.statement
    ]
    assert all(made.holds for made in better)
    for path in experiment.figures(results, tmp_path):
        assert path.suffix == ".svg"
        assert path.exists()
        assert path.with_suffix(".png").stat().st_size > 5_000


@ALL
def test_a_method_that_is_worse_does_not_hold(experiment: Experiment) -> None:
    claims = experiment.claims(made_up(experiment, ours=2.0, theirs=1.0))
    better = [
        made
        for made in claims
        if any(word in made.statement for word in ("outperforms", "lower regret than", "performs better"))
    ]
    assert not any(made.holds for made in better)


def test_sizes_of_the_thesis() -> None:
    (linear, logistic) = find("mets-synthetic").cells("paper")
    assert [linear.parameters[name] for name in ("K", "L", "d")] == [100, 3, 2]
    assert logistic.parameters["reward"] == "logistic"
    assert [cell.parameters["K"] for cell in find("mets-actions").cells("paper")] == [
        100,
        1_000,
        10_000,
        100_000,
    ]
    grid = find("mets-grid").cells("paper")
    assert len([cell for cell in grid if cell.parameters["L"] == 3]) == 12
    uncertain = find("mets-uncertain").cells("paper")[0].parameters
    assert (uncertain["effect_variance"], uncertain["action_variance"]) == (1.0, 3.0)


@ALL
def test_every_agent_of_every_smoke_cell_can_play(experiment: Experiment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MANYARMS_DATA", raising=False)
    seen = set()
    for item in items_of(experiment.name, experiment.cells("smoke"), seed=0):
        kind = (item.cell.parameters.get("reward"), item.method)
        if kind in seen:
            continue
        seen.add(kind)
        columns = online_regret(replace(item.run(0), rounds=6))
        assert np.isfinite(np.asarray(columns["regret"])).all()


def test_made_up_ratings_are_called_made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MANYARMS_DATA", raising=False)
    results = made_up(MOVIELENS)
    assert {cell.parameters["data"] for cell in results.cells.values()} == {MADE_UP}
    assert all(made.statement.startswith("[made-up ratings, not MovieLens]") for made in MOVIELENS.claims(results))
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
