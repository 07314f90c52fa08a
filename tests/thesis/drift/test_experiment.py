"""The experiment on drift: what every method is, what claims say of made-up results, and one small run of everything."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from manyarms._base.typing import AnyArray
from manyarms.worlds import Drifting, Sudden, Turnover, Wandering, simulate_drifting
from manyarms_thesis.catalogue import find
from manyarms_thesis.drift import agents
from manyarms_thesis.drift.choosing import with_more
from manyarms_thesis.drift.experiment import NO_DRIFT, changes_at, drifting_world, dynamic_regret
from manyarms_thesis.harness.pages import experiment_page
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import items_of

DRIFT = find("drift")


def made_up(levels: dict[str, float], other: float = 2.0, scale: str = "smoke") -> Results:
    """Regrets of about `levels` a round by method, `other` for everybody else."""
    cells, rng = DRIFT.cells(scale), np.random.default_rng(0)
    rows: dict[tuple[str, str, int | str], dict[str, AnyArray]] = {}
    for cell in cells:
        for method in cell.methods:
            for run in range(cell.runs):
                level = levels.get(method, other) * (1 + 0.001 * rng.standard_normal())
                columns: dict[str, Any] = {
                    "round": np.arange(1, 11), "regret_a_round": np.full(10, level), "regret": level * np.arange(1, 11),
                    "after_burn_in": level, "recovery": 100 * level if cell.panel == "sudden change" else np.nan,
                    "half_life": 2_000.0, "restarts": 0, "milliseconds_a_round": 0.1, "played": 3, "agent_bytes": 1_000,
                }  # fmt: skip
                rows[cell.panel, method, run] = {name: np.asarray(value) for name, value in columns.items()}
    return Results("drift", scale, cells, rows)


def test_panels_cover_every_kind_of_change_and_none() -> None:
    for scale in ("smoke", "quick", "paper"):
        kinds = [cell.parameters["kind"] for cell in DRIFT.cells(scale)]
        assert set(kinds) == {"arms", "wandering", "sudden", "seasons", "turnover", "none"}
    assert 1_000 in [cell.parameters["K"] for cell in DRIFT.cells("quick")]


def test_claims_follow_the_results(tmp_path: Path) -> None:
    good = made_up({agents.MODEL: 1.0, agents.CHOSEN: 1.0, agents.GRADIENT: 0.5, agents.SCALED: 1.0})
    claims = DRIFT.claims(good)
    assert all(made.holds for made in claims) and {made.thesis_lines for made in claims} == {""}
    bad = DRIFT.claims(made_up({agents.STATIC: 1.0, agents.STATIC_SCALED: 1.0, agents.GRADIENT: 3.0}))
    assert not any(made.holds for made in bad)
    paths = DRIFT.figures(good, tmp_path)
    assert len(paths) == 4 and all(one.path.with_suffix(".png").stat().st_size > 5_000 for one in paths)
    page = experiment_page(DRIFT, good, claims, paths, {})
    assert "no experiment of the thesis" in page and "nan" not in page.replace("nanosecond", "")


@pytest.mark.parametrize(("cost", "holds"), [(0.0, True), (0.04, True), (0.06, False), (0.2, False)])
def test_the_cost_without_drift_is_a_share_of_all_regret(cost: float, holds: bool) -> None:
    claims = DRIFT.claims(made_up({agents.STATIC: 1.0, agents.CHOSEN: 1.0 + cost}))
    (one,) = (made for made in claims if made.panel == NO_DRIFT)
    assert one.holds is holds and one.figure == pytest.approx(0.05 - cost, abs=0.005) and "2,000 (3 runs)" in one.detail


def test_every_method_plays_in_every_panel() -> None:
    seen = set()
    for item in items_of("drift", DRIFT.cells("smoke"), seed=0):
        kind = (item.cell.panel, item.method)
        if kind not in seen:
            seen.add(kind)
            columns = dynamic_regret(replace(item.run(0), rounds=24))
            assert (
                np.isfinite(np.asarray(columns["regret_a_round"])).all() and np.asarray(columns["after_burn_in"]) >= 0
            )
            assert np.isfinite(np.asarray(columns["recovery"])) == (item.cell.panel == "sudden change")
    assert len(seen) == sum(len(cell.methods) for cell in DRIFT.cells("smoke"))


def test_worlds_of_one_seed_are_the_same_for_all_methods_and_their_sizes_are_as_stated() -> None:
    arms = drifting_world(seed=0, kind="arms", actions=30, dim=1, at=50, rounds=100)
    assert arms.contexts(3).tolist() == [[1.0]] * 3 and arms.noise == 1 and arms.action_prior().covariance == 1
    sudden = drifting_world(seed=0, kind="sudden", actions=30, dim=2, at=1, rounds=100)
    assert sudden.changes == (Sudden(changes_at(100)),)
    turnover = drifting_world(seed=0, kind="turnover", actions=100, dim=2, at=400, rounds=100)
    (law,) = turnover.changes
    assert (law.every, law.number) == (20, 5)  # type: ignore[attr-defined]  # 100 actions live 400 rounds each on average
    assert drifting_world(seed=0, kind="none", actions=3, dim=2, at=0, rounds=9).changes == ()


def test_an_alarm_restarts_after_a_change_and_hardly_without_one() -> None:
    def restarts(changes: Any) -> int:
        world = Drifting(3, 2, changes=changes, noise=0.3, seed=4)
        agent = agents.restarting(world=world, rounds=600, seed=0, mean_time=10_000)
        simulate_drifting(world, agent, 600)
        return int(agent.restarts)

    assert restarts(Sudden([300])) >= 1 and restarts([]) == 0
    world = Drifting(3, 2, seed=4)
    agent = agents.restarting(world=world, rounds=100, seed=0, every=30)
    simulate_drifting(world, agent, 100)
    assert agent.restarts == 3 and agent.played <= 3


def test_the_half_life_chosen_is_short_where_it_is_short_and_long_where_nothing_drifts() -> None:
    """400 rounds with little noise leave no doubt of it: no lucky seed is needed."""
    for changes, least, most in (([Wandering(10)], 2, 50), ([], 400, np.inf)):
        world = Drifting(2, 1, changes=changes, noise=0.1, structure="independent", seed=1)
        agent = agents.choosing(world=world, rounds=500, seed=0, first=400)
        assert np.isnan(agent.half_life)
        simulate_drifting(world, agent, 420)
        assert least <= agent.half_life <= most


def test_until_it_has_chosen_it_plays_as_a_static_agent() -> None:
    def chosen(make: Any, **options: Any) -> np.ndarray:
        world = Drifting(8, 2, changes=[Wandering(10), Turnover(7, 2)], seed=1)
        agent = make(world=world, rounds=40, seed=5, **options)
        run = simulate_drifting(world, agent, 40)
        assert np.isfinite(run.regret).all()
        return run.chosen

    static, choosing = chosen(agents.agent, forgetting="static"), chosen(agents.choosing, first=30)
    np.testing.assert_array_equal(static[:30], choosing[:30])


@pytest.mark.parametrize("structure", ["mixed", "shared", "independent"])
def test_a_prior_with_more_actions_is_that_of_the_agent_that_added_them(structure: Any) -> None:
    world = Drifting(8, 2, structure=structure, changes=Turnover(1, 3), seed=1)
    prior = world.prior()
    news = world.advance()
    assert news is not None
    more = with_more(prior, weights=news.weights) if structure == "mixed" else with_more(prior, 3)
    covariance = np.broadcast_to(more.marginal().covariance, (11, 2, 2))
    np.testing.assert_allclose(covariance[8:], news.covariance)
    first = np.broadcast_to(prior.marginal().covariance, (8, 2, 2))
    np.testing.assert_allclose(covariance[:8], first)
