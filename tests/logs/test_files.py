"""Parquet, CSV and frames: what goes out comes back, columns are found, and what is wrong is named."""

from __future__ import annotations

import builtins
import gzip
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from manyarms.errors import DataError, InvalidInput, MissingExtra, StorageError, UnknownAction
from manyarms.logs import (
    Actions,
    Columns,
    Encoding,
    LoggedData,
    collect,
    from_frame,
    open_log,
    read_csv,
    read_parquet,
    to_arrow,
    to_csv,
    to_pandas,
    to_parquet,
    to_polars,
)

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

FIELDS = (
    "contexts", "actions", "rewards", "propensities", "support", "support_probabilities", "event_ids", "timestamps",
    "groups",
)  # fmt: skip


def full(rows: int = 30, named: bool = False) -> LoggedData:
    rng = np.random.default_rng(3)
    actions = rng.integers(6, size=rows)
    encoder = Encoding(standardise=False, intercept=True).fit(
        {"u": rng.normal(size=5), "v": rng.normal(size=5)}, ["u", "v"]
    )
    return LoggedData(
        contexts=np.column_stack([np.ones(rows), rng.normal(size=(rows, 2))]), actions=actions,
        rewards=rng.normal(size=rows), action_count=7, propensities=rng.uniform(0.1, 1, size=rows),
        propensities_are_estimates=True, support=np.column_stack([actions, (actions + 1) % 7]),
        support_probabilities=np.tile([0.7, 0.2], (rows, 1)), event_ids=np.array([f"é{i}" for i in range(rows)]),
        timestamps=np.datetime64("2024-05-01T10:00", "us") + np.arange(rows) * np.timedelta64(1500, "ms"),
        groups=np.array([f"u{i % 4}" for i in range(rows)]),
        catalogue=Actions(["pear", "fig", "plum", "5", "kiwi", "lime", "never played"]) if named else None,
        encoder=encoder, notes=("made up",),
    )  # fmt: skip


def same(a: LoggedData, b: LoggedData) -> None:
    for name in FIELDS:
        x, y = getattr(a, name), getattr(b, name)
        assert (x is None) == (y is None), name
        if x is not None:
            np.testing.assert_array_equal(x, y, err_msg=name)
    assert a.propensities_are_estimates == b.propensities_are_estimates


@pytest.mark.parametrize("named", [False, True])
def test_parquet_gives_the_same_log_back(tmp_path: Path, named: bool) -> None:
    log = full(named=named)
    to_parquet(log, tmp_path / "new" / "log.parquet", rows_per_group=7)
    assert parquet.ParquetFile(tmp_path / "new" / "log.parquet").num_row_groups == 5
    again = read_parquet(tmp_path / "new" / "log.parquet")
    same(log, again)
    assert again.catalogue == log.catalogue
    assert again.action_count == 7
    assert again.notes == log.notes
    assert again.encoder is not None and log.encoder is not None
    new = {"u": [0.3], "v": [1 / 3]}
    assert again.encoder.apply(new).tobytes() == log.encoder.apply(new).tobytes()


@pytest.mark.parametrize("end", [".csv", ".csv.gz"])
@pytest.mark.parametrize("named", [False, True])
def test_csv_gives_the_same_rounds_back(tmp_path: Path, named: bool, end: str) -> None:
    log = full(named=named)
    to_csv(log, tmp_path / f"log{end}")
    again = read_csv(
        tmp_path / f"log{end}", action_count=None if named else 7, catalogue=log.catalogue if named else None
    )
    same(log, again)  # estimated propensities are told by the name of their column
    assert any("contexts are the columns 'context_0'" in note for note in again.notes)


def test_arrow_tables_and_mappings_give_the_same_log_back() -> None:
    log = full(named=True)
    same(log, from_frame(to_arrow(log)))
    chunked = pa.concat_tables([to_arrow(log.rows(slice(0, 9))), to_arrow(log.rows(slice(9, None)))])
    same(log, from_frame(chunked))


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_give_the_same_log_back(library: str) -> None:
    pytest.importorskip(library)
    log = full(named=True)
    frame = to_pandas(log) if library == "pandas" else to_polars(log)
    same(log, from_frame(frame, catalogue=log.catalogue))


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_as_people_have_them(library: str) -> None:
    """Categories, integers with a gap, times with a zone, texts: the same log from both libraries and from Arrow."""
    frames = pytest.importorskip(library)
    columns: dict[str, Any] = {
        "town": ["Ulm", "Bonn", "Ulm", None],
        "age": [31, None, 47, 28],
        "item": ["pear", "fig", "fig", "pear"],
        "click": [True, False, False, True],
        "pscore": [0.5, 0.25, 0.25, 0.5],
        "time": [datetime(2024, 1, day, 12, tzinfo=UTC) for day in (1, 2, 3, 4)],
        "user_id": [7, 7, 8, 9],
    }
    expected = from_frame(pa.table(columns), encoder=Encoding())
    frame = frames.DataFrame(columns)
    if library == "pandas":
        frame = frame.astype({"town": "category", "age": "Int64"})
    else:
        frame = frame.with_columns(frames.col("town").cast(frames.Categorical))
    same(expected, from_frame(frame, encoder=Encoding()))
    assert expected.catalogue is not None and list(expected.catalogue) == ["pear", "fig"]
    assert expected.timestamps is not None and str(expected.timestamps[0]).startswith("2024-01-01T12")


def test_missing_times_and_groups_of_truth_values_survive(tmp_path: Path) -> None:
    stamps = np.array(["2024-01-01", "NaT", "2024-01-03"], dtype="datetime64[s]")
    log = LoggedData(np.ones((3, 1)), [0, 1, 0], [0.0, 1.0, 1.0], 2, timestamps=stamps, groups=[True, False, True])  # type: ignore[arg-type]
    to_parquet(log, tmp_path / "log.parquet")
    to_csv(log, tmp_path / "log.csv")
    same(log, read_parquet(tmp_path / "log.parquet"))
    same(log, read_csv(tmp_path / "log.csv"))


def test_any_file_by_its_name(tmp_path: Path) -> None:
    log = full()
    to_parquet(log, tmp_path / "log.pq")
    to_csv(log, tmp_path / "log.csv.gz")
    for name in ("log.pq", "log.csv.gz"):
        same(log, collect(open_log(tmp_path / name, action_count=7)))
    (tmp_path / "log.doc").write_text("")
    with pytest.raises(InvalidInput, match=r"\.parquet, \.pq, \.csv"):
        open_log(tmp_path / "log.doc")
    with pytest.raises(DataError, match="no such file"):
        open_log(tmp_path / "log.parquet")


def test_chunks_of_a_file_are_the_file(tmp_path: Path) -> None:
    log = full()
    to_parquet(log, tmp_path / "log.parquet", rows_per_group=11)
    to_csv(log, tmp_path / "log.csv")
    for source in (open_log(tmp_path / "log.parquet"), open_log(tmp_path / "log.csv", action_count=7)):
        assert (source.dim, source.action_count, source.row_count) == (3, 7, 30)
        for rows in (4, 1000):
            parts = list(source.chunks(rows))
            assert max(map(len, parts)) <= rows
            same(log, collect(source, rows))


FRAME: dict[str, Any] = {
    "item_id": ["b", "a", "b", "c"],
    "click": [0, 1, 0, 1],
    "pscore": [0.5, 0.25, 0.5, 0.25],
    "user_feature_1": ["x", "y", "x", "x"],
    "user_feature_0": [1.0, 2.0, 3.0, 4.0],
    "Unnamed: 0": [0, 1, 2, 3],
}


def test_usual_names_are_found_and_guesses_are_noted() -> None:
    log = from_frame(FRAME)
    assert list(log.catalogue or ()) == ["b", "a", "c"]  # in order of appearance, so that more rows only append
    np.testing.assert_array_equal(log.actions, [0, 1, 0, 2])
    np.testing.assert_array_equal(log.propensities, FRAME["pscore"])
    assert log.encoder is not None
    assert log.encoder.names == ["user_feature_0", "user_feature_1=x", "user_feature_1=y", "user_feature_1: other"]
    assert any("reward is the column 'click'" in note for note in log.notes)


def test_columns_as_said() -> None:
    frame = FRAME | {"r": [5.0, 6.0, 7.0, 8.0], "z": [1, 2, 3, 4]}
    log = from_frame(frame, Columns(context=["z"], action="item_id", reward="r", propensity=None))
    np.testing.assert_array_equal(log.contexts, [[1], [2], [3], [4]])
    np.testing.assert_array_equal(log.rewards, [5, 6, 7, 8])
    assert log.propensities is None
    bare = from_frame(frame, Columns(context=()))
    np.testing.assert_array_equal(bare.contexts, np.ones((4, 1)))
    with pytest.raises(InvalidInput, match=r"columns\.reward.*'click'.*'gain'"):
        from_frame(FRAME, Columns(reward="gain"))
    with pytest.raises(InvalidInput, match=r"'click' as reward and as context"):
        from_frame(FRAME, Columns(context=["click"]))
    with pytest.raises(InvalidInput, match=r"columns\.action"):
        from_frame({"reward": [1.0], "x": [1.0]})


def test_whole_numbers_are_rows_or_ids_as_said() -> None:
    frame = {"x": [1.0, 2.0, 3.0], "action": [900, 17, 900], "reward": [0.0, 1.0, 1.0]}
    assert from_frame(frame).action_count == 901
    built = from_frame(frame, catalogue="build")
    assert list(built.catalogue or ()) == [900, 17]
    with pytest.raises(UnknownAction, match=r"'17' at row 1"):
        from_frame(frame, catalogue=Actions(["900"]))
    with pytest.raises(InvalidInput, match="action_count"):
        from_frame(frame, catalogue="build", action_count=5)
    with pytest.raises(UnknownAction, match="900 at row 0"):
        from_frame(frame, action_count=100)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"reward": [0.0, None, 1.0]}, r"'reward'.*drop_missing.*missing entry at row 1"),
        ({"propensity": [0.5, 0.5, None]}, r"'propensity'.*missing entry at row 2"),
        ({"propensity": [0.5, 0.5, 0.0]}, r"propensities \(column 'propensity'\).*row 2"),
        ({"action": [None, 1, 0]}, r"'action'.*missing entry at row 0"),
        ({"action": [0, 1.5, 0]}, r"actions \(column 'action'\).*row 1|action.*row 1"),
        ({"x": [1.0, np.nan, 2.0]}, r"'x'.*Encoding.*missing entry at row 1"),
        ({"x": [1.0, np.inf, 2.0]}, r"'x'.*inf at row 1"),
        ({"x": [1.0, "far", 2.0]}, r"'x'.*one kind.*numbers.*'far' at row 1"),
        ({"x": [[1.0, 2.0], [1.0], [1.0, 2.0]]}, r"'x'.*1 numbers at row 1"),
        ({"reward": ["0", "one", "1"]}, r"'reward'.*'one' at row 1"),
        ({"timestamp": ["2024-01-01", "yesterday", "2024-01-02"]}, r"'timestamp'.*'yesterday' at row 1"),
    ],
)
def test_bad_columns_are_named_with_their_first_bad_row(changes: dict[str, Any], message: str) -> None:
    frame = {"x": [1.0, 2.0, 3.0], "action": [0, 1, 0], "reward": [0.0, 1.0, 1.0], "propensity": [0.5, 0.5, 0.5]}
    columns = Columns(context=["x"])
    with pytest.raises(InvalidInput, match=message):
        from_frame(frame | changes, columns)


def test_rows_with_missing_entries_can_be_left_out(tmp_path: Path) -> None:
    frame = {"x": [1.0, 2.0, 3.0, 4.0], "action": ["a", None, "c", "b"], "reward": [0.0, 1.0, None, 1.0]}
    log = from_frame(frame, Columns(context=["x"]), drop_missing=True)
    np.testing.assert_array_equal(log.contexts.ravel(), [1, 4])
    assert "2 rows with missing entries were left out" in log.notes
    with pytest.raises(InvalidInput, match="no row that is complete"):
        from_frame({"x": [1.0], "action": [0], "reward": [None]}, Columns(context=["x"]), drop_missing=True)
    # rows keep their numbers in messages when others are left out
    (tmp_path / "l.csv").write_text("x,action,reward,propensity\n1,0,,0.5\n1,0,1,0.5\n1,1,1,7\n")
    with pytest.raises(InvalidInput, match="line 4"):
        read_csv(tmp_path / "l.csv", drop_missing=True)


def write_csv(folder: Path, text: str) -> Path:
    (folder / "log.csv").write_text(text)
    return folder / "log.csv"


def test_csv_kinds_are_found_over_the_whole_file(tmp_path: Path) -> None:
    path = write_csv(tmp_path, "x,t,action,reward\n1,a,9007199254740993,0\n2.5,,7,1\nNA,b,7,1\n")
    log = read_csv(
        path, Columns(context=["x", "t"]), catalogue="build", encoder=Encoding(standardise=False, intercept=False)
    )
    assert list(log.catalogue or ()) == [9007199254740993, 7]  # not a float on its way
    np.testing.assert_array_equal(
        log.contexts, [[1, 0, 1, 0, 0, 0], [2.5, 0, 0, 0, 0, 1], [1.75, 1, 0, 1, 0, 0]]
    )  # fmt: skip


def test_numbers_and_texts_in_one_csv_column_are_refused_unless_they_are_ids(tmp_path: Path) -> None:
    path = write_csv(tmp_path, "x,action,reward\n1,a,0\n2,7,1\nfar,b,1\n")
    with pytest.raises(InvalidInput, match=r"'x'.*'far' at line 4, but a number at line 2"):
        read_csv(path, Columns(context=["x"]))
    log = read_csv(path, Columns(context=["x"]), encoder=Encoding(categorical=("x",), intercept=False))
    np.testing.assert_array_equal(log.contexts[:, :3], np.eye(3))
    assert list(log.catalogue or ()) == ["a", "7", "b"]


def test_ids_that_look_like_numbers_stay_as_they_are_written(tmp_path: Path) -> None:
    path = write_csv(tmp_path, "code,action,reward\n01234,007,0\n1234,7,1\n")
    log = read_csv(path, Columns(context=["code"]), catalogue="build", encoder=Encoding(categorical=("code",)))
    assert list(log.catalogue or ()) == ["007", "7"]
    assert log.encoder is not None and log.encoder.names[1:3] == ["code=01234", "code=1234"]
    again = read_csv(path, Columns(context=["code"]), catalogue=log.catalogue, encoder=log.encoder)
    np.testing.assert_array_equal(again.contexts, log.contexts)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        ("x,action,reward\n", "no row"),
        ("x,action,reward\n1,0\n", "line 2 has 2 fields"),
        ("x,action,action\n1,0,1\n", "'action' is there twice"),
        ('x,action,reward\n1,0,"1\n', "line"),
    ],
)
def test_broken_csv_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises((DataError, InvalidInput), match=message):
        read_csv(write_csv(tmp_path, text))


def test_truncated_files_are_refused(tmp_path: Path) -> None:
    to_parquet(full(500), tmp_path / "whole.parquet", rows_per_group=100)
    data = (tmp_path / "whole.parquet").read_bytes()
    for size in (0, 3, len(data) // 2, len(data) - 1):
        (tmp_path / "cut.parquet").write_bytes(data[:size])
        with pytest.raises(DataError, match=r"cut\.parquet"):
            read_parquet(tmp_path / "cut.parquet")
    damaged = bytearray(data)
    damaged[200:2000] = bytes(1800)  # the footer is whole, the pages are not
    (tmp_path / "damaged.parquet").write_bytes(bytes(damaged))
    with pytest.raises(DataError, match=r"damaged\.parquet"):
        read_parquet(tmp_path / "damaged.parquet")
    packed = gzip.compress(b"x,action,reward\n" + b"1,0,1\n" * 1000)
    (tmp_path / "cut.csv.gz").write_bytes(packed[: len(packed) - 20])
    with pytest.raises(DataError, match="truncated"):
        read_csv(tmp_path / "cut.csv.gz")
    for reader in (read_parquet, read_csv):
        with pytest.raises(DataError, match="no such file"):
            reader(tmp_path / "absent")
        with pytest.raises(DataError):
            reader(tmp_path)


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    log = full()

    class Breaking:
        action_count, dim = log.action_count, log.dim

        def chunks(self, rows: int = 5) -> Any:
            yield from list(log.chunks(5))[:3]
            raise OSError("the disk is full")

    for name, write in (("log.parquet", to_parquet), ("log.csv", to_csv), ("log.csv.gz", to_csv)):
        write(log, tmp_path / name)
        before = (tmp_path / name).read_bytes()
        with pytest.raises(StorageError, match=f"{name}: cannot be written: the disk is full"):
            write(Breaking(), tmp_path / name)
        assert (tmp_path / name).read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log.csv", "log.csv.gz", "log.parquet"]


def test_parquet_of_others_with_many_kinds_of_columns(tmp_path: Path) -> None:
    table = pa.table(
        {
            "v": pa.array([[1.0, 2.0], [3.0, 4.0]], pa.list_(pa.float32())),
            "flag": pa.array([True, False]),
            "town": pa.array(["Ulm", None]).dictionary_encode(),
            "action": pa.array([3, 1], pa.int32()),
            "reward": pa.array([0, 1], pa.int8()),
            "time": pa.array([1_700_000_000, 1_700_000_060]),
            "user_id": pa.array([5, 6]),
            "odd": pa.array([{"a": 1}, {"a": 2}]),
        }
    )
    parquet.write_table(table, tmp_path / "o.parquet")
    log = read_parquet(tmp_path / "o.parquet", Columns(context=["v", "flag", "town"]))
    np.testing.assert_array_equal(log.contexts, [[1, 2, 1, 1, 0, 0], [3, 4, 0, 0, 0, 1]])
    assert log.action_count == 4
    assert str(log.timestamps[0]) == "2023-11-14T22:13:20.000000"  # type: ignore[index]
    np.testing.assert_array_equal(log.groups, [5, 6])
    with pytest.raises(InvalidInput, match="struct"):
        read_parquet(tmp_path / "o.parquet", Columns(context=["odd"]))
    ragged = table.set_column(0, "v", pa.array([[1.0, 2.0], [3.0]]))
    parquet.write_table(ragged, tmp_path / "o.parquet")
    with pytest.raises(InvalidInput, match=r"'v'.*1 numbers at row 1"):
        read_parquet(tmp_path / "o.parquet", Columns(context=["v"]))


def test_an_encoder_learned_on_one_file_reads_another(tmp_path: Path) -> None:
    first = from_frame(FRAME, encoder=Encoding())
    assert first.encoder is not None
    other = {**FRAME, "user_feature_1": ["new", "y", "x", "x"]}
    second = from_frame(other, encoder=first.encoder, catalogue=first.catalogue)
    np.testing.assert_array_equal(second.contexts[1:], first.contexts[1:])
    place = first.encoder.names.index("user_feature_1: other")
    assert second.contexts[0, place] == 1


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    real = builtins.__import__
    to_parquet(full(), tmp_path / "log.parquet")

    def hidden(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.partition(".")[0] in ("pyarrow", "pandas", "polars"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", hidden)
    for module in ("pandas", "polars"):
        monkeypatch.setitem(sys.modules, module, None)
    for call, extra in (
        (lambda: read_parquet(tmp_path / "log.parquet"), "experiments"),
        (lambda: to_parquet(full(), tmp_path / "x.parquet"), "experiments"),
        (lambda: to_pandas(full()), "frames"),
        (lambda: to_polars(full()), "frames"),
    ):
        with pytest.raises(MissingExtra, match=rf"manyarms\[{extra}\]"):
            call()
    assert not (tmp_path / "x.parquet").exists()
