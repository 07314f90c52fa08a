"""A save is whole or it is not there; what comes back is what went in."""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from manyarms._base import storage
from manyarms._base.files import write_bytes_atomically, write_text_atomically
from manyarms._base.storage import read, save
from manyarms.errors import InvalidInput, StorageError

OLD_SPEC: dict[str, Any] = {"generation": "old", "noise": 0.1}
NEW_SPEC: dict[str, Any] = {"generation": "new", "noise": 0.2}
OLD_ARRAYS = {"G": np.arange(12.0).reshape(3, 4), "ids": np.array([3, 1, 2])}
NEW_ARRAYS = {"G": np.full((5, 2), math.pi), "B": np.array([math.nan, math.inf, -0.0])}


def assert_holds(folder: Path, spec: dict[str, Any], arrays: dict[str, Any], kind: str = "thing") -> None:
    found_spec, found = read(folder, kind)
    assert found_spec == spec
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype
        assert found[name].shape == array.shape
        assert found[name].tobytes() == array.tobytes()  # to the bit, NaN and the sign of zero included


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    folder = tmp_path / "deep" / "state"
    save(folder, "thing", OLD_SPEC, OLD_ARRAYS)
    return folder


# ---- what goes in comes out

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(2**400), 2**400)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
plain_arrays: st.SearchStrategy[Any] = hnp.arrays(
    dtype=st.sampled_from(["f8", "f4", "i8", "i4", "u1", "?", "c16", "U3", "S2", ">f8"]).map(np.dtype),
    shape=hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
)
array_names = st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_./-]{0,8}", fullmatch=True)


@given(spec=st.dictionaries(st.text(), json_values, max_size=5), arrays=st.dictionaries(array_names, plain_arrays))
def test_round_trip_is_exact(
    tmp_path_factory: pytest.TempPathFactory, spec: dict[str, Any], arrays: dict[str, Any]
) -> None:
    folder = tmp_path_factory.mktemp("save")
    save(folder, "thing", spec, arrays)
    assert_holds(folder, spec, arrays)
    # == does not tell True from 1, 1.0 from 1, nor -0.0 from 0.0; the text does
    assert json.dumps(read(folder, "thing")[0]) == json.dumps(spec)


def test_a_generator_goes_on_where_it_was(tmp_path: Path, rng: np.random.Generator) -> None:
    rng.normal(size=7)
    save(tmp_path, "rng", {"state": dict(rng.bit_generator.state)}, {})
    other = np.random.default_rng()
    other.bit_generator.state = read(tmp_path, "rng")[0]["state"]
    assert other.normal(size=5).tolist() == rng.normal(size=5).tolist()


def test_arrays_of_any_layout_and_awkward_names(tmp_path: Path) -> None:
    grid = np.arange(24.0).reshape(4, 6)
    arrays = {"file": grid.T, "self": grid[::2, ::3], "allow_pickle": np.asfortranarray(grid), "leaf/0.mean": grid}
    save(tmp_path, "thing", {}, arrays)
    found = read(tmp_path, "thing")[1]
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)
        found[name][...] = 0  # writable, and nobody else's


def test_nothing_to_store_is_fine(tmp_path: Path) -> None:
    save(str(tmp_path), "thing", {}, {})
    assert read(str(tmp_path), "thing") == ({}, {})


def test_the_manifest_says_what_is_there(saved: Path) -> None:
    manifest = json.loads((saved / "manifest.json").read_text())
    arrays = manifest["arrays"]
    assert (manifest["format"], manifest["version"], manifest["kind"]) == ("manyarms", 4, "thing")
    assert manifest["spec"] == OLD_SPEC
    assert isinstance(manifest["library"], str)
    assert arrays["names"]["G"] == {"shape": [3, 4], "dtype": "<f8"}
    assert arrays["file"] == f"arrays-{arrays['sha256'][:16]}.npz"
    assert hashlib.sha256((saved / arrays["file"]).read_bytes()).hexdigest() == arrays["sha256"]
    with np.load(saved / arrays["file"], allow_pickle=False) as npz:  # an ordinary .npz to everybody else
        np.testing.assert_array_equal(npz["G"], OLD_ARRAYS["G"])


def test_equal_content_makes_equal_files(tmp_path: Path) -> None:
    for name in ("one", "two"):
        save(tmp_path / name, "thing", OLD_SPEC, OLD_ARRAYS)
    contents = [{p.name: p.read_bytes() for p in (tmp_path / name).iterdir()} for name in ("one", "two")]
    assert contents[0] == contents[1]


# ---- saving again


def test_overwriting_leaves_only_the_new_save(saved: Path) -> None:
    (saved / "notes.txt").write_text("somebody else's")
    (saved / ".arrays.npz.0123456789abcdef.tmp").write_bytes(b"left by a save that was killed")
    save(saved, "thing", NEW_SPEC, NEW_ARRAYS)
    assert_holds(saved, NEW_SPEC, NEW_ARRAYS)
    assert len(files(saved)) == 3
    assert {"manifest.json", "notes.txt"} < files(saved)


def test_saving_the_same_arrays_again_keeps_them(saved: Path) -> None:
    save(saved, "thing", NEW_SPEC, OLD_ARRAYS)
    assert_holds(saved, NEW_SPEC, OLD_ARRAYS)


def test_saving_mends_a_damaged_folder(saved: Path) -> None:
    next(saved.glob("*.npz")).write_bytes(b"")
    (saved / "manifest.json").write_text("{")
    save(saved, "thing", OLD_SPEC, OLD_ARRAYS)
    assert_holds(saved, OLD_SPEC, OLD_ARRAYS)


STEPS = ("fsync", "replace", "unlink")


@pytest.mark.parametrize("new_arrays", [NEW_ARRAYS, OLD_ARRAYS], ids=["new arrays", "same arrays"])
def test_a_crash_at_any_step_leaves_the_old_save_or_the_new_one(
    saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, new_arrays: dict[str, Any]
) -> None:
    """What a crash would leave behind is what the disk holds before and after each step: take copies, load them."""
    copies: list[Path] = []

    def photograph() -> None:
        copies.append(tmp_path / f"copy-{len(copies)}")
        shutil.copytree(saved, copies[-1])

    def watch(step: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*args: Any, **kwargs: Any) -> Any:
            photograph()
            result = step(*args, **kwargs)
            photograph()
            return result

        return watched

    with monkeypatch.context() as patch:
        for name in STEPS:
            patch.setattr(os, name, watch(getattr(os, name)))
        save(saved, "thing", NEW_SPEC, new_arrays)

    generations = [read(copy, "thing")[0]["generation"] for copy in copies]
    assert {"old", "new"} == set(generations)
    assert generations == sorted(generations, key=["old", "new"].index), "once new, never old again"
    for copy, generation in zip(copies, generations, strict=True):
        if generation == "old":
            assert_holds(copy, OLD_SPEC, OLD_ARRAYS)
        else:
            assert_holds(copy, NEW_SPEC, new_arrays)
        save(copy, "thing", OLD_SPEC, OLD_ARRAYS)  # and the next save clears up after the crash
        assert len(files(copy)) == 2


class Killed(BaseException):
    """Not an Exception: nothing in the library may swallow it."""


def count_steps(monkeypatch: pytest.MonkeyPatch, fail_at: int, error: BaseException) -> list[str]:
    """Count the calls of os.fsync and os.replace from here on, and let the one numbered `fail_at` raise."""
    calls: list[str] = []

    def breaking(name: str, step: Callable[..., Any]) -> Callable[..., Any]:
        def called(*args: Any, **kwargs: Any) -> Any:
            calls.append(name)
            if len(calls) - 1 == fail_at:
                raise error
            return step(*args, **kwargs)

        return called

    for name in ("fsync", "replace"):
        monkeypatch.setattr(os, name, breaking(name, getattr(os, name)))
    return calls


ORDER = ["fsync", "replace", "fsync", "fsync", "replace", "fsync"]  # file, rename, folder: for arrays, then manifest


def test_content_is_on_disk_before_it_gets_its_name(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        calls = count_steps(patch, fail_at=-1, error=Killed())
        save(saved, "thing", NEW_SPEC, NEW_ARRAYS)
    assert calls == ORDER


@pytest.mark.parametrize("step", range(len(ORDER)))
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), Killed()], ids=["disk full", "killed"])
def test_a_failing_step_leaves_the_old_save(
    saved: Path, monkeypatch: pytest.MonkeyPatch, step: int, error: BaseException
) -> None:
    with monkeypatch.context() as patch:
        count_steps(patch, fail_at=step, error=error)
        with pytest.raises(StorageError if isinstance(error, OSError) else Killed):
            save(saved, "thing", NEW_SPEC, NEW_ARRAYS)
    assert not list(saved.glob(".*.tmp"))
    if step < len(ORDER) - 1:
        assert_holds(saved, OLD_SPEC, OLD_ARRAYS)
    else:  # only the last flush failed: the new manifest is in place already
        assert_holds(saved, NEW_SPEC, NEW_ARRAYS)


def test_a_first_save_that_fails_leaves_nothing_that_loads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        count_steps(patch, fail_at=3, error=Killed())
        with pytest.raises(Killed):
            save(tmp_path, "thing", NEW_SPEC, NEW_ARRAYS)
    with pytest.raises(StorageError, match=r"manifest\.json: missing"):
        read(tmp_path, "thing")


def test_a_reader_that_is_overtaken_by_a_save_gets_the_new_one(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check = storage._check_kind

    def overtaken(*args: Any) -> None:
        monkeypatch.setattr(storage, "_check_kind", check)
        save(saved, "thing", NEW_SPEC, NEW_ARRAYS)
        check(*args)

    monkeypatch.setattr(storage, "_check_kind", overtaken)
    assert_holds(saved, NEW_SPEC, NEW_ARRAYS)


# ---- what cannot be saved


@pytest.mark.parametrize(
    "value",
    [(1, 2), {1: "one"}, math.nan, math.inf, np.int64(3), np.ones(2), b"bytes", {1, 2}, 1 << 20_000],
    ids=lambda value: type(value).__name__,
)
def test_a_spec_that_json_would_change_is_refused(saved: Path, value: object) -> None:
    with pytest.raises(InvalidInput, match=r"spec\['deep'\]\[1\]"):
        save(saved, "thing", {"deep": [0, value]}, NEW_ARRAYS)
    assert_holds(saved, OLD_SPEC, OLD_ARRAYS)


@pytest.mark.parametrize(
    "array",
    [np.array([{}, None], dtype=object), np.zeros(2, dtype=[("a", "f8")]), np.zeros(1, dtype="M8[s]")],
    ids=["object", "record", "date"],
)
def test_arrays_of_anything_but_plain_values_are_refused(saved: Path, array: Any) -> None:
    with pytest.raises(InvalidInput, match=r"arrays\['G'\]"):
        save(saved, "thing", NEW_SPEC, {"G": array})
    assert_holds(saved, OLD_SPEC, OLD_ARRAYS)


@pytest.mark.parametrize("name", ["", "/etc/x", "../x", "a\0b", "a b", "ψ", 3])
def test_array_names_are_plain(saved: Path, name: Any) -> None:
    with pytest.raises(InvalidInput, match="arrays"):
        save(saved, "thing", NEW_SPEC, {name: np.ones(1)})
    assert_holds(saved, OLD_SPEC, OLD_ARRAYS)


def test_a_file_where_the_folder_should_be(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(StorageError, match=r"taken: cannot be written: '.*taken' is a file, not a folder"):
        save(tmp_path / "taken", "thing", {}, {})
    for call in (lambda: read(tmp_path / "taken", "thing"), lambda: storage.load(tmp_path / "taken")):
        with pytest.raises(StorageError, match=r"taken: is a file, not a folder"):
            call()


# ---- plain files


def test_atomic_writes(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "report.html"
    write_text_atomically(path, "σ² ± 1\n")
    assert path.read_bytes() == "σ² ± 1\n".encode()
    write_bytes_atomically(str(path), b"\x00\xff")
    assert path.read_bytes() == b"\x00\xff"
    assert files(path.parent) == {"report.html"}


@pytest.mark.parametrize("step", range(2))
def test_an_atomic_write_that_fails_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    path = tmp_path / "claims.json"
    write_text_atomically(path, "old")
    with monkeypatch.context() as patch:
        count_steps(patch, fail_at=step, error=OSError(28, "No space left on device"))
        with pytest.raises(StorageError, match="No space left"):
            write_text_atomically(path, "new")
    assert path.read_text() == "old"
    assert files(tmp_path) == {"claims.json"}
