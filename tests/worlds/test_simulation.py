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
