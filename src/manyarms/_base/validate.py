"""Checks at the edge: bad input meets a clear error here and never reaches linear algebra."""

from __future__ import annotations

import decimal
import math
import numbers
from collections.abc import Sequence
from typing import TypeVar, cast

import numpy as np
import numpy.typing as npt

from manyarms._base import memory
from manyarms._base.typing import AnyArray, Array, Ints
from manyarms.errors import InvalidInput, UnknownAction

Kind = TypeVar("Kind")

LARGEST = 1e100  # products of a few such numbers are still finite
SMALLEST = 1e-100  # and so are their quotients
LEAST_LEFT = 1e-14  # of a variance, once the other components are known: two digits above the rounding of the whole
SMALL = 1 << 26  # bytes that every machine has
MOST = 2**63 - 1  # of anything that is counted: what a 64-bit integer holds


def describe(value: object) -> str:
    """A short account of a wrong value for an error message, never a whole array."""
    if isinstance(value, np.ma.MaskedArray):
        return f"a masked array of shape {value.shape} and type {value.dtype}"
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape} and type {value.dtype}"
    if isinstance(value, int) and value.bit_length() > 256:
        return f"an integer of {value.bit_length():,} bits"
    try:
        text = repr(value)
    except Exception:  # somebody else's __repr__, or a list with an integer of more digits than Python prints
        text = f"an object of type {type(value).__name__}"
    text = text.encode("utf-8", "backslashreplace").decode("utf-8")  # a lone surrogate could not be printed
    return text if len(text) <= 80 else f"{text[:77]}..."


def as_floats(name: str, value: npt.ArrayLike, expected: str = "an array of finite numbers") -> Array:
    """`value` as a float64 array of finite numbers, none so large that its square might overflow.

    Not a copy where it is one already: what is kept for longer than a call goes through `owned`.
    """
    try:
        array = _real_numbers(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInput(name, describe(value), expected) from error
    if not np.vdot(array, array) < LARGEST**2:  # one cheap pass in the usual case
        wrong = ~(np.abs(array) < LARGEST)
        if wrong.any():
            where = tuple(int(i) for i in np.argwhere(wrong)[0])
            raise InvalidInput(name, f"{array[where]} at position {where}", f"{expected} below {LARGEST:g} in size")
    return array


def _real_numbers(value: npt.ArrayLike) -> Array:
    """Any form of real numbers as float64; an error for what NumPy would turn into numbers although it is something else."""
    if type(value) is np.ndarray and value.dtype == np.float64:
        return value
    if np.ma.is_masked(value):
        raise TypeError("entries that are masked have no value")
    array = np.asarray(value)
    if array.dtype.kind == "O":
        for item in array.flat:
            if not isinstance(item, numbers.Real | decimal.Decimal):
                raise TypeError(f"{type(item).__name__} is no type of real numbers")
    elif (
        array.dtype.kind not in "fiub"
    ):  # numpy would drop imaginary parts, and read numbers from strings, dates and records
        raise TypeError(f"{array.dtype} is no type of real numbers")
    return array.astype(np.float64, copy=False)


def owned(array: AnyArray) -> AnyArray:
    """The array as its owner keeps it: read-only, and nobody else's. Copied, unless it is like that already."""
    if type(array) is np.ndarray and not array.flags.writeable and array.base is None:
        return array
    copy = np.array(array)
    copy.flags.writeable = False
    return copy


def integers(name: str, value: npt.ArrayLike, ndim: int = 1, expected: str = "") -> Ints:
    """`value` as an int64 array with so many axes; an empty list may have any type. No floats, no text, no masked entries."""
    try:
        if np.ma.is_masked(value):
            raise ValueError("entries that are masked have no value")
        array = np.asarray(value)
        fits = array.ndim == ndim and (not array.size or array.dtype.kind in "iu")
        fits = fits and not (array.dtype == np.uint64 and array.size and array.max() > np.iinfo(np.int64).max)
    except (TypeError, ValueError, OverflowError):  # lists of different lengths are a ValueError
        fits = False
    if not fits:
        wanted = expected or ("a list of integers" if ndim == 1 else f"an array of integers with {ndim} axes")
        raise InvalidInput(name, describe(value), wanted)
    return array.astype(np.int64, copy=False)


def action_ids(name: str, value: npt.ArrayLike, actions: int, ndim: int = 1) -> Ints:
    """Ids of actions, integers from 0 to actions - 1."""
    ids = integers(name, value, ndim, "a list of integers, ids of actions" if ndim == 1 else "")
    if ids.size and (ids.min() < 0 or ids.max() >= actions):
        bad = ids[(ids < 0) | (ids >= actions)].flat[0]
        raise UnknownAction(name, f"action {bad}", f"ids from 0 to {actions - 1}")
    return ids


def as_array(name: str, value: npt.ArrayLike, shape: tuple[int | None, ...]) -> Array:
    """`value` as a finite float64 array of the given shape; None stands for any positive length."""
    array = as_floats(name, value)
    fits = array.ndim == len(shape) and all(
        have > 0 if want is None else have == want for have, want in zip(array.shape, shape, strict=True)
    )
    if not fits:
        letters = iter("nmklpq")  # one for each free length: the same twice would ask for a square
        lengths = [next(letters) if length is None else str(length) for length in shape]
        wanted = "(" + ", ".join(lengths) + ("," if len(shape) == 1 else "") + ")"
        raise InvalidInput(name, f"shape {array.shape}", f"an array of shape {wanted}")
    return array


def rows(name: str, value: npt.ArrayLike, dim: int | None, what: str = "an array") -> Array:
    """`value` as finite float64 rows (n, dim), possibly none; rows of any length where dim is None."""
    array = as_floats(name, value)
    if array.ndim != 2 or dim not in (None, array.shape[1]):
        raise InvalidInput(name, f"shape {array.shape}", f"{what} of shape (n, {'d' if dim is None else dim})")
    return array


def number(
    name: str,
    value: object,
    *,
    least: float = -LARGEST,
    most: float = LARGEST,
    above: float | None = None,
    below: float | None = None,
) -> float:
    """A finite number in [least, most]; above or below a number, where that end does not count."""
    fits = isinstance(value, numbers.Real | decimal.Decimal) and not isinstance(value, bool | np.bool_)
    if fits:
        try:
            found = float(cast(float, value))
        except (OverflowError, ValueError):  # an integer of 400 digits, a signalling NaN
            fits = False
        else:
            fits = math.isfinite(found) and least <= found <= most
            fits = fits and (above is None or found > above) and (below is None or found < below)
    if not fits:
        raise InvalidInput(name, describe(value), f"a finite number{_between(least, most, above, below)}")
    return found


def _between(least: float, most: float, above: float | None, below: float | None) -> str:
    """The range of a number in words."""
    low = f"above {above:g}" if above is not None else "" if least == -LARGEST else f"of at least {least:g}"
    high = f"below {below:g}" if below is not None else "" if most == LARGEST else f"at most {most:g}"
    if above is None and below is None and low and high:
        return f" between {least:g} and {most:g}"
    ends = " and ".join(end for end in (low, high) if end)
    return f" {ends}" if ends else f" below {LARGEST:g} in size"


def positive(name: str, value: object) -> float:
    """A finite number above zero, not so small or so large that its square or its inverse has no meaning."""
    found = number(name, value, above=0)
    if found < SMALLEST:
        raise InvalidInput(name, describe(value), f"a finite number of at least {SMALLEST:g}")
    return found


def not_negative(name: str, value: object) -> float:
    """A finite number of at least zero."""
    return number(name, value, least=0)


def probability(name: str, value: object) -> float:
    """A number in [0, 1]."""
    return number(name, value, least=0, most=1)


def count(name: str, value: object, least: int = 1, most: int = MOST) -> int:
    """An integer of at least `least` and at most `most`; what it returns is a Python integer, which does not overflow."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or not least <= int(value) <= most:
        ends = f"of at least {least}" if most == MOST else f"from {least} to {most:,}"
        if most == MOST and isinstance(value, numbers.Integral) and int(value) > MOST:
            ends += ", and below 2**63"
        raise InvalidInput(name, describe(value), f"an integer {ends}")
    return int(value)


def room(name: str, number: int, bytes_each: float, what: str = "of them") -> int:
    """A number of things that fit into the memory there is, at so many bytes each; asked before anything is allocated."""
    if number * bytes_each > SMALL:  # finding out how much there is takes longer than most allocations
        free = memory.available()
        if number * bytes_each > free:
            most = int(free / bytes_each)
            raise InvalidInput(
                name, describe(number), f"at most {most:,} {what}: there is memory for {free / 2**30:.1f} GiB"
            )
    return number


def square_room(name: str, dim: int, matrices: float = 1) -> int:
    """A length for which there is memory for so many matrices of that many rows and columns."""
    if 8 * matrices * dim * dim > SMALL:
        free = memory.available()
        if 8 * matrices * dim * dim > free:
            most = math.isqrt(int(free / (8 * matrices)))
            expected = f"at most {most:,}, for matrices of {name} x {name}: there is memory for {free / 2**30:.1f} GiB"
            raise InvalidInput(name, describe(dim), expected)
    return dim


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
    if array.ndim not in (2, 3) or array.shape[-1] != array.shape[-2] or not array.size:
        raise InvalidInput(name, f"shape {array.shape}", "a square matrix (d, d), or a stack of them (K, d, d)")
    if dim is not None and array.shape[-1] != dim:
        raise InvalidInput(name, f"shape {array.shape}", f"matrices of {dim} x {dim}")
    scale = np.abs(array).max(axis=(-1, -2), keepdims=True)
    symmetric = (np.abs(array - np.swapaxes(array, -1, -2)) <= 1e-8 * scale).all(axis=(-1, -2))
    if not symmetric.all():
        came = f"a matrix{_position(~symmetric)} that is not symmetric"
        raise InvalidInput(name, came, "a symmetric positive definite matrix")
    array = (array + np.swapaxes(array, -1, -2)) / 2
    variances = np.diagonal(array, axis1=-2, axis2=-1)
    tiny = (variances > 0) & (variances < SMALLEST)
    if tiny.any():
        where = tiny.any(axis=-1)
        smallest = float(variances[tiny][0])
        raise InvalidInput(
            name,
            f"a variance of {smallest:.3g}{_position(where, ' in the matrix')}",
            f"variances of at least {SMALLEST:g}",
        )
    above_zero = (variances > 0).all(axis=-1)
    if not above_zero.all():
        raise _not_definite(name, array, ~above_zero)
    sd = np.sqrt(variances)
    correlations = array / (sd[..., :, None] * sd[..., None, :])  # scales cost no digits
    try:
        factor = np.linalg.cholesky(correlations)
    except np.linalg.LinAlgError:
        least = np.linalg.eigvalsh(correlations)[..., 0]
        raise _not_definite(name, array, least == least.min()) from None
    # what is left of a component's variance once those before it are known; doubles hold it to 1e-16 of the whole
    left = np.square(np.diagonal(factor, axis1=-2, axis2=-1)).min(axis=-1)
    if left.min() < LEAST_LEFT:
        worst = left == left.min()
        raise InvalidInput(
            name,
            f"a matrix{_position(worst)} that is singular but for rounding: the other components leave {left.min():.1g} of a "
            "variance",
            f"a positive definite matrix in which they leave at least {LEAST_LEFT:g} of it",
        )
    return array


def _position(bad: AnyArray | np.bool_, of: str = "") -> str:
    """Where the first bad matrix of a stack is, in words; nothing for a single one. bad: by matrix, () or (K,)."""
    return f"{of} at position {int(np.argmax(bad))}" if np.ndim(bad) else ""


def _not_definite(name: str, array: Array, bad: AnyArray | np.bool_) -> InvalidInput:
    """The error for a matrix, or the first bad one of a stack, that is not positive definite."""
    matrix = array[int(np.argmax(bad))] if np.ndim(bad) else array
    smallest = float(np.linalg.eigvalsh(matrix)[0])
    came = f"a matrix{_position(bad)} with smallest eigenvalue {smallest:.3g}"
    return InvalidInput(name, came, "a symmetric positive definite matrix")


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


def seeded(seed: int | np.random.Generator | None, name: str = "seed") -> np.random.Generator:
    """A generator from a seed, a generator, or fresh entropy."""
    if isinstance(seed, np.random.Generator):
        return seed
    if seed is not None and (not isinstance(seed, numbers.Integral) or isinstance(seed, bool) or seed < 0):
        raise InvalidInput(name, describe(seed), "an integer of at least 0, a numpy Generator, or None")
    return np.random.default_rng(None if seed is None else int(seed))


def seed(value: object, name: str = "seed") -> int:
    """An integer seed, where a generator would not do: the same result must come again."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or not 0 <= int(value) < 2**128:
        raise InvalidInput(name, describe(value), "an integer of at least 0 and below 2**128")
    return int(value)


def instance(name: str, value: object, kind: type[Kind], expected: str) -> Kind:
    """An object of a class, such as a prior or a log; `expected` says in words what it may be."""
    if isinstance(value, type) or not isinstance(value, kind):  # a class has the methods that a protocol asks for
        raise InvalidInput(name, describe(value), expected)
    return value
