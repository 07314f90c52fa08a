"""Folders made to harm whoever loads them, checksums and all: refused, before they cost time, memory or more."""

from __future__ import annotations

import ast
import hashlib
import io
import json
import os
import socket
import tracemalloc
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from manyarms._base import npz, storage
from manyarms._base.storage import read, save
from manyarms.errors import InvalidInput, StorageError

ARRAYS = {"G": np.arange(12.0).reshape(3, 4), "ids": np.array([3, 1, 2])}


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    folder = tmp_path / "state"
    save(folder, "thing", {"noise": 0.1}, ARRAYS)
    return folder


def arrays_file(folder: Path) -> Path:
    return next(folder.glob("*.npz"))


def seal(folder: Path, content: bytes, **names: Any) -> None:
    """Put other arrays in place, and let the manifest say so, with all checksums right."""
    arrays_file(folder).write_bytes(content)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["arrays"]["sha256"] = hashlib.sha256(content).hexdigest()
    manifest["arrays"]["names"].update(names)
    manifest["sha256"] = storage._manifest_checksum(manifest)
    (folder / "manifest.json").write_text(json.dumps(manifest))


def archive(members: list[tuple[str, bytes]], compression: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names that come twice
        for name, content in members:
            file.writestr(name, content)
    return buffer.getvalue()


def npy(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def header(shape: str, descr: str, content: bytes = b"") -> bytes:
    text = f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': {shape}, }}"
    text += " " * (-(len(text) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode() + content


GOOD = [(f"{name}.npy", npy(array)) for name, array in ARRAYS.items()]


# ---- sizes


def test_a_small_file_cannot_inflate(saved: Path) -> None:
    bomb = np.zeros(1 << 22)
    content = archive([("G.npy", npy(bomb)), GOOD[1]], zipfile.ZIP_DEFLATED)
    assert len(content) < 1 << 18
    seal(saved, content, G=npz.describe_array(bomb))
    tracemalloc.start()
    with pytest.raises(StorageError, match="compressed, which saved arrays never are"):
        read(saved, "thing")
    assert tracemalloc.get_traced_memory()[1] < 1 << 22
    tracemalloc.stop()


@pytest.mark.parametrize(
    ("shape", "descr"),
    [
        ("(1099511627776,)", "<f8"),
        ("(3, 4, 9999999999999999999999999999)", "<f8"),
        ("()", "|S2147483647"),
        ("(281474976710656,)", "|S0"),
        ("(-3, -4)", "<f8"),
    ],
    ids=["a terabyte", "more than integers hold", "one long string", "strings of nothing", "negative"],
)
def test_a_header_that_lies_about_its_size(saved: Path, shape: str, descr: str) -> None:
    content = archive([("G.npy", header(shape, descr, bytes(96))), GOOD[1]])
    stated = {"shape": list(ast.literal_eval(shape)), "dtype": descr}
    seal(saved, content, G=stated)
    with pytest.raises(StorageError, match=r"not a readable \.npz file"):
        read(saved, "thing")


@pytest.mark.parametrize("descr", ["|O", "|V8", "<M8[s]", "<f16,<f8", "nonsense"])
def test_types_that_are_not_plain(saved: Path, descr: str) -> None:
    content = archive([("G.npy", header("(1,)", descr, bytes(64))), GOOD[1]])
    seal(saved, content, G={"shape": [1], "dtype": descr})
    with pytest.raises(StorageError, match=r"not a readable \.npz file"):
        read(saved, "thing")


def test_a_name_that_comes_twice(saved: Path) -> None:
    seal(saved, archive([*GOOD, GOOD[0]]))
    with pytest.raises(StorageError, match="'G' twice"):
        read(saved, "thing")


def test_a_manifest_of_any_length_is_not_read(saved: Path) -> None:
    with (saved / "manifest.json").open("r+b") as stream:
        stream.truncate(1 << 40)  # a hole: it takes no room on the disk
    with pytest.raises(StorageError, match="which no manifest has"):
        read(saved, "thing")


def test_a_manifest_that_could_not_be_read_is_not_written(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "_MOST_OF_A_MANIFEST", 10_000)
    with pytest.raises(InvalidInput, match="spec: expected at most 10,000"):
        save(saved, "thing", {"text": "x" * 20_000}, ARRAYS)
    assert read(saved, "thing")[0] == {"noise": 0.1}
    assert len(list(saved.iterdir())) == 2


def test_arrays_that_do_not_fit_into_memory_are_not_read(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(npz, "SMALL", 10)
    monkeypatch.setattr(npz.memory, "available", lambda: 100)
    with pytest.raises(StorageError, match="more than there is memory for"):
        read(saved, "thing")


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e999"])
def test_numbers_that_are_none(saved: Path, number: str) -> None:
    text = (saved / "manifest.json").read_text()
    (saved / "manifest.json").write_text(text.replace("0.1", number))
    with pytest.raises(StorageError, match=r"not valid JSON: .* is not a finite number"):
        read(saved, "thing")


# ---- what is no file


def fifo(path: Path) -> None:
    os.mkfifo(path)


def folder(path: Path) -> None:
    path.mkdir()


def listener(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.path.relpath(path))


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def loop(path: Path) -> None:
    path.symlink_to(path.name)


KINDS = {"pipe": fifo, "folder": folder, "socket": listener, "link to a device": device, "loop": loop}


@pytest.mark.skipif(os.name == "nt", reason="Windows has none of these")
@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("which", ["manifest", "arrays"])
def test_what_is_no_regular_file_is_not_opened(
    saved: Path, which: str, make: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(saved)  # names of sockets must be short
    path = saved / "manifest.json" if which == "manifest" else arrays_file(saved)
    path.unlink()
    make(path)
    with pytest.raises(StorageError, match="not a regular file"):
        read(saved, "thing")


@pytest.mark.skipif(os.name == "nt", reason="links need a permission there")
@pytest.mark.parametrize("which", ["manifest", "arrays"])
def test_links_are_not_followed_but_to_the_folder_itself(saved: Path, tmp_path: Path, which: str) -> None:
    (tmp_path / "link").symlink_to(saved)
    assert read(tmp_path / "link", "thing")[0] == {"noise": 0.1}
    path = saved / "manifest.json" if which == "manifest" else arrays_file(saved)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorageError, match="a link, which is not followed"):
        read(saved, "thing")


# ---- paths

PATHS: dict[str, Any] = {
    "nul": "a\0b", "surrogate": "\ud800", "empty": "", "none": None, "number": 3, "list": ["a"], "bytes": b"a"
}  # fmt: skip


@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
def test_what_is_no_path(path: Any) -> None:
    for call in (lambda: save(path, "thing", {}, {}), lambda: read(path, "thing"), lambda: storage.load(path)):
        with pytest.raises(InvalidInput, match="folder: expected a path"):
            call()


@pytest.mark.parametrize("path", ["x" * 100_000, "manifest.json/inside"], ids=["long", "inside a file"])
def test_paths_that_cannot_be(saved: Path, path: str) -> None:
    with pytest.raises(StorageError, match="cannot be written"):
        save(saved / path, "thing", {}, {})
    with pytest.raises(StorageError, match=r"no such folder|cannot be read"):
        read(saved / path, "thing")
