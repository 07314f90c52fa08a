"""Propensities agree with what is decided, with quadrature, and with each other; they say how well they are known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

import manyarms as ma
from brute_force import random_case, random_rows
from manyarms._base.typing import Array
from manyarms.agents.agent import Agent

X = np.array([0.8, -0.5])


class Tried(ma.Thompson):
    """Thompson sampling whose propensities are the shares of decisions tried out."""

    propensity = ma.agents.Decision.propensity


def learned(mixing: str = "weights", root: str = "gaussian", *, shared: bool = True, K: int = 7) -> Agent:
    case = random_case(12, mixing, root, shared=shared, actions=K, noise=0.5, spread=0.4)
    agent = case.agent(seed=7)
    agent.observe(*random_rows(3, 8, 2, np.array([1, 4])))
    return agent


def first_of_independent(mean: Array, sd: Array) -> Array:
    """P(score a is the largest) of independent normals: the integral of phi_a(s) prod_b Phi_b(s)."""
    s = np.linspace((mean - 9 * sd).min(), (mean + 9 * sd).max(), 4001)
    cdf = stats.norm.cdf(s, mean[:, None], sd[:, None])
    out = np.empty(len(mean))
    for a in range(len(mean)):
        others = np.delete(cdf, a, axis=0).prod(axis=0)
        out[a] = np.trapezoid(others * stats.norm.pdf(s, mean[a], sd[a]), s)
    return out


def test_against_quadrature_with_independent_actions() -> None:
    agent = learned("identity", "known")
    mean, variance = np.empty(7), np.empty(7)
    for a in range(7):
        theta, covariance = agent.posterior(a)
        mean[a], variance[a] = X @ theta, X @ covariance @ X
    exact = first_of_independent(mean, np.sqrt(variance))
    assert exact.sum() == pytest.approx(1, abs=1e-9)
    for a in range(7):
        found = agent.propensity(X, a, draws=400, rng=1)
        assert not found.exact and found.draws == 400
        assert abs(found.value - exact[a]) < 4.5 * found.standard_error
        assert found.inclusion == found.value


def test_against_quadrature_with_a_shared_root() -> None:
    """d = 1: given the root the scores are independent, so one more integral, over the root, gives it exactly."""
    agent = ma.HierTS(ma.HierarchicalPrior(5, np.array([0.2]), np.eye(1), 0.5 * np.eye(1)), ma.Linear(0.5), seed=0)
    agent.observe([[1.0], [0.5], [0.8]], [1, 1, 3], [0.4, 0.1, -0.3])
    belief = agent.belief
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    exact = np.zeros(5)
    for node, weight in zip(nodes, weights / weights.sum(), strict=True):
        m = belief.root.mean() + belief.root.factor() @ [node]
        mean, sd = np.full(5, m[0]), np.full(5, np.sqrt(0.5))
        for a, slot in belief.leaves.catalogue.slot_of.items():
            S = belief.leaves.S.rows[slot][0]
            mean[a], sd[a] = belief.leaves.c.rows[slot][0] + S / 0.5 * m[0], np.sqrt(S)
        exact += weight * first_of_independent(mean, sd)
    for a in range(5):
        found = agent.propensity([1.0], a, draws=400, rng=2)
        assert abs(found.value - exact[a]) < 4.5 * found.standard_error


CASES = {
    "LinTS": ("identity", "known", True),
    "HierTS": ("identity", "gaussian", True),
    "one-hot": ("one-hot", "gaussian", True),
    "distinct weights": ("weights", "gaussian", True),
    "own covariances": ("weights", "gaussian", False),
}
FILTERS: list[dict[str, Any]] = [
    {},
    {"candidates": [6, 4, 2, 0, 1]},
    {"exclude": [0, 4]},
    {"candidates": [6, 4, 2, 0, 1], "exclude": [2, 5]},
]


@pytest.mark.parametrize("options", FILTERS)
@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize(("mixing", "root", "shared"), CASES.values(), ids=CASES.keys())
def test_over_all_actions_they_sum_to_one_and_match_the_frequencies(
    mixing: str, root: str, shared: bool, k: int, options: dict[str, Any]
) -> None:
    """Each estimate has an error of its own, which the sum has at most added up."""
    agent = learned(mixing, root, shared=shared)
    agent.retire(3)
    alive = [0, 1, 2, 4, 5, 6]
    found = {a: agent.propensity(X, a, k=k, draws=60, rng=5, **options) for a in alive}
    error = sum(p.standard_error for p in found.values())
    assert abs(sum(p.value for p in found.values()) - 1) < 5 * error + 1e-12
    error = sum(p.inclusion_standard_error for p in found.values())
    assert abs(sum(p.inclusion for p in found.values()) - k) < 5 * error + 1e-12
    decided = np.asarray(agent.decide(np.tile(X, (2000, 1)), k=k, **options))
    offered = [a for a in options.get("candidates", alive) if a not in options.get("exclude", ())]
    for a, p in found.items():
        if a not in offered:
            assert p.exact and p.value == p.inclusion == 0.0
            continue
        assert 0 <= p.value <= p.inclusion <= 1 + 1e-12
        for have, error, seen in (
            (p.value, p.standard_error, (decided[:, 0] == a).mean()),
            (p.inclusion, p.inclusion_standard_error, (decided == a).any(axis=1).mean()),
        ):
            # the frequency has an error of its own
            assert abs(have - seen) < 5 * np.hypot(error, np.sqrt(max(have * (1 - have), 1e-4) / 2000))


def test_unplayed_actions_of_one_kind_share_what_their_group_gets() -> None:
    """A catalogue of a million: each has the same estimate, and all of them with the played one sum to one."""
    agent = ma.LinTS(ma.ActionPrior(1_000_000, np.zeros(2), np.eye(2)), seed=0)
    agent.observe(X, 5, 30.0)
    one, other = agent.propensity(X, 17, rng=1), agent.propensity(X, 999_999, rng=1)
    assert one == other
    played = agent.propensity(X, 5, rng=1)
    error = 999_999 * one.standard_error + played.standard_error
    assert abs(one.value * 999_999 + played.value - 1) < 5 * error
    assert one.relative_error < 0.02


def test_the_standard_error_is_honest() -> None:
    """Over repetitions the estimate scatters as much as it says, and covers the truth."""
    agent = learned("identity", "known")
    found = [agent.propensity(X, 1, draws=100, rng=seed) for seed in range(150)]
    values = np.array([p.value for p in found])
    typical = np.mean([p.standard_error for p in found])
    assert 0.8 < values.std(ddof=1) / typical < 1.25
    best = agent.propensity(X, 1, draws=2_000, rng=999)
    inside = [abs(p.value - best.value) < 2 * p.standard_error for p in found]
    assert np.mean(inside) > 0.88


def test_a_probability_never_seen_is_not_called_certain() -> None:
    agent = ma.LinTS(ma.ActionPrior(2, np.zeros(2), np.eye(2)), ma.Linear(0.1), seed=0)
    for _ in range(30):
        agent.observe(X, 0, 5.0)
        agent.observe(X, 1, -5.0)
    never, always = agent.propensity(X, 1), agent.propensity(X, 0)
    assert 0 < never.value < 1e-100 and not never.exact and never.kind == "estimated"
    assert always.value == pytest.approx(1, abs=0.05) and always.standard_error > 0
    assert np.isinf(agent.propensity(X, 0, draws=1).standard_error)
    plain = Agent(agent.belief, Tried(), 0).propensity(X, 1, draws=500)  # by trying it out
    assert plain.value == 0 and plain.standard_error == pytest.approx(1 / 500) and np.isinf(plain.relative_error)


def test_asking_changes_nothing() -> None:
    """Neither the next decision, nor what is asked next; and the estimate is no rehearsal of the next decision."""
    agent, twin = learned(), learned()
    first = agent.propensity(X, 2)
    assert agent.propensity(X, 2) == first
    agent.propensity(X, 2, k=2, candidates=[2, 3, 4], draws=10)
    batch = np.tile(X, (50, 1))
    assert (np.asarray(agent.decide(batch)) == np.asarray(twin.decide(batch))).all()
    assert agent.propensity(X, 2) != first  # the stream has moved on
    agreement = []
    for seed in range(300):
        agent = Agent(ma.LinTS(ma.ActionPrior(2, np.zeros(2), np.eye(2))).belief, Tried(), seed)
        agent.observe(np.stack([X, X]), [0, 1], [0.0, 0.0])
        agreement.append(agent.propensity(X, 0, draws=1).value == (agent.decide(X) == 0))
    assert 0.35 < np.mean(agreement) < 0.65


@pytest.mark.parametrize(
    "decision", [ma.Greedy(), ma.agents.UCB(1.5), ma.agents.Pessimistic(0.7)], ids=lambda d: d.kind
)
def test_decisions_that_do_not_draw_have_one_or_zero(
    decision: ma.Greedy | ma.agents.UCB | ma.agents.Pessimistic,
) -> None:
    agent = Agent(learned().belief, decision, 0)
    for options in FILTERS:
        best = np.asarray(agent.decide(X, k=3, **options))
        for a in range(7):
            found = agent.propensity(X, a, k=3, **options)
            assert found.exact and found.standard_error == 0
            assert found.value == float(a == best[0])
            assert found.inclusion == float(a in best)


@pytest.mark.parametrize("k", [1, 2])
def test_epsilon_greedy_and_uniform_are_exact(k: int) -> None:
    belief = learned("one-hot").belief
    for options in FILTERS:
        offered = [a for a in options.get("candidates", range(7)) if a not in options.get("exclude", ())]
        greedy = np.asarray(Agent(belief, ma.Greedy(), 0).decide(X, k=k, **options))
        for decision, epsilon in (
            (ma.agents.EpsilonGreedy(0.3), 0.3),
            (ma.agents.Uniform(), 1.0),
            (ma.agents.EpsilonGreedy(0.0), 0.0),
        ):
            agent = Agent(belief, decision, 0)
            decided = np.asarray(agent.decide(np.tile(X, (1500, 1)), k=k, **options))
            total = 0.0
            for a in range(7):
                found = agent.propensity(X, a, k=k, **options)
                assert found.exact
                share = 1 / len(offered) if a in offered else 0.0
                assert found.value == pytest.approx(epsilon * share + (1 - epsilon) * (a == greedy[0]))
                assert found.inclusion == pytest.approx(epsilon * k * share + (1 - epsilon) * (a in greedy))
                assert abs((decided[:, 0] == a).mean() - found.value) < 0.05
                assert abs((decided == a).any(axis=1).mean() - found.inclusion) < 0.05
                total += found.value
            assert total == pytest.approx(1)


def test_a_context_of_zeros_is_uniform() -> None:
    agent = learned("weights")
    for a in (1, 2):
        found = agent.propensity(np.zeros(2), a, k=3)
        assert found.exact and found.kind == "exact" and found.value == 1 / 7 and found.inclusion == 3 / 7


@pytest.mark.parametrize("shape", [(4, 2), (2,), (1, 4, 2)], ids=["features", "a map of vectors", "a map of matrices"])
def test_one_parameter_for_all_actions(shape: tuple[int, ...]) -> None:
    """Contexts that are matrices: phi_a^T theta beats phi_b^T theta with the chance that a normal is above 0."""
    maps: dict[tuple[int, ...], Any] = {
        (4, 2): None,
        (2,): lambda x: np.outer([0.0, 1.0, -1.0, 2.0], x),
        (1, 4, 2): lambda x: x[0],
    }
    options = {} if maps[shape] is None else {"feature_map": maps[shape], "context_shape": shape}
    prior = ma.HierarchicalPrior(1, np.array([0.3, 0.1]), np.eye(2), 0.5 * np.eye(2))
    agent = ma.agents.jointTS(prior, 4, ma.Linear(0.5), seed=0, **options)
    x = np.random.default_rng(4).uniform(-1, 1, shape)
    phi = x if maps[shape] is None else maps[shape](x)
    for action in (1, 3, 1):
        agent.observe(x, action, 0.4)
    mean, covariance = agent.posterior(0)
    for a, b in ((0, 1), (3, 2)):
        apart = phi[a] - phi[b]
        exact = stats.norm.cdf(apart @ mean / np.sqrt(apart @ covariance @ apart))
        found = agent.propensity(x, a, candidates=[a, b])
        # against a single other the direction taken is all that matters: every draw gives the same
        assert found.value == pytest.approx(exact, abs=1e-12)
        assert agent.propensity(x, a, candidates=[a, b], k=2).inclusion == 1
        assert agent.propensity(x, a, exclude=[a]).value == 0
    likely = [agent.propensity(x, a) for a in range(4)]
    assert abs(sum(p.value for p in likely) - 1) < 5 * sum(p.standard_error for p in likely)
    with pytest.raises(ma.errors.InvalidInput, match="a batch of 2"):
        agent.propensity(np.stack([x, x]), 0)
