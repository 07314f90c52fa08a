"""Every policy against its dense table of probabilities: what is streamed equals what is written out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import stats

import manyarms as ma
from manyarms._base.top_k import top_k
from manyarms.errors import InvalidInput, StorageError, UnknownAction
from manyarms.policies import (
    DeterministicPolicy,
    EpsilonMixture,
    FixedPolicy,
    FunctionPolicy,
    Policy,
    SoftmaxPolicy,
    TopSoftmaxPolicy,
    UniformPolicy,
)
from manyarms.policies.base import ACTIONS, ROWS

D = 3


def softmax(scores):
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def top_softmax(scores, k0):
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k0]
    masked = np.full(scores.shape, -np.inf)
    np.put_along_axis(masked, order, np.take_along_axis(scores, order, axis=1), axis=1)
    return softmax(masked)


def chosen(scores):
    out = np.zeros(scores.shape)
    out[np.arange(len(out)), scores.argmax(axis=1)] = 1
    return out


def made(K, rng):
    """Pairs of a policy over K actions and the function that writes out its probabilities."""
    beta = rng.standard_normal((K, D))
    p = rng.dirichlet(np.full(K, 0.3))
    p[rng.integers(K)] = 0.0
    p /= p.sum()
    soft = SoftmaxPolicy(beta, 0.7)
    greedy = DeterministicPolicy(lambda X: (X @ beta.T).argmax(axis=1), K)
    return {
        "softmax": (soft, lambda X: softmax(X @ beta.T / 0.7)),
        "softmax, large scores": (SoftmaxPolicy(900 * beta), lambda X: softmax(900 * X @ beta.T)),
        "top softmax": (TopSoftmaxPolicy(beta, 5, 0.7), lambda X: top_softmax(X @ beta.T / 0.7, 5)),
        "uniform": (UniformPolicy(K), lambda X: np.full((len(X), K), 1 / K)),
        "fixed": (FixedPolicy(p), lambda X: np.tile(p, (len(X), 1))),
        "mixture": (EpsilonMixture(soft, 0.3), lambda X: 0.7 * softmax(X @ beta.T / 0.7) + 0.3 / K),
        "deterministic": (greedy, lambda X: chosen(X @ beta.T)),
        "greedy mixture": (EpsilonMixture(greedy, 0.1), lambda X: 0.9 * chosen(X @ beta.T) + 0.1 / K),
        "function": (
            FunctionPolicy(lambda X, a: softmax(X @ beta.T)[np.arange(len(X)), a], K),
            lambda X: softmax(X @ beta.T),
        ),
    }


NAMES = list(made(6, np.random.default_rng(0)))
SIZES = [6, ACTIONS + 700]  # within one block of actions, and over two


@pytest.fixture(params=[(name, K) for K in SIZES for name in NAMES if not (name == "function" and K > 10)], ids=str)
def case(request, rng):
    """A policy, its contexts (over two blocks of rows), and its dense probabilities."""
    name, K = request.param
    policy, dense = made(K, rng)[name]
    X = rng.standard_normal((ROWS + 40, D))
    return policy, X, dense(X)


def test_is_a_policy(case):
    assert isinstance(case[0], Policy)


def test_probabilities(case, rng):
    policy, X, dense = case
    actions = rng.integers(policy.action_count, size=len(X))
    ids = rng.integers(policy.action_count, size=(len(X), 7))
    np.testing.assert_allclose(policy.probabilities_of(X, actions), dense[np.arange(len(X)), actions], atol=1e-13)
    np.testing.assert_allclose(policy.probabilities_of_many(X, ids), np.take_along_axis(dense, ids, 1), atol=1e-13)
    best = dense.argmax(axis=1)
    np.testing.assert_allclose(policy.probabilities_of(X, best), dense.max(axis=1), rtol=1e-11)
    assert (dense[dense > 0].min() >= policy.smallest_probability * (1 - 1e-12)) or policy.smallest_probability == 0


def test_expectation(case, rng):
    policy, X, dense = case
    theta = rng.standard_normal((policy.action_count, D))
    found = policy.expectation(X, lambda x, ids: np.sin(x @ theta[ids].T))
    np.testing.assert_allclose(found, (dense * np.sin(X @ theta.T)).sum(axis=1), atol=1e-12)


@pytest.mark.parametrize("kind", ["numbers", "texts"])
def test_group_mass(case, rng, kind):
    policy, X, dense = case
    labels = rng.integers(4, size=policy.action_count)
    wanted = rng.integers(5, size=len(X))  # nobody is in the last group
    truth = (dense * (labels == wanted[:, None])).sum(axis=1)
    if kind == "texts":
        labels, wanted = labels.astype(str), wanted.astype(str)
    np.testing.assert_allclose(policy.group_mass(X, labels, wanted), truth, atol=1e-12)


def test_best_actions(case):
    policy, X, dense = case
    order = np.argsort(-np.round(dense, 14), axis=1, kind="stable")
    free = [a for a in range(policy.action_count) if a not in (0, 2)]
    # equal probabilities of 0 or of the uniform part have no order but the id's: compare probabilities, then ids
    best = policy.decide(X, k=3)
    np.testing.assert_allclose(
        np.take_along_axis(dense, best, 1), np.take_along_axis(dense, order[:, :3], 1), atol=1e-13
    )
    assert policy.decide(X).shape == (len(X),)
    assert isinstance(policy.decide(X[0]), int)
    assert policy.decide(X[0], k=2).shape == (2,)
    allowed = policy.decide(X, k=2, exclude=[0, 2])
    assert not np.isin(allowed, [0, 2]).any()
    sub = np.argsort(-np.round(dense[:, free], 14), axis=1, kind="stable")[:, :2]
    np.testing.assert_allclose(
        np.take_along_axis(dense, allowed, 1), np.take_along_axis(dense[:, free], sub, 1), atol=1e-13
    )


def test_draws_have_the_law(case, rng):
    """Chi-square over the actions (few), or over groups of them (many), at one context."""
    policy, X, dense = case
    draws = 4000
    at = np.repeat(X[:1], draws, axis=0)
    K = policy.action_count
    groups = np.arange(K) if K <= 10 else np.argsort(np.argsort(-dense[0], kind="stable")) // 200
    truth = np.bincount(groups, weights=dense[0])
    seen = np.bincount(groups[policy.sample(at, rng)], minlength=len(truth))
    assert (seen[truth == 0] == 0).all()
    large = truth * draws >= 5
    if large.sum() > 1:
        expected = np.append(truth[large], truth[~large].sum()) * draws
        counted = np.append(seen[large], seen[~large].sum())
        used = expected > 0
        assert stats.chisquare(counted[used], expected[used]).pvalue > 1e-6
    assert (dense[np.arange(len(X)), policy.sample(X, rng)] > 0).all()


def test_draws_follow_their_own_context(rng):
    """Every row draws for itself: the mean of one-hot draws equals the mean of the rows' probabilities."""
    policy, dense = made(6, rng)["softmax"]
    X = rng.standard_normal((20_000, D))
    actions = policy.sample(X, rng)
    side = X[:, 0] > 0
    for half in (side, ~side):
        seen, truth = np.bincount(actions[half], minlength=6), dense(X[half]).sum(axis=0)
        assert stats.chisquare(seen, truth).pvalue > 1e-6


def test_saved_policies_are_the_same(rng, tmp_path):
    X = rng.standard_normal((20, D))
    ids = rng.integers(6, size=(20, 6))
    for name, (policy, _) in made(6, rng).items():
        folder = tmp_path / name.replace(" ", "-")
        if name in ("function", "deterministic", "greedy mixture"):
            with pytest.raises(InvalidInput, match="cannot be saved"):
                policy.save(folder)
            continue
        policy.save(folder)
        again = ma.load(folder)
        assert type(again) is type(policy)
        np.testing.assert_array_equal(again.probabilities_of_many(X, ids), policy.probabilities_of_many(X, ids))
    from manyarms._base import storage

    storage.save(tmp_path / "other", "policy", {"type": "of tomorrow"}, {})
    with pytest.raises(StorageError, match="of tomorrow"):
        ma.load(tmp_path / "other")
    storage.save(tmp_path / "hollow", "policy", {"type": "softmax"}, {})
    with pytest.raises(StorageError, match="incomplete"):
        ma.load(tmp_path / "hollow")


def test_single_precision_is_kept_and_close(rng):
    beta = rng.standard_normal((3000, D))
    X = rng.standard_normal((50, D))
    single, double = SoftmaxPolicy(beta.astype(np.float32)), SoftmaxPolicy(beta)
    actions = rng.integers(3000, size=50)
    assert single.actions.dtype == np.float32
    np.testing.assert_allclose(single.probabilities_of(X, actions), double.probabilities_of(X, actions), rtol=1e-4)
    large = SoftmaxPolicy((100 * beta).astype(np.float32))
    best = np.asarray(large.decide(X))
    wanted = SoftmaxPolicy(100 * beta).probabilities_of(X, best)
    np.testing.assert_allclose(large.probabilities_of(X, best), wanted, rtol=1e-3)


def test_log_normaliser(rng):
    beta = rng.standard_normal((ACTIONS + 5, D))
    X = rng.standard_normal((300, D))
    for scale in (1.0, 900.0):
        scores = scale * X @ beta.T
        top = scores.max(axis=1)
        truth = top + np.log(np.exp(scores - top[:, None]).sum(axis=1))
        np.testing.assert_allclose(SoftmaxPolicy(scale * beta).log_normaliser(X), truth, rtol=1e-12)


def test_support_of_the_top_softmax(rng):
    policy, dense = made(40, rng)["top softmax"]
    X = rng.standard_normal((ROWS + 9, D))
    ids, probabilities = policy.support(X)
    np.testing.assert_allclose(np.take_along_axis(dense(X), ids, 1), probabilities, atol=1e-13)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-12)
    assert (np.diff(probabilities, axis=1) <= 0).all()


@given(
    scores=arrays.arrays(
        np.float64, st.tuples(st.integers(1, 4), st.integers(1, 40)), elements=st.integers(-3, 3).map(float)
    ),
    k=st.integers(1, 5),
    block=st.integers(1, 9),
)
def test_top_k_of_blocks_with_many_ties(scores, k, block):
    k = min(k, scores.shape[1])
    ids, best = top_k((scores[:, i : i + block] for i in range(0, scores.shape[1], block)), k)
    wanted = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    np.testing.assert_array_equal(ids, wanted)
    np.testing.assert_array_equal(best, np.take_along_axis(scores, wanted, 1))


def test_no_contexts_no_answers():
    policy = SoftmaxPolicy(np.eye(3))
    nothing = np.empty((0, 3))
    assert policy.probabilities_of(nothing, np.empty(0, dtype=int)).shape == (0,)
    assert policy.sample(nothing, 0).shape == (0,)
    assert TopSoftmaxPolicy(np.eye(3), 2).sample(nothing, 0).shape == (0,)
    assert policy.expectation(nothing, lambda X, ids: np.zeros((len(X), len(ids)))).shape == (0,)


def test_bad_input_is_named():
    policy = SoftmaxPolicy(np.eye(3))
    X = np.zeros((2, 3))
    for call, what in (
        (lambda: policy.probabilities_of(np.zeros((2, 4)), [0, 1]), "X"),
        (lambda: policy.probabilities_of(X, [0, 3]), "actions"),
        (lambda: policy.probabilities_of(X, [0.5, 1.0]), "actions"),
        (lambda: policy.probabilities_of(X, [0]), "actions"),
        (lambda: policy.probabilities_of_many(X, [0, 1]), "ids"),
        (lambda: policy.group_mass(X, [0, 1], [0, 0]), "labels"),
        (lambda: policy.group_mass(X, [0, 1, 1], [0]), "wanted"),
        (lambda: policy.decide(X, k=4), "k"),
        (lambda: policy.decide(X, k=3, exclude=[1]), "k"),
        (lambda: SoftmaxPolicy(np.zeros(3)), "actions"),
        (lambda: SoftmaxPolicy(np.full((2, 2), np.nan)), "actions"),
        (lambda: SoftmaxPolicy(np.eye(2), 0.0), "temperature"),
        (lambda: TopSoftmaxPolicy(np.eye(2), 3), "k0"),
        (lambda: FixedPolicy([0.5, 0.4]), "probabilities"),
        (lambda: EpsilonMixture(policy, 1.2), "epsilon"),
        (lambda: DeterministicPolicy(lambda X: [5] * len(X), 3).sample(X), "decide"),
        (lambda: FunctionPolicy(lambda X, a: a + 2.0, 3).probabilities_of(X, [0, 1]), "probabilities"),
    ):
        with pytest.raises(InvalidInput, match=what):
            call()
    with pytest.raises(UnknownAction):
        policy.probabilities_of(X, [-1, 0])


@pytest.mark.parametrize("kind", ["softmax", "top"])
def test_candidates_are_the_only_ones_on_offer(kind, rng):
    """The same as excluding everybody else; also where probabilities are too small to be told from 0."""
    beta = rng.standard_normal((40, 3)) * 200
    policy = SoftmaxPolicy(beta) if kind == "softmax" else TopSoftmaxPolicy(beta, k0=12)
    X = rng.standard_normal((9, 3))
    offered = np.array([3, 17, 21, 5, 39, 8])
    others = np.setdiff1d(np.arange(40), offered)
    np.testing.assert_array_equal(policy.decide(X, candidates=offered), policy.decide(X, exclude=others))
    if kind == "softmax":
        np.testing.assert_array_equal(policy.decide(X, k=4, candidates=offered), policy.decide(X, k=4, exclude=others))
    assert policy.decide(X[0], candidates=[7]) == 7
    assert 3 not in policy.decide(X[0], k=5, candidates=offered, exclude=[3])
    with pytest.raises(InvalidInput, match="on offer"):
        policy.decide(X, k=7, candidates=offered)
    with pytest.raises(UnknownAction, match="candidates"):
        policy.decide(X, candidates=[40])


@pytest.mark.parametrize("scale", [20, 60, 300])
def test_probabilities_are_at_most_one_however_large_scores_are(scale: float) -> None:
    """In single precision a score of 300 is known to 1e-5, and an action's own mass may round to more than the sum of all."""
    rng = np.random.default_rng(0)
    policy = SoftmaxPolicy((scale * rng.standard_normal((500, 32))).astype(np.float32))
    X = rng.standard_normal((400, 32)) / 8
    found = policy.probabilities_of(X, policy.decide_rows(X))
    assert 0.4 < found.max() <= 1 and found.min() > 0
