"""A live store with ids and an encoder: it speaks them at its edge, and its log and its arms are those of its twin without."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import manyarms as ma
from live.small_store import Clock, D, K, small_agent, small_live
from live.small_store import quick_disk as quick_disk
from manyarms.agents import Agent
from manyarms.errors import InvalidInput, LiveError, UnknownAction
from manyarms.live import exporting
from manyarms.live.replaying import replay
from manyarms.logs import Actions, Encoding

NAMES = [f"push-{letter}" for letter in "fedcba"]
COLUMNS = {"age": [20.0, 40.0, 60.0], "town": ["Ulm", "Bonn", "Ulm"]}


def named(agent: Agent, **more: Any) -> Agent:
    return Agent(agent.belief, agent.decision, 1, catalogue=NAMES, **more)


def say(live: Any, clock: Clock, ids: list[Any], x: Any, new: Any) -> list[Any]:
    """The same story on both stores, in the ids of each; what was decided, in rows."""
    said = []
    for i in range(12):
        options: dict[str, Any] = {}
        if i % 3 == 1:
            options = {"candidates": [ids[0], ids[3], ids[4]], "exclude": [ids[4]]}
        if i % 3 == 2:
            options = {"exclude": [ids[1]], "k": 2}
        made = live.decide(x[i], id=f"e{i}", **options)
        said.append([ids.index(action) for action in made.actions])
        live.reward(made.id, float(i % 2), action=made.actions[-1])
        clock.now += 1
        if i == 4:
            assert live.add_actions(**new) == [ids[K]]
            live.retire(ids[5])
            live.cap(3, actions=[ids[0]])
        if i == 8:
            live.reinstate([ids[5]])
        live.learn()
    clock.now += 100
    live.learn()
    return said


@pytest.mark.parametrize("decision", ["thompson", "epsilon-greedy"])
def test_a_store_with_ids_is_its_twin_without(tmp_path: Path, decision: str) -> None:
    rng = np.random.default_rng(0)
    X = list(rng.normal(size=(12, D)))
    plain, called = small_agent(decision=decision), small_agent(decision=decision)
    weights = {"weights": [[0.5, -0.5]]}
    clocks = Clock(), Clock()
    with (
        small_live(tmp_path / "plain.db", clocks[0], Agent(plain.belief, plain.decision, 1)) as one,
        small_live(tmp_path / "named.db", clocks[1], named(called)) as other,
    ):
        story = say(one, clocks[0], list(range(K + 1)), X, weights)
        assert say(other, clocks[1], [*NAMES, "push-z"], X, weights | {"ids": ["push-z"]}) == story
        assert other.catalogue == Actions([*NAMES, "push-z"]) and one.catalogue is None
        assert other.status()["capped"] == [[*NAMES, "push-z"][row] for row in one.status()["capped"]]
        mine, theirs = one._learner._state.arms["agent"], other._learner._state.arms["agent"]
        for name, array in mine.agent.belief.arrays().items():
            np.testing.assert_array_equal(array, theirs.agent.belief.arrays()[name])
        assert theirs.agent.catalogue is None  # the arms know rows
        record = other.event("e1")
        assert record.actions[0] in NAMES and record.question.candidates == [NAMES[0], NAMES[3], NAMES[4]]  # type: ignore[union-attr]
        assert record.details["encoding"] == 0
        other.snapshot()
    assert replay(tmp_path / "named.db").ok
    with small_live(tmp_path / "named.db", clocks[1]) as again:
        assert again.catalogue == Actions([*NAMES, "push-z"])
        assert again.decide(X[0], exclude=["delisted", "push-a"]).action in [*NAMES, "push-z"]
        with pytest.raises(UnknownAction, match="nobody"):
            again.decide(X[0], candidates=["nobody"])
        with pytest.raises(UnknownAction, match="nobody"):
            again.reward("e0", 1.0, action="nobody")


def test_an_encoder_belongs_to_the_store_and_export_writes_ids(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    encoder = Encoding().fit(COLUMNS, ["age", "town"])
    prior = ma.ActionPrior(3, np.zeros(encoder.dim), np.eye(encoder.dim))
    clock = Clock()
    agent = ma.agents.EpsilonGreedyAgent(prior, seed=0, catalogue=["a", "b", "c"], encoder=encoder)
    rows = [{"age": 30.0 + i, "town": ["Ulm", "Bonn", "Rome"][i % 3]} for i in range(9)]
    with small_live(tmp_path / "s.db", clock, agent) as live:
        for i, row in enumerate(rows):
            made = live.decide(row, id=f"e{i}", exclude=["gone"])
            live.reward(made.id, 1.0)
        again = live.decide(rows[0], id="e0", exclude=["gone"])
        assert list(again.actions) == live.event("e0").actions
        assert live.event("e0").details["encoding"] == 1
        with pytest.raises(InvalidInput, match="town"):
            live.decide({"age": 3.0})
        live.learn()
        live.snapshot()
        clock.now += 1000
        exporting.export(live.database, tmp_path / "log.parquet")
        chosen = [live.event(f"e{i}").actions[0] for i in range(9)]
    assert replay(tmp_path / "s.db").ok
    log = ma.open_log(tmp_path / "log.parquet").collect()
    assert log.catalogue == Actions(["a", "b", "c"]) and log.catalogue.ids(log.actions) == chosen
    assert log.encoder is not None and log.encoder.names == encoder.names
    table = {name: [row[name] for row in rows] for name in COLUMNS}
    np.testing.assert_array_equal(log.contexts, encoder.apply(table))
    with small_live(tmp_path / "s.db", clock) as live:
        assert live.encoder is not None and live.decide(rows[0]).action in "abc"
        learned = ma.rewards.warm_start(log, prior, ma.Linear(1.0), ma.Greedy(), seed=0)
        live.add_arm("next", learned)  # with the log's encoder and ids, which are the store's
        live.deploy("next")
        assert live.decide(rows[0]).action == learned.decide(rows[0])


def test_integer_ids_are_exported_as_integers(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    clock, ids = Clock(), [900, 17, 4]
    agent = ma.agents.UniformAgent(3, D, seed=0, catalogue=ids)
    with small_live(tmp_path / "s.db", clock, agent) as live:
        chosen = [live.decide(np.ones(D), id=f"e{i}").action for i in range(8)]
        assert set(chosen) <= set(ids)
        clock.now += 1000
        live.learn()
        exporting.export(live.database, tmp_path / "log.parquet")
    log = ma.open_log(tmp_path / "log.parquet").collect()
    assert log.catalogue == Actions(ids) and log.catalogue.ids(log.actions) == chosen


def test_arms_with_other_ids_or_encoders_are_refused(tmp_path: Path) -> None:
    clock = Clock()
    encoder = Encoding().fit({"a": [1.0, 2.0], "b": [1.0, 3.0]}, ["a", "b"])
    other = Encoding().fit({"a": [1.0, 2.5], "b": [1.0, 3.0]}, ["a", "b"])
    assert encoder.dim == other.dim == D
    policy = ma.policies.UniformPolicy(4)
    with small_live(tmp_path / "s.db", clock, named(small_agent(), encoder=encoder)) as live:
        for wrong in (
            Agent(small_agent().belief, ma.Greedy(), catalogue=NAMES[::-1]),
            named(small_agent(), encoder=other),
        ):
            with pytest.raises(InvalidInput, match=r"other ids|another encoder"):
                live.add_arm("wrong", wrong)
        live.add_arm("bare", small_agent())
        live.add_arm("same", named(small_agent(), encoder=encoder))
        policy.schema = ma.logs.Schema(catalogue=Actions(NAMES[:4]))
        live.add_arm("policy", policy)
        assert policy.schema.catalogue is not None  # the caller's own is as it was
        for wrong_ids in (None, ["push-a"], ["x", "x"], [3], [""]):
            weights = np.ones((len(wrong_ids or [0]), 2))
            with pytest.raises((InvalidInput, LiveError), match="ids"):
                live.add_actions(weights=weights, ids=wrong_ids)
        live.retire("push-a")
        with pytest.raises(InvalidInput, match="'push-a'"):
            live.retire(["push-a"])
        with pytest.raises(UnknownAction, match=r"'push-a', which is retired"):
            live.decide(np.ones(D), candidates=["push-a"])
        with pytest.raises(InvalidInput, match="'push-b'"):
            live.reinstate("push-b")
    with pytest.raises(InvalidInput, match="other ids"):
        small_live(tmp_path / "s.db", clock, Agent(small_agent().belief, ma.Greedy(), catalogue=NAMES[::-1]))
    with small_live(tmp_path / "plain.db", clock, small_agent()) as live:
        for given in (named(small_agent()), Agent(small_agent().belief, ma.Greedy(), encoder=encoder)):
            with pytest.raises(InvalidInput, match="one without"):
                live.add_arm("wrong", given)
        with pytest.raises(LiveError, match="ids"):
            live.add_actions(weights=[[1.0, 1.0]], ids=["x"])


def test_a_store_of_0_4_opens_and_replays(tmp_path: Path) -> None:
    """Its arms were saved in the format before this one, without a schema."""
    path = tmp_path / "old.db"
    with sqlite3.connect(path) as connection:
        connection.executescript((Path(__file__).parent / "stores" / "version_0_4.sql").read_text(encoding="utf-8"))
    connection.close()
    found = replay(path)
    assert found.ok and found.decisions == 17, found
    clock = Clock(1_000_500.0)
    with small_live(path, clock) as live:
        assert live.catalogue is None and live.status()["arms"] == ["agent", "other"]
        live.reward(live.decide(np.ones(D), id="new", exclude=[99]).id, 1.0)
        live.learn()
        live.snapshot()
    assert replay(path).ok
