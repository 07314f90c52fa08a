"""Decisions and rewards that are written together are what they would have been one by one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manyarms.errors import ManyArmsError
from manyarms.live import log
from manyarms.live.new_entries import NewDecision, NewReward
from manyarms.live.records import DecisionRecord, Question
from manyarms.live.stores.database import Database, Together
from manyarms.live.stores.opening import prepare
from manyarms.live.stores.sqlite import SQLite

IDS = ("a", "b", "c", "d")


def decision(id: str, unit: str | None, version: int, x: float) -> NewDecision:
    asked = Question(np.array([x, 1.0]))
    record = DecisionRecord(id, unit, "agent", version, 1, asked, [3, 5], asked.digest(unit), details={"catalogue": 0})
    return NewDecision(record)


decisions = st.builds(
    decision, st.sampled_from(IDS), st.sampled_from((None, "u", "v")), st.integers(0, 2), st.sampled_from((0.0, 1.0))
)
rewards = st.builds(
    NewReward, st.sampled_from((*IDS, "nobody")), st.sampled_from((None, 3, 5, 7)), st.sampled_from(("", "late")),
    st.sampled_from((0.0, 1.0)),
)  # fmt: skip


def a_store() -> SQLite:
    found = SQLite.in_memory(clock=lambda: 1_000.0)
    prepare(found)
    return found


def told(result: Any) -> object:
    return (type(result), str(result)) if isinstance(result, ManyArmsError) else repr(result)


def tables(database: Database) -> list[object]:
    names = ("decisions", "rewards", "counter")
    return [database.read(f"SELECT * FROM {name} ORDER BY 1") for name in names]


def one_by_one(database: Database, pieces: list[Together]) -> list[object]:
    found = []
    for piece in pieces:
        try:
            found.append(told(database.do(piece)))
        except ManyArmsError as refusal:
            found.append(told(refusal))
    return found


@settings(deadline=None, max_examples=60)
@given(batches=st.lists(st.tuples(st.lists(decisions, max_size=6), st.lists(rewards, max_size=6)), max_size=4))
def test_together_as_one_by_one(batches: list[tuple[list[NewDecision], list[NewReward]]]) -> None:
    with a_store() as together, a_store() as alone:
        for some, others in batches:
            pieces = [*some, *others]
            if pieces:
                assert [told(one) for one in together.write(pieces)] == one_by_one(alone, pieces)
        assert tables(together) == tables(alone)


def test_others_stay_between_those_before_and_after_them(tmp_path: Path) -> None:
    """An operation is not overtaken: what comes before it has a smaller position, what comes after it a larger one."""
    with a_store() as database:
        before, after = decision("a", None, 0, 0.0), decision("b", None, 0, 0.0)
        results = database.write([before, log.add_operation("roll_back", {}), after, NewReward("a", None, "", 1.0)])
        assert [results[0].position, results[1], results[2].position, results[3].position] == [1, 2, 3, 4]


def test_more_than_one_statement_has_parameters_for() -> None:
    with a_store() as database:
        many = [decision(f"e{i}", f"unit {i % 700}", 0, float(i)) for i in range(1_500)]
        assert [one.position for one in database.write(many)] == list(range(1, 1_501))
        repeated = [one.details.get("repeated") for one in database.write(many)]
        assert repeated == [None] * 700 + ["draw"] * 800
        found = database.write([NewReward(f"e{i}", 5, "", 1.0) for i in range(1_500)])
        assert [one.decision for one in found] == list(range(1, 1_501))


@pytest.mark.slow
def test_on_postgresql(postgres: Any) -> None:
    from manyarms.live.stores.opening import open_database

    with open_database(postgres.new_database()) as database:
        many = [decision(f"e{i}", f"unit {i % 70}", i % 2, float(i)) for i in range(150)]
        assert [one.position for one in database.write(many)] == list(range(1, 151))
        again = database.write(many)
        assert [one.details.get("repeated") for one in again[:70]] == [None] * 70
        # unit i % 70 comes again with i + 70, of the same version, and is drawn for again
        assert [one.details.get("repeated") for one in again[70:]] == ["draw"] * 80
        stored, refused = database.write([NewReward("e1", None, "", 1.0), NewReward("no", None, "", 1.0)])
        assert stored.decision == 2 and isinstance(refused, ManyArmsError)
