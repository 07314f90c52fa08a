"""The best of many draws at once: what is kept, whom noise is drawn for, which member of a unit it is; each by its plain law."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from brute_force import same_law
from manyarms._base.typing import Array, Ints
from manyarms.beliefs.actions import batch_search, blocks, group_draws
from manyarms.beliefs.actions.best_of_each import BestOfEach
from manyarms.beliefs.actions.blocks import Blocks
from manyarms.beliefs.actions.catalogue import ActionCatalogue
from manyarms.beliefs.actions.group_draws import draw_group
from manyarms.beliefs.actions.members import actions_at
from manyarms.beliefs.actions.sorted_integers import SortedIntegers, free, skip

DRAWS = 6000
C = np.array([0.9, -0.5, 0.3])  # coefficients of the features
SD = 0.6

COUNTS = {
    "one each": np.ones(11, dtype=np.int64),
    "some gone": np.array([1, 0, 1, 1, 0, 0, 1, 1, 0, 1, 1]),
    "many of each": np.array([3, 1, 0, 25, 2, 1, 7, 0, 1, 4, 2]),
    "two of some": np.array([2, 0, 2, 0, 0, 0, 0, 2, 0, 0, 0]),
    "one left": np.array([0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0]),
}


@given(seed=st.integers(0, 10**6), k=st.integers(1, 5))
def test_what_is_kept_is_what_sorting_everything_keeps(seed: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    best, seen = BestOfEach(4, k), [list[tuple[float, int]]() for _ in range(4)]
    for start in range(0, 60, 12):
        rows, scores = rng.integers(4, size=12), rng.standard_normal(12)
        best.add(rows, scores, np.arange(start, start + 12))
        for row, score, place in zip(rows.tolist(), scores.tolist(), range(start, start + 12), strict=True):
            seen[row].append((score, place))
        for row, found in enumerate(seen):
            found.sort(reverse=True)
            number = min(k, len(found))
            assert best.scores[row, :number].tolist() == [score for score, _ in found[:number]]
            assert best.places[row, :number].tolist() == [place for _, place in found[:number]]
            assert best.complete[row] == (len(found) >= k)


Find = Callable[[BestOfEach, Array, Ints, np.random.Generator], None]  # of units with these features and counts


def by_one_group(best: BestOfEach, features: Array, counts: Ints, rng: np.random.Generator) -> None:
    n = len(best.scores)
    mean = np.broadcast_to(features @ C, (n, len(counts))).copy()
    draw_group(best, mean, np.full((n, 1), SD), counts, ~np.arange(len(counts)), rng)


def by_tiles(best: BestOfEach, features: Array, counts: Ints, rng: np.random.Generator) -> None:
    """Tiles of four, with an sd for each unit that happens to be the same."""
    n = len(best.scores)

    def moments(some: slice) -> tuple[Array, Array]:
        mean = np.broadcast_to(features[some] @ C, (n, len(counts[some]))).copy()
        return mean, np.full(mean.shape, SD)

    batch_search.tiles(best, moments, counts, rng)


def by_blocks(best: BestOfEach, features: Array, counts: Ints, rng: np.random.Generator) -> None:
    n, built = len(best.scores), Blocks(features, counts, counts > 1)
    batch_search.open_blocks(
        best, built, np.tile(C, (n, 1)), np.full(n, SD), counts, built.sizes.rows, lambda units: features[units], rng
    )


def every_score(mean: Array, sd: Array, counts: Ints, k: int, rng: np.random.Generator) -> tuple[Array, Ints]:
    """The plain way: a score for every member of every unit, DRAWS times; (DRAWS, k) both."""
    owners = np.repeat(np.arange(len(counts)), counts)
    scores = mean[owners] + sd[owners] * rng.standard_normal((DRAWS, len(owners)))
    order = np.argsort(-scores, axis=1)[:, :k]
    return np.take_along_axis(scores, order, axis=1), owners[order]


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK", 3)
    monkeypatch.setattr(batch_search, "TILE", 4)
    monkeypatch.setattr(batch_search, "FIRST", 1)
    monkeypatch.setattr(batch_search, "LOOSE", 0.5)
    monkeypatch.setattr(group_draws, "LEADERS", 2)


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("counts", COUNTS.values(), ids=COUNTS.keys())
@pytest.mark.parametrize("by", [by_one_group, by_tiles, by_blocks])
@pytest.mark.parametrize("k", [1, 4])
def test_the_best_have_the_law_of_scoring_everyone(by: Find, counts: Ints, k: int, rng: np.random.Generator) -> None:
    k = min(k, int(counts.sum()))
    features = np.random.default_rng(5).uniform(-1, 1, (len(counts), 3))
    best = BestOfEach(DRAWS, k)
    by(best, features, counts, rng)
    assert best.complete.all()
    plain, plain_owners = every_score(features @ C, np.full(len(counts), SD), counts, k, rng)
    for unit, count in enumerate(counts.tolist()):
        assert ((~best.places == unit).sum(axis=1) <= count).all()  # nobody comes twice
    assert same_law(~best.places, plain_owners) > 1e-6
    for j in range(k):
        assert stats.ks_2samp(best.scores[:, j], plain[:, j]).pvalue > 1e-6


@pytest.mark.parametrize("leaders", [1, 3, 100])
@pytest.mark.parametrize("k", [1, 3])
def test_actions_with_spreads_of_their_own(
    leaders: int, k: int, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    """Some certain, some not, one that is out: as if each had drawn."""
    monkeypatch.setattr(group_draws, "LEADERS", leaders)
    mean = np.array([0.0, 0.4, -0.3, 0.8, 0.1, 0.9, -2.0, 0.2, 0.5, -0.5, 0.3, 0.0])
    sd = np.array([1.0, 0.3, 1.5, 0.01, 0.7, 0.2, 3.0, 0.5, 0.0, 1.0, 0.6, 2.0])
    shown = mean.copy()
    shown[9] = -np.inf
    best = BestOfEach(DRAWS, k)
    draw_group(best, np.tile(shown, (DRAWS, 1)), np.tile(sd, (DRAWS, 1)), None, np.arange(12), rng)
    plain, owners = every_score(mean, sd, (np.arange(12) != 9).astype(np.int64), k, rng)
    assert same_law(best.places, owners) > 1e-6
    for j in range(k):
        assert stats.ks_2samp(best.scores[:, j], plain[:, j]).pvalue > 1e-6


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("by", [by_one_group, by_tiles, by_blocks])
@pytest.mark.parametrize("k", [1, 2])
def test_what_was_found_before_hides_only_what_lies_below_it(by: Find, k: int, rng: np.random.Generator) -> None:
    counts, floor = COUNTS["many of each"], 2.1
    features = np.random.default_rng(5).uniform(-1, 1, (len(counts), 3))
    best = BestOfEach(DRAWS, k)
    best.add(np.repeat(np.arange(DRAWS), k), np.full(DRAWS * k, floor), np.zeros(DRAWS * k, dtype=np.int64))
    by(best, features, counts, rng)
    plain, owners = every_score(features @ C, np.full(len(counts), SD), counts, k, rng)
    owners[plain <= floor] = -1
    assert 0.1 < (owners[:, 0] < 0).mean() < 0.9  # the floor matters
    assert same_law(np.where(best.places < 0, ~best.places, -1), owners) > 1e-6


def test_members_are_chosen_and_blocks_scanned_with_one_law(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    """Blocks of 64 among 2,000 units, some gone: by choosing members, by scanning, and by drawing everyone."""
    monkeypatch.setattr(blocks, "BLOCK", 64)
    features = rng.uniform(-1, 1, (2000, 3))
    counts = (rng.random(2000) < 0.8).astype(np.int64)
    mean = features @ C
    plain, owners = [], []
    for _ in range(DRAWS // 500):
        scores = np.where(counts > 0, mean + SD * rng.standard_normal((500, 2000)), -np.inf)
        owners.append(scores.argmax(axis=1))
        plain.append(scores.max(axis=1))
    cuts = np.quantile(mean[np.concatenate(owners)], np.linspace(0, 1, 12)[1:-1])
    scanned: dict[float, int] = {}
    original = batch_search._scan

    def counting(*arguments: object) -> None:
        scanned[batch_search.FEW_MEMBERS] += sum(
            len(one.rows) for one in arguments if isinstance(one, batch_search.Pairs)
        )
        original(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(batch_search, "_scan", counting)
    for few, loose in ((64, 1e9), (0, 1e9), (1e9, 1e9), (64, 4), (64, 0)):
        monkeypatch.setattr(batch_search, "FEW_MEMBERS", few)
        monkeypatch.setattr(batch_search, "LOOSE", loose)
        scanned[few] = 0
        best = BestOfEach(DRAWS, 1)
        by_blocks(best, features, counts, rng)
        assert (counts[~best.places] == 1).all()
        assert stats.ks_2samp(best.scores[:, 0], np.concatenate(plain)).pvalue > 1e-6
        cells = (np.digitize(mean[~best.places[:, 0]], cuts), np.digitize(mean[np.concatenate(owners)], cuts))
        assert same_law(cells[0], cells[1]) > 1e-6
    assert 2 * scanned[64] < scanned[0]  # they do differ


# ---- members of units -------------------------------------------------------------------------------------------------


@given(st.sets(st.integers(0, 60), max_size=40), st.lists(st.integers(0, 40), min_size=1, max_size=9))
def test_free_integers_of_many_ranks(taken: set[int], ranks: list[int]) -> None:
    gone = sorted(taken)
    held = SortedIntegers(gone)
    assert held.values().tolist() == gone
    wanted = [skip(gone, rank) for rank in ranks]
    assert free(held.values(), np.array(ranks)).tolist() == wanted == free(gone, np.array(ranks)).tolist()


def catalogue_of(kinds: Ints) -> ActionCatalogue:
    """Actions whose features say which kind they are, two of them played, one retired, and some that came later."""
    features = np.eye(4)[kinds]
    catalogue = ActionCatalogue(9, features[:9], distinct=False)
    catalogue.add(len(kinds) - 9, features)
    catalogue.play_all(np.array([1, 7]))
    catalogue.retire(np.array([4]))
    return catalogue


@pytest.mark.parametrize("filters", [{}, {"exclude": [0, 10]}, {"candidates": [11, 0, 3, 7, 2, 9, 8]}])
def test_members_are_uniform_and_none_comes_twice(filters: dict[str, list[int]], rng: np.random.Generator) -> None:
    catalogue = catalogue_of(np.array([0, 0, 1, 0, 2, 0, 1, 1, 2, 0, 0, 1, 3, 0]))
    offer = catalogue.offer(**filters)
    free_units = np.flatnonzero(offer.counts >= 3)[:1]
    assert len(free_units)
    unit, n = int(free_units[0]), 4000
    left = sorted(offer.member(unit, rank) for rank in range(int(offer.counts[unit])))
    places = np.full((n, 4), ~unit)
    places[:, 1] = 0
    ids = actions_at(offer, places, rng)
    assert (ids[:, 1] == offer.ids_of_slots()[0]).all()
    drawn = ids[:, [0, 2, 3]]
    assert set(np.unique(drawn).tolist()) == set(left)
    assert (np.diff(np.sort(drawn, axis=1), axis=1) > 0).all()
    plain = np.array(left)[np.argsort(rng.random((n, len(left))), axis=1)[:, :3]]
    assert same_law(drawn, plain) > 1e-6


@given(seed=st.integers(0, 10**6))
def test_every_rank_is_the_member_that_it_is_alone(seed: int) -> None:
    rng = np.random.default_rng(seed)
    units = catalogue_of(rng.integers(4, size=14)).units
    for unit, count in enumerate(units.counts.tolist()):
        ranks = rng.integers(max(count, 1), size=5) if count else np.empty(0, dtype=np.int64)
        assert units.members(unit, ranks).tolist() == [units.member(unit, rank) for rank in ranks.tolist()]
