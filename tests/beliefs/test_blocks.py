"""Blocks hold every unit, whatever comes and goes, and what they and their sketches say bounds every mean."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manyarms._base.typing import Array
from manyarms.beliefs.actions import batch_search, block_search, blocks, sketch
from manyarms.beliefs.actions.best_of_each import BestOfEach
from manyarms.beliefs.actions.blocks import Blocks
from manyarms.beliefs.actions.sketch import Sketch
from manyarms.beliefs.actions.units import Units

SEEDS = st.integers(0, 10**6)


def made_up(rng: np.random.Generator, rows: int, width: int) -> Array:
    """Features of many scales: by column, by row, with columns that are alike, and a spectrum that decays or does not."""
    features: Array = rng.standard_normal((rows, width))
    kind = rng.integers(4)
    if kind == 1:
        features *= 10.0 ** rng.integers(-8, 9, width)
    elif kind == 2:
        features *= 10.0 ** rng.uniform(-6, 6, (rows, 1))
    elif kind == 3:
        axes, _ = np.linalg.qr(rng.standard_normal((width, width)))
        features = features * 0.3 ** np.arange(width) @ axes
    if rng.integers(3) == 0:
        features[:, 0] = 1.0
    features *= 10.0 ** rng.choice([-150, -30, 0, 0, 0, 30, 100])
    return features


def sized(size: int) -> pytest.MonkeyPatch:
    patch = pytest.MonkeyPatch()
    patch.setattr(blocks, "SMALLEST", size)
    patch.setattr(blocks, "BLOCK", size)
    return patch


@given(seed=SEEDS, rows=st.integers(1, 60), size=st.integers(1, 9), width=st.integers(1, 6))
def test_blocks_hold_every_unit_once_and_bound_its_mean(seed: int, rows: int, size: int, width: int) -> None:
    rng = np.random.default_rng(seed)
    features = made_up(rng, rows, width)
    counts = rng.integers(0, 3, rows)
    founders = rows if size == 1 else int(rng.integers(1, rows + 1))  # the others come later
    patch = sized(size)
    built = Blocks(features[:founders], counts[:founders], counts[:founders] > 1)
    for unit in range(founders, rows):
        built.insert(features[unit], counts, counts > 1)
    patch.undo()
    lengths = built.lengths.rows
    inside = [built.units.rows[j, :length] for j, length in enumerate(lengths.tolist())]
    assert sorted(np.concatenate(inside).tolist()) == list(range(rows))
    assert lengths.max() <= size and lengths.min() >= 1
    C = rng.standard_normal((3, width)) * 10.0 ** rng.choice([-100, -20, 0, 0, 20, 100], (3, 1))
    many = built.ask_many(C)
    for i, c in enumerate(C):
        asked = built.ask(c)
        for j, members in enumerate(inside):
            assert (built.block_of.rows[members] == j).all()
            assert (built.members.rows[j, :, : lengths[j]] == built.sketch.rows(features[members])[0].T).all()
            assert built.sizes.rows[j] == counts[members].sum()
            assert built.alone.rows[j] == (counts[members] <= 1).all()
            mean = features[members] @ c
            assert mean.max() <= min(asked.bounds[j], many.bounds[i, j])
            products = asked.singles @ built.members.rows[j]
            assert mean.max() <= asked.above(products[None].max(axis=1), np.array([j]))[0]
            # whoever exceeds a limit is not screened out
            for limit in mean:
                above = mean > limit
                single = asked.thresholds(np.array([limit]), np.array([j]))[0]
                assert (products[: len(members)][above] > single).all()
                together = many.thresholds(np.array([limit]), np.array([i]), np.array([j]))[0]
                assert ((many.singles[i] @ built.members.rows[j])[: len(members)][above] > together).all()


@given(seed=SEEDS, width=st.integers(1, 70), kept=st.booleans())
@settings(max_examples=60)
def test_products_of_sketches_err_by_no_more_than_they_say(seed: int, width: int, kept: bool) -> None:
    """Against exact fractions, with terms that cancel, rows longer than the first ones, and denormal numbers."""
    rng = np.random.default_rng(seed)
    features = made_up(rng, 40, width)
    patch = pytest.MonkeyPatch()
    patch.setattr(sketch, "REST", 0.1 if kept else 3.0)
    made = Sketch(features[:30])
    patch.undo()
    features[30:34] *= 1e20  # later rows
    c = rng.standard_normal(width) * 10.0 ** rng.choice([-150, 0, 0, 100])
    if width > 1:  # orthogonal up to rounding: what is left of the sum is nothing but roundings
        features[20] -= (features[20] @ c / (c @ c) if np.isfinite(c @ c) and c @ c > 0 else 0.0) * c
        features[21] = features[21] * 1e-300
    rows, lengths = made.rows(features)
    asked = made.question(c)
    products = asked.singles @ rows.T
    slack = made.error * asked.size * lengths + sketch.SMALL * asked.size
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        upper = (products.astype(float) + slack) * asked.unit
        lower = (products.astype(float) - slack) * asked.unit
    for i, row in enumerate(features):
        exact = sum(Fraction(a) * Fraction(b) for a, b in zip(row.tolist(), c.tolist(), strict=True))
        assert np.isinf(upper[i]) or exact <= Fraction(upper[i])
        if made.kept == width:
            assert np.isinf(lower[i]) or exact >= Fraction(lower[i])


def test_a_row_too_long_for_singles_is_never_screened_out() -> None:
    rng = np.random.default_rng(0)
    features = rng.standard_normal((200, 4))
    counts = np.ones(202, dtype=np.int64)
    built = Blocks(features, counts[:200], counts[:200] > 1)
    long = np.vstack([features, 1e60 * np.eye(4)[:2]])
    for unit in (200, 201):
        built.insert(long[unit], counts, counts > 1)
    for sign, winner in ((1.0, 200), (-1.0, 201)):
        c = np.array([sign, -sign, 0.5, 0.0])
        means: Array = long @ c
        scores, units = block_search.open_blocks(
            built, c, 1.0, counts, built.sizes.rows, means.__getitem__, -np.inf, 1, rng
        )
        assert units.tolist() == [winner] and scores[0] > 1e59


@pytest.mark.parametrize("length", [1e20, 1e28, 1e60])
@pytest.mark.parametrize("k", [1, 4])
def test_noise_is_not_lost_beside_a_row_that_is_far_longer(length: float, k: int) -> None:
    """Units of two members share a block, and so the error of its sketches, with a long row that the context does not see."""
    rng = np.random.default_rng(1)
    features = rng.standard_normal((60, 4))
    counts = np.full(61, 2)
    built = Blocks(features, counts[:60], counts[:60] > 1)
    long = np.vstack([features, length * np.eye(4)[3]])
    built.insert(long[60], counts, counts > 1)
    means: Array = long @ np.array([1.0, -1.0, 0.5, 0.0])
    for _ in range(20):
        scores, units = block_search.open_blocks(
            built, np.array([1.0, -1.0, 0.5, 0.0]), 1.0, counts, built.sizes.rows, means.__getitem__, -np.inf, k, rng
        )
        assert len(scores) == k
        noise = np.abs(scores - means[units])
        assert ((noise > 0) & (noise < 12)).all() and len(set(noise.tolist())) == k
    scores, _ = block_search.open_blocks(
        built, np.array([1.0, -1.0, 0.5, 0.0]), 0.0, counts, built.sizes.rows, means.__getitem__, -np.inf, k, rng
    )
    np.testing.assert_array_equal(np.sort(scores), np.sort(np.repeat(means, 2))[-k:])


@pytest.mark.parametrize("size", [1e-200, 1.0, 1e8, 1e100])
@pytest.mark.parametrize("scale", [1e-320, 1e-310, 1e-300, 1e-5, 1e190])
def test_coefficients_at_the_ends_of_what_floats_hold(size: float, scale: float) -> None:
    rng = np.random.default_rng(2)
    features, counts = size * rng.standard_normal((300, 3)), np.ones(300, dtype=np.int64)
    c = scale * np.array([1.0, -2.0, 0.5])
    means: Array = np.einsum("ij,j->i", features, c)
    built = Blocks(features, counts, counts > 1)
    for asked in (built.ask(c).bounds, built.ask_many(c[None]).bounds[0]):
        assert (asked[built.block_of.rows] >= means).all()
    scores, _ = block_search.open_blocks(built, c, 0.0, counts, built.sizes.rows, means.__getitem__, -np.inf, 1, rng)
    assert scores.tolist() == [means.max()]


@pytest.mark.parametrize("k", [1, 3])
def test_noise_may_be_larger_than_means_by_more_than_singles_hold(k: int) -> None:
    rng = np.random.default_rng(3)
    features, counts = rng.standard_normal((3000, 3)), np.ones(3000, dtype=np.int64)
    built = Blocks(features, counts, counts > 1)
    for scale in (1e-40, 1e-200, 0.0):
        c = scale * np.array([1.0, -2.0, 0.5])
        means: Array = features @ c
        sizes, best = built.sizes.rows, BestOfEach(20, k)
        for _ in range(20):
            scores, units = block_search.open_blocks(built, c, 1.0, counts, sizes, means.__getitem__, -np.inf, k, rng)
            assert len(scores) == k == len(set(units.tolist())) and (scores > 1).all()
        batch_search.open_blocks(
            best, built, np.tile(c, (20, 1)), np.ones(20), counts, sizes, features.__getitem__, rng
        )
        assert (best.scores > 1).all()


@given(seed=SEEDS, k=st.integers(1, 3))
@settings(max_examples=40)
def test_without_noise_the_best_are_those_of_exact_means(seed: int, k: int) -> None:
    """Means that differ in their last digits, far below what float32 tells apart: the search still finds the best of all."""
    rng = np.random.default_rng(seed)
    width = int(rng.integers(2, 8))
    common = rng.standard_normal(width) * 1e3
    features = common + 1e-9 * rng.standard_normal((900, width))
    c = rng.standard_normal(width)
    counts = np.ones(900, dtype=np.int64)
    built = Blocks(features, counts, counts > 1)
    # the same sums whoever asks: each row by itself
    means = np.einsum("ij,j->i", features, c)
    scores, units = block_search.open_blocks(
        built, c, 0.0, counts, built.sizes.rows, lambda units: means[units], -np.inf, k, rng
    )
    assert sorted(scores.tolist(), reverse=True)[:k] == sorted(means.tolist(), reverse=True)[:k]
    assert (means[units] == scores).all()


def test_axes_that_hold_next_to_nothing_are_left_out() -> None:
    rng = np.random.default_rng(0)
    axes, _ = np.linalg.qr(rng.standard_normal((30, 30)))
    decaying = rng.standard_normal((3000, 30)) * 0.5 ** np.arange(30) @ axes
    made = Sketch(decaying)
    assert made.kept < 12 and made.width == made.kept + 1
    assert Sketch(rng.standard_normal((3000, 30))).width == 30
    low = rng.standard_normal((500, 3)) @ rng.standard_normal((3, 20))  # of rank three
    assert Sketch(low).kept == 3
    assert Sketch(np.zeros((5, 4))).width <= 4
    assert Sketch(rng.standard_normal((50, 100))).width == 100  # too wide to be turned


def test_blocks_are_those_of_the_units_and_their_order(rng: np.random.Generator) -> None:
    """Made before or after others came: the same, to the last bit."""
    features = rng.standard_normal((3000, 6)) @ rng.standard_normal((6, 6))
    early, late = Units(900, features[:900], False), Units(900, features[:900], False)
    early.blocks(features[:900])
    for stop in (901, 1500, 3000):
        early.add(stop - early.size, features[:stop])
    late.add(2100, features)
    first, second = early.blocks(features), late.blocks(features.copy(order="F"))
    assert len(first) > 900 // 64
    for name in ("units", "members", "lengths", "sizes", "alone", "block_of", "boxes"):
        one, other = getattr(first, name).rows, getattr(second, name).rows
        if name == "units":  # what lies beyond a block's length is void
            void = np.arange(first.capacity) >= first.lengths.rows[:, None]
            one, other = np.where(void, -1, one), np.where(void, -1, other)
        assert np.array_equal(one, other)


def test_members_that_an_offer_withholds_are_not_counted_and_the_blocks_keep_theirs() -> None:
    rng = np.random.default_rng(0)
    counts = rng.integers(1, 4, 500)
    blocks = Blocks(rng.standard_normal((500, 3)), counts, counts > 1)
    withheld = {7: [0], 123: [1, 2], 499: [0]}
    left = counts.copy()
    for unit, members in withheld.items():
        left[unit] -= len(members)
    by_block = np.bincount(blocks.block_of.rows, left, len(blocks))
    assert np.array_equal(blocks.sizes_without(withheld), by_block)
    assert np.array_equal(blocks.sizes_without({}), np.bincount(blocks.block_of.rows, counts, len(blocks)))
