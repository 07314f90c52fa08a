"""Actions of a live store with other features: an operation of the log, folded the same by everybody."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import manyarms as ma
from live.making import DIM, X, a_live, agent_of, an_agent, contexts, from_origin, mixed, same_belief
from manyarms.errors import InvalidInput, LiveError, UnknownAction
from manyarms.live import Live
from manyarms.policies import UniformPolicy

WEIGHTS = np.random.default_rng(4).uniform(-1, 1, (3, 3))


def rewarded(live: Live, number: int, seed: int = 0) -> None:
    for i, x in enumerate(contexts(number, seed)):
        live.reward(live.decide(x, id=f"e{seed}.{i}").id, float(i % 3))
    live.learn()


def test_it_is_the_belief_of_these_weights_to_the_last_bit_of_every_fold(tmp_path: Path) -> None:
    live = a_live(mixed(), path=tmp_path / "a.db", snapshot_every=3)
    live.add_arm("plain", an_agent(actions=12))
    live.add_arm("even", UniformPolicy(12))
    rewarded(live, 20)
    plain = agent_of(live, "plain")
    taken = int(live.event("e0.0").actions[0])
    ids = [taken, *[a for a in (5, 9, 11) if a != taken][:2]]
    live.update_actions(ids, weights=WEIGHTS)
    same_belief(agent_of(live, "plain"), plain)
    rewarded(live, 20, seed=1)
    assert from_origin(live) == live.state_bytes()
    prior = ma.worlds.MixedEffect(12, 3, DIM, seed=1).prior()
    weights = np.array(prior.weights)
    weights[ids] = WEIGHTS
    other = ma.meTS(ma.MixedEffectPrior(weights, prior.effect_mean, prior.effect_covariance, prior.action_covariance))
    for seed in (0, 1):
        for i, x in enumerate(contexts(20, seed)):
            other.observe(x, live.event(f"e{seed}.{i}").actions[0], float(i % 3))
    same_belief(agent_of(live), other, 1e-8)
    state = live.state_bytes()
    live.close()
    again = a_live(path=tmp_path / "a.db")
    assert again.state_bytes() == state
    again.close()
    assert ma.live.replay(tmp_path / "a.db").ok


def test_an_event_is_explained_by_the_weights_that_it_was_decided_with() -> None:
    live = a_live(mixed())
    rewarded(live, 5)
    d = live.decide(X, id="then")
    before = live.why("then").explanation
    live.update_actions(d.action, weights=WEIGHTS[0])
    after = live.why("then")
    assert before is not None and after.explanation is not None
    assert after.exact
    np.testing.assert_array_equal(before.contributions, after.explanation.contributions)
    live.close()


def test_ids_name_the_actions() -> None:
    prior = ma.worlds.MixedEffect(3, 3, DIM, seed=1).prior()
    live = a_live(ma.meTS(prior, seed=0, catalogue=["p", "q", "r"]))
    live.update_actions(["r", "p"], weights=WEIGHTS[:2])
    live.update_actions("q", weights=WEIGHTS[2])
    features = agent_of(live).belief.leaves.mixing.features
    np.testing.assert_array_equal(features, WEIGHTS[[1, 2, 0]])
    with pytest.raises(UnknownAction):
        live.update_actions(["s"], weights=WEIGHTS[:1])
    live.close()


@pytest.mark.parametrize(
    ("actions", "weights"), [([1, 1], WEIGHTS[:2]), ([1], WEIGHTS), ([99], WEIGHTS[:1]), ([1], np.ones((1, 5)))]
)
def test_what_cannot_be_done_is_refused_and_changes_nothing(actions: Any, weights: Any) -> None:
    live = a_live(mixed())
    rewarded(live, 3)
    before = agent_of(live)
    with pytest.raises(LiveError):
        live.update_actions(actions, weights=weights)
    same_belief(agent_of(live), before, 0.0)
    assert from_origin(live) == live.state_bytes()
    live.close()


@pytest.mark.parametrize(
    ("actions", "weights"), [(None, WEIGHTS), ([1], None), ([1], "w"), ([-1], WEIGHTS[:1]), ([1.5], WEIGHTS[:1])]
)
def test_wrong_calls_never_reach_the_log(actions: Any, weights: Any) -> None:
    live = a_live(mixed())
    with pytest.raises(InvalidInput):
        live.update_actions(actions, weights=weights)
    assert live.status()["operations_refused"] == 0
    live.close()


@pytest.mark.parametrize("arm", ["agent", "policy"])
def test_a_store_without_weights_has_none_to_update(arm: str) -> None:
    live = a_live(an_agent() if arm == "agent" else UniformPolicy(6))
    with pytest.raises(LiveError, match="weights"):
        live.update_actions([1], weights=[[1.0]])
    live.close()
