"""Two states as bytes: the same, the same but for rounding, or how they differ.

Folded by the same libraries on the same kind of machine the bytes are the same. Elsewhere sums round otherwise: numbers then
agree to 1e-9 of the largest beside them, and everything that is no number exactly.
"""

from __future__ import annotations

import io
import json
import math
import re
import zipfile
from typing import Any

import numpy as np

from manyarms._base import storage
from manyarms._base.typing import AnyArray
from manyarms.errors import StorageError

TOLERANCE = 1e-9
_NOT_STATE = ("library", "file", "sha256")  # who wrote it, and checksums of what is compared itself


def difference(kept: bytes, folded: bytes) -> str | None:
    """Where two packed states differ by more than rounding; None where they do not."""
    if kept == folded:
        return None
    first, second = _content(kept), _content(folded)
    if first.keys() != second.keys():
        return f"parts {sorted(first.keys() ^ second.keys())}"
    for name, one in first.items():
        where = _differs(one, second[name])
        if where is not None:
            return f"{name}{where}"
    return None


def _content(packed: bytes) -> dict[str, Any]:
    """Every part by a name that does not depend on its content."""
    found: dict[str, Any] = {}
    try:
        with zipfile.ZipFile(io.BytesIO(packed)) as archive:
            for name in archive.namelist():
                content = archive.read(name)
                if name.endswith(".json"):
                    told = json.loads(content)
                    found[name] = storage.upgraded(told) if name.endswith(storage.MANIFEST) else told
                else:
                    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
                        found[re.sub(r"arrays-\w+", "arrays", name)] = {key: arrays[key] for key in arrays.files}
    except (zipfile.BadZipFile, ValueError, OSError) as error:
        raise StorageError(f"a state that was kept cannot be read: {error}") from error
    return found


def _differs(one: Any, other: Any) -> str | None:
    """Where, as a path; None where both are the same but for rounding."""
    if isinstance(one, dict) and isinstance(other, dict):
        if one.keys() != other.keys():
            return f": {sorted(map(str, one.keys() ^ other.keys()))}"
        for key in one:
            if key not in _NOT_STATE and (where := _differs(one[key], other[key])) is not None:
                return f".{key}{where}"
        return None
    if isinstance(one, list) and isinstance(other, list):
        if len(one) != len(other):
            return f": {len(one)} entries kept, {len(other)} folded"
        for place, (a, b) in enumerate(zip(one, other, strict=True)):
            if (where := _differs(a, b)) is not None:
                return f"[{place}]{where}"
        return None
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return _arrays_differ(one, other)
    if isinstance(one, float) and isinstance(other, float):
        return None if math.isclose(one, other, rel_tol=TOLERANCE) else f": {one!r} kept, {other!r} folded"
    return None if one == other and type(one) is type(other) else f": {one!r} kept, {other!r} folded"


def _arrays_differ(one: AnyArray, other: AnyArray) -> str | None:
    if one.shape != other.shape or one.dtype != other.dtype:
        return f": {one.shape} {one.dtype} kept, {other.shape} {other.dtype} folded"
    if one.dtype.kind != "f":
        return None if np.array_equal(one, other) else ": other entries"
    scale = float(np.max(np.abs(one), initial=0.0))
    if np.allclose(one, other, rtol=0.0, atol=TOLERANCE * scale, equal_nan=True):
        return None
    return f": off by {float(np.nanmax(np.abs(one - other))):.3g} where entries go up to {scale:.3g}"


__all__ = ["TOLERANCE", "difference"]
