"""The policies that learning produces, against tables of probabilities written out by hand."""

from __future__ import annotations

import numpy as np
import pytest

import manyarms as ma
from manyarms.errors import InvalidInput
from manyarms.policies import (
    FixedPolicy,
    Layers,
    Policy,
    Projection,
    SoftmaxPolicy,
    SupportSoftmaxPolicy,
    TopSoftmaxPolicy,
    TwoStagePolicy,
)  # fmt: skip
from manyarms.policies.base import ACTIONS, ROWS
from manyarms.policies.support_softmax import places

D, L, T = 3, 4, 0.7
SIZES = [6, ACTIONS + 300]  # within one block of actions, and over two


def softmax(scores):
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def encoder_of(rng):
    weights = [rng.standard_normal((D, 5)), rng.standard_normal((5, L))]
    return Layers(weights, [rng.standard_normal(5), rng.standard_normal(L)], "tanh")


def on_support(scores, logging_scores, k0):
    listed = np.argsort(-logging_scores, axis=1, kind="stable")[:, :k0]
    masked = np.full(scores.shape, -np.inf)
    np.put_along_axis(masked, listed, np.take_along_axis(scores, listed, 1), 1)
    return softmax(masked)


def by_cluster(cluster_probabilities, labels, predicted):
    """One action of each cluster, the first with the largest prediction, by a loop."""
    out = np.zeros(predicted.shape)
    for c in range(cluster_probabilities.shape[1]):
        members = np.flatnonzero(labels == c)
        best = members[predicted[:, members].argmax(axis=1)]
        out[np.arange(len(out)), best] += cluster_probabilities[:, c]
    return out


def made(K, rng):
    """Pairs of a policy over K actions and the function that writes out its probabilities."""
    beta, wide = rng.standard_normal((K, D)), rng.standard_normal((K, L))
    logging, theta = rng.standard_normal((K, D)), rng.standard_normal((K, D))
    W, network = rng.standard_normal((D, L)), encoder_of(rng)
    C = 3 if K < 10 else 40
    labels = rng.permutation(np.r_[np.arange(C), rng.integers(C, size=K - C)])
    lopsided = np.where(np.arange(K) < C, np.arange(K), 1)  # one cluster over several blocks of actions
    clusters, wide_clusters = rng.standard_normal((C, D)), rng.standard_normal((C, L))
    top = TopSoftmaxPolicy(logging, 4)
    return {
        "projection": (SoftmaxPolicy(wide, T, Projection(W)), lambda X: softmax(X @ W @ wide.T / T)),
        "network": (SoftmaxPolicy(wide, T, encoder=network), lambda X: softmax(network.encode(X) @ wide.T / T)),
        "support": (SupportSoftmaxPolicy(beta, top, T), lambda X: on_support(X @ beta.T / T, X @ logging.T, 4)),
        "support, large": (
            SupportSoftmaxPolicy(900 * beta, top),
            lambda X: on_support(900 * X @ beta.T, X @ logging.T, 4),
        ),
        "support, network": (
            SupportSoftmaxPolicy(wide, top, T, network),
            lambda X: on_support(network.encode(X) @ wide.T / T, X @ logging.T, 4),
        ),
        "two stages": (
            TwoStagePolicy(clusters, labels, theta, T),
            lambda X: by_cluster(softmax(X @ clusters.T / T), labels, X @ theta.T),
        ),
        "two stages, lopsided": (
            TwoStagePolicy(clusters, lopsided, theta),
            lambda X: by_cluster(softmax(X @ clusters.T), lopsided, X @ theta.T),
        ),
        "two stages, network": (
            TwoStagePolicy(wide_clusters, labels, theta, T, network),
            lambda X: by_cluster(softmax(network.encode(X) @ wide_clusters.T / T), labels, X @ theta.T),
        ),
    }


NAMES = list(made(6, np.random.default_rng(0)))


@pytest.fixture(params=[(name, K) for K in SIZES for name in NAMES], ids=str)
def case(request, rng):
    """A policy, its contexts (over two blocks of rows), and its dense probabilities."""
    name, K = request.param
    policy, dense = made(K, rng)[name]
    X = rng.standard_normal((ROWS + 30, D))
    return policy, X, dense(X)


def test_probabilities_expectations_and_groups(case, rng):
    policy, X, dense = case
    K = policy.action_count
    assert isinstance(policy, Policy)
    ids = rng.integers(K, size=(len(X), 7))
    np.testing.assert_allclose(policy.probabilities_of_many(X, ids), np.take_along_axis(dense, ids, 1), atol=1e-12)
    best = dense.argmax(axis=1)
    np.testing.assert_allclose(policy.probabilities_of(X, best), dense.max(axis=1), rtol=1e-10)
    theta = rng.standard_normal((K, D))
    found = policy.expectation(X, lambda x, some: np.sin(x @ theta[some].T))
    np.testing.assert_allclose(found, (dense * np.sin(X @ theta.T)).sum(axis=1), atol=1e-11)
    groups, wanted = rng.integers(4, size=K), rng.integers(5, size=len(X))
    truth = (dense * (groups == wanted[:, None])).sum(axis=1)
    np.testing.assert_allclose(policy.group_mass(X, groups, wanted), truth, atol=1e-12)


def test_best_actions(case):
    """The most probable ones, also where more are asked for than have any probability, and with some left out."""
    policy, X, dense = case
    for k, barred in ((1, []), (2, []), (3, [1, 4]), (5, [])):
        allowed = np.where(np.isin(np.arange(dense.shape[1]), barred), -1.0, dense)
        order = np.argsort(-allowed, axis=1, kind="stable")[:, :k]
        found = policy.decide(X, k=k, exclude=barred)
        np.testing.assert_allclose(np.take_along_axis(dense, found, 1), np.take_along_axis(dense, order, 1), atol=1e-12)
        assert not np.isin(found, barred).any()
        positive = np.take_along_axis(dense, order, 1) > 1e-12
        zero = ~positive & (np.take_along_axis(dense, order, 1) == 0)
        np.testing.assert_array_equal(found[positive], order[positive])
        np.testing.assert_array_equal(found[zero.all(axis=1)], order[zero.all(axis=1)])
        np.testing.assert_array_equal(policy.decide(X[0], k=k, exclude=barred), found[0])
    assert isinstance(policy.decide(X[0]), int)
    np.testing.assert_array_equal(policy.decide(X), policy.decide(X, k=1)[:, 0])


def test_draws_have_the_law(case, rng):
    policy, X, dense = case
    draws = policy.sample(np.repeat(X[:1], 4000, axis=0), rng)
    share = np.bincount(draws, minlength=policy.action_count) / 4000
    assert (share[dense[0] == 0] == 0).all()
    assert np.abs(share - dense[0]).max() < 5 * np.sqrt(0.25 / 4000)


def test_saved_policies_are_the_same(rng, tmp_path):
    X, ids = rng.standard_normal((20, D)), np.tile(np.arange(6), (20, 1))
    for number, (policy, _) in enumerate(made(6, rng).values()):
        policy.save(tmp_path / str(number))
        again = ma.load(tmp_path / str(number))
        assert type(again) is type(policy)
        assert repr(again) == repr(policy)
        np.testing.assert_array_equal(again.probabilities_of_many(X, ids), policy.probabilities_of_many(X, ids))


def test_a_support_within_a_support_is_saved_whole(rng, tmp_path):
    beta = rng.standard_normal((6, D))
    inner = SupportSoftmaxPolicy(beta, TopSoftmaxPolicy(beta, 4), encoder=Projection(np.eye(D)))
    outer = SupportSoftmaxPolicy(-beta, inner, 2.0)
    outer.save(tmp_path / "outer")
    again = ma.load(tmp_path / "outer")
    X, ids = rng.standard_normal((9, D)), np.tile(np.arange(6), (9, 1))
    np.testing.assert_array_equal(again.probabilities_of_many(X, ids), outer.probabilities_of_many(X, ids))


def test_names_of_the_parameters(rng):
    beta = rng.standard_normal((6, D))
    policy = SoftmaxPolicy(actions=beta, temperature=2.0)
    np.testing.assert_array_equal(policy.actions, beta)
    assert policy.encoder is None
    single = SoftmaxPolicy(beta.astype(np.float32), encoder=Projection(np.eye(D)))
    assert single.actions.dtype == np.float32
    stages = TwoStagePolicy(np.eye(D), [0, 1, 2, 0, 1, 2], beta.astype(np.float32))
    assert (stages.cluster_count, stages.model.dtype) == (3, np.float32)


def test_two_stages_with_one_cluster_an_action_or_one_for_all(rng):
    beta, theta, X = rng.standard_normal((6, D)), rng.standard_normal((6, D)), rng.standard_normal((8, D))
    ids = np.tile(np.arange(6), (8, 1))
    single = TwoStagePolicy(beta, np.arange(6), theta)
    np.testing.assert_allclose(
        single.probabilities_of_many(X, ids), SoftmaxPolicy(beta).probabilities_of_many(X, ids), atol=1e-14
    )
    whole = TwoStagePolicy(beta[:1], np.zeros(6, dtype=int), theta)
    np.testing.assert_array_equal(whole.decide(X), (X @ theta.T).argmax(axis=1))


def test_equal_predictions_go_to_the_lowest_id(rng):
    theta = np.ones((ACTIONS + 50, D))
    labels = np.arange(len(theta)) % 2
    ids, values = TwoStagePolicy(np.zeros((2, D)), labels, theta).best_actions(np.array([[1.0, 2.0, 3.0]]))
    assert ids.tolist() == [[0, 1]]
    assert values.tolist() == [[6.0, 6.0]]


def test_where_logged_actions_stand_in_their_support(rng):
    support = np.argsort(rng.random((50, 8)), axis=1)[:, :5]
    at = rng.integers(5, size=50)
    played = support[np.arange(50), at]
    np.testing.assert_array_equal(places(support, played), at)
    missing = played.copy()
    missing[17] = next(a for a in range(8) if a not in support[17])
    with pytest.raises(InvalidInput, match=f"misses action {missing[17]}.*row 17"):
        places(support, missing)
    probabilities = np.full(support.shape, 0.2)
    probabilities[3, at[3]] = 0.0  # listed, and never played
    with pytest.raises(InvalidInput, match="row 3"):
        places(support, played, probabilities)


def test_bad_input_is_named():
    beta = np.eye(3)
    top = TopSoftmaxPolicy(beta, 2)
    for make, what in (
        (lambda: SoftmaxPolicy(beta, encoder=Projection(np.ones((3, 2)))), "encoder.*length 2"),
        (lambda: SoftmaxPolicy(beta, encoder=np.eye(3)), "encoder"),
        (lambda: SoftmaxPolicy(np.zeros((2, 0))), "actions"),
        (lambda: SupportSoftmaxPolicy(beta, FixedPolicy([0.5, 0.5, 0.0])), "support"),
        (lambda: SupportSoftmaxPolicy(np.ones((4, 3)), top), "support.*3 actions"),
        (lambda: SupportSoftmaxPolicy(np.ones((3, 2)), top), "support.*length 3"),
        (lambda: SupportSoftmaxPolicy(beta, top, 0.0), "temperature"),
        (lambda: TwoStagePolicy(np.eye(2), [0, 1], np.eye(3)), "model"),
        (lambda: TwoStagePolicy(np.eye(3)[:2], [0, 1], np.eye(3)), "labels.*3 actions"),
        (lambda: TwoStagePolicy(np.eye(3)[:2], [0, 1, 2], np.eye(3)), "labels"),
        (lambda: TwoStagePolicy(np.eye(3)[:2], [0.0, 1.0, 1.0], np.eye(3)), "labels"),
        (lambda: TwoStagePolicy(np.eye(3), [0, 2, 2], np.eye(3)), "cluster 1 .1 empty of 3"),
        (lambda: TwoStagePolicy(np.eye(3)[:2], [0, 0, 1], np.eye(3)).sample(np.ones((1, 2))), "X"),
    ):
        with pytest.raises(InvalidInput, match=what):
            make()


def test_what_is_listed_with_probability_0_is_not_in_the_support():
    """The second of the two best actions has a probability too small to be told from 0, and the scores like it better."""
    top = TopSoftmaxPolicy(np.array([[1.0], [-1e4], [-1e5]]), k0=2)
    ids, probabilities = top.support([[1.0]])
    assert set(ids[0]) == {0, 1} and probabilities.min() == 0.0
    policy = SupportSoftmaxPolicy(np.array([[0.0], [5.0], [9.0]]), top)
    np.testing.assert_array_equal(policy.probabilities_of_many([[1.0]], [[0, 1, 2]]), [[1.0, 0.0, 0.0]])
