"""The published baselines do what their formulas say: against a literal version that keeps all rows and inverts every matrix."""

from __future__ import annotations

import math

import numpy as np
import pytest

from manyarms.worlds import Drifting, Turnover, Wandering, simulate_drifting
from manyarms_thesis.drift.baselines import Confidence, DLinUCB, ForgettingLinUCB, SWLinUCB

CONFIDENCE = Confidence(size=2.0, longest=1.5, noise=0.7, delta=0.01, lam=0.3)
Rows = list[tuple[np.ndarray, int, float]]


def made(kind: str, actions: int = 7, dim: int = 3, **options: float) -> ForgettingLinUCB:
    confidence = Confidence(2.0, 1.5, 0.7, 0.01, 0.3, **options)
    if kind == "discount":
        return DLinUCB(actions, dim, confidence, 0, gamma=0.9)
    return SWLinUCB(actions, dim, confidence, 0, length=6)


def literal_index(kind: str, rows: Rows, a: int, x: np.ndarray) -> float:
    """Formula by formula from the papers, for one action; t is the number of rounds so far."""
    t, d, lam = len(rows), len(x), CONFIDENCE.lam
    V, squared, b = lam * np.eye(d), lam * np.eye(d), np.zeros(d)
    for s, (x_s, a_s, r_s) in enumerate(rows, start=1):
        weight = 0.9 ** (t - s) if kind == "discount" else float(t - s < 6)
        if a_s == a:
            V += weight * np.outer(x_s, x_s)
            squared += weight**2 * np.outer(x_s, x_s)
            b += weight * r_s * x_s
    inverse = np.linalg.inv(V)
    mass = (1 - 0.9 ** (2 * t)) / (1 - 0.9**2) if kind == "discount" else 6
    beta = math.sqrt(lam) * 2.0 + 0.7 * math.sqrt(2 * math.log(1 / 0.01) + d * math.log(1 + 1.5**2 * mass / (lam * d)))
    return float(x @ inverse @ b + beta * math.sqrt(x @ inverse @ squared @ inverse @ x))


@pytest.mark.parametrize("kind", ["discount", "window"])
def test_indices_and_choices_are_those_of_the_literal_formulas(kind: str) -> None:
    rng, agent, rows = np.random.default_rng(1), made(kind), Rows()
    for t in range(60):
        x = rng.uniform(-1, 1, 3)
        literal = np.array([literal_index(kind, rows, a, x) for a in range(7)])
        if rows:
            np.testing.assert_allclose(agent.indices(x), literal[agent._ids], rtol=1e-9, atol=1e-9)
        for a in agent._unplayed:
            assert agent.unplayed_index(x) == pytest.approx(literal[a])
        a = agent.decide(x)
        assert literal[a] == pytest.approx(literal.max(), rel=1e-9)
        if t % 3 == 0:  # not only what it would have played
            a = int(rng.integers(5))
        r = float(rng.standard_normal())
        agent.observe(x, a, r)
        rows.append((x, a, r))
    assert agent.played == 7 and agent.nbytes > 0


def test_a_window_forgets_to_the_last_bit() -> None:
    agent = made("window", 3)
    agent.observe(np.array([1.0, 0.1, 0.3]), 0, 5.0)
    for _ in range(6):
        agent.observe(np.array([0.1, 0.2, 0.3]), 1, 1.0)
    assert not agent._V[0].any() and not agent._b[0].any() and agent._V[1].any()


def test_a_fixed_width_takes_the_place_of_beta() -> None:
    agent = made("discount", width=0.5)
    assert agent.unplayed_index(np.array([0.0, 3.0, 4.0])) == pytest.approx(0.5 * 5 / math.sqrt(0.3))


@pytest.mark.parametrize("kind", ["discount", "window"])
def test_actions_that_went_are_not_played(kind: str) -> None:
    world = Drifting(7, 3, changes=[Wandering(20), Turnover(5, 3)], seed=0)
    agent = made(kind, width=0.2)
    run = simulate_drifting(world, agent, 60)  # which refuses actions that are not on offer
    assert np.isfinite(run.regret).all() and run.chosen.max() > 6
