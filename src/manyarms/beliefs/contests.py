"""How likely an action is to win, given all that actions share: what propensities are averaged from.

Given the root (or the centres), scores are independent normals, so that the action with score N(mu, sd^2) is the best with
chance

    p = integral of phi(z) F(mu + sd z) dz,    F(s) = prod_b Phi((s - mu_b) / sd_b) over all other actions b,

and among the best k with F(s) replaced by the chance that fewer than k of them exceed s. The integral is taken over z = Q(v),
Q the quantile function of a logistic law put where the integrand is, by the trapezoidal rule with J nodes v = (j + U) / J and
one uniform U for all of them. Whatever J and Q are,

    (1/J) sum_j phi(z_j) F(mu + sd z_j) / q(z_j)

has expectation p over U: nothing is cut off and no step is too wide, they cost variance alone. The integrand is log-concave,
and for a smooth one that vanishes at both ends the rule converges faster than any power of J. Everything is done with
logarithms, so that no chance is rounded to 0 before it leaves as a float.

Many rivals with one common sd are put into bins by their means, each at the mean of its members (`binned`): first order in
the width of a bin is exact, and the second, with the widest bin allowed, moves the logarithm of F by less than 0.001 of
itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, cast

import numpy as np
from scipy.special import log_ndtr, logsumexp, ndtri

from manyarms._base.typing import Array

NODES = 5
BINS = 768
REACH = 17.0  # sds below the largest mean, beyond which a rival cannot matter
MANY = 2 * BINS  # rivals from which on they are binned
PIECE = 1 << 20  # nodes x rivals at once
LARGEST_K = 256  # places up to which the count of rivals ahead has its law worked out
LIKELY = 0.25  # rivals ahead with more than this chance are counted one by one
NEGLIGIBLE = 80.0  # minus the logarithm of a chance that adds nothing to the others
HALF_LOG_2PI = 0.5 * float(np.log(2 * np.pi))
STEPS = 60
POWERS = 40  # of odds up to 1/3: the next would be below rounding
TINY = 1e-300  # in place of an sd of 0, which a context of zeros has

Piece = tuple[Array, Array, Array]
"""Means, sds and counts of rivals."""
Cloud = tuple[Array, float, int]
"""Means and common sd of an equal mixture of normals, and how many rivals are drawn from it."""


@dataclass(frozen=True)
class Rivals:
    """Independent scores, counts_i of each N(mean_i, sd_i^2); and `cloud`: so many more, each from an equal mixture."""

    mean: Array
    sd: Array
    counts: Array
    cloud: Cloud | None = None

    @property
    def total(self) -> int:
        """How many there are."""
        return round(float(self.counts.sum())) + (self.cloud[2] if self.cloud else 0)

    @property
    def numbers(self) -> Array:
        """The number behind each column of `log_cdfs`."""
        return np.append(self.counts, float(self.cloud[2])) if self.cloud else self.counts

    def log_cdfs(self, s: Array) -> Array:
        """(J, N): log P(score <= s) of each kind of rival."""
        with np.errstate(over="ignore"):
            logs = log_ndtr((s[:, None] - self.mean) / self.sd)
        if self.cloud is None:
            return cast(Array, logs)
        means, sd, _ = self.cloud
        mixed = logsumexp(log_ndtr((s[:, None] - means) / sd), axis=1) - np.log(len(means))
        return np.concatenate([logs, mixed[:, None]], axis=1)

    def log_best(self, s: Array) -> Array:
        """(J,): log F, that none exceeds s."""
        return np.concatenate([self.log_cdfs(some) @ self.numbers for some in self._pieces(s)])

    def ahead(self, s: Array, k: int) -> Array:
        """(J, k): log P(at most j of them exceed s) for j < k."""
        return np.concatenate([few(self.log_cdfs(some), self.numbers, k) for some in self._pieces(s)])

    def log_fewer(self, s: Array, k: int) -> Array:
        """(J,): log P(fewer than k of them exceed s)."""
        return self.log_best(s) if k == 1 else self.ahead(s, k)[:, -1]

    def rough_fewer(self, s: Array, k: int) -> Array:
        """The same or, where it is left out as negligible, what is less and finite: which way is up can be told everywhere."""
        logs = self.log_fewer(s, k)
        return np.where(np.isneginf(logs), self.log_best(s), logs) if k > 1 and np.isneginf(logs).any() else logs

    def high(self) -> float:
        """A score that the best of them reaches often, at least."""
        best = self.mean - self.sd * ndtri(0.5 / np.maximum(self.counts, 0.5))
        best = float(np.max(best, initial=-np.inf, where=self.counts > 0))
        if self.cloud:
            means, sd, count = self.cloud
            best = max(best, float(means.max()) - sd * float(ndtri(min(0.5, len(means) / (2 * count)))))
        return best

    def _pieces(self, s: Array) -> list[Array]:
        size = max(1, PIECE // max(1, len(self.mean) + (len(self.cloud[0]) if self.cloud else 0)))
        return [s[i : i + size] for i in range(0, len(s), size)]


class Contest(NamedTuple):
    """An action with score N(mean, sd^2) against its rivals, given all that they share."""

    mean: float
    sd: float
    rivals: Rivals


class Found(NamedTuple):
    """The logarithm of a chance, and where its integrand lies: the mode and its width, to begin with the next time."""

    log: float
    mode: float
    width: float


def chance(contest: Contest, k: int, shift: float, start: Found | None = None) -> Found:
    """An unbiased estimate of the chance of a place among the best k, from one uniform `shift`."""
    mean, sd, rivals = contest
    if rivals.total < k:
        return Found(0.0, 0.0, 1.0)
    mode, width = _locate(contest, k, start)
    v = (np.arange(NODES) + shift) / NODES
    y = np.log(v) - np.log1p(-v)
    z = mode + width * y
    # the logistic density, of scale `width`, is v (1 - v) / width
    logs = -0.5 * z * z - HALF_LOG_2PI + rivals.log_fewer(mean + sd * z, k) - np.log(v * (1 - v)) + np.log(width)
    return Found(float(logsumexp(logs)) - float(np.log(NODES)), mode, width)


def _locate(contest: Contest, k: int, start: Found | None) -> tuple[float, float]:
    """About the mode of -z^2/2 + log P(fewer than k ahead), which is concave, and the larger of its half-widths, at most 1.

    The half-width is the sd of a normal law that falls as much on its wider side.
    """
    mean, sd, rivals = contest
    smooth = k == 1 and rivals.cloud is None
    if start is None:
        far = max((rivals.high() - mean) / sd, 0.0) if sd > 0 else 0.0
        mode, width = far, 1.0 / (1.0 + far)
        for _ in range(6 if smooth else 0):  # from below, where Newton's steps never go too far
            step, curved = _newton(contest, mode)
            if not abs(step) < 10:
                break
            mode, width = mode + step, min(1.0, curved)
            if abs(step) < 0.3 * width:
                break
    else:
        mode, width = start.mode, start.width
        step = _newton(contest, mode)[0] if smooth else np.inf
        if abs(step) < 1.5 * width:  # not far from the last time's
            return mode + step, width
    moved = 0
    for _ in range(STEPS):
        z = mode + width * np.array([-1.0, 0.0, 1.0])
        low, here, high = (-0.5 * z * z + rivals.rough_fewer(mean + sd * z, k)).tolist()
        if max(low, high) > here or not np.isfinite(here):  # uphill, in steps that grow where it goes on
            way = 1 if high > low or not np.isfinite(here) else -1
            mode += way * width
            width = 2 * width if way == moved else width
            moved = way
            continue
        fall = min(here - low, here - high)
        top = 0.5 * (high - low) / (2 * here - low - high) if np.isfinite(low + high) and fall > 0 else 0.0
        mode += width * top
        width = min(1.0, width / float(np.sqrt(2 * max(fall, 0.02))))
        if 0.1 < fall < 3.0 or (width == 1.0 and fall < 3.0):
            break
        moved = 0
    return mode, width


def _newton(contest: Contest, z: float) -> tuple[float, float]:
    """Newton's step towards the mode, and the width that the curvature here stands for; for the best of all."""
    mean, sd, rivals = contest
    with np.errstate(over="ignore", invalid="ignore"):
        at = (mean + sd * z - rivals.mean) / rivals.sd
        hazard = np.exp(-0.5 * at * at - HALF_LOG_2PI - log_ndtr(at))
        weight = rivals.counts * hazard * (sd / rivals.sd)
        bend = 1.0 + float(weight @ ((at + hazard) * (sd / rivals.sd)))
        step = (float(weight.sum()) - z) / bend
    return (step, 1.0 / float(np.sqrt(bend))) if np.isfinite(step) else (np.inf, 1.0)


def few(logs: Array, numbers: Array, k: int) -> Array:
    """(J, k): log P(at most j exceed) for j < k, where `numbers` of independent rivals stay below with log-chances `logs` (J, N).

    Those that exceed with more than a small chance are counted one by one. For the others, with odds o, the chances of 0, 1,
    ... are elementary symmetric polynomials of the odds, made of their power sums by Newton's identities, whose terms fall so
    fast for small odds that nothing cancels.
    """
    q = -np.expm1(logs)
    expected = q @ numbers
    with np.errstate(divide="ignore", invalid="ignore"):
        bound = np.where(expected > k, expected - k - k * np.log(expected / k), 0.0)  # Chernoff's
    keep = np.flatnonzero(bound < NEGLIGIBLE)
    out = np.full((len(logs), k), -np.inf)
    if not len(keep):
        return out
    q, logs = q[keep], logs[keep]
    likely = (q.max(axis=0) > LIKELY) & (numbers > 0)
    rest = ~likely & (numbers > 0)
    odds, weight = np.expm1(-logs[:, rest]), numbers[rest]  # q / (1 - q)
    law = np.zeros((len(keep), k))
    law[:, 0] = np.exp(logs[:, rest] @ weight)
    sums, power = [], np.ones_like(odds)
    for _ in range(min(k - 1, POWERS)):
        power = power * odds
        sums.append(power @ weight)
    for j in range(1, k):
        terms = [(-1) ** i * p * law[:, j - 1 - i] for i, p in enumerate(sums[:j])]
        law[:, j] = np.maximum(np.sum(terms, axis=0) / j, 0.0)
    for i in np.flatnonzero(likely).tolist():
        up = q[:, i, None]
        for _ in range(round(float(numbers[i]))):
            law[:, 1:] = law[:, 1:] * (1 - up) + law[:, :-1] * up
            law[:, :1] *= 1 - up
    with np.errstate(divide="ignore"):
        out[keep] = np.minimum(np.log(np.cumsum(law, axis=1)), 0.0)
    return out


def binned(mean: Array, sd: Array, counts: Array) -> Piece:
    """Fewer rivals in their place, by bins of their means where they share one sd (1,); those with a count of 0 are left out."""
    if len(sd) == 1 and len(mean) > MANY:
        found = _bins(mean, float(sd[0]), counts)
        if not len(found[0]) or found[0][-1] >= mean.max() - REACH / 2 * sd[0]:
            return found
    if not counts.all():  # and the bins were not laid around those that are gone
        here = np.flatnonzero(counts)
        return binned(mean[here], sd if len(sd) == 1 else sd[here], counts[here])
    return mean, np.broadcast_to(sd, mean.shape), counts


def _bins(mean: Array, sd: float, counts: Array) -> Piece:
    top = float(mean.max())
    low = max(float(mean.min()), top - REACH * sd)
    at = (mean - low) / max((top - low) / BINS, TINY)
    np.maximum(at, 0.0, out=at)
    which = at.astype(np.int64)
    number = cast(Array, np.bincount(which, weights=counts, minlength=BINS + 1))
    at *= counts
    centre = np.bincount(which, weights=at, minlength=BINS + 1)
    filled = np.flatnonzero(number)
    counts = number[filled]
    return low + (top - low) / BINS * centre[filled] / counts, np.full(len(filled), sd), counts


def rivals(pieces: Iterable[Piece], cloud: Cloud | None = None) -> Rivals:
    """One set of rivals made of several."""
    mean, sd, counts = (np.concatenate(parts) for parts in zip(*pieces, strict=True))
    return Rivals(mean, np.maximum(sd, TINY), counts, cloud if cloud and cloud[2] else None)


__all__ = ["LARGEST_K", "Cloud", "Contest", "Found", "Piece", "Rivals", "binned", "chance", "few", "rivals"]
