"""Which actions are interchangeable, how many are left, and what an offer lets through: against plain lists."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import manyarms.beliefs.actions.units as module
from manyarms._base.typing import Array
from manyarms.beliefs.actions.catalogue import Catalogue, Offer
from manyarms.beliefs.actions.units import Units, _equal_rows, skip


def features_of(kind: str, actions: int, rng: np.random.Generator) -> Array | None:
    if kind == "alike":
        return None
    if kind == "one-hot":
        return np.eye(3)[rng.integers(3, size=actions)]
    if kind == "some equal":
        return np.round(rng.standard_normal((actions, 2)))
    return rng.standard_normal((actions, 2))


KINDS = ("alike", "one-hot", "some equal", "distinct")


@given(taken=st.sets(st.integers(0, 30)), rank=st.integers(0, 30))
def test_skipping(taken: set[int], rank: int) -> None:
    free = [i for i in range(100) if i not in taken]
    assert skip(sorted(taken), rank) == free[rank]


@given(seed=st.integers(0, 10**6), actions=st.integers(1, 30), width=st.integers(1, 3))
def test_equal_rows_get_one_label(seed: int, actions: int, width: int) -> None:
    rows = np.random.default_rng(seed).integers(-1, 2, (actions, width)).astype(float)
    labels = _equal_rows(rows)
    names: dict[tuple[float, ...], int] = {}
    wanted = [names.setdefault(tuple(row), len(names)) for row in rows.tolist()]
    if len(names) == actions:
        assert labels is None
    else:
        assert labels is not None and labels.tolist() == wanted


def test_rows_that_differ_less_than_their_numbers_do_are_told_apart() -> None:
    """The number made of a row rounds; rows that share one are compared in full."""
    rows = np.array([[1.0, 1e-30], [1.0, 2e-30], [1.0, 1e-30], [2.0, 0.0]])
    labels = _equal_rows(rows)
    assert labels is not None and labels.tolist() == [0, 1, 0, 2]
    assert _equal_rows(rows[[0, 1, 3]]) is None


@given(seed=st.integers(0, 10**6), kind=st.sampled_from(KINDS), actions=st.integers(1, 25))
def test_ranks_and_members_are_inverse(seed: int, kind: str, actions: int) -> None:
    rng = np.random.default_rng(seed)
    features = features_of(kind, actions, rng)
    units = Units(actions, features, distinct=False)
    gone = rng.choice(actions, size=rng.integers(actions + 1), replace=False)
    for action in gone.tolist():
        units.take(action)
    left = np.setdiff1d(np.arange(actions), gone)
    assert units.counts.sum() == len(left)
    for action in left.tolist():
        unit = int(units.unit(np.array([action]))[0])
        mates = [b for b in left.tolist() if features is None or (features[b] == features[action]).all()]
        assert units.counts[unit] == len(mates)
        assert units.rank(action, unit) == mates.index(action)
        assert [units.member(unit, rank) for rank in range(len(mates))] == mates
        if features is not None:
            assert (features[units.represent[unit]] == features[action]).all()


def offered(offer: Offer) -> list[int]:
    """Everything in an offer, written out."""
    slots = np.arange(len(offer.ids_of_slots()))
    if offer.slots is None:
        slots = np.setdiff1d(slots, offer.barred)
    ids: list[int] = offer.ids_of_slots()[slots].tolist()
    for place, count in enumerate(offer.counts.tolist()):
        members = [offer.member(place, rank) for rank in range(count)]
        assert members == sorted(members)
        ids += members
    return ids


@given(seed=st.integers(0, 10**6), kind=st.sampled_from((*KINDS, "own covariance")))
@settings(max_examples=150)
def test_offers_hold_what_they_should_through_any_life_of_a_catalogue(seed: int, kind: str) -> None:
    """Plays, retirements and additions (with and without a regrouping) in any order, then every kind of filter."""
    rng = np.random.default_rng(seed)
    late = module.LATECOMERS
    module.LATECOMERS = 3
    try:
        _live_and_check(rng, kind)
    finally:
        module.LATECOMERS = late


def _live_and_check(rng: np.random.Generator, kind: str) -> None:
    features = features_of("alike" if kind == "own covariance" else kind, 40, rng)
    size = int(rng.integers(1, 12))
    catalogue = Catalogue(size, None if features is None else features[:size], distinct=kind == "own covariance")
    played: list[int] = []
    retired: list[int] = []
    for _ in range(12):
        alive = [a for a in range(size) if a not in retired]
        what = rng.integers(3)
        if what == 0 and alive:
            action = int(rng.choice(alive))
            _, new = catalogue.play(action)
            assert new == (action not in played)
            played += [action] if new else []
        elif what == 1 and len(alive) > 1:
            action = int(rng.choice(alive))
            catalogue.retire(np.array([action]))
            retired.append(action)
        elif what == 2:
            number = int(rng.integers(1, 4))
            ids = catalogue.add(number, None if features is None else features[: size + number])
            assert ids.tolist() == list(range(size, size + number))
            size += number
    alive = [a for a in range(size) if a not in retired]
    assert catalogue.alive == len(alive)
    assert sorted(offered(catalogue.offer())) == alive
    some = rng.choice(alive, size=int(rng.integers(1, len(alive) + 1)), replace=False)
    without = rng.choice(size, size=int(rng.integers(0, size + 1)))
    left = [a for a in alive if a not in without]
    few = [a for a in some.tolist() if a not in without]
    for wanted, options in (
        (sorted(some.tolist()), {"candidates": some}),
        (left, {"exclude": without}),
        (sorted(few), {"candidates": some, "exclude": without}),
    ):
        if not wanted:
            with pytest.raises(ValueError, match="empty set"):
                catalogue.offer(**options)
            continue
        offer = catalogue.offer(**options)
        assert sorted(offered(offer)) == wanted
        assert offer.total == len(wanted)
        assert offer.fresh == sum(a not in played for a in wanted)
        for action in range(size):
            place = offer.place_of(action)
            assert (place is not None) == (action in wanted)
            if place is not None and place[0]:
                assert offer.ids_of_slots()[place[1]] == action
            elif place is not None:
                assert action in [offer.member(place[1], rank) for rank in range(int(offer.counts[place[1]]))]
        places = np.flatnonzero(offer.counts > 0)
        members, owners = offer.lowest(places, 2)
        for unit in places.tolist():
            everyone = [offer.member(unit, rank) for rank in range(int(offer.counts[unit]))]
            assert members[owners == unit].tolist() == everyone[:2]


def test_new_actions_of_a_common_prior_join_the_others() -> None:
    """They are all alike: however many are added, there is one unit, and one draw finds the best of them."""
    units = Units(1_000_000, None, distinct=False)
    units.take(3)
    assert units.add(5_000)
    assert len(units.counts) == 1 and units.counts[0] == 1_004_999
    assert units.member(0, 1_004_998) == 1_004_999
    assert units.rank(1_004_999, 0) == 1_004_998
