"""Feature coverage: what contexts look like, entry by entry, and what is strange about them, in plain words.

Counted over the last one to two windows of `WINDOW` contexts, so that a feature that stops coming is noticed; only the range of
what was ever seen is kept for good.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from manyarms._base.text import counted, number
from manyarms._base.typing import Array
from manyarms.logs.encoded_columns import NumberPart
from manyarms.logs.encoding import Encoder, TableEncoder

WINDOW = 10_000
ENOUGH = 200  # contexts before anything is said
ENOUGH_FOR_RANGES = 1_000
FAR = 3.0  # times the range seen before, beyond its ends
FAR_FROM_FIT = 8.0  # standard deviations of what the encoder was fitted to
MUCH_OTHER = 0.2
MOST_WARNINGS = 12
MOST_SHOWN = 200  # entries
AT_ONCE = 1_000_000  # numbers of contexts looked at in a step


@dataclass
class Moments:
    """Count, mean, sum of squares around it, zeros and the ends, of every entry."""

    count: int
    mean: Array
    squares: Array
    zeros: Array
    low: Array
    high: Array

    @classmethod
    def none(cls, dim: int) -> Moments:
        """Of nothing."""
        nothing = (np.zeros(dim), np.zeros(dim), np.zeros(dim))
        return cls(0, *nothing, np.full(dim, np.inf), np.full(dim, -np.inf))

    @classmethod
    def of(cls, X: Array) -> Moments:
        """Of contexts (n, d)."""
        mean = X.mean(axis=0)
        low, high = X.min(axis=0), X.max(axis=0)
        return cls(len(X), mean, ((X - mean) ** 2).sum(axis=0), (X == 0).sum(axis=0).astype(float), low, high)

    def merged(self, other: Moments) -> Moments:
        """Of both together."""
        if not self.count or not other.count:
            return other if not self.count else self
        total = self.count + other.count
        gap = other.mean - self.mean
        return Moments(
            total,
            self.mean + gap * (other.count / total),
            self.squares + other.squares + gap**2 * (self.count * other.count / total),
            self.zeros + other.zeros,
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
        )


class Features:
    """Contexts of one length, which is that of the first one; others are counted and left out."""

    def __init__(self, encoder: Encoder | None) -> None:
        self._encoder = encoder
        self._kinds = _kinds(encoder)
        self._dim: int | None = None
        self.left_out = 0

    def _begin(self, dim: int) -> None:
        self._dim = dim
        self._now, self._before = Moments.none(dim), Moments.none(dim)
        self._ever = Moments.none(dim)
        self._far = np.zeros(dim, dtype=np.int64)
        self._far_value, self._far_at = np.zeros(dim), np.full(dim, -np.inf)
        fits = self._encoder is not None and self._encoder.dim == dim
        self.names = list(self._encoder.names) if fits and self._encoder else [f"x[{entry}]" for entry in range(dim)]
        if not fits:
            self._kinds = [""] * dim
        # numbers that the encoder has standardised: their distance from the fit is known
        self._fitted = np.array([kind == "standardised" for kind in self._kinds], dtype=bool)

    def take(self, contexts: Sequence[Array | None], at: float) -> None:
        """Contexts of about the same time."""
        rows = [context for context in contexts if context is not None]
        if self._dim is None and rows:
            self._begin(len(rows[0]))
        fitting = [row for row in rows if len(row) == self._dim]
        self.left_out += len(contexts) - len(fitting)
        if not fitting or not self._dim:
            return
        every = max(1, len(fitting) * self._dim // AT_ONCE)
        X = np.array(fitting[::every])
        X = X[np.isfinite(X).all(axis=1)]
        if not len(X):
            return
        self._look_for_far(X, at)
        new = Moments.of(X)
        self._now, self._ever = self._now.merged(new), self._ever.merged(new)
        if self._now.count >= WINDOW:
            self._now, self._before = Moments.none(self._dim), self._now

    def _look_for_far(self, X: Array, at: float) -> None:
        """Entries far beyond what was seen before, or what the encoder was fitted to."""
        far = self._fitted & (np.abs(X) > FAR_FROM_FIT)
        if self._ever.count >= ENOUGH_FOR_RANGES:
            low, high = self._ever.low, self._ever.high
            slack = FAR * (high - low)
            beyond = np.maximum(X - high, low - X)
            far |= (slack > 0) & (beyond > slack)
        if far.any():
            self._far += far.sum(axis=0)
            for entry in np.flatnonzero(far.any(axis=0)).tolist():
                self._far_value[entry] = X[np.flatnonzero(far[:, entry])[-1], entry]
                self._far_at[entry] = at

    # ---- to look at

    def body(self, now: float) -> dict[str, Any]:
        """The entries and the warnings."""
        if self._dim is None:
            return {"contexts": 0, "left_out": self.left_out, "entries": [], "hidden": 0, "warnings": []}
        seen = self._before.merged(self._now)
        deviation = np.sqrt(seen.squares / max(1, seen.count))
        entries = [
            {
                "name": self.names[entry],
                "mean": float(seen.mean[entry]),
                "sd": float(deviation[entry]),
                "zeros": float(seen.zeros[entry] / max(1, seen.count)),
                "low": float(seen.low[entry]),
                "high": float(seen.high[entry]),
                "missing": float(seen.mean[entry]) if self._kinds[entry] == "missing" else None,
                "constant": bool(seen.low[entry] == seen.high[entry]),
                "far": int(self._far[entry]),
            }
            for entry in range(min(self._dim, MOST_SHOWN))
        ]
        return {
            "contexts": seen.count,
            "left_out": self.left_out,
            "entries": entries,
            "hidden": max(0, self._dim - MOST_SHOWN),
            "warnings": self._warnings(seen, now),
        }

    def _warnings(self, seen: Moments, now: float) -> list[str]:
        if seen.count < ENOUGH:
            return []
        found: list[str] = []
        decisions = f"{seen.count:,} decisions"
        constant = np.flatnonzero(seen.low == seen.high).tolist()
        ones = [entry for entry in constant if seen.low[entry] == 1.0 and self._kinds[entry] in ("", "intercept")]
        for entry in constant:
            name, kind, value = self.names[entry], self._kinds[entry], float(seen.low[entry])
            if entry in ones[:1] or (kind in ("missing", "other") and not value):
                continue  # an intercept; nothing is missing, nothing is unknown
            if kind == "category" and not value:
                found.append(f"feature {name} was never seen in {decisions}")
            else:
                found.append(f"all contexts have the same value in {name}: {number(value)} in {decisions}")
        for entry in range(self._dim or 0):
            share = float(seen.mean[entry])
            if self._kinds[entry] == "other" and share > MUCH_OTHER:
                column = self.names[entry].removesuffix(": other")
                found.append(f"{share:.0%} of contexts have a {column} that the encoder was not fitted to")
            if self._kinds[entry] == "missing" and share > MUCH_OTHER:
                found.append(f"{self.names[entry]} in {share:.0%} of contexts")
        for entry in np.flatnonzero(self._far_at > now - 86_400.0).tolist():
            far, count = number(float(self._far_value[entry])), int(self._far[entry])
            if self._fitted[entry] and abs(self._far_value[entry]) > FAR_FROM_FIT:
                text = f"{self.names[entry]} is far from what the encoder was fitted to: {far} standard deviations"
            else:
                text = f"{self.names[entry]} is far out of the range seen before: {far}"
            found.append(f"{text} ({counted(count, 'time')} so far)")
        if len(found) > MOST_WARNINGS:
            found = [*found[: MOST_WARNINGS - 1], f"and {len(found) - MOST_WARNINGS + 1:,} more features"]
        return found


def _kinds(encoder: Encoder | None) -> list[str]:
    """What each entry of a context is: intercept, number, standardised, missing, category, other; empty where nobody knows."""
    if not isinstance(encoder, TableEncoder):
        return [] if encoder is None else [""] * encoder.dim
    found = ["intercept"] if encoder.intercept else []
    for part in encoder.parts:
        if isinstance(part, NumberPart):
            found += ["standardised" if scaled else "number" for scaled in (part.scale != 1.0).tolist()]
        else:
            found += ["category"] * len(part.categories) + ["other"]
        found += ["missing"] if part.tells_missing else []
    return found


__all__ = ["Features", "Moments"]
