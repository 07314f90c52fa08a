"""Another share of exploration: other propensities from then on, and the same belief."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import manyarms as ma
from live.making import (
    DIM,
    Clock,
    X,
    a_live,
    agent_of,
    an_agent,
    contexts,
    from_every_snapshot,
    from_origin,
    same_belief,
)
from live.small_store import quick_disk as quick_disk
from manyarms.agents import Agent, Ensemble, EpsilonGreedy, EpsilonMixed, Greedy
from manyarms.agents.decisions import DECISIONS
from manyarms.errors import InvalidInput, LiveError
from manyarms.live.replaying import replay
from manyarms.policies import UniformPolicy

K = 5


def with_rule(rule: Any, seed: int = 0) -> Agent:
    prior = ma.ActionPrior(K, np.zeros(DIM), np.eye(DIM))
    return Agent(ma.beliefs.belief_of(prior, ma.beliefs.Linear()), rule, seed=seed)


@pytest.mark.parametrize("rule", [EpsilonGreedy(0.25), EpsilonMixed(Greedy(), 0.25), Ensemble(8, 0.25)])
def test_propensities_are_by_the_share_that_held(rule: Any, tmp_path: Path) -> None:
    clock = Clock()
    live = a_live(with_rule(rule), clock, tmp_path / "a.db", default=0.0, wait=10.0)
    learned = with_rule(rule)
    made: list[tuple[str, float]] = []
    for epsilon in (None, 1.0, 0.5, 0.0):
        if epsilon is not None:
            live.explore(epsilon)
        for x in contexts(6):
            d = live.decide(x)
            made.append((d.id, 0.25 if epsilon is None else epsilon))
            live.reward(d.id, float(x[0]))
            learned.observe(x, d.action, float(x[0]))
            assert d.propensity is not None and d.propensity_kind == "exact"
            if epsilon == 1.0:
                assert d.propensity == pytest.approx(1 / K, rel=1e-12)
            if epsilon == 0.0 and not isinstance(rule, Ensemble):
                assert d.propensity == 1.0
            if epsilon in (0.5, None):
                assert d.propensity >= (0.25 if epsilon is None else epsilon) / K
        live.learn()
        live.snapshot()
    same_belief(agent_of(live), learned)
    assert agent_of(live).decision.epsilon == 0.0 and type(agent_of(live).decision) is type(rule)  # type: ignore[attr-defined]
    mine = live.state_bytes()
    assert from_origin(live) == mine and set(from_every_snapshot(live)) == {mine}
    found = replay(live.database)
    assert found.ok and found.decisions == 24, str(found)
    live.erase(made[0][0])  # folded again from the beginning
    assert from_origin(live) == live.state_bytes()
    live.close()
    with a_live(None, clock, tmp_path / "a.db") as again:
        assert again.explore(0.75) is None
        assert agent_of(again).decision.epsilon == 0.75  # type: ignore[attr-defined]


def test_the_champion_or_an_arm_by_its_name() -> None:
    live = a_live(with_rule(EpsilonGreedy(0.1)))
    live.add_arm("other", with_rule(EpsilonGreedy(0.1), 1))
    live.explore(0.5, arm="other")
    assert [agent_of(live, name).decision.epsilon for name in ("agent", "other")] == [0.1, 0.5]  # type: ignore[attr-defined]
    live.deploy({"agent": 0.3, "other": 0.7})
    live.explore(0.9)
    assert [agent_of(live, name).decision.epsilon for name in ("agent", "other")] == [0.1, 0.9]  # type: ignore[attr-defined]
    live.close()


@pytest.mark.parametrize("kind", [name for name in DECISIONS if not hasattr(DECISIONS[name], "epsilon")])
def test_rules_without_such_a_share_are_refused_by_name(kind: str) -> None:
    live = a_live(with_rule(DECISIONS[kind]()))
    position = live.database.read("SELECT position FROM counter")
    with pytest.raises(InvalidInput, match=f"decides by {kind}"):
        live.explore(0.5)
    assert live.database.read("SELECT position FROM counter") == position
    with pytest.raises(LiveError, match=f"decides by {kind}"):  # by the log, too
        live._operate("explore", {"name": "agent", "epsilon": 0.5})
    live.close()


def test_what_else_is_refused() -> None:
    live = a_live(with_rule(EpsilonGreedy(0.1)))
    live.add_arm("even", UniformPolicy(K))
    position = live.database.read("SELECT position FROM counter")
    for wrong in (-0.1, 1.1, float("nan"), None, "x", True):
        with pytest.raises(InvalidInput, match="epsilon"):
            live.explore(wrong)  # type: ignore[arg-type]
    for arm in ("nobody", "", 3):
        with pytest.raises(InvalidInput, match="arm"):
            live.explore(0.5, arm=arm)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="even, which is a policy"):
        live.explore(0.5, arm="even")
    with pytest.raises(InvalidInput, match="baseline"):
        live.explore(0.5, arm="baseline")
    assert live.database.read("SELECT position FROM counter") == position
    for body in ({"name": "even", "epsilon": 0.5}, {"name": "gone", "epsilon": 0.5}, {"name": "agent", "epsilon": 2.0}):
        with pytest.raises(LiveError):
            live._operate("explore", body)
    live.deploy("baseline")
    with pytest.raises(InvalidInput, match="what the application would do"):
        live.explore(0.5)
    live.close()


def test_the_agent_that_was_given_keeps_its_own() -> None:
    agent = an_agent(kind="epsilon")
    live = a_live(agent)
    live.explore(0.5)
    live.decide(X)
    assert agent.decision == EpsilonGreedy(0.25)
    live.close()
