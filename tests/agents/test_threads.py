"""Agents that threads share, under a switch interval of a microsecond.

Whatever the threads' order, the result is that of one thread: the changes are logged in the order in which they were applied, a
serial agent replays them, and every decision must be the one that this agent makes at the version and with the draw number that
the decision reports. So no decision has seen a change half done, and the final belief is equal to the last bit.
"""

from __future__ import annotations

import copy
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import manyarms as ma
from manyarms.agents import Agent, NumberedDecision
from manyarms.agents.agent import _add_actions

K, D = 30, 2
DECIDERS, LEARNERS, DECISIONS, CHANGES = 3, 2, 14, 8
EYE = np.eye(D)
RNG = np.random.default_rng(0)
WEIGHTS = RNG.normal(size=(K, 2))
CONTEXTS = RNG.uniform(-1, 1, (DECISIONS, D))


def mixed(weights: np.ndarray = WEIGHTS) -> ma.MixedEffectPrior:
    return ma.MixedEffectPrior(weights, np.zeros((2, D)), np.eye(2 * D), EYE)


def chain(*, shared: bool) -> ma.DiffusionPrior:
    rng = np.random.default_rng(2)
    links = [ma.priors.NetworkLink.random(D, 4, rng, scaled=True) for _ in range(2)]
    return ma.DiffusionPrior(K, D, links, [0.5, 0.8, 1.0], shared)


COMMON = ma.ActionPrior(K, np.zeros(D), EYE)
HIERARCHICAL = ma.HierarchicalPrior(K, np.zeros(D), EYE, EYE)

AGENTS: dict[str, Callable[[], Agent]] = {
    "LinTS": lambda: ma.LinTS(COMMON, seed=0),
    "LinTS, own covariances": lambda: ma.LinTS(ma.ActionPrior(K, np.zeros((K, D)), np.stack([EYE] * K)), seed=0),
    "HierTS": lambda: ma.HierTS(HIERARCHICAL, seed=0),
    "meTS": lambda: ma.meTS(mixed(), seed=0),
    "meTS, blocks": lambda: ma.meTS(mixed(np.random.default_rng(1).normal(size=(4500, 2))), seed=0),
    "meTS, one-hot": lambda: ma.meTS(mixed(np.eye(2)[np.arange(K) % 2]), seed=0),
    "meTS, mean-field": lambda: ma.meTS(mixed(), factored=True, seed=0),
    "meTS, blockwise": lambda: ma.meTS(mixed(), factored="blockwise", seed=0),
    "meTS, logistic": lambda: ma.meTS(mixed(), ma.Logistic(), seed=0),
    "meTS, cavity": lambda: ma.meTS(mixed(), ma.Logistic(expansion="cavity"), seed=0),
    "GLMTS": lambda: ma.agents.GLMTS(COMMON, seed=0),
    "dTS, moments": lambda: ma.dTS(chain(shared=True), seed=0),
    "dTS, chain": lambda: ma.dTS(chain(shared=True), approximation="jacobian", seed=0),
    "dTS, own chains": lambda: ma.dTS(chain(shared=False), approximation="thesis", seed=0),
    "dTS, particles": lambda: ma.dTS(chain(shared=False), seed=0),
    "jointTS": lambda: ma.agents.jointTS(HIERARCHICAL, 6, seed=0),
    "LinUCB": lambda: ma.LinUCB(COMMON, seed=0),
    "GLMUCB": lambda: ma.agents.GLMUCB(COMMON, seed=0),
    "Greedy": lambda: ma.agents.GreedyAgent(mixed(), seed=0),
    "epsilon-greedy": lambda: ma.agents.EpsilonGreedyAgent(HIERARCHICAL, epsilon=0.5, seed=0),
    "Uniform": lambda: ma.agents.UniformAgent(K, D, seed=0),
}


@pytest.fixture(autouse=True)
def _switch_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def together(*jobs: Callable[[], None]) -> None:
    """All jobs at once, each in a thread; the first exception of any of them."""
    failed: list[BaseException] = []
    start = threading.Barrier(len(jobs))

    def run(job: Callable[[], None]) -> None:
        try:
            start.wait()
            job()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(job,), daemon=True) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not any(thread.is_alive() for thread in threads), "a thread waits for ever"
    if failed:
        raise failed[0]


class Log:
    """The changes of an agent, in the order in which they were applied."""

    def __init__(self, agent: Agent) -> None:
        self.changes: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []
        self._change = agent._belief.change
        agent._belief.change = self  # type: ignore[method-assign, assignment]

    def __call__(self, operation: Callable[..., Any], *arguments: Any) -> Any:
        kept = copy.deepcopy(arguments)
        result = self._change(operation, *arguments)
        self.changes.append((operation, kept))  # the learning lock is held
        return result


Decided = tuple[dict[str, Any], NumberedDecision]


def joint(agent: Agent) -> bool:
    return not agent.belief.per_action


def options_of(agent: Agent, number: int) -> dict[str, Any]:
    """What is asked in one decision: contexts one by one and in batches, k, filters, and contexts of actions."""
    x = CONTEXTS[number]
    if joint(agent):
        Z = np.outer(np.arange(6) - 2.5, x)
        return {"x": np.stack([Z, -Z]), "k": 2} if number % 3 == 0 else {"x": Z, "exclude": [1]}
    kind = number % 5
    if kind == 0:
        return {"x": CONTEXTS[:3], "k": 2}
    if kind == 1:
        return {"x": x, "candidates": [0, 1, 2, 9]}
    if kind == 2:
        return {"x": x, "exclude": [0, 3], "k": 3}
    if kind == 3:
        return {"action_contexts": np.outer([1.0, -1.0, 0.5], x), "candidates": [0, 2, 3]}
    return {"x": x}


def decide(agent: Agent, into: list[Decided]) -> None:
    for number in range(DECISIONS):
        options = options_of(agent, number)
        into.append((options, agent.decide_numbered(**options)))


def learn(agent: Agent, who: int) -> None:
    """Rows, batches, new actions and retired ones; each learner retires actions of its own, and nobody asks for these by name."""
    rng = np.random.default_rng(who)
    mixing = None if joint(agent) else agent.belief.leaves.mixing.features
    for number in range(CHANGES):
        if joint(agent):
            agent.observe(np.outer(np.arange(6) - 2.5, CONTEXTS[number]), int(rng.integers(6)), float(number % 2))
            continue
        if number % 4 == 0:
            X = rng.uniform(-1, 1, (20, D))
            agent.observe(X, rng.integers(10, size=20), rng.integers(2, size=20).astype(float))
            X[:] = np.nan  # the caller may do with his arrays what he likes
        elif number % 4 == 1:
            weights = None if mixing is None else rng.normal(size=(2, mixing.shape[1]))
            covariance = None if agent.belief.leaves.shared else EYE
            if agent.belief.leaves.mixing.kind == "matrices":
                weights = rng.normal(size=(2, D, 1))
            ids = agent.add_actions(None if weights is not None else 2, weights=weights, covariance=covariance)
            agent.observe(CONTEXTS[:2], ids, [0.0, 1.0])
        elif number % 4 == 2:
            agent.retire([10 + 2 * number + who])
        else:
            agent.observe(CONTEXTS[number], int(rng.integers(10)), float(number % 2))


def ask(agent: Agent) -> None:
    """Everything else that reads."""
    x = options_of(agent, 4)["x"]
    for number in range(4):
        assert 0 <= agent.propensity(x, 2, draws=3, draw=number).value <= 1
        mean, covariance = agent.posterior(1)
        assert np.isfinite(mean).all() and np.isfinite(covariance).all()
        assert agent.actions > 0 and agent.played >= 0 and agent.nbytes > 0 and str(agent)
        frozen = agent.snapshot()
        first = frozen.decide(x, draw=number)
        apart = agent.copy()
        assert apart.version >= frozen.version
        assert frozen.decide(x, draw=number) == first


def replay(make: Callable[[], Agent], log: Log, decided: list[Decided]) -> Agent:
    """The same by one thread; decisions are compared at their versions."""
    alone = make()
    for version in range(len(log.changes) + 1):
        assert alone.version == version
        for options, choice in decided:
            if choice.version == version:
                np.testing.assert_array_equal(alone.decide(**options, draw=choice.draw), choice.actions)
        if version < len(log.changes):
            operation, arguments = log.changes[version]
            with alone._belief.learning:
                alone._belief.change(operation, *arguments)
    return alone


def assert_same_state(one: Agent, other: Agent) -> None:
    ours, theirs = one.belief.arrays(), other.belief.arrays()
    assert ours.keys() == theirs.keys()
    for name, array in ours.items():
        assert array.tobytes() == theirs[name].tobytes(), name


@pytest.mark.parametrize("name", AGENTS)
def test_threads_do_what_one_thread_does(name: str) -> None:
    make = AGENTS[name]
    agent = make()
    log, decided = Log(agent), [list[Decided]() for _ in range(DECIDERS)]
    together(
        *(partial(decide, agent, into) for into in decided),
        *(partial(learn, agent, who) for who in range(LEARNERS)),
        partial(ask, agent),
    )
    everything = [one for some in decided for one in some]
    assert sorted(choice.draw or 0 for _, choice in everything) == list(range(DECIDERS * DECISIONS))
    assert agent.draws == DECIDERS * DECISIONS and agent.version == len(log.changes)
    alone = replay(make, log, everything)
    assert_same_state(agent, alone)
    x = options_of(agent, 4)["x"]
    np.testing.assert_array_equal(agent.decide(x, draw=99), alone.decide(x, draw=99))
    assert_same_state(agent.copy(), alone)


def test_readers_beside_each_other_see_what_is_derived_whole() -> None:
    """What is derived at the first use (factors, blocks, rows) is derived by several readers at once."""
    make = AGENTS["meTS, blocks"]
    for _ in range(3):
        agent = make()
        agent.observe(np.tile(CONTEXTS, (3, 1)), np.arange(3 * DECISIONS), np.ones(3 * DECISIONS))
        log, decided = Log(agent), [list[Decided]() for _ in range(4)]
        together(*(partial(decide, agent, into) for into in decided))
        alone = make()
        alone.observe(np.tile(CONTEXTS, (3, 1)), np.arange(3 * DECISIONS), np.ones(3 * DECISIONS))
        assert not log.changes
        for options, choice in (one for some in decided for one in some):
            assert choice.version == 1
            np.testing.assert_array_equal(alone.decide(**options, draw=choice.draw), choice.actions)


def test_snapshots_stay_as_they_are_while_the_agent_learns() -> None:
    agent = AGENTS["HierTS"]()
    kept: list[tuple[ma.agents.Snapshot, int, list[Any]]] = []

    def freeze() -> None:
        for _ in range(12):
            frozen = agent.snapshot()
            kept.append((frozen, frozen.version, [frozen.decide(CONTEXTS, draw=n).tolist() for n in range(3)]))  # type: ignore[union-attr]

    log = Log(agent)
    together(freeze, lambda: learn(agent, 0), lambda: learn(agent, 1), freeze)
    alone = AGENTS["HierTS"]()
    states = {0: alone.copy()}
    for operation, arguments in log.changes:
        with alone._belief.learning:
            alone._belief.change(operation, *arguments)
        states[alone.version] = alone.copy()
    for frozen, version, decisions in kept:
        assert frozen.version == version
        for n, found in enumerate(decisions):
            assert frozen.decide(CONTEXTS, draw=n).tolist() == found  # type: ignore[union-attr]
            assert states[version].decide(CONTEXTS, draw=n).tolist() == found  # type: ignore[union-attr]
        for name, array in frozen.belief.arrays().items():
            assert array.tobytes() == states[version].belief.arrays()[name].tobytes()


def test_what_is_saved_meanwhile_is_a_state_there_was(tmp_path: Path) -> None:
    agent = AGENTS["meTS"]()
    log = Log(agent)

    def save() -> None:
        for number in range(6):
            agent.save(tmp_path / str(number))

    together(save, lambda: learn(agent, 0), lambda: learn(agent, 1))
    saved = [ma.load(tmp_path / str(number)) for number in range(6)]
    alone = AGENTS["meTS"]()
    for version in range(len(log.changes) + 1):
        for one in saved:
            if one.version == version:
                assert_same_state(one, alone)
        if version < len(log.changes):
            operation, arguments = log.changes[version]
            with alone._belief.learning:
                alone._belief.change(operation, *arguments)


def test_refusals_meanwhile_change_nothing() -> None:
    agent = AGENTS["meTS"]()
    log = Log(agent)

    def refuse() -> None:
        for number in range(12):
            x = CONTEXTS[number]
            for wrong in (
                lambda x=x: agent.observe(x, 10**6, 1.0),
                lambda x=x: agent.observe(x, 0, float("nan")),
                lambda: agent.add_actions(weights=np.ones((2, 5))),
                lambda: agent.retire([-1]),
                lambda x=x: agent.decide(x, k=10**6),
            ):
                with pytest.raises(ma.errors.InvalidInput):
                    wrong()

    together(refuse, lambda: learn(agent, 0), lambda: learn(agent, 1), refuse)
    assert agent.draws == 0
    assert_same_state(agent, replay(AGENTS["meTS"], log, []))
    assert any(operation is _add_actions for operation, _ in log.changes)


class Service:
    """What holds an agent in a program: it has a lock, and so cannot be copied."""

    def __init__(self) -> None:
        self.lock = threading.Lock()

    def features(self, x: np.ndarray) -> np.ndarray:
        with self.lock:
            return np.outer(np.arange(4) - 1.5, x)

    def link(self, psi: np.ndarray) -> np.ndarray:
        with self.lock:
            return np.tanh(psi)


def test_functions_of_the_caller_are_not_copied() -> None:
    service = Service()
    joint = ma.agents.jointTS(COMMON, 4, feature_map=service.features, context_shape=(D,), seed=0)
    chained = ma.dTS(ma.DiffusionPrior(K, D, [service.link], [0.5, 1.0]), approximation="thesis", seed=0)
    for agent in (joint, chained):
        frozen = agent.snapshot()
        agent.observe(CONTEXTS[0], 1, 1.0)  # on a copy
        apart = agent.copy()
        assert (frozen.version, agent.version) == (0, 1)
        assert apart.decide(CONTEXTS[0]) == agent.decide(CONTEXTS[0])
