"""The experiments on logs: sizes, claims and figures on made-up results; the tasks in tiny worlds; exact values."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from manyarms._base import plotting
from manyarms.errors import InvalidInput
from manyarms.evaluation import evaluate
from manyarms.policies import SoftmaxPolicy
from manyarms.rewards.bayesian import BeliefModel
from manyarms.rewards.bayesian import sdm as dm
from manyarms.worlds import log_from
from manyarms.worlds.latent import Latent
from manyarms_thesis.catalogue import Experiment, catalogue
from manyarms_thesis.harness import figures
from manyarms_thesis.harness.claims import Claim
from manyarms_thesis.harness.data import MADE_UP
from manyarms_thesis.harness.pages import experiment_page
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Call, Run, items_of
from manyarms_thesis.sdm import open_bandit
from manyarms_thesis.sdm.actions import ACTIONS
from manyarms_thesis.sdm.bound import BOUND, below, bounds_by_run, bounds_of, vacuous, value_and_moments
from manyarms_thesis.sdm.claims import beats, relative, shrinking
from manyarms_thesis.sdm.learners import (
    EVALUATED,
    LEARNERS,
    latent_problem,
    learn_sdm,
    misspecified,
    objective_of,
    value_by_size,
    value_of,
)
from manyarms_thesis.sdm.likelihood import BINARY_LEARNERS, LIKELIHOOD
from manyarms_thesis.sdm.movielens import MOVIELENS
from manyarms_thesis.sdm.open_bandit import OBD
from manyarms_thesis.sdm.pessimism import PESSIMISM
from manyarms_thesis.sdm.prior import PRIOR
from manyarms_thesis.sdm.synthetic import SYNTHETIC

LEARNED = [experiment for name, experiment in catalogue().items() if name.startswith("sdm-")]
REWARD = pytest.mark.parametrize("experiment", LEARNED, ids=lambda e: e.name)


@pytest.fixture(autouse=True)
def no_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here reads real data: what needs it takes the made-up kind."""
    monkeypatch.delenv("MANYARMS_DATA", raising=False)
    open_bandit.samples.cache_clear()


def made_up(experiment: Experiment, good: float = 0.9, bad: float = 0.5, scale: str = "smoke") -> Results:
    """sDM with relative rewards of about `good`, everybody else `bad`: nearer to it on larger logs, further in later cells."""
    cells = experiment.cells(scale)
    rng = np.random.default_rng(0)
    rows: dict[tuple[str, str, int], dict[str, Any]] = {}
    for later, cell in enumerate(cells):
        sizes = np.array(cell.problem.parameters.get("sizes", [cell.rounds]))
        for place, agent in enumerate(cell.methods):
            ours = agent.startswith("sDM") and "pessimistic" not in agent
            level = good if ours else bad - 0.01 * place - 0.02 * later
            if "v=" in agent:
                level -= 0.05 * float(re.findall(r"v=([0-9.]+)", agent)[0]) * (0.5 if "covariance" in agent else 1.0)
            for number in range(cell.runs):
                near = 1 - 0.5 * (good - level) * np.arange(len(sizes)) / len(sizes)
                value = (level * near if ours else level / near) + 0.001 * rng.standard_normal(len(sizes))
                rows[cell.panel, agent, number] = {
                    "n": sizes, "value": value, "mode_value": value, "relative_reward": value, "optimal": np.array(1.0),
                    "mode_relative_reward": value, "regret": (1 - value) / np.sqrt(sizes), "seconds": 0 * value,
                    "spread": (2.0 - level) / np.sqrt(sizes), "coverage": 0 * value + 0.01,
                    "second_moment": 9 + 0 * value, "second_moment_tight": 4 + 0 * value,
                    "milliseconds_a_round": np.array(0.1), "agent_bytes": np.array(1000),
                }  # fmt: skip
    return Results(experiment.name, scale, cells, rows)


def lines_of(made: Claim) -> list[int]:
    return [int(number) for number in re.findall("[0-9]+", made.thesis_lines)]


def test_sizes_of_the_thesis() -> None:
    cells = SYNTHETIC.cells("paper")
    assert len(cells) == 12 and {cell.runs for cell in cells} == {50}
    assert {(cell.parameters["K"], cell.parameters["latent"]) for cell in cells} == {
        (K, latent) for K in (100, 1_000) for latent in (5, 10, 20)
    }
    assert {cell.parameters["logging"] for cell in cells} == {"uniform", "skewed"}
    assert {cell.problem.parameters["dim"] for cell in cells} == {10}
    assert set(cells[0].methods) == {"sDM", "DM (Bayes)", "DM (Freq)", "IPS", "snIPS", "DR", "MIPS", "PC"}
    actions = ACTIONS.cells("paper")
    assert [cell.parameters["K"] for cell in actions] == [10, 100, 1_000, 10_000, 100_000]
    assert {cell.rounds for cell in actions} == {1_000}
    movies = MOVIELENS.cells("paper")
    assert [cell.parameters["K"] for cell in movies] == [100, 1_000]
    of = movies[0].problem.parameters
    assert (of["dim"], of["effects"], of["noise"], of["learned_from"]) == (5, 5, 1.0, 1_000)
    priors = PRIOR.cells("paper")[0]
    assert {f"sDM, v={v}" for v in ("0.5", "1", "1.5")} <= set(priors.methods) and "DM (Bayes)" in priors.methods
    for cell in cells + PRIOR.cells("paper") + PESSIMISM.cells("paper") + LIKELIHOOD.cells("paper"):
        of = cell.problem.parameters
        assert (of["noise"], of["latent_scale"], of["action_scale"]) == (1.0, 3.0, 1.0)


@REWARD
def test_claims_and_figures(experiment: Experiment, tmp_path: Path) -> None:
    results = made_up(experiment)
    claims = experiment.claims(results)
    assert claims
    for made in claims:
        assert all(1703 <= line <= 4832 for line in lines_of(made))
        assert np.isfinite(made.figure)
    ahead = [
        made
        for made in claims
        if re.search("outperform|is ahead|greedy policy has better|at most the cov", made.statement)
    ]
    assert ahead and all(made.holds for made in ahead)
    drawn = experiment.figures(results, tmp_path)
    page = experiment_page(experiment, results, claims, drawn, {"scale": "smoke"})
    assert "relative reward, largest log" in page and "final regret" not in page
    for one in drawn:
        assert one.path.suffix == ".svg" and one.path.exists() and one.caption.endswith(".")
        assert one.path.with_suffix(".png").stat().st_size > 5_000


@REWARD
def test_a_method_that_is_worse_does_not_hold(experiment: Experiment) -> None:
    claims = experiment.claims(made_up(experiment, good=0.3, bad=0.8))
    ahead = [
        made for made in claims if re.search("outperforms all|sDM.* outperform|is ahead|better average", made.statement)
    ]
    assert not any(made.holds for made in ahead)


def test_the_better_of_a_policy_and_its_mode_counts() -> None:
    results = made_up(SYNTHETIC)
    panel = results.panels[0]
    for number in range(results.cells[panel].runs):
        columns: Any = results.runs[panel, "IPS", number]
        columns["mode_relative_reward"] = columns["relative_reward"] + 0.9
    assert relative(results, panel, "IPS").mean() > 1
    assert not beats(results, panel, "sDM", ["IPS"], "", "2000").holds
    assert shrinking(results, panel, "sDM", ["DM (Bayes)"], "", "2000").holds


def test_misspecified_priors_in_the_claims() -> None:
    claims = PRIOR.claims(made_up(PRIOR))
    assert all(made.holds for made in claims)
    assert {made.statement.split()[0] for made in claims} == {"sDM's", "sDM", "The", "Especially"}
    (larger,) = [made for made in claims if "when K is large" in made.statement]
    assert larger.panel == "d'=10" and 0.01 < larger.figure < 0.03  # the second cell's baseline is lower by 0.02


def test_a_legend_of_long_names_stays_inside_the_figure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What hung over the edge was cut off: the legend of misspecified priors has the longest names there are."""
    results = made_up(PRIOR)
    drawn: list[Any] = []

    def remembering(figure: Any, *rest: Any) -> Path:
        path = plotting.finish(figure, *rest)
        drawn.append(figure)
        return path

    monkeypatch.setattr(figures, "finish", remembering)
    assert [one.path.stem for one in PRIOR.figures(results, tmp_path)] == ["reward", "parts"]
    assert len(drawn) == 2
    for figure in drawn:
        box, page = figure.legends[0].get_window_extent(), figure.bbox
        assert page.x0 <= box.x0 and box.x1 <= page.x1 and page.y0 <= box.y0


def test_bounds_come_from_averages_over_runs() -> None:
    results = made_up(BOUND)
    panel = results.panels[0]
    plain, tight = bounds_of(results, panel, "explicit"), bounds_of(results, panel, "explicit, tight")
    assert (tight < plain).all() and (bounds_of(results, panel, "covariance") < plain).all()


def test_a_run_moves_a_bound_by_its_part_in_the_averages() -> None:
    """The delta method against the bound made of other averages: a run less, which is a small step."""
    results = made_up(BOUND)
    panel = results.panels[0]
    rng = np.random.default_rng(3)
    for number in range(results.cells[panel].runs):
        columns: Any = results.runs[panel, "sDM", number]
        columns["second_moment"] = columns["second_moment"] * (1 + 0.01 * rng.standard_normal())
        columns["spread"] = columns["spread"] * (1 + 0.01 * rng.standard_normal())
    runs = results.cells[panel].runs
    for kind in ("covariance", "explicit"):
        each = bounds_by_run(results, panel, kind)
        np.testing.assert_allclose(each.mean(axis=0), bounds_of(results, panel, kind))
        fewer = {key: values for key, values in results.runs.items() if key[0] == panel and key[2] < runs - 1}
        without = Results(BOUND.name, "smoke", [replace(results.cells[panel], runs=runs - 1)], fewer)
        np.testing.assert_allclose(each[:-1].mean(axis=0), bounds_of(without, panel, kind), rtol=1e-5)


def test_vacuous_bounds_do_not_count() -> None:
    """Random play loses 1 in these results: a bound from there on says nothing."""
    results = made_up(BOUND)
    total = sum(len(vacuous(results, panel, "covariance")) for panel in results.panels)
    for panel in results.panels:
        bounds = bounds_of(results, panel, "covariance")
        assert vacuous(results, panel, "covariance").tolist() == (bounds >= 1.0).tolist()
    assert all(vacuous(results, panel, "explicit").all() for panel in results.panels)
    none_left = below(results, "explicit", "", "4455-4476")
    assert none_left.verdict == "undecided" and f"{total} of {total} bounds are vacuous" in none_left.detail
    some = below(results, "covariance", "", "1945-1957")
    idle = sum(int(vacuous(results, panel, "covariance").sum()) for panel in results.panels)
    assert 0 < idle < total and some.parts == (total - idle, total - idle, 0) and f"{idle} of {total}" in some.detail


def test_worlds_that_the_thesis_does_not_print_are_not_its_own() -> None:
    for made in SYNTHETIC.claims(made_up(SYNTHETIC)):
        assert bool(made.thesis_lines) == made.panel.startswith("uniform")
    for made in PESSIMISM.claims(made_up(PESSIMISM)):
        assert bool(made.thesis_lines) == ("width" not in made.statement)
    assert all(made.thesis_lines == "" for made in MOVIELENS.claims(made_up(MOVIELENS)))  # made-up ratings


# ---- tasks ------------------------------------------------------------------------------------------------------------


def a_run(method: Call, rounds: int = 60, **more: Any) -> Run:
    problem = {"actions": 12, "dim": 3, "latent_dim": 2, "sizes": [20, 60], **more}
    return Run(Call(latent_problem, problem), method, rounds, problem_seed=3, method_seed=1)


@pytest.mark.parametrize("name", list(LEARNERS))
def test_every_learner_in_a_tiny_world(name: str) -> None:
    found = value_by_size(a_run(LEARNERS[name]))
    value, mode = np.asarray(found["relative_reward"]), np.asarray(found["mode_relative_reward"])
    assert value.shape == (2,) and (value <= 1 + 1e-9).all() and (mode <= 1 + 1e-9).all()
    assert np.asarray(found["regret"]) == pytest.approx(np.asarray(found["optimal"]) - np.asarray(found["value"]))
    again = value_by_size(a_run(LEARNERS[name]))
    np.testing.assert_array_equal(again["value"], found["value"])
    short = value_by_size(a_run(LEARNERS[name], rounds=10))
    assert np.asarray(short["n"]).tolist() == [10]  # a forecast asks for fewer rows than any size


@pytest.mark.parametrize("name", list(BINARY_LEARNERS))
def test_every_learner_of_binary_rewards(name: str) -> None:
    found = value_by_size(a_run(BINARY_LEARNERS[name], reward="logistic", logging="skewed"))
    assert (np.asarray(found["value"]) > 0).all() and (np.asarray(found["value"]) < 1).all()


@REWARD
def test_every_kind_of_smoke_cell_runs(experiment: Experiment) -> None:
    """One learner of each kind, on few rows."""
    cell = experiment.cells("smoke")[0]
    assert cell.task is (value_and_moments if experiment is BOUND else value_by_size)
    for learner in [name for name in cell.methods if name.startswith("sDM")][:3]:
        found = cell.task(Run(cell.problem, cell.methods[learner], 40, problem_seed=1, method_seed=2))
        assert np.isfinite(np.asarray(found["relative_reward"])).all()


def test_values_are_exact() -> None:
    problem = latent_problem(seed=1, sizes=[10], actions=9, dim=3, latent_dim=2)
    world = problem.world
    X = world.contexts(500)
    beta = np.random.default_rng(0).standard_normal((9, 3))
    scores = X @ beta.T
    pi = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    truth = X @ world.theta.T
    found = value_of(SoftmaxPolicy(beta), world, X)
    assert found["value"] == pytest.approx(float((pi * truth).sum(axis=1).mean()), rel=1e-12)
    assert found["mode_value"] == pytest.approx(float(truth[np.arange(500), scores.argmax(axis=1)].mean()))
    assert EVALUATED >= 10_000


def test_learners_of_a_run_have_the_same_log_and_contexts() -> None:
    items = items_of(SYNTHETIC.name, SYNTHETIC.cells("smoke")[:1], seed=0)
    item = items[0]
    others = [other for other in items if other.method != item.method]
    assert {other.run(0).problem_seed for other in others} == {item.run(0).problem_seed}


def test_misspecification_adds_what_the_thesis_says() -> None:
    prior = Latent(6, 3, 2, seed=0).prior()
    wrong = misspecified(prior, 1.0, "both", seed=3)
    for true, made in ((prior.matrices, wrong.matrices), (prior.mean, wrong.mean)):
        assert (made - true).min() >= 1.0 and (made - true).max() <= 1.5
    for matrix, other in ((prior.covariance, wrong.covariance), (prior.action_covariance, wrong.action_covariance)):
        added = np.diag(other - matrix)
        assert added.min() >= 1.0 and added.max() <= 1.5
        assert np.array_equal(other - matrix, np.diag(added))
    mean, covariance = (misspecified(prior, 1.0, parts, seed=3) for parts in ("mean", "covariance"))
    assert np.array_equal(mean.covariance, prior.covariance) and np.array_equal(covariance.matrices, prior.matrices)
    assert np.array_equal(mean.matrices, wrong.matrices) and np.array_equal(covariance.covariance, wrong.covariance)


def test_errors_of_all_sizes_are_the_same_draws_shifted() -> None:
    """Whatever the learner's own seed: two sizes of error differ by their sizes alone."""
    problem = latent_problem(seed=7, sizes=[30], actions=6, dim=3, latent_dim=2)
    log = log_from(problem.world, 30)
    small, large = (misspecified(problem.prior, v, "both", problem.seed) for v in (0.5, 1.5))
    np.testing.assert_allclose(large.matrices - small.matrices, 1.0)
    np.testing.assert_allclose(large.covariance - small.covariance, np.eye(2))
    one, two = (learn_sdm(problem=problem, log=log, seed=s, error=0.5) for s in (1, 2))
    assert isinstance(one, BeliefModel) and isinstance(two, BeliefModel)
    np.testing.assert_array_equal(one.parameters, two.parameters)
    np.testing.assert_allclose(one.parameters, dm(log, small).parameters)


def test_unknown_names_are_refused() -> None:
    problem = latent_problem(seed=1, sizes=[10], actions=9, dim=3, latent_dim=2)
    log = log_from(problem.world, 10)
    for call in (
        lambda: objective_of("ISP", problem, log),
        lambda: latent_problem(seed=1, sizes=[10], actions=9, dim=3, latent_dim=2, logging="odd"),
        lambda: misspecified(problem.world.action_prior(), 1.0, "both", 0),
        lambda: misspecified(problem.prior, 1.0, "neither", 0),
    ):
        with pytest.raises(InvalidInput):
            call()


# ---- Open Bandit ------------------------------------------------------------------------------------------------------


def obd_results(value: float, error: float) -> Results:
    """All estimators at one value; the policy earned 0.005 in its own log."""
    (cell,) = OBD.cells("smoke")
    row = {
        "value": value, "standard_error": error, "on_policy": 0.005, "on_policy_error": 0.0, "logged": 0.004, "clicks": 40,
        "on_policy_clicks": 50,
    }  # fmt: skip
    rows = {(cell.panel, method, 0): {name: np.asarray(one) for name, one in row.items()} for method in cell.methods}
    return Results(OBD.name, "smoke", [cell], rows)


@pytest.mark.parametrize(
    ("value", "error", "verdict"), [(0.006, 0.001, "held"), (0.006, 0.003, "undecided"), (0.015, 0.002, "refuted")]
)
def test_no_claim_about_open_bandit_is_of_the_thesis(value: float, error: float, verdict: str) -> None:
    claims = OBD.claims(obd_results(value, error))
    assert len(claims) == 3 and OBD.thesis_lines == ""
    for made in claims:
        assert made.thesis_lines == "" and made.standard_error == pytest.approx(error) and made.verdict == verdict


def test_probabilities_are_those_of_the_policys_own_log() -> None:
    _, bts = open_bandit.both_logs(seed=0, campaign="all", data=MADE_UP)
    policy = open_bandit.estimated_policy(bts)
    for position in range(3):
        mine = bts.actions[bts.contexts[:, position] == 1]
        counts = np.bincount(mine, minlength=bts.action_count)
        want = (counts + 1 / bts.action_count) / (len(mine) + 1)
        x = np.repeat(np.eye(3)[[position]], bts.action_count, axis=0)
        np.testing.assert_allclose(policy.probabilities_of(x, np.arange(bts.action_count)), want, rtol=1e-9)


@pytest.mark.slow
def test_the_pipeline_on_made_up_samples(tmp_path: Path) -> None:
    cell = OBD.cells("smoke")[0]
    assert cell.parameters["data"] == MADE_UP and "NOT OPEN BANDIT" in OBD.warnings()[0]
    rows = {}
    for method, call in cell.methods.items():
        found = cell.task(Run(cell.problem, call, cell.rounds, problem_seed=0, method_seed=0))
        rows[cell.panel, method, 0] = {name: np.asarray(value) for name, value in found.items()}
    results = Results(OBD.name, "smoke", [cell], rows)
    claims = OBD.claims(results)
    assert all(made.statement.startswith("[made-up rounds, not Open Bandit]") for made in claims)
    assert [made.verdict for made in claims] == ["held"] * 3
    assert OBD.thesis_lines == "" and {made.thesis_lines for made in claims} == {""}
    (drawn,) = OBD.figures(results, tmp_path)
    assert drawn.path.exists()
    random, bts = open_bandit.both_logs(seed=0, campaign="all", data=MADE_UP)
    value = evaluate(open_bandit.estimated_policy(bts), random, ["ips"])["ips"].value
    assert float(rows[cell.panel, "IPS", 0]["value"]) == pytest.approx(value)
    ips = rows[cell.panel, "IPS", 0]["standard_error"]
    assert float(ips) > 0
    page = experiment_page(OBD, results, claims, [drawn], {"scale": "smoke"})
    assert "effective rows" in page and "bootstrap intervals" in page
    assert "final regret" not in page and "± nan" not in page  # one run has no standard error over runs
