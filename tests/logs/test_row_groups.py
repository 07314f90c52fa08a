"""Folders of Parquet files, their row groups, and the shuffled rows of a log larger than memory."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import manyarms as ma
from manyarms.errors import DataError, InvalidInput
from manyarms.logs import LoggedData, collect, to_csv, to_parquet
from manyarms.logs.row_groups import RowGroups, in_row_groups
from manyarms.logs.shuffled import ShuffledRows
from manyarms.policies import SoftmaxPolicy

ROWS, ACTIONS = 1000, 7


def a_log(rows: int = ROWS) -> LoggedData:
    """Rows that can be told apart by their first number."""
    rng = np.random.default_rng(0)
    contexts = np.column_stack([np.arange(rows), rng.normal(size=rows)])
    return LoggedData(contexts, rng.integers(0, ACTIONS, rows), rng.random(rows), ACTIONS, rng.uniform(0.1, 1, rows))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """1,000 rows in two files: six row groups of 97 and one of 18, then one of 250 and one of 150."""
    log, path = a_log(), tmp_path / "rounds"
    path.mkdir()
    to_parquet(log.rows(slice(0, 600)), path / "a.parquet", rows_per_group=97)
    to_parquet(log.rows(slice(600, None)), path / "b.pq", rows_per_group=250)
    (path / "_SUCCESS").write_text("")
    (path / "_old.parquet").write_text("no Parquet")
    (path / "notes.txt").write_text("no log")
    return path


def same_rows(one: LoggedData, other: LoggedData) -> None:
    for name in ("contexts", "actions", "rewards", "propensities"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_a_folder_is_its_files_in_the_order_of_their_names(folder: Path) -> None:
    source = ma.open_log(folder)
    assert source.row_count == ROWS and source.action_count == ACTIONS and source.dim == 2
    assert source.row_groups == (97, 97, 97, 97, 97, 97, 18, 250, 150)
    same_rows(collect(source), a_log())
    same_rows(ma.logs.read_log(folder), a_log())


def test_row_groups_are_read_one_without_the_others(folder: Path) -> None:
    source = ma.open_log(folder)
    ends = np.cumsum(source.row_groups)
    for group in (8, 0, 6, 7):
        rows = slice(ends[group] - source.row_groups[group], ends[group])
        parts = list(source.group_chunks(group, 100))
        assert max(map(len, parts)) <= 100
        same_rows(ma.logs.concatenate(parts, chunks=True), a_log().rows(rows))


def test_messages_name_the_file(folder: Path) -> None:
    import pyarrow.parquet as parquet

    table = parquet.read_table(folder / "b.pq")
    values = table["reward"].to_pylist()
    values[17] = float("inf")
    place = table.schema.get_field_index("reward")
    parquet.write_table(table.set_column(place, table.schema.field(place), [values]), folder / "b.pq")
    with pytest.raises(InvalidInput, match=r"b\.pq, row 17"):
        collect(ma.open_log(folder))


def test_files_must_be_alike(folder: Path) -> None:
    log = a_log(50)
    to_parquet(
        LoggedData(log.contexts[:, :1], log.actions, log.rewards, ACTIONS, log.propensities), folder / "c.parquet"
    )
    with pytest.raises(DataError, match=r"c\.parquet: a column of vectors of length 1 'context'; a\.parquet"):
        ma.open_log(folder)
    to_parquet(LoggedData(log.contexts, log.actions, log.rewards, ACTIONS), folder / "c.parquet")
    with pytest.raises(DataError, match=r"c\.parquet: no column 'propensity'"):
        ma.open_log(folder)


def test_a_folder_without_parquet_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no log")
    (tmp_path / "inside").mkdir()
    to_parquet(a_log(20), tmp_path / "inside" / "a.parquet")
    with pytest.raises(DataError, match=r"ends in \.parquet or \.pq; folders inside it are not looked at"):
        ma.open_log(tmp_path)


def test_a_file_that_changed_is_refused(folder: Path) -> None:
    source = ma.open_log(folder)
    next(source.group_chunks(0))
    told = (folder / "a.parquet").stat()
    os.utime(folder / "a.parquet", ns=(told.st_atime_ns, told.st_mtime_ns + 1))
    with pytest.raises(DataError, match=r"a\.parquet: changed since it was opened"):
        next(source.group_chunks(0))
    next(source.group_chunks(8))


@pytest.mark.parametrize(("buffer", "batch"), [(32, 16), (64, 16), (100, 50), (300, 7), (999, 10), (5000, 1)])
def test_every_row_comes_once_an_epoch(folder: Path, buffer: int, batch: int) -> None:
    shuffled = ShuffledRows(ma.open_log(folder), buffer=buffer, batch=batch, seed=3)
    orders = []
    for epoch in range(3):
        seen, end = [], 0
        for span, rows in shuffled.windows(epoch):
            assert span.first == end and len(rows) == len(span) <= buffer
            assert span.first % batch == 0 and (span.last % batch == 0 or span.last == ROWS)
            end = span.last
            seen.append(rows.contexts[shuffled.order(epoch, span), 0])
        orders.append(np.concatenate(seen))
        np.testing.assert_array_equal(np.sort(orders[-1]), np.arange(ROWS))
    assert len({tuple(order) for order in orders}) == 3


def test_windows_from_the_middle_are_those_of_the_whole_epoch(folder: Path) -> None:
    shuffled = ShuffledRows(ma.open_log(folder), buffer=120, batch=20, seed=1)
    whole = list(shuffled.windows(2))
    for row in (0, 19, 20, 500, 999):
        rest = list(shuffled.windows(2, row))
        assert rest[0][0].first <= row < rest[0][0].last
        for (span, rows), (own, log) in zip(rest, whole[-len(rest) :], strict=True):
            assert span == own
            same_rows(rows, log)
    assert not list(shuffled.windows(2, ROWS))


def test_what_lies_before_is_not_read(folder: Path) -> None:
    read = []

    class Watched(RowGroups):
        def group_chunks(self, group: int, rows: int = 65_536):
            read.append(group)
            return super().group_chunks(group, rows)

    shuffled = ShuffledRows(Watched(ma.open_log(folder)), buffer=120, batch=20)
    list(shuffled.windows(0, 980))
    assert len(set(read)) < 4
    read.clear()
    list(shuffled.windows(0))
    assert sorted(read) == list(range(9))  # none of them twice


def test_what_is_held_out_are_whole_row_groups(folder: Path) -> None:
    source = RowGroups(ma.open_log(folder))
    train, held = source.split(0.2, seed=0)
    assert sorted([*train.groups, *held.groups]) == list(range(9))
    numbers = np.concatenate([collect(part).contexts[:, 0] for part in (train, held)])
    np.testing.assert_array_equal(np.sort(numbers), np.arange(ROWS))
    assert sum(held.row_groups) >= 0.2 * ROWS
    assert len({tuple(source.split(0.2, seed=seed)[1].groups) for seed in range(20)}) > 1
    with pytest.raises(InvalidInput, match="one row group"):
        RowGroups(source, [7]).split(0.5, 0)


def test_rounds_come_with_the_policy_that_wrote_them(folder: Path) -> None:
    logging = SoftmaxPolicy(np.zeros((ACTIONS, 2)))
    chunk = next(RowGroups(ma.open_log(folder), logging=logging).chunks())
    assert chunk.logging is logging


def test_rows_that_are_left_out_do_not_count(folder: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as parquet

    table = parquet.read_table(folder / "b.pq")
    values = [None if row < 300 else value for row, value in enumerate(table["reward"].to_pylist())]
    place = table.schema.get_field_index("reward")
    table = table.set_column(place, pa.field("reward", pa.float64()), [values])
    parquet.write_table(table, folder / "b.pq", row_group_size=250)
    source = ma.open_log(folder, drop_missing=True)
    kept = [sum(map(len, source.group_chunks(group))) for group in range(9)]
    assert kept[-2:] == [0, 100]
    shuffled = ShuffledRows(source, buffer=200, batch=10, rows=kept)
    seen = np.concatenate([rows.contexts[:, 0] for _, rows in shuffled.windows(0)])
    np.testing.assert_array_equal(np.sort(seen), np.r_[0:600, 900:1000])
    with pytest.raises(DataError, match="other rows than when it was read before"):
        list(ShuffledRows(source, buffer=200).windows(0))


def test_bad_input(folder: Path, tmp_path: Path) -> None:
    source = ma.open_log(folder)
    with pytest.raises(InvalidInput, match="two batches"):
        ShuffledRows(source, buffer=30, batch=16)
    with pytest.raises(InvalidInput, match="groups"):
        RowGroups(source, [9])
    with pytest.raises(InvalidInput, match="groups"):
        RowGroups(source, [])
    for group in (-1, 9, 0.5, "a"):
        with pytest.raises(InvalidInput, match="group: expected an integer from 0 to 8"):
            next(source.group_chunks(group))  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match=r"source: expected a Parquet file or folder \(open_log\)"):
        RowGroups(a_log(20))  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match=r"share: .* of a log of one row group"):
        RowGroups(source, [0]).split(0.5, 0)
    to_csv(a_log(20), tmp_path / "rounds.csv")
    for log in (ma.open_log(tmp_path / "rounds.csv"), a_log(20)):
        with pytest.raises(InvalidInput, match="in one order only"):
            in_row_groups("log", log)
