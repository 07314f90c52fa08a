"""LoggedData: what happened. Contexts, the actions that were played, their rewards, and how likely each play was.

    round i:  context x_i in R^d,  action a_i ~ π₀(· | x_i),  reward r_i,  propensity π₀(a_i | x_i)

(thesis, Section 5.1). All arrays have one entry a round and none has one an action, so that K may be anything.
A log that does not fit into memory is a `LogSource`: something that gives the same rounds in chunks, as often as asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import InitVar, dataclass, replace
from functools import cached_property
from inspect import getattr_static
from numbers import Integral
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np
import numpy.typing as npt

from manyarms._base import validate
from manyarms._base.private import locked
from manyarms._base.tables import Shown, Table
from manyarms._base.typing import AnyArray, Array, Bools, Ints
from manyarms.errors import InvalidInput
from manyarms.logs import checks, fields, splitting, tables
from manyarms.logs.actions import Actions
from manyarms.logs.encoding import Encoder
from manyarms.logs.hashes import row_hashes, sequence_hash
from manyarms.logs.joining import joined_tables
from manyarms.logs.schema import Schema
from manyarms.logs.splitting import SplitBy
from manyarms.logs.usual_names import ESTIMATE, ESTIMATED

CHUNK = 65_536  # rounds a chunk: large enough for numpy, small enough for any memory

# fields with an entry a round, and how such a column is called in a table
PER_ROUND = {
    "contexts": "context", "actions": "action", "rewards": "reward", "propensities": "propensity", "support": "support",
    "support_probabilities": "support_probabilities", "event_ids": "event_id", "timestamps": "timestamp", "groups": "group",
    "estimated": ESTIMATED,
}  # fmt: skip


class LoggingPolicy(Protocol):
    """What a log needs to know of the policy that wrote it."""

    @property
    def action_count(self) -> int: ...

    def probabilities_of(self, X: Array, actions: Ints, /) -> Array: ...


@runtime_checkable
class LogSource(Protocol):
    """Rounds in chunks: a log in memory, or a file larger than memory. Every call of `chunks` starts anew."""

    @property
    def action_count(self) -> int: ...

    @property
    def dim(self) -> int: ...

    def chunks(self, rows: int = CHUNK) -> Iterator[LoggedData]: ...


def a_log(name: str, value: LogSource) -> LogSource:
    """A log in memory, or a source of one; told without asking it anything, since the answer might take a pass over a file."""
    parts = ("action_count", "dim", "chunks")
    if isinstance(value, type) or any(getattr_static(value, part, None) is None for part in parts):
        raise InvalidInput(
            name, validate.describe(value), "a log: LoggedData, or a source of chunks such as open_log gives"
        )
    return value


@dataclass(frozen=True, eq=False, repr=False)
class LoggedData(Shown):
    """A log in memory, checked when it is made: n rounds, contexts of length d, K = `action_count` actions.

    contexts (n, d)                     float64
    actions (n,)                        rows of the actions played, 0 .. K-1
    rewards (n,)                        float64
    propensities (n,)                   π₀(a_i | x_i) in (0, 1]; None where nobody knows them
    propensities_are_estimates          True where any were estimated from a log rather than written by the logger
    estimated (n,)                      which of them were, where some were and some not; None where all are of one kind
    support (n, k₀)                     the logging policy's k₀ most likely actions in each round, distinct
    support_probabilities (n, k₀)       and how likely they were
    logging                             the logging policy itself, where it is at hand
    event_ids, timestamps, groups (n,)  strings; datetime64; whatever rounds have in common (a user, a session):
                                        rounds of one group stay together when the log is split
    catalogue                           the ids of the actions, row by row
    encoder                             how contexts were made from columns, to be applied to new ones
    notes                               what was done to the log on its way here, in plain words
    origin, positions (n,)              the log that this is a part of, and where its rounds are there; None for a whole log
    sources                             of a log joined from several: their fingerprints, and where its rounds are there
    original                            the columns that the rounds were read from, where they were kept
    """

    contexts: Array
    actions: Ints
    rewards: Array
    action_count: int
    propensities: Array | None = None
    propensities_are_estimates: bool = False
    support: Ints | None = None
    support_probabilities: Array | None = None
    logging: LoggingPolicy | None = None
    event_ids: AnyArray | None = None
    timestamps: AnyArray | None = None
    groups: AnyArray | None = None
    catalogue: Actions | None = None
    encoder: Encoder | None = None
    notes: tuple[str, ...] = ()
    origin: LoggedData | None = None
    positions: Ints | None = None
    sources: tuple[tuple[int, Ints], ...] = ()
    original: tables.Table | None = None
    estimated: Bools | None = None
    first_row: InitVar[int | Ints] = 0  # for messages: the number of the first row in its file, or of each row
    column_names: InitVar[Mapping[str, str] | None] = None  # for messages: what the file calls the fields
    row_unit: InitVar[str] = "row"  # for messages: what the file's rows are called, such as line

    def __post_init__(self, first_row: int | Ints, column_names: Mapping[str, str] | None, row_unit: str) -> None:
        where = checks.Where(checks.row_numbers(first_row), column_names, row_unit)
        self._set("_where", where)  # for messages to come
        contexts = checks.numbers("contexts", self.contexts, 2, where)
        rows, dim = contexts.shape
        if rows == 0:
            raise InvalidInput("contexts", "an empty log", "at least one round")
        if dim == 0:
            raise InvalidInput(
                "contexts", "contexts of length 0", "at least one number per round (a 1 if there is none)"
            )
        if isinstance(where.first_row, np.ndarray):
            checks.length_of("first_row", where.first_row, rows, where)
        action_count = validate.count("action_count", self.action_count)
        if action_count == 1:
            raise InvalidInput("action_count", 1, "at least 2 actions: with a single one there is nothing to choose")
        actions = checks.integers("actions", self.actions, 1, where, floats=False)  # as agents take them
        rewards = checks.numbers("rewards", self.rewards, 1, where)
        for field, array in (("actions", actions), ("rewards", rewards)):
            checks.length_of(field, array, rows, where)
        checks.action_rows("actions", actions, action_count, where)
        self._set("contexts", contexts)
        self._set("action_count", action_count)
        self._set("actions", actions)
        self._set("rewards", rewards)
        for name, value in fields.checked(self, where).items():
            self._set(name, value)

    @property
    def schema(self) -> Schema:
        """Encoder and ids, for what is learned from the log."""
        return Schema(self.encoder, self.catalogue)

    def __len__(self) -> int:
        return len(self.rewards)

    def __repr__(self) -> str:
        optional = ("propensities", "support", "logging", "event_ids", "timestamps", "groups", "catalogue", "encoder")
        there = [name for name in optional if getattr(self, name) is not None]
        if self.propensities_are_estimates:
            some = "" if self.estimated is None else f" ({self.estimated_share:.1%} of them)"
            there[0] = f"estimated propensities{some}"
        also = f", with {', '.join(there)}" if there else ""
        return f"LoggedData({len(self):,} rounds, {self.action_count:,} actions, contexts of length {self.dim}{also})"

    @property
    def dim(self) -> int:
        """d, the length of a context."""
        return int(self.contexts.shape[1])

    @property
    def estimated_rows(self) -> Bools:
        """(n,): the rounds whose propensities are estimates."""
        return np.full(len(self), self.propensities_are_estimates) if self.estimated is None else self.estimated

    @property
    def estimated_share(self) -> float:
        """Their share."""
        return float(self.propensities_are_estimates if self.estimated is None else self.estimated.mean())

    @cached_property
    def fingerprint(self) -> int:
        """A hash of 64 bits of all contexts, actions and rewards, in order."""
        parts = self.chunks()
        hashes = (row_hashes(part.contexts, part.actions, part.rewards) for part in parts)
        return sum(sequence_hash(some, i * CHUNK) for i, some in enumerate(hashes)) % 2**64

    def lineage(self) -> list[tuple[int, Ints]]:
        """By what rounds are known: the fingerprint of a log and places there, for all of them; then source by source."""
        whole = self if self.origin is None else self.origin
        places = np.arange(len(self)) if self.positions is None else self.positions
        found, first = [(whole.fingerprint, places)], 0
        for fingerprint, there in whole.sources:
            inside = places[(places >= first) & (places < first + len(there))] - first
            found.append((fingerprint, there[inside]))
            first += len(there)
        return found

    def rows(self, index: slice | npt.ArrayLike) -> LoggedData:
        """The rounds of a slice, of a mask, or of integers, in that order; slices copy nothing."""
        if not isinstance(index, slice):
            index = self._checked_index(index)
        elif (
            not all(isinstance(end, Integral | None) for end in (index.start, index.stop, index.step))
            or index.step == 0
        ):
            raise InvalidInput("index", validate.describe(index), "a slice of integers, with a step other than 0")
        part = self._part(index)
        if not len(part):
            raise InvalidInput("index", "no rows", "at least one row: a log is never empty")
        return part

    def _checked_index(self, index: npt.ArrayLike) -> AnyArray:
        """A mask, or integers."""
        if isinstance(index, Integral) and not isinstance(index, bool):
            index = [int(index)]
        if isinstance(index, np.ndarray) and index.dtype.kind == "b" and not np.ma.is_masked(index):
            if index.shape != (len(self),):
                raise InvalidInput("index", validate.describe(index), f"a mask of {len(self)} rows")
            return np.asarray(index)
        if isinstance(index, list) and index and all(isinstance(one, bool | np.bool_) for one in index):
            return self._checked_index(np.array(index))
        numbers = validate.integers("index", index, expected="a slice, a mask or an array of integers")
        if numbers.size and (numbers.min() < -len(self) or numbers.max() >= len(self)):
            raise InvalidInput("index", f"row {numbers.max()}", f"rows below {len(self)}")
        return numbers

    def chunks(self, rows: int = CHUNK) -> Iterator[LoggedData]:
        """The log in parts of `rows` rounds, in order, as views."""
        rows = validate.count("rows", rows)
        for start in range(0, len(self), rows):
            yield self._part(slice(start, start + rows))

    def split(
        self, fraction: float, seed: int | np.random.Generator | None = 0, *, by: SplitBy | None = None
    ) -> tuple[LoggedData, LoggedData]:
        """Two logs, `fraction` of the rounds in the first.

        by: "row", at random; "group", at random with the rounds of a group on one side; "time", the first rounds in time, those
        of one moment on one side (the notes tell of groups that lie on both). By default groups where there are any.
        """
        chosen, notes = splitting.split(self, fraction, seed, by)
        first, second = self._part(chosen), self._part(~chosen)
        for part in (first, second):
            part._set("notes", (*part.notes, *notes))
        return first, second

    def require(self, *needed: str, purpose: str) -> None:
        """Refuse, with the reason, to serve a purpose for which something is missing.

        needed: names of fields; "known_propensities" (not estimates); "unit_rewards" (all in [0, 1]).

        >>> log = LoggedData([[1.0]], [0], [1.0], action_count=2)
        >>> log.require("propensities", purpose="IPS")
        Traceback (most recent call last):
        manyarms.errors.InvalidInput: log: expected propensities for IPS (use manyarms.logs.estimate_propensities,
        or a direct method, which needs none), got a log without propensities
        """
        for name in needed:
            if name == "known_propensities":
                self.require("propensities", purpose=purpose)
                if self.propensities_are_estimates:
                    came = f"estimated propensities in {self.estimated_share:.1%} of the rounds"
                    raise InvalidInput("log", came, f"propensities as logged, for {purpose}")
            elif name == "unit_rewards":
                low, high = float(self.rewards.min()), float(self.rewards.max())
                if low < 0 or high > 1:
                    advice = "log.with_unit_rewards() rescales them with a note"
                    raise InvalidInput(
                        "log", f"rewards from {low:g} to {high:g}", f"rewards in [0, 1] for {purpose}; {advice}"
                    )
            elif name not in _ADVICE:
                raise InvalidInput("needed", repr(name), "one of " + ", ".join(sorted(_ADVICE)))
            elif getattr(self, name) is None:
                raise InvalidInput("log", f"a log without {name}", f"{name} for {purpose} ({_ADVICE[name]})")

    def with_notes(self, *notes: str, **changes: object) -> LoggedData:
        """The same log with fields changed and notes added."""
        return replace(self, notes=(*self.notes, *notes), **cast("dict[str, Any]", changes))

    def with_unit_rewards(self, low: float | None = None, high: float | None = None) -> LoggedData:
        """Rewards moved to [0, 1] by (r - low) / (high - low), with a note; the range is the log's own unless given.

        A value v on this scale is low + v (high - low) on the old one. Give the range that rewards can have, where it
        is known: the range of a sample is narrower, and moves with the sample.
        """
        seen = float(self.rewards.min()), float(self.rewards.max())
        bottom = seen[0] if low is None else validate.number("low", low)
        top = seen[1] if high is None else validate.number("high", high)
        if not bottom < top:
            raise InvalidInput("low, high", f"{bottom:g} and {top:g}", "low below high (all rewards may be the same)")
        if seen[0] < bottom or seen[1] > top:
            raise InvalidInput(
                "rewards", f"rewards from {seen[0]:g} to {seen[1]:g}", f"rewards in [{bottom:g}, {top:g}]"
            )
        how = "as given" if low is not None and high is not None else "of this log's own rewards"
        return self.with_notes(
            f"rewards were moved to [0, 1] from [{bottom:g}, {top:g}], the range {how}",
            rewards=(self.rewards - bottom) / (top - bottom),
            origin=self if self.origin is None else self.origin,
            positions=np.arange(len(self)) if self.positions is None else self.positions,
        )

    def _part(self, index: slice | AnyArray) -> LoggedData:
        """Rows without checking again what was checked."""
        part = self._twin()
        for name in PER_ROUND:
            if (value := getattr(self, name)) is not None:
                part._set(name, value[index])
        if self.original is not None:
            part._set("original", self.original.part(index))
        if part.estimated is not None:
            part._set("propensities_are_estimates", bool(part.estimated.any()))
        if self.positions is not None:
            part._set("positions", self.positions[index])
        else:
            part._set("origin", self)
            # a slice needs no numbers of all rows
            if isinstance(index, slice):
                part._set("positions", np.arange(*index.indices(len(self))))
            else:
                part._set("positions", np.arange(len(self))[index])
        return part

    def _twin(self) -> LoggedData:
        """A copy to be changed, without what follows from its rows."""
        twin = copy(self)
        vars(twin).pop("fingerprint", None)
        vars(twin).pop("_where", None)
        return twin

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def _table(self) -> Table:
        from manyarms.logs.printing import log_table

        return log_table(self)


_ADVICE = {
    "propensities": "use manyarms.logs.estimate_propensities, or a direct method, which needs none",
    "support": "the logger must write the most likely actions of each round",
    "support_probabilities": "the logger must write them beside the support",
    "logging": "give the policy that wrote the log",
    "event_ids": "map a column to event_id",
    "timestamps": "map a column to timestamp",
    "groups": "map a column to group",
    "catalogue": "read the log with string ids, or give manyarms.logs.Actions",
    "encoder": "read the log with an encoder",
}


def concatenate(logs: Iterable[LoggedData], *, chunks: bool = False) -> LoggedData:
    """One log of several with the same actions and fields, in order; notes are kept once each. chunks: those of one log."""
    chunks = validate.flag("chunks", chunks)
    if not isinstance(logs, Iterable):
        raise InvalidInput("logs", validate.describe(logs), "a list of logs")
    parts: Sequence[LoggedData] = list(logs)
    for part in parts:
        validate.instance("logs", part, LoggedData, "logs in memory (LoggedData)")
    if not parts:
        raise InvalidInput("logs", "none", "at least one log")
    first = parts[0]
    changes: dict[str, Any] = {}
    for position, part in enumerate(parts):
        if (part.action_count, part.dim) != (first.action_count, first.dim):
            came = f"{part.action_count} actions and contexts of length {part.dim} at position {position}"
            raise InvalidInput("logs", came, f"{first.action_count} actions and length {first.dim}, as the first")
        if part.catalogue is not first.catalogue and part.catalogue != first.catalogue:
            raise InvalidInput("logs", f"another catalogue at position {position}", "one catalogue")
    mixed = len({part.propensities_are_estimates for part in parts}) > 1
    told = mixed or any(part.estimated is not None for part in parts)
    for name in PER_ROUND:
        values = [getattr(part, name) for part in parts]
        if name == "estimated" and told:
            values = [part.estimated_rows for part in parts]
        absent = [value is None for value in values]
        if any(absent) and not all(absent):
            raise InvalidInput("logs", f"{name} in some of them only", f"{name} in all or in none")
        if not absent[0]:
            changes[name] = locked(np.concatenate(values))
    estimates = any(part.propensities_are_estimates for part in parts)
    notes = tuple(dict.fromkeys(note for part in parts for note in part.notes))
    joined = first._twin()
    of_one_log = first.origin is not None and all(part.origin is first.origin for part in parts)
    joined._set("origin", first.origin if of_one_log else None)
    places = [part.positions for part in parts if part.positions is not None]
    joined._set("positions", np.concatenate(places) if of_one_log else None)
    remembered = not of_one_log and len(parts) > 1 and not chunks
    joined._set("sources", tuple(part.lineage()[0] for part in parts) if remembered else first.sources)
    joined._set("original", joined_originals(parts))
    for name, value in (changes | {"propensities_are_estimates": estimates, "notes": notes}).items():
        joined._set(name, value)
    return joined


def joined_originals(parts: Sequence[LoggedData]) -> tables.Table | None:
    """The original columns of several logs, where all of them have kept theirs."""
    kept = [part.original for part in parts if part.original is not None]
    return joined_tables(kept) if len(kept) == len(parts) else None


def written_columns(log: LoggedData) -> dict[str, AnyArray]:
    """What a log has of each round, by the names that a file calls it; those of estimated propensities say what they are."""
    all_estimates = log.propensities_are_estimates and log.estimated is None
    names = PER_ROUND | ({"propensities": ESTIMATE} if all_estimates else {})
    arrays = {name: getattr(log, field) for field, name in names.items()}
    return {name: array for name, array in arrays.items() if array is not None}


def collect(source: LogSource, rows: int = CHUNK) -> LoggedData:
    """All rounds of a source in memory."""
    rows = validate.count("rows", rows)
    return source if isinstance(source, LoggedData) else concatenate(a_log("source", source).chunks(rows), chunks=True)


__all__ = [
    "CHUNK", "LogSource", "LoggedData", "LoggingPolicy", "a_log", "collect", "concatenate", "joined_originals",
    "written_columns",
]  # fmt: skip
