"""The columns that a log was made from stay with its rounds, whatever is done to them."""

from __future__ import annotations

import numpy as np
import pytest

from manyarms.errors import InvalidInput
from manyarms.logs import Columns, LoggedData, concatenate, from_frame, open_log, read_log, to_parquet
from manyarms.logs.frame_columns import frame_tables
from manyarms.logs.joining import joined_tables
from manyarms.logs.original import column_in, original_columns, plain, plain_columns, with_original_columns

ROWS = 50
COLUMNS = Columns(context=["age", "town"], action="item", reward="click")


def a_frame(rows=ROWS):
    rng = np.random.default_rng(0)
    return {
        "age": rng.integers(18, 80, rows),
        "town": rng.choice(["Ulm", "Bonn"], rows),
        "item": rng.choice(["fig", "pear", "plum"], rows),
        "click": rng.integers(0, 2, rows).astype(float),
        "number": np.arange(rows),
        "word": np.array([f"w{i}" for i in range(rows)]),
    }


def a_csv(path, frame):
    lines = [",".join(frame), *(",".join(map(str, row)) for row in zip(*frame.values(), strict=True))]
    path.write_text("\n".join(lines))
    return path


def numbers_of(log):
    table = original_columns(log, "a test")
    assert table.rows == len(log)
    words = plain(table["word"])
    assert [f"w{i}" for i in plain(table["number"]).tolist()] == words.tolist()
    return plain(table["number"])


def test_a_frame_s_columns_stay_with_the_log_and_are_its_own():
    frame = a_frame()
    log = from_frame(frame, COLUMNS)
    kept = original_columns(log, "a test")["number"].values
    frame["number"][:] = -1  # what the caller does later is not the log's concern
    assert kept.tolist() == list(range(ROWS))
    assert set(plain_columns(log.original)) == set(frame)


def test_columns_follow_their_rounds():
    log = from_frame(a_frame(), COLUMNS)
    for part, wanted in (
        (log.rows(slice(3, 20, 2)), np.arange(3, 20, 2)),
        (log.rows([5, 1, 1]), np.array([5, 1, 1])),
        (log.rows(np.arange(ROWS) % 2 == 0), np.arange(0, ROWS, 2)),
    ):
        assert (numbers_of(part) == wanted).all()
    left, right = log.split(0.4, seed=1)
    assert sorted([*numbers_of(left), *numbers_of(right)]) == list(range(ROWS))
    assert (numbers_of(left) == left.positions).all()
    both = concatenate([right, left])
    assert (numbers_of(both) == np.concatenate([right.positions, left.positions])).all()
    assert (np.concatenate([numbers_of(part) for part in log.chunks(7)]) == np.arange(ROWS)).all()
    assert (numbers_of(log.with_notes("a note")) == np.arange(ROWS)).all()
    bare = LoggedData(log.contexts, log.actions, log.rewards, 3)
    assert concatenate([log, bare.with_notes(catalogue=log.catalogue)]).original is None


def test_files_are_read_again_for_their_columns(tmp_path):
    path = a_csv(tmp_path / "log.csv", a_frame())
    assert (numbers_of(read_log(path, COLUMNS)) == np.arange(ROWS)).all()
    opened = open_log(path, COLUMNS)
    assert next(opened.chunks()).original is None
    again = with_original_columns(opened, "a test")
    assert (np.concatenate([numbers_of(part) for part in again.chunks(8)]) == np.arange(ROWS)).all()
    assert next(opened.chunks()).original is None  # the other one is as it was


@pytest.mark.parametrize("spool", [False, True, "fit"])
def test_columns_of_parquet(tmp_path, spool):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pa.table(a_frame()), tmp_path / "log.parquet")
    opened = open_log(tmp_path / "log.parquet", COLUMNS, spool=spool)
    again = with_original_columns(opened, "a test")
    assert (np.concatenate([numbers_of(part) for part in again.chunks(8)]) == np.arange(ROWS)).all()
    assert (numbers_of(read_log(tmp_path / "log.parquet", COLUMNS)) == np.arange(ROWS)).all()
    to_parquet(opened, tmp_path / "ours.parquet")  # has no columns but the log's own
    assert read_log(tmp_path / "ours.parquet").original is None


def test_rows_that_are_left_out_are_left_out_there_too(tmp_path):
    frame = a_frame()
    frame["click"] = np.where(np.arange(ROWS) % 10 == 3, np.nan, frame["click"])
    wanted = np.flatnonzero(np.arange(ROWS) % 10 != 3)
    assert (numbers_of(from_frame(frame, COLUMNS, drop_missing=True)) == wanted).all()
    path = a_csv(tmp_path / "log.csv", frame)
    assert (numbers_of(read_log(path, COLUMNS, drop_missing=True)) == wanted).all()


def test_missing_entries_are_told_apart():
    table = frame_tables({"n": [1.0, None, 3.0], "i": [1, None, 3], "t": ["a", None, "b"]}).table
    for one in (table, joined_tables([table.part(slice(0, 2)), table.part(slice(2, 3))])):
        found = plain_columns(one)
        assert np.isnan(found["n"][1]) and np.isnan(found["i"][1])
        assert found["t"].tolist() == ["a", None, "b"]
    assert plain_columns(table, ["t"]).keys() == {"t"}


def test_what_is_not_there_is_named():
    log = LoggedData([[1.0], [2.0]], [0, 1], [1.0, 0.0], 2)
    with pytest.raises(InvalidInput, match="a log without its original columns"):
        original_columns(log, "a test")
    with pytest.raises(InvalidInput, match="a log without its original columns"):
        with_original_columns(log, "a test")
    table = frame_tables({"n": [1.0]}).table
    with pytest.raises(InvalidInput, match="policy: expected one of 'n', got no column 'm' in the log"):
        column_in(table, "m", "policy")
    for wrong in (3, table):
        with pytest.raises(InvalidInput, match="original"):
            LoggedData([[1.0], [2.0]], [0, 1], [1.0, 0.0], 2, original=wrong)
