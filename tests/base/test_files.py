"""Paths that cannot be, files in the place of folders, folders in the place of files: said beforehand, with path and reason."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from manyarms._base.files import (
    as_path,
    open_regular,
    present,
    require_file,
    require_folder,
    write_text_atomically,
)
from manyarms.errors import InvalidInput, StorageError

NO_PATHS: dict[str, Any] = {
    "nul": "a\0b", "surrogate": "\ud800", "empty": "", "none": None, "number": 3, "list": ["a"], "bytes": b"a"
}  # fmt: skip


@pytest.mark.parametrize("path", NO_PATHS.values(), ids=NO_PATHS)
def test_what_is_no_path_is_refused_by_name(path: Any) -> None:
    with pytest.raises(InvalidInput, match="out: expected a path"):
        as_path("out", path)
    with pytest.raises(InvalidInput, match="path: expected a path"):
        write_text_atomically(path, "x")


def test_any_other_text_is_a_path(tmp_path: Path) -> None:
    for name in ("[red]x", "[/]", "a b", "ψ", "\udc80", "-", "x" * 255, "a\nb"):
        write_text_atomically(tmp_path / name, "x")
        assert (tmp_path / name).read_text() == "x"


@pytest.fixture
def places(tmp_path: Path) -> dict[str, Path]:
    (tmp_path / "file").write_text("x")
    (tmp_path / "folder").mkdir()
    (tmp_path / "nowhere").symlink_to(tmp_path / "gone")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    return {
        "a file": tmp_path / "file", "inside a file": tmp_path / "file" / "deep" / "out", "too long": tmp_path / ("x" * 300),
        "inside a name too long": tmp_path / ("x" * 300) / "out", "a link to nothing": tmp_path / "nowhere",
        "a loop": tmp_path / "loop" / "out",
    }  # fmt: skip


BAD = ("a file", "inside a file", "too long", "inside a name too long", "a link to nothing", "a loop")


@pytest.mark.parametrize("which", BAD)
def test_a_folder_that_cannot_be_written_is_refused_beforehand(places: dict[str, Path], which: str) -> None:
    before = sorted(places["a file"].parent.rglob("*"))
    with pytest.raises(StorageError, match="cannot be written") as refusal:
        require_folder("--out", places[which])
    assert str(places[which]) in str(refusal.value)
    assert sorted(places["a file"].parent.rglob("*")) == before


@pytest.mark.parametrize("which", [name for name in BAD if name not in ("a file", "a link to nothing")])
def test_a_file_that_cannot_be_written_is_refused_beforehand(places: dict[str, Path], which: str) -> None:
    for refuse in (lambda path: require_file("--out", path), lambda path: write_text_atomically(path, "x")):
        with pytest.raises(StorageError, match="cannot be written") as refusal:
            refuse(places[which])
        assert str(places[which]) in str(refusal.value)


def test_a_folder_in_the_place_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "report.html").mkdir()
    for refuse in (
        lambda: require_folder("--out", tmp_path, "report.html"),
        lambda: require_file("--out", tmp_path / "report.html"),
        lambda: write_text_atomically(tmp_path / "report.html", "x"),
    ):
        with pytest.raises(StorageError, match=r"there is a folder 'report\.html' in its place"):
            refuse()
    assert sorted(tmp_path.iterdir()) == [tmp_path / "report.html"]


def test_a_file_in_the_place_of_a_folder_inside(tmp_path: Path) -> None:
    (tmp_path / "parts").write_text("")
    with pytest.raises(StorageError, match="there is a file 'parts' in the place of a folder"):
        require_folder("--out", tmp_path, folders=("parts",))


def test_what_can_be_written_is_not_made_yet(tmp_path: Path) -> None:
    assert require_folder("--out", tmp_path / "a" / "b", "report.html", folders=("parts",)) == tmp_path / "a" / "b"
    assert require_file("--out", str(tmp_path / "a" / "b.html")) == tmp_path / "a" / "b.html"
    require_file("--out", "relative.html")
    require_folder("--out", Path("out/deep"))
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(os.name == "nt" or os.getuid() == 0, reason="whoever is root may write anywhere")
def test_no_permission(tmp_path: Path) -> None:
    (tmp_path / "locked").mkdir(mode=0o555)
    for path in (tmp_path / "locked", tmp_path / "locked" / "inside"):
        with pytest.raises(StorageError, match="no permission"):
            require_folder("--out", path)


def test_no_permission_as_the_system_tells_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: not os.fspath(path).endswith("locked"))
    (tmp_path / "locked").mkdir()
    for path in (tmp_path / "locked", tmp_path / "locked" / "inside"):
        with pytest.raises(StorageError, match="no permission to write in"):
            require_folder("--out", path)


def test_absence_is_told_from_what_cannot_be_known(tmp_path: Path) -> None:
    assert present(tmp_path) and not present(tmp_path / "x") and not present(Path(__file__) / "x")
    with pytest.raises(StorageError, match="cannot be read: File name too long"):
        present(tmp_path / ("x" * 300))


@pytest.mark.skipif(os.name == "nt", reason="Windows has no pipes of this kind")
@pytest.mark.parametrize("follow", [True, False])
@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (os.mkfifo, "a named pipe"),
        (os.mkdir, "a folder"),
        (lambda path: path.symlink_to("/dev/zero"), "a device|a link"),
    ],
)
def test_only_regular_files_are_opened(
    tmp_path: Path, make: Callable[[Path], object], reason: str, follow: bool
) -> None:
    make(tmp_path / "x")
    with pytest.raises(OSError, match=rf"({reason}).*, not a regular file"):
        open_regular(tmp_path / "x", follow=follow)


def test_a_link_is_followed_only_where_it_may_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    with open_regular(tmp_path / "link", follow=True) as stream:
        assert stream.read() == b"x"
    with pytest.raises(OSError, match="a link, which is not followed"):
        open_regular(tmp_path / "link")
