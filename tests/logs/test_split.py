"""Splits by row, by group and by time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from manyarms.errors import InvalidInput
from manyarms.logs import LoggedData, from_frame, open_log, to_csv

N = 40


def made(**more: Any) -> LoggedData:
    rng = np.random.default_rng(0)
    return LoggedData(rng.normal(size=(N, 2)), rng.integers(3, size=N), rng.random(N), 3, **more)


def times(minutes: Any) -> np.ndarray:
    return np.datetime64("2024-01-01T00:00", "us") + np.asarray(minutes).astype("timedelta64[m]")


def test_by_time_the_past_comes_first_and_ties_stay_together() -> None:
    order = np.random.default_rng(1).permutation(N)
    first, second = made(timestamps=times(order)).split(0.8, by="time")
    assert len(first) == 32 and first.timestamps is not None and second.timestamps is not None
    assert first.timestamps.max() < second.timestamps.min()
    assert any(note.startswith("split by time: 80.0% of the rounds, up to 2024-01-01T00:31") for note in second.notes)
    first, second = made(timestamps=times(order // 10)).split(0.7, by="time")  # ten at each moment: 30 is nearest to 28
    assert (len(first), len(second)) == (30, 10)


def test_groups_that_cross_the_boundary_are_told() -> None:
    log = made(timestamps=times(np.arange(N)), groups=np.arange(N) // 7)
    first, second = log.split(0.5, by="time")
    crossing = np.intersect1d(first.groups, second.groups)
    assert len(crossing) == 1 and "1 group lies on both sides" in first.notes[-1] and first.notes == second.notes
    whole = made(timestamps=times(np.arange(N)), groups=np.arange(N) // 10).split(0.5, by="time")[0]
    assert "both sides" not in whole.notes[-1]


def test_by_row_and_by_group_as_said() -> None:
    log = made(groups=np.arange(N) // 4)
    for part in (log.split(0.5), log.split(0.5, by="group")):
        assert not np.intersect1d(part[0].groups, part[1].groups).size
        np.testing.assert_array_equal(part[0].positions, log.split(0.5)[0].positions)
    first, _ = log.split(0.3, by="row")
    np.testing.assert_array_equal(first.positions, made().split(0.3)[0].positions)
    assert any("on both sides" in note for note in first.notes)


@pytest.mark.parametrize(
    ("log", "by", "named"),
    [
        (made(), "time", "timestamps"),
        (made(), "group", "groups"),
        (made(), "day", "by"),
        (made(), 3, "by"),
        (made(timestamps=times(np.zeros(N))), "time", "fraction"),
        (
            made(timestamps=np.where(np.arange(N) == 3, np.datetime64("NaT", "us"), times(np.arange(N)))),
            "time",
            "row 3",
        ),
        (made(groups=np.zeros(N, dtype=int)), "group", "fraction"),
    ],
)
def test_what_cannot_be_split_is_refused(log: LoggedData, by: Any, named: str) -> None:
    with pytest.raises(InvalidInput, match=named):
        log.split(0.5, by=by)


def test_an_open_file_is_read_and_split(tmp_path: Any) -> None:
    log = made(timestamps=times(np.arange(N)))
    to_csv(log, tmp_path / "log.csv")
    first, second = open_log(tmp_path / "log.csv").split(0.25, by="time")
    np.testing.assert_array_equal(first.rewards, log.rewards[:10])
    assert len(second) == 30
    assert from_frame({"x": [1.0, 2.0], "action": [0, 1], "reward": [0, 1]}).split(0.5, by="row")
