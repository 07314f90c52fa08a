"""Actions with other features: the posterior of a prior that had these features all along, whatever came before and after."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import manyarms as ma
from brute_force import covariance_matrix, covariance_of_root
from every_agent import EVERY, same_bits
from manyarms import beliefs as b
from manyarms._base.typing import Array
from manyarms.agents import Agent
from manyarms.beliefs import updating
from manyarms.beliefs.growable import SteadyArray
from manyarms.errors import InvalidInput, UnknownAction

K, L, D = 7, 3, 2
FORMS = ("gaussian", "own covariances", "mean-field", "blockwise", "matrices", "known")


def features(form: str, rng: np.random.Generator, n: int = K) -> Array:
    if form == "matrices":
        return rng.standard_normal((n, D, D + 1))
    if form == "known":
        return rng.standard_normal((n, D, 1))  # means of their own
    return rng.uniform(-1, 1, (n, L))


def made(form: str, weights: Array, noise: float = 0.6, scale: float = 1.0, likelihood: Any = None) -> b.Belief:
    rng = np.random.default_rng(1)
    own = np.stack([covariance_matrix(rng, D) for _ in range(len(weights))])
    mixing: Any = b.MixingMatrices(weights) if form in ("matrices", "known") else b.MixingWeights(weights)
    p = mixing.root_dim(D)
    mean, covariance = rng.standard_normal(p), covariance_matrix(rng, p, scale)
    root: b.Root = b.GaussianRoot(mean, covariance)
    if form == "known":
        root = b.KnownRoot(np.ones(1))
    elif form in ("mean-field", "blockwise"):
        root = b.FactoredRoot(mean, covariance, L, form)
    leaves = b.Leaves(mixing, own if form == "own covariances" else own[0], len(weights))
    return b.Belief(root, leaves, b.Linear(noise) if likelihood is None else likelihood)


def rows(rng: np.random.Generator, n: int, actions: list[int]) -> tuple[Array, Any, Array]:
    return rng.uniform(-1, 1, (n, D)), rng.choice(np.array(actions), size=n), rng.standard_normal(n) + 0.5


def changed(weights: Array, ids: list[int], rng: np.random.Generator) -> Array:
    out = weights.copy()
    out[ids] = rng.uniform(-1, 1, out[ids].shape)
    return out


def assert_same(one: b.Belief, other: b.Belief, error: float = 1e-8) -> None:
    pairs = [(one.root.mean(), other.root.mean()), (covariance_of_root(one), covariance_of_root(other))]
    pairs += list(zip(*(x.action_posterior(np.arange(x.catalogue.size)) for x in (one, other)), strict=True))
    for first, second in pairs:
        np.testing.assert_allclose(first, second, atol=error * max(1.0, float(np.abs(second).max())))
    x, offers = np.array([0.3, -0.8]), (one.catalogue.offer(), other.catalogue.offer())
    found, wanted = (
        belief.unplayed_moments(x, offer, spread=True) for belief, offer in zip((one, other), offers, strict=True)
    )
    for first, second in zip(found, wanted, strict=True):
        np.testing.assert_allclose(first, second, atol=error * max(1.0, float(np.abs(second).max(initial=0.0))))
    np.testing.assert_array_equal(one.catalogue.units.counts, other.catalogue.units.counts)
    np.testing.assert_array_equal(one.catalogue.units.represent, other.catalogue.units.represent)
    mean, variance = one.played_moments(x[None], offers[0], spread=True)
    again, spread = other.played_moments(x[None], offers[1], spread=True)
    np.testing.assert_allclose(mean, again, atol=error * 10)
    np.testing.assert_allclose(variance, spread, atol=error * 10)


@given(seed=st.integers(0, 10_000), form=st.sampled_from(FORMS), steps=st.integers(1, 4), batch=st.booleans())
def test_it_is_the_belief_that_had_these_features_all_along(seed: int, form: str, steps: int, batch: bool) -> None:
    rng = np.random.default_rng(seed)
    weights = features(form, rng)
    belief, seen = made(form, weights), []
    for _ in range(steps):
        seen.append(rows(rng, 6, [0, 1, 2, 4]))
        for part in [slice(None)] if batch else [slice(i, i + 1) for i in range(6)]:
            belief.observe(*(column[part] for column in seen[-1]))
        ids = rng.choice(K, size=rng.integers(1, 4), replace=False).tolist()
        weights = changed(weights, ids, rng)
        belief.change_weights(*belief.new_weights(ids, weights[ids]))
    other = made(form, weights)
    other.observe(*(np.concatenate(column) for column in zip(*seen, strict=True)))
    if not batch:  # slots are in the order of first play
        other = made(form, weights)
        for X, A, r in seen:
            for i in range(len(A)):
                other.observe(X[i : i + 1], A[i : i + 1], r[i : i + 1])
    if [*belief.catalogue.played.rows] == [*other.catalogue.played.rows]:
        assert_same(belief, other)
    else:
        np.testing.assert_allclose(belief.root.mean(), other.root.mean(), atol=1e-8)
        for first, second in zip(
            belief.action_posterior(np.arange(K)), other.action_posterior(np.arange(K)), strict=True
        ):
            np.testing.assert_allclose(first, second, atol=1e-8 * max(1.0, float(np.abs(second).max())))


@pytest.mark.parametrize("form", [form for form in FORMS if form != "known"])
@pytest.mark.parametrize(("noise", "scale"), [(1e-4, 1.0), (0.5, 1e8), (1e-3, 1e4)])
def test_where_a_block_cannot_be_taken_back_the_root_is_made_anew(
    form: str, noise: float, scale: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the accuracy of docs/accuracy.md: 1e-8, or 1e-15 times a score's standard deviation over the noise."""
    anew = []
    make_anew = updating.make_anew
    monkeypatch.setattr(updating, "make_anew", lambda *a, **o: (anew.append(1), make_anew(*a, **o)))
    rng = np.random.default_rng(5)
    weights = features(form, rng)
    belief, data = made(form, weights, noise, scale), rows(rng, 40, [0, 1, 2, 4])
    belief.observe(*data)
    weights = changed(weights, [0, 3], rng)
    belief.change_weights(*belief.new_weights([0, 3], weights[[0, 3]]))
    other = made(form, weights, noise, scale)
    other.observe(*data)
    assert bool(anew) == (scale > 1.0)
    error = max(1e-8, 1e-15 * np.sqrt(scale * 10) / noise)
    if form in ("mean-field", "blockwise"):  # which sum their evidence
        error = max(error, 1e-16 * scale * 1e3)
    assert_same(belief, other, error)


def glm(form: str, weights: Array, likelihood: Any) -> b.Belief:
    return made(form, weights, likelihood=likelihood)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("expansion", ["mode", "mle"])
def test_clicks_are_fitted_again_where_the_prior_has_a_part_in_it(form: str, expansion: Any) -> None:
    rng = np.random.default_rng(6)
    weights, likelihood = features(form, rng), ma.Logistic(expansion=expansion)
    X, A, r = rows(rng, 30, [0, 1, 2, 4])
    clicks = (r > 0.3).astype(float)
    belief = glm(form, weights, likelihood)
    belief.observe(X[:20], A[:20], clicks[:20])
    weights = changed(weights, [0, 2, 5], rng)
    belief.change_weights(*belief.new_weights([0, 2, 5], weights[[0, 2, 5]]))
    belief.observe(X[20:], A[20:], clicks[20:])
    other = glm(form, weights, likelihood)
    other.observe(X[:20], A[:20], clicks[:20])
    other.observe(X[20:], A[20:], clicks[20:])
    assert_same(belief, other, 1e-5)  # fits end where the Newton decrement is below 1e-10


def test_equal_rows_join_and_part() -> None:
    """Units are those of the new features: exchangeable actions are grouped, and one that changes leaves its group."""
    weights = np.eye(L)[[0, 0, 1, 1, 2, 0, 1]]
    belief = made("gaussian", weights)
    belief.observe(np.ones((1, D)), np.array([3]), np.ones(1))
    after = weights.copy()
    after[[0, 2, 6]] = [weights[4], [0.5, 0.5, 0.0], weights[0]]
    belief.change_weights(*belief.new_weights([0, 2, 6], after[[0, 2, 6]]))
    other = made("gaussian", after)
    other.observe(np.ones((1, D)), np.array([3]), np.ones(1))
    assert_same(belief, other)


def many(seed: int = 0) -> Agent:
    rng = np.random.default_rng(seed)
    prior = ma.MixedEffectPrior(rng.uniform(-1, 1, (5000, 3)), np.zeros((3, D)), np.eye(3 * D), np.eye(D))
    return ma.meTS(prior, seed=1)


AGENTS: dict[str, Callable[[], Agent]] = {
    name: EVERY[name] for name in EVERY if name.startswith("meTS") or name == "matrices"
}


@pytest.mark.parametrize("name", [*AGENTS, "many"])
def test_saved_and_loaded_it_goes_on_to_the_last_bit(name: str, tmp_path: Path) -> None:
    agent = many() if name == "many" else AGENTS[name]()
    d, width = agent.dim, agent.belief.leaves.mixing.features
    assert width is not None
    rng = np.random.default_rng(3)

    def some(n: int) -> Array:
        found = rng.uniform(-1, 1, (n, width.shape[1]))
        return found.reshape(n, d, -1) if name == "matrices" else found

    def live(n: int) -> None:
        for x in rng.uniform(-1, 1, (n, d)):
            agent.observe(x, agent.decide(x), float(rng.integers(2)))

    live(15)
    agent.retire([7, 8])
    agent.add_actions(3, weights=some(3), covariance=None if agent.belief.leaves.shared else np.stack([np.eye(d)] * 3))
    agent.update_actions([int(agent.belief.catalogue.played.rows[0]), 7, 11], weights=some(3))
    agent.save(tmp_path / "a")
    again = ma.load(tmp_path / "a")
    assert same_bits(agent, again) == ""
    twin = agent.copy()
    extra = some(2)
    X = rng.uniform(-1, 1, (6, d))
    told = []
    for one in (agent, again, twin):
        out = [np.asarray(one.decide(X)).tolist(), np.asarray(one.decide(X, k=3)).tolist()]
        one.update_actions([2, 8], weights=extra)
        one.reinstate([8])
        for x in X:
            action = one.decide(x)
            one.observe(x, action, 1.0)
            out.append(action)
        one.update_actions([int(out[-1])], weights=extra[:1])
        out.append(np.asarray(one.decide(X)).tolist())
        told.append(out)
    assert told[0] == told[1] == told[2]
    assert same_bits(agent, again) == same_bits(agent, twin) == ""


def test_whoever_reads_is_not_disturbed_and_the_same_again_changes_nothing() -> None:
    agent = EVERY["meTS"]()
    agent.observe(np.ones(6), 3, 1.0)
    snapshot, before = agent.snapshot(), agent.posterior(5)
    features = copy.deepcopy(agent.belief.leaves.mixing.features)
    assert features is not None
    version = agent.decide_numbered(np.ones(6)).version
    agent.update_actions([3, 5], weights=features[[3, 5]])
    assert agent.decide_numbered(np.ones(6)).version == version
    agent.update_actions(3, weights=features[4])
    assert agent.decide_numbered(np.ones(6)).version == version + 1
    for first, second in zip(snapshot.posterior(5), before, strict=True):
        np.testing.assert_array_equal(first, second)
    assert np.abs(agent.posterior(5)[0] - before[0]).max() > 1e-6


@pytest.mark.parametrize(
    ("actions", "weights"),
    [
        ([1, 2], np.ones((3, 3))), ([1, 1], np.ones((2, 3))), ([1], np.ones((1, 4))), ([1], None), ([1], "w"), (99, np.ones(3)),
        (-1, np.ones(3)), (None, np.ones(3)), ([1], [[1.0, np.nan, 0.0]]), ([1], np.full((1, 3), 1e13)), ("a", np.ones(3)),
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused_and_nothing_changes(actions: Any, weights: Any) -> None:
    agent = EVERY["meTS"]()
    agent.observe(np.ones(6), 1, 1.0)
    same = agent.copy()
    with pytest.raises(InvalidInput):
        agent.update_actions(actions, weights=weights)
    assert same_bits(agent, same) == ""
    with pytest.raises(UnknownAction):
        agent.update_actions([1, 77], weights=np.ones((2, 3)))


@pytest.mark.parametrize(
    "name", ["LinTS", "HierTS", "dTS, linear links", "dTS, particles", "jointTS", "dTS, own chains"]
)
@pytest.mark.parametrize("weights", [None, [1.0, 2.0]])
def test_actions_without_weights_have_none_to_update(name: str, weights: Any) -> None:
    with pytest.raises(InvalidInput, match="weights"):
        EVERY[name]().update_actions([1], weights=weights)


def test_a_table_that_is_moving_changes_in_both_rooms() -> None:
    table, plain = SteadyArray((2,)), np.empty((0, 2))
    rng = np.random.default_rng(2)
    for i in range(400):
        table.append([i, i])
        plain = np.vstack([plain, [i, i]])
        index = rng.choice(len(plain), size=min(3, len(plain)), replace=False)
        other = rng.standard_normal((len(index), 2))
        table.replace(index, other)
        plain[index] = other
        np.testing.assert_array_equal(table.rows, plain)


def test_a_thousand_updates_leave_the_belief_that_it_was() -> None:
    rng = np.random.default_rng(8)
    weights = features("gaussian", rng)
    belief, data = made("gaussian", weights, 0.05), rows(rng, 60, [0, 1, 2, 4])
    belief.observe(*data)
    before = copy.deepcopy(belief)
    for _ in range(500):
        belief.change_weights(*belief.new_weights([0, 1], rng.uniform(-1, 1, (2, L))))
        belief.change_weights(*belief.new_weights([0, 1], weights[:2]))
    assert_same(belief, before)
