"""What the arrays of a saved belief must satisfy before a belief is made of them; a StorageError says what does not hold.

Checksums prove that nothing was damaged, not that it makes sense. Tables must have the shapes that belong together (NumPy would
stretch a table of one column to any number), numbers must be finite, ids must exist and come once, and what the mathematics
calls a covariance, a precision or a sum of squares must be one: up to rounding, since a state that has learned is not exact.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from manyarms._base import linalg, validate
from manyarms._base.typing import AnyArray, Array
from manyarms.errors import StorageError

ROUNDING = 1e-8  # of a matrix's largest variance: what rounding may have taken from its smallest
FULL_AT_A_TIME = 1 << 17  # numbers in full d x d matrices that are alive at once


def table(
    arrays: Mapping[str, AnyArray], name: str, shape: tuple[int, ...], dtype: npt.DTypeLike = np.float64
) -> AnyArray:
    """The array of that name, once it is known to have that shape and type, and to be finite."""
    array = arrays[name]
    if array.shape != shape or array.dtype != np.dtype(dtype):
        came = f"of shape {array.shape} and type {array.dtype}"
        raise StorageError(f"{name} is {came}, expected shape {shape} and type {np.dtype(dtype)}")
    if array.dtype.kind == "f" and not float(np.abs(array).max(initial=0.0)) < validate.LARGEST:  # nor is NaN
        raise StorageError(f"{name} has numbers that are not finite, or not below {validate.LARGEST:g} in size")
    return array


def counts(arrays: Mapping[str, AnyArray], name: str, length: int) -> AnyArray:
    """So many numbers of at least 0."""
    found = table(arrays, name, (length,), np.int64)
    if length and found.min() < 0:
        raise StorageError(f"{name} has {found.min()}, expected numbers of at least 0")
    return found


def ids(arrays: Mapping[str, AnyArray], name: str, actions: int) -> AnyArray:
    """Ids of actions, each at most once."""
    found = table(arrays, name, (len(arrays[name]),), np.int64)
    if len(found) and (found.min() < 0 or found.max() >= actions):
        raise StorageError(f"{name} has ids from {found.min()} to {found.max()}, expected ids from 0 to {actions - 1}")
    ordered = np.sort(found)
    if (ordered[1:] == ordered[:-1]).any():
        raise StorageError(f"{name} has an action more than once")
    return found


def semidefinite(name: str, matrices: Array) -> None:
    """Refuse matrices (..., d, d) that are not symmetric positive semidefinite, up to rounding."""
    dim = int(matrices.shape[-1])
    full = matrices.reshape(-1, dim, dim)
    largest = np.einsum("nii->ni", full).max(axis=1, initial=0.0)[:, None, None]
    uneven = (
        np.abs(full - np.swapaxes(full, 1, 2)) > ROUNDING * np.abs(full).max(axis=(1, 2), initial=0.0)[:, None, None]
    )
    if uneven.any():
        raise StorageError(f"{name} has a matrix that is not symmetric")
    _refuse_negative(name, full / np.where(largest > 0, largest, 1.0) + ROUNDING * np.eye(dim))


def packed_semidefinite(name: str, rows: Array, dim: int) -> None:
    """The same for packed matrices (n, d(d+1)/2), some at a time."""
    packing, every = linalg.packing(dim), np.arange(dim)
    diagonal = np.flatnonzero(packing.rows == packing.columns)
    step = max(1, FULL_AT_A_TIME // dim**2)
    for start in range(0, len(rows), step):
        full = packing.unpack(rows[start : start + step])
        largest = rows[start : start + step, diagonal].max(axis=1)
        full[:, every, every] += ROUNDING * np.where(largest > 0, largest, 1.0)[:, None]
        _refuse_negative(name, full)


def _refuse_negative(name: str, matrices: Array) -> None:
    try:
        np.linalg.cholesky(matrices)
    except np.linalg.LinAlgError:
        raise StorageError(f"{name} has a matrix that is not positive semidefinite") from None


# ---- parts of a belief


def check_leaves(arrays: Mapping[str, AnyArray], dim: object, *, sums: bool = True) -> None:
    """The tables of the leaves, for contexts of length `dim`; sums: whether they are made of sums of rows."""
    d = validate.count("dim", dim)
    grouped, actions, shared = table(arrays, "sizes", (3,), np.int64).tolist()
    if not (1 <= grouped <= actions and shared in (0, 1)):
        raise StorageError(f"sizes are {grouped}, {actions}, {shared}, expected counts of actions, and 0 or 1")
    covariance = arrays["covariance"]
    # before the packing of so many dimensions is made: the prior's covariance has to be of the same
    table(arrays, "covariance", (d, d) if shared else (actions, d * (d + 1) // 2))
    size = linalg.packing(d).size
    if shared:
        semidefinite("covariance", covariance)
    else:
        packed_semidefinite("covariance", covariance, d)
    features = arrays.get("mixing.features")
    if features is not None and len(features) != actions:
        raise StorageError(f"mixing.features has {len(features)} rows, expected one for each of the {actions} actions")
    played = len(ids(arrays, "played", actions))
    ids(arrays, "retired", actions)
    counts(arrays, "counts", played)
    for name, width in (("S", size), ("c", d), *((("G", size), ("B", d)) if sums else ())):
        table(arrays, name, (played, width))
    for name in ("G", "S") if sums else ("S",):
        packed_semidefinite(name, arrays[name], d)
    if sums:
        table(arrays, "sharp", (len(ids(arrays, "sharp_slots", played)), d, d))


def check_like(fresh: Mapping[str, AnyArray], arrays: Mapping[str, AnyArray], *definite: str) -> None:
    """Arrays that take the place of those of a part that has learned nothing; definite: which must be positive semidefinite."""
    for name, array in fresh.items():
        table(arrays, name, array.shape, array.dtype)
    for name in definite:
        semidefinite(name, arrays[name])


def check_moments(mean: Array, factor: Array) -> None:
    """A root's mean and factor of its covariance, as it makes them of its state."""
    if not (np.isfinite(mean).all() and np.isfinite(factor).all()):
        raise StorageError("the root has a mean or a covariance that is not finite")


def check_rows(arrays: Mapping[str, AnyArray], played: int, dim: int) -> None:
    """The rows that a likelihood which is not exact keeps."""
    lengths = counts(arrays, "glm.lengths", played)
    table(arrays, "glm.modes", (played, dim))
    rows = sum(lengths.tolist())
    table(arrays, "glm.X", (rows, dim))
    table(arrays, "glm.r", (rows,))


def check_root_prior(arrays: Mapping[str, AnyArray], dim: int) -> None:
    """The root as it was before any evidence, which some likelihoods are expanded around for ever."""
    for name, shape in (("glm.root_mean", (dim,)), ("glm.root_factor", (dim, dim))):
        if name not in arrays:
            raise StorageError(f"{name} is missing, without which its rows cannot be fitted as they were")
        table(arrays, name, shape)


__all__ = [
    "check_leaves", "check_like", "check_moments", "check_root_prior", "check_rows", "counts", "ids", "packed_semidefinite",
    "semidefinite", "table",
]  # fmt: skip
