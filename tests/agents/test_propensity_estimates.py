"""Propensities of Thompson sampling: those of what is decided, for every belief; positive; honest about their errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

import manyarms as ma

K, D = 50, 3
RNG = np.random.default_rng(8)
B = RNG.uniform(-1, 1, (K, 2))
X = np.array([0.8, -0.5, 0.4])
Z = RNG.uniform(-1, 1, (K, D))


def chain(*, shared: bool) -> ma.DiffusionPrior:
    rng = np.random.default_rng(2)
    links = [ma.priors.NetworkLink.random(D, 8, rng, scaled=True) for _ in range(2)]
    return ma.DiffusionPrior(K, D, links, [0.5, 0.8, 1.0], shared)


def own_covariances() -> ma.ActionPrior:
    sizes = np.random.default_rng(1).uniform(0.3, 1.5, K)
    return ma.ActionPrior(K, np.zeros(D), sizes[:, None, None] * np.eye(D))


KINDS: dict[str, Callable[[], ma.Agent]] = {
    "LinTS": lambda: ma.LinTS(ma.ActionPrior(K, np.zeros(D), np.eye(D)), ma.Linear(0.5), seed=0),
    "own covariances": lambda: ma.LinTS(own_covariances(), ma.Linear(0.5), seed=0),
    "HierTS": lambda: ma.HierTS(ma.HierarchicalPrior(K, np.zeros(D), np.eye(D), 0.5 * np.eye(D)), seed=0),
    "meTS": lambda: ma.meTS(ma.MixedEffectPrior.isotropic(B, D), seed=0),
    "meTS, logistic": lambda: ma.meTS(ma.MixedEffectPrior.isotropic(B, D), ma.Logistic(), seed=0),
    "meTS, factored": lambda: ma.meTS(ma.MixedEffectPrior.isotropic(B, D), factored="mean-field", seed=0),
    "dTS, one chain": lambda: ma.dTS(chain(shared=True), approximation="jacobian", seed=0),
    "dTS, particles": lambda: ma.dTS(chain(shared=False), approximation="particles", seed=0),
    "dTS, chains": lambda: ma.dTS(chain(shared=False), approximation="thesis", seed=0),
    "jointTS": lambda: ma.agents.jointTS(ma.ActionPrior(1, np.zeros(D), np.eye(D)), K, seed=0),
    "jointTS, a chain": lambda: ma.agents.jointTS(chain(shared=True), K, approximation="jacobian", seed=0),
}


def learned(kind: str) -> tuple[ma.Agent, Any]:
    """An agent that has seen some rows, and a context."""
    agent, rng = KINDS[kind](), np.random.default_rng(3)
    actions = np.repeat([3, 7, 20, 41], 3)
    agent.observe(rng.uniform(-1, 1, (12, D)), actions, rng.integers(0, 2, 12).astype(float))
    agent.retire(30)
    return agent, Z if agent.belief.per_action is False else X


@pytest.mark.parametrize(
    ("kind", "k"), [*((kind, 3) for kind in KINDS), ("meTS", 1), ("jointTS", 1), ("dTS, particles", 1)]
)
def test_they_are_the_frequencies_of_decisions(kind: str, k: int) -> None:
    agent, x = learned(kind)
    n = 1000 if "chain" in kind or "particles" in kind else 4000
    options: dict[str, Any] = {"exclude": [12, 41]}
    decided = np.concatenate(
        [np.asarray(agent.decide(np.broadcast_to(x, (1000, *x.shape)), k=k, **options)) for _ in range(n // 1000)]
    )
    counts = np.stack([np.bincount(decided[:, 0], minlength=K), np.bincount(decided.ravel(), minlength=K)])
    likely = np.argsort(-counts[1])[:3]
    for action in [*likely.tolist(), 7, 11]:
        found = agent.propensity(x, action, k=k, draws=40, **options)
        assert found.kind == "estimated" and found.value <= found.inclusion <= 1
        for have, error, seen in (
            (found.value, found.standard_error, counts[0, action] / n),
            (found.inclusion, found.inclusion_standard_error, counts[1, action] / n),
        ):
            # at least 5 expected, so that six sds of a Poisson variable are out of reach at 1e-6
            assert abs(have - seen) < 6 * np.hypot(error, np.sqrt(max(have, 5 / n) / n))
    for action in (12, 41):
        found = agent.propensity(x, action, k=k, **options)
        assert found.exact and found.value == found.inclusion == 0.0


@pytest.mark.parametrize("kind", ["own covariances", "meTS", "jointTS"])
def test_they_sum_to_one(kind: str) -> None:
    agent, x = learned(kind)
    found = [agent.propensity(x, a, draws=16, rng=a) for a in range(K) if a != 30]
    error = np.sqrt(sum(p.standard_error**2 for p in found))
    assert abs(sum(p.value for p in found) - 1) < 6 * error


@pytest.mark.parametrize("kind", ["HierTS", "meTS"])
def test_the_standard_error_is_honest(kind: str) -> None:
    """Intervals by the t distribution of n/2 degrees of freedom cover as often as they say, binomially."""
    agent, x = learned(kind)
    for action in (7, 11):
        truth = agent.propensity(x, action, draws=1000, rng=0)
        found = [agent.propensity(x, action, draws=32, rng=seed) for seed in range(1, 101)]
        reach = float(stats.t.ppf(0.975, 16))
        covered = sum(
            abs(p.value - truth.value) <= reach * np.hypot(p.standard_error, truth.standard_error) for p in found
        )
        assert covered >= stats.binom.ppf(1e-6, 100, 0.95)
        values, errors = np.array([p.value for p in found]), np.array([p.standard_error for p in found])
        # the variance that they state is that which they have: a ratio of chi-squares
        ratio = values.var(ddof=1) / np.mean(errors**2)
        assert 0.4 < ratio < 2.5
        assert abs(values.mean() - truth.value) < 6 * np.hypot(errors.mean() / 10, truth.standard_error)


def test_no_action_is_impossible_in_a_large_catalogue() -> None:
    rng = np.random.default_rng(0)
    agent = ma.meTS(ma.MixedEffectPrior.isotropic(rng.uniform(-1, 1, (100_000, 3)), 4), ma.Linear(0.5), seed=0)
    x = np.array([1.0, 0.5, -0.3, 0.8])
    assert 0 < agent.propensity(x, 99_999).value < 1  # nobody has played anything
    actions = np.arange(40)
    agent.observe(rng.uniform(-1, 1, (40, 4)), actions, rng.standard_normal(40))
    for _ in range(5):
        agent.observe(x, 5, -1.0)
    hopeless, usual = agent.propensity(x, 5), agent.propensity(x, 77_777)
    assert 0 < hopeless.value < 1e-12 and 0 < hopeless.relative_error < 1
    assert hopeless.value < usual.value
    agent.observe(x, 6, -1000.0)
    nothing = agent.propensity(x, 6)  # less than a float holds
    assert nothing.value == nothing.standard_error == np.finfo(float).tiny
    chosen = int(agent.decide(x))
    found = agent.propensity(x, chosen)
    assert found.draws == 6 and 0 < found.relative_error < 0.5
    assert found.inverse_bias == pytest.approx(found.relative_error**2)


def test_all_played_one_candidate_and_as_many_places_as_actions() -> None:
    agent, _ = learned("meTS")
    alone = agent.propensity(X, 7, candidates=[7])
    assert alone.exact and alone.value == alone.inclusion == 1.0 and alone.relative_error == 0.0
    rng = np.random.default_rng(4)
    everything = [a for a in range(K) if a != 30]
    agent.observe(rng.uniform(-1, 1, (K - 1, D)), everything, rng.standard_normal(K - 1))
    found = [agent.propensity(X, a, draws=16, rng=a) for a in everything]
    assert abs(sum(p.value for p in found) - 1) < 6 * np.sqrt(sum(p.standard_error**2 for p in found))
    last = agent.propensity(X, 7, candidates=[7, 8, 9], k=3)
    assert last.inclusion == 1.0 and last.inclusion_standard_error == 0.0 and last.value < 1
    # candidates in another order than they were played in
    order = [41, 3, 20, 7]
    one, other = (agent.propensity(X, 20, candidates=c, draws=400, rng=1) for c in (order, sorted(order)))
    assert abs(one.value - other.value) < 6 * np.hypot(one.standard_error, other.standard_error)


@pytest.mark.parametrize("k", [1, 2, 4])
def test_contexts_of_zeros_among_contexts_of_actions(k: int) -> None:
    """Their scores are 0: any of them is first where no other is positive."""
    agent, _ = learned("HierTS")
    some, contexts = [3, 8, 9, 20, 33, 40], np.random.default_rng(0).uniform(-1, 1, (6, D))
    contexts[[1, 4]] = 0.0
    options: dict[str, Any] = {"action_contexts": contexts, "candidates": some}
    batch = np.broadcast_to(contexts, (2000, 6, D))
    decided = np.asarray(agent.decide(action_contexts=batch, candidates=some, k=k))
    total = 0.0
    for action in some:
        found = agent.propensity(None, action, k=k, draws=100, **options)
        assert found.value > 0
        total += found.value
        for have, error, seen in (
            (found.value, found.standard_error, (decided[:, 0] == action).mean()),
            (found.inclusion, found.inclusion_standard_error, (decided == action).any(axis=1).mean()),
        ):
            assert abs(have - seen) < 6 * np.hypot(error, np.sqrt(max(have, 5e-3) / 2000))
    assert total == pytest.approx(1, abs=0.1)


def test_many_places_are_tried_out() -> None:
    agent = ma.LinTS(ma.ActionPrior(300, np.zeros(2), np.eye(2)), seed=0)
    found = agent.propensity([0.5, 0.2], 3, k=290, draws=50)
    assert found.draws == 50 and found.inclusion > 0.5
