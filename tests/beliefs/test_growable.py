"""Tables that grow: what is in them, and that one whose rows stay is never copied at once."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from manyarms.beliefs.growable import GrowableArray, SteadyArray


@pytest.mark.parametrize("by_column", [False, True])
@pytest.mark.parametrize("kind", [GrowableArray, SteadyArray])
def test_a_table_holds_what_was_appended(kind: type[GrowableArray], by_column: bool, rng: np.random.Generator) -> None:
    table = kind((3,), by_column=by_column)
    plain = np.empty((0, 3))
    for number in [0, 1, 40, *rng.integers(0, 9, size=150).tolist(), 700, 1, 1]:
        rows = rng.standard_normal((number, 3))
        if number == 1:
            table.append(rows[0])
        else:
            table.extend(rows)
        plain = np.concatenate([plain, rows])
        assert len(table) == len(plain) and (table.rows == plain).all()
    twin = copy.deepcopy(table)
    for one in (twin, table):
        for _ in range(300):
            one.append(np.full(3, float(len(one))))
    assert (twin.rows == table.rows).all() and not np.shares_memory(twin.rows, table.rows)


@pytest.mark.parametrize("by_column", [False, True])
def test_no_append_copies_more_than_a_few_rows(by_column: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Through several moves to larger room, each append takes some tens of rows along."""
    table = SteadyArray((2,), by_column=by_column)
    table.extend(np.zeros((5_000, 2)))
    moved: list[int] = []
    move = SteadyArray._move

    def counted(self: SteadyArray, stop: int) -> None:
        moved.append(stop - self._moved)
        move(self, stop)

    monkeypatch.setattr(SteadyArray, "_move", counted)
    monkeypatch.setattr(GrowableArray, "_make_room", None)  # which would copy everything
    rooms = set()
    for i in range(30_000):
        table.append(float(i))
        rooms.add(table.nbytes)
    assert max(moved) < 64 and len(rooms) >= 4
    assert (table.rows[5_000:, 0] == np.arange(30_000)).all()
