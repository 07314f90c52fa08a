"""The simulation adds up the world's own regret, whatever the chunks."""

from __future__ import annotations

import numpy as np
import pytest

import manyarms as ma
from manyarms.errors import InvalidInput
from manyarms.worlds import simulate
from manyarms.worlds.simulation import checkpoints_of


def a_world() -> ma.worlds.MixedEffect:
    return ma.worlds.MixedEffect(actions=12, effects=2, dim=3, seed=4)


def test_regret_is_the_worlds_regret_of_the_chosen_actions() -> None:
    world = a_world()
    run = simulate(world, ma.meTS(world.prior(), seed=1), 40)
    world, total, curve = a_world(), 0.0, []
    agent = ma.meTS(world.prior(), seed=1)
    for x in world.contexts(40):
        a = agent.decide(x)
        agent.observe(x, a, world.reward(x, a))
        total += float(world.regret(x, a))
        curve.append(total)
    np.testing.assert_allclose(run.regret, np.array(curve)[run.rounds - 1])
    assert run.milliseconds_a_round > 0


def test_chunks_do_not_matter() -> None:
    runs = []
    for chunk in (7, 1000):
        world = a_world()
        runs.append(simulate(world, ma.meTS(world.prior(), seed=1), 30, chunk=chunk))
    np.testing.assert_allclose(runs[0].regret, runs[1].regret)


def test_progress_is_told_after_each_chunk() -> None:
    world, heard = a_world(), []
    run = simulate(world, ma.meTS(world.prior(), seed=1), 25, chunk=10, progress=lambda n, r: heard.append((n, r)))
    assert [n for n, _ in heard] == [10, 20, 25]
    assert heard[-1][1] == pytest.approx(run.regret[-1])


@pytest.mark.parametrize("rounds", [1, 2, 99, 100, 101, 5_000])
def test_checkpoints_rise_to_the_last_round(rounds: int) -> None:
    marks = checkpoints_of(rounds)
    assert marks[-1] == rounds
    assert marks[0] >= 1
    assert (np.diff(marks) > 0).all()
    assert len(marks) <= 100


def test_no_rounds_are_refused() -> None:
    with pytest.raises(InvalidInput, match="rounds"):
        simulate(a_world(), ma.meTS(a_world().prior()), 0)


def offered(action_contexts: bool, candidates: int | None, chunk: int = 1000) -> ma.worlds.OnlineRun:
    world = a_world()
    agent = ma.meTS(world.prior(), seed=1)
    return simulate(world, agent, 30, action_contexts=action_contexts, candidates=candidates, chunk=chunk)


@pytest.mark.parametrize("candidates", [None, 5])
def test_regret_of_contexts_per_action_is_that_of_the_best_row(candidates: int | None) -> None:
    world, total = a_world(), 0.0
    agent = ma.meTS(world.prior(), seed=1)
    for _ in range(30):
        ids = np.arange(12) if candidates is None else np.sort(world.candidates(candidates))
        Z = world.contexts(len(ids))
        a = agent.decide(action_contexts=Z, candidates=ids)
        assert isinstance(a, int)
        z = Z[ids.tolist().index(a)]
        agent.observe(z, a, world.reward(z, a))
        scores = (Z * world.theta[ids]).sum(axis=1)
        total += float(scores.max() - z @ world.theta[a])
    assert offered(True, candidates).regret[-1] == pytest.approx(total)
    np.testing.assert_allclose(offered(True, candidates, chunk=7).regret, offered(True, candidates).regret)


def test_candidates_with_one_context_for_all() -> None:
    run = offered(False, 5)
    assert (np.diff(run.regret) >= 0).all()
    world = a_world()
    everybody = simulate(world, ma.meTS(world.prior(), seed=1), 30, candidates=12)
    assert everybody.regret[-1] > 0
    draws = np.concatenate([world.candidates(5) for _ in range(2000)])
    counts = np.bincount(draws, minlength=12)
    assert np.abs(counts - 5 * 2000 / 12).max() < 6 * np.sqrt(2000 * 5 / 12)


def test_an_agent_that_knows_the_truth_has_no_regret_in_either_scheme() -> None:
    world = a_world()

    class Oracle:
        def decide(self, x: object = None, *, action_contexts: object = None, candidates: object = None) -> int:
            ids = np.arange(12) if candidates is None else np.asarray(candidates)
            Z = np.asarray(x if action_contexts is None else action_contexts)
            return int(ids[np.argmax((Z * world.theta[ids]).sum(axis=1))])

        def observe(self, x: object, a: object, r: object) -> None:
            pass

    for action_contexts in (False, True):
        for candidates in (None, 4):
            run = simulate(world, Oracle(), 20, action_contexts=action_contexts, candidates=candidates)
            assert run.regret[-1] == pytest.approx(0, abs=1e-12)


def test_too_many_candidates_and_worlds_without_any_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r"candidates: .*at most 12"):
        offered(True, 13)
    with pytest.raises(InvalidInput, match=r"number: .*at most 12"):
        a_world().candidates(13)
    with pytest.raises(InvalidInput, match="action_contexts"):
        offered("yes", None)  # type: ignore[arg-type]

    class Bare:
        def contexts(self, n: int) -> np.ndarray:
            return np.zeros((n, 3))

        def reward(self, x: object, a: object) -> float:
            return 0.0

        def regret(self, X: object, A: object) -> np.ndarray:
            return np.zeros(1)

    with pytest.raises(InvalidInput, match="world"):
        simulate(Bare(), ma.meTS(a_world().prior()), 5, candidates=3)
