"""A format is one class in one file: found by its suffix, read once where that is asked, spooled without loss."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from manyarms.errors import InvalidInput, UnknownAction
from manyarms.logs import (
    FORMATS,
    Actions,
    Columns,
    Encoding,
    LogFormat,
    LoggedData,
    collect,
    open_log,
    read_csv,
    read_log,
)
from manyarms.logs.formats import csv as csv_format
from manyarms.logs.formats.parquet import to_parquet
from manyarms.logs.frame_columns import frame_tables
from manyarms.logs.inspection import inspect
from manyarms.logs.spool import Spool
from manyarms.logs.tables import Kind, Table, column_of, number_column, text_column


@pytest.fixture
def rows_format() -> Iterator[type[LogFormat]]:
    """A format of somebody else's: a JSON list of rows."""

    @FORMATS.register("rows")
    class JsonRows(LogFormat):
        suffixes = (".rows",)
        passes = 0

        def kinds(self) -> dict[str, Kind]:
            return self._read().kinds()

        def tables(self, columns: Sequence[str], rows: int) -> Iterator[Table]:
            type(self).passes += 1
            return self._read().tables(columns, rows)

        def _read(self) -> Any:
            told = json.loads(self.path.read_text())
            return frame_tables({name: [row[name] for row in told] for name in told[0]})

    yield JsonRows
    del FORMATS._parts["rows"]


def test_a_new_format_is_read_wherever_logs_are(rows_format: Any, tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from manyarms.cli.app import app

    told = [{"town": "ab"[i % 2], "item": f"i{i % 3}", "click": i % 2, "propensity": 0.5} for i in range(12)]
    path = tmp_path / "log.rows"
    path.write_text(json.dumps(told))
    log = collect(open_log(path))
    assert log.catalogue is not None and list(log.catalogue) == ["i0", "i1", "i2"] and len(log) == 12
    assert rows_format.passes == 2  # ids and categories first
    rows_format.passes = 0
    np.testing.assert_array_equal(read_log(path).contexts, log.contexts)
    assert rows_format.passes == 1
    assert inspect(path).rows == 12
    result = CliRunner().invoke(app, ["evaluate", "uniform", str(path), "--out", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    assert rows_format.passes == 3


def test_every_format_is_registered_with_its_suffixes() -> None:
    assert {"csv", "dsjson", "parquet"} <= set(FORMATS)
    suffixes = [suffix for made in FORMATS.values() for suffix in made.suffixes]
    assert len(set(suffixes)) == len(suffixes)


# ---- the spool


@pytest.mark.parametrize("in_memory", [0, 100, 1 << 20], ids=["on disk", "moves", "in memory"])
def test_a_spool_gives_back_what_went_in(in_memory: int, rng: np.random.Generator) -> None:
    spool = Spool(in_memory or 1)
    tables = []
    for number in range(3):
        columns = {
            "x": number_column(rng.standard_normal(5)),
            "v": number_column(rng.integers(9, size=(5, 2))),
            "t": text_column(["é", None, "b", "", "b"]),
            "when": column_of("when", np.array(["2024-01-01", "NaT", "2024-01-02", "2024-01-03", "2024-01-04"], "M8[us]")),
        }  # fmt: skip
        if number == 1:
            del columns["v"]
        tables.append(Table(columns, 5, 5 * number))
        spool.add(tables[-1])
    assert spool.rows == 15
    for _ in range(2):
        for table, again in zip(tables, spool.tables(["t", "v", "when"]), strict=True):
            assert again.rows == 5 and again.first_row == table.first_row and "x" not in again.columns
            assert ("v" in again.columns) == ("v" in table.columns)
            for name, column in again.columns.items():
                np.testing.assert_array_equal(column.values, table[name].values)
                np.testing.assert_array_equal(column.absent, table[name].absent)
                if column.categories is not None:
                    assert column.texts().tolist() == table[name].texts().tolist()


@pytest.mark.parametrize("block", [1, 2, 3, 100])
def test_csv_columns_do_not_depend_on_where_blocks_end(
    block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Numbers become texts, and integers floats, long after they were parsed; every spelling comes back."""
    monkeypatch.setattr(csv_format, "BLOCK", block)
    cells = {
        "code": ["01", "1", "1.0", " 1", "1e0", "", "NA", "x"],
        "postcode": ["01234", "1234", "007", "7", "", "NA", "9007199254740993", "99999999999999999999"],
        "number": ["1", "2", "", "NA", "2.50", "-0", "nan", "3"],
        "whole": ["1", "", "9007199254740993", "-4", "5", "6", "7", "8"],
        "action": ["0", "1", "0", "1", "0", "1", "0", "1"],
        "reward": ["1", "0", "1", "0", "1", "0", "1", "0"],
    }
    path = tmp_path / "log.csv"
    path.write_text("\n".join([",".join(cells), *(",".join(row) for row in zip(*cells.values(), strict=True))]) + "\n")
    source = csv_format.CsvTables(path)
    kinds = {name: kind.name for name, kind in source.kinds().items()}
    assert kinds == {name: "mixed" if name == "code" else "number" for name in cells}
    assert "'x' at line 9, but a number at line 2" in str(source.complaint("code"))

    def read(tables: Any, name: str) -> list[Any]:
        return [value for table in tables.tables([name], 3) for value in table[name].texts().tolist()]

    texts = source.as_texts(["code", "postcode", "number"])
    for name in ("code", "postcode", "number"):
        assert read(texts, name) == cells[name]
    whole = [table["whole"] for table in source.tables(["whole"], 100)]
    assert {column.values.dtype.kind for column in whole} == {"i"}
    assert 9007199254740993 in np.concatenate([column.values for column in whole])
    numbers = np.concatenate(
        [np.where(t["number"].absent, np.nan, t["number"].values) for t in source.tables(["number"], 9)]
    )
    np.testing.assert_array_equal(numbers, [1, 2, np.nan, np.nan, 2.5, -0.0, np.nan, 3])


def test_a_spooled_log_is_the_log(tmp_path: Path) -> None:
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {"town": ["a", "b", None, "a"], "item": ["x", "y", "x", "z"], "click": [0, 1, 1, 0], "prob": [0.5] * 4}
    path, plan = tmp_path / "log.parquet", Encoding()
    parquet.write_table(pa.table(columns), path)
    plain = collect(open_log(path, encoder=plan))
    for source in [open_log(path, encoder=plan, spool=True), open_log(path, encoder=plan, spool="fit")]:
        path.rename(tmp_path / "gone")
        for rows in (1, 3, 100):
            again = collect(source, rows)
            np.testing.assert_array_equal(again.contexts, plain.contexts)
            np.testing.assert_array_equal(again.actions, plain.actions)
        (tmp_path / "gone").rename(path)


# ---- ids of another catalogue


def test_supports_are_renumbered_with_the_actions(tmp_path: Path) -> None:
    """A file numbers the actions of its supports by its own catalogue; read with another one, they follow their ids."""
    log = LoggedData(
        np.ones((3, 1)), [0, 1, 2], [1.0, 0.0, 1.0], 3, propensities=[0.5, 0.5, 0.5], support=[[0, 1], [1, 2], [2, 0]],
        catalogue=Actions(["x", "y", "z"]),
    )  # fmt: skip
    to_parquet(log, tmp_path / "log.parquet")
    other = Actions(["z", "new", "y", "x"])
    again = read_log(tmp_path / "log.parquet", catalogue=other)
    assert again.support is not None
    assert [other.ids(row) for row in again.support] == [["x", "y"], ["y", "z"], ["z", "x"]]
    assert other.ids(again.actions) == ["x", "y", "z"]
    with pytest.raises(UnknownAction, match=r"'z' at row (1|2)"):
        read_log(tmp_path / "log.parquet", catalogue=Actions(["x", "y"]))
    played = log.rows([0, 1])  # z was offered only
    to_parquet(played, tmp_path / "played.parquet")
    with pytest.raises(UnknownAction, match=r"'support'.*'z' at row 1"):
        read_log(tmp_path / "played.parquet", catalogue=Actions(["x", "y"]))


def test_dsjson_is_a_format_as_any_other(tmp_path: Path) -> None:
    def line(chosen: int, age: float, town: str) -> str:
        told = {
            "_label_cost": -1, "_label_probability": 0.5, "_labelIndex": chosen, "a": [chosen + 1, 2 - chosen], "p": [0.5, 0.5],
            "c": {"age": age, "group": town, "_multi": [{"_tag": "x"}, {"_tag": "y"}]},
        }  # fmt: skip
        return json.dumps(told)

    (tmp_path / "log.jsonl").write_text("\n".join([line(0, 20, "a"), line(1, 30, "b"), line(0, 40, "b")]) + "\n")
    log = read_log(tmp_path / "log.jsonl")
    assert log.encoder is not None and log.encoder.names == ["age", "group=a", "group=b", "group: other"]
    assert log.groups is None  # a feature that is called group is a feature
    assert log.event_ids is None
    assert [chunk.rewards.tolist() for chunk in open_log(tmp_path / "log.jsonl").chunks(2)] == [[1.0, 1.0], [1.0]]
    ages = read_log(tmp_path / "log.jsonl", Columns(context="age"))
    np.testing.assert_array_equal(ages.contexts, [[20], [30], [40]])
    again = read_log(tmp_path / "log.jsonl", encoder=log.encoder, catalogue=Actions(["y", "x"]))
    np.testing.assert_array_equal(again.actions, [1, 0, 1])
    np.testing.assert_array_equal(again.support, [[1, 0], [0, 1], [1, 0]])
    found = inspect(tmp_path / "log.jsonl")
    assert (found.rows, found.dim, found.parts["reward"]) == (3, 2, "_label_cost")


def test_mixed_and_unsupported_columns_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("x,action,reward\n1,0,1\nfar,1,0\n")
    with pytest.raises(InvalidInput, match="'far' at line 3"):
        read_csv(tmp_path / "log.csv", Columns(context="x"))
    assert inspect(tmp_path / "log.csv", Columns(context="x")).problems
    with pytest.raises(InvalidInput, match="'x'"):
        inspect({"x": [{}, {}], "action": [0, 1], "reward": [0, 1]}, Columns(context="x"))
