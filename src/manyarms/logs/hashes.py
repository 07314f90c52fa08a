"""64-bit hashes of numbers, texts and rows: the same on every machine and for any cut into chunks."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from manyarms._base.typing import AnyArray, Array, Ints

UInts = npt.NDArray[np.uint64]

IN_WORK = 1 << 15  # numbers that are hashed at a time: few enough for a cache

STEP = np.uint64(0x9E3779B97F4A7C15)
# the finaliser of splitmix64
_MIX = ((np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)), (np.uint64(27), np.uint64(0x94D049BB133111EB)))
_LAST = np.uint64(31)


def mixed(values: UInts) -> UInts:
    """Bits stirred so that every bit of the answer depends on every bit of the value."""
    values = values.copy()
    room = np.empty_like(values)
    with np.errstate(over="ignore"):
        for shift, factor in _MIX:
            values ^= np.right_shift(values, shift, out=room)
            values *= factor
        values ^= np.right_shift(values, _LAST, out=room)
    return values


def text_hashes(texts: AnyArray) -> UInts:
    """A hash of each text: the sum of its stirred characters with their places, so that padding changes nothing."""
    if not len(texts) or texts.dtype.itemsize == 0:
        return np.zeros(len(texts), dtype=np.uint64)
    width = texts.dtype.itemsize // 4
    codes = np.ascontiguousarray(texts).view(np.uint32).reshape(len(texts), width)
    total = np.zeros(len(texts), dtype=np.uint64)
    with np.errstate(over="ignore"):
        for place in range(width):
            code = codes[:, place].astype(np.uint64)
            total += np.where(code > 0, mixed(code + np.uint64(place + 1) * STEP), np.uint64(0))
    return total


def bits_of(numbers: AnyArray) -> UInts:
    """Numbers or times as 64 bits each; -0.0 is 0.0."""
    if numbers.dtype.kind in "Mm":  # in one unit, whatever a file or a frame keeps them in
        return np.ascontiguousarray(numbers.astype(f"{numbers.dtype.kind}8[us]").astype(np.int64)).view(np.uint64)
    return np.ascontiguousarray(numbers.astype(np.float64, copy=False) + 0.0).view(np.uint64)


def row_hashes(contexts: Array, actions: Ints, rewards: Array) -> UInts:
    """A hash of the context, action and reward of every round."""
    width = contexts.shape[1] + 2
    out, step = np.empty(len(contexts), dtype=np.uint64), max(1, IN_WORK // width)
    with np.errstate(over="ignore"):
        places = np.arange(1, width + 1, dtype=np.uint64) * STEP
        for start in range(0, len(out), step):
            some = slice(start, start + step)
            numbers = np.empty((width, len(out[some])))
            for at, column in ((slice(-2), contexts[some].T), (-2, actions[some]), (-1, rewards[some])):
                np.add(column, 0.0, out=numbers[at])  # -0.0 is 0.0, as in `bits_of`
            words = numbers.view(np.uint64)
            words += places[:, None]
            out[some] = mixed(mixed(words).sum(axis=0, dtype=np.uint64))
    return out


def sequence_hash(hashes: UInts, first: int) -> int:
    """The part of consecutive rows in the hash of a whole log: a sum over rows, each stirred with its place; modulo 2^64."""
    places = np.arange(first, first + len(hashes), dtype=np.uint64)
    with np.errstate(over="ignore"):
        return int(mixed(hashes + mixed(places + STEP)).sum(dtype=np.uint64))


__all__ = ["STEP", "UInts", "bits_of", "mixed", "row_hashes", "sequence_hash", "text_hashes"]
