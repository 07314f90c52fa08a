"""Checks at the edge: bad input meets a clear error here and never reaches linear algebra."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from manyarms._base.typing import Array
from manyarms.errors import InvalidInput

LARGEST = 1e100  # products of a few such numbers are still finite


def describe(value: object) -> str:
    """A short account of a wrong value for an error message, never a whole array."""
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape} and type {value.dtype}"
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def as_floats(name: str, value: npt.ArrayLike, expected: str = "an array of finite numbers") -> Array:
    """`value` as a float64 array of finite numbers, none so large that its square might overflow."""
    try:
        array = np.asarray(value)
        if array.dtype.kind in "cSUmM":  # numpy would drop imaginary parts and read numbers from strings
            raise TypeError(f"{array.dtype} is no type of real numbers")
        array = array.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise InvalidInput(name, describe(value), expected) from error
    if not np.vdot(array, array) < LARGEST**2:  # one cheap pass in the usual case
        wrong = ~(np.abs(array) < LARGEST)
        if wrong.any():
            where = tuple(int(i) for i in np.argwhere(wrong)[0])
            raise InvalidInput(name, f"{array[where]} at position {where}", f"{expected} below {LARGEST:g} in size")
    return array


def as_array(name: str, value: npt.ArrayLike, shape: tuple[int | None, ...]) -> Array:
    """`value` as a finite float64 array of the given shape; None stands for any positive length."""
    array = as_floats(name, value)
    fits = array.ndim == len(shape) and all(
        have > 0 if want is None else have == want for have, want in zip(array.shape, shape, strict=True)
    )
    if not fits:
        wanted = "(" + ", ".join("n" if s is None else str(s) for s in shape) + ("," if len(shape) == 1 else "") + ")"
        raise InvalidInput(name, f"shape {array.shape}", f"an array of shape {wanted}")
    return array


def rows(name: str, value: npt.ArrayLike, dim: int | None, what: str = "an array") -> Array:
    """`value` as finite float64 rows (n, dim), possibly none; rows of any length where dim is None."""
    array = as_floats(name, value)
    if array.ndim != 2 or dim not in (None, array.shape[1]):
        raise InvalidInput(name, f"shape {array.shape}", f"{what} of shape (n, {'d' if dim is None else dim})")
    return array


def positive(name: str, value: float) -> float:
    """A finite number above zero."""
    if not isinstance(value, numbers.Real) or isinstance(value, bool) or not math.isfinite(value) or value <= 0:
        raise InvalidInput(name, describe(value), "a finite number above 0")
    return float(value)


def not_negative(name: str, value: float) -> float:
    """A finite number of at least zero."""
    if not isinstance(value, numbers.Real) or isinstance(value, bool) or not math.isfinite(value) or value < 0:
        raise InvalidInput(name, describe(value), "a finite number of at least 0")
    return float(value)


def probability(name: str, value: float) -> float:
    """A number in [0, 1]."""
    if not isinstance(value, numbers.Real) or isinstance(value, bool) or not 0 <= value <= 1:
        raise InvalidInput(name, describe(value), "a number between 0 and 1")
    return float(value)


def count(name: str, value: int, least: int = 1) -> int:
    """An integer of at least `least`."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < least:
        raise InvalidInput(name, describe(value), f"an integer of at least {least}")
    return int(value)


def flag(name: str, value: object) -> bool:
    """True or False."""
    if not isinstance(value, bool | np.bool_):
        raise InvalidInput(name, describe(value), "True or False")
    return bool(value)


def one_of(name: str, value: object, options: Sequence[str]) -> str:
    """One of some words."""
    if not isinstance(value, str) or value not in options:
        raise InvalidInput(name, describe(value), "one of " + ", ".join(options))
    return value


def covariance(name: str, value: npt.ArrayLike, dim: int | None = None) -> Array:
    """A symmetric positive definite matrix, or a stack of them (leading axis)."""
    array = as_floats(name, value)
    if array.ndim not in (2, 3) or array.shape[-1] != array.shape[-2] or array.shape[-1] == 0:
        raise InvalidInput(name, f"shape {array.shape}", "a square matrix (d, d), or a stack of them (K, d, d)")
    if dim is not None and array.shape[-1] != dim:
        raise InvalidInput(name, f"shape {array.shape}", f"matrices of {dim} x {dim}")
    scale = np.abs(array).max(axis=(-1, -2), keepdims=True)
    if not (np.abs(array - np.swapaxes(array, -1, -2)) <= 1e-8 * scale).all():
        raise InvalidInput(name, "a matrix that is not symmetric", "a symmetric positive definite matrix")
    array = (array + np.swapaxes(array, -1, -2)) / 2
    try:
        np.linalg.cholesky(array)
    except np.linalg.LinAlgError:
        smallest = float(np.linalg.eigvalsh(array).min())
        raise InvalidInput(
            name, f"a matrix with smallest eigenvalue {smallest:.3g}", "a symmetric positive definite matrix"
        ) from None
    return array


def one_covariance(name: str, value: npt.ArrayLike, dim: int) -> Array:
    """One symmetric positive definite matrix (d, d)."""
    matrix = covariance(name, value, dim)
    if matrix.ndim != 2:
        raise InvalidInput(name, f"shape {matrix.shape}", f"one matrix of shape ({dim}, {dim})")
    return matrix


def action_covariance(name: str, value: npt.ArrayLike, dim: int, actions: int) -> Array:
    """A covariance (d, d) that all actions share, or one for each of them (K, d, d)."""
    array = covariance(name, value, dim)
    if array.ndim == 3 and len(array) != actions:
        raise InvalidInput(name, f"{len(array)} matrices", f"one matrix, or one for each of the {actions} actions")
    return array


def seeded(seed: int | np.random.Generator | None) -> np.random.Generator:
    """A generator from a seed, a generator, or fresh entropy."""
    if isinstance(seed, np.random.Generator):
        return seed
    if seed is not None and (not isinstance(seed, numbers.Integral) or isinstance(seed, bool) or seed < 0):
        raise InvalidInput("seed", describe(seed), "an integer of at least 0, a numpy Generator, or None")
    return np.random.default_rng(seed)
