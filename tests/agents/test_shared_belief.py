"""A belief that threads share, step by step: who may change what while somebody reads it."""

from __future__ import annotations

import copy
import gc
import pickle
import threading
from itertools import pairwise
from typing import Any, cast

import pytest

from manyarms.agents.shared_belief import SharedBelief
from manyarms.beliefs import Belief
from manyarms.errors import InvalidInput


class Tally:
    """Stands for a belief: it notes what it has learned."""

    taken = False

    def __init__(self) -> None:
        self.seen: list[object] = []


def note(tally: Tally, what: Any) -> int:
    tally.seen.append(copy.copy(what))
    return len(tally.seen)


def fail_half_way(tally: Tally, what: Any) -> None:
    tally.seen.append(what)
    raise RuntimeError(what)


def shared() -> SharedBelief:
    return SharedBelief(cast(Belief, Tally()))


def seen(belief: Any) -> list[object]:
    return list(cast(Tally, belief).seen)


def learn(one: SharedBelief, what: object) -> int:
    with one.learning:
        return one.change(note, what)


def test_one_thread_changes_in_place() -> None:
    one = shared()
    before = one.belief
    for n in range(5):
        held = one.enter()
        assert held.version == n
        one.leave(held)
        assert learn(one, n) == n + 1
    assert one.belief is before and seen(before) == [0, 1, 2, 3, 4]


def test_what_is_read_does_not_change() -> None:
    one = shared()
    learn(one, "a")
    held = one.enter()
    for n in range(4):
        learn(one, n)
        assert seen(held.belief) == ["a"] and held.version == 1
    assert seen(one.belief) == ["a", 0, 1, 2, 3] and one.enter().version == 5


def test_twins_take_turns_and_see_the_same() -> None:
    one = shared()
    held = one.enter()
    learn(one, 0)  # they have met
    one.leave(held)
    met = []
    for n in range(1, 9):
        learn(one, n)
        met.append(one.belief)
        assert seen(one.belief) == list(range(n + 1))
    assert len({id(belief) for belief in met}) == 2 and held.belief in met  # nothing was copied any more
    assert all(a is not b for a, b in pairwise(met))


def test_a_twin_that_is_read_for_long_is_left_to_its_readers() -> None:
    one = shared()
    first = one.enter()
    learn(one, 0)
    learn(one, 1)  # the twin is what `first` reads: a copy takes its place
    second = one.enter()
    learn(one, 2)
    learn(one, 3)
    assert (seen(first.belief), seen(second.belief), seen(one.belief)) == ([], [0, 1], [0, 1, 2, 3])
    one.leave(first)
    one.leave(second)
    learn(one, 4)
    assert seen(one.belief) == [0, 1, 2, 3, 4]


def test_what_a_twin_learns_later_is_what_was_given() -> None:
    one = shared()
    held = one.enter()
    mine = [1]
    learn(one, mine)
    one.leave(held)
    mine.append(2)  # the caller's list changes before the twin has learned it
    learn(one, [3])
    assert seen(one.belief) == [[1], [3]]
    learn(one, [4])
    assert seen(one.belief) == [[1], [3], [4]]


@pytest.mark.parametrize("meet", [False, True])
def test_a_change_that_fails_half_way_on_a_twin_is_not_published(meet: bool) -> None:
    one = shared()
    learn(one, "a")
    held = one.enter() if meet else one.frozen().enter()
    frozen = one.frozen()
    with one.learning, pytest.raises(RuntimeError):
        one.change(fail_half_way, "b")
    assert seen(one.belief) == seen(frozen.belief) == ["a"]
    learn(one, "c")
    learn(one, "d")
    assert seen(one.belief) == ["a", "c", "d"] and one.enter().version == 3
    assert seen(held.belief) == ["a"]


def test_a_belief_that_is_half_changed_in_place_is_not_given_out() -> None:
    one = shared()
    learn(one, "a")
    with one.learning, pytest.raises(RuntimeError):
        one.change(fail_half_way, "b")
    for ask in (one.enter, one.frozen, lambda: learn(one, "c"), lambda: copy.deepcopy(one), lambda: pickle.dumps(one)):
        with pytest.raises(InvalidInput, match=r"broke off half way .RuntimeError."):
            ask()
    found: list[str] = []

    def read() -> None:  # from another thread, too, and without waiting
        with pytest.raises(InvalidInput):
            one.enter()
        found.append("refused")

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    reader.join(60)
    assert found == ["refused"]


def test_an_error_of_our_own_breaks_a_change_off_like_any_other() -> None:
    """What is refused is refused before the change: an InvalidInput from within may come when half of it is done."""
    one = shared()

    def fail(tally: Tally) -> None:
        tally.seen.append("half")
        raise InvalidInput("links", "nan", "numbers")

    frozen = one.frozen()
    with one.learning, pytest.raises(InvalidInput, match="links"):
        one.change(fail)  # on a copy
    assert one.belief is frozen.belief and seen(one.belief) == []
    del frozen
    gc.collect()
    with one.learning, pytest.raises(InvalidInput, match="links"):
        one.change(fail)  # in place
    with pytest.raises(InvalidInput, match=r"broke off half way .InvalidInput."):
        one.enter()


def test_a_frozen_belief_stays_as_it_is_and_lets_go() -> None:
    one = shared()
    learn(one, 0)
    frozen, same = one.frozen(), one.frozen()
    assert frozen.belief is same.belief is one.belief
    learn(one, 1)
    later = one.belief
    assert seen(frozen.belief) == [0] and frozen.enter().version == 1
    learn(one, 2)
    assert one.belief is later  # in place again: only the first change was made on a copy
    last = one.frozen()
    del last, frozen, same
    gc.collect()
    learn(one, 3)
    assert one.belief is later and seen(later) == [0, 1, 2, 3]


def test_copies_are_apart_and_keep_the_version() -> None:
    one = shared()
    learn(one, 0)
    for other in (copy.deepcopy(one), pickle.loads(pickle.dumps(one)), copy.deepcopy(one.frozen())):
        assert seen(other.belief) == [0] and other.enter().version == 1 and other.belief is not one.belief
    frozen = pickle.loads(pickle.dumps(one.frozen()))
    learn(one, 1)
    assert seen(frozen.belief) == [0] and frozen.enter().version == 1


def test_a_reader_waits_for_a_change_in_place_once_and_never_again() -> None:
    one, inside, go = shared(), threading.Event(), threading.Event()

    def slowly(tally: Tally, what: object) -> None:
        tally.seen.append(what)
        inside.set()
        assert go.wait(60)
        tally.seen.append(what)

    def work() -> None:
        with one.learning:
            one.change(slowly, "x")

    def read() -> None:
        held = one.enter()
        found.append((seen(held.belief), held.version))
        one.leave(held)

    found: list[tuple[list[object], int]] = []
    learner, reader = threading.Thread(target=work), threading.Thread(target=read)
    learner.start()
    assert inside.wait(60)
    reader.start()
    while not one._met and reader.is_alive():  # until the reader has found the learner at work
        reader.join(0.001)
    assert found == []
    go.set()
    learner.join(60)
    reader.join(60)
    assert found == [(["x", "x"], 1)]
    inside.clear()
    go.clear()
    learner = threading.Thread(target=work)
    learner.start()
    assert inside.wait(60)
    read()  # beside the learner, which works on a twin
    assert found[1] == (["x", "x"], 1)
    go.set()
    learner.join(60)
    read()
    assert found[2] == (["x", "x", "x", "x"], 2)


@pytest.mark.parametrize("meet", [False, True])
def test_a_change_that_asks_for_what_it_changes_is_refused(meet: bool) -> None:
    """A feature map that calls the agent, or a signal handler that saves it: refused, in place of waiting for itself."""
    one = shared()
    held = one.enter() if meet else None

    def again(tally: Tally) -> None:
        if not meet:
            for ask in (one.enter, one.frozen):
                with pytest.raises(InvalidInput):
                    ask()
        with pytest.raises(InvalidInput):
            learn(one, 1)

    with one.learning:
        one.change(again)
    assert learn(one, 2) == 1
    assert held is None or seen(held.belief) == []
