"""The Open Bandit samples: made-up files of the same format, and the real ones where they are."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import numpy as np
import pytest

from manyarms.errors import DataError, InvalidInput
from manyarms.logs import action_frequencies, read_open_bandit, write_made_up_open_bandit


def test_made_up_samples_are_read_as_they_were_written(tmp_path: Path) -> None:
    folder = write_made_up_open_bandit(tmp_path, rows=200, items=6)
    sample = read_open_bandit("random", folder=folder)
    log = sample.log
    assert (len(log), log.action_count, sample.item_count) == (200, 6, 6)
    np.testing.assert_array_equal(log.propensities, 1 / 6)
    assert set(np.unique(sample.positions)) == {0, 1, 2}
    assert set(np.unique(log.rewards)) <= {0.0, 1.0}
    assert log.encoder is not None and log.encoder.names[0] == "intercept"
    np.testing.assert_array_equal(log.contexts[:, 1:].sum(axis=1), 4)  # one category of each of four features
    assert sample.item_features.shape[0] == 6
    assert log.timestamps is not None and str(log.timestamps[61]) == "2019-11-24T00:01:01.000000"
    assert "made-up data, not the Open Bandit sample" in log.notes[-1]
    again = write_made_up_open_bandit(tmp_path / "again", rows=200, items=6)
    name = "bts/all/all.csv.gz"
    assert (folder / name).read_bytes() == (again / name).read_bytes()


def test_items_at_positions_as_actions(tmp_path: Path) -> None:
    folder = write_made_up_open_bandit(tmp_path, rows=200, items=6)
    plain = read_open_bandit("bts", folder=folder)
    both = read_open_bandit("bts", folder=folder, action="item-position")
    assert both.log.action_count == 18
    assert both.log.catalogue is not None
    for row in range(20):
        name = both.log.catalogue[int(both.log.actions[row])]
        assert name == f"{plain.items[row]}@{plain.positions[row] + 1}"
    np.testing.assert_array_equal(both.log.propensities, plain.log.propensities)
    wide = read_open_bandit("bts", folder=folder, affinity=True)
    assert wide.log.dim == plain.log.dim + 6


def test_logged_propensities_are_the_shares_within_positions(tmp_path: Path) -> None:
    sample = read_open_bandit("bts", folder=write_made_up_open_bandit(tmp_path, rows=4000, items=4))
    table = action_frequencies(sample.log, by=sample.positions)
    estimated = table.probabilities_of(sample.items, sample.positions)
    assert sample.log.propensities is not None
    assert np.abs(estimated - sample.log.propensities).max() < 0.06


def test_what_is_absent_or_broken_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MANYARMS_DATA", raising=False)
    with pytest.raises(DataError, match="MANYARMS_DATA"):
        read_open_bandit()
    with pytest.raises(DataError, match=r"all\.csv: no such file"):
        read_open_bandit(folder=tmp_path)
    with pytest.raises(InvalidInput, match="campaign"):
        read_open_bandit(campaign="children", folder=tmp_path)  # type: ignore[arg-type]
    folder = write_made_up_open_bandit(tmp_path, rows=10, items=3)
    path = folder / "random" / "all" / "all.csv.gz"
    lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    cells = lines[4].split(",")
    for place, value, message in ((2, "3", "'3' at line 5"), (3, "4", "4 at line 5"), (5, "0.0", "line 5")):
        wrong = [*cells[:place], value, *cells[place + 1 :]]
        path.write_bytes(gzip.compress("\n".join([*lines[:4], ",".join(wrong), *lines[5:]]).encode()))
        with pytest.raises(InvalidInput, match=message):
            read_open_bandit(folder=folder)


@pytest.mark.data
@pytest.mark.skipif("MANYARMS_DATA" not in os.environ, reason="MANYARMS_DATA is not set")
@pytest.mark.parametrize(
    ("policy", "campaign", "items", "clicks", "least", "largest"),
    [("random", "men", 34, 46, 1 / 34, 1 / 34), ("bts", "women", 46, 46, 1e-6, 0.963)],
)
def test_the_real_samples(policy: str, campaign: str, items: int, clicks: int, least: float, largest: float) -> None:
    sample = read_open_bandit(policy, campaign)  # type: ignore[arg-type]
    log = sample.log
    assert (len(log), log.action_count, log.rewards.sum()) == (10_000, items, clicks)
    assert log.propensities is not None
    assert log.propensities.min() == pytest.approx(least, rel=0.05)
    assert log.propensities.max() == pytest.approx(largest, rel=1e-3)
    assert (np.diff(log.timestamps) >= np.timedelta64(0, "us")).all()
