"""The arrays of leaves that wander, as they are saved, and what they must satisfy when they are read."""

from __future__ import annotations

import numpy as np

from manyarms._base.typing import AnyArray, Array, Ints
from manyarms.beliefs import saved_state
from manyarms.beliefs.drift.filtering import KeptRows, LeafState, Row
from manyarms.errors import StorageError


def with_empty_sums(arrays: dict[str, AnyArray], dim: int) -> dict[str, AnyArray]:
    """The arrays with tables of sums that hold nothing."""
    number, none = len(arrays["played"]), np.empty((0, dim, dim))
    empty = {"G": np.empty((number, 0)), "B": np.empty((number, 0)), "sharp": none}
    return arrays | empty | {"sharp_slots": np.empty(0, dtype=np.int64)}


def checked(arrays: dict[str, AnyArray], dim: int) -> tuple[Array, Array, Ints, Array]:
    """Times of the leaves' last and first rows, how many came late since, and A_a transposed (none where the root is known)."""
    number = len(arrays["played"])
    if len(arrays["At"]) not in (0, number):
        raise StorageError(f"At has {len(arrays['At'])} matrices, expected one for each of the {number} played actions")
    At = saved_state.table(arrays, "At", (len(arrays["At"]), dim, dim))
    times, firsts = (saved_state.table(arrays, name, (number,)) for name in ("times", "firsts"))
    return times, firsts, saved_state.counts(arrays, "lates", number), At


def kept_arrays(kept: dict[int, KeptRows], dim: int) -> dict[str, AnyArray]:
    """Rows that are kept, by slot, and the leaves before them."""
    slots = sorted(kept)
    starts = [kept[slot].start for slot in slots]
    rows = [row for slot in slots for row in kept[slot].rows]
    At = [start.At for start in starts if start.At is not None]
    return {
        "kept.slots": np.array(slots, dtype=np.int64),
        "kept.lengths": np.array([len(kept[slot].rows) for slot in slots], dtype=np.int64),
        "kept.S": np.array([start.S for start in starts]).reshape(-1, dim, dim),
        "kept.c": np.array([start.c for start in starts]).reshape(-1, dim),
        "kept.At": np.array(At).reshape(-1, dim, dim),
        "kept.times": np.array([start.time for start in starts]),
        "kept.X": np.array([row.x for row in rows]).reshape(-1, dim),
        "kept.rows": np.array([(row.time, row.value, row.noise_variance) for row in rows]).reshape(-1, 3),
    }


def kept_rows(arrays: dict[str, AnyArray], dim: int) -> dict[int, KeptRows]:
    """What `kept_arrays` gave, checked."""
    slots = saved_state.ids(arrays, "kept.slots", len(arrays["played"]))
    number = len(slots)
    lengths = saved_state.counts(arrays, "kept.lengths", number)
    S, c = (
        saved_state.table(arrays, f"kept.{name}", (number, *shape))
        for name, shape in (("S", (dim, dim)), ("c", (dim,)))
    )
    At = saved_state.table(arrays, "kept.At", (number if len(arrays["At"]) else 0, dim, dim))
    times = saved_state.table(arrays, "kept.times", (number,))
    rows = int(lengths.sum())
    X, told = saved_state.table(arrays, "kept.X", (rows, dim)), saved_state.table(arrays, "kept.rows", (rows, 3))
    saved_state.semidefinite("kept.S", S)
    if (lengths < 1).any() or (rows and not (told[:, 2] > 0).all()):
        raise StorageError("kept.rows has an action without rows, or noise of variance 0")
    out, first = {}, 0
    for i, slot in enumerate(slots.tolist()):
        start = LeafState(float(times[i]), S[i].copy(), c[i].copy(), At[i].copy() if len(At) else None)
        some = range(first, first + int(lengths[i]))
        out[slot] = KeptRows(
            start, [Row(float(told[j, 0]), X[j].copy(), float(told[j, 1]), float(told[j, 2])) for j in some]
        )
        first += int(lengths[i])
    return out


__all__ = ["checked", "kept_arrays", "kept_rows", "with_empty_sums"]
