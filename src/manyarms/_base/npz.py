"""Arrays in one .npz file: plain numbers, uncompressed. Nothing in it can run code, or take more room than the file itself has.

Reading looks at the list of contents first: every name once and as expected, nothing compressed or encrypted, no more bytes in
all than the file is long; then at each array's header: type and shape as expected, and as many bytes as they make. Only then is
an array allocated. So a file needs the memory that its size says, whatever is written in it.
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np

from manyarms._base import memory
from manyarms._base.typing import AnyArray
from manyarms._base.validate import SMALL, describe
from manyarms.errors import StorageError

PLAIN_KINDS = "biufcSU"  # booleans, integers, floats, complex numbers, strings of fixed length
SUFFIX = ".npy"
_ENCRYPTED = 0x1


def describe_array(array: AnyArray) -> dict[str, Any]:
    """What a manifest says of an array."""
    return {"shape": list(array.shape), "dtype": array.dtype.str}


def write_npz(stream: BinaryIO, arrays: Mapping[str, AnyArray]) -> None:
    """The arrays by name; equal arrays make equal files."""
    # not np.savez: it stamps the time of day into the file, and cannot store an array that is called "file"
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            with archive.open(zipfile.ZipInfo(f"{name}{SUFFIX}"), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


def read_npz(stream: BinaryIO, size: int, expected: Mapping[str, Any] | None = None) -> dict[str, AnyArray]:
    """The arrays of a file of `size` bytes, held to what is expected of each, its `describe_array`, where that is known."""
    require_room(size)
    arrays: dict[str, AnyArray] = {}
    try:
        with zipfile.ZipFile(stream) as archive:
            for name, member in _contents(archive, size, expected).items():
                with archive.open(member) as data:
                    _check_header(name, data, member.file_size, None if expected is None else expected[name])
                with archive.open(member) as data:
                    arrays[name] = np.lib.format.read_array(data, allow_pickle=False)
    except (zipfile.BadZipFile, EOFError, KeyError, ValueError, NotImplementedError, OverflowError) as error:
        if isinstance(error, StorageError):
            raise
        raise StorageError(f"not a readable .npz file: {error}") from error
    return arrays


def require_room(size: int) -> None:
    """Refuse a file that does not fit into memory, before it is read."""
    if size > SMALL and size > memory.available():
        raise StorageError(f"{size:,} bytes, more than there is memory for")


def _contents(archive: zipfile.ZipFile, size: int, expected: Mapping[str, Any] | None) -> dict[str, zipfile.ZipInfo]:
    """The members by the names of their arrays."""
    members: dict[str, zipfile.ZipInfo] = {}
    for member in archive.infolist():
        name = member.filename.removesuffix(SUFFIX)
        if name in members:
            raise StorageError(f"holds the array {describe(name)} twice")
        if member.compress_type != zipfile.ZIP_STORED or member.compress_size != member.file_size:
            raise StorageError(f"the array {describe(name)} is compressed, which saved arrays never are")
        if member.flag_bits & _ENCRYPTED:
            raise StorageError(f"the array {describe(name)} is encrypted, which saved arrays never are")
        members[name] = member
    if expected is not None and members.keys() != expected.keys():
        raise StorageError(f"holds the arrays {_some(members)}, but manifest.json states {_some(expected)}")
    if sum(member.file_size for member in members.values()) > size:
        raise StorageError("states more bytes than it has")
    return members


def _check_header(name: str, data: Any, size: int, expected: Any) -> None:
    """Whether an array is what it should be, and has the bytes for it."""
    version = np.lib.format.read_magic(data)
    if version == (1, 0):
        shape, _, dtype = np.lib.format.read_array_header_1_0(data)
    elif version == (2, 0):
        shape, _, dtype = np.lib.format.read_array_header_2_0(data)
    else:
        raise StorageError(f"not a readable .npz file: the array {name!r} is of an unknown version, {version}")
    if dtype.kind not in PLAIN_KINDS or dtype.hasobject:
        raise StorageError(f"not a readable .npz file: the array {name!r} holds {dtype}, not plain numbers or strings")
    found = {"shape": list(shape), "dtype": dtype.str}
    values = math.prod(shape)  # of Python's integers, which do not overflow
    if min(shape, default=0) < 0 or (values and not dtype.itemsize) or data.tell() + values * dtype.itemsize != size:
        raise StorageError(
            f"not a readable .npz file: the array {name!r} has {size:,} bytes, which is not what {found} takes"
        )
    if expected is not None and found != expected:
        raise StorageError(f"the array {name!r} is {found}, but manifest.json states {describe(expected)}")


def _some(names: Mapping[str, object]) -> str:
    """Names for a message, not a million of them."""
    shown = [name[:60] for name in sorted(names)[:20]]
    return f"{shown}{' and others' if len(names) > len(shown) else ''}"


__all__ = ["PLAIN_KINDS", "describe_array", "read_npz", "require_room", "write_npz"]
