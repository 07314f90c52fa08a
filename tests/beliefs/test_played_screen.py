"""Played actions that bounds leave out: the decisions are those of looking at everybody, with the same random numbers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import manyarms as ma
from every_agent import CAVITY, GENERALISED, LINEAR
from every_agent import D as DIM
from manyarms._base.typing import Array, Ints
from manyarms.agents import Agent
from manyarms.beliefs import played_bounds, played_screen
from manyarms.beliefs.played_bounds import Draw
from manyarms.beliefs.played_screen import PlayedScreen

K = 400


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few hundred actions are many."""
    monkeypatch.setattr(played_screen, "WORTH", (1, 1))
    monkeypatch.setattr(played_screen, "TOLD", 0)


@pytest.fixture
def unscreened(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    serves = PlayedScreen.serves

    def switch(off: bool) -> None:
        monkeypatch.setattr(PlayedScreen, "serves", (lambda *_: False) if off else serves)

    return switch


def covariance(d: int, rng: np.random.Generator, spread: float = 1.0) -> Array:
    """With eigenvalues from 1 down to 1/spread."""
    Q = np.linalg.qr(rng.standard_normal((d, d)))[0]
    out = (Q * np.geomspace(1, 1 / spread, d)) @ Q.T
    return np.asarray((out + out.T) / 2)


def lints(d: int, rng: np.random.Generator, scale: float = 1.0) -> Agent:
    return ma.LinTS(ma.ActionPrior(K, rng.standard_normal(d), scale * covariance(d, rng, 30)), ma.Linear(0.5), seed=1)


def hierts(d: int, rng: np.random.Generator, scale: float = 1.0) -> Agent:
    prior = ma.HierarchicalPrior(K, np.ones(d), scale * covariance(d, rng, 5), scale * covariance(d, rng, 30))
    return ma.HierTS(prior, ma.Linear(0.5), seed=1)


def mets(d: int, rng: np.random.Generator, scale: float = 1.0) -> Agent:
    prior = ma.MixedEffectPrior(
        rng.uniform(-1, 1, (K, 3)), np.ones((3, d)), scale * covariance(3 * d, rng, 5), scale * covariance(d, rng, 30)
    )
    return ma.meTS(prior, ma.Linear(0.5), seed=1)


def onehot(d: int, rng: np.random.Generator, scale: float = 1.0) -> Agent:
    prior = ma.MixedEffectPrior(
        np.eye(3)[rng.integers(3, size=K)], np.zeros((3, d)), scale * np.eye(3 * d), scale * np.eye(d)
    )
    return ma.meTS(prior, ma.Linear(0.5), factored=True, seed=1)


AGENTS = [lints, hierts, mets, onehot]


def taught(agent: Agent, rows: int, rng: np.random.Generator, actions: int = K) -> Agent:
    """After rows in batches and one by one, of all but a few actions."""
    X, A = rng.uniform(-1, 1, (rows, agent.dim)), rng.integers(actions - 5, size=rows)
    scale = float(np.sqrt(agent.belief.leaves.covariance.trace() / agent.dim))
    R = scale * rng.standard_normal(rows)
    half = rows // 2
    agent.observe(X[:half], A[:half], R[:half])
    for x, action, reward in zip(X[half : half + 60], A[half : half + 60], R[half : half + 60], strict=True):
        agent.observe(x, int(action), float(reward))
    return agent


# ---- decisions --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", AGENTS)
@pytest.mark.parametrize(("d", "rows"), [(1, 500), (5, 700), (5, 6_000), (12, 900)])
def test_decisions_are_those_of_looking_at_everybody(
    make: Callable[..., Agent], d: int, rows: int, unscreened: Callable[[bool], None]
) -> None:
    rng = np.random.default_rng(d + rows)
    agent = taught(make(d, rng), rows, rng)
    agent.retire([3, 7])
    some = rng.choice(K, 300, replace=False)
    some = some[~np.isin(some, [3, 7])]
    asked: list[dict[str, Any]] = [{}, {"k": 4}, {"candidates": some}, {"exclude": some[:40], "k": 3}]
    contexts = rng.uniform(-1, 1, (6, d)) * np.geomspace(1e-3, 1e3, 6)[:, None]
    for i, x in enumerate(contexts):
        for filters in asked:
            found = []
            for off in (False, True):
                unscreened(off)
                found.append(agent.decide(x, draw=i, **filters))
            np.testing.assert_array_equal(found[0], found[1])
            unscreened(False)
        agent.observe(x, int(some[i]), 1.0)


@pytest.mark.parametrize("name", [name for name in [*LINEAR, *GENERALISED, *CAVITY] if "jointTS" not in name])
def test_every_belief_decides_as_before(
    name: str, unscreened: Callable[[bool], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(played_screen, "MANY", 1)  # a dozen actions will do
    agent = {**LINEAR, **GENERALISED, **CAVITY}[name]()
    rng = np.random.default_rng(0)
    rewards = rng.integers(2, size=40)
    agent.observe(rng.uniform(-1, 1, (40, DIM)), np.arange(40) % 9, rewards.astype(float))
    for i in range(20):
        x = rng.uniform(-1, 1, DIM)
        found = []
        for off in (False, True):
            unscreened(off)
            found.append((agent.decide(x, draw=i), *agent.decide(x, k=2, draw=i)))
        assert found[0] == found[1]
        unscreened(False)
        agent.observe(x, int(found[0][0]), float(i % 2))


@pytest.mark.parametrize("make", AGENTS)
def test_the_best_scores_are_right_and_the_others_are_scores_or_nothing(make: Callable[..., Agent]) -> None:
    rng = np.random.default_rng(2)
    belief = taught(make(4, rng), 1_500, rng).belief
    X, offer = rng.uniform(-1, 1, (20, 4)), belief.catalogue.offer()
    wanted, roots = belief.draw_scores(X, offer, np.random.default_rng(5))
    for k in (1, 5):
        found, same = belief.draw_scores(X, offer, np.random.default_rng(5), best=k)
        np.testing.assert_array_equal(roots, same)
        left = found > -np.inf
        np.testing.assert_allclose(found[left], wanted[left], rtol=1e-9, atol=1e-9)
        for row, all_scores in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(np.argsort(-row, kind="stable")[:k], np.argsort(-all_scores)[:k])
        assert left.sum() < left.size / 4  # most of them were not looked at


def test_a_context_of_zeros_and_contexts_at_the_ends_of_what_floats_hold() -> None:
    rng = np.random.default_rng(0)
    agent = taught(lints(3, rng), 900, rng)
    agent.retire(list(range(0, 380, 2)))
    assert len({agent.decide(np.zeros(3), draw=i) for i in range(200)}) > 50
    for x in (np.full(3, 1e99), np.full(3, 1e-99), np.full(3, 1e-200)):
        chosen = agent.decide(x)
        assert chosen % 2 or chosen >= 380


# ---- bounds -----------------------------------------------------------------------------------------------------------


def draws(agent: Agent, rng: np.random.Generator, number: int) -> list[Draw]:
    belief = agent.belief
    leaves, out = belief.leaves, []
    for x in rng.standard_normal((number, agent.dim)) * 10.0 ** rng.uniform(-3, 3, (number, 1)):
        m = belief.root.draw(rng, 1)[0]
        mean = leaves.c.rows @ x if belief.root.known else None
        z = 3 * rng.standard_normal(len(leaves.counts))
        out.append(Draw(belief.screen.bounds, x, m, z, None, mean))
    return out


def assert_bounded(agent: Agent, rng: np.random.Generator, number: int = 8) -> None:
    bounds, everybody = agent.belief.screen.bounds, np.arange(agent.played)
    for draw in draws(agent, rng, number):
        scores = draw.scores(everybody)
        assert (bounds.upper(draw) >= scores).all()
        assert (bounds.upper_from_all(draw) >= scores).all()
        some = rng.permutation(agent.played)[:50]
        mean = None if draw.mean is None else draw.mean[some]
        fewer = Draw(bounds, draw.x, draw.m, draw.z[some], some, mean)
        assert (bounds.upper(fewer) >= scores[some]).all()


@pytest.mark.parametrize("make", AGENTS)
@pytest.mark.parametrize("d", [1, 2, 7])
@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_no_score_is_above_its_bound(make: Callable[..., Agent], d: int, scale: float) -> None:
    """While rows come in one by one and at once, rewards are replaced, actions come, and bounds are made better."""
    rng = np.random.default_rng(d)
    agent = taught(make(d, rng, scale), 2_000, rng, actions=K // 2)
    assert_bounded(agent, rng)
    bounds = agent.belief.screen.bounds
    assert bounds.tighten(np.arange(agent.played)) or d > 1 or scale < 1
    assert_bounded(agent, rng)
    x = rng.uniform(-1, 1, d)
    for i in range(120):  # of old ones and of new ones
        x, action = rng.uniform(-1, 1, d), int(rng.integers(10) if i % 2 else K // 2 + i)
        agent.observe(x, action, float(np.sqrt(scale) * rng.standard_normal()))
        if i % 40 == 0:
            assert_bounded(agent, rng, 2)
    assert_bounded(agent, rng)
    X = rng.uniform(-1, 1, (500, d))
    agent.observe(X, rng.integers(K, size=500), np.sqrt(scale) * rng.standard_normal(500))
    assert_bounded(agent, rng)


def test_the_worst_matrices_meet_their_bounds() -> None:
    """S_a = C M C^T with M = r u u^T along y + v, for which the bound of y^T M v is an equality."""
    rng = np.random.default_rng(3)
    agent = taught(hierts(4, rng), 3_000, rng)
    leaves, bounds = agent.belief.leaves, agent.belief.screen.bounds
    x, m = rng.standard_normal(4), agent.belief.root.draw(rng, 1)[0]
    v = bounds.factor.T @ leaves.precision @ (m - agent.belief.root.mean())
    y = bounds.factor.T @ x
    u = y / np.linalg.norm(y) + v / np.linalg.norm(v)
    u /= np.linalg.norm(u)
    worst = bounds.factor @ np.outer(u, u) @ bounds.factor.T
    leaves.S.rows[:] = leaves.packing.pack(worst)
    everybody = np.arange(agent.played)
    agent.belief.screen.changed(leaves.catalogue.played.rows)
    draw = Draw(bounds, x, m, np.zeros(agent.played), None, None)
    scores, upper = draw.scores(everybody), bounds.upper(draw)
    assert (upper >= scores).all()
    np.testing.assert_allclose(upper, scores, rtol=1e-4, atol=1e-4)
    for M in (np.eye(4), np.zeros((4, 4)), np.diag([1.0, 0, 0, 1]), np.outer(u, u) / 3):
        leaves.S.rows[:] = leaves.packing.pack(np.asarray(bounds.factor @ M @ bounds.factor.T, dtype=np.float64))
        agent.belief.screen.changed(leaves.catalogue.played.rows)
        assert_bounded(agent, rng)
        bounds.tighten(everybody)
        assert_bounded(agent, rng)


@pytest.mark.parametrize("make", AGENTS)
def test_scores_do_not_depend_on_who_else_is_asked_for(make: Callable[..., Agent]) -> None:
    rng = np.random.default_rng(4)
    for d in (1, 3, 10):
        agent = taught(make(d, rng), 1_500, rng)
        (draw,) = draws(agent, rng, 1)
        everybody = draw.scores(np.arange(agent.played))
        for number in (1, 2, 7, 100):
            some = rng.permutation(agent.played)[:number]
            np.testing.assert_array_equal(draw.scores(some), everybody[some])


def test_a_prior_that_is_far_too_wide_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then bounds from the prior leave nearly everybody in, and those from the posteriors hardly anybody."""
    rng = np.random.default_rng(6)
    agent = ma.LinTS(ma.ActionPrior(K, np.zeros(3), 1e4 * np.eye(3)), seed=1)
    agent.observe(rng.uniform(-1, 1, (40 * K, 3)), np.arange(40 * K) % K, rng.standard_normal(40 * K))
    read: list[int] = []
    scores, all_of = Draw.scores, played_bounds.PlayedBounds.upper_from_all

    def counted(draw: Draw, places: Ints) -> Array:
        read.append(len(places))
        return scores(draw, places)

    def everybody(bounds: played_bounds.PlayedBounds, draw: Draw) -> Array:
        read.append(K)
        return all_of(bounds, draw)

    monkeypatch.setattr(Draw, "scores", counted)
    monkeypatch.setattr(played_bounds.PlayedBounds, "upper_from_all", everybody)
    for x in rng.uniform(-1, 1, (5, 3)):
        agent.decide(x)
    read.clear()
    for x in rng.uniform(-1, 1, (20, 3)):
        agent.decide(x)
    assert sum(read) < 20 * K / 4


@pytest.mark.parametrize("make", AGENTS)
def test_saved_loaded_and_copied_agents_decide_alike(make: Callable[..., Agent], tmp_path: Path) -> None:
    rng = np.random.default_rng(8)
    agent = taught(make(6, rng), 4_000, rng)
    held = agent.nbytes
    agent.decide(np.ones(6))
    agent.belief.screen.bounds.tighten(np.arange(agent.played))
    assert agent.nbytes > held or make in (lints,)
    agent.save(tmp_path / "agent")
    others = [ma.load(tmp_path / "agent"), agent.copy(), agent.snapshot()]
    for i, x in enumerate(rng.uniform(-1, 1, (40, 6))):
        actions = [one.decide(x, draw=i) for one in (agent, *others)]
        assert len(set(actions)) == 1
        for one in (agent, *others[:2]):
            one.observe(x, actions[0], float(i % 3))
        others.pop()
        others.append(agent.snapshot())
