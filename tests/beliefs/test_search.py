"""Every search for the best unplayed action draws from the law of scoring each of them: the argmax, and the score itself."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from brute_force import same_law
from manyarms._base.typing import Array, Ints
from manyarms.beliefs.actions import block_search, blocks, search, sketch
from manyarms.beliefs.actions.blocks import Blocks

DRAWS = 3000
C = np.array([0.9, -0.5, 0.3])  # coefficients of the features
SD = 0.6
Found = tuple[Array, Ints]
Find = Callable[[float, int, np.random.Generator], Found]  # floor, k, generator
Search = Callable[[Array, Ints], Find]  # for units with these features, and so many members left


def by_groups(features: Array, counts: Ints) -> Find:
    return lambda floor, k, rng: search.groups(features @ C, SD, counts, floor, k, rng)


def by_scan(features: Array, counts: Ints) -> Find:
    return lambda floor, k, rng: search.scan(features.T, C, SD, counts, floor, k, rng)


def by_scan_of_own_sds(features: Array, counts: Ints) -> Find:
    return lambda floor, k, rng: search.scan(features.T, C, np.full(len(counts), SD), counts, floor, k, rng)


def by_blocks(features: Array, counts: Ints) -> Find:
    return in_blocks(Blocks(features, counts, counts > 1), features, counts)


def in_blocks(built: Blocks, features: Array, counts: Ints) -> Find:
    sizes = built.sizes.rows
    return lambda floor, k, rng: block_search.open_blocks(
        built, C, SD, counts, sizes, lambda units: features[units] @ C, floor, k, rng
    )


def by_grown_blocks(features: Array, counts: Ints) -> Find:
    """Two founders, and all others came later."""
    built = Blocks(features[:2], counts[:2], counts[:2] > 1)
    for unit in range(2, len(counts)):
        built.insert(features[unit], counts, counts > 1)
    return in_blocks(built, features, counts)


def by_products(features: Array, counts: Ints) -> Find:
    """As where boxes say nothing: all members are bounded first."""
    find = by_blocks(features, counts)

    def with_many(floor: float, k: int, rng: np.random.Generator) -> Found:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(block_search, "MANY", 0)
            patch.setattr(block_search, "FIRST", 1)
            return find(floor, k, rng)

    return with_many


def by_short_sketches(features: Array, counts: Ints) -> Find:
    """One axis alone, and the length of the rest; products picked from memory, block by block."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sketch, "REST", 10.0)
        built = Blocks(features, counts, counts > 1)
    assert built.sketch.kept < features.shape[1]
    find = in_blocks(built, features, counts)

    def in_pieces(floor: float, k: int, rng: np.random.Generator) -> Found:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(block_search, "MANY", 1)
            patch.setattr(block_search, "FIRST", 1)
            patch.setattr(block_search, "DENSE", 2.0)
            patch.setattr(block_search, "OPENED", 1)
            return find(floor, k, rng)

    return in_pieces


def every_score(features: Array, counts: Ints, k: int, rng: np.random.Generator) -> Found:
    """The plain way: a score for every member of every unit."""
    owners = np.repeat(np.arange(len(counts)), counts)
    scores = (features @ C)[owners] + SD * rng.standard_normal(len(owners))
    best = np.argsort(-scores)[:k]
    return scores[best], owners[best]


COUNTS = {
    "one each": np.ones(11, dtype=np.int64),
    "some gone": np.array([1, 0, 1, 1, 0, 0, 1, 1, 0, 1, 1]),
    "many of each": np.array([3, 1, 0, 25, 2, 1, 7, 0, 1, 4, 2]),
    "two of some": np.array([2, 0, 2, 0, 0, 0, 0, 2, 0, 0, 0]),
    "one left": np.array([0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0]),
}


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of at most three units, pieces of four: eleven units then go through all that a million would."""
    monkeypatch.setattr(blocks, "SMALLEST", 3)
    monkeypatch.setattr(blocks, "BLOCK", 3)
    monkeypatch.setattr(search, "PIECE", 4)


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("counts", COUNTS.values(), ids=COUNTS.keys())
@pytest.mark.parametrize(
    "by", [by_groups, by_scan, by_scan_of_own_sds, by_blocks, by_grown_blocks, by_products, by_short_sketches]
)
@pytest.mark.parametrize("k", [1, 4])
def test_the_best_have_the_law_of_scoring_everyone(by: Search, counts: Ints, k: int, rng: np.random.Generator) -> None:
    k = min(k, int(counts.sum()))
    features = np.random.default_rng(5).uniform(-1, 1, (len(counts), 3))
    find = by(features, counts)
    ours, plain = np.empty((DRAWS, k)), np.empty((DRAWS, k))
    owners, plain_owners = np.empty((DRAWS, k), dtype=np.int64), np.empty((DRAWS, k), dtype=np.int64)
    for i in range(DRAWS):
        scores, units = find(-np.inf, k, rng)
        best = np.argsort(-scores)[:k]
        ours[i], owners[i] = scores[best], units[best]
        plain[i], plain_owners[i] = every_score(features, counts, k, rng)
    for unit, count in enumerate(counts.tolist()):
        assert ((owners == unit).sum(axis=1) <= count).all()  # nobody comes twice
    assert same_law(owners, plain_owners) > 1e-6
    for j in range(k):
        assert stats.ks_2samp(ours[:, j], plain[:, j]).pvalue > 1e-6


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("by", [by_groups, by_scan, by_blocks, by_grown_blocks, by_products, by_short_sketches])
@pytest.mark.parametrize("k", [1, 2])
def test_a_floor_hides_only_what_lies_below_it(by: Search, k: int, rng: np.random.Generator) -> None:
    """The winner, or that nobody reaches the floor, has the same law as without one."""
    counts, floor = COUNTS["many of each"], 2.1
    features = np.random.default_rng(5).uniform(-1, 1, (len(counts), 3))
    find = by(features, counts)
    ours, plain = np.empty((DRAWS, k), dtype=np.int64), np.empty((DRAWS, k), dtype=np.int64)
    for i in range(DRAWS):
        for out, (scores, units) in (
            (ours, find(floor, k, rng)),
            (plain, every_score(features, counts, k, rng)),
        ):
            above = scores > floor
            best = np.argsort(-scores[above])[:k]
            out[i] = -1
            out[i, : len(best)] = units[above][best]
    assert 0.1 < (plain[:, 0] < 0).mean() < 0.9  # the floor matters
    assert same_law(ours, plain) > 1e-6


def test_the_search_in_blocks_looks_at_few_members(rng: np.random.Generator) -> None:
    """Otherwise it would be exact and useless."""
    features = rng.standard_normal((20_000, 3))
    counts = np.ones(20_000, dtype=np.int64)
    built = Blocks(features, counts, counts > 1)
    opened = list[int]()

    def means(units: Ints) -> Array:
        opened.append(len(units))
        mean: Array = features[units] @ C
        return mean

    for _ in range(20):
        block_search.open_blocks(built, C, 0.3, counts, built.sizes.rows, means, -np.inf, 1, rng)
    assert sum(opened) / 20 < 0.1 * len(features)


@given(seed=st.integers(0, 10**6), k=st.integers(1, 6))
def test_certain_keeps_all_that_may_be_among_the_best(seed: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    score, counts = rng.integers(0, 4, 12).astype(float), rng.integers(0, 3, 12)
    values, units = search.certain(score, counts, k)
    live = np.flatnonzero(counts)
    assert (counts[units] > 0).all() and (score[units] == values).all()
    if len(live):
        threshold = np.sort(score[live])[::-1][min(k, len(live)) - 1]
        assert units.tolist() == live[score[live] >= threshold].tolist()
