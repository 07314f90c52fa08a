"""Policies learned from logs: sizes, claims and figures on made-up results; values, estimates and the task in tiny worlds."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

from manyarms.errors import InvalidInput
from manyarms.policies import SoftmaxPolicy, SupportSoftmaxPolicy, TwoStagePolicy
from manyarms_thesis.catalogue import SCALES, Experiment, catalogue, find, run
from manyarms_thesis.harness.data import MADE_UP
from manyarms_thesis.harness.learning import IN_WORDS, MODE, Compared
from manyarms_thesis.harness.pages import experiment_page
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Call, Cell, items_of, solve
from manyarms_thesis.pwll.clusters import CLUSTERS
from manyarms_thesis.pwll.common import ESTIMATES, LIKELIHOODS, QUICK, SCALED, learners, logged_cells, worlds
from manyarms_thesis.pwll.learners import (
    Space,
    Weight,
    estimate,
    means_of,
    objective_of,
    policy_of,
)
from manyarms_thesis.pwll.optimisation import OPTIMISATION
from manyarms_thesis.pwll.potec import POTEC
from manyarms_thesis.pwll.problems import (
    is_there,
    logged_problem,
    made_up_interactions,
)
from manyarms_thesis.pwll.seeds import SEEDS, deviation
from manyarms_thesis.pwll.training import train

pytest.importorskip("torch")
THEORY = {"pwll-landscape", "pwll-plateau", "pwll-maxima", "pwll-convergence", "pwll-escape"}
DATA = [e for name, e in catalogue().items() if name.startswith("pwll-") and name not in THEORY]
ALL = pytest.mark.parametrize("experiment", DATA, ids=lambda e: e.name)
WORLD: dict[str, Any] = {"data": MADE_UP, "dim": 5, "k0": 20, "clusters": 12, "rows": 400}


@pytest.fixture(autouse=True)
def no_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here reads real data."""
    monkeypatch.delenv("MANYARMS_DATA", raising=False)
    is_there.cache_clear()


def level_of(agent: str, good: float, bad: float) -> float:
    """Likelihoods are good, the better on the support; two stages are better than one, and everything else is bad."""
    ours = agent.split(",")[0] in LIKELIHOODS
    return (good if ours else bad) + 0.01 * ("support" in agent) + 0.02 * agent.startswith("POTEC")


def made_up(experiment: Experiment, good: float = 0.3, bad: float = 0.1) -> Results:
    rng = np.random.default_rng(0)
    cells, rows = experiment.cells("smoke"), {}
    for place, cell_ in enumerate(cells):
        place = place // 2  # a panel, and its twin with scaled scores
        for agent in cell_.methods:
            level = level_of(agent, good, bad)
            if level < good:
                level *= 1 - 0.1 * place  # what is bad is unsteady too
            for number in range(cell_.runs):
                value = np.linspace(0.01, level, 4) + 0.0005 * rng.standard_normal(4)
                groups = value[-1] + 0.001 * rng.standard_normal(30)
                error = (10.0 if level >= good else 0.1) + 0.001 * rng.random(4)
                rows[cell_.panel, agent, number] = {
                    "epoch": np.arange(4), "value": value, "mode_value": value, "logging_value": np.array(0.005),
                    "value_by_group": groups, "mode_value_by_group": groups, "collapsed": np.array(0.0),
                    "validation_value": value[-1], "validation_mode_value": value[-1],
                    "mode_collapsed": np.array(0.0),
                    "objective": value, "squared_error": error, "milliseconds_a_round": np.array(1.0),
                }  # fmt: skip
    return Results(experiment.name, "smoke", cells, rows)


@ALL
def test_made_up_data_take_the_place_of_all_data_sets(experiment: Experiment) -> None:
    for scale in SCALES:
        cells = experiment.cells(scale)
        # or a catalogue, at the paper's scale
        assert {cell_.parameters["data"] for cell_ in cells} <= {MADE_UP, "catalogue"}
    assert "NO REAL DATA" in experiment.warnings()[0]


def test_sizes_of_the_thesis(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("common", "small"):
        monkeypatch.setattr(f"manyarms_thesis.pwll.{module}.is_there", lambda data: True)
    cells = OPTIMISATION.cells("paper")
    adam = [cell_.parameters for cell_ in cells if cell_.parameters["optimiser"] == "adam"]
    assert (5e-5, 32) in {(how["rate"], how["batch"]) for how in adam}  # those of the authors' public code
    of = {cell_.parameters["data"]: cell_.problem.parameters for cell_ in cells}
    assert set(of) == {"ml-1m", "gowalla", "amazon-book", "ciao", "epinions", "catalogue"}
    assert of["catalogue"]["actions"] == 1_000_000
    assert {name: world["rows"] for name, world in of.items()} == {
        name: 132_744 if name == "ml-1m" else 400_000 for name in of
    }
    assert {(world["k0"], world["clusters"]) for world in of.values()} == {(100, 2_000)}
    judges = {name: world.get("test_users", world.get("test")) for name, world in of.items()}
    assert judges == {name: 1_500 if name == "ciao" else 3_000 for name in of}  # Ciao has 3,485 users
    assert set(cells[0].methods) == {*ESTIMATES, *LIKELIHOODS}
    assert {cell_.runs for cell_ in SEEDS.cells("paper")} == {5}
    noises = find("pwll-noise").cells("paper")
    assert {(c.parameters["noise"], c.parameters["shift"]) for c in noises} == {
        (e, s) for e in (0.1, 0.2, 0.3) for s in (0.0, 0.5)
    }
    for cell_ in cells:  # a round is a step
        call = next(iter(cell_.methods.values())).parameters
        assert cell_.rounds == call["epochs"] * -(-cell_.problem.parameters["rows"] // call["batch"])


AHEAD = re.compile(r"cLPI (outperforms|dominates)|surpassed by cLPI|fails to outperform")


@ALL
def test_claims_and_figures(experiment: Experiment, tmp_path: Path) -> None:
    results = made_up(experiment)
    claims = experiment.judge(results)
    ours = [made for made in claims if made.thesis_lines]
    assert ours and len(ours) < len(claims)  # what is said of scaled scores is none of the thesis's statements
    for made in claims:
        lines = [int(number) for number in made.thesis_lines.split("-") if number]
        assert all(2300 <= line <= 2338 or 5397 <= line <= 5655 for line in lines)
        assert (np.isfinite(made.figure) and made.statement.startswith("[made-up")) or not made.thesis_lines
        assert not lines or SCALED not in made.panel
    # both ways to count a policy, the authors' first
    first = {words: [made.statement for made in ours if words in made.statement] for words in IN_WORDS.values()}
    assert len(first[IN_WORDS[MODE]]) == len(first[IN_WORDS["value"]]) >= len(ours) // 2
    assert all(made.holds for made in claims if AHEAD.search(made.statement))
    drawn = experiment.draw(results, tmp_path)
    assert drawn and IN_WORDS[MODE] in drawn[0].caption.lower()
    assert any("variants" in str(one.path) for one in drawn)
    assert all(one.path.exists() and one.path.with_suffix(".png").stat().st_size > 5_000 for one in drawn)
    page = experiment_page(experiment, results, claims, drawn, {"scale": "smoke"})
    assert all(f"{words}, test users" in page for words in IN_WORDS.values())


@ALL
def test_what_is_worse_does_not_hold(experiment: Experiment) -> None:
    claims = experiment.judge(made_up(experiment, good=0.05, bad=0.4))
    assert not any(made.holds for made in claims if AHEAD.search(made.statement))


@ALL
def test_every_experiment_asks_and_has_both_worlds(experiment: Experiment) -> None:
    assert experiment.question.endswith("?")
    for scale in SCALES:
        assert len(experiment.setting_at(scale)) > 50
        cells = experiment.cells(scale)
        printed, scaled = ([one for one in cells if one.variant == variant] for variant in ("", SCALED))
        assert len(printed) == len(scaled) == len(cells) / 2
        for one, other in zip(printed, scaled, strict=True):
            assert "scale" not in other.problem.parameters and "length" not in other.problem.parameters
            if one.parameters["data"] == MADE_UP:
                assert one.problem.parameters["scale"] == 1.0 and one.problem.parameters["history"] == "whole"
            for method, call in one.methods.items():
                starts = call.parameters["start"], other.methods[method].parameters["start"]
                assert starts in {("random", "zero"), ("logging", "logging")}


def test_spread_and_ahead_by_hand() -> None:
    cells = [
        Cell(f"p{i}", {"data": MADE_UP}, Call(dict), {"a": Call(dict), "b": Call(dict)}, 1, 2, solve) for i in (0, 1)
    ]
    values = {("p0", "a"): [1.0, 2.0], ("p1", "a"): [0.5, 2.0], ("p0", "b"): [0.4, 0.9], ("p1", "b"): [0.4, 0.9]}
    rows: dict[tuple[str, str, int], Any] = {
        (panel, agent, r): {"value": np.array(v[r])} for (panel, agent), v in values.items() for r in (0, 1)
    }
    both = Compared(Results("x", "smoke", cells, rows), ["p0", "p1"])
    np.testing.assert_allclose(both.spread("a"), [0.5, 0.0])
    made = both.ahead("a", ["b"], "a is better", "2307")
    assert made.figure == pytest.approx(0.6) and "p1" in made.detail  # 0.1 and 1.1 in p1: less sure than 0.6 and 1.1
    firm = both.steadier(["b"], ["a"], "b is steady", "2307")
    assert firm.figure == pytest.approx(0.25)
    assert deviation(np.array([1.0, 3.0])).mean == pytest.approx(np.sqrt(2))


# ---- worlds, policies, estimates -------------------------------------------------------------------------------------


def test_made_up_interactions_are_the_same_every_time() -> None:
    one = made_up_interactions()
    made_up_interactions.cache_clear()
    other = made_up_interactions()
    np.testing.assert_array_equal(one.items, other.items)
    assert np.bincount(one.users).min() >= 30 and one.user_count == 500


def test_worlds_fall_back_on_made_up_data() -> None:
    assert list(worlds(QUICK)) == [MADE_UP]
    with pytest.raises(InvalidInput, match="data"):
        is_there("ml-2m")


def test_policies_start_where_they_say() -> None:
    made = logged_problem(seed=0, **WORLD)
    X, K = made.log.contexts[:7], made.world.actions
    ids = np.tile(np.arange(K), (7, 1))
    for space in get_args(Space):
        for weight in get_args(Weight):
            zero = policy_of(made, space, weight, "zero").probabilities_of_many(X, ids)
            np.testing.assert_allclose(zero.sum(axis=1), 1)
            top = zero.max(axis=1)  # uniform over what the policy can play
            np.testing.assert_allclose(np.where(zero > 0, zero, top[:, None]), np.repeat(top[:, None], K, 1), rtol=1e-5)
    kinds: dict[Space, type] = {"all": SoftmaxPolicy, "support": SupportSoftmaxPolicy, "clusters": TwoStagePolicy}
    assert all(isinstance(policy_of(made, space), kind) for space, kind in kinds.items())
    # the logging policy is the softmax of its own embeddings on its support, heavy or light
    logged = made.world.logging.probabilities_of_many(X, ids)
    for weight in get_args(Weight):
        found = policy_of(made, "support", weight, "logging").probabilities_of_many(X, ids)
        np.testing.assert_allclose(found, logged, atol=1e-6)
    with pytest.raises(InvalidInput, match="policy"):
        policy_of(made, "some")  # type: ignore[arg-type]
    means = means_of(made.embeddings, made.labels)
    np.testing.assert_allclose(means[3], made.embeddings[made.labels == 3].mean(axis=0), rtol=1e-5)


def test_estimates_of_the_logging_policy_are_means_of_rewards() -> None:
    made = logged_problem(seed=1, **WORLD)
    for name in ("IPS", "MIPS"):
        found = estimate(objective_of(name, made), made.log, made.world.logging)
        assert found == pytest.approx(made.log.rewards.mean(), rel=1e-6)
    # PWLL by hand
    assert made.log.propensities is not None
    pi = policy_of(made).probabilities_of(made.log.contexts, made.log.actions)
    by_hand = np.mean(made.log.rewards / np.maximum(made.log.propensities, 0.05) * np.log(pi))
    assert estimate(objective_of("cLPI", made, tau=0.05), made.log, policy_of(made), rows=64) == pytest.approx(by_hand)


def test_unknown_objectives_and_penalties() -> None:
    made = logged_problem(seed=0, **WORLD)
    with pytest.raises(InvalidInput, match="objective"):
        objective_of("VPI", made)
    assert objective_of("cIPS", made, distance=3.0).distance == 3.0
    assert objective_of("IPS", made, svp=0.5).name == "svp"
    with pytest.raises(InvalidInput, match="a mean over rows"):
        objective_of("snIPS", made, svp=0.5)


@pytest.mark.parametrize("name", ["IPS", "PC", "MIPS", "OffCEM", "POTEC", "DR", "cLPI", "RegKL", "BPR"])
def test_learning_improves_on_the_start(name: str) -> None:
    made = logged_problem(seed=2, **WORLD)
    columns = train(problem=made, steps=28, seed=0, objective=name, epochs=4, batch=64, rate=0.1, curve=True)
    value = np.asarray(columns["value"])
    assert len(value) == 5 and value[-1] > value[0]
    modes = np.asarray(columns["mode_value"])
    assert columns["log_rows"] == 400 and len(modes) == 5 and modes.min() >= 0 and modes.max() <= 1


def test_fewer_steps_take_fewer_rows() -> None:
    """What a forecast relies on: a number of steps, whatever the epochs."""
    made = logged_problem(seed=2, **WORLD)
    columns = train(problem=made, steps=8, seed=0, objective="IPS", epochs=4, batch=64, rate=0.1)
    assert columns["log_rows"] == 2 * 64


def test_the_same_seed_gives_the_same_run() -> None:
    cell_ = POTEC.cells("smoke")[0]
    (item, *_) = items_of("pwll-potec", [cell_], 0)
    outcomes = [cell_.task(item.run(0)) for _ in range(2)]
    np.testing.assert_array_equal(outcomes[0]["value"], outcomes[1]["value"])


def test_one_cycle_rises_and_falls() -> None:
    from manyarms.learning.optimisers import schedule

    rates = [schedule("one-cycle", step, 100) for step in range(101)]
    assert rates[0] == pytest.approx(1 / 25) and rates[30] == pytest.approx(1) and rates[100] == pytest.approx(0)
    assert np.all(np.diff(rates[:31]) > 0) and np.all(np.diff(rates[30:]) < 0)


def test_a_curve_ends_where_the_run_without_it_ends() -> None:
    made = logged_problem(seed=2, **WORLD)
    how: dict[str, Any] = {"steps": 14, "seed": 0, "objective": "cLPI", "epochs": 2, "batch": 64, "rate": 0.1}
    one, other = train(problem=made, **how), train(problem=made, curve=True, **how)
    assert np.asarray(one["value"])[[0, -1]] == pytest.approx(np.asarray(other["value"])[[0, -1]])
    assert len(np.asarray(other["value"])) == 3 and list(np.asarray(one["epoch"])) == [0, 2]


def test_learners_of_a_panel_take_the_same_steps() -> None:
    sizes = {"epochs": 2, "batch": 64, "rate": 0.1}
    methods = {**learners(["IPS"], sizes, tuned=False), **learners(["cLPI"], sizes, batch=32, tuned=False)}
    with pytest.raises(InvalidInput, match="steps"):
        list(logged_cells("panel", WORLD, methods, 1))


def test_clusters_have_no_gaps() -> None:
    made = logged_problem(seed=0, **{**WORLD, "clusters": 290})
    assert set(made.labels) == set(range(made.labels.max() + 1))
    assert objective_of("POTEC", made).name == "offcem"


@pytest.mark.slow
def test_a_run_from_end_to_end(tmp_path: Path) -> None:
    outcome = run(CLUSTERS, "smoke", tmp_path, workers_wanted=1)
    assert (tmp_path / "report.html").exists() and outcome.claims
    again = run(CLUSTERS, "smoke", tmp_path, workers_wanted=1)
    assert again.reused == len(items_of(CLUSTERS.name, CLUSTERS.cells("smoke"), 0))
    assert {one.panel.endswith(SCALED) for one in outcome.claims} == {True, False}
