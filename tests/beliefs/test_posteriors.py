"""Effect and action posteriors are those of the joint Gaussian, conditioned by brute force."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from brute_force import MIXINGS, Case, Joint, Rows, covariance_of_root, random_case, random_rows
from manyarms._base.typing import Array
from manyarms.beliefs import Belief, FactoredRoot, GaussianRoot, Leaves, MixingMatrices, MixingWeights, sums

seeds = st.integers(0, 10**6)
mixings = st.sampled_from(MIXINGS)
roots = st.sampled_from(("known", "gaussian"))


def close(have: Array, want: npt.NDArray[Any]) -> None:
    """Equal to 1e-8 of the size of what is wanted."""
    assert_allclose(have, want, rtol=0, atol=1e-8 * max(1e-30, float(np.abs(want).max())))


def assert_exact(belief: Belief, joint: Joint) -> None:
    """Root, marginal action posteriors and conditional ones, all of them, are those of the joint Gaussian."""
    mean, covariance = joint.root()
    close(belief.root.mean(), mean)
    if not belief.root.known:
        close(covariance_of_root(belief), covariance)
    ids = np.arange(belief.leaves.catalogue.size)
    means, covariances = belief.action_posterior(ids)
    for a in ids.tolist():
        mean, covariance = joint.action(a)
        close(means[a], mean)
        close(covariances[a], covariance)
    assert_leaves_exact(belief, joint)


def assert_leaves_exact(belief: Belief, joint: Joint) -> None:
    """S_a and c_a of every played action, and the slope with which its scores follow the root."""
    leaves = belief.leaves
    for a, slot in leaves.catalogue.slot_of.items():
        S, c = leaves.packing.unpack(leaves.S.rows[slot]), leaves.c.rows[slot]
        if belief.root.known:
            mean, covariance = joint.action(a)
            close(S, covariance)
            close(c, mean)
            continue
        intercept, slope, covariance = joint.conditional(a)
        close(S, covariance)
        assert_allclose(c, intercept, rtol=0, atol=1e-8 * max(1.0, float(np.abs(intercept).max())))
        for x in np.eye(belief.dim):
            close(leaves.pulled(x, np.array([slot]))[0], slope.T @ x)


def learn(belief: Belief, rows: Rows, chunks: list[int] | None = None) -> None:
    """In chunks that end at these places (None: one by one)."""
    X, A, r = rows
    cuts = list(range(1, len(A))) if chunks is None else chunks
    for x, a, y in zip(np.split(X, cuts), np.split(A, cuts), np.split(r, cuts), strict=True):
        if len(a):
            belief.observe(x, a, y)


@given(
    seed=seeds,
    mixing=mixings,
    root=roots,
    shared=st.booleans(),
    actions=st.integers(1, 6),
    dim=st.integers(1, 3),
    n=st.integers(1, 30),
    noise=st.sampled_from((0.1, 0.7, 5.0)),
)
@settings(max_examples=120)
def test_posteriors_are_those_of_brute_force_conditioning(
    seed: int, mixing: str, root: str, shared: bool, actions: int, dim: int, n: int, noise: float
) -> None:
    def fresh() -> Case:
        return random_case(seed, mixing, root, shared=shared, actions=actions, dim=dim, noise=noise)

    rows = random_rows(seed, n, dim, np.arange(actions))
    joint = fresh().joint.given(rows, noise)

    one_by_one = fresh().belief
    learn(one_by_one, rows)
    assert_exact(one_by_one, joint)

    at_once = fresh().belief
    learn(at_once, rows, [])
    assert_exact(at_once, joint)

    rng = np.random.default_rng(seed)
    order = rng.permutation(n)
    shuffled = (rows[0][order], rows[1][order], rows[2][order])
    in_chunks = fresh().belief
    learn(in_chunks, shuffled, sorted(rng.integers(0, n + 1, size=3).tolist()))
    assert_exact(in_chunks, joint)


@given(seed=seeds, mixing=mixings, root=roots, shared=st.booleans())
def test_actions_added_and_retired_in_between_change_nothing_else(
    seed: int, mixing: str, root: str, shared: bool
) -> None:
    """Start with three of six actions, learn, add two, retire a played and an unplayed one, add the last, learn on."""
    K, dim, noise = 6, 2, 0.7
    whole = random_case(seed, mixing, root, shared=shared, actions=K, dim=dim, noise=noise)
    features = whole.belief.leaves.mixing.features
    prior = whole.belief.leaves.prior_covariance(np.arange(K))

    def rows_of(a: int, b: int) -> Array | None:
        if features is None:
            return None
        return features[a:b] if mixing != "matrices" else features[a:b].reshape(b - a, dim, -1)

    def start() -> Belief:
        first = rows_of(0, 3)
        mixes = whole.belief.leaves.mixing  # all alike, unless there are rows
        if first is not None:
            mixes = MixingMatrices(first) if mixing == "matrices" else MixingWeights(first)
        return Belief(whole.belief.root, Leaves(mixes, prior[0] if shared else prior[:3], 3), whole.belief.likelihood)

    belief = start()
    early = random_rows(seed, 8, dim, np.arange(3))
    middle = random_rows(seed + 1, 8, dim, np.array([1, 2, 3, 4]))
    late = random_rows(seed + 2, 8, dim, np.array([1, 3, 5]))
    learn(belief, early)
    ids = belief.add_actions(rows_of(3, 5), 2, None if shared else prior[3:5])
    assert ids.tolist() == [3, 4]
    learn(belief, middle, [])
    belief.leaves.catalogue.retire(np.array([0, 2]))
    assert belief.add_actions(rows_of(5, 6), 1, None if shared else prior[5:6]).tolist() == [5]
    learn(belief, late, [3])
    everything = tuple(np.concatenate(parts) for parts in zip(early, middle, late, strict=True))
    X, A, r = everything
    assert_exact(belief, whole.joint.given((X, A, r), noise))


def test_a_small_batch_of_long_contexts_is_the_same_batch() -> None:
    """Few rows of many dimensions are learned row by row, more of them are folded."""
    dim, K = 20, 4
    for n in (5, 60):
        case = random_case(8, "weights", actions=K, dim=dim)
        rows = random_rows(8, n, dim, np.arange(K))
        learn(case.belief, rows, [])
        assert_exact(case.belief, case.joint.given(rows, case.noise))


@pytest.mark.parametrize("n", [200, 5000])
@pytest.mark.parametrize("chunks", [1, 3])
def test_a_batch_folded_in_many_pieces_is_the_same_batch(n: int, chunks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pieces in which products and full matrices are made, and chunks of a log, must not show."""
    K, dim = 6, 3
    case = random_case(5, "weights", actions=K, dim=dim)
    X, A, r = random_rows(5, n, dim, np.arange(K))
    monkeypatch.setattr(sums, "IN_WORK", 7)
    monkeypatch.setattr(sums, "LONGEST", 300)
    monkeypatch.setattr(sums, "BATCH", 2000)
    case.belief.leaves.chunk = 2
    if chunks == 1:
        case.belief.observe(X, A, r)
    else:
        parts = (np.array_split(part, chunks) for part in (X, A, r))
        case.belief.fold(zip(*parts, strict=True))
    weight = case.noise**-2
    G = np.stack([weight * X[a == A].T @ X[a == A] for a in range(K)])
    B = np.stack([weight * X[a == A].T @ r[a == A] for a in range(K)])
    joint = case.joint.given_gaussians(G, B)
    assert_exact(case.belief, joint)
    x = np.array([0.3, -0.4, 0.9])
    offer = case.belief.leaves.catalogue.offer()
    mean, variance = case.belief.played_moments(x[None], offer, spread=True)
    order = [case.belief.leaves.catalogue.slot_of[a] for a in range(K)]
    assert case.belief.leaves.counts.rows[order].tolist() == np.bincount(A).tolist()
    want, covariance = joint.scores(x)
    close(mean[0, order], want)
    close(variance[0, order], np.diag(covariance))


@given(seed=seeds, mixing=st.sampled_from(("weights", "one-hot")), shared=st.booleans(), n=st.integers(1, 25))
def test_a_mean_field_root_has_the_exact_mean_and_the_inverse_of_the_precision_blocks(
    seed: int, mixing: str, shared: bool, n: int
) -> None:
    dim, effects = 2, 3
    rows = random_rows(seed, n, dim, np.arange(5))
    for chunks in (None, [], [n // 2]):
        case = random_case(seed, mixing, shared=shared, dim=dim, factored="mean-field")
        learn(case.belief, rows, chunks)
        joint = case.joint.given(rows, case.noise)
        mean, covariance = joint.root()
        close(case.belief.root.mean(), mean)
        precision = np.linalg.inv(covariance)
        want = np.zeros_like(covariance)
        for l in range(effects):
            own = slice(l * dim, (l + 1) * dim)
            want[own, own] = np.linalg.inv(precision[own, own])
        close(covariance_of_root(case.belief), want)
        assert_leaves_exact(case.belief, joint)
        # actions hang on the factored root
        means, covariances = case.belief.action_posterior(np.arange(5))
        changed = joint.with_root(mean, want)
        for a in range(5):
            close(means[a], changed.action(a)[0])
            close(covariances[a], changed.action(a)[1])


@given(seed=seeds, shared=st.booleans(), n=st.integers(1, 25))
def test_a_blockwise_root_drops_every_cross_term(seed: int, shared: bool, n: int) -> None:
    """By its definition: effect l has precision P_ll + sum_a b_al^2 D_a and information P_ll mu_l + sum_a b_al e_a,

    with D_a = Sigma_a^-1 - Sigma_a^-1 S_a Sigma_a^-1, e_a = Sigma_a^-1 S_a B_a and P the prior's precision.
    """
    dim, effects, K = 2, 3, 5
    rows = random_rows(seed, n, dim, np.arange(K))
    X, A, r = rows
    for chunks in (None, [], [n // 2]):
        case = random_case(seed, "weights", shared=shared, dim=dim, factored="blockwise")
        learn(case.belief, rows, chunks)
        leaves = case.belief.leaves
        b = leaves.mixing.features
        assert b is not None
        prior_mean, prior_covariance = case.joint.root()
        prior = np.linalg.inv(prior_covariance)
        precision = [prior[l * dim : (l + 1) * dim, l * dim : (l + 1) * dim] for l in range(effects)]
        information = [precision[l] @ prior_mean[l * dim : (l + 1) * dim] for l in range(effects)]
        for a in range(K):
            inverse = np.linalg.inv(leaves.prior_covariance(np.array([a]))[0])
            G = X[a == A].T @ X[a == A] / case.noise**2
            B = X[a == A].T @ r[a == A] / case.noise**2
            S = np.linalg.inv(inverse + G)
            for l in range(effects):
                precision[l] = precision[l] + b[a, l] ** 2 * (inverse - inverse @ S @ inverse)
                information[l] = information[l] + b[a, l] * (inverse @ S @ B)
        mean = np.concatenate([np.linalg.solve(P, h) for P, h in zip(precision, information, strict=True)])
        covariance = np.zeros((effects * dim, effects * dim))
        for l in range(effects):
            own = slice(l * dim, (l + 1) * dim)
            covariance[own, own] = np.linalg.inv(precision[l])
        close(case.belief.root.mean(), mean)
        close(covariance_of_root(case.belief), covariance)


def test_with_one_effect_the_factored_roots_are_the_exact_one() -> None:
    rows = random_rows(3, 20, 2, np.arange(5))
    exact = random_case(3, "identity")
    learn(exact.belief, rows)
    mean, covariance = exact.joint.root()
    for rule in ("mean-field", "blockwise"):
        case = random_case(3, "identity")
        belief = Belief(FactoredRoot(mean, covariance, 1, rule), case.belief.leaves, case.belief.likelihood)
        learn(belief, rows, [7])
        assert_exact(belief, case.joint.given(rows, case.noise))


def test_what_the_factored_roots_get_wrong() -> None:
    """Mean field understates the spread of a sum of effects that the data tie together; blockwise even moves the mean."""
    rows = random_rows(11, 60, 2, np.arange(5))
    found = {}
    for rule in (None, "mean-field", "blockwise"):
        case = random_case(11, "weights", factored=rule)
        learn(case.belief, rows)
        found[rule] = case.belief
    exact, mean_field, blockwise = found[None], found["mean-field"], found["blockwise"]
    assert np.trace(covariance_of_root(mean_field)) < np.trace(covariance_of_root(exact))
    assert np.abs(blockwise.root.mean() - exact.root.mean()).max() > 0.1


def test_rows_and_batches_can_be_mixed_on_one_root() -> None:
    """A block marks the root's factor as stale, a row updates it in place: each after the other."""
    root = GaussianRoot(np.array([1.0, -1.0]), np.array([[2.0, 0.3], [0.3, 1.0]]))
    u, v = np.array([1.0, 2.0]), np.array([0.5, -1.0])
    root.observe(u, 0.5, 1.0)
    root.learn(np.outer(v, v) / 0.2, v * 3.0 / 0.2)
    root.observe(v, 2.0, -1.0)
    prior = np.linalg.inv([[2.0, 0.3], [0.3, 1.0]])
    precision = prior + np.outer(u, u) / 0.5 + np.outer(v, v) * (1 / 0.2 + 1 / 2.0)
    information = prior @ [1.0, -1.0] + u / 0.5 + v * (3.0 / 0.2 - 1.0 / 2.0)
    close(root.mean(), np.linalg.solve(precision, information))
    close(root.factor() @ root.factor().T, np.linalg.inv(precision))
    close(root.precision(), precision)
