"""Whatever is missing, damaged, foreign or of another version is refused, with the file and the reason."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyarms._base import storage
from manyarms._base.storage import read, save
from manyarms.errors import StorageError
from manyarms.policies import UniformPolicy

SPEC: dict[str, Any] = {"noise": 0.1}
ARRAYS = {"G": np.arange(12.0).reshape(3, 4), "ids": np.array([3, 1, 2])}


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    folder = tmp_path / "state"
    save(folder, "thing", SPEC, ARRAYS)
    return folder


def rewrite(folder: Path, change: Callable[[dict[str, Any]], object], *, sealed: bool = True) -> None:
    """Edit the manifest; sealed: with a checksum that fits, so that the checks behind it are reached."""
    manifest = json.loads((folder / "manifest.json").read_text())
    change(manifest)
    if sealed:
        manifest["sha256"] = storage._manifest_checksum(manifest)
    (folder / "manifest.json").write_text(json.dumps(manifest))


def refuses(folder: Path, reason: str) -> None:
    with pytest.raises(StorageError, match=reason):
        read(folder, "thing")


def test_a_missing_folder(tmp_path: Path) -> None:
    refuses(tmp_path / "nowhere", r"nowhere: no such folder")


def test_a_missing_manifest(tmp_path: Path) -> None:
    refuses(tmp_path, r"manifest\.json: missing")


@pytest.mark.parametrize("content", [b"", b"{", b'{"format": "manyarms"', b"\xff\xfe\xfa", b"[" * 100_000])
def test_a_manifest_that_is_not_json(saved: Path, content: bytes) -> None:
    (saved / "manifest.json").write_bytes(content)
    refuses(saved, r"manifest\.json: not valid JSON")


@pytest.mark.parametrize("content", ["[]", "null", "{}", '{"format": "safetensors", "version": 1}'])
def test_somebody_elses_manifest(saved: Path, content: str) -> None:
    (saved / "manifest.json").write_text(content)
    refuses(saved, r"manifest\.json: not written by manyarms")


@pytest.mark.parametrize("version", [0, 1, 2, 3, -1, "4", 4.0, True, None])
def test_another_version(saved: Path, version: object) -> None:
    rewrite(saved, lambda manifest: manifest.update(version=version))
    refuses(
        saved,
        rf"manifest\.json: written in format version {version!r}, which this release does not read: it reads version 4",
    )


def test_a_newer_version_is_named_before_anything_else_is_looked_at(saved: Path) -> None:
    (saved / "manifest.json").write_text('{"format": "manyarms", "version": 5, "other": "layout"}')
    refuses(
        saved,
        r"written in format version 5, which this release does not read: it reads version 4. Load it with the release",
    )


def test_another_kind(saved: Path) -> None:
    with pytest.raises(StorageError, match=r"holds 'thing', expected 'agent'"):
        read(saved, "agent")


def test_an_edited_spec(saved: Path) -> None:
    rewrite(saved, lambda manifest: manifest["spec"].update(noise=0.11), sealed=False)
    refuses(saved, r"manifest\.json: damaged or edited")


@pytest.mark.parametrize(
    "change",
    [
        lambda manifest: manifest.pop("spec"),
        lambda manifest: manifest.update(spec=[]),
        lambda manifest: manifest.pop("arrays"),
        lambda manifest: manifest["arrays"].pop("names"),
        lambda manifest: manifest["arrays"].pop("sha256"),
        lambda manifest: manifest["arrays"].update(file="../manifest.json"),
        lambda manifest: manifest["arrays"].update(file=None),
    ],
)
def test_an_incomplete_manifest(saved: Path, change: Callable[[dict[str, Any]], object]) -> None:
    rewrite(saved, change)
    refuses(saved, r"manifest\.json: incomplete")


def test_missing_arrays(saved: Path) -> None:
    next(saved.glob("*.npz")).unlink()
    refuses(saved, r"arrays-[0-9a-f]{16}\.npz: missing")


def test_truncated_and_changed_arrays(saved: Path) -> None:
    path = next(saved.glob("*.npz"))
    content = path.read_bytes()
    for damaged in (b"", content[:-1], content[: len(content) // 2], content + b"\0", b"\0" + content[1:]):
        path.write_bytes(damaged)
        refuses(saved, r"\.npz: damaged: its checksum does not match")


def seal_arrays(folder: Path, content: bytes) -> None:
    """Put other arrays in place, with checksums that fit everywhere: only the checks behind them can object."""
    path = next(folder.glob("*.npz"))
    path.write_bytes(content)
    rewrite(folder, lambda manifest: manifest["arrays"].update(sha256=hashlib.sha256(content).hexdigest()))


def test_arrays_that_are_no_npz(saved: Path) -> None:
    content = next(saved.glob("*.npz")).read_bytes()
    for broken in (b"", b"no zip at all", content[: len(content) // 2]):
        seal_arrays(saved, broken)
        refuses(saved, r"\.npz: not a readable \.npz file")


def test_a_pickle_inside_the_arrays_is_never_opened(saved: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "evil.npz", G=np.array([{"a": 1}], dtype=object), ids=ARRAYS["ids"])
    seal_arrays(saved, (tmp_path / "evil.npz").read_bytes())
    refuses(saved, r"\.npz: not a readable \.npz file")


def test_a_member_that_is_cut_short(saved: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(next(saved.glob("*.npz"))) as whole, zipfile.ZipFile(tmp_path / "cut", "w") as cut:
        for name in whole.namelist():
            cut.writestr(name, whole.read(name)[:-8])
    seal_arrays(saved, (tmp_path / "cut").read_bytes())
    refuses(saved, r"\.npz: not a readable \.npz file")


@pytest.mark.parametrize(
    ("arrays", "reason"),
    [
        ({"G": ARRAYS["G"]}, r"holds the arrays \['G'\], but manifest\.json states \['G', 'ids'\]"),
        ({**ARRAYS, "extra": np.ones(1)}, r"holds the arrays \['G', 'extra', 'ids'\]"),
        ({**ARRAYS, "G": ARRAYS["G"].T}, r"the array 'G' is .*\[4, 3\].*states .*\[3, 4\]"),
        ({**ARRAYS, "G": ARRAYS["G"].astype(np.float32)}, r"the array 'G' is .*<f4.*states .*<f8"),
    ],
    ids=["one missing", "one too many", "another shape", "another type"],
)
def test_arrays_that_are_not_what_the_manifest_states(
    saved: Path, tmp_path: Path, arrays: dict[str, Any], reason: str
) -> None:
    np.savez(tmp_path / "other.npz", **arrays)
    seal_arrays(saved, (tmp_path / "other.npz").read_bytes())
    refuses(saved, reason)


@given(data=st.data())
def test_one_flipped_bit_is_never_mistaken_for_the_truth(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("flip")
    save(folder, "thing", SPEC, ARRAYS)
    path = data.draw(st.sampled_from(sorted(folder.iterdir())))
    content = bytearray(path.read_bytes())
    position = data.draw(st.integers(0, len(content) - 1))
    content[position] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(content)
    try:
        spec, arrays = read(folder, "thing")
    except StorageError as error:
        assert str(folder) in str(error)
    else:  # only white space between the manifest's entries may have changed
        assert spec == SPEC
        assert {name: array.tolist() for name, array in arrays.items()} == {k: v.tolist() for k, v in ARRAYS.items()}


def test_a_part_of_a_store_may_be_one_version_older(saved: Path) -> None:
    """Stores live on; folders are loaded by the release that wrote them. Checksums hold for both."""
    policy = saved.parent / "policy"
    UniformPolicy(3).save(policy)

    def older(manifest: dict[str, Any]) -> None:
        manifest["version"] = 3
        manifest["spec"].pop("schema")

    rewrite(policy, older)
    with pytest.raises(StorageError, match="format version 3"):
        storage.load(policy)
    again = storage.load_part(policy, UniformPolicy)
    assert again.action_count == 3 and not again.schema
    rewrite(policy, lambda manifest: manifest.update(version=2))
    with pytest.raises(StorageError, match="format version 2"):
        storage.load_part(policy)
