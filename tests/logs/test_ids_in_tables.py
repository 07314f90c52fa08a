"""Ids of actions in tables: integers stay integers, rows stay rows, and what can hardly be rows is taken as ids."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from manyarms.errors import InvalidInput, UnknownAction
from manyarms.logs import Actions, from_frame, inspect, open_log, read_csv, read_parquet, to_arrow, to_csv, to_parquet
from manyarms.logs.action_columns import are_ids


def frame(actions: list[Any]) -> dict[str, Any]:
    rows = len(actions)
    return {"x": np.arange(rows, dtype=float), "action": actions, "reward": np.arange(rows) % 2}


def written(path: Path, *cells: str) -> Path:
    path.write_text("x,action,reward\n" + "".join(f"{i},{cell},{i % 2}\n" for i, cell in enumerate(cells)))
    return path


def test_integers_give_integer_ids_and_texts_give_texts(tmp_path: Path) -> None:
    assert list(from_frame(frame([40, 7, 40]), catalogue="build").catalogue or ()) == [40, 7]
    assert list(from_frame(frame([40.0, None, 7.0]), catalogue="build", drop_missing=True).catalogue or ()) == [40, 7]
    assert list(from_frame(frame(["40", "7", "40"])).catalogue or ()) == ["40", "7"]
    assert list(read_csv(written(tmp_path / "a.csv", "40", "-7", "40"), catalogue="build").catalogue or ()) == [40, -7]
    spelled = read_csv(written(tmp_path / "b.csv", "01234", "7", "8"), catalogue="build")
    assert list(spelled.catalogue or ()) == ["01234", "7", "8"]


class Items:
    actions = Actions([7, 40, 41])


@pytest.mark.parametrize(
    "given", [[7, 40, 41], np.array([7, 40, 41]), Items(), Actions(["7", "40", "41"]), (7, 40, 41)]
)
def test_a_catalogue_is_ids_in_any_form(given: Any) -> None:
    log = from_frame(frame([40, 7, 40]), catalogue=given)
    np.testing.assert_array_equal(log.actions, [1, 0, 1])
    assert log.action_count == 3
    with pytest.raises(UnknownAction, match="at row 1"):
        from_frame(frame([40, 8, 40]), catalogue=given)


@pytest.mark.parametrize("given", ["ids", 3, {7: 40}, Items, [[1]], [1, "a"], np.ones((2, 2))])
def test_what_is_no_catalogue_is_refused(given: Any) -> None:
    with pytest.raises(InvalidInput):
        from_frame(frame([40, 7, 40]), catalogue=given)


@pytest.mark.parametrize("ids", [[4_000_000_000, 12, 7], [-(2**60), 3, 2**62]])
def test_integers_that_can_hardly_be_rows_are_ids_and_a_note_says_so(ids: list[int], tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = frame(ids * 4)
    pq.write_table(pa.table(table), tmp_path / "log.parquet")
    for log in (
        from_frame(table),
        read_csv(written(tmp_path / "log.csv", *map(str, ids * 4))),
        read_parquet(tmp_path / "log.parquet"),
        open_log(tmp_path / "log.parquet", drop_missing=True).collect(),
    ):
        assert list(log.catalogue or ()) == ids
        np.testing.assert_array_equal(log.actions, [0, 1, 2] * 4)
        assert any("taken as ids" in note and "action_count=" in note for note in log.notes)
    found = inspect(table)
    assert found.actions_seen == 3 and any("taken as ids" in note for note in found.notes)
    assert {row.name for row in found.most_played} == set(map(str, ids))
    with pytest.raises(UnknownAction):
        from_frame(table, action_count=100)


def test_rows_stay_rows() -> None:
    assert from_frame(frame([0, 999_999, 3])).catalogue is None
    with pytest.raises(UnknownAction, match="catalogue"):
        from_frame(frame([0, 5, -1]))
    assert not are_ids(-1, 1_000_000, 10) and are_ids(0, 1_000_001, 10_000) and not are_ids(0, 1_000_001, 10_011)
    assert are_ids(-2_000_000, 3, 10)


def test_integer_ids_survive_files_and_tables(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    log = from_frame(frame([40, 7, 40, 9]), catalogue=[7, 9, 40, 50])
    to_parquet(log, tmp_path / "log.parquet")
    to_csv(log, tmp_path / "log.csv")
    arrow = to_arrow(log)
    assert arrow.column("action").to_pylist() == [40, 7, 40, 9]
    for again in (read_parquet(tmp_path / "log.parquet"), from_frame(arrow)):
        assert again.catalogue == log.catalogue and again.catalogue is not None and again.catalogue.numbered
        np.testing.assert_array_equal(again.actions, log.actions)
    again = read_csv(tmp_path / "log.csv", catalogue="build")
    assert list(again.catalogue or ()) == [40, 7, 9]
    assert (tmp_path / "log.csv").read_text().splitlines()[1].split(",")[1] == "40"
    found = inspect(tmp_path / "log.parquet")
    assert found.unseen == ("50",) and found.action_count == 4
