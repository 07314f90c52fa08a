"""Decisions whose propensities are exact: rules mixed with uniform play, and an ensemble of Thompson draws."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import manyarms as ma
from brute_force import random_case, random_rows
from manyarms import checks
from manyarms._base.typing import Array
from manyarms.agents import Ensemble, EpsilonGreedy, EpsilonMixed
from manyarms.agents.agent import Agent
from manyarms.agents.decisions import Pick
from manyarms.errors import InvalidInput

X = np.array([0.8, -0.5])
K = 7
FILTERS: list[dict[str, Any]] = [
    {},
    {"candidates": [6, 4, 2, 0, 1]},
    {"exclude": [0, 4]},
    {"candidates": [6, 4, 2, 0, 1], "exclude": [2, 5]},
]
DECISIONS = {
    "greedy": EpsilonMixed(ma.Greedy(), 0.3),
    "ucb": EpsilonMixed(ma.agents.UCB(1.5), 0.2),
    "pessimistic": EpsilonMixed(ma.agents.Pessimistic(0.7), 0.5),
    "ensemble": Ensemble(6, 0.2),
    "ensemble without a floor": Ensemble(3, 0.0),
}


def learned(decision: ma.agents.Decision, mixing: str = "one-hot", seed: int = 7) -> Agent:
    """Two actions played, one retired; with one-hot weights the others are interchangeable."""
    case = random_case(12, mixing, "gaussian", shared=True, actions=K, noise=0.5, spread=0.4)
    agent = Agent(case.agent().belief, decision, seed)
    agent.observe(*random_rows(3, 8, 2, np.array([1, 4])))
    agent.retire(3)
    return agent


def offered(options: dict[str, Any]) -> list[int]:
    return [a for a in options.get("candidates", range(K)) if a not in options.get("exclude", ()) and a != 3]


def chi_square(counts: Array, expected: Array) -> None:
    """Refuses at 1e-6; what is impossible must not have come."""
    possible = expected > 0
    assert not counts[~possible].any()
    if possible.sum() > 1:
        statistic = ((counts - expected) ** 2 / np.maximum(expected, 1e-300))[possible].sum()
        assert stats.chi2.sf(statistic, possible.sum() - 1) > 1e-6


@pytest.mark.parametrize("options", FILTERS)
@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("name", ["greedy", "ucb", "pessimistic"])
def test_mixtures_sum_to_one_and_have_the_frequencies_of_decisions(name: str, k: int, options: dict[str, Any]) -> None:
    agent, n = learned(DECISIONS[name]), 1000
    found = [agent.propensity(X, a, k=k, **options) for a in range(K) if a != 3]
    assert all(p.exact and p.kind == "exact" and p.relative_error == 0 for p in found)
    assert sum(p.value for p in found) == pytest.approx(1, abs=1e-15)
    assert sum(p.inclusion for p in found) == pytest.approx(k, abs=1e-14)
    decided = np.asarray(agent.decide(np.tile(X, (n, 1)), k=k, **options))
    value = np.zeros(K)
    value[[a for a in range(K) if a != 3]] = [p.value for p in found]
    assert (value[offered(options)] > 0).all() and not np.delete(value, offered(options)).any()
    chi_square(np.bincount(decided[:, 0], minlength=K), n * value)


def test_epsilon_greedy_is_the_mixture_with_the_greedy_rule() -> None:
    old, new = learned(EpsilonGreedy(0.3)), learned(EpsilonMixed(ma.Greedy(), 0.3))
    batch = np.random.default_rng(0).uniform(-1, 1, (200, 2))
    np.testing.assert_array_equal(old.decide(batch, k=2), new.decide(batch, k=2))
    assert old.propensity(X, 2) == new.propensity(X, 2)
    policies = [agent.as_policy() for agent in (mixed_complete(old), mixed_complete(new))]
    every = np.tile(np.arange(K), (200, 1))
    np.testing.assert_array_equal(*(policy.probabilities_of_many(batch, every) for policy in policies))


def mixed_complete(agent: Agent) -> Agent:
    agent.reinstate([3])
    return agent


@pytest.mark.parametrize("rule", [ma.agents.UCB(0.5), ma.agents.Pessimistic(0.3)], ids=lambda r: r.kind)
def test_mixtures_are_policies(rule: ma.agents.Decision) -> None:
    agent = mixed_complete(learned(EpsilonMixed(rule, 0.25), "weights"))
    batch = np.random.default_rng(0).uniform(-1, 1, (20, 2))
    found = agent.as_policy().probabilities_of_many(batch, np.tile(np.arange(K), (20, 1)))
    np.testing.assert_allclose(found, [[agent.propensity(x, a).value for a in range(K)] for x in batch], atol=1e-15)


# ---- the ensemble ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", FILTERS)
@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("name", ["ensemble", "ensemble without a floor"])
def test_an_ensemble_sums_to_one_given_the_draws_of_a_decision(name: str, k: int, options: dict[str, Any]) -> None:
    agent = learned(DECISIONS[name])
    for draw in range(5):
        found = [agent.propensity(X, a, k=k, draw=draw, **options) for a in range(K) if a != 3]
        assert all(p.exact for p in found)
        assert sum(p.value for p in found) == pytest.approx(1, abs=1e-14)
        assert sum(p.inclusion for p in found) == pytest.approx(k, abs=1e-13)
        first, *_ = np.atleast_1d(agent.decide(X, k=k, draw=draw, **options))
        assert agent.propensity(X, int(first), k=k, draw=draw, **options).value > 0


def test_what_is_chosen_has_the_propensity_of_its_own_draws() -> None:
    """E[1/p of what is chosen | draws] is the number of actions on offer, whatever was drawn: only with the right draws."""
    agent, inverse = learned(Ensemble(4, 0.3)), []
    for _ in range(1000):
        made = agent.decide_numbered(X)
        assert made.draw is not None and isinstance(made.actions, int)
        inverse.append(1 / agent.propensity(X, made.actions, draw=made.draw).value)
    error = np.std(inverse) / np.sqrt(len(inverse))
    assert abs(np.mean(inverse) - 6) < 5.5 * error


class Fixed(Ensemble):
    """An ensemble that has drawn already: two lists end at played actions and two at units."""

    def lists(self, belief: Any, x: Array, offer: Any, k: int, rng: np.random.Generator) -> list[Pick]:
        unit = int(np.flatnonzero(offer.counts > 1)[0])
        some = [([True, False], [0, unit]), ([False, False], [unit, unit]), ([True, True], [1, 0])]
        return [Pick(np.array(p)[:k], np.array(places)[:k], uniform=True) for p, places in some]


@pytest.mark.parametrize("k", [1, 2])
def test_given_the_draws_the_choice_has_the_law_that_is_stated(k: int) -> None:
    agent, n = learned(Fixed(3, 0.3)), 2000
    decided = np.asarray(agent.decide(np.tile(X, (n, 1)), k=k))
    found = {a: agent.propensity(X, a, k=k) for a in range(K) if a != 3}
    value = np.array([found[a].value if a in found else 0.0 for a in range(K)])
    chi_square(np.bincount(decided[:, 0], minlength=K), n * value)
    for a, p in found.items():
        seen = (decided == a).any(axis=1).mean()
        assert abs(seen - p.inclusion) < 5.5 * np.sqrt(p.inclusion * (1 - p.inclusion) / n)
    ids = agent.belief.catalogue.played.rows
    assert found[int(ids[1])].value == pytest.approx(0.3 / 6 + 0.7 / 3)


def test_contexts_of_actions_and_zeros() -> None:
    agent = learned(Ensemble(5, 0.1))
    Z = np.random.default_rng(1).uniform(-1, 1, (4, 2))
    some = [6, 0, 1, 2]
    found = [agent.propensity(None, a, action_contexts=Z, candidates=some, draw=3) for a in some]
    assert sum(p.value for p in found) == pytest.approx(1)
    assert agent.propensity(X, 2, candidates=[2], draw=0).value == pytest.approx(1)
    zeros = [agent.propensity(np.zeros(2), a, draw=2) for a in range(K) if a != 3]
    assert sum(p.value for p in zeros) == pytest.approx(1)


# ---- both -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DECISIONS)
def test_they_are_agents_like_any_other(name: str, tmp_path: Path) -> None:
    prior = ma.MixedEffectPrior.isotropic(np.random.default_rng(0).uniform(-1, 1, (9, 2)), 3)
    decision = DECISIONS[name]
    checks.check_agent(lambda seed: Agent(ma.beliefs.belief_of(prior, ma.Linear()), decision, seed, "exact"))
    agent = learned(decision)
    agent.save(tmp_path)
    again = ma.load(tmp_path)
    assert again.decision == decision
    assert again.propensity(X, 2, draw=4) == agent.propensity(X, 2, draw=4)


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda: EpsilonMixed(ma.Thompson(), 0.1), "rule"),
        (lambda: EpsilonMixed(EpsilonGreedy(0.1), 0.1), "rule"),
        (lambda: EpsilonMixed(0.3), "rule"),  # type: ignore[arg-type]
        (lambda: EpsilonMixed(ma.Greedy(), 1.5), "epsilon"),
        (lambda: Ensemble(0), "draws"),
        (lambda: Ensemble(2**60), "draws"),
        (lambda: Ensemble(4, -0.1), "epsilon"),
    ],
)
def test_what_cannot_be_is_refused(make: Any, argument: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        make()
    assert refused.value.argument == argument
