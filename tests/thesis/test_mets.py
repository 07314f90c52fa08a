"""The eight experiments of the meTS chapter: their sizes, claims and figures, on made-up regrets."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from manyarms.errors import InvalidInput
from manyarms_thesis import catalogue as experiments
from manyarms_thesis.harness.claims import Measured
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.simulate import online_regret_task
from manyarms_thesis.harness.spec import Experiment, items_of
from manyarms_thesis.mets.builders import MADE_UP, build_agent, misspecified, mixed_effect_world
from manyarms_thesis.mets.movielens import MOVIELENS
from manyarms_thesis.mets.structure import weighted_slope

NAMES = {
    "mets-synthetic", "mets-grid", "mets-structure", "mets-actions", "mets-movielens", "mets-misspecified",
    "mets-uncertain", "mets-bound",
}  # fmt: skip
ALL = pytest.mark.parametrize("experiment", experiments.mets.EXPERIMENTS, ids=lambda e: e.name)


def made_up(experiment: Experiment, ours: float = 1.0, theirs: float = 2.0) -> Results:
    """Regrets of about `ours` a round for meTS and `theirs` for everybody else."""
    cells = experiment.cells("smoke")
    rng = np.random.default_rng(0)
    rows = {}
    for cell in cells:
        for agent in cell.agents:
            for run in range(cell.runs):
                rounds = np.arange(1, cell.rounds + 1)
                level = (ours if agent.startswith("meTS") else theirs) + 0.01 * rng.standard_normal()
                rows[cell.panel, agent, run] = {
                    "round": rounds, "regret": level * np.sqrt(rounds), "milliseconds_a_round": np.array(0.1),
                    "agent_bytes": np.array(1000), "bound": 50.0 * np.sqrt(rounds), 
                    "effective_actions": np.array(5.0 + cell.parameters["K"]),
                }  # fmt: skip
    return Results(experiment.name, "smoke", cells, rows)


def test_all_are_there() -> None:
    assert set(experiments.catalogue()) >= NAMES


@ALL
def test_every_scale_builds_and_paper_has_the_sizes_of_the_thesis(experiment: Experiment) -> None:
    assert set(experiment.scales) == set(experiments.SCALES)
    for scale in experiments.SCALES:
        assert experiment.cells(scale)
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
    (linear, logistic) = experiments.find("mets-synthetic").cells("paper")
    assert [linear.parameters[name] for name in ("K", "L", "d")] == [100, 3, 2]
    assert logistic.parameters["reward"] == "logistic"
    assert [cell.parameters["K"] for cell in experiments.find("mets-actions").cells("paper")] == [
        100,
        1_000,
        10_000,
        100_000,
    ]
    grid = experiments.find("mets-grid").cells("paper")
    assert len([cell for cell in grid if cell.parameters["L"] == 3]) == 12
    uncertain = experiments.find("mets-uncertain").cells("paper")[0].parameters
    assert (uncertain["effect_variance"], uncertain["action_variance"]) == (1.0, 3.0)


@ALL
def test_every_agent_of_every_smoke_cell_can_play(experiment: Experiment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MANYARMS_DATA", raising=False)
    seen = set()
    for item in items_of(experiment.name, experiment.cells("smoke"), seed=0):
        kind = (item.cell.parameters.get("reward"), item.agent)
        if kind in seen:
            continue
        seen.add(kind)
        columns = online_regret_task(
            world=item.cell.world, agent=item.cell.agents[item.agent], rounds=6, world_seed=1, agent_seed=2
        )
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
    short, long = (build_agent(kind="LinUCB", world=world, rounds=n, seed=0) for n in (10, 10_000))
    assert short.decision.width < long.decision.width


def test_unknown_names_suggest_the_nearest() -> None:
    with pytest.raises(InvalidInput, match="did you mean mets-bound"):
        experiments.find("mets-bund")
    with pytest.raises(InvalidInput, match="--list"):
        experiments.find("zzzz")


def test_weighted_slope_is_least_squares() -> None:
    x, y = np.array([0.0, 1.0, 3.0]), np.array([1.0, 2.5, 4.0])
    slope = weighted_slope(x, [Measured(float(value), 0.1) for value in y])
    assert slope.mean == pytest.approx(np.polyfit(x, y, 1)[0])
    assert slope.standard_error == pytest.approx(0.1 / np.sqrt(((x - x.mean()) ** 2).sum()))
