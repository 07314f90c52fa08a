"""Which rows a policy was learned from, in less than a megabyte, and whether another log has some of them.

A certificate or an estimate of a policy on the rows that it was learned from is too good. So a policy carries a sketch of its
training rows, and a log that it is evaluated on is compared with it. A row is known by marks of 64 bits:

    groups      its group (a user, a session), where both logs have groups: rows of one group are not independent
    events      its event id, where both logs have them
    positions   the fingerprint of the log that it belongs to, and its place there
    contents    its context, action and reward; and its time, where both logs have times

Of each kind the SIZE smallest marks are kept. Marks are spread evenly, so that what two sketches hold below the lower of their
ends is a sample of both logs by the same rule: s rows in common of n and m leave about s SIZE / max(n, m) marks in common.

The first three name a row: one in common is a row in common. Contents do not, since rows of few contexts look alike. But if two
logs of n and m rows follow one law, then every row of both together is in the first with probability p = n / (n + m), and a
content that comes c times is in both logs with probability q_c = 1 - p^c - (1 - p)^c. With D the number of contents that come at
least twice, and X the number of these that are in both logs,

    P(X >= x) <= 3 sqrt(n + m) P(Binomial(D, mean of q_c) >= x)

(Hoeffding, 1956, for independent labels; the factor pays for their number being n). Where this is below ALPHA, the logs resemble
each other more than chance allows, and certificates refuse; where moreover nearly all rows of one are in the other, they are
taken for the same rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

import numpy as np
from scipy.special import bdtrc

from manyarms._base import validate
from manyarms._base.nested import prefixed, under
from manyarms._base.typing import AnyArray, Ints
from manyarms.errors import InvalidInput
from manyarms.logs.data import CHUNK, LoggedData, LogSource, a_log
from manyarms.logs.hashes import STEP, UInts, bits_of, mixed, row_hashes, sequence_hash, text_hashes

SIZE = 16_384
ALPHA = 1e-9
NEARLY_ALL = 0.9
KINDS = ("groups", "events", "positions", "timed_contents", "contents")  # in the order in which they decide


@dataclass(frozen=True)
class Overlap:
    """How much of a log is in another: the share of its rows (or groups), and by which marks they are known.

    certain: these rows are in both. Otherwise the logs resemble each other more than two independent logs do, no more.
    """

    share: float
    kind: str
    certain: bool

    def __str__(self) -> str:
        amount = "all" if self.share > 0.9995 else f"{max(self.share, 0.001):.1%}"
        known = {"groups": "groups", "events": "rows, known by their event ids", "positions": "rows"}
        return f"{amount} of its {known.get(self.kind, 'rows, known by context, action and reward')}"


@dataclass
class _Smallest:
    """The SIZE smallest of the marks seen, and how often each came."""

    marks: UInts = field(default_factory=lambda: np.empty(0, dtype=np.uint64))
    times: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    dropped: bool = False

    def add(self, marks: UInts, times: Ints | None = None, *, dropped: bool = False) -> None:
        times = np.ones(len(marks), dtype=np.int64) if times is None else times
        if self.dropped and not dropped:  # what lies beyond the end would be cut off again: most marks of a long log
            inside = np.flatnonzero(marks <= self.marks[-1])
            marks, times = marks[inside], times[inside]
        ends = [some[-1] for some, cut in ((self.marks, self.dropped), (marks, dropped)) if cut]
        found, where = np.unique(np.concatenate([self.marks, marks]), return_inverse=True)
        counted = np.bincount(where, np.concatenate([self.times, times]), len(found)).astype(np.int64)
        # beyond the lower end of what was cut off, not all marks are known
        room = min(SIZE, int(np.searchsorted(found, min(ends), side="right"))) if ends else SIZE
        self.dropped = bool(ends) or len(found) > SIZE
        self.marks, self.times = found[:room], counted[:room]

    def up_to(self, end: np.uint64 | None) -> _Smallest:
        stop = len(self.marks) if end is None else int(np.searchsorted(self.marks, end, side="right"))
        return _Smallest(self.marks[:stop], self.times[:stop])


class RowSketch:
    """A sketch of the rows of one or several logs, filled by passes over them."""

    def __init__(self, first_row: int = 0) -> None:
        """first_row: the place of the first row to come in its log, where that is read in parts (`join`)."""
        self.rows = 0
        self._first_row = first_row
        self._rows_of: dict[str, int] = {}  # how many rows have a mark of a kind
        self._logs: set[int] = set()  # fingerprints of the logs that the rows belong to
        self._kinds: dict[str, _Smallest] = {}
        self._stream = 0  # rows of a log that is no part of another, whose fingerprint is known at its end
        self._fingerprint = 0

    @classmethod
    def of(cls, *logs: LogSource) -> Self:
        """The sketch of all rows of some logs."""
        sketch = cls()
        for log in logs:
            for part in a_log("learned_from", log).chunks(CHUNK):
                sketch.add(part)
            sketch.end_of_log()
        return sketch

    def add(self, part: LoggedData) -> None:
        """The next chunk of a log."""
        contents = row_hashes(part.contexts, part.actions, part.rewards)
        self._see("contents", contents)
        if part.timestamps is not None:
            self._see("timed_contents", mixed(contents + mixed(bits_of(part.timestamps) + STEP)))
        if part.event_ids is not None:
            self._see("events", text_hashes(part.event_ids))
        if part.groups is not None:
            self._see("groups", text_hashes(part.groups.astype(np.str_)))
        if part.origin is None:
            self._fingerprint += sequence_hash(contents, self._first_row + self._stream)
            self._stream += len(part)
        else:
            for fingerprint, places in part.lineage():
                self._see("positions", _position_marks(fingerprint, places))
                self._logs.add(fingerprint)
        self.rows += len(part)

    def end_of_log(self) -> None:
        """All chunks of a log have come."""
        if self._stream:
            self._logs.add(self._fingerprint % 2**64)
        for start in range(0, self._stream, CHUNK):
            places = np.arange(start, min(start + CHUNK, self._stream))
            self._see("positions", _position_marks(self._fingerprint, places))
        self._stream, self._fingerprint, self._first_row = 0, 0, 0

    def join(self, later: RowSketch) -> RowSketch:
        """More rows of the same log, which come after those here; then this one itself. `end_of_log` comes after the last."""
        self._stream += later._stream
        self._fingerprint += later._fingerprint
        for kind, theirs in later._kinds.items():
            self._see(kind, theirs.marks, later._rows_of[kind], theirs.times, dropped=theirs.dropped)
        self.rows += later.rows
        self._logs |= later._logs
        return self

    def include(self, other: RowSketch) -> None:
        """All rows of another sketch as well. What one of them does not know of its rows, both together do not know."""
        for kind, theirs in other._known.items():
            self._see(kind, theirs.marks, other.rows, theirs.times, dropped=theirs.dropped)
        self.rows += other.rows
        self._logs |= other._logs

    def _see(
        self, kind: str, marks: UInts, rows: int | None = None, times: Ints | None = None, *, dropped: bool = False
    ) -> None:
        self._kinds.setdefault(kind, _Smallest()).add(marks, times, dropped=dropped)
        self._rows_of[kind] = self._rows_of.get(kind, 0) + (len(marks) if rows is None else rows)

    @property
    def _known(self) -> dict[str, _Smallest]:
        """The kinds of marks that all rows have: what some rows lack cannot tell that rows are others."""
        return {kind: one for kind, one in self._kinds.items() if self._rows_of[kind] >= self.rows}

    def overlap(self, other: RowSketch, *, by_group: bool = True) -> Overlap | None:
        """What of this log's rows the other log has; None where nothing says that they have rows in common.

        by_group: rows of one group depend on each other, so that a group in common counts as rows in common.
        """
        for kind in KINDS if by_group else KINDS[1:]:
            if kind not in self._known or kind not in other._known:
                continue
            mine, theirs = self._known[kind], other._known[kind]
            end = min((one.marks[-1] for one in (mine, theirs) if one.dropped), default=None)
            mine, theirs = mine.up_to(end), theirs.up_to(end)
            if "contents" in kind:
                return _resemblance(mine, theirs, kind)
            shared = np.isin(mine.marks, theirs.marks)
            if shared.any():
                weight = np.ones(len(shared)) if kind == "groups" else mine.times
                return Overlap(float(weight[shared].sum() / weight.sum()), kind, certain=True)
            if kind != "positions" or (len(self._logs) == 1 and self._logs == other._logs):
                return None  # all rows of both have such a name, and none has the same
        return None

    # ---- state --------------------------------------------------------------------------------------------------------

    def arrays(self) -> dict[str, AnyArray]:
        """Its state."""
        out: dict[str, AnyArray] = {
            "rows": np.array(self.rows), "logs": np.array(sorted(self._logs), dtype=np.uint64)
        }  # fmt: skip
        for kind, one in self._known.items():
            counted = one.times.astype(np.uint32) if "contents" in kind else np.empty(0, dtype=np.uint32)
            own: dict[str, AnyArray] = {"marks": one.marks, "times": counted, "dropped": np.array(one.dropped)}
            out |= prefixed(f"{kind}.", own)
        return out

    @classmethod
    def restored(cls, arrays: Mapping[str, AnyArray]) -> Self:
        """The sketch that `arrays()` describes."""
        sketch = cls()
        sketch.rows = validate.count("training_rows.rows", arrays["rows"].item(), least=0)
        sketch._logs = set(_checked_marks("logs", arrays["logs"], len(arrays["logs"])).tolist())
        for kind in KINDS:
            own = under(f"{kind}.", dict(arrays))
            if own:
                marks = _checked_marks(kind, own["marks"])
                times = own["times"].astype(np.int64) if len(own["times"]) else np.ones(len(marks), np.int64)
                counted = own["times"].dtype == np.uint32 and times.shape == marks.shape and not (times < 1).any()
                if not counted or (own["dropped"] and not len(marks)):
                    raise InvalidInput(
                        f"training_rows.{kind}", validate.describe(times), "a count for each of its marks"
                    )
                sketch._kinds[kind] = _Smallest(marks, times, bool(own["dropped"]))
                sketch._rows_of[kind] = sketch.rows
        return sketch


def _checked_marks(kind: str, marks: AnyArray, most: int = SIZE) -> UInts:
    """Saved marks: in rising order, no more than a sketch has."""
    if marks.dtype != np.uint64 or marks.ndim != 1 or len(marks) > most or (marks[1:] <= marks[:-1]).any():
        came = f"an array of shape {marks.shape} and type {marks.dtype}"
        raise InvalidInput(f"training_rows.{kind}", came, f"at most {most} different marks in rising order")
    return marks


def require_other_rows(argument: str, learned_from: LogSource | RowSketch, log: LogSource) -> None:
    """Refuse a log that has rows in common with the one that something was learned from."""
    refuse(argument, RowSketch.of(log).overlap(sketch_of(learned_from)))


def sketch_of(log: LogSource | RowSketch) -> RowSketch:
    """A sketch, or that of a log."""
    return log if isinstance(log, RowSketch) else RowSketch.of(log)


def refuse(argument: str, overlap: Overlap | None) -> None:
    """Refuse rows that are shared, or look alike more than chance explains."""
    if overlap is None:
        return
    if overlap.kind == "groups":
        raise InvalidInput(
            argument, f"what was learned from groups (users, sessions) that this log has as well ({overlap})",
            "other groups than those learned from: log.split keeps the rows of a group together",
        )  # fmt: skip
    if "contents" in overlap.kind and not overlap.certain:
        raise InvalidInput(
            argument, f"what was learned from a log that looks like this one more than chance explains ({overlap})",
            "other rows than those learned from; where they are, event ids or times in both logs tell rows apart",
        )  # fmt: skip
    raise InvalidInput(
        argument, f"what was learned from a log that shares rows with this one ({overlap})",
        "other rows than those learned from, as log.split gives them before learning; a randomised policy that was learned from "
        "these very rows can be certified with the prior that learning started from (prior=)",
    )  # fmt: skip


def _resemblance(mine: _Smallest, theirs: _Smallest, kind: str) -> Overlap | None:
    """Whether two logs have more contents in common than chance explains."""
    marks, where = np.unique(np.concatenate([mine.marks, theirs.marks]), return_inverse=True)
    counts = np.zeros((2, len(marks)), dtype=np.int64)
    counts[0, where[: len(mine.marks)]] = mine.times
    counts[1, where[len(mine.marks) :]] = theirs.times
    total, both = counts.sum(axis=0), (counts > 0).all(axis=0)
    several = total >= 2
    n, m = (int(one) for one in counts.sum(axis=1))
    if not both.any():
        return None
    p = n / (n + m)
    chance = float(np.mean(1.0 - p ** total[several] - (1.0 - p) ** total[several]))
    excess = 3.0 * math.sqrt(n + m) * float(bdtrc(int(both.sum()) - 1, int(several.sum()), chance))  # as many, or more
    if excess >= ALPHA:
        return None
    shares = counts[:, both].sum(axis=1) / np.array([n, m])
    return Overlap(float(shares[0]), kind, certain=bool(shares.max() >= NEARLY_ALL))


def _position_marks(fingerprint: int, positions: Ints) -> UInts:
    with np.errstate(over="ignore"):
        return mixed(np.uint64(fingerprint % 2**64) + mixed(positions.astype(np.uint64) + STEP))


__all__ = ["Overlap", "RowSketch", "refuse", "require_other_rows", "sketch_of"]
