"""The catalogue changes for all arms alike, and actions that were taken often enough rest."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import manyarms as ma
from live.making import DIM, Clock, X, a_live, agent_of, an_agent, contexts, from_origin, same_belief
from manyarms.errors import InvalidInput, LiveError
from manyarms.live import packing
from manyarms.live.arms import without
from manyarms.live.joining import an_arm
from manyarms.live.records import Question
from manyarms.policies import FixedPolicy, UniformPolicy

ALL = range(6)


# ---- the catalogue


def test_actions_come_and_go_for_all_arms_at_once() -> None:
    live = a_live()
    live.add_arm("b", an_agent(seed=3))
    live.add_arm("even", UniformPolicy(6))
    assert live.add_actions(2) == [6, 7]
    live.retire([0, 6])
    late = an_agent(actions=8, seed=9)
    late.retire([1])
    live.add_arm("late", late)
    for name in ("agent", "b", "late"):
        assert agent_of(live, name).belief.catalogue.retired == {0, 6}
        assert agent_of(live, name).belief.catalogue.size == 8
    live.deploy({"agent": 0.25, "b": 0.25, "even": 0.25, "late": 0.25})
    taken = {live.decide(x).action for x in contexts(60)}
    assert not taken & {0, 6} and 1 in taken
    refused = live.status()["operations_refused"]
    for call in (lambda: live.retire([1, 0]), lambda: live.reinstate([0, 1]), lambda: live.retire([99])):
        with pytest.raises(LiveError):
            call()
    state = packing.unpack_state(live.state_bytes())
    assert all(set(arm.retired) == {0, 6} for arm in state.arms.values())
    assert live.status()["operations_refused"] == refused + 3
    live.reinstate(6)
    state = packing.unpack_state(live.state_bytes())
    assert all(set(arm.retired) == {0} for arm in state.arms.values())
    assert from_origin(live) == live.state_bytes()
    live.close()


def test_what_one_arm_refuses_changes_none() -> None:
    live = a_live()
    world = ma.worlds.MixedEffect(6, 3, DIM, seed=1)
    live.add_arm("mixed", ma.meTS(world.prior(), seed=0))
    with pytest.raises(LiveError):
        live.add_actions(1)  # the second needs weights
    assert [agent_of(live, name).belief.catalogue.size for name in ("agent", "mixed")] == [6, 6]
    assert live.add_actions(weights=[[0.2, 0.3, 0.5]]) == [6]
    assert [agent_of(live, name).belief.catalogue.size for name in ("agent", "mixed")] == [7, 7]
    live.close()


def test_arms_that_do_not_fit() -> None:
    live = a_live()
    wide = ma.LinTS(ma.ActionPrior(6, np.zeros(3), np.eye(3)), seed=0)
    for arm in (wide, an_agent(actions=5), an_agent(actions=7), UniformPolicy(7)):
        with pytest.raises(LiveError):
            live.add_arm("b", arm)
    live.add_arm("few", UniformPolicy(4))
    for bad in (None, 5, "agent", UniformPolicy, object()):
        with pytest.raises(InvalidInput):
            live.add_arm("b", bad)  # type: ignore[arg-type]
    for name in ("few", "baseline", "", 3):
        with pytest.raises(InvalidInput):
            live.add_arm(name, an_agent())  # type: ignore[arg-type]
    assert live.status()["arms"] == ["agent", "few"]
    live.close()


def test_a_row_decided_by_a_process_that_did_not_know_the_arm_harms_nobody(tmp_path: Path) -> None:
    live = a_live(UniformPolicy(6), path=tmp_path / "a.db")
    behind = a_live(path=tmp_path / "a.db", agent=UniformPolicy(6), learner=False)
    live.add_arm("agent 2", an_agent())
    wrong = behind.decide([1.0, 2.0, 3.0])
    right = behind.decide(X)
    live.reward(wrong.id, 1.0)
    live.reward(right.id, 1.0)
    live.sync()
    reference = an_agent()
    reference.observe(X, right.action, 1.0)
    same_belief(agent_of(live, "agent 2"), reference)
    assert live.status()["rows_refused"] == 1
    behind.close()
    live.close()


# ---- caps


def test_actions_rest_and_come_back() -> None:
    clock = Clock()
    live = a_live(an_agent(kind="greedy"), clock)
    live.cap(3, window=100.0)
    favourite = live.decide(X).action
    for _ in range(2):
        assert live.decide(X).action == favourite
    live.learn()
    assert live.status()["capped"] == [favourite]
    second = live.decide(X)
    assert second.action != favourite and second.propensity == 1.0
    assert live.decide(X, candidates=[favourite]).action == favourite  # nothing else was asked for
    assert from_origin(live) == live.state_bytes()
    clock.now += 106.0  # the window, and a twentieth of it
    live.decide(X, candidates=[5])
    live.learn()
    assert live.status()["capped"] == [] and live.decide(X).action == favourite
    live.cap(None)
    assert from_origin(live) == live.state_bytes()
    live.close()


def test_caps_never_leave_too_little() -> None:
    live = a_live(an_agent(kind="uniform"))
    live.add_arm("even", UniformPolicy(6))
    live.deploy({"agent": 0.5, "even": 0.5})
    live.cap(1, actions=[0, 1, 2, 3, 4, 5])
    for a in ALL:
        live.decide(X, candidates=[a])
    live.learn()
    assert live.status()["capped"] == [*ALL]
    for i in range(8):
        assert live.decide(X, unit=str(i)).propensity == pytest.approx(1 / 6)
    live.close()
    live = a_live(an_agent(kind="uniform"))
    live.cap(1)
    live.decide(X, k=4)
    live.learn()
    assert len(live.status()["capped"]) == 4
    assert len(set(live.decide(X, k=3).actions)) == 3  # two are left: the cap gives way
    assert set(live.decide(X, k=2).actions).isdisjoint(live.status()["capped"])
    live.close()


def test_a_cap_on_some() -> None:
    live = a_live(an_agent(kind="uniform"))
    live.cap(1, actions=[0, 1])
    live.cap(2, actions=[2])
    for a in (0, 2, 3, 3):
        live.decide(X, candidates=[a])
    live.learn()
    assert live.status()["capped"] == [0]
    live.decide(X, candidates=[2])
    live.cap(None, actions=[1, 0])
    assert live.status()["capped"] == [2]
    live.close()


def test_capped_questions_are_asked_of_each_arm_as_far_as_it_can_do_without() -> None:
    fixed = an_arm("arm", FixedPolicy([1.0, 0.0, 0.0])).view()
    even = an_arm("arm", UniformPolicy(3)).view()
    asked = Question(X)
    assert without(asked, frozenset({0}), fixed) is asked
    assert without(asked, frozenset({0}), even).exclude == [0]


@pytest.mark.parametrize("name", ["weights", "covariance"])
def test_what_no_agent_knows_its_actions_by_is_refused(name: str) -> None:
    live = a_live()
    with pytest.raises(LiveError, match=name):
        live.add_actions(1, **{name: [[0.5, 0.5]]})
    assert live.add_actions(1) == [6]
    live.close()
