"""Which actions are interchangeable, how many are left, and what an offer lets through: against plain lists."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manyarms._base.typing import Array, Ints
from manyarms.beliefs.actions import sorted_integers
from manyarms.beliefs.actions.all_played import AllPlayed
from manyarms.beliefs.actions.catalogue import ActionCatalogue, Offer
from manyarms.beliefs.actions.rows import equal_rows, row_keys
from manyarms.beliefs.actions.sorted_integers import SortedIntegers, skip
from manyarms.beliefs.actions.units import Units


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


@given(seed=st.integers(0, 10**6), chunk=st.sampled_from([2, 5, 512]))
@settings(max_examples=60)
def test_sorted_integers_are_a_set_with_ranks(seed: int, chunk: int) -> None:
    """Whatever comes and goes, in chunks that split and vanish."""
    rng = np.random.default_rng(seed)
    before = sorted_integers.CHUNK
    sorted_integers.CHUNK = chunk
    try:
        plain = set(rng.integers(60, size=rng.integers(60)).tolist())
        ours = SortedIntegers(sorted(plain))
        for value in rng.integers(60, size=150).tolist():
            (ours.remove if value in plain else ours.add)(value)
            plain ^= {value}
            free = [i for i in range(80) if i not in plain]
            rank, number = int(rng.integers(len(free))), int(rng.integers(70))
            assert ours.skip(rank) == free[rank]
            assert ours.below(number) == sum(i < number for i in plain)
            assert len(ours) == len(plain)
    finally:
        sorted_integers.CHUNK = before


def labelled(rows: Array) -> Ints | None:
    keys = row_keys(rows)
    return equal_rows(rows, keys, np.argsort(keys, kind="stable"))


@given(seed=st.integers(0, 10**6), actions=st.integers(1, 30), width=st.integers(1, 3))
def test_equal_rows_get_one_label(seed: int, actions: int, width: int) -> None:
    rows = np.random.default_rng(seed).integers(-1, 2, (actions, width)).astype(float)
    labels = labelled(rows)
    names: dict[tuple[float, ...], int] = {}
    wanted = [names.setdefault(tuple(row), len(names)) for row in rows.tolist()]
    if len(names) == actions:
        assert labels is None
    else:
        assert labels is not None and labels.tolist() == wanted


def test_rows_that_differ_less_than_their_numbers_do_are_told_apart() -> None:
    """The number made of a row rounds; rows that share one are compared in full."""
    rows = np.array([[1.0, 1e-30], [1.0, 2e-30], [1.0, 1e-30], [2.0, 0.0]])
    labels = labelled(rows)
    assert labels is not None and labels.tolist() == [0, 1, 0, 2]
    assert labelled(rows[[0, 1, 3]]) is None


@given(seed=st.integers(0, 10**6), kind=st.sampled_from(KINDS), actions=st.integers(1, 25))
def test_ranks_and_members_are_inverse(seed: int, kind: str, actions: int) -> None:
    rng = np.random.default_rng(seed)
    features = features_of(kind, actions, rng)
    units = Units(actions, features, distinct=False)
    gone = rng.choice(actions, size=rng.integers(actions + 1), replace=False)
    units.take_all(gone)
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
    """Plays (late ones, too), retirements, reinstatements and additions in any order, then every kind of filter."""
    rng = np.random.default_rng(seed)
    features = features_of("alike" if kind == "own covariance" else kind, 40, rng)
    size = int(rng.integers(1, 12))
    catalogue = ActionCatalogue(size, None if features is None else features[:size], distinct=kind == "own covariance")
    played: list[int] = []
    retired: list[int] = []
    for _ in range(16):
        alive = [a for a in range(size) if a not in retired]
        what = rng.integers(5)
        if what == 0:
            action = int(rng.integers(size))
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
        elif what == 3 and retired:
            back = rng.permutation(retired)[: int(rng.integers(1, 3))]
            catalogue.reinstate(catalogue.check_retired("actions", back))
            retired = [a for a in retired if a not in back]
        elif what == 4:
            some = rng.permutation(size)[: int(rng.integers(1, 4))]
            slots, first = catalogue.play_all(some)
            assert first.tolist() == [a for a in some.tolist() if a not in played]
            played += first.tolist()
            assert [played[slot] for slot in slots.tolist()] == some.tolist()
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
            with pytest.raises(ValueError, match=f"^{next(iter(options))}: "):  # the argument that came is named
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
    units.add(5_000, None)
    assert len(units.counts) == 1 and units.counts[0] == 1_004_999
    assert units.member(0, 1_004_998) == 1_004_999
    assert units.rank(1_004_999, 0) == 1_004_998


@pytest.mark.parametrize("taken", [False, True])
def test_a_new_action_joins_the_unit_with_its_row(taken: bool) -> None:
    """Founding units and later ones, of one member or several, gone or not; -0.0 is 0.0."""
    rows = np.array([[1.0, 0.0], [2.0, 1.0], [3.0, 1.0], [1.0, -0.0], [3.0, 1.0], [5.0, 5.0], [3.0, 1.0], [5.0, 5.0]])
    units = Units(3, rows[:3], distinct=False)
    if taken:
        units.take(2)
    for size in range(4, 9):
        units.add(1, rows[:size])
    assert units.unit(np.arange(8)).tolist() == [0, 1, 2, 0, 2, 3, 2, 3]
    assert units.counts.tolist() == [2, 1, 2 if taken else 3, 2]
    assert [units.member(2, rank) for rank in range(int(units.counts[2]))] == ([4, 6] if taken else [2, 4, 6])
    if taken:
        units.give_back(2)
        assert [units.member(2, rank) for rank in range(3)] == [2, 4, 6]


def test_a_lone_action_of_a_common_prior_that_is_gone_when_others_come() -> None:
    units = Units(1, None, distinct=False)
    units.take(0)
    units.add(2, None)
    assert [units.member(0, rank) for rank in range(2)] == [1, 2]
    units.give_back(0)
    assert units.rank(2, 0) == 2


def test_a_catalogue_in_which_everybody_has_a_slot() -> None:
    catalogue = AllPlayed(6)
    catalogue.retire(catalogue.check("actions", [4, 1], unique=True))
    assert sorted(offered(catalogue.offer())) == [0, 2, 3, 5]
    assert catalogue.offer().place_of(1) is None and catalogue.offer().place_of(2) == (True, 2)
    assert sorted(offered(catalogue.offer(exclude=[0, 1]))) == [2, 3, 5]
    catalogue.reinstate(catalogue.check_retired("actions", [4]))
    assert sorted(offered(catalogue.offer())) == [0, 2, 3, 4, 5]
    assert sorted(offered(catalogue.offer(candidates=[5, 4]))) == [4, 5]
    assert catalogue.alive == 5 and catalogue.offer().fresh == 0
    assert not catalogue.slot_of  # no table of a million slots where a slot is an id
