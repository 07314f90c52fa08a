"""Hostile values in place of an argument, by the kind of argument.

A kind is a function of a generator and of a correct value; it lists what may come instead. `refuse` says that the value has no
meaning as such an argument (NaN, text, a masked entry) and must not be accepted in silence; `shape` that it is an array of
another shape; `plain` that it is an unusual form of a legal value (strided, big-endian, float16), which must give what the plain
one gives.
"""

from __future__ import annotations

import decimal
import fractions
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

try:
    import pandas as pd
except ImportError:  # the frames are left out
    pd = None


@dataclass(frozen=True)
class Hostile:
    """One value, and what must become of it."""

    label: str
    value: Any
    refuse: bool = False
    shape: bool = False
    plain: Any = None


def _many(refuse: bool, **values: Any) -> list[Hostile]:
    return [Hostile(label, value, refuse) for label, value in values.items()]


def arrays(rng: np.random.Generator, good: Any) -> list[Hostile]:
    """In place of an array of finite numbers."""
    a = np.array([0.5, 1.0] if good is None else good, dtype=np.float64)
    flat = a.reshape(-1)
    at = int(rng.integers(a.size)) if a.size else 0

    def put(value: float) -> np.ndarray:
        out = a.copy()
        if out.size:
            out.reshape(-1)[at] = value
        return out

    first = np.zeros(a.shape, dtype=bool)
    first.reshape(-1)[:1] = True
    locked = a.copy()
    locked.flags.writeable = False
    wide = np.repeat(a, 2, axis=-1)[..., ::2] if a.ndim else a
    half = a.astype(np.float16)
    out = [
        Hostile(label, value, shape=True)
        for label, value in {
            "longer": np.concatenate([a, a], -1) if a.ndim else np.array([1.0, 2.0]),
            "empty": np.empty((*a.shape[:-1], 0)) if a.ndim else np.empty(0),
            "no rows": np.empty((0, *a.shape[1:])) if a.ndim else np.empty(0),
            "two more axes": a[None, None],
            "a number": 1.0 if a.ndim else [[1.0]],
        }.items()
    ]
    out += _many(
        True,
        ragged=[[1.0], [1.0, 2.0]], nan=put(np.nan), inf=put(np.inf), minus_inf=put(-np.inf), huge=put(1e308),
        complex=a + 1j, text=a.astype(str), some_text=np.where(first, "1.0", a.astype(object)),
        some_none=np.where(first, None, a.astype(object)), masked=np.ma.array(a, mask=first),
        record=np.zeros(a.shape, [("f", float)]), dates=np.zeros(a.shape, "M8[s]"),
        ten_to_400=np.where(first, 10**400, a.astype(object)) if a.ndim else [10**400],
        long_double=put(1.0).astype(np.longdouble) * np.longdouble("1e400"),
        none=None, str="abc", dict={"a": 1}, set={1.0, 2.0}, generator=(v for v in [1.0, 2.0]), bytes=b"abc", function=len,
    )  # fmt: skip
    out += _many(False, e99=put(1e99), e60=put(1e60), denormal=put(5e-324), minus_zero=put(-0.0), zeros=np.zeros_like(a),
                 bools=a > 0, transposed=a.T[..., None])  # fmt: skip
    out += [
        Hostile(label, value, plain=plain)
        for label, value, plain in [
            ("strided", wide, a), ("read-only", locked, a), ("fortran", np.asfortranarray(a), a), ("object", a.astype(object), a),
            ("big-endian", a.astype(">f8"), a), ("float16", half, half.astype(float)), ("lists", a.tolist(), a),
            ("reversed", a[..., ::-1].copy()[..., ::-1] if a.ndim else a, a), ("int8", np.rint(a).astype(np.int8), np.rint(a)),
        ]
    ]  # fmt: skip
    if pd is not None and a.ndim == 1:
        missing = pd.Series([pd.NA, *flat[1:].tolist()], dtype="Float64")
        out += [Hostile("pandas", pd.Series(a), plain=a), Hostile("Float64", pd.Series(a, dtype="Float64"), plain=a)]
        out += _many(True, missing=missing, categorical=pd.Series(a.astype(str), dtype="category"))
    if pd is not None and a.ndim == 2:
        out += [Hostile("data frame", pd.DataFrame(a), plain=a)]
    return out


def ids(rng: np.random.Generator, good: Any) -> list[Hostile]:
    """In place of a list of actions' ids."""
    g = np.atleast_1d(np.array([1, 2] if good is None else good))
    flat = g.reshape(-1)
    out = _many(
        True,
        floats=g.astype(float) + 0.5, whole_floats=g.astype(float), bools=g > 0, text=g.astype(str),
        negative=np.append(flat[1:], -1), beyond=np.append(flat[1:], 10**9),
        two_to_63=np.full(g.shape, 2**63, np.uint64), largest=np.full(g.shape, 2**64 - 1, np.uint64), two_to_70=[2**70] * g.size,
        nan=[np.nan] * g.size, none=[None] * g.size, complex=g + 1j, str="abc", dict={}, object=object(),
        masked=np.ma.array(g, mask=np.arange(g.size).reshape(g.shape) == 0), generator=(i for i in (1, 2)),
    )  # fmt: skip
    out += _many(False, empty=[], twice=np.append(flat, flat[:1]),
                 number=3, set={1, 2}, range=range(g.size))  # fmt: skip
    out += [Hostile("two more axes", g[None, None], shape=True)]
    out += [
        Hostile(label, value, plain=g)
        for label, value in {
            "uint8": g.astype(np.uint8), "big-endian": g.astype(">i4"), "lists": g.tolist(),
            "strided": np.repeat(g, 2, -1)[..., ::2],
        }.items()
    ]  # fmt: skip
    if pd is not None and g.ndim == 1:
        missing = pd.Series([pd.NA, *flat[1:].tolist()], dtype="Int64")
        out += [Hostile("Int64", pd.Series(g, dtype="Int64"), plain=g), Hostile("missing", missing, True)]
    return out


def excluded(rng: np.random.Generator, good: Any) -> list[Hostile]:
    """In place of actions that are not to be chosen: what nobody knows is excluded already."""
    unknown = ("negative", "beyond")
    return [replace(bad, refuse=False) if bad.label in unknown else bad for bad in ids(rng, good)]


def labels(rng: np.random.Generator, good: Any) -> list[Hostile]:
    """In place of ids of rows, groups or users, where text and floats may be ids too."""
    return [Hostile(bad.label, bad.value, shape=bad.shape, plain=bad.plain) for bad in ids(rng, good)]


def numbers(rng: np.random.Generator, good: Any) -> list[Hostile]:
    """In place of one number."""
    out = _many(
        True,
        nan=np.nan, inf=np.inf, minus_inf=-np.inf, text="1", str="abc", complex=1 + 1j, list=[1.0], dict={}, bytes=b"1",
        array=np.array([1.0, 2.0]), object=object(), function=len, masked=np.ma.masked, ten_to_400=10**400,
    )  # fmt: skip
    out += _many(
        False,
        none=None, true=True, zero_d=np.array(0.5), minus_one=-1.0, zero=0.0, zero_int=0, e308=1e308, e200=1e200, e_200=1e-200,
        denormal=5e-324, tiny=1e-17, almost_one=1 - 1e-16, half=0.5, two=2.0, decimal=decimal.Decimal("0.5"),
        fraction=fractions.Fraction(1, 2),
    )  # fmt: skip
    return [*out, Hostile("float16", np.float16(0.5), plain=0.5)]


def integers(rng: np.random.Generator, good: Any) -> list[Hostile]:
    """In place of a number of things, or of one thing's id."""
    out = _many(
        True,
        half=2.5, float=2.0, true=True, nan=np.nan, inf=np.inf, text="3", list=[3], array=np.array([3, 4]), complex=3j, dict={},
        object=object(),
        bytes=b"3",
    )  # fmt: skip
    out += _many(False, none=None, minus_one=-1, zero=0, one=1, decimal=decimal.Decimal(3),
                 two_to_31=2**31, two_to_63=2**63, ten_to_12=10**12, ten_to_30=10**30, ten_to_5000=10**5000)  # fmt: skip
    return [*out, Hostile("uint8", np.uint8(2), plain=2), Hostile("int64", np.int64(2), plain=2)]


def amounts(rng: np.random.Generator, good: Any) -> list[Hostile]:
    """In place of an amount of work: who asks for a million epochs gets them, so there are no large ones."""
    return [bad for bad in integers(rng, good) if not (isinstance(bad.value, int) and abs(bad.value) > 1000)]


def words(rng: np.random.Generator, good: Any) -> list[Hostile]:
    """In place of a name that chooses something."""
    out = _many(True, unknown="bogus", bytes=b"linear")
    return out + _many(False, empty="", none=None, number=3, list=["a"], nul="a\0b", long="x" * 100_000, dict={},
                       html="<script>alert(1)</script>", surrogate="\udc80")  # fmt: skip


def texts(rng: np.random.Generator, good: Any) -> list[Hostile]:
    """In place of free text: nothing of it need be refused."""
    return [Hostile(bad.label, bad.value) for bad in words(rng, good)]


def paths(rng: np.random.Generator, good: Any) -> list[Hostile]:
    """In place of a path."""
    return texts(rng, good) + _many(False, in_a_file="/etc/hostname/x", forbidden="/proc/nowhere")


def things(rng: np.random.Generator, good: Any) -> list[Hostile]:
    """In place of a prior, a log, a policy, a likelihood."""
    return _many(False, none=None, str="x", int=3, nan=np.nan, list=[], dict={}, array=np.zeros((2, 2)), type=dict, function=len,
                 object=object())  # fmt: skip


def functions(rng: np.random.Generator, good: Any) -> list[Hostile]:
    """In place of a function; what can be called is not among them: only its results could tell."""
    called = [bad for bad in things(rng, good) if not callable(bad.value)]
    return [Hostile(bad.label, bad.value, refuse=bad.value is not None) for bad in called]


def seeds(rng: np.random.Generator, good: Any) -> list[Hostile]:
    """In place of a seed or a generator."""
    out = _many(True, minus_one=-1, float=1.0, text="a", true=True, nan=np.nan, array=np.array([1]), object=object(),
                random_state=np.random.RandomState(0))  # fmt: skip
    return out + _many(False, list=[1, 2], large=2**5000, none=None)


def pairs(rng: np.random.Generator, good: Any) -> list[Hostile]:
    """In place of two numbers in order: one of them is hostile."""
    low, high = (0.0, 1.0) if good is None else good
    out = [Hostile("none", None), Hostile("equal", (1.0, 1.0), True), Hostile("falling", (high, low), True)]
    out += _many(True, number=1.0, three=(0.0, 0.5, 1.0), str="ab", empty=(), dict={}, object=object())
    for bad in numbers(rng, high):
        if bad.refuse or bad.label in ("none", "e308", "denormal"):
            refuse = bad.refuse or bad.label == "none"
            out += [
                Hostile(f"low_{bad.label}", (bad.value, high), refuse),
                Hostile(f"high_{bad.label}", (low, bad.value), refuse),
            ]
    return out


def in_a_list(rng: np.random.Generator, good: Any) -> list[Hostile]:
    """In place of a list of arrays: one of them is hostile."""
    at = int(rng.integers(len(good)))

    def put(value: Any) -> list[Any]:
        return [*good[:at], value, *good[at + 1 :]]

    inside = [
        Hostile(bad.label, put(bad.value), bad.refuse or bad.shape, plain=None if bad.plain is None else put(bad.plain))
        for bad in arrays(rng, good[at])
    ]
    return inside + things(rng, good)


def frames(rng: np.random.Generator, good: Any) -> list[Hostile]:
    """In place of a table: one of its columns is hostile.

    Text is a category there, or a number where all of it reads as numbers, as in a CSV; an action's id is anything with a name.
    """
    name = list(good)[int(rng.integers(len(good)))]
    column = np.asarray(good[name])
    categories = (
        ("text", "some_text", "some_none", "categorical", "missing", "str", "bytes")
        if name.startswith("x_")
        else ("text", "categorical")
    )
    found = arrays(rng, column) if column.dtype.kind == "f" else labels(rng, column)
    inside = [
        Hostile(
            f"{name}_{bad.label}",
            {**good, name: bad.value},
            (bad.refuse or bad.shape) and bad.label not in categories,
            plain=None if bad.plain is None else {**good, name: bad.plain},
        )
        for bad in found
    ]
    missing = {key: value for key, value in good.items() if key != name}
    return [*inside, *things(rng, good), Hostile(f"no_{name}", missing)]


def flags(rng: np.random.Generator, good: Any) -> list[Hostile]:
    """In place of True or False."""
    return _many(False, none=None, str="x", two=2, nan=np.nan, array=np.array([True, False]), object=object(), dict={})


Kind = Callable[[np.random.Generator, Any], list[Hostile]]
