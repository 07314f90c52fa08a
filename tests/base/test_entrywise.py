"""Many small matrices, entry by entry: what LAPACK finds, and what rational numbers say."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brute_force import covariance_matrix
from exact_gaussian import inverse, product, rational
from manyarms._base import entrywise, linalg
from manyarms._base.typing import Array


def entries(matrices: Array) -> Array:
    return np.ascontiguousarray(linalg.packing(matrices.shape[-1]).pack(matrices).T)


def full(packed: Array, d: int) -> Array:
    return linalg.packing(d).unpack(packed.T)


@given(seed=st.integers(0, 10**6), d=st.integers(1, 12), m=st.integers(1, 5), diagonal=st.booleans())
def test_a_congruence(seed: int, d: int, m: int, diagonal: bool) -> None:
    rng = np.random.default_rng(seed)
    A = np.diag(rng.standard_normal(d)) if diagonal else rng.standard_normal((d, d))
    M = rng.standard_normal((m, d, d))
    M = M + np.swapaxes(M, 1, 2)
    np.testing.assert_allclose(full(entrywise.sandwich(A, entries(M)), d), A @ M @ A.T, atol=1e-12 * d**2)


@given(seed=st.integers(0, 10**6), d=st.integers(1, 9), size=st.sampled_from((1e-9, 1e-3, 1.0, 1e3, 1e7)))
def test_shrinking_is_that_of_lapack(seed: int, d: int, size: float) -> None:
    """Few rows leave directions of eigenvalue 1 beside others of `size`: the errors of both are those of the condition."""
    rng, m = np.random.default_rng(seed), 4
    C = np.linalg.cholesky(covariance_matrix(rng, d))
    X = rng.standard_normal((m, d, max(1, d - 2)))
    G, b = size * X @ np.swapaxes(X, 1, 2), rng.standard_normal((m, d))
    found = entrywise.shrink(C, entries(G), np.ascontiguousarray(b.T))
    assert found is not None
    S, Sb = linalg.shrink(C, G, b)
    condition = float(np.linalg.norm(C, 2) ** 2 * np.linalg.norm(G, 2, axis=(1, 2)).max()) + 1
    for have, want in ((full(found[0], d), S), (found[1].T, Sb)):
        assert np.abs(have - want).max() <= 200 * d * condition * np.finfo(float).eps * np.abs(want).max()


@pytest.mark.parametrize("size", [1.0, 1e4, 4e7])
def test_inverse_and_solution_against_rational_numbers(size: float) -> None:
    """The largest evidence that sums are trusted with (folding.MOST): the errors stay below 1e-8 of the largest entry."""
    rng, d = np.random.default_rng(3), 5
    X = rng.standard_normal((6, 3, d))  # three rows in five dimensions
    G = np.swapaxes(X, 1, 2) @ X
    G = G * (size / np.trace(G, axis1=1, axis2=2))[:, None, None] + np.eye(d)
    b = np.einsum("nkd,nk->nd", X, rng.standard_normal((6, 3)))
    found, solved = entrywise.inverse_and_solution(entries(G), np.ascontiguousarray(b.T))
    for a in range(len(G)):
        exact = inverse(rational(np.triu(G[a]) + np.triu(G[a], 1).T))
        want = np.array([[float(v) for v in row] for row in exact])
        right = [[Fraction(v)] for v in b[a].tolist()]
        solution = np.array([float(row[0]) for row in product(exact, right)])
        assert np.abs(full(found, d)[a] - want).max() <= 1e-8 * np.abs(want).max()
        assert np.abs(solved[:, a] - solution).max() <= 1e-8 * np.abs(want).max() * np.abs(b[a]).max()


def test_what_is_not_positive_definite_is_not_answered() -> None:
    x = np.ones(3)
    G = np.stack([np.eye(3), 1e30 * np.outer(x, x), -2 * np.eye(3)])
    assert entrywise.shrink(np.eye(3), entries(G[:1]), np.ones((3, 1))) is not None
    assert entrywise.shrink(np.eye(3), entries(G[2:]), np.ones((3, 1))) is None
    found = entrywise.shrink(np.eye(3), entries(G[1:2]), np.ones((3, 1)))  # singular beside it: refused, or sound
    assert found is None or bool(((found[0] <= 1 + 1e-9) & np.isfinite(found[0])).all())


def test_sizes_for_which_it_is_used() -> None:
    assert entrywise.suits(10, 1000) and not entrywise.suits(10, 3) and not entrywise.suits(200, 1000)
    assert entrywise.together(1) > entrywise.together(20) >= entrywise.FEWEST
