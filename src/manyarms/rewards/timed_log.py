"""A log in the order of time, and how likely its rewards were, each given the rows before it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import cast

import numpy as np

from manyarms._base.typing import Array
from manyarms.beliefs import Likelihood, belief_of
from manyarms.beliefs.belief import Rounds
from manyarms.beliefs.drift import Drift
from manyarms.beliefs.drift.clock import LATEST
from manyarms.beliefs.drift.drift_memory import DriftMemory
from manyarms.beliefs.drift.memory import in_order
from manyarms.errors import InvalidInput
from manyarms.logs.data import LoggedData, LogSource, collect, concatenate
from manyarms.priors import ParameterPrior
from manyarms.rewards.reading import rows_of

AT_A_TIME = 2048  # rows between two reports


@dataclass(frozen=True)
class TimedLog:
    """A log whose first rows come in the order of time, and their times: as many as there are rows to be used."""

    source: LogSource
    times: Array
    clock: str
    by_time: bool  # whether timestamps gave the order

    @classmethod
    def of(cls, log: LogSource, clock: str | None, rows: int | None) -> TimedLog:
        """From one pass over the timestamps; of a log that is not in order all rows are taken into memory."""
        stamps, count = [], 0
        for part in log.chunks():
            count += len(part)
            if part.timestamps is not None:
                if np.isnat(part.timestamps).any():
                    raise InvalidInput("log", "a row without a timestamp", "timestamps of all rows, or of none")
                stamps.append(part.timestamps.astype("datetime64[us]").astype(np.int64))
        if count < 2:
            raise InvalidInput("log", f"{count} rows", "at least 2: change is seen between rows")
        if not stamps:
            if clock == "time":
                raise InvalidInput(
                    "clock", "'time', and a log without timestamps", "'rounds', or a log with timestamps"
                )
            return cls(log, np.arange(count, dtype=np.float64)[:rows], "rounds", False)
        moments = np.concatenate(stamps)
        times = (moments - moments.min()) / 1e6  # seconds since the first: since 1970, they would lose digits
        if (np.diff(times) < 0).any():
            order = in_order(times)
            log, times = collect(log).rows(order), times[order]
        times = times[:rows]
        if clock == "rounds":
            times = np.arange(len(times), dtype=np.float64)
        elif times[-1] == times[0]:
            raise InvalidInput("log", "rows of one time", "times that differ, or clock='rounds'")
        return cls(log, times, clock or "time", True)

    def __len__(self) -> int:
        return len(self.times)

    @property
    def length(self) -> float:
        """How long it is, by its clock."""
        return float(self.times[-1] - self.times[0]) + (1.0 if self.clock == "rounds" else 0.0)

    def first(self, rows: int) -> TimedLog:
        """Its first rows, in memory."""
        kept, missing = list[LoggedData](), min(rows, len(self))
        for part in self.source.chunks():
            kept.append(part if len(part) <= missing else part.rows(slice(0, missing)))
            missing -= len(kept[-1])
            if not missing:
                break
        return TimedLog(concatenate(kept, chunks=True), self.times[:rows], self.clock, self.by_time)

    def log_densities(
        self, prior: ParameterPrior, likelihood: Likelihood, half_life: float, tell: Callable[[int], None] | None = None
    ) -> Array:
        """(n,): log p of each reward given the rows before it, under this half-life; tell: how many rows are done."""
        drift = Drift(half_life=min(half_life, LATEST), clock=self.clock, tolerance=0.0)
        belief = belief_of(prior, likelihood, drift=drift)
        memory = cast(DriftMemory, belief.memory)
        scores, done = np.empty(len(self)), 0
        for rows in self._parts(rows_of(self.source, belief)):
            some = slice(done, done + len(rows[0]))
            memory.learn(belief, *belief.evidence(*rows), self.times[some], scores=scores[some])
            done = some.stop
            if tell is not None:
                tell(done)
        return scores

    def _parts(self, chunks: Iterator[Rounds]) -> Iterator[Rounds]:
        """The rows, a few at a time."""
        left = len(self)
        for X, actions, rewards in chunks:
            for start in range(0, min(left, len(X)), AT_A_TIME):
                some = slice(start, min(start + AT_A_TIME, left))
                yield X[some], actions[some], rewards[some]
            left -= len(X)
            if left <= 0:
                return


__all__ = ["TimedLog"]
