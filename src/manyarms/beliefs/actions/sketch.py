"""Rows of features in few and short numbers, and how far a product with them can lie from the true one.

The mean score of a unit is s . c, its row of features times the coefficients of the question. A *sketch* of the row is s
turned to the principal axes of the first units, in float32: half the memory to read, and axes on which rows that come from a
factorisation or a network differ most. Where the last axes hold next to nothing, only the length of the rest is kept: by
Cauchy-Schwarz, s_rest . c_rest <= |s_rest| |c_rest|, so that the length times |c_rest| takes the place of the product. A sketch
times the turned coefficients is then an upper bound on the mean, but for roundings.

**Roundings.** With n numbers in a sketch and u = 2^-24, conversion to float32 and a sum of n products in any order err by at most
gamma_(n+2) |s| |c|, gamma_m = m u / (1 - m u). The turn R is orthogonal up to |R R^T - I|, which is measured, and products
with it in float64 err by less than f^2 2^-50. So a mean is never above the bound by more than

    error |s| |c| + SMALL,   error = 1.01 gamma_(n+3) + |R R^T - I| + f^2 2^-50,

after rows and coefficients were scaled by powers of two to about 1, where SMALL covers everything that underflows. Means that
decide are never taken from a sketch: what may win is computed again from its own row, in float64.

Everything here goes through products too small for a library to share among threads: what comes out depends on the rows alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import cast

import numpy as np
import numpy.typing as npt

from manyarms._base.typing import Array

Singles = npt.NDArray[np.float32]

WIDEST = 64  # features beyond this are not turned
SAMPLE = 1 << 14  # rows that the axes are found from
REST = 0.1  # the rest is dropped where its bound is below this part of the spread of the means
WORTH = 0.9  # features are turned if the sides of boxes become shorter by so much
TOGETHER = 64  # rows turned in one product
SMALL = 2.0**-90
LARGEST = 2.0**100  # rows longer than this many of the longest first row have no sketch
UP = 1 + 1e-12


@dataclass(frozen=True)
class Question:
    """Coefficients as sketches take them: turned, scaled to about 1, with the length of the rest at the end."""

    turned: Array
    singles: Singles
    size: float  # length of the scaled coefficients
    unit: float  # means are products times this


@dataclass(frozen=True)
class Questions:
    """The same for n questions."""

    turned: Array
    singles: Singles
    sizes: Array
    units: Array


@dataclass(frozen=True)
class Form:
    """A quadratic form |S b|^2 of rows b as sketches take it, scaled as they are."""

    matrix: Array  # of the numbers that are kept
    rest: float  # |S b| grows by no more than this times the length of the rest
    size: float  # and by no more than this times any error in the row


class Sketch:
    """How rows and coefficients are turned, scaled and shortened; fixed by the first units, and the same for all later ones."""

    def __init__(self, features: Array) -> None:
        width = features.shape[1]
        self._exponent = _exponent(features)
        self._turn: Array | None = None
        self.kept = width
        skew = 0.0
        if 2 <= width <= WIDEST:
            sample = np.ldexp(features[:: -(-len(features) // SAMPLE)], -self._exponent)
            gram = _gram(sample)
            power, axes = np.linalg.eigh(gram)
            power = np.maximum(power[::-1], 0.0)
            # against a c of no preferred direction, the rest's bound is sqrt(f - q) times the spread of what it bounds
            rest = np.append(np.cumsum(power[::-1])[::-1], 0.0) * np.arange(width, -1, -1)
            kept = int(np.argmax(rest <= REST**2 * power.sum()))
            self.kept = kept if kept + 1 < width else width
            # the sides of boxes add up, and their sum is least on these axes; where it is little less, features stay as they are
            if self.kept < width or np.sqrt(power).sum() < WORTH * np.sqrt(gram.diagonal()).sum():
                self._turn = np.array(axes[:, ::-1], order="C")
                skew = float(np.linalg.norm(self._turn @ self._turn.T - np.eye(width)))
        self.width = self.kept + (self.kept < width)
        rounding = (self.width + 3) * 2.0**-24
        self.error = 1.01 * rounding / (1 - rounding) + skew + width**2 * 2.0**-50

    def rows(self, features: Array) -> tuple[Singles, Array]:
        """Sketches (n, width) of rows of features, and the rows' lengths; a row too long for float32 gets 0 and infinity."""
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            turned = np.ldexp(features, -self._exponent)
            lengths = _length(turned)
            if self._turn is not None:
                turned = _turned(turned, self._turn)
            if self.kept < features.shape[1]:
                turned = np.column_stack([turned[:, : self.kept], _length(turned[:, self.kept :])])
            beyond = ~(lengths < LARGEST)
            if beyond.any():
                turned[beyond], lengths[beyond] = 0.0, np.inf
            return turned.astype(np.float32), lengths

    def question(self, c: Array) -> Question:
        """Coefficients, for products with sketches."""
        size, exponent, scaled = math.hypot(*c.tolist()), 0, c  # squares might overflow
        if not 2.0**-8 < size < 2.0**8:
            exponent = min(max(_exponent(c), -1000 - self._exponent), 1000 - self._exponent)
            scaled = np.ldexp(c, -exponent)  # 2.0**-exponent may be more than a float holds
            size = max(math.sqrt(scaled @ scaled), 2.0**-8)
        turned = scaled if self._turn is None else scaled @ self._turn
        if self.kept < len(c):
            rest = turned[self.kept :]
            turned = np.append(turned[: self.kept], math.sqrt(rest @ rest) * UP)
        return Question(turned, turned.astype(np.float32), size * UP, 2.0 ** (exponent + self._exponent))

    def questions(self, C: Array) -> Questions:
        """The same for many, C (n, f)."""
        limits = -1000 - self._exponent, 1000 - self._exponent
        exponents = np.clip(np.frexp(np.abs(C).max(axis=1, initial=0.0))[1], *limits)
        scaled = np.ldexp(C, -exponents[:, None])
        sizes = np.maximum(_length(scaled), 2.0**-8)
        turned = scaled if self._turn is None else scaled @ self._turn
        if self.kept < C.shape[1]:
            turned = np.column_stack([turned[:, : self.kept], _length(turned[:, self.kept :])])
        return Questions(turned, turned.astype(np.float32), sizes, np.ldexp(1.0, exponents + self._exponent))

    def form(self, Q: Array) -> Form:
        """The quadratic form b^T Q b, Q positive semidefinite, for bounds by sketches; not finite where floats do not hold it."""
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = np.ldexp((Q + Q.T) / 2, 2 * self._exponent)
            turned = scaled if self._turn is None else self._turn.T @ scaled @ self._turn
            kept, rest = turned[: self.kept, : self.kept], turned[self.kept :, self.kept :]
            return Form(kept, math.sqrt(max(rest.trace(), 0.0)), math.sqrt(max(scaled.trace(), 0.0)) * UP)


def _exponent(values: Array) -> int:
    """e with 2^(e-1) <= max |values| < 2^e."""
    return math.frexp(np.abs(values).max(initial=0.0))[1]


def _length(rows: Array) -> Array:
    return cast(Array, np.sqrt(np.einsum("ij,ij->i", rows, rows)) * UP)


def _in_groups(rows: Array) -> Array:
    """(n, 64, f): the rows in groups, with zeros at the end."""
    missing = -len(rows) % TOGETHER
    padded = np.concatenate([rows, np.zeros((missing, rows.shape[1]))]) if missing else rows
    return padded.reshape(-1, TOGETHER, rows.shape[1])


def _gram(rows: Array) -> Array:
    groups = _in_groups(rows)
    return cast(Array, np.matmul(groups.transpose(0, 2, 1), groups).sum(axis=0))


def _turned(rows: Array, turn: Array) -> Array:
    return cast(Array, np.matmul(_in_groups(rows), turn).reshape(-1, turn.shape[1])[: len(rows)])


__all__ = ["Form", "Question", "Questions", "Singles", "Sketch"]
