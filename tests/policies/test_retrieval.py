"""Best k by inner product: the scan is exact, the index's scores are exact, and its recall is what it says."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyarms._base.typing import AnyArray, Array, Ints
from manyarms.errors import InvalidInput, MissingExtra, UnknownAction
from manyarms.policies.retrieval import ExactScan, FaissIndex, Retriever


def brute_force(
    actions: AnyArray, queries: AnyArray, k: int, barred: list[set[int]] | None = None
) -> tuple[Ints, Array]:
    """All scores, sorted by falling score and then by id."""
    scores = queries @ actions.T
    for i, ids in enumerate(barred or []):
        scores[i, list(ids)] = -np.inf
    order = np.lexsort((np.broadcast_to(np.arange(len(actions)), scores.shape), -scores), axis=1)[:, :k]
    return order, np.take_along_axis(scores, order, axis=1)


def whole(rng: np.random.Generator, *shape: int) -> Array:
    """Small integers: products are exact in any order of summation, and ties are many."""
    return rng.integers(-3, 4, size=shape).astype(np.float64)


@given(
    seed=st.integers(0, 10_000),
    actions=st.sampled_from([1, 2, 7, 300, 2500, 4097]),
    queries=st.sampled_from([1, 2, 5, 9, 300]),
    order=st.sampled_from(["any", "rising", "duplicates"]),
    exclude=st.sampled_from(["none", "shared", "own"]),
    single=st.booleans(),
)
def test_the_scan_equals_sorting_all_scores(
    seed: int, actions: int, queries: int, order: str, exclude: str, single: bool
) -> None:
    rng = np.random.default_rng(seed)
    beta = whole(rng, actions, 3)
    if order == "rising":  # actions in order of their score: the best are neighbours
        beta = beta[np.argsort(beta.sum(axis=1))]
    if order == "duplicates":
        beta = beta[rng.integers(max(1, actions // 50), size=actions)]
    x = np.ones((queries, 3)) if order == "rising" else whole(rng, queries, 3)
    given_ids, barred = None, [set[int]() for _ in range(queries)]
    if exclude == "shared":
        given_ids = rng.integers(actions, size=actions // 3)
        barred = [set(given_ids.tolist())] * queries
    if exclude == "own":
        given_ids = rng.integers(-1, actions, size=(queries, actions // 3))
        barred = [set(row.tolist()) - {-1} for row in given_ids]
    k = int(rng.integers(1, actions - max(map(len, barred)) + 1))
    if single:
        beta = beta.astype(np.float32)
    ids, scores = ExactScan(beta).search(x, k, given_ids)
    expected_ids, expected = brute_force(beta, x, k, barred)
    np.testing.assert_array_equal(ids, expected_ids)
    np.testing.assert_array_equal(scores, expected)


@pytest.mark.parametrize("k", [1, 10, 100, 700])
def test_one_query_of_a_large_catalogue(rng: np.random.Generator, k: int) -> None:
    beta = rng.standard_normal((30_001, 4))
    beta = beta[np.argsort(beta[:, 0])]
    x = np.array([[1.0, 1e-3, 0.0, 0.0]])
    ids, scores = ExactScan(beta).search(x, k)
    expected, values = brute_force(beta, x, k)
    np.testing.assert_array_equal(ids, expected)
    np.testing.assert_allclose(scores, values, rtol=1e-12)


def test_a_single_query_finds_what_a_batch_finds(rng: np.random.Generator) -> None:
    beta, x = whole(rng, 5000, 6), whole(rng, 20, 6)
    scan = ExactScan(beta)
    together = scan.search(x, 30)
    for i in range(len(x)):
        alone = scan.search(x[i : i + 1], 30)
        np.testing.assert_array_equal(alone[0][0], together[0][i])
        np.testing.assert_array_equal(alone[1][0], together[1][i])


def test_recall_of_the_scan_is_one(rng: np.random.Generator) -> None:
    scan: Retriever = ExactScan(rng.standard_normal((50, 3)))
    assert float(scan.recall(rng.standard_normal((4, 3)), 5)) == 1.0


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda scan: scan.search(np.ones((2, 4)), 1), InvalidInput),
        (lambda scan: scan.search(np.ones(3), 1), InvalidInput),
        (lambda scan: scan.search(np.ones((2, 3)), 0), InvalidInput),
        (lambda scan: scan.search(np.ones((2, 3)), 11), InvalidInput),
        (lambda scan: scan.search(np.ones((2, 3)), 8, exclude=[0, 1, 2]), InvalidInput),
        (lambda scan: scan.search(np.ones((2, 3)), 1, exclude=[10]), UnknownAction),
        (lambda scan: scan.search(np.ones((2, 3)), 1, exclude=[-1]), UnknownAction),
        (lambda scan: scan.search(np.ones((2, 3)), 1, exclude=[[1], [2], [3]]), InvalidInput),
        (lambda scan: scan.search(np.ones((2, 3)), 1, exclude=[0.5]), UnknownAction),
        (lambda scan: scan.search(np.full((2, 3), np.nan), 1), InvalidInput),
        (lambda scan: ExactScan(np.ones(3)), InvalidInput),
        (lambda scan: ExactScan(np.full((2, 2), np.inf)), InvalidInput),
    ],
)
def test_bad_input_is_refused(call: object, error: type[Exception]) -> None:
    with pytest.raises(error):
        call(ExactScan(np.arange(30.0).reshape(10, 3)))  # type: ignore[operator]


@pytest.mark.parametrize("queries", [1, 3])
def test_scores_that_overflow_are_refused(queries: int) -> None:
    scan = ExactScan(np.full((3000, 2), 1e30, dtype=np.float32))
    with pytest.raises(InvalidInput, match="single precision"):
        scan.search(np.full((queries, 2), 1e30), 1)


# ---- FAISS


@pytest.fixture
def clustered(rng: np.random.Generator) -> tuple[Array, Array]:
    """Actions of unequal length around centres, and queries among them."""
    pytest.importorskip("faiss")
    centres = rng.standard_normal((40, 8))
    beta = (centres[rng.integers(40, size=4000)] + 0.2 * rng.standard_normal((4000, 8))) * rng.gamma(
        2.0, size=(4000, 1)
    )
    return beta, centres + 0.2 * rng.standard_normal((40, 8))


@pytest.mark.parametrize("exclude", ["none", "shared", "own", "most"])
def test_the_index_scores_exactly_and_obeys_the_filter(
    clustered: tuple[Array, Array], rng: np.random.Generator, exclude: str
) -> None:
    beta, x = clustered
    index = FaissIndex(beta, probes=8)
    best, _ = ExactScan(beta).search(x, 30)
    barred = {
        "none": None,
        "shared": np.unique(best[:, :5]),
        "own": np.where(rng.random((len(x), 20)) < 0.7, best[:, :20], -1),
        "most": np.delete(np.arange(len(beta)), np.arange(0, len(beta), 100)),  # fewer left than any list holds
    }[exclude]
    ids, scores = index.search(x, 10, barred)
    np.testing.assert_allclose(scores, np.einsum("nd,nkd->nk", x, beta[ids]), rtol=1e-13)
    assert (np.diff(scores, axis=1) <= 0).all()
    for i, row in enumerate(ids):
        assert len(set(row.tolist())) == 10
        left_out = [] if barred is None else barred[i] if barred.ndim == 2 else barred
        assert not set(row.tolist()) & set(np.asarray(left_out).tolist())


def test_the_recall_is_the_measured_one(clustered: tuple[Array, Array]) -> None:
    beta, x = clustered
    index = FaissIndex(beta, probes=2, longer=1.0)
    found, _ = index.search(x, 20)
    best, _ = brute_force(beta, x, 20)
    shares = np.array([len(set(a.tolist()) & set(b.tolist())) / 20 for a, b in zip(found, best, strict=True)])
    recall = index.recall(x, 20)
    assert float(recall) == pytest.approx(shares.mean(), abs=1e-12)
    assert recall.lowest == shares.min()
    assert 0.1 < float(recall) < 1
    assert str(recall).startswith(f"recall@20 {shares.mean():.4f} over 40 queries")


def test_an_index_that_looks_everywhere_finds_everything(clustered: tuple[Array, Array]) -> None:
    beta, x = clustered
    index = FaissIndex(beta, lists=16, probes=16)
    ids, _ = index.search(x, 25)
    np.testing.assert_array_equal(ids, brute_force(beta, x, 25)[0])
    assert float(index.recall(x, 25)) == 1.0


def test_the_index_is_tuned_to_a_recall(clustered: tuple[Array, Array]) -> None:
    beta, x = clustered
    index = FaissIndex.tuned(beta, x, 20, recall=0.9)
    assert float(index.recall(x, 20)) >= 0.9
    index.probes //= 2
    assert index.probes == 0 or float(index.recall(x, 20)) < 0.9


def test_the_index_is_the_same_for_a_seed(clustered: tuple[Array, Array]) -> None:
    beta, x = clustered
    first, again = (FaissIndex(beta, probes=3, seed=5).search(x, 10) for _ in range(2))
    np.testing.assert_array_equal(first[0], again[0])


def test_without_faiss_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(MissingExtra, match=r"manyarms\[faiss\]"):
        FaissIndex(np.eye(3))
