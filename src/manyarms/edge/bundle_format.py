"""The bytes of an edge bundle: what is in them, in which order, and everything that must be true of them.

    0   8 bytes    "MANYEDGE"
    8   uint32     the version of this format, 1
    12  uint32     H, bytes of the header
    16  uint64     P, bytes of the arrays
    24  H bytes    the header: JSON in its canonical form (sorted keys, no spaces, UTF-8)
        zeros      up to the next multiple of 64
        P bytes    the arrays that the header lists, one after the other
        64 bytes   an Ed25519 signature of everything before it; zeros where nobody has signed

Numbers are little-endian. Nothing in it is code: arrays are float32, int64, uint32 and uint8, as they are in memory. Sizes are
added up before anything is made of them, and the arrays are views of the bytes that came.
"""

from __future__ import annotations

import hashlib
import json
import math
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np

from manyarms._base.typing import AnyArray
from manyarms._base.validate import describe
from manyarms.errors import InvalidInput, StorageError

MAGIC = b"MANYEDGE"
VERSION = 1
SIGNATURE = 64
MOST_OF_A_HEADER = 1 << 24  # bytes: encoders with many categories have a few millions
MOST_ARRAYS = 16
TYPES = ("<f4", "<i8", "<u4", "|u1")
_START = struct.Struct("<8sIIQ")
_ALIGNED = 64


def canonical(value: object) -> bytes:
    """JSON, always the same for the same value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def packed(header: Mapping[str, Any], arrays: Mapping[str, AnyArray]) -> bytes:
    """A bundle but for its signature."""
    parts = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    listed = [[name, part.dtype.str, list(part.shape)] for name, part in parts.items()]
    content = b"".join(part.tobytes() for part in parts.values())
    told = canonical({**header, "arrays": listed, "sha256": hashlib.sha256(content).hexdigest()})
    if len(told) > MOST_OF_A_HEADER:
        raise InvalidInput("header", f"{len(told):,} bytes", f"at most {MOST_OF_A_HEADER:,}")
    start = _START.pack(MAGIC, VERSION, len(told), len(content))
    return start + told + bytes(_padding(len(told))) + content


def split(data: object) -> tuple[bytes, bytes]:
    """What was signed, and the signature; refused unless it has the length that it says."""
    if not isinstance(data, bytes | bytearray | memoryview):
        raise InvalidInput("data", describe(data), "the bytes of an edge bundle")
    whole = bytes(data)
    if len(whole) < _START.size + SIGNATURE:
        raise StorageError(f"not an edge bundle: {len(whole)} bytes, fewer than any has")
    magic, version, told, content = _START.unpack_from(whole)
    if magic != MAGIC:
        raise StorageError("not an edge bundle: it begins otherwise")
    if version != VERSION:
        raise StorageError(f"an edge bundle of format {version}, which this release does not read: it reads {VERSION}")
    if told > MOST_OF_A_HEADER:
        raise StorageError(f"a damaged edge bundle: a header of {told:,} bytes, and {MOST_OF_A_HEADER:,} are the most")
    expected = _START.size + told + _padding(told) + content + SIGNATURE
    if len(whole) != expected:
        raise StorageError(f"a damaged or truncated edge bundle: {len(whole):,} bytes, and it says {expected:,}")
    return whole[:-SIGNATURE], whole[-SIGNATURE:]


def unpacked(signed: bytes) -> tuple[dict[str, Any], dict[str, AnyArray]]:
    """The header and the arrays of what `split` gave."""
    _, _, told, content = _START.unpack_from(signed)
    raw = signed[_START.size : _START.size + told]
    begin = _START.size + told + _padding(told)
    header = _header(raw)
    if any(signed[_START.size + told : begin]):
        raise StorageError("a damaged edge bundle: something stands between its header and its arrays")
    if header.get("sha256") != hashlib.sha256(memoryview(signed)[begin:]).hexdigest():
        raise StorageError("a damaged edge bundle: the checksum of its arrays differs")
    return header, _arrays(header.get("arrays"), signed, begin, content)


def _header(raw: bytes) -> dict[str, Any]:
    try:
        found = json.loads(raw.decode())
        same = isinstance(found, dict) and canonical(found) == raw
    except (ValueError, RecursionError) as error:  # bytes that are no UTF-8, and broken JSON, are ValueErrors
        raise StorageError(f"a damaged edge bundle: its header is no JSON ({type(error).__name__})") from error
    if not same:
        raise StorageError("a damaged edge bundle: its header is not written as headers are")
    told: dict[str, Any] = found
    return told


def _arrays(listed: object, signed: bytes, begin: int, content: int) -> dict[str, AnyArray]:
    """Views of the bytes, once all sizes are known to add up."""
    if not isinstance(listed, list) or len(listed) > MOST_ARRAYS or not all(_is_entry(entry) for entry in listed):
        raise StorageError("a damaged edge bundle: its header lists arrays that there cannot be")
    sizes = [
        math.prod(shape) * np.dtype(kind).itemsize for _, kind, shape in listed
    ]  # Python's integers do not overflow
    if sum(sizes) != content or len({name for name, _, _ in listed}) != len(listed):
        raise StorageError(f"a damaged edge bundle: {content:,} bytes of arrays, and its header lists {sum(sizes):,}")
    found: dict[str, AnyArray] = {}
    for (name, kind, shape), size in zip(listed, sizes, strict=True):
        found[name] = np.frombuffer(signed, np.dtype(kind), math.prod(shape), begin).reshape(shape)
        begin += size
    return found


def _is_entry(entry: object) -> bool:
    if not isinstance(entry, list) or len(entry) != 3:
        return False
    name, kind, shape = entry
    return (
        isinstance(name, str)
        and isinstance(kind, str)
        and kind in TYPES
        and isinstance(shape, list)
        and 1 <= len(shape) <= 3
        and all(type(length) is int and 0 < length < 1 << 40 for length in shape)
    )


def _padding(header: int) -> int:
    return -(_START.size + header) % _ALIGNED


__all__ = ["MAGIC", "SIGNATURE", "VERSION", "canonical", "packed", "split", "unpacked"]
