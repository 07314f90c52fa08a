"""Fair comparisons of learners: settings chosen on validation users, errors that contain test users, and collapse."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

from manyarms.worlds.catalogue import WITHIN_KIND
from manyarms.worlds.interactions import InteractionWorld, UserPart
from manyarms_thesis.harness.claims import Claim, Measured, measured, standard_errors
from manyarms_thesis.harness.data import MADE_UP
from manyarms_thesis.harness.learning import COLLAPSED, MODE, Compared, between, lead
from manyarms_thesis.harness.results import BY_GROUP, Results
from manyarms_thesis.harness.spec import Call, Cell, solve
from manyarms_thesis.harness.two_way import two_way, with_groups_left_out
from manyarms_thesis.pwll import small, tuning
from manyarms_thesis.pwll.learners import SIGMA, policy_of, radius_of
from manyarms_thesis.pwll.problems import GeneratedCatalogue, Problem, by_group, logged_problem
from manyarms_thesis.pwll.training import AFTER_ONE, Course, train

pytest.importorskip("torch")
WORLD: dict[str, Any] = {"data": MADE_UP, "dim": 5, "k0": 20, "clusters": 12, "rows": 400}


def test_settings_are_chosen_by_validation_users_who_are_neither_trained_nor_tested_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = logged_problem(seed=2, **WORLD)
    asked: list[str] = []

    def noted(judge: Callable[..., Any]) -> Callable[..., Any]:
        def judged(self: Problem, policy: Any, who: str = "test") -> Any:
            asked.append(who)
            return judge(self, policy, who)

        return judged

    for name in ("values", "values_of_mode"):
        monkeypatch.setattr(Problem, name, noted(getattr(Problem, name)))
    how: dict[str, Any] = {"epochs": 2, "batch": 64, "rate": 0.1, "start": "zero"}
    grid = {"rate": [1e-6, 0.1], "tau": [0.001, 0.1]}
    found = tuning.chosen(made, "cLPI", how, grid)
    assert set(asked) == {"validation"} and set(found) == {MODE, "value"}
    rate, tau = found["value"]["rate"], found["value"]["tau"]
    assert rate >= 0.1  # at 1e-6 nothing is learned
    tuned = made.for_tuning()
    assert not np.array_equal(tuned.log.actions, made.log.actions) and len(tuned.log) == WORLD["rows"]
    world = made.world
    assert isinstance(world, InteractionWorld)
    parts = [{row.tobytes() for row in world.contexts(part)} for part in get_args(UserPart)]
    assert not parts[0] & parts[1] and not parts[0] & parts[2] and not parts[1] & parts[2]
    assert {row.tobytes() for row in tuned.log.contexts} <= parts[0]
    # the best by hand: of the rates first (tau as usual), then of tau at that rate; the grid's own among them

    def score(**settings: float) -> float:
        return tuning._judged(tuned, "cLPI", {**how, **settings})["value"]

    assert score(rate=rate) >= max(score(rate=other) for other in grid["rate"])
    assert score(rate=rate, tau=tau) >= max(score(rate=rate, tau=other) for other in grid["tau"])


def test_choices_are_stored_and_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MANYARMS_CACHE", str(tmp_path))
    made = logged_problem(seed=2, **WORLD)
    how: dict[str, Any] = {"epochs": 1, "batch": 64, "rate": 0.1, "start": "zero"}
    tuning._chosen.cache_clear()
    found = tuning.chosen(made, "IPS", how, {"rate": [0.1, 0.01]})
    assert len(list(tmp_path.glob("chosen-*.json"))) == 1
    tuning._chosen.cache_clear()
    monkeypatch.setattr(tuning, "_searched", lambda *_: pytest.fail("it was stored"))
    assert tuning.chosen(made, "IPS", how, {"rate": [0.1, 0.01]}) == found
    tuning._chosen.cache_clear()


def test_a_run_says_what_was_chosen_and_each_way_to_count_has_its_own() -> None:
    made = logged_problem(seed=2, **WORLD)
    how: dict[str, Any] = {
        "problem": made,
        "steps": 14,
        "seed": 0,
        "objective": "POTEC",
        "epochs": 2,
        "batch": 64,
        "rate": 0.1,
    }
    columns = train(tune={"ridge": [1.0, 100.0]}, **how)
    found = tuning.chosen(
        made, "POTEC",
        {"epochs": 2, "batch": 64, "rate": 0.1, "schedule": "constant", "optimiser": "adam", "space": "clusters",
         "weight": "heavy", "start": "zero"},
        {"ridge": [1.0, 100.0]},
    )  # fmt: skip
    assert columns["chosen_ridge"] == found["value"]["ridge"] and columns["mode_chosen_ridge"] == found[MODE]["ridge"]
    for metric, ridge in ((MODE, found[MODE]["ridge"]), ("value", found["value"]["ridge"])):
        by_hand = train(ridge=ridge, **how)
        np.testing.assert_allclose(np.asarray(columns[metric]), np.asarray(by_hand[metric]))


def test_what_is_fixed_by_a_panel_is_not_chosen() -> None:
    assert tuning.grid_for("cLPI", [0.1, 1.0]) == {"rate": [0.1, 1.0], "tau": [0.001, 0.01, 0.1]}
    assert tuning.grid_for("cLPI", [0.1, 1.0], fixed=["tau"]) == {"rate": [0.1, 1.0]}
    assert tuning.grid_for("IPS", [0.1], fixed=[]) == {}
    assert tuning.grid_for("DR", [0.1, 1.0], fixed=["rate"]) == {"ridge": [1.0, 10.0, 100.0, 1_000.0]}


def test_a_radius_has_the_neighbours_that_it_promises() -> None:
    made = logged_problem(seed=0, **WORLD)
    beta = np.asarray(made.embeddings, dtype=np.float64)
    for wanted in (2.0, 10.0, 50.0):
        near = np.linalg.norm(beta[made.log.actions[:200]][:, None] - beta[None], axis=2) <= radius_of(made, wanted)
        assert near.sum(axis=1).mean() == pytest.approx(wanted, rel=0.1)
    assert radius_of(made, None) == 0.1


def test_random_starts() -> None:
    made = logged_problem(seed=0, **WORLD)
    beta = np.asarray(policy_of(made, start="random", seed=3).actions)
    assert beta.std() == pytest.approx(SIGMA, rel=0.05) and not np.array_equal(
        beta,
        np.asarray(policy_of(made, start="random", seed=4).actions),
    )


@pytest.mark.parametrize(
    ("runs", "A", "B", "E"), [(2, 1, 0, 0.1), (3, 1, 1, 1), (3, 0, 1, 0.1), (5, 1, 30, 1), (5, 0, 0, 1)]
)
def test_errors_cover_runs_and_test_users(runs: int, A: float, B: float, E: float) -> None:
    """With runs alone an interval covers in 29 to 51 % of all cases where test users differ and runs do not."""
    rng, covered, trials = np.random.default_rng(1), 0, 400
    for _ in range(trials):
        D = np.sqrt(A) * rng.standard_normal((runs, 1)) + np.sqrt(B) * rng.standard_normal((1, 30))
        found = two_way(D + np.sqrt(E) * rng.standard_normal((runs, 30)))
        covered += abs(found.mean) <= standard_errors(found.degrees) * found.standard_error
    # 0.9545 is asked for; four standard errors of 400 trials are 0.042
    assert covered / trials >= 0.9545 - 0.042


def test_two_way_errors_by_hand() -> None:
    D = np.array([[1.0, 2.0, 6.0], [3.0, 4.0, 5.0]])
    rows, columns = D.mean(axis=1), D.mean(axis=0)
    ms_runs = 3 * ((rows - D.mean()) ** 2).sum() / 1
    ms_groups = 2 * ((columns - D.mean()) ** 2).sum() / 2
    rest = D - rows[:, None] - columns + D.mean()
    ms_rest = (rest**2).sum() / 2
    found = two_way(D)
    assert found.mean == pytest.approx(3.5)
    assert found.standard_error**2 == pytest.approx(max(ms_runs + ms_groups - ms_rest, ms_runs, ms_groups) / 6)
    assert 1 <= found.degrees <= 2
    assert np.isnan(two_way(D[:1]).standard_error) and not two_way(D[:1]).above_zero
    # the jackknife of a mean is its usual error
    values = np.array([1.0, 2.0, 6.0])
    without = [float(np.delete(values, g).mean()) for g in range(3)]
    usual = values.std(ddof=1) / np.sqrt(3)
    assert with_groups_left_out(Measured(0.0, 0.0, 4), without).standard_error == pytest.approx(usual)


def test_differences_use_the_groups_that_runs_kept() -> None:
    cells = [Cell("p", {"data": MADE_UP}, Call(dict), {"a": Call(dict), "b": Call(dict)}, 1, 3, solve)]
    rng = np.random.default_rng(0)
    users = rng.standard_normal(
        30
    )  # the same test users in all runs: what they add to a value drops out of a difference
    rows = {
        ("p", agent, r): {"value": np.array(v := rng.normal(level, 0.01)), "value_by_group": v + users}
        for agent, level in (("a", 2.0), ("b", 1.0)) for r in range(3)
    }  # fmt: skip
    results = Results("x", "smoke", cells, rows)
    assert lead(results, "p", "a", "b").standard_error < 0.02
    assert between(results, ("p", "a"), None).standard_error == pytest.approx(users.std(ddof=1) / np.sqrt(30), rel=0.05)


def test_groups_of_users_are_the_same_in_every_run() -> None:
    each = np.arange(90.0)
    np.testing.assert_array_equal(by_group(each), by_group(each))
    assert by_group(each).mean() == pytest.approx(each.mean()) and len(by_group(each)) == 30
    assert len(by_group(np.arange(7.0))) == 7


def test_what_never_leaves_its_start_or_ends_below_the_logging_policy_has_collapsed() -> None:
    made = logged_problem(seed=2, **WORLD)
    how: dict[str, Any] = {"problem": made, "steps": 28, "seed": 0, "objective": "cLPI", "epochs": 4, "batch": 64}
    still, moving = train(rate=1e-9, **how), train(rate=0.1, **how)
    assert still["collapsed"] == 1 and still["mode_collapsed"] == 1  # uniform play is worse than the logging policy
    assert moving["collapsed"] == float(np.asarray(moving["value"])[-1] < float(np.asarray(moving["logging_value"])))
    # above the logging policy, and still where it started
    course = Course(
        made, made.log, {"objective": "IPS", "epochs": 1, "batch": 64, "rate": 1e-9, "start": "logging"}, False
    )
    course.go(0, False)
    assert course.collapsed("value", -1.0) and course.collapsed(MODE, -1.0)
    far = Course(made, made.log, {"objective": "IPS", "epochs": 4, "batch": 64, "rate": 0.3, "start": "zero"}, False)
    far.go(0, False)
    assert made.moved(far.first, far.learned.policy) > 0.05 and not far.collapsed("value", -1.0)


def test_what_collapsed_is_not_steady() -> None:
    names = ("flat", "fine")
    cells = [Cell(f"p{i}", {"data": MADE_UP}, Call(dict), {n: Call(dict) for n in names}, 1, 3, solve) for i in (0, 1)]
    rows: dict[tuple[str, str, int], Any] = {}
    for i in (0, 1):
        for r in range(3):
            for name, value, gone in (("flat", 0.001, 1.0), ("fine", 0.5 - 0.1 * i + 0.001 * r, 0.0)):
                flags = dict.fromkeys(COLLAPSED.values(), np.array(gone))
                rows[f"p{i}", name, r] = {"value": np.array(value), MODE: np.array(value), **flags}
    both = Compared(Results("x", "smoke", cells, rows), ["p0", "p1"])
    np.testing.assert_allclose(both.spread("flat"), 1.0)
    made = both.steadier(["fine"], ["flat"], "fine is steady", "2307")
    assert made.holds and "collapsed" in made.detail and "flat 6" in made.detail


@pytest.mark.parametrize("gone", [[1.0, 1.0, 1.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
def test_what_collapsed_in_every_run_is_ahead_of_nothing(gone: list[float]) -> None:
    """Of two policies that lost everything one is above the other by chance, or by what its start was worth."""
    cells = [Cell("p", {"data": MADE_UP}, Call(dict), {"better": Call(dict), "worse": Call(dict)}, 1, 3, solve)]
    rows: dict[tuple[str, str, int], Any] = {}
    rng = np.random.default_rng(0)
    for r, flag in enumerate(gone):
        for name, level in (("better", 0.02), ("worse", 0.01)):
            groups = level + 0.0001 * rng.standard_normal(10)
            rows["p", name, r] = {
                "value": np.array(groups.mean()), f"value{BY_GROUP}": groups, "collapsed": np.array(flag),
            }  # fmt: skip
    on = Compared(Results("x", "smoke", cells, rows), ["p"])
    made = on.ahead("better", ["worse"], "it is better", "2307")
    assert made.holds is not all(gone) and ("ahead of nothing" in made.detail) is all(gone)
    assert made.of_each and Claim.of_plain(made.plain()) == made
    behind = on.ahead("worse", ["better"], "it is better", "2307")  # nothing is taken off what it is behind by
    assert behind.verdict == "refuted" and behind.figure == pytest.approx(-0.01, abs=1e-4)
    # the difference itself can still be asked for
    assert lead(on.results, "p", "better", "worse").mean == pytest.approx(0.01, abs=1e-4)


def test_short_contexts_have_the_same_rewards() -> None:
    one, other = (GeneratedCatalogue(400, 8, rank=4, k0=20, test=50, seed=1, length=length) for length in (None, 0.04))
    np.testing.assert_allclose(other.test_contexts * np.sqrt(8) / 0.04, one.test_contexts)
    ids = np.tile(np.arange(400), (50, 1))
    np.testing.assert_allclose(
        other.mean_reward(other.test_contexts, ids), one.mean_reward(one.test_contexts, ids), rtol=1e-5
    )
    assert np.linalg.norm(other.test_contexts, axis=1).mean() == pytest.approx(0.04, rel=0.1)


def test_settings_for_a_catalogue_are_judged_at_contexts_that_no_log_has() -> None:
    """With the log's own seed, contexts differ from those of the log in their kind alone."""
    made = logged_problem(seed=2, data="catalogue", actions=30, dim=5, rank=2, k0=10, rows=300, clusters=3)
    judges, logged = made._contexts("validation"), made.for_tuning().log.contexts
    gap = judges[:300, None, 1:] - logged[None, :, 1:]
    kinds = made.world._kinds  # type: ignore[union-attr]
    between = np.sqrt(1 - WITHIN_KIND) * (kinds[:, None] - kinds[None]).reshape(-1, 4)
    same = np.abs(gap[np.arange(300), np.arange(300)][:, None] - between).max(axis=2).min(axis=1)
    assert (same > 1e-9).all() and (np.abs(gap).max(axis=2) > 1e-9).all()


def test_a_setting_that_diverged_is_never_chosen() -> None:
    assert tuning._largest({0.5: float("nan"), 0.1: 0.2, 0.01: 0.2}) == 0.1
    assert tuning._largest({0.1: 0.2, 0.5: float("nan")}) == 0.1


@pytest.mark.parametrize(
    ("peak", "carried", "found", "tried"),
    [
        (1.0, 3, 1.0, [0.1, 1.0, 10.0]),  # inside: nothing more is tried
        (100.0, 3, 100.0, [0.1, 1.0, 10.0, 100.0, 1000.0]),
        (0.01, 3, 0.01, [0.001, 0.01, 0.1, 1.0, 10.0]),
        (1e9, 2, 1e3, [0.1, 1.0, 10.0, 100.0, 1000.0]),  # not for ever
        (1e9, 0, 10.0, [0.1, 1.0, 10.0]),
    ],
)
def test_a_best_at_the_end_of_a_grid_is_looked_for_beyond_it(
    peak: float, carried: int, found: float, tried: list[float]
) -> None:
    asked: list[float] = []

    def score(value: float) -> float:
        asked.append(value)
        return -abs(np.log(value / peak))

    assert tuning.best_of([0.1, 1.0, 10.0], score, carried) == pytest.approx(found)
    assert sorted(asked) == pytest.approx(tried)


def test_speeds_have_the_errors_of_runs_and_of_test_users() -> None:
    """Shares after one epoch, a ratio of means over users: users that differ add to the error, users that are alike do not."""
    made = logged_problem(seed=2, **WORLD)
    out = train(
        problem=made, steps=14, seed=1, objective="cLPI", epochs=2, batch=64, rate=0.1, start="zero", curve=True
    )
    for metric in ("value", MODE):
        first = np.asarray(out[f"{metric}{AFTER_ONE}{BY_GROUP}"])
        # groups are of equal size but for one user
        assert first.shape == np.shape(out[f"{metric}{BY_GROUP}"])
        assert first.mean() == pytest.approx(np.asarray(out[metric])[1], rel=0.05, abs=1e-3)

    rng = np.random.default_rng(0)

    def shares(spread: float) -> tuple[Measured, Measured]:
        rows = {}
        for method, share in (("cIPS", 0.8), ("cLPI", 0.5)):
            for run in range(3):
                last = 1.0 + spread * rng.standard_normal(30)
                early = share * last + spread * rng.standard_normal(30) + 0.01 * rng.standard_normal()
                rows["p", method, run] = {
                    "value": np.array([0.0, early.mean(), last.mean()]),
                    f"value{BY_GROUP}": last,
                    f"value{AFTER_ONE}{BY_GROUP}": early,
                }
        cell = Cell("p", {}, Call(dict), {"cIPS": Call(dict), "cLPI": Call(dict)}, 1, 3, solve)
        results = Results("x", "smoke", [cell], rows)
        ends = {name: small.after_one_epoch(results, "p", name, "value") for name in cell.methods}
        by_runs = measured(ends["cIPS"] - ends["cLPI"])
        return small._with_users(results, "p", ("cIPS", "cLPI"), "value", by_runs), by_runs

    alike, runs_alone = shares(0.0)
    assert alike == Measured(runs_alone.mean, pytest.approx(runs_alone.standard_error, rel=1e-9), runs_alone.degrees)
    mixed, runs_alone = shares(0.2)
    # 30 groups of 3 runs and two methods whose shares differ by about 0.2 sqrt(1 + share^2) each
    users = 0.2 * np.sqrt((1 + 0.8**2 + 1 + 0.5**2) / 90)
    assert mixed.mean == runs_alone.mean
    assert 0.6 < np.sqrt(mixed.standard_error**2 - runs_alone.standard_error**2) / users < 1.6
