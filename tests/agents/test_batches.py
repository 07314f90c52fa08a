"""Many contexts decided together: the law of each alone, whatever the slices, the same again from a number, in bounded memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import manyarms as ma
from brute_force import same_law
from every_agent import GENERALISED, LINEAR
from manyarms._base.typing import Array, Ints
from manyarms.agents.agent import Agent
from manyarms.beliefs import batches, leaf_scores
from manyarms.beliefs.actions import blocks, search

D, K = 3, 300
DRAWS, SINGLY = 4000, 1000


def rows(n: int, actions: int, seed: int = 0) -> tuple[Array, Ints, Array]:
    """Rounds of some of the first actions."""
    rng = np.random.default_rng(seed)
    return rng.uniform(-1, 1, (n, D)), rng.integers(actions, size=n), rng.standard_normal(n)


def lints() -> Agent:
    return ma.LinTS(ma.ActionPrior(K, np.full(D, 0.1), np.eye(D)), seed=3)


def hierts() -> Agent:
    return ma.HierTS(ma.HierarchicalPrior(K, np.zeros(D), 0.5 * np.eye(D), np.eye(D)), seed=3)


def own_covariances() -> Agent:
    scales = np.random.default_rng(1).uniform(0.2, 1.5, K)
    return ma.LinTS(ma.ActionPrior(K, np.zeros(D), scales[:, None, None] * np.eye(D)), seed=3)


def mets(weights: Array | None = None, noise: float = 0.3) -> Agent:
    rng = np.random.default_rng(2)
    b = rng.uniform(-1, 1, (K, 2)) if weights is None else weights
    return ma.meTS(ma.MixedEffectPrior(b, rng.standard_normal((2, D)), 0.3 * np.eye(2 * D), noise * np.eye(D)), seed=3)


def categories() -> Agent:
    return mets(np.eye(2)[np.random.default_rng(4).integers(2, size=K)])


AGENTS: dict[str, Callable[[], Agent]] = {
    "LinTS": lints, "HierTS": hierts, "own covariances": own_covariances, "meTS": mets, "categories": categories,
}  # fmt: skip


@pytest.fixture
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several slices, tiles, blocks and waves where there are only some hundred actions."""
    monkeypatch.setattr(batches, "SLICE", 150)
    monkeypatch.setattr(batches, "TILE", 8)
    monkeypatch.setattr(batches, "LEAST_TILE", 8)
    monkeypatch.setattr(search, "FEW", 20)
    monkeypatch.setattr(blocks, "BLOCK", 16)


def kinds(agent: Agent, ids: Ints, x: Array) -> Ints:
    """What is told apart of a chosen action: a played one is itself, the others are binned by their prior mean and variance."""
    belief = agent.belief
    slots = belief.catalogue.slots(ids)
    mean, covariance = belief.action_posterior(ids)
    score = np.digitize(mean @ x, np.linspace(-1, 1, 9))
    spread = np.digitize(np.einsum("i,aij,j->a", x, covariance, x), np.linspace(0, 1.5, 6))
    return np.where(slots >= 0, slots, 1000 + 100 * spread + score)


@pytest.mark.usefixtures("small_slices")
@pytest.mark.parametrize("name", AGENTS)
def test_a_batch_has_the_law_of_its_contexts_alone(name: str) -> None:
    """Two contexts in turns, hundreds of actions, a fifth of them played, some retired; and lists of three with exclusions."""
    agent = AGENTS[name]()
    agent.observe(*rows(150, K // 5))
    agent.retire([2, 9, 100, 101, 102])
    contexts, exclude = np.array([[0.9, -0.4, 0.2], [-0.2, 0.1, 1.1]]), [0, 5, 70, 71, 290]
    together = np.asarray(agent.decide(np.tile(contexts, (DRAWS, 1))))
    for i, x in enumerate(contexts):
        alone = np.array([agent.decide(x) for _ in range(SINGLY)])
        assert same_law(kinds(agent, together[i::2], x), kinds(agent, alone, x)) > 1e-6
    x = contexts[0]
    lists = np.asarray(agent.decide(np.tile(x, (DRAWS, 1)), k=3, exclude=exclude))
    assert (np.diff(np.sort(lists, axis=1), axis=1) > 0).all() and not np.isin(lists, exclude).any()
    alone = np.array([agent.decide(x, k=3, exclude=exclude) for _ in range(SINGLY)])
    for j in range(3):
        assert same_law(kinds(agent, lists[:, j], x), kinds(agent, alone[:, j], x)) > 1e-6


@pytest.mark.usefixtures("small_slices")
@pytest.mark.parametrize("name", AGENTS)
def test_a_number_makes_the_batch_again(name: str, tmp_path: Path) -> None:
    agent = AGENTS[name]()
    agent.observe(*rows(100, 40))
    X = rows(400, K, seed=7)[0]
    agent.save(tmp_path / "before")
    for k in (None, 4):
        decided = agent.decide_numbered(X, k=k)
        assert np.array_equal(agent.decide(X, k=k, draw=decided.draw), decided.actions)
    assert agent.draws == 2  # a batch takes one number
    loaded = ma.load(tmp_path / "before")
    for k in (None, 4):
        assert np.array_equal(loaded.decide(X, k=k), agent.decide(X, k=k, draw=loaded.draws - 1))


@pytest.mark.parametrize("name", [*LINEAR, *GENERALISED])
def test_scores_of_played_actions_are_those_of_single_contexts(name: str) -> None:
    """Whatever the belief: with all slots, some of them, and in tiles."""
    agent = {**LINEAR, **GENERALISED}[name]()
    belief, rng = agent.belief, np.random.default_rng(5)
    if not batches.possible(belief):
        pytest.skip("a belief with answers of its own")
    X = rng.uniform(-1, 1, (7, belief.dim))
    if not len(belief.leaves.counts):
        ids = np.arange(min(5, agent.actions))
        agent.observe(np.tile(X[0], (len(ids), 1)), ids, np.ones(len(ids)))
    M = None if belief.root.known else belief.root.draw(rng, 7)
    score, played = batches.PlayedScores(belief.leaves, X, M), len(belief.leaves.counts)
    some = rng.permutation(played)[: played // 2 + 1]
    for slots, where in ((slice(0, played), np.arange(played)), (slice(1, 3), np.arange(played)[1:3]), (some, some)):
        for ours, plain in zip(score(slots), leaf_scores.scores(belief.leaves, X, M, where), strict=True):
            assert np.abs(ours - plain).max() <= 1e-12 * (1 + np.abs(plain).max())


@pytest.mark.parametrize("name", AGENTS)
def test_contexts_of_zeros_and_of_extreme_numbers(name: str) -> None:
    """Zeros tell nothing, so that any action is as good; and two different actions are found whatever the scale."""
    agent = AGENTS[name]()
    agent.observe(*rows(60, 20))
    zeros = np.asarray(agent.decide(np.zeros((DRAWS, D))))
    assert same_law(zeros // 50, np.random.default_rng(0).integers(K, size=4 * DRAWS) // 50) > 1e-6
    X = rows(40, K)[0]
    X[::4], X[1::4], X[2::4] = 0.0, 1e99, 1e-170
    mixed = np.asarray(agent.decide(X, k=2))
    assert ((mixed >= 0) & (mixed < K)).all() and (mixed[:, 0] != mixed[:, 1]).all()


def test_memory_does_not_follow_the_batch() -> None:
    agent = mets()
    agent.observe(*rows(500, 200))
    agent.decide(rows(2, K)[0])
    peaks = []
    for n in (batches.SLICE, 16 * batches.SLICE):
        X = rows(n, K)[0]
        tracemalloc.start()
        agent.decide(X)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0] + 16 * 16 * batches.SLICE  # beside what is returned


def test_beliefs_with_answers_of_their_own_are_asked_one_by_one() -> None:
    agent = lints()
    assert batches.possible(agent.belief)

    class Louder(ma.beliefs.Belief):
        """Scores that are drawn in another way."""

        draw_scores = None  # type: ignore[assignment]

    assert not batches.possible(Louder(agent.belief.root, agent.belief.leaves, agent.belief.likelihood))
