"""Callers whom nobody expects: functions that answer otherwise the next time, things that cannot be copied, interruptions."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import manyarms as ma
from manyarms._base import storage
from manyarms.agents import Agent
from manyarms.beliefs.independent_centres import IndependentCentres

D = 2
X = np.array([0.5, -0.2])


def linear() -> Agent:
    return ma.LinTS(ma.ActionPrior(6, np.zeros(D), np.eye(D)), seed=0)


def met(agent: Agent) -> Agent:
    """A learner meets a reader: from now on every change is made on a twin, and once more on the other one."""
    held = agent._belief.enter()
    agent.retire([5])
    agent._belief.leave(held)
    agent.reinstate([5])
    return agent


def test_a_feature_map_is_asked_once_a_row() -> None:
    """Features of a catalogue change with time: what was learned of them stays, however many twins there are."""
    current: dict[str, Any] = {}

    def features(x: np.ndarray) -> np.ndarray:
        current["asked"] = current.get("asked", 0) + 1
        return current["table"] * x[0]

    def make() -> Agent:
        return ma.agents.jointTS(
            ma.ActionPrior(6, np.zeros(D), np.eye(D)), 6, feature_map=features, context_shape=(D,), seed=0
        )

    alone, shared = make(), met(make())
    for row in range(5):
        current["table"] = np.random.default_rng(row).normal(size=(6, D))
        alone.observe(X, row, 1.0)
        shared.observe(X, row, 1.0)
        for ours, theirs in zip(alone.posterior(0), shared.posterior(0), strict=True):
            np.testing.assert_array_equal(ours, theirs)
    assert current["asked"] == 10


def test_a_feature_map_may_ask_the_agent() -> None:
    """It is called before anything changes."""
    asked: list[int] = []

    def features(x: np.ndarray) -> np.ndarray:
        asked.append(agent.version)
        return np.outer(np.arange(6.0), x)

    agent = ma.agents.jointTS(
        ma.ActionPrior(6, np.zeros(D), np.eye(D)), 6, feature_map=features, context_shape=(D,), seed=0
    )
    agent.observe(X, 1, 1.0)
    agent.observe(X, 2, 1.0)
    assert asked == [0, 1]


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("argument", ["number", "weights", "covariance"])
def test_what_cannot_be_copied_is_refused_like_anything_else(argument: str, shared: bool) -> None:
    agent = met(linear()) if shared else linear()
    version = agent.version
    for value in (threading.Lock(), (row for row in [[1.0, 0.0]])):
        with pytest.raises(ma.errors.InvalidInput, match=argument):
            agent.add_actions(**{argument: value})  # type: ignore[arg-type]
    assert (agent.version, agent.actions) == (version, 6)


def test_a_refusal_does_not_cost_the_twin() -> None:
    """Otherwise whoever sends nonsense makes every change that follows copy the belief."""
    agent = met(linear())
    twin = agent._belief._twin
    for refused in (
        lambda: agent.add_actions(0),
        lambda: agent.observe([1e90, 0.0], 1, 1.0),
        lambda: agent.retire([9]),
    ):
        with pytest.raises(ma.errors.InvalidInput):
            refused()
    assert twin is not None and agent._belief._twin is twin


def nan_far_out(z: np.ndarray) -> np.ndarray:
    """A link that has no value where |z| is above 5."""
    return np.where(np.abs(z) > 5, np.nan, z + np.sin(z))


def one_chain_an_action(rule: str, likelihood: ma.beliefs.Likelihood, top: float) -> Agent:
    prior = ma.DiffusionPrior(6, D, [nan_far_out] * 2, [1.0, 1.0, top], shared=False)
    return ma.dTS(prior, likelihood, approximation=rule, seed=0)


def state(agent: Agent) -> dict[str, bytes]:
    belief = cast(IndependentCentres, agent.belief)
    return {name: array.tobytes() for name, array in (belief._table_arrays() | belief.leaves.arrays()).items()}


@pytest.mark.parametrize("rows", [1, 12])
@pytest.mark.parametrize("apart", [False, True])
def test_a_link_that_fails_while_it_learns_leaves_nothing_half_done(rows: int, apart: bool) -> None:
    """By the Jacobian's rule learning asks the links where the evidence lies: nobody knows before where that is."""
    agent = one_chain_an_action("jacobian", ma.Linear(0.1), 0.01)
    agent.observe(X, 0, 0.1)
    far = np.tile(X, (rows, 1)), np.arange(rows) % 3 + 1, np.full(rows, 60.0)
    if apart:
        met(agent)
        for _ in range(3):  # on either of the two
            version, then, decided = agent.version, state(agent), agent.decide(X, k=6, draw=0).tolist()
            with pytest.raises(ma.errors.InvalidInput, match="links"):
                agent.observe(*far)
            assert (agent.version, agent.played) == (version, 1) and state(agent) == then
            assert agent.decide(X, k=6, draw=0).tolist() == decided
            agent.observe(X, 0, 0.1)
        assert agent.version == version + 1
        return
    with pytest.raises(ma.errors.InvalidInput, match="links"):
        agent.observe(*far)
    for ask in (lambda: agent.decide(X), lambda: agent.observe(X, 0, 0.1), agent.copy, agent.snapshot):
        with pytest.raises(ma.errors.InvalidInput, match=r"broke off half way .InvalidInput."):
            ask()


@pytest.mark.parametrize("rule", ["thesis", "jacobian"])
def test_a_prior_whose_links_fail_is_refused_before_anything_is_learned(rule: str) -> None:
    """A logistic likelihood is expanded around the prior's moments, which are draws through the links."""
    agent = one_chain_an_action(rule, ma.Logistic(), 25.0)
    for _ in range(2):
        with pytest.raises(ma.errors.InvalidInput, match="links"):
            agent.observe(np.tile(X, (3, 1)), [0, 1, 2], [1.0, 0.0, 1.0])
        assert (agent.version, agent.played) == (0, 0)


def test_a_signal_handler_is_not_locked_out() -> None:
    """It interrupts its own thread anywhere, also where that holds a lock."""
    agent, done = linear(), threading.Event()

    def interrupted() -> None:
        with agent._belief._lock, agent._draws._lock:
            agent.decide(X)
            agent.snapshot()
            done.set()

    threading.Thread(target=interrupted, daemon=True).start()
    assert done.wait(60)


def test_numbered_decisions_can_be_compared() -> None:
    agent = linear()
    for k in (None, 3):
        made = agent.decide_numbered(X, k=k)
        again = agent.decide_numbered(X, k=k, draw=made.draw)
        assert made == again and len({made, again}) == 1
        assert made != agent.decide_numbered(X, k=k) and made != made.draw


@pytest.mark.parametrize("count", ["version", "next"])
def test_counts_that_would_overflow_are_not_loaded(count: str, tmp_path: Path) -> None:
    """An agent counts on from what it was loaded with, and its own save must be good."""
    linear().save(tmp_path)
    path = tmp_path / storage.MANIFEST
    manifest = json.loads(path.read_text())
    for value, fits in ((2**62 - 2, True), (2**63 - 1, False)):
        spec = manifest["spec"]
        (spec if count == "version" else spec["draws"])[count] = value
        path.write_text(json.dumps({**manifest, "sha256": storage._manifest_checksum(manifest)}))
        if not fits:
            with pytest.raises(ma.errors.StorageError, match=count):
                ma.load(tmp_path)
            continue
        agent = ma.load(tmp_path)
        agent.observe(X, agent.decide(X), 1.0)
        agent.save(tmp_path)
        assert ma.load(tmp_path).decide(X) == agent.decide(X)
        manifest = json.loads(path.read_text())


@pytest.mark.parametrize("held", [False, True])
def test_a_batch_that_is_interrupted_is_never_half_learned(held: bool, tmp_path: Path, monkeypatch: Any) -> None:
    """In place there is nothing to go back to, and the agent says so; where a snapshot is held, it is what it was."""
    agent = linear()
    agent.observe(X, 1, 1.0)
    agent.save(tmp_path)
    frozen = agent.snapshot() if held else None

    def interrupt(belief: object, actions: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(type(agent.belief), "_learned", interrupt)
        with pytest.raises(KeyboardInterrupt):
            agent.observe(np.tile(X, (3, 1)), [1, 2, 3], [1.0, 0.0, 1.0])
    saved = ma.load(tmp_path)
    if frozen is not None:
        assert (agent.version, agent.played, agent.decide(X)) == (1, 1, saved.decide(X))
        return
    for call in (lambda: agent.decide(X), lambda: agent.observe(X, 1, 1.0), lambda: agent.save(tmp_path), agent.copy):
        with pytest.raises(ma.errors.InvalidInput, match=r"broke off half way .KeyboardInterrupt."):
            call()
    assert ma.load(tmp_path).version == saved.version == 1


def test_more_draws_than_there_is_memory_for_are_refused() -> None:
    agent = linear()
    with pytest.raises(ma.errors.InvalidInput, match="draws"):
        agent.propensity(X, 1, draws=2**40)
    assert agent.propensity(X, 1, draws=20).draws == 20


def test_a_belief_of_another_agent_is_copied() -> None:
    """Two learners would change it under each other's hands, and a snapshot would change with them."""
    agent = ma.HierTS(ma.HierarchicalPrior(9, np.zeros(2), np.eye(2), np.eye(2)), seed=0)
    frozen, x = agent.snapshot(), np.array([1.0, 0.5])
    for other in (ma.Agent(agent.belief, ma.Greedy()), ma.Agent(frozen.belief, ma.Greedy())):
        other.observe(x, 3, 5.0)
        assert other.played == 1 and agent.played == frozen.played == 0
    own = ma.beliefs.belief_of(ma.ActionPrior(4, np.zeros(2), np.eye(2)), ma.Linear())
    assert ma.Agent(own, ma.Greedy()).belief is own
