"""Files on disk: paths that can be one, atomic writing, and reading of what is a file and nothing else.

Writing: a file appears complete, or not at all. The content goes to a temporary file in the same folder (so on the same file
system), is flushed to the disk, and only then gets its name in one step. A reader, or a crash, meets the old file or the new one,
never half of either. What the system refuses (no permission, a full disk, a folder of that name) is a StorageError that says
which path and why; `require_folder` and `require_file` find out beforehand, where work of minutes would otherwise come first.

Reading: `open_regular` opens regular files alone. A pipe would make the reader wait for ever, and a device may have no end.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO

from manyarms._base.validate import describe
from manyarms.errors import InvalidInput, StorageError

_LONGEST_STEM = 40  # of a temporary's name, which must not be too long where the file's own name is just short enough
_KINDS = {
    stat.S_IFDIR: "a folder", stat.S_IFLNK: "a link, which is not followed", stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device",
}  # fmt: skip


def as_path(name: str, value: object) -> Path:
    """A path that the system can be asked about: text or a `pathlib.Path`, without NUL, spelled in characters that it has."""
    try:
        text = os.fspath(value)  # type: ignore[call-overload]
        fits = isinstance(text, str) and bool(text) and "\0" not in text and bool(os.fsencode(text))
    except (TypeError, UnicodeEncodeError):  # a lone surrogate stands for no byte
        fits = False
    if not fits:
        raise InvalidInput(
            name, describe(value), "a path: text that is not empty and has no NUL in it, or a pathlib.Path"
        )
    return Path(text)


def reason(error: OSError) -> str:
    """What the system said, without the number and the path."""
    return error.strerror or str(error) or type(error).__name__


# ---- writing


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn what the system refuses while `path` is written into a StorageError that names it."""
    try:
        yield
    except OSError as error:
        raise StorageError(f"{path}: cannot be written: {reason(error)}") from error


def write_atomically(path: Path | str, write: Callable[[BinaryIO], object], *, private: bool = False) -> None:
    """Let `write` fill a stream that becomes `path` when it is complete; missing parent folders are made.

    private: only the owner may read it, from the first byte on.
    """
    path = as_path("path", path)
    with writing(path):
        make_folder(path.parent)
        _refuse_folder(path)
        rename(write_temporary(path.parent, path.name, write, private=private), path)


def write_bytes_atomically(path: Path | str, data: bytes) -> None:
    """Write `data` to `path`; see `write_atomically`."""
    write_atomically(path, lambda stream: stream.write(data))


def write_text_atomically(path: Path | str, text: str) -> None:
    """Write `text` as UTF-8 to `path`; see `write_atomically`. A lone surrogate, which UTF-8 has not, is written as an escape."""
    write_bytes_atomically(path, text.encode("utf-8", "backslashreplace"))


def write_temporary(folder: Path, name: str, write: Callable[[BinaryIO], object], *, private: bool = False) -> Path:
    """A new file in `folder`, its content on the disk before this returns; for a name that depends on the content."""
    path = temporary_name(folder / name)
    mode = 0o600 if private else 0o666  # less what the umask takes away
    try:
        with open(path, "xb", opener=lambda file, flags: os.open(file, flags, mode)) as stream:
            write(stream)
            stream.flush()
            os.fsync(stream.fileno())
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return path


def temporary_name(path: Path) -> Path:
    """A name beside a file for what will become it, taken by nobody else."""
    return path.parent / f".{path.name[:_LONGEST_STEM]}.{os.urandom(8).hex()}.tmp"


def rename(temporary: Path, target: Path) -> None:
    """Give a temporary file its name."""
    try:
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    flush_folder(target.parent)


def flush_folder(folder: Path) -> None:
    """Make a rename durable: the name lives in the folder, not in the file."""
    if os.name == "nt":  # there a folder cannot be opened, and a rename needs no flush
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def require_folder(name: str, folder: Path | str, *files: str, folders: tuple[str, ...] = ()) -> Path:
    """A folder that can be written, before the work whose results go there; nothing is made yet.

    files, folders: what will be written in it, so that a folder in the place of a file, or the other way round, is found out too.
    """
    path = as_path(name, folder)
    with writing(path):
        if _writable(path):
            for file in files:
                _refuse_folder(path / file)
            for inner in folders:
                if os.path.lexists(path / inner) and not (path / inner).is_dir():
                    raise NotADirectoryError(errno.ENOTDIR, f"there is a file {inner!r} in the place of a folder")
    return path


def make_folder(path: Path) -> None:
    """A folder, with the missing ones above it; inside `writing`, so that a file in its place is said to be one."""
    if not path.is_dir():
        _writable(path)
        path.mkdir(parents=True, exist_ok=True)
        flush_folder(path.parent)


def require_file(name: str, file: Path | str) -> Path:
    """A file that can be written, before the work whose result goes there; nothing is made yet."""
    path = as_path(name, file)
    with writing(path):
        os.path.lexists(path)
        _refuse_folder(path)
    require_folder(name, path.parent)
    return path


def require_apart(name: str, out: Path | str, inputs: Mapping[str, Path | None], *files: str) -> None:
    """Refuse an output that is one of the inputs, which it would write over. files: what will be written if `out` is a folder."""
    path = as_path(name, out)
    for option, given in inputs.items():
        for target in (path, *(path / file for file in files)):
            if given is not None and _same(target, given):
                raise InvalidInput(
                    name, f"{str(target)!r}, which is {option}", f"another path, or {option} would be written over"
                )


def _same(one: Path, other: Path) -> bool:
    """Whether two paths lead to the same file or folder; what is not there, or cannot be reached, is nothing's same."""
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


def _writable(folder: Path) -> bool:
    """Whether a folder is there, once it is known that files can be made in it, or else in the folder that it will be made in."""
    try:
        found = folder.stat()
    except FileNotFoundError:
        if folder.is_symlink():
            raise FileExistsError(errno.EEXIST, "a link that leads nowhere") from None
        _writable(folder.parent)
        return False
    if not stat.S_ISDIR(found.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, f"{str(folder)!r} is a file, not a folder")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, f"no permission to write in {str(folder)!r}")
    return True


def _refuse_folder(path: Path) -> None:
    """A folder cannot be replaced by a file; said before anything is written."""
    try:
        is_folder = stat.S_ISDIR(path.lstat().st_mode)
    except FileNotFoundError:
        return
    if is_folder:
        raise IsADirectoryError(errno.EISDIR, f"there is a folder {path.name!r} in its place")


# ---- reading


def present(path: Path) -> bool:
    """Whether there is anything of that name; a StorageError where that cannot be known, which must not pass for an absence."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise StorageError(f"{path}: cannot be read: {reason(error)}") from error
    return True


def open_regular(path: Path, *, follow: bool = False) -> BufferedReader:
    """A regular file, open for reading; anything else is an OSError that says what it is. follow: a link may lead to the file.

    Looked at twice: by name, so that nothing is opened that opening would disturb, and once open, should it have been exchanged.
    """
    _require_regular(path.stat() if follow else path.lstat())
    flags = os.O_RDONLY
    for flag in (
        "O_BINARY",
        "O_CLOEXEC",
        "O_NONBLOCK",
        *(() if follow else ("O_NOFOLLOW",)),
    ):  # what the system has of them
        flags |= getattr(os, flag, 0)
    descriptor = os.open(path, flags)
    try:
        _require_regular(os.fstat(descriptor))
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def require_regular(path: Path) -> None:
    """An OSError unless the path is a regular file, or leads to one: for readers that open it themselves."""
    _require_regular(path.stat())


def _require_regular(found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, f"{_KINDS.get(stat.S_IFMT(found.st_mode), 'something else')}, not a regular file")


__all__ = [
    "as_path", "flush_folder", "make_folder", "open_regular", "present", "reason", "rename", "require_apart",
    "require_file", "require_folder", "require_regular", "temporary_name", "write_atomically", "write_bytes_atomically",
    "write_temporary", "write_text_atomically", "writing",
]  # fmt: skip
