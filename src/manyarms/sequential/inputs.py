"""What the statistics take: batches of numbers, levels, a range of rewards, and states that were saved; checked before anything
changes."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from manyarms._base import validate
from manyarms._base.typing import Array, Bools
from manyarms.errors import InvalidInput


def level(value: object, name: str = "alpha") -> float:
    """A probability of error: above 0, below 1, and not so small that one over it has no meaning."""
    found = validate.number(name, value, above=0, below=1)
    if found < validate.SMALLEST:
        raise InvalidInput(name, validate.describe(value), f"a number of at least {validate.SMALLEST:g} and below 1")
    return found


def batch(name: str, value: npt.ArrayLike, least: float, most: float = validate.LARGEST) -> Array:
    """One number, or a list of them, as an array with one axis; each in [least, most]."""
    expected = (
        f"numbers between {least:g} and {most:g}" if most < validate.LARGEST else f"numbers of at least {least:g}"
    )
    array = validate.as_floats(name, value, f"a number or a list of {expected}")
    if array.ndim > 1:
        raise InvalidInput(name, f"shape {array.shape}", "a number or a list of them")
    array = np.ascontiguousarray(np.atleast_1d(array))
    wrong = ~((array >= least) & (array <= most))
    if wrong.any():
        where = int(np.argmax(wrong))
        raise InvalidInput(name, f"{array[where]} at position {where}", expected)
    return array


def some(name: str, value: object, least: float, most: float, most_of_them: int = 1_000) -> tuple[float, ...]:
    """A list of at least one number in [least, most], none of them 0, as a tuple."""
    array = batch(name, value, least, most)  # type: ignore[arg-type]
    if np.ndim(value) != 1 or not 0 < len(array) <= most_of_them or (array == 0).any():  # type: ignore[arg-type]
        raise InvalidInput(name, validate.describe(value), f"a list of 1 to {most_of_them:,} numbers other than 0")
    return tuple(array.tolist())


def flags(name: str, value: npt.ArrayLike) -> Bools:
    """True or False, or a list of them, as an array with one axis."""
    try:
        array = np.asarray(value)
        fits = not np.ma.is_masked(value) and array.ndim <= 1 and (array.dtype == np.bool_ or not array.size)
    except (TypeError, ValueError):
        fits = False
    if not fits:
        raise InvalidInput(name, validate.describe(value), "True or False, or a list of them")
    return np.atleast_1d(array).astype(np.bool_)


def same_length(**batches: npt.NDArray[Any]) -> None:
    """Batches that belong together have one entry a round each."""
    if len({len(one) for one in batches.values()}) > 1:
        (first, one), (second, other) = list(batches.items())[:2]
        raise InvalidInput(second, f"{len(other)} numbers", f"as many as {first}, {len(one)}")


@dataclass(frozen=True, init=False)
class RewardRange:
    """The least and the largest reward there can be; inside, rewards are (r − least) / (largest − least), in [0, 1]."""

    least: float
    most: float

    def __init__(self, value: tuple[float, float]) -> None:
        try:
            low, high = value
        except (TypeError, ValueError) as error:
            raise InvalidInput(
                "reward_range", validate.describe(value), "a pair: the least and the largest reward"
            ) from error
        least = validate.number("reward_range", low)
        most = validate.number("reward_range", high, above=least)
        if not validate.SMALLEST <= most - least < validate.LARGEST:
            raise InvalidInput("reward_range", validate.describe(value), "rewards that are apart, and not too far")
        object.__setattr__(self, "least", least)
        object.__setattr__(self, "most", most)

    @property
    def span(self) -> float:
        """How far apart rewards can be."""
        return self.most - self.least

    def unit(self, name: str, value: npt.ArrayLike) -> Array:
        """Rewards as numbers in [0, 1]; one outside the range is refused."""
        return np.asarray((batch(name, value, self.least, self.most) - self.least) / self.span)

    def spec(self) -> list[float]:
        """The pair as JSON holds it."""
        return [self.least, self.most]


def finite(name: str, value: object) -> float:
    """A sum of squares, or another state that may be larger than anything that is given: finite, and not below 0."""
    return validate.number(name, value, least=0.0, most=sys.float_info.max)


def saved(spec: object, kind: str, *names: str) -> list[Any]:
    """The fields of what `spec()` gave, in this order; an error where it is something else."""
    if not isinstance(spec, Mapping) or set(spec) != {"kind", *names} or spec["kind"] != kind:
        raise InvalidInput("spec", validate.describe(spec), f"a dict as spec() gives it, of kind {kind!r}")
    return [spec[name] for name in names]


__all__ = ["RewardRange", "batch", "finite", "flags", "level", "same_length", "saved", "some"]
