"""Rewards that are replaced: posteriors are those of the joint Gaussian given the other rewards, conditioned by brute force."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from brute_force import MIXINGS, covariance_of_root, random_case, random_rows
from exact_gaussian import TwoLevels
from manyarms._base.typing import Array
from manyarms.beliefs import Belief, GaussianRoot, IdentityMixing, KnownRoot, Leaves, Linear
from manyarms.errors import InvalidInput


def close(have: Array, want: Array, scale: float = 0.0) -> None:
    assert_allclose(have, want, rtol=0, atol=1e-9 * max(scale, float(np.abs(want).max())))


@given(
    seed=st.integers(0, 10**6),
    mixing=st.sampled_from(MIXINGS),
    root=st.sampled_from(("known", "gaussian", "mean-field")),
    shared=st.booleans(),
    noise=st.sampled_from((0.1, 0.7, 5.0)),
    dim=st.integers(1, 3),
    folded=st.booleans(),
    asked=st.booleans(),
)
@settings(max_examples=80)
def test_posteriors_are_those_of_the_rewards_that_came_later(
    seed: int, mixing: str, root: str, shared: bool, noise: float, dim: int, folded: bool, asked: bool
) -> None:
    """Rows, replacements, rows again and more replacements, in portions of any size; somebody asks in between, or nobody."""
    K, rng = 5, np.random.default_rng(seed)
    factored = root if root == "mean-field" and mixing in ("weights", "one-hot") else None
    case = random_case(
        seed, mixing, "known" if root == "known" else "gaussian",
        shared=shared, actions=K, dim=dim, noise=noise, factored=factored,
    )  # fmt: skip
    belief = case.belief
    X, A, r = random_rows(seed, 24, dim, np.arange(K - 1))
    now = r.copy()
    for rows in (slice(0, 12), slice(12, 24)):
        for some in [rows] if folded else [slice(i, i + 1) for i in range(rows.start, rows.stop)]:
            belief.observe(X[some], A[some], r[some])
        if asked:
            belief.root.mean()
        for _ in range(3):
            some = rng.choice(rows.stop, size=rng.integers(1, 9), replace=False)
            other = rng.standard_normal(len(some)) * 10
            belief.correct(*belief.correction(X[some], A[some], now[some], other))
            now[some] = other
    joint = case.joint.given((X, A, now), noise)
    mean, covariance = joint.root()
    close(belief.root.mean(), mean)
    if root != "known" and factored is None:
        close(covariance_of_root(belief), covariance)
    means, covariances = belief.action_posterior(np.arange(K))
    size = float(np.abs(joint.mean).max())
    for a in range(K):
        mean, covariance = joint.action(a)
        close(means[a], mean, size)
        if factored is None:
            close(covariances[a], covariance)
    assert belief.leaves.counts.rows.sum() == 24


D, MEAN, ROOT = 3, np.array([1.0, -0.5, 0.25]), 2 * np.eye(3)


def narrow(noise: float, known: bool, Sigma: Array) -> Belief:
    root = KnownRoot(MEAN) if known else GaussianRoot(MEAN, ROOT)
    return Belief(root, Leaves(IdentityMixing(), Sigma, 2), Linear(noise))


@pytest.mark.parametrize("noise", [1e-2, 1e-4, 1e-5])
@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("condition", [1.0, 1e9])
@pytest.mark.parametrize("n", [2, 4, 8])
def test_digits_where_there_is_hardly_any_noise(n: int, noise: float, known: bool, condition: float) -> None:
    """Against rational numbers. A replaced reward has roundings of what is open about its action, in units of the noise."""
    Sigma, rng = np.diag(np.geomspace(1, 1 / condition, D)), np.random.default_rng(3)
    X, A, was = rng.uniform(-1, 1, (n, D)), np.arange(n) % 2, rng.standard_normal(n)
    now = was + rng.standard_normal(n)
    W, own = np.broadcast_to(np.eye(D), (2, D, D)), np.broadcast_to(Sigma, (2, D, D))
    means, _, _ = TwoLevels(MEAN, None if known else ROOT, W, own).posterior(X, A, now, noise)
    belief = narrow(noise, known, Sigma)
    for i in range(n):
        belief.observe(X[i : i + 1], A[i : i + 1], was[i : i + 1])
    leaves = belief.leaves
    variances = leaves.packing.trace(leaves.S.rows[leaves.catalogue.slots(A)]) + (0 if known else np.trace(ROOT))
    still_open = variances * np.square(X).sum(axis=1)
    belief.correct(*belief.correction(X, A, was, now))
    error = float(np.abs(belief.action_posterior(np.arange(2))[0] - means).max()) / float(np.abs(means).max())
    assert error <= 1e-9 + 20 * np.finfo(float).eps * float(still_open.max()) / noise**2, error


@pytest.mark.parametrize("known", [False, True])
def test_rows_that_sums_cannot_tell_apart_are_refused(known: bool) -> None:
    """As long as something is open beside them: once every direction was seen, nothing is lost."""
    noise, X = 1e-7, np.eye(D)
    belief = narrow(noise, known, np.eye(D))
    one = np.zeros(1, dtype=np.int64)
    belief.observe(X[:1], one, np.ones(1))
    with pytest.raises(InvalidInput, match="still open"):
        belief.correction(X[:1], one, np.ones(1), np.zeros(1))
    for x in X[1:]:
        belief.observe(x[None], one, np.ones(1))
    if known:
        belief.correct(*belief.correction(X[:1], one, np.ones(1), np.zeros(1)))
        rounding = 100 * np.finfo(float).eps / noise  # of factors: docs/accuracy.md
        assert_allclose(belief.action_posterior(one)[0][0], [0.0, 1.0, 1.0], rtol=0, atol=rounding)
