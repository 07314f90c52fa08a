"""A mixture finds planted effects, a factorisation finds a planted low-rank matrix."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from manyarms.errors import InvalidInput, MissingExtra
from manyarms.priors.structure import factorise, mixture

CENTRES = np.array([[4.0, 0.0, 0.0], [0.0, 5.0, 0.0], [-3.0, -3.0, 4.0]])
SCALES = np.array([[0.3, 0.5, 0.4], [0.6, 0.2, 0.3], [0.4, 0.4, 0.7]])


def planted(n: int = 3000) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    label = rng.choice(3, size=n, p=[0.5, 0.3, 0.2])
    return CENTRES[label] + SCALES[label] * rng.normal(size=(n, 3)), label


@pytest.mark.parametrize("covariance", ["diag", "full"])
def test_a_mixture_recovers_planted_clusters(covariance: str) -> None:
    theta, label = planted()
    prior = mixture(theta, 3, covariance=covariance, seed=1)  # type: ignore[arg-type]
    match = np.linalg.norm(CENTRES[:, None] - prior.effect_mean[None], axis=2).argmin(axis=1)
    assert sorted(match) == [0, 1, 2]
    np.testing.assert_allclose(prior.effect_mean[match], CENTRES, atol=0.12)
    blocks = prior.effect_covariance.reshape(3, 3, 3, 3)
    shares = np.bincount(label) / len(label)
    for l, found in enumerate(match):
        np.testing.assert_allclose(blocks[found, :, found], np.diag(SCALES[l] ** 2), atol=0.05)
        for other in set(range(3)) - {int(found)}:
            assert not blocks[found, :, other].any()  # effects are independent before data
    assert (prior.weights[np.arange(len(label)), match[label]] > 0.99).mean() > 0.99
    np.testing.assert_allclose(prior.weights.sum(axis=1), 1.0)
    # actions: a third of the effects' covariance, averaged over the components
    within = sum(share * np.diag(SCALES[l] ** 2) for l, share in enumerate(shares))
    np.testing.assert_allclose(prior.action_covariance, within / 3, atol=0.02)


@pytest.mark.parametrize("covariance", ["diag", "full"])
def test_the_marginal_rule_splits_the_overall_covariance(covariance: str) -> None:
    theta, _ = planted()
    overall = np.cov(theta, rowvar=False, bias=True)
    if covariance == "diag":
        overall = np.diag(np.diag(overall))
    prior = mixture(theta, 3, spread="marginal", effect_share=0.6, covariance=covariance)  # type: ignore[arg-type]
    np.testing.assert_allclose(prior.action_covariance, 0.4 * overall, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(prior.effect_covariance, np.kron(np.eye(3), 0.6 * overall), rtol=1e-4, atol=1e-4)
    # an action that is all in one cluster has the overall covariance
    pure = prior.weights.max(axis=1) > 1 - 1e-9
    assert pure.any()
    np.testing.assert_allclose(prior.marginal().covariance[pure][0], overall, rtol=1e-4, atol=1e-4)


def test_a_mixture_learned_from_some_rows_places_the_others() -> None:
    theta, label = planted()
    some = np.arange(0, 3000, 4)
    part, alone = mixture(theta, 3, learned_from=some, spread="marginal"), mixture(theta[some], 3, spread="marginal")
    np.testing.assert_array_equal(part.effect_mean, alone.effect_mean)
    np.testing.assert_array_equal(part.action_covariance, alone.action_covariance)
    np.testing.assert_array_equal(part.weights[some], alone.weights)
    assert part.weights.shape == (3000, 3)
    # rows that it was not learned from are in their own clusters too
    match = np.linalg.norm(CENTRES[:, None] - part.effect_mean[None], axis=2).argmin(axis=1)
    assert (part.weights[np.arange(3000), match[label]] > 0.99).mean() > 0.99
    for bad in ([3000], [-1], [], [0.5]):
        with pytest.raises(InvalidInput, match="learned_from"):
            mixture(theta, 3, learned_from=bad)


def test_the_scale_of_the_estimates_does_not_matter() -> None:
    theta, _ = planted(400)
    one, small = mixture(theta, 3), mixture(1e-4 * theta, 3)
    np.testing.assert_allclose(small.effect_mean, 1e-4 * one.effect_mean, rtol=1e-6)
    np.testing.assert_allclose(small.effect_covariance, 1e-8 * one.effect_covariance, rtol=1e-5, atol=1e-16)


@pytest.mark.parametrize("spread", ["components", "marginal"])
@pytest.mark.parametrize("covariance", ["diag", "full"])
def test_degenerate_estimates_get_a_floor(spread: str, covariance: str) -> None:
    theta, _ = planted(60)
    theta[:, 2] = 1.5  # a coordinate that says nothing
    prior = mixture(theta, 3, spread=spread, covariance=covariance)  # type: ignore[arg-type]
    assert 0 < prior.action_covariance[2, 2] < 1e-4 * prior.action_covariance[0, 0]
    equal = mixture(np.ones((5, 2)), 1, spread=spread, covariance=covariance)  # type: ignore[arg-type]
    np.testing.assert_allclose(equal.effect_mean, [[1.0, 1.0]])
    assert 0 < equal.action_covariance[0, 0] < 1e-5
    alone = mixture(CENTRES, 3, spread=spread, covariance=covariance)  # type: ignore[arg-type]  # one member each
    np.testing.assert_allclose(np.sort(alone.effect_mean, axis=0), np.sort(CENTRES, axis=0), atol=1e-6)


def test_the_mixture_is_a_function_of_its_seed() -> None:
    theta, _ = planted(200)
    np.testing.assert_array_equal(mixture(theta, 4, seed=2).weights, mixture(theta, 4, seed=2).weights)


def test_bad_estimates_are_refused() -> None:
    theta, _ = planted(10)
    with pytest.raises(InvalidInput, match="effects: expected no more effects than distinct rows"):
        mixture(theta[:2], 3)
    with pytest.raises(InvalidInput, match="5 actions, 1 of them distinct"):
        mixture(np.ones((5, 2)), 2)
    theta[4, 1] = np.nan
    with pytest.raises(InvalidInput, match=r"parameters: .*nan at position \(4, 1\)"):
        mixture(theta, 2)
    with pytest.raises(InvalidInput, match="parameters"):
        mixture(np.ones(5), 1)
    for wrong in (
        {"covariance": "tied"},
        {"spread": "none"},
        {"effect_share": 0.0},
        {"effect_share": 1.0},
        {"seed": -1},
    ):
        with pytest.raises(InvalidInput, match=next(iter(wrong))):
            mixture(CENTRES, 2, **wrong)  # type: ignore[arg-type]


def test_without_scikit_learn_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.mixture", None)
    with pytest.raises(MissingExtra, match=r"manyarms\[experiments\]"):
        mixture(CENTRES, 2)


def observed(users: int, items: int, rank: int, share: float, noise: float = 0.0) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(3)
    matrix = rng.normal(size=(users, rank)) @ rng.normal(size=(rank, items))
    who, what = np.nonzero(rng.random((users, items)) < share)
    return matrix, who, what, matrix[who, what] + noise * rng.normal(size=len(who))


def test_a_planted_low_rank_matrix_is_recovered_where_it_was_not_seen() -> None:
    matrix, who, what, values = observed(80, 60, 2, 0.4)
    factors = factorise(who, what, values, 2, sweeps=60, ridge=1e-8)
    np.testing.assert_allclose(factors.users @ factors.items.T, matrix, atol=1e-4)


def test_every_sweep_lowers_the_objective() -> None:
    _, who, what, values = observed(50, 40, 4, 0.3, noise=0.5)
    losses = [
        factorise(who, what, values, 3, sweeps=n, ridge=0.7).objective(who, what, values, 0.7) for n in range(1, 15)
    ]
    assert (np.diff(losses) < 0).all()


def test_a_sweep_ends_with_every_item_at_its_own_ridge_regression() -> None:
    _, who, what, values = observed(30, 20, 3, 0.4, noise=0.3)
    who, what, values = np.append(who, who[:5]), np.append(what, what[:5]), np.append(values, values[:5] + 1)
    factors = factorise(who, what, values, 3, sweeps=4, ridge=0.5, shape=(32, 21))
    assert factors.users.shape == (32, 3)
    for item in range(20):
        mine = what == item
        seen = factors.users[who[mine]]
        by_hand = np.linalg.solve(seen.T @ seen + 0.5 * np.eye(3), seen.T @ values[mine])
        np.testing.assert_allclose(factors.items[item], by_hand, rtol=1e-9, atol=1e-12)
    assert not factors.items[20].any() and not factors.users[30:].any()  # nobody rated it, they rated nothing


def test_blocks_of_normal_equations_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    _, who, what, values = observed(50, 40, 4, 0.3, noise=0.5)
    whole = factorise(who, what, values, 3, sweeps=3)
    monkeypatch.setattr("manyarms.priors.structure.BLOCK_ENTRIES", 7 * 9)
    parts = factorise(who, what, values, 3, sweeps=3)
    np.testing.assert_allclose(parts.items, whole.items, rtol=1e-10)


def test_bad_ratings_are_refused() -> None:
    who, what, values = np.array([0, 1]), np.array([0, 1]), np.array([1.0, 2.0])
    for arguments, name in [
        ((who[:1], what, values, 2), "ratings"),
        ((who, what, np.array([1.0, np.inf]), 2), "ratings"),
        ((who - 1, what, values, 2), "users"),
        ((who, what + 0.5, values, 2), "items"),
        (([], [], [], 2), "users"),
        ((who, what, values, 0), "dim"),
    ]:
        with pytest.raises(InvalidInput, match=f"^{name}:"):
            factorise(*arguments)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="shape"):
        factorise(who, what, values, 2, shape=(2, 1))
    with pytest.raises(InvalidInput, match="ridge"):
        factorise(who, what, values, 2, ridge=0.0)
    with pytest.raises(InvalidInput, match="sweeps"):
        factorise(who, what, values, 2, sweeps=0)
