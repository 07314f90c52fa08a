"""A decision of one's own is one short file, saved and restored by the name that it registers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import manyarms as ma
from manyarms import checks
from manyarms.agents.decisions import DECISIONS, Decision, IndexDecision, restore_decision
from manyarms.errors import InvalidInput, StorageError

SHIPPED = {
    "thompson": ma.Thompson(),
    "uniform": ma.agents.Uniform(),
    "greedy": ma.Greedy(),
    "ucb": ma.agents.UCB(1.5, on_mean=True),
    "pessimistic": ma.agents.Pessimistic(0.5),
    "epsilon-greedy": ma.agents.EpsilonGreedy(0.3),
    "epsilon-mixed": ma.agents.EpsilonMixed(ma.agents.UCB(1.5, on_mean=True), 0.3),
    "ensemble": ma.agents.Ensemble(5, 0.2),
    "knowledge-gradient": ma.agents.KnowledgeGradient(30.0),
    "scaled-thompson": ma.agents.ScaledThompson(0.7),
}


def test_every_registered_decision_is_restored_from_its_name_and_settings() -> None:
    assert set(DECISIONS) == set(SHIPPED)
    for name, decision in SHIPPED.items():
        assert decision.kind == name
        assert restore_decision({"kind": name, **decision.options()}) == decision
    of_the_belief = ma.agents.EpsilonMixed(ma.agents.KnowledgeGradient(), 0.3)
    assert restore_decision({"kind": "epsilon-mixed", **of_the_belief.options()}) == of_the_belief
    with pytest.raises(InvalidInput, match="did you mean thompson"):
        restore_decision({"kind": "tompson"})


def test_a_decision_of_ones_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(DECISIONS, "_parts", dict(DECISIONS))

    @DECISIONS.register("variance")
    @dataclass(frozen=True)
    class Curious(IndexDecision):
        """The action that is known least, its mean weighed lightly."""

        weight: float = 0.1

        def index(self, belief, mean, variance):  # type: ignore[no-untyped-def]
            return np.sqrt(np.maximum(variance, 0.0)) + self.weight * mean

    prior = ma.MixedEffectPrior.isotropic(np.random.default_rng(0).uniform(-1, 1, (9, 2)), 3)

    def make(seed: int) -> ma.Agent:
        return ma.Agent(ma.beliefs.belief_of(prior, ma.Linear()), Curious(0.2), seed, "curious")

    checks.check_agent(make)
    agent = make(0)
    agent.observe(np.ones(3), 4, 1.0)
    agent.save(tmp_path)
    assert ma.load(tmp_path).decision == Curious(0.2)
    found = agent.propensity(np.ones(3), int(agent.decide(np.ones(3))))
    assert found.exact and found.value == 1.0
    monkeypatch.undo()
    with pytest.raises(StorageError, match="variance"):
        ma.load(tmp_path)


def test_a_drawing_decision_needs_only_to_pick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its propensities are then Monte-Carlo estimates, and say so."""
    monkeypatch.setattr(DECISIONS, "_parts", dict(DECISIONS))

    @DECISIONS.register("twice")
    @dataclass(frozen=True)
    class BestOfTwo(Decision):
        """Thompson sampling, drawn twice; the second draw counts."""

        def pick(self, belief, X, offer, k, rng):  # type: ignore[no-untyped-def]
            ma.Thompson().pick(belief, X, offer, k, rng)
            return ma.Thompson().pick(belief, X, offer, k, rng)

    prior = ma.ActionPrior(9, np.zeros(3), np.eye(3))
    checks.check_agent(lambda seed: ma.Agent(ma.beliefs.belief_of(prior, ma.Linear()), BestOfTwo(), seed))
    agent = ma.Agent(ma.beliefs.belief_of(prior, ma.Linear()), BestOfTwo(), 0)
    found = agent.propensity(np.ones(3), 2, draws=200)
    assert not found.exact and found.draws == 200 and abs(found.value - 1 / 9) <= 5 * found.standard_error
