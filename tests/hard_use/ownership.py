"""Whose array is it? A call leaves its arguments as they were, and keeps nothing that the caller can change afterwards.

`private` copies what a call is given, `fingerprint` says whether something has changed, `scribble` changes it.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from typing import Any

import numpy as np

DEEP = 12  # objects in objects
SCRIBBLED = 7.25


def is_frame(value: Any) -> bool:
    """A column or a table of pandas."""
    return type(value).__module__.startswith("pandas")


def private(value: Any) -> Any:
    """Arrays and containers of them as new ones; everything else as it is."""
    if isinstance(value, np.ndarray):
        return value.copy()
    if type(value) in (list, tuple):
        return type(value)(private(item) for item in value)
    if type(value) is dict:
        return {key: private(item) for key, item in value.items()}
    return value


def fingerprint(value: Any, objects: bool = True) -> str:
    """A digest of all numbers in a value; with `objects` also of what the library's own objects hold."""
    out = hashlib.sha256()
    seen: dict[int, Any] = {}  # held, so that no number of an object is used twice

    def add(value: Any, depth: int) -> None:
        out.update(type(value).__name__.encode())
        if value is None or isinstance(value, bool | int | float | complex | str | bytes | np.generic):
            with suppress(ValueError):  # an integer of thousands of digits
                out.update(repr(value).encode(errors="surrogatepass"))
            return
        if id(value) in seen or depth > DEEP:
            return
        seen[id(value)] = value
        if isinstance(value, np.ndarray):
            data = np.ma.getdata(value)
            out.update(f"{data.dtype.str}{data.shape}".encode())
            if data.dtype.hasobject:
                add(data.tolist(), depth + 1)
            else:
                out.update(np.ascontiguousarray(data).tobytes())
        elif isinstance(value, list | tuple):
            for item in value:
                add(item, depth + 1)
        elif isinstance(value, dict):
            for key, item in value.items():
                add(key, depth + 1)
                add(item, depth + 1)
        elif is_frame(value):
            out.update(repr(value.to_numpy().tolist()).encode())
        elif objects and isinstance(value, np.random.Generator):
            out.update(repr(value.bit_generator.state).encode())
        elif objects and type(value).__module__.startswith("manyarms"):
            slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
            add({**getattr(value, "__dict__", {}), **{n: getattr(value, n, None) for n in slots}}, depth + 1)

    add(value, 0)
    return out.hexdigest()


def scribble(value: Any) -> None:
    """Change every number in place that a caller could change."""
    if isinstance(value, np.ndarray):
        data = np.ma.getdata(value)
        if data.flags.writeable and data.size:  # what was locked is handed over: `validate.owned` keeps it
            if data.dtype.kind in "iub":
                data ^= np.ones(1, data.dtype)
            elif data.dtype.kind in "fcO":
                data[...] = SCRIBBLED
    elif isinstance(value, list):
        for position, item in enumerate(value):
            if isinstance(item, bool | int | float):
                value[position] = SCRIBBLED
            else:
                scribble(item)
    elif isinstance(value, tuple):
        for item in value:
            scribble(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if isinstance(item, bool | int | float):
                value[key] = SCRIBBLED
            else:
                scribble(item)
    elif is_frame(value):
        with suppress(Exception):  # pandas has its own opinion of what fits into a column
            value.iloc[:] = value.iloc[::-1].to_numpy()
