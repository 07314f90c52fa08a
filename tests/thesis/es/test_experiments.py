"""Exponential smoothing and certificates: claims and figures on made-up results, objectives and the tasks in tiny worlds."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from manyarms.errors import InvalidInput
from manyarms.estimators.pessimism import Heuristic, PACBayes
from manyarms_thesis.catalogue import SCALES, Experiment, catalogue
from manyarms_thesis.es import learners
from manyarms_thesis.es.common import QUICK, left_out_best, stated, within, worlds
from manyarms_thesis.es.coverage import COVERAGE, GAIN, Tally, covered, covers, plausible, repeated, says_nothing
from manyarms_thesis.es.coverage import fixed as fixed_policy
from manyarms_thesis.es.coverage import learned as learned_policy
from manyarms_thesis.es.evaluation_bounds import BOUNDS, EVALUATION_BOUNDS, drawn, lower_end
from manyarms_thesis.es.hyperparameters import HYPERPARAMETERS, about, on_a_grid
from manyarms_thesis.es.learners import (
    correction_of,
    is_there,
    logged_rows,
    made_up_world,
    objective_of,
    supervised_problem,
    train,
    usual,
)
from manyarms_thesis.harness.data import MADE_UP
from manyarms_thesis.harness.learning import Compared
from manyarms_thesis.harness.pages import experiment_page
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import items_of

pytest.importorskip("torch")
CERTIFIED = (EVALUATION_BOUNDS, COVERAGE)
LEARNING = [
    e
    for e in catalogue().values()
    if e.name.startswith(("es-", "pac-")) and e.name not in ("es-clipping", "es-coverage")
]
ALL = pytest.mark.parametrize("experiment", LEARNING, ids=lambda e: e.name)
OURS_WINS = re.compile(
    r"^(\[made-up.*\] )?(Our bound|With clipping too|Our method with its best|For a wide range of alpha|"
    r"Ours, (bound|LP): outperforms)"
)
WORLD: dict[str, Any] = {"data": MADE_UP, "rows": 600, "test_rows": 200, "eta0": 0.3}


@pytest.fixture(autouse=True)
def no_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here reads real data."""
    monkeypatch.delenv("MANYARMS_DATA", raising=False)
    is_there.cache_clear()


def made_up(experiment: Experiment, ours: float, others: float) -> Results:
    """Ours has one value, everything else another; all but ES count as others where all are ours."""
    rng = np.random.default_rng(0)
    cells, rows = experiment.cells("smoke"), {}
    for cell_ in cells:
        for agent in cell_.methods:
            level = ours if agent.startswith(("Ours", "ES")) else others - 0.02 * agent.startswith("Har")
            level -= 0.03 * agent.startswith("Ours, LP")  # a principle is not the bound
            for number in range(cell_.runs):
                rows[cell_.panel, agent, number] = {
                    "epoch": np.array([0, 2]), "value": np.array([0.2, level + 0.001 * rng.standard_normal()]),
                    "mode_value": np.array(level), "logging_value": np.array(0.1), "divergence": np.array(1.0),
                    "milliseconds_a_round": np.array(1.0),
                }  # fmt: skip
    return Results(experiment.name, "smoke", cells, rows)


@pytest.mark.parametrize("experiment", [*LEARNING, EVALUATION_BOUNDS], ids=lambda e: e.name)
def test_made_up_rows_take_the_place_of_pictures(experiment: Experiment) -> None:
    for scale in SCALES:
        assert {cell_.parameters["data"] for cell_ in experiment.cells(scale)} == {MADE_UP}
    assert "NO PICTURES" in experiment.warnings()[0]


def test_sizes_of_the_thesis(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("manyarms_thesis.es.common.is_there", lambda data: True)
    cells = {experiment.name: experiment.cells("paper") for experiment in LEARNING}
    main = cells["es-bounds"]
    assert {cell_.parameters["data"] for cell_ in main} == {"mnist", "fashion-mnist", "emnist", "cifar100"}
    assert len(main[0].methods) == 9  # four bounds by two families, and the authors' lambda
    call = next(iter(main[0].methods.values())).parameters
    assert (call["epochs"], call["batch"]) == (20, 128)
    of = {cell_.parameters["data"]: cell_.rounds for cell_ in main}
    assert of["mnist"] == 20 * -(-57_000 // 128) and of["emnist"] == 20 * -(-107_160 // 128)
    assert {cell_.parameters["eta0"] for cell_ in main} == {round(0.1 * i, 1) for i in range(11)}
    assert len(cells["es-hyperparameters"][0].methods) == 41  # 20 values of each, and an adaptive alpha
    assert {c.parameters["eta0"] for c in cells["pac-bound"]} == {round(-0.5 + 0.1 * i, 1) for i in range(11)}
    assert (
        {cell_.runs for cell_ in COVERAGE.cells("paper")}
        == {1_000}
        == {cell_.runs for cell_ in COVERAGE.cells("quick")}
    )
    assert {cell_.runs for cell_ in COVERAGE.cells("smoke")} == {50}


@pytest.mark.parametrize("name", ["es-hyperparameters", "es-corrections", "pac-bound", "pac-heuristic"])
def test_quick_runs_are_enough_to_decide(name: str) -> None:
    """With two runs a difference must be 14 standard errors large, with five 2.9."""
    assert all(cell_.runs >= 5 for cell_ in catalogue()[name].cells("quick"))


def test_quick_has_the_alpha_that_the_thesis_calls_best() -> None:
    assert any(name == "Ours, alpha=0.7" for name in catalogue()["es-hyperparameters"].cells("quick")[0].methods)


@ALL
def test_claims_and_figures(experiment: Experiment, tmp_path: Path) -> None:
    results = made_up(experiment, 0.6, 0.4)
    claims = experiment.claims(results)
    for made in claims:
        assert made.thesis_lines == ""  # of rows that are made up, the thesis says nothing
        assert made.statement.startswith("[made-up") and np.isfinite(made.figure)
    assert all(made.holds for made in claims if OURS_WINS.search(made.statement))
    drawn_ = experiment.figures(results, tmp_path)
    assert drawn_ and all(one.path.with_suffix(".png").stat().st_size > 5_000 for one in drawn_)
    assert all(one.caption.endswith(".") for one in drawn_)
    page = experiment_page(experiment, results, claims, drawn_, {"scale": "smoke"})
    assert "value of the policy, test rows" in page


@ALL
def test_lines_of_the_thesis_where_it_has_the_data(experiment: Experiment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("manyarms_thesis.es.common.is_there", lambda data: True)
    claims = experiment.claims(made_up(experiment, 0.6, 0.4))
    assert sum(bool(made.thesis_lines) for made in claims) > len(claims) / 2
    for made in claims:
        lines = [int(number) for number in re.findall("[0-9]+", made.thesis_lines)]
        assert made.panel == "fashion-mnist" and not made.statement.startswith("[made-up")
        assert all(2500 <= line <= 2800 or 6060 <= line <= 6340 for line in lines)


def test_pictures_without_a_networks_features_are_not_the_thesiss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert stated("mnist", "2642") == "2642" and stated(MADE_UP, "2642") == "" == stated("cifar100", "2642")
    (tmp_path / "cifar100").mkdir()
    (tmp_path / "cifar100" / "features.npz").touch()
    monkeypatch.setenv("MANYARMS_DATA", str(tmp_path))
    assert stated("cifar100", "2642") == "2642"


def test_the_best_of_other_runs() -> None:
    """The best of a run's own values is above any of them, whatever they are; that of other runs need not be."""
    table = np.array([[0.8, 0.0, 0.2], [0.0, 1.0, 0.3], [0.0, 0.9, 0.1]])
    assert left_out_best(table).tolist() == [0.0, 1.0, 0.9]
    noise = np.random.default_rng(0).standard_normal((4_000, 20))
    pairs = noise.reshape(2_000, 2, 20)
    assert abs(np.mean([left_out_best(pair) for pair in pairs])) < 0.1 < noise.max(axis=1).mean()


@ALL
def test_what_is_worse_does_not_hold(experiment: Experiment) -> None:
    claims = experiment.claims(made_up(experiment, 0.3, 0.5))
    assert not any(made.holds for made in claims if OURS_WINS.search(made.statement))


def test_within_by_hand() -> None:
    scale = np.array([0.2, 0.2])
    close = within(np.array([0.01, 0.012]), scale)
    assert close.above_zero and close.mean == pytest.approx(0.05 - 0.011) and close.degrees == 1
    assert within(np.array([-0.01, -0.012]), scale).mean == pytest.approx(close.mean)
    assert within(np.array([-0.1, -0.101]), scale).below_zero
    assert not within(np.array([0.04, -0.04]), scale).above_zero
    same = within(np.zeros(5), np.ones(5))  # all say the same: nothing to tell an error by
    assert not same.above_zero and not same.below_zero and same.mean == 0.25


def test_what_runs_pick_from_a_grid_is_known_to_a_step() -> None:
    grid = np.linspace(0, 1, 11)
    same, spread = on_a_grid(np.full(5, 0.7), grid), on_a_grid(np.array([0.0, 1.0]), grid)
    assert same.standard_error == pytest.approx(0.1 / np.sqrt(12)) and spread.standard_error == pytest.approx(0.5)


def test_the_best_alpha_is_about_0_7_by_values() -> None:
    (cell_, *_) = HYPERPARAMETERS.cells("smoke")
    on = Compared(Results("es-hyperparameters", "smoke", [cell_], {}), [cell_.panel], "d")
    grid = np.linspace(0, 1, 11)
    noise = 0.001 * np.random.default_rng(0).standard_normal((5, 11))
    assert about(on, noise - (grid - 0.72) ** 2, grid).verdict == "held"
    assert about(on, noise + grid, grid).verdict == "held in part"  # above what is below, and below what is above
    assert about(on, noise, grid).verdict == "undecided"
    assert about(on, noise[:, :2], grid[:2]).verdict == "undecided"


# ---- worlds, objectives, learning ------------------------------------------------------------------------------------


def test_worlds_fall_back_on_made_up_rows() -> None:
    assert list(worlds(QUICK)) == [MADE_UP]
    assert logged_rows({"data": MADE_UP, "rows": 600}) == made_up_world(600).rows == 500
    assert logged_rows({"data": "mnist", "rows": 60_000}) == 57_000
    with pytest.raises(InvalidInput, match="data"):
        is_there("imagenet")


def test_features_beside_the_pictures_are_preferred(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    (tmp_path / "cifar100").mkdir()
    X, y = rng.normal(size=(50, 3)), np.arange(50) % 4
    np.savez(tmp_path / "cifar100" / "features.npz", x_train=X, y_train=y, x_test=X[:8], y_test=y[:8])
    monkeypatch.setenv("MANYARMS_DATA", str(tmp_path))
    made = learners.world_of.__wrapped__("cifar100", 40)
    assert (made.dim, made.actions, made.rows) == (3, 4, 38)
    assert learners.features_of("mnist") is None


def test_corrections_have_the_thesis_parameters() -> None:
    """Line 2676: lambda = 1 is IPS for Har; Section 8.2: lambda_2 = 0 is, for the same weights."""
    pi, pi0 = np.array([0.5, 0.1]), np.array([0.1, 0.4])
    w = pi / pi0
    expected = {
        ("Clip", 0.2): pi / np.maximum(pi0, 0.2), ("ES", 0.7): pi / pi0**0.7, ("IX", 0.3): pi / (pi0 + 0.3),
        ("Har", 0.3): w / (0.7 * w + 0.3), ("Metelli", 0.3): w / (0.7 + 0.3 * w), ("Su", 4.0): 4 * w / (4 + w**2),
    }  # fmt: skip
    for (name, value), weights in expected.items():
        np.testing.assert_allclose(correction_of(name, value).weight(pi, pi0), weights, rtol=1e-12)
    assert correction_of("Har", 1.0).is_none and correction_of("Metelli", 0.0).is_none
    with pytest.raises(InvalidInput, match="correction"):
        correction_of("Clop", 0.1)


def test_objectives_by_name() -> None:
    n = 10_000
    ours = objective_of("bound", n)
    assert isinstance(ours, PACBayes) and ours.settings["alpha"] == pytest.approx(0.9) == pytest.approx(usual("ES", n))
    for name in ("london", "sakhi1", "sakhi2"):
        made = objective_of(name, n, correction="Clip")
        assert (
            isinstance(made, PACBayes)
            and made.bound.name.replace("-", "") == name
            and made.settings["tau"] == pytest.approx(0.1)
        )
    adaptive = objective_of("bound", n, value="adaptive")
    assert isinstance(adaptive, PACBayes) and adaptive.adaptive
    principle = objective_of("heuristic", n, weights=[1e-5, 1e-4, 1e-3])
    assert isinstance(principle, Heuristic) and principle.settings["l3"] == 1e-3
    # the penalty of London's principle is lambda ||mu - mu0||^2, and that of Distance weight / n
    assert objective_of("distance", n, correction="Clip", weights=[1e-5, 0, 0]).distance == pytest.approx(1e-5 * n)
    with pytest.raises(InvalidInput, match="method"):
        objective_of("hope", n)


@pytest.fixture(scope="module")
def small() -> learners.Problem:
    return supervised_problem(seed=3, **WORLD)


@pytest.mark.parametrize(
    ("method", "family", "options"),
    [
        ("bound", "gaussian", {}), ("bound", "mixed-logit", {}), ("bound", "gaussian", {"value": "adaptive"}),
        ("london", "gaussian", {"correction": "Clip"}), ("sakhi1", "mixed-logit", {"correction": "Clip"}),
        ("sakhi2", "gaussian", {"correction": "Clip"}), ("general", "mixed-logit", {"correction": "Har", "value": 0.5}),
        ("heuristic", "gaussian", {}), ("heuristic", "softmax", {"correction": "IX"}),
        ("distance", "softmax", {"correction": "Clip"}), ("svp", "softmax", {"correction": "Clip"}),
        ("estimate", "gaussian", {"correction": "Su", "value": 100.0}),
    ],
)  # fmt: skip
def test_learning_improves_on_the_start(
    small: learners.Problem, method: str, family: Any, options: dict[str, Any]
) -> None:
    columns = train(
        problem=small,
        steps=20,
        seed=0,
        method=method,
        family=family,
        epochs=4,
        batch=100,
        rate=0.1,
        draws=64,
        **options,
    )
    value = np.asarray(columns["value"])
    if method == "london":  # so wide at a few hundred rows that it stays where it is
        assert value[1] > value[0] - 0.02
    else:
        assert value[1] > value[0]
    assert value[1] > np.asarray(columns["logging_value"]) and columns["log_rows"] == 500
    if family != "softmax":
        sigma = float(np.asarray(columns["sigma"]))
        assert (sigma == pytest.approx(1)) == (method in ("heuristic", "estimate"))
        assert np.asarray(columns["divergence"]) > 0


def test_fewer_steps_take_fewer_rows(small: learners.Problem) -> None:
    """What a forecast relies on."""
    how: dict[str, Any] = {"method": "bound", "family": "gaussian", "epochs": 2, "batch": 50, "rate": 0.1}
    assert train(problem=small, steps=4, seed=0, **how)["log_rows"] == 100


def test_the_same_seed_gives_the_same_run() -> None:
    cell_ = replace(LEARNING[0].cells("smoke")[0], rounds=4)
    (item, *_) = items_of("es-bounds", [cell_], 0)
    first, second = (cell_.task(item.run(0)) for _ in range(2))
    np.testing.assert_array_equal(first["value"], second["value"])


# ---- certificates ----------------------------------------------------------------------------------------------------


def test_plausible_is_the_upper_tail() -> None:
    assert plausible(0, 50) == 1.0
    assert plausible(7, 50) == pytest.approx(sum(binom.pmf(k, 50, 0.05) for k in range(7, 51)))
    assert plausible(9, 50) < 0.01 < plausible(6, 50)
    with pytest.raises(InvalidInput, match="misses"):
        plausible(51, 50)


def coverage_results(missed: int) -> Results:
    (cell_,) = COVERAGE.cells("smoke")
    rows: dict[tuple[str, str, int], Any] = {}
    for agent in cell_.methods:
        for number in range(cell_.runs):
            low = 0.6 if number < missed else 0.4
            ends = {
                f"{end} {name}": np.array(x)
                for name in ("es", "default")
                for end, x in (("lower", low), ("upper", 0.9))
            }
            rows[cell_.panel, agent, number] = {
                "truth": np.array(0.5), "kl": np.array(0.0), "true gain": np.array(0.1), "lower gain": np.array(0.0), **ends,
            }  # fmt: skip
    return Results("es-coverage", "smoke", [cell_], rows)


def test_coverage_is_judged_binomially(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("manyarms_thesis.es.coverage.NAMES", ("es",))
    few, many = COVERAGE.claims(coverage_results(5)), COVERAGE.claims(coverage_results(12))
    assert {made.verdict for made in few} == {"undecided"}  # 50 logs cannot show 95 %, not even without a miss
    assert [made.verdict for made in many] == ["refuted"] * 4 + ["undecided"] * 2  # the improvement is never missed
    assert many[0].figure == pytest.approx(38 / 50 - 0.95) and "mean width 0.452" in many[0].detail
    assert {made.thesis_lines for made in many} == {""}  # nothing is tested as it is printed
    assert [made.parts[0] for made in many] == [1, 3] * 3
    results = coverage_results(5)
    found = covered(results, results.panels[0], "fixed softmax", "ls")
    assert found is None


def test_vacuous_certificates_do_not_count_as_covering(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("manyarms_thesis.es.coverage.NAMES", ("es",))
    results = coverage_results(0)
    (panel,) = results.panels
    agents = results.methods(panel)
    for agent in agents:
        assert (
            not says_nothing(results, panel, agent, "es").any() and not says_nothing(results, panel, agent, GAIN).any()
        )
        for number in range(50):
            columns: Any = results.runs[panel, agent, number]
            if agent != agents[0] or number >= 10:
                columns |= {"lower es": np.array(0.0), "upper es": np.array(1.0)}
            columns["lower gain"] = np.array(-0.4)  # the logging policy earns 0.4, and no policy less than nothing
    es, es_learned, default, default_learned, gain, gain_learned = COVERAGE.claims(results)
    assert "40 of 50 bounds are vacuous" in es.detail and "10 of 10 logs" in es.detail and es.verdict == "undecided"
    assert "150 of 150 bounds are vacuous" in es_learned.detail and es_learned.verdict == "undecided"
    assert np.isnan(es_learned.figure) and es_learned.statement.endswith("for learned policies")
    assert "0 of 50 bounds are vacuous" in default.detail and "0 of 150 bounds" in default_learned.detail
    for one in (gain, gain_learned):
        assert one.verdict == "undecided" and np.isnan(one.figure)


def test_tallies_of_coverage() -> None:
    tally = Tally.of(np.array([1.0, 0.0, 1.0, 1.0]), np.array([False, False, True, False]))
    assert (tally.logs, tally.informative, tally.misses) == (4, 3, 1) and str(tally) == "2 of 3"
    assert tally.room.mean == pytest.approx(2 / 3 - 0.95)
    assert covers("", "2511", {"one": Tally(1_000, 1_000, 20)}).verdict == "held"
    assert covers("", "2511", {"one": Tally(1_000, 1_000, 50)}).verdict == "undecided"
    assert covers("", "2511", {"one": Tally(1_000, 1_000, 90)}).verdict == "refuted"
    assert (
        covers("", "2511", {"one": Tally(1_000, 1_000, 20), "two": Tally(1_000, 1_000, 50)}).verdict == "held in part"
    )
    # eight misses in a thousand logs are no evidence against a theorem that allows fifty, whatever the other logs say
    assert covers("", "2511", {"one": Tally(1_000, 20, 8)}).verdict == "undecided"
    assert covers("", "2511", {"one": Tally(1_000, 0, 0)}).verdict == "undecided"


def test_certificates_of_a_log() -> None:
    problem = repeated(seed=5, rounds=200, eta0=0.3, population=300, classes=3, dim=3)
    truths = problem.truth(problem.world.logging(0.3)), problem.truth(problem.world.logging(1.0))
    assert truths[0] < truths[1]
    columns = fixed_policy(problem=problem, seed=0, eta=1.0)
    assert columns["truth"] == truths[1] and columns["true gain"] == pytest.approx(truths[1] - truths[0])
    for name in ("es", "ls", "bernstein", "harmonic"):
        assert 0 <= float(np.asarray(columns[f"lower {name}"])) <= float(np.asarray(columns[f"upper {name}"])) <= 1
    by_bound = learned_policy(problem=problem, seed=0, family="gaussian", method="bound")
    assert "lower bernstein" not in by_bound and float(np.asarray(by_bound["kl"])) > 0
    by_draws = learned_policy(problem=problem, seed=0, family="mixed-logit", method="bound")
    assert "lower harmonic" in by_draws


def test_coverage_from_logs_to_figures(tmp_path: Path) -> None:
    (cell_,) = COVERAGE.cells("smoke")
    cell_ = replace(cell_, runs=3, rounds=100)
    rows: dict[tuple[str, str, int], Any] = {}
    for item in items_of(COVERAGE.name, [cell_], 0):
        for number in item.runs:
            found = cell_.task(item.run(number))
            rows[cell_.panel, item.method, number] = {name: np.asarray(value) for name, value in found.items()}
    results = Results(COVERAGE.name, "smoke", [cell_], rows)
    claims = COVERAGE.claims(results)
    assert {made.verdict for made in claims} == {"undecided"}  # three logs
    for agent in results.methods(cell_.panel):
        gain = covered(results, cell_.panel, agent, GAIN)
        assert gain is not None and gain.shape == (3,)
    drawn_ = COVERAGE.figures(results, tmp_path)
    assert drawn_[0].path.with_suffix(".png").stat().st_size > 5_000
    assert "true value" in experiment_page(COVERAGE, results, claims, drawn_, {"scale": "smoke"})


def test_lower_ends_of_a_fixed_policy(tmp_path: Path) -> None:
    rows = {}
    cells = EVALUATION_BOUNDS.cells("smoke")
    for cell_ in cells:
        for number in range(cell_.runs):
            world = {**cell_.problem.parameters, "rows": 600}
            made = drawn(seed=number, rounds=cell_.parameters["n"], **world)
            for label, name in BOUNDS.items():
                rows[cell_.panel, label, number] = {
                    k: np.asarray(v) for k, v in lower_end(problem=made, seed=0, name=name).items()
                }
    results = Results("ls-bounds", "smoke", cells, rows)
    for panel in results.panels:
        assert results.final(panel, "LS", "covered").mean() >= 0.9
    short, long = (results.final(panel, "LS", "gap").mean() for panel in results.panels)
    assert long < short  # more rows, tighter
    claims = EVALUATION_BOUNDS.claims(results)
    assert len(claims) == 3 + 4
    (picture,) = EVALUATION_BOUNDS.figures(results, tmp_path)
    assert picture.path.with_suffix(".png").stat().st_size > 5_000
    for columns in rows.values():
        columns |= {"lower": np.array(0.0), "covered": np.array(1.0)}
    for one in EVALUATION_BOUNDS.claims(results):
        assert one.verdict == "undecided" and re.search("2 of 2 panels|20 of 20 bounds are vacuous", one.detail)
