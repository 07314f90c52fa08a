"""One item ahead: never more, errors in their place, and no thread that stays."""

from __future__ import annotations

import threading
import time

import pytest

from manyarms.learning.prefetching import Ahead


def no_reader() -> bool:
    return not any(thread.name == "manyarms-windows" for thread in threading.enumerate())


def test_never_more_than_one_item_ahead() -> None:
    made = []

    def numbers():
        for number in range(6):
            made.append(number)
            yield number

    ahead = Ahead(numbers())
    for number in ahead:
        time.sleep(0.01)
        assert len(made) <= number + 2
    assert made == list(range(6))
    assert list(ahead) == []


def test_errors_come_in_their_place_and_the_thread_ends() -> None:
    def numbers():
        yield 1
        raise ValueError("broken")

    ahead = Ahead(numbers())
    assert next(ahead) == 1
    with pytest.raises(ValueError, match="broken"):
        next(ahead)
    assert no_reader() and list(ahead) == []


def test_what_is_closed_early_ends_its_thread() -> None:
    ahead = Ahead(iter(range(100)))
    next(ahead)
    ahead.close()
    ahead.close()
    assert no_reader()
    Ahead(iter(range(3))).close()  # never begun
