"""Decisions: the same again for the same id, repeatable from their records, sticky, with known propensities."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from live.making import X, a_live, agent_of, an_agent, contexts, from_origin, same_belief
from manyarms.errors import Conflict, InvalidInput, LiveError, ManyArmsError
from manyarms.live import Deployment, Live, packing, snapshots
from manyarms.live.deciding import decided, propensities
from manyarms.live.records import Question
from manyarms.policies import SoftmaxPolicy, UniformPolicy

ALL = range(6)


def learned(live: Live) -> None:
    """Something to learn, learned."""
    for x in contexts(4):
        live.reward(live.decide(x).id, float(x[0]))
    live.sync()


# ---- ids


def test_the_same_id_and_question_give_the_same_decision_for_ever() -> None:
    live = a_live()
    d = live.decide(X, id="order 1", candidates=[0, 2, 4], exclude=[4], k=2, unit="u")
    learned(live)
    assert live.decide(X, id="order 1", candidates=[0, 2, 4], exclude=[4], k=2, unit="u") == d
    live.retire([2])  # what cannot be decided any more was decided before
    assert live.decide(X, id="order 1", candidates=[0, 2, 4], exclude=[4], k=2, unit="u") == d
    with pytest.raises(ManyArmsError):
        live.decide(X, id="order 2", candidates=[0, 2, 4])
    live.close()


@pytest.mark.parametrize(
    "other",
    [
        {"x": X + 1e-12}, {"candidates": [0, 2]}, {"candidates": [2, 0, 4]}, {"exclude": [3]}, {"exclude": None}, {"k": 1},
        {"k": None}, {"unit": "v"}, {"unit": None}, {"unit": ""}, {"x": None, "action_contexts": [X, X, X]},
    ],
)  # fmt: skip
def test_the_same_id_with_another_question_is_a_conflict(other: dict[str, Any]) -> None:
    live = a_live()
    asked = {"x": X, "candidates": [0, 2, 4], "exclude": [4], "k": 2, "unit": "u"}
    live.decide(id="order 1", **asked)
    with pytest.raises(InvalidInput if other.get("unit") == "" else Conflict):
        live.decide(id="order 1", **(asked | other))
    live.close()


def test_ids_are_made_where_none_are_given() -> None:
    live = a_live()
    assert len({live.decide(X).id for _ in range(50)}) == 50
    live.close()


@pytest.mark.parametrize("name", ["", 5, "x" * 257, "a\0b", "\ud800", None, b"a"])
def test_ids_that_are_none(name: Any) -> None:
    live = a_live()
    calls = [lambda: live.reward(name, 1.0), lambda: live.event(name), lambda: live.erase(name)]
    if name is not None:
        calls += [lambda: live.decide(X, id=name), lambda: live.decide(X, unit=name)]
    for call in calls:
        with pytest.raises(InvalidInput):
            call()
    assert live.learn() == 0
    live.close()


# ---- decisions made again


@pytest.mark.parametrize("kind", ["thompson", "epsilon", "uniform", "greedy"])
def test_a_decision_follows_from_its_record(kind: str) -> None:
    live = a_live(an_agent(kind=kind))
    events = []
    for _ in range(3):
        for x in contexts(3):
            events += [live.decide(x), live.decide(x, k=2, exclude=[0]), live.decide(x, unit="u", candidates=[1, 2, 3])]
        learned(live)
    for d in events:
        record = live.event(d.id)
        assert record.question is not None and tuple(record.actions) == d.actions
        state = snapshots.state_of(live.database, record.version)
        again = decided(state.view(), state.salt, record.question, record.id, record.unit, None, False)
        assert (again.actions, again.draw, again.arm) == (record.actions, record.draw, record.arm)
        assert again.propensity == record.propensity
        agent = state.arms["agent"].agent  # type: ignore[attr-defined]
        chosen = agent.decide(**record.question.arguments(), draw=record.draw)
        assert np.array_equal(np.atleast_1d(chosen), record.actions)
    live.close()


def test_a_unit_keeps_its_draw_as_long_as_nothing_is_learned() -> None:
    live = a_live()
    same = [live.event(live.decide(X, unit="anna").id) for _ in range(5)]
    assert len({record.draw for record in same}) == 1 and len({tuple(record.actions) for record in same}) == 1
    assert live.event(live.decide(X, unit="berta").id).draw != same[0].draw
    learned(live)
    assert live.event(live.decide(X, unit="anna").id).draw != same[0].draw
    assert len({live.event(live.decide(X).id).draw for _ in range(5)}) == 5
    live.close()


# ---- shares


def shares_of(live: Live, units: list[str]) -> dict[str, str]:
    return {unit: live.decide(X, unit=unit).arm for unit in units}


def test_units_move_only_to_arms_whose_share_has_grown() -> None:
    live = a_live()
    for name in ("b", "c", "d"):
        live.add_arm(name, an_agent(seed=3))
    units = [f"unit {i}" for i in range(300)]
    deployments: list[dict[str, float]] = [
        {"agent": 0.5, "b": 0.5},
        {"agent": 0.45, "b": 0.45, "c": 0.1},
        {"agent": 0.3, "b": 0.6, "c": 0.1},
        {"b": 0.8, "c": 0.2},
        {"b": 0.2, "c": 0.3, "d": 0.5},
    ]
    live.deploy(deployments[0])
    before = shares_of(live, units)
    learned(live)
    assert shares_of(live, units) == before  # over versions
    for old, new in itertools.pairwise(deployments):
        live.deploy(new)
        after = shares_of(live, units)
        for unit in units:
            a, b = before[unit], after[unit]
            assert a == b or new[b] * old[a] > old.get(b, 0.0) * new.get(a, 0.0)
        before = after
    live.close()


def test_shares_are_kept() -> None:
    shares = {"a": 0.1, "b": 0.6, "c": 0.3}
    n = 20_000
    found = Counter(Deployment(shares, 0.05, "a").route("salt", str(i)) for i in range(n))
    expected = {(name, False): 0.95 * share for name, share in shares.items()} | {("a", True): 0.05}
    assert set(found) == set(expected)
    for who, chance in expected.items():
        assert 2 * min(binom.cdf(found[who], n, chance), binom.sf(found[who] - 1, n, chance)) > 1e-6 / 4


def test_the_hold_out_is_permanent() -> None:
    live = a_live()
    live.add_arm("control", UniformPolicy(6))
    live.add_arm("b", an_agent(seed=3))
    units = [f"unit {i}" for i in range(60)]
    held = []
    for shares in ({"agent": 1.0}, {"b": 0.5, "agent": 0.5}, {"b": 1.0}):
        live.deploy(shares, holdout=0.3, holdout_arm="control")
        events = [live.event(live.decide(X, unit=unit).id) for unit in units]
        held.append([unit for unit, e in zip(units, events, strict=True) if e.details.get("held_out")])
        assert all((e.arm == "control") == bool(e.details.get("held_out")) for e in events)
    live.promote("agent")
    assert [u for u in units if live.decide(X, unit=u).arm == "control"] == held[0]
    assert held[0] == held[1] == held[2] and 0 < len(held[0]) < 60
    live.close()


@pytest.mark.parametrize(
    "filters",
    [{}, {"exclude": [0, 3]}, {"candidates": [1, 4, 5]}, {"candidates": [1, 4, 5], "exclude": [4]}],
)
def test_propensities_of_mixtures_sum_to_one(filters: dict[str, Any]) -> None:
    live = a_live(an_agent(kind="epsilon"))
    live.add_arm("even", an_agent(seed=3, kind="uniform"))
    live.add_arm("soft", SoftmaxPolicy(contexts(6, seed=8)))
    live.add_arm("best", an_agent(seed=4, kind="greedy"))
    live.deploy({"agent": 0.2, "even": 0.3, "soft": 0.5}, holdout=0.1, holdout_arm="best")
    learned(live)
    live.retire([5])
    if "candidates" in filters:
        filters = filters | {"candidates": [1, 4, 2]}
    allowed = [a for a in filters.get("candidates", range(5)) if a not in filters.get("exclude", [])]
    state = packing.unpack_state(live.state_bytes())
    view = state.view()
    laws = dict(zip(["agent", "even", "soft", "best"], [0.18, 0.27, 0.45, 0.1], strict=True))
    asked = Question(X, filters.get("candidates"), filters.get("exclude"))
    total = 0.0
    for action in ALL:
        record = decided(view, state.salt, asked, "e", None, None, False)
        object.__setattr__(record, "actions", [action])
        found = propensities(view, record)
        marginal = sum(share * view.arms[name].propensity(asked, action, 0).value for name, share in laws.items())
        assert found["propensity"] == pytest.approx(marginal, abs=1e-15)
        assert found["arm_propensity"] == view.arms[record.arm].propensity(asked, action, 0).value
        assert found["propensity_kind"] == "exact" and found["error"] == 0.0
        assert (found["propensity"] > 0) == (action in allowed)
        total += found["propensity"]
    assert total == pytest.approx(1.0, abs=1e-12)
    d = live.decide(X, **filters)
    assert d.propensity is not None and d.propensity_kind == "exact"
    live.close()


def test_one_estimated_arm_makes_the_mixture_estimated() -> None:
    live = a_live()
    live.add_arm("even", UniformPolicy(6))
    live.deploy({"agent": 0.5, "even": 0.5})
    d = live.decide(X)
    assert d.propensity is None and d.propensity_kind is None
    d = live.decide(X, propensity=True)
    assert d.propensity_kind == "estimated" and d.propensity is not None and d.propensity >= 0.5 / 6
    live.close()


# ---- shadows and baselines


def test_shadows_are_recorded_and_disturb_nothing() -> None:
    alone, watched = a_live(an_agent(seed=1)), a_live(an_agent(seed=1))
    watched.add_arm("even", an_agent(seed=3, kind="uniform"))
    watched.add_arm("soft", SoftmaxPolicy(contexts(6, seed=8)))
    watched.deploy("agent", shadows=["even", "soft"])
    for i, x in enumerate(contexts(5)):
        options: dict[str, Any] = {"k": 2} if i == 3 else {}  # a policy can only choose one, and is silent then
        a, b = alone.decide(x, id=f"e{i}", **options), watched.decide(x, id=f"e{i}", **options)
        assert a.actions == b.actions
        seen = watched.event(b.id).details["shadows"]
        assert set(seen) == {"even", "soft"}
        assert (seen["soft"] == [None, None]) == (i == 3)
        assert seen["even"][0] in ALL and 0 < seen["even"][1] <= 1
    live_version = watched.version
    assert live_version > alone.version
    alone.close()
    watched.close()


def test_an_apprentice_acts_like_the_baseline_and_learns() -> None:
    live = a_live(an_agent(kind="epsilon"))
    live.deploy({"baseline": 1.0}, shadows=["agent"])
    with pytest.raises(InvalidInput, match="baseline"):
        live.decide(X)
    rows = []
    for i, x in enumerate(contexts(6)):
        d = live.decide(x, baseline=i % 3)
        assert (d.action, d.arm, d.propensity, d.propensity_kind) == (i % 3, "baseline", 1.0, "exact")
        assert live.event(d.id).details["shadows"]["agent"][0] in ALL
        live.reward(d.id, float(i))
        rows.append((x, i % 3, float(i)))
    live.sync()
    reference = an_agent(kind="epsilon")
    for row in rows:
        reference.observe(*row)
    same_belief(agent_of(live), reference)
    live.close()


@pytest.mark.parametrize(
    "asked",
    [
        {"x": [1.0, 2.0, 3.0], "baseline": 0},
        {"x": X, "baseline": 6},
        {"x": X, "baseline": 2**70},
        {"x": X, "baseline": -1},
        {"x": X, "baseline": 1, "candidates": [2, 3]},
        {"action_contexts": contexts(3), "baseline": 1},
        {"action_contexts": contexts(3), "baseline": 1, "candidates": [1, 2]},
        {"action_contexts": [[1.0], [2.0]], "baseline": 1, "candidates": [1, 2]},
    ],
)
def test_what_nobody_could_learn_is_refused_whoever_decides(asked: dict[str, Any]) -> None:
    live = a_live()
    live.deploy({"baseline": 1.0})
    version = live.version
    with pytest.raises(InvalidInput):
        live.decide(**asked)
    assert live.learn() == version
    live.close()


def test_the_baseline_takes_part_in_the_propensity() -> None:
    live = a_live(an_agent(kind="uniform"))
    live.retire([5])
    live.deploy({"baseline": 0.25, "agent": 0.75})
    for i in range(30):
        d = live.decide(X, baseline=3, unit=str(i))
        assert d.propensity == pytest.approx(0.75 / 5 + 0.25 * (d.action == 3))
    d = next(e for i in range(99) if (e := live.decide(X, baseline=5, unit=str(i))).arm == "baseline")
    assert d.action == 5 and d.propensity == 0.25  # retired: the agent would never take it
    live.close()


def test_a_question_is_refused_for_all_or_for_none_whoever_it_goes_to() -> None:
    """Where one arm refused what another answers, the events that remain would be chosen by who was asked."""
    live = a_live(an_agent(kind="thompson"))
    live.add_arm("policy", UniformPolicy(6))
    live.deploy({"agent": 0.9, "baseline": 0.1})
    for i in range(40):
        with pytest.raises(InvalidInput, match="baseline"):
            live.decide(X, unit=str(i))
    for held_out in ("baseline", "policy"):
        live.deploy("agent", holdout=0.1, holdout_arm=held_out)
        for i in range(40):
            with pytest.raises(InvalidInput, match=r"baseline|k:"):
                live.decide(X, unit=str(i), k=2)
        arms = {live.decide(X, unit=str(i), baseline=1).arm for i in range(99)}
        assert arms == {"agent", held_out}
    assert live.status()["rows_refused"] == 0
    live.close()


def test_whether_a_propensity_is_exact_does_not_hang_on_the_action() -> None:
    """A retired action has the chance 0 under Thompson sampling, exactly; the others are estimated, and so are all."""
    live = a_live(an_agent(kind="thompson"))
    live.retire([5])
    live.deploy({"agent": 0.5, "baseline": 0.5})
    found = [live.decide(X, unit=str(i), baseline=5, propensity=True) for i in range(40)]
    assert {d.action == 5 for d in found} == {True, False}
    assert {d.propensity_kind for d in found} == {"estimated"}
    live.close()


# ---- deployments


def test_promote_and_roll_back() -> None:
    live = a_live()
    live.add_arm("b", an_agent(seed=3))
    with pytest.raises(LiveError, match="roll back"):
        live.roll_back()
    live.deploy({"agent": 0.9, "b": 0.1})
    live.promote("b")
    assert live.deployment.shares == {"b": 1.0} and live.deployment.shadows == ("agent",)
    assert live.decide(X).arm == "b"
    live.roll_back()
    assert live.deployment.shares == {"agent": 0.9, "b": 0.1}
    live.roll_back()
    assert live.deployment.shares == {"agent": 1.0}
    for call in (lambda: live.deploy("nobody"), lambda: live.promote("nobody"), lambda: live.remove_arm("agent")):
        with pytest.raises(LiveError):
            call()
    assert live.deployment.shares == {"agent": 1.0}
    live.remove_arm("b")
    assert live.status()["arms"] == ["agent"] and live.status()["operations_refused"] == 4
    assert from_origin(live) == live.state_bytes()
    live.close()


@pytest.mark.parametrize(
    "shares, options",
    [
        ({}, {}), ({"agent": 0.5}, {}), ({"agent": 1.5, "b": -0.5}, {}), ({"agent": float("nan")}, {}), ({3: 1.0}, {}), (5, {}),
        (["agent"], {}), ("agent", {"holdout": 0.1}), ("agent", {"holdout": 1.0, "holdout_arm": "agent"}),
        ("agent", {"shadows": ["baseline"]}), ("agent", {"shadows": "agent"}), ("agent", {"shadows": 5}),
        ("agent", {"shadows": [5]}), ("agent", {"holdout": 0.1, "holdout_arm": 5}), ("agent", {"holdout": -0.1}),
    ],
)  # fmt: skip
def test_deployments_that_are_none(shares: Any, options: dict[str, Any]) -> None:
    live = a_live()
    with pytest.raises(InvalidInput):
        live.deploy(shares, **options)
    assert live.learn() == 0
    live.close()
