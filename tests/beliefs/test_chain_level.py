"""One chain on its way up: the short forms for a single matrix say what the stacked ones and dense conditioning say."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyarms.beliefs.chain_level import ChainLevel
from manyarms.beliefs.messages import Chain
from manyarms.worlds import synthetic_chain

SCALES = (0.0, 1e-12, 1e-3, 1.0, 1e3, 1e8, 1e13)


# rounding in G is worth eps |G| of precision in directions that it says nothing of, whatever is made of it: up to 1e3 here
@given(st.integers(0, 10**6), st.integers(1, 8), st.sampled_from(SCALES[:5]))
def test_a_level_is_dense_conditioning(seed: int, d: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((d, d))
    covariance = root @ root.T / d + 0.5 * np.eye(d)
    rows = rng.standard_normal((max(1, d - 1), d)) * np.sqrt(scale)  # evidence need not reach every direction
    G, B = rows.T @ rows, rows.T @ rng.standard_normal(len(rows))
    own = np.linalg.inv(covariance)
    T, towards, offset, D, e = ChainLevel(np.linalg.cholesky(covariance), own).up(G, B)
    # by the gain, which inverts nothing that is nearly singular
    seen = rows @ covariance @ rows.T + np.eye(len(rows))
    gain = np.linalg.solve(seen, rows @ covariance)
    S = covariance - covariance @ rows.T @ gain
    size = 1e-8 * np.abs(covariance).max()
    np.testing.assert_allclose(T @ T.T, S, atol=size, rtol=1e-6)
    np.testing.assert_allclose(towards, S @ own, atol=1e-7, rtol=1e-6)
    np.testing.assert_allclose(offset, S @ B, atol=1e-6 * (1.0 + np.abs(B).max() * size), rtol=1e-6)
    told = rows.T @ np.linalg.solve(seen, rows)
    np.testing.assert_allclose(D, told, atol=1e-7 * (1.0 + np.abs(own).max()), rtol=1e-6)
    assert np.array_equal(D, D.T) and np.isfinite(e).all()


@pytest.mark.parametrize("rule", ["thesis", "jacobian"])
@pytest.mark.parametrize("links", ["linear", "network"])
@pytest.mark.parametrize(("d", "L"), [(1, 1), (5, 3), (20, 4), (2, 40)])
@pytest.mark.parametrize("scale", SCALES)
def test_one_chain_is_a_stack_of_one(rule: str, links: str, d: int, L: int, scale: float) -> None:
    rng = np.random.default_rng(3)
    chain = Chain(synthetic_chain(10, d, L, links=links, scaled=True, seed=4), rule)
    rows = rng.standard_normal((d + 2, d))
    G, B = scale * rows.T @ rows, scale * rows.T @ rng.standard_normal(d + 2)
    one, stacked = chain.up(G[None], B[None]), chain.up(np.stack([G, G]), np.stack([B, B]))
    for name in ("towards", "offset"):
        ours, theirs = getattr(one, name)[0], getattr(stacked, name)[0]
        np.testing.assert_allclose(ours, theirs, atol=1e-7 * np.abs(theirs).max() + 1e-12)
    covariances = [made.factor @ np.swapaxes(made.factor, -1, -2) for made in (one, stacked)]
    np.testing.assert_allclose(covariances[0][0], covariances[1][0], atol=1e-9, rtol=1e-7)


def test_rounding_in_huge_evidence_does_not_make_a_variance_grow() -> None:
    """F^T G F has a negative eigenvalue by rounding: the short way says so, and eigenvalues are put where they must lie."""
    own = np.eye(2)
    G = 1e20 * np.array([[1.0, 1.0], [1.0, 1.0]])
    G[1, 1] -= 1e5  # below a rounding of G
    T, towards, offset, D, e = ChainLevel(np.eye(2), own).up(G, np.array([1.0, 1.0]))
    assert all(np.isfinite(part).all() for part in (T, towards, offset, D, e))
    assert (np.square(T).sum(axis=1) <= 1 + 1e-6).all()


def test_chains_can_be_copied() -> None:
    chain = Chain(synthetic_chain(10, 3, 2, seed=4))
    twin = copy.deepcopy(chain)
    G, B = np.eye(3)[None], np.ones((1, 3))
    assert np.array_equal(chain.up(G, B).offset, twin.up(G, B).offset)
