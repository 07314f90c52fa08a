"""Whether rewards drift, and how fast: the half-life under which a log is predicted best, one row after the other.

    sum over t of log p(r_t | rows before t)        (the prequential log-likelihood, Dawid 1984)

For linear rewards this sum is the log density of all rewards together: the evidence of the half-life, which pays for what is
forgotten too soon as for what is believed too long. Each half-life is a belief that learns the log once, in the order of time,
and tells how likely each reward was before it learns it (beliefs/drift/predicting.py). No drift is a half-life of 1e15. All of
them have the same prior and noise, and the best half-life is the best for these (fitting_drift.py finds them).

Likelihoods that are not linear are expanded row by row in all of them (beliefs/drift/drift_memory.py), and the factor of a
density that depends on the reward alone is left out: it cancels in differences.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import timedelta

import numpy as np

from manyarms._base import validate
from manyarms._base.typing import Array
from manyarms.beliefs import Likelihood, Linear
from manyarms.beliefs.drift.clock import CLOCKS, length_of_time
from manyarms.errors import InvalidInput
from manyarms.logs.data import LogSource
from manyarms.priors import ParameterPrior
from manyarms.rewards.drift_choice import DriftChoice, length_text
from manyarms.rewards.fitting_drift import fit_scales
from manyarms.rewards.reading import log_source
from manyarms.rewards.timed_log import TimedLog

STEPS = range(-5, 2)  # the default grid: the log's length times 4 to these powers
BLOCKS = 20  # of consecutive rows, over which differences are summed: longer than what half-lives that matter remember

HalfLives = Sequence[float | timedelta] | Array
"""Lengths: rounds, or seconds and timedeltas."""

Progress = Callable[[int, int, str], None]
"""Called now and then with how much is done, of how much, and what it is."""


def choose_drift(
    log: LogSource,
    prior: ParameterPrior,
    likelihood: Likelihood = Linear(),
    *,
    half_lives: HalfLives | None = None,
    clock: str | None = None,
    fit: bool = False,
    rows: int | None = None,
    progress: Progress | None = None,
) -> DriftChoice:
    """The half-life, or none, under which a log is predicted best.

    log: in memory or in chunks; its rows count in the order of their timestamps, or as they stand where it has none. Propensities
    are not needed. prior, likelihood: those of the agent that is to learn with the half-life. clock: "time", half-lives in
    seconds, or "rounds", every row being one; by default time where the log has timestamps. half_lives: what to try, beside no
    drift; by default seven, each four times the one before, from a thousandth of the log's length to four times that, and then
    half and twice the best of them. fit: whether the noise and the scales of the prior's covariances are fitted first, to the
    first 10,000 rows and together with a half-life; those that are given are where the search starts. rows: use only the first
    so many. progress: called with (done, total, words).

    A row costs some 20 microseconds for each half-life with independent actions, 30 with a latent vector, and 100 where rewards
    are not linear. The log is read once for each half-life, and once before; one belief is held at a time.

    >>> import numpy as np, manyarms as ma
    >>> rng = np.random.default_rng(0)
    >>> level = np.where(np.arange(600) % 200 < 100, 1.0, -1.0)  # of the second action, which changes now and then
    >>> actions = np.arange(600) % 2
    >>> log = ma.LoggedData(np.ones((600, 1)), actions, actions * level + 0.3 * rng.standard_normal(600), action_count=2)
    >>> prior, likelihood = ma.ActionPrior(2, [0.0], [[1.0]]), ma.Linear(0.3)
    >>> found = ma.rewards.choose_drift(log, prior, likelihood)
    >>> found.best  # rounds; changes are 100 from each other
    75.0
    >>> agent = ma.LinTS(prior, likelihood, drift=found.drift, seed=0)
    """
    log_source(log, "log")
    if progress is not None and not callable(progress):
        raise InvalidInput("progress", validate.describe(progress), "a function of (done, total, words), or None")
    if clock is not None:
        validate.one_of("clock", clock, CLOCKS)
    fit = validate.flag("fit", fit)
    timed = TimedLog.of(log, clock, None if rows is None else validate.count("rows", rows, least=2))
    lengths = _default_grid(timed) if half_lives is None else _checked(half_lives, timed.clock)
    if fit:
        told = progress
        listener = None if told is None else lambda done, most: told(done, most, f"noise and prior, {done} tried")
        prior, likelihood = fit_scales(timed, prior, likelihood, listener)
    search = _Search(timed, prior, likelihood, progress, passes=len(lengths) + 1)
    for half_life in (*lengths, math.inf):
        search.score(half_life)
    best = search.found().best
    if half_lives is None and best is not None:
        search.passes += 2
        search.score(best / 2)
        search.score(best * 2)
    return search.found()


class _Search:
    """Half-lives that have been tried on a log, by sums of log densities over blocks of rows."""

    def __init__(
        self, log: TimedLog, prior: ParameterPrior, likelihood: Likelihood, progress: Progress | None, passes: int
    ) -> None:
        self._log, self._prior, self._likelihood = log, prior, likelihood
        self._progress, self.passes = progress, passes
        self._blocks = np.arange(len(log)) * min(len(log), BLOCKS) // len(log)
        self._sums: dict[float, Array] = {}

    def score(self, half_life: float) -> None:
        """Learn the log once more, unless this one has been tried."""
        if half_life in self._sums:
            return
        rows, before, text = len(self._log), len(self._sums), length_text(half_life, self._log.clock)

        def tell(done: int) -> None:
            if self._progress is not None:
                words = f"{text}, {done:,} of {rows:,} rows"
                self._progress(before * rows + done, self.passes * rows, words)

        scores = self._log.log_densities(self._prior, self._likelihood, half_life, tell)
        self._sums[half_life] = np.bincount(self._blocks, scores).astype(np.float64)

    def found(self) -> DriftChoice:
        """What is known by now."""
        tried, counts = sorted(self._sums), np.bincount(self._blocks).astype(np.float64)
        sums = np.stack([self._sums[half_life] for half_life in tried])
        return DriftChoice.of_sums(
            tried, sums, counts, clock=self._log.clock, ordered=self._log.by_time, prior=self._prior,
            likelihood=self._likelihood,
        )  # fmt: skip


def _default_grid(log: TimedLog) -> list[float]:
    """Powers of four times the log's length, none much shorter than the time from row to row."""
    lengths = [float(f"{log.length * 4.0**step:.3g}") for step in STEPS]
    return [one for one in lengths if one >= 0.5 * log.length / len(log)]


def _checked(half_lives: HalfLives, clock: str) -> list[float]:
    """Those that are given, in order; infinity is tried in any case."""
    expected = "a list of half-lives, at least one that is finite"
    if isinstance(half_lives, np.ndarray):
        listed = half_lives.ndim == 1
    else:
        listed = isinstance(half_lives, Sequence) and not isinstance(half_lives, str | bytes)
    finite = [one for one in half_lives if not (isinstance(one, float) and one == math.inf)] if listed else []
    if not finite:
        raise InvalidInput("half_lives", validate.describe(half_lives), expected)
    return sorted({length_of_time("half_lives", one, clock == "rounds") for one in finite})


__all__ = ["HalfLives", "Progress", "choose_drift"]
