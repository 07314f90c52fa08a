"""Rows in common are found whatever names them; rows that only look alike are not taken for the same."""

from __future__ import annotations

import numpy as np
import pytest

from manyarms.errors import InvalidInput
from manyarms.logs import LoggedData, row_sketch
from manyarms.logs.data import concatenate
from manyarms.logs.row_sketch import RowSketch, require_other_rows


def a_log(rows, seed, *, discrete=False, **fields):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (rows, 2)).astype(float) if discrete else rng.standard_normal((rows, 3))
    return LoggedData(X, rng.integers(0, 4, rows), rng.integers(0, 2, rows).astype(float), 4, **fields)


def copied(log, index=slice(None)):
    """The same rows as a log of its own, which nothing but contents connects with the other."""
    return LoggedData(log.contexts[index].copy(), log.actions[index], log.rewards[index], log.action_count)


def overlap(log, learned_from):
    return RowSketch.of(log).overlap(RowSketch.of(learned_from))


@pytest.mark.parametrize("discrete", [False, True])
def test_parts_of_one_log_are_told_apart_by_their_places(discrete):
    log = a_log(400, 0, discrete=discrete)
    train, rest = log.split(0.7)
    assert overlap(rest, train) is None
    assert overlap(rest.rows(slice(0, 9)), train) is None
    found = overlap(log, train)
    assert found.certain and found.share == pytest.approx(0.7)
    twice = copied(log, np.tile(np.arange(400), 2))  # rows that come again are told apart by their places, too
    assert overlap(twice.rows(slice(0, 400)), twice.rows(slice(400, 800))) is None
    assert overlap(train.rows(slice(10, 20)), train).share == 1
    assert overlap(log.with_unit_rewards(-1, 3), train.with_unit_rewards(-1, 3)).share == pytest.approx(0.7)
    assert overlap(copied(log), train).kind == "positions"  # the same log, read again


@pytest.mark.parametrize("rows", [60, 1_000, 40_000])
def test_independent_logs_with_few_contexts_are_not_taken_for_the_same(rows):
    assert overlap(a_log(rows, 1, discrete=True), a_log(2 * rows, 2, discrete=True)) is None
    assert overlap(a_log(rows, 1), a_log(rows, 2)) is None


def test_logs_of_copies_of_one_row_are_not_taken_for_the_same():
    def constant(rows):
        return LoggedData(np.ones((rows, 2)), np.zeros(rows, dtype=int), np.ones(rows), 3)

    assert overlap(constant(500), constant(501)) is None


def test_the_same_rows_in_another_log_are_known_by_their_contents():
    log = a_log(3_000, 3)
    found = overlap(copied(log), copied(log, slice(500, 1_000)))
    assert found.certain and found.share == pytest.approx(1 / 6)
    some = overlap(copied(log, slice(0, 700)), copied(log, slice(500, 1_000)))
    assert not some.certain and some.share == pytest.approx(2 / 7)  # it may also be that contexts come again
    order = np.random.default_rng(0).permutation(len(log))
    assert overlap(copied(log, order), copied(log)).certain


def test_event_ids_and_groups_decide_where_both_logs_have_them():
    names = np.array([f"e{i}" for i in range(300)])
    first, other = a_log(200, 4, event_ids=names[:200]), a_log(101, 5, event_ids=names[199:])
    found = overlap(other, first)
    assert found.certain and found.share == pytest.approx(1 / 101)
    assert overlap(a_log(100, 5, event_ids=names[200:]), first) is None
    alike = a_log(200, 4, event_ids=np.char.add("f", names[:200]))
    assert overlap(alike, first) is None  # other events that look the same
    users = np.arange(200) // 4
    assert overlap(a_log(200, 6, groups=users + 49), a_log(200, 7, groups=users)).share == pytest.approx(1 / 50)
    with pytest.raises(
        InvalidInput, match=r"argument: .*other rows.*shares rows .*1.0% of its rows, known by their event ids"
    ):
        require_other_rows("argument", first, other)


def test_sketches_are_small_add_up_and_come_back(monkeypatch):
    monkeypatch.setattr(row_sketch, "SIZE", 256)
    log = a_log(5_000, 8)
    train, rest = log.split(0.5)
    sketch = RowSketch.of(train)
    back = RowSketch.restored(sketch.arrays())
    assert back.rows == 2_500
    assert sum(array.nbytes for array in back.arrays().values()) < 256 * 8 * 3
    share = RowSketch.of(log).overlap(back).share
    assert abs(share - 0.5) < 0.2  # 256 marks: a standard error of 0.03
    assert RowSketch.of(rest).overlap(back) is None
    back.include(RowSketch.of(rest))
    both = RowSketch.of(log).overlap(back)
    assert both.share == 1 and back.rows == 5_000


def test_chunks_do_not_matter():
    log = a_log(70_000, 9)
    joined = concatenate([copied(log, slice(0, 30_000)), copied(log, slice(30_000, None))])
    assert joined.fingerprint == log.fingerprint
    assert joined.origin is None and concatenate(log.chunks(1_000)).origin is log
    streamed = RowSketch()
    for part in log.chunks(7_000):
        streamed.add(copied(part))
    streamed.end_of_log()
    assert streamed.overlap(RowSketch.of(log)).kind == "positions"


def test_the_chance_of_resemblance_is_a_bound():
    """Under exchangeability an alarm has probability 1e-9 at most: none in some hundred logs of very different repetition."""
    rng = np.random.default_rng(0)
    for trial in range(300):
        values, rows = int(10 ** rng.uniform(0.5, 4)), int(10 ** rng.uniform(0.5, 3))
        draw = rng.zipf(1.3, size=(2, rows)) % values if trial % 2 else rng.integers(0, values, (2, rows))
        one, other = (LoggedData(x[:, None].astype(float), np.zeros(rows, int), np.zeros(rows), 2) for x in draw)
        if not np.array_equal(*draw):
            assert overlap(one, other) is None


def test_a_log_joined_from_several_knows_their_rows():
    days = [a_log(300, seed, discrete=True) for seed in (10, 11, 12)]
    joined = concatenate(days[:2])
    train, rest = joined.split(0.5)
    for day in days[:2]:
        assert overlap(day, joined).certain
        assert overlap(copied(day), train).certain  # read again
        assert overlap(day, rest).certain
    assert overlap(days[2], joined) is None and overlap(rest, train) is None
    mine = [positions for fingerprint, positions in train.lineage() if fingerprint == days[1].fingerprint]
    np.testing.assert_array_equal(np.sort(mine[0]), np.sort(train.positions[train.positions >= 300] - 300))


@pytest.mark.parametrize("unit", ["s", "ns"])
def test_times_in_another_unit_are_the_same_times(unit):
    times = np.datetime64("2026-01-01", "s") + np.arange(100).astype("timedelta64[s]")
    log = a_log(100, 13)
    one, other = (
        LoggedData(
            log.contexts[part], log.actions[part], log.rewards[part], 4, timestamps=times[part].astype(f"M8[{u}]")
        )
        for part, u in ((slice(0, 100), "us"), (slice(0, 60), unit))
    )
    assert overlap(one, other).certain


def test_marks_that_some_rows_lack_do_not_decide():
    names = np.array([f"e{i}" for i in range(100)])
    named, plain = a_log(100, 14, event_ids=names), a_log(100, 15)
    sketch = RowSketch.of(named, plain)
    found = RowSketch.of(LoggedData(plain.contexts, plain.actions, plain.rewards, 4, event_ids=names)).overlap(sketch)
    assert found is not None and found.certain
    empty = RowSketch()
    empty.include(RowSketch.of(named))
    assert empty.rows == 100 and RowSketch.of(named).overlap(empty).certain


def test_a_sketch_with_every_kind_of_marks_is_below_a_megabyte():
    n = 40_000
    times = np.datetime64("2026-01-01", "us") + np.arange(n).astype("timedelta64[us]")
    log = a_log(n, 16, event_ids=np.arange(n).astype(str), groups=np.arange(n), timestamps=times)
    sketch = RowSketch.of(log.rows(slice(0, n)))
    assert all(f"{kind}.marks" in sketch.arrays() for kind in row_sketch.KINDS)
    assert all(kind.isidentifier() for kind in row_sketch.KINDS)  # a saved array is called by it
    assert sum(array.nbytes for array in sketch.arrays().values()) < 1_000_000
