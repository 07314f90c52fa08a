"""Every search for the best unplayed action draws from the law of scoring each of them: the argmax, and the score itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from brute_force import same_law
from manyarms._base.typing import Array, Ints
from manyarms.beliefs.actions import blocks, search
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
    built = Blocks(features, counts, counts > 1)
    return lambda floor, k, rng: search.open_blocks(built, C, SD, counts, built.sizes.rows, floor, k, rng)


def by_grown_blocks(features: Array, counts: Ints) -> Find:
    """Two founders, and all others came later."""
    built = Blocks(features[:2], counts[:2], counts[:2] > 1)
    for unit in range(2, len(counts)):
        built.insert(features[unit], counts, counts > 1)
    return lambda floor, k, rng: search.open_blocks(built, C, SD, counts, built.sizes.rows, floor, k, rng)


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
    monkeypatch.setattr(blocks, "BLOCK", 3)
    monkeypatch.setattr(search, "PIECE", 4)


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("counts", COUNTS.values(), ids=COUNTS.keys())
@pytest.mark.parametrize("by", [by_groups, by_scan, by_scan_of_own_sds, by_blocks, by_grown_blocks])
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
@pytest.mark.parametrize("by", [by_groups, by_scan, by_blocks, by_grown_blocks])
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


def test_the_search_in_blocks_leaves_most_of_them_closed(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    """Otherwise it would be exact and useless. Wide features, small noise: a handful of 200 blocks is opened."""
    features = rng.standard_normal((20_000, 3))
    monkeypatch.setattr(blocks, "BLOCK", 100)
    counts = np.ones(20_000, dtype=np.int64)
    built = Blocks(features, counts, counts > 1)
    opened = []
    original = search._open

    def counting(*arguments: Any) -> Found:
        opened.append(1)
        return original(*arguments)

    monkeypatch.setattr(search, "_open", counting)
    for _ in range(20):
        search.open_blocks(built, C, 0.3, counts, built.sizes.rows, -np.inf, 1, rng)
    assert len(opened) / 20 < 0.1 * len(built)


@given(seed=st.integers(0, 10**6), rows=st.integers(1, 60), size=st.integers(1, 9), width=st.integers(1, 4))
def test_blocks_hold_every_unit_once_and_bound_its_mean(seed: int, rows: int, size: int, width: int) -> None:
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((rows, width)) * 10.0 ** rng.integers(-8, 9, width)
    if seed % 3 == 0:
        features[:, 0] = 1.0
    counts = rng.integers(0, 3, rows)
    founders = rows if size == 1 else int(rng.integers(1, rows + 1))  # the others come later
    before = blocks.BLOCK
    blocks.BLOCK = size
    try:
        built = Blocks(features[:founders], counts[:founders], counts[:founders] > 1)
        for unit in range(founders, rows):
            built.insert(features[unit], counts, counts > 1)
    finally:
        blocks.BLOCK = before
    lengths = built.lengths.rows
    inside = [built.units.rows[j, :length] for j, length in enumerate(lengths.tolist())]
    assert sorted(np.concatenate(inside).tolist()) == list(range(rows))
    assert lengths.max() <= size and lengths.min() >= 1
    c = rng.standard_normal(width)
    bounds = built.bounds(c)
    for j, members in enumerate(inside):
        assert (built.block_of.rows[members] == j).all()
        assert (built.members[j] == features[members].T).all()
        assert built.sizes.rows[j] == counts[members].sum()
        assert built.alone.rows[j] == (counts[members] <= 1).all()
        assert (c @ built.members[j] <= bounds[j]).all()
        assert (features[members] @ c <= bounds[j]).all()


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
