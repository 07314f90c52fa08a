"""Sums by action: rows in any order, of actions with few rows and with many, in chunks of any size."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import manyarms as ma
from brute_force import MIXINGS, covariance_of_root, random_case, random_rows
from manyarms._base import entrywise
from manyarms._base.typing import Array, Ints
from manyarms.beliefs import sums as module
from manyarms.beliefs.sums import Rounds, Sums, batches, by_action
from manyarms.priors import LatentPrior


def uneven(rng: np.random.Generator, n: int, top: int) -> Ints:
    """Actions of which a few have most rows."""
    return np.minimum(rng.pareto(0.5, n), top - 1).astype(np.int64)


def assert_sums(found: Sums, X: Array, A: Ints, r: Array) -> None:
    G = found.packing.unpack(found.G)
    assert sorted(found.ids.tolist()) == np.unique(A).tolist()
    for place, a in enumerate(found.ids.tolist()):
        x, y = X[a == A], r[a == A]
        size = 1e-13 * len(x) * float(np.abs(x).max(initial=1.0)) ** 2
        np.testing.assert_allclose(G[place], x.T @ x, rtol=0, atol=size)
        np.testing.assert_allclose(found.B[place], x.T @ y, rtol=0, atol=size * float(np.abs(y).max()))
        assert found.counts[place] == len(x)
    np.testing.assert_allclose(found.squares(np.unique(A)), [float((X[a == A] ** 2).sum()) for a in np.unique(A)])


@pytest.mark.parametrize("top", [3, 300, 70_000, 10**12])
@pytest.mark.parametrize("d", [1, 4])
def test_sums_of_uneven_actions(top: int, d: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stacks of every height, an action with more rows than are taken at once, ids of more than 16 bits and of very many."""
    monkeypatch.setattr(module, "LONGEST", 500)
    monkeypatch.setattr(module, "IN_WORK", 1 << 12)
    rng = np.random.default_rng(top % 97)
    n = 12_000
    X, A, r = (
        rng.standard_normal((n, d)),
        uneven(rng, n, min(top, 200)) * (top // min(top, 200)),
        rng.standard_normal(n),
    )
    found = Sums(d, top)
    found.add(X[:7000], A[:7000], r[:7000])
    found.add(X[7000:7100], A[7000:7100], r[7000:7100])  # few rows go another way
    found.add(X[7100:], A[7100:], r[7100:])
    found.add(X[:0], A[:0], r[:0])
    assert_sums(found, X, A, r)


def test_rows_in_order_of_their_actions() -> None:
    rng = np.random.default_rng(0)
    for n, top in ((0, 5), (7, 5), (5000, 5), (5000, 200_000), (5000, 2**40)):
        A = rng.integers(top, size=n)
        rows = by_action(np.ones((n, 2)), A)
        assert rows.touched.tolist() == np.unique(A).tolist()
        assert rows.order.tolist() == np.argsort(A, kind="stable").tolist()
        assert (rows.touched[rows.labels] == A).all()
        assert rows.counts.sum() == n and rows.squares.tolist() == (2.0 * rows.counts).tolist()


@pytest.mark.parametrize("cut", [1, 7, 60, 200])
def test_batches_are_the_rows(cut: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BATCH", 100)
    rng = np.random.default_rng(cut)
    X, A, r = rng.standard_normal((200, 2)), rng.integers(30, size=200), rng.standard_normal(200)

    def chunks() -> Iterator[Rounds]:
        for start in range(0, 200, cut):
            some = slice(start, start + cut)
            yield X[some], A[some], r[some]

    for actions in (1, 5, 1000):
        found = [tuple(part.copy() for part in rows) for rows in batches(chunks(), actions)]
        for whole, parts in zip((X, A, r), zip(*found, strict=True), strict=True):
            assert np.concatenate(parts).tolist() == whole.tolist()
        assert max(len(rows[1]) for rows in found) <= max(50, cut)


@pytest.mark.parametrize("mixing", MIXINGS)
@pytest.mark.parametrize("root", ["gaussian", "known"])
def test_matrices_entry_by_entry_are_those_one_by_one(mixing: str, root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same belief, of the first rows and of those that come later."""
    K, dim = 90, 3
    early, late = random_rows(1, 400, dim, np.arange(K)), random_rows(2, 300, dim, np.arange(K))
    beliefs = []
    for fewest in (1, 10**9):
        monkeypatch.setattr(entrywise, "FEWEST", fewest)
        case = random_case(3, mixing, root, actions=K, dim=dim)
        case.belief.fold([early])
        case.belief.fold([late])
        beliefs.append(case.belief)
    for name, have in beliefs[0].arrays().items():
        np.testing.assert_allclose(have, beliefs[1].arrays()[name], rtol=0, atol=1e-10, err_msg=name)


@pytest.mark.parametrize("streamed", [False, True])
def test_a_log_of_many_actions_against_the_closed_form(streamed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Enough actions that all the short ways are taken, and the posterior of the thesis, Section 6.3.2, written out."""
    monkeypatch.setattr(module, "FEW", 0)
    rng = np.random.default_rng(4)
    n, K, d, p, noise = 3000, 400, 3, 2, 0.5
    W, covariance = rng.uniform(-1, 1, (K, d, p)), np.array([[1.0, 0.3, 0.0], [0.3, 0.8, 0.1], [0.0, 0.1, 1.5]])
    prior = LatentPrior(W, rng.standard_normal(p), 2 * np.eye(p), covariance)
    X, A, r = rng.standard_normal((n, d)), rng.integers(K, size=n), rng.standard_normal(n)
    belief = ma.beliefs.belief_of(prior, ma.Linear(noise))
    step = 250 if streamed else n
    belief.fold((X[i : i + step], A[i : i + step], r[i : i + step]) for i in range(0, n, step))
    own = np.linalg.inv(covariance)
    P, h = np.eye(p) / 2, prior.mean / 2
    for a in range(K):
        x, y = X[a == A], r[a == A]
        S = np.linalg.inv(own + x.T @ x / noise**2)
        P = P + W[a].T @ (own - own @ S @ own) @ W[a]
        h = h + W[a].T @ own @ S @ (x.T @ y) / noise**2
    np.testing.assert_allclose(covariance_of_root(belief), np.linalg.inv(P), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(belief.root.mean(), np.linalg.solve(P, h), rtol=1e-9)
