"""Propensities computed behind the decisions: the same numbers, whoever computes them and whenever."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from live.making import DIM, Clock, X, a_live, an_agent, mixed
from manyarms.live import Live, snapshots
from manyarms.live.propensities import PropensityWorker
from manyarms.policies import UniformPolicy


def computed(live: Live) -> dict[int, tuple[Any, ...]]:
    return {row[0]: row[1:] for row in live.database.read("SELECT * FROM propensities ORDER BY decision")}


def play(live: Live, inline: bool = False) -> list[str]:
    events = []
    rng = np.random.default_rng(4)
    for i in range(4):
        for j, x in enumerate(rng.standard_normal((3, DIM))):
            options: dict[str, Any] = [{}, {"k": 2, "exclude": [1]}, {"candidates": [0, 2, 3], "unit": "u"}][j]
            events.append(live.decide(x, id=f"e{i}{j}", propensity=inline, **options).id)
            live.reward(events[-1], float(x[0]))
        live.learn()
    return events


@pytest.mark.parametrize("make", [lambda: an_agent(5), lambda: mixed(5)])
def test_inline_and_behind_are_the_same_numbers(make: Any, tmp_path: Path) -> None:
    clock = Clock()
    now = a_live(make(), clock, tmp_path / "now.db")
    events = play(now, inline=True)
    behind = a_live(make(), clock, tmp_path / "behind.db")
    play(behind)
    assert PropensityWorker(behind.database).work(share=False) == len(events)
    assert PropensityWorker(behind.database).work(share=False) == 0
    assert PropensityWorker(now.database).work(share=False) == 0
    found = computed(behind)
    for event in events:
        a, b = now.event(event), behind.event(event)
        assert (a.actions, a.draw) == (b.actions, b.draw)
        propensity, given, inclusion, error, draws = found[b.position]
        assert (propensity, given, inclusion) == (a.propensity, a.arm_propensity, a.inclusion)
        assert propensity > 0 and inclusion >= propensity and error >= 0 and draws > 0
        assert a.propensity_kind == "estimated"
    # after reopening, from a snapshot half way, all over again
    now.close()
    behind.database.do(lambda tx: tx.execute("DELETE FROM propensities"))
    behind.database.do(lambda tx: tx.execute("DELETE FROM meta WHERE name = 'propensities_upto'"))
    snapshots.write(behind.database, snapshots.state_of(behind.database, 2))
    behind.close()
    with a_live(None, clock, tmp_path / "behind.db") as again:
        PropensityWorker(again.database).work(share=False)
        assert computed(again) == found


def test_exact_ones_are_there_at_once() -> None:
    live = a_live(an_agent(5, kind="epsilon"))
    live.add_arm("even", UniformPolicy(5))
    live.deploy({"agent": 0.5, "even": 0.5})
    d = live.decide(X)
    assert d.propensity is not None and d.propensity_kind == "exact" == live.event(d.id).propensity_kind
    assert PropensityWorker(live.database).work(share=False) == 0 and computed(live) == {}
    live.close()
