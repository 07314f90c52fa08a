"""Logs that are no files, or unpack to more than anybody has: refused at once, with a DataError that names them."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from manyarms.errors import DataError, InvalidInput
from manyarms.logs import (
    embeddings,
    files,
    inspect,
    open_log,
    read_csv,
    read_embeddings,
    read_parquet,
    to_csv,
    to_parquet,
)
from manyarms.logs.data import LoggedData

READERS: dict[str, tuple[str, Callable[[Path], Any]]] = {
    "open_log csv": ("x.csv", open_log), "open_log parquet": ("x.parquet", open_log), "inspect": ("x.csv.gz", inspect),
    "read_csv": ("x.csv", read_csv), "read_parquet": ("x.parquet", read_parquet), "dsjson": ("x.dsjson", open_log),
    "embeddings npy": ("x.npy", read_embeddings), "embeddings parquet": ("x.parquet", read_embeddings),
}  # fmt: skip
KINDS: dict[str, Callable[[Path], object]] = {
    "pipe": os.mkfifo, "folder": os.mkdir, "device": lambda path: path.symlink_to("/dev/zero"),
    "loop": lambda path: path.symlink_to(path), "nothing": lambda path: None,
}  # fmt: skip


@pytest.mark.skipif(os.name == "nt", reason="Windows has none of these")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reader", READERS)
def test_what_is_no_file_is_not_read(reader: str, kind: str, tmp_path: Path) -> None:
    if "parquet" in reader:
        pytest.importorskip("pyarrow")
    name, read = READERS[reader]
    KINDS[kind](tmp_path / name)
    with pytest.raises(DataError, match=name):
        read(tmp_path / name)


@pytest.mark.parametrize("path", ["a\0b.csv", "\ud800.csv", "", None, 3, ["a.csv"]])
def test_what_is_no_path(path: Any) -> None:
    for read in (read_csv, read_embeddings):
        with pytest.raises(InvalidInput, match="expected a path"):
            read(path)
    for read in (open_log, inspect):  # which take frames as well
        with pytest.raises(InvalidInput, match=r"expected a (path|data frame)"):
            read(path)


@pytest.mark.parametrize("path", ["x" * 5000 + ".csv", "/etc/hostname/x.csv"])
def test_paths_that_cannot_be(path: str) -> None:
    for read in (open_log, inspect, read_csv):
        with pytest.raises(DataError, match=r"no such file|cannot be read"):
            read(path)


def a_log() -> LoggedData:
    return LoggedData(np.ones((4, 2)), [0, 1, 2, 0], np.ones(4), 3, np.full(4, 0.5))


def test_a_link_to_a_log_is_followed(tmp_path: Path) -> None:
    to_csv(a_log(), tmp_path / "log.csv")
    (tmp_path / "link.csv").symlink_to(tmp_path / "log.csv")
    assert len(read_csv(tmp_path / "link.csv")) == 4


@pytest.mark.parametrize("write", [to_csv, to_parquet])
@pytest.mark.parametrize("path", ["folder", "file/inside", "x" * 300])
def test_writing_where_it_cannot_be(write: Callable[..., None], path: str, tmp_path: Path) -> None:
    if write is to_parquet:
        pytest.importorskip("pyarrow")
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="cannot be written") as refusal:
        write(a_log(), tmp_path / path)
    assert str(tmp_path / path) in str(refusal.value)
    assert sorted(tmp_path.iterdir()) == [tmp_path / "file", tmp_path / "folder"]


def test_a_bomb_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "HARMLESS", 1 << 17)
    line = b"0,0,1,0.5\n"
    path = tmp_path / "log.csv.gz"
    path.write_bytes(gzip.compress(b"context,action,reward,propensity\n" + line * 40_000))
    for read in (read_csv, inspect):
        with pytest.raises(DataError, match=r"log\.csv\.gz: unpacks to more than 200 times its size"):
            read(path)


def test_a_log_that_shrinks_well_is_read(tmp_path: Path) -> None:
    rows = "".join(f"{i % 7},{i % 3},{i % 2},0.5\n" for i in range(20_000))
    (tmp_path / "log.csv.gz").write_bytes(gzip.compress(("context,action,reward,propensity\n" + rows).encode()))
    assert len(read_csv(tmp_path / "log.csv.gz")) == 20_000


def test_embeddings_that_lie_about_their_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embeddings, "HARMLESS", 1 << 17)
    np.save(tmp_path / "x.npy", np.ones((3, 2)))
    content = (tmp_path / "x.npy").read_bytes()
    (tmp_path / "x.npy").write_bytes(content.replace(b"(3, 2), }" + b" " * 12, b"(3000000000000, 2), }"))
    with pytest.raises(DataError, match=r"x\.npy: no readable NumPy file"):
        read_embeddings(tmp_path / "x.npy")
    np.savez_compressed(tmp_path / "y.npz", embeddings=np.zeros((1 << 15, 8)))
    with pytest.raises(DataError, match=r"y\.npz: unpacks to .* bytes"):
        read_embeddings(tmp_path / "y.npz")


def test_a_file_of_more_rows_than_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyarrow")
    from manyarms.logs.formats import parquet

    many = LoggedData(np.ones((3_000_000, 1)), np.zeros(3_000_000, dtype=int), np.ones(3_000_000), 3)
    to_parquet(many, tmp_path / "log.parquet", rows_per_group=3_000_000)
    assert open_log(tmp_path / "log.parquet").action_count == 3
    monkeypatch.setattr(parquet, "HARMLESS_ROWS", 1 << 20)
    monkeypatch.setattr(parquet, "MOST_ROWS_A_BYTE", 10)
    with pytest.raises(DataError, match="states 3,000,000 rows in"):
        open_log(tmp_path / "log.parquet")
