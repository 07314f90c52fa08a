"""A store, verified: its log folded again from the beginning, every snapshot compared, every decision made again."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from manyarms._base import validate
from manyarms._base.tables import Shown, Table
from manyarms.errors import ManyArmsError, StorageError
from manyarms.live import comparing, log, packing, snapshots
from manyarms.live.deciding import decided, propensities
from manyarms.live.deployment import fraction
from manyarms.live.progress import Progress, to_whom
from manyarms.live.records import Chunk, DecisionRecord
from manyarms.live.state import NeedsRebuild, State, View
from manyarms.live.store_checks import UNREADABLE, Differences, all_chunks, check_log, readable
from manyarms.live.stores.database import Database, Reader
from manyarms.live.stores.opening import opened
from manyarms.live.uploads import is_edge

AT_ONCE = 512  # decisions


@dataclass(repr=False)
class Replayed(Shown):
    """What was verified, and what differs. `ok`: nothing does. `print` shows a table."""

    store: str
    begins: Chunk
    ends: Chunk
    entries: int = 0
    identical: int = 0  # snapshots, to the last bit
    rounded: int = 0  # snapshots, to 1e-9
    decisions: int = 0
    erased_since: int = 0
    before: int = 0
    left_out: int = 0
    elsewhere: int = 0
    propensities: int = 0
    differences: Differences = field(default_factory=Differences)

    @property
    def ok(self) -> bool:
        """Whether everything is as the log says."""
        return not self.differences.number

    def _table(self) -> Table:
        span = f"versions {self.begins.version} to {self.ends.version}"
        compared = f"{self.identical} identical to the last bit"
        if self.rounded:
            compared += f", {self.rounded} to {comparing.TOLERANCE:g} (made by other libraries, or on another machine)"
        made = [f"{self.decisions:,} the same"]
        made += [f"{self.left_out:,} not in the sample"] * bool(self.left_out)
        made += [f"{self.elsewhere:,} made at the edge, by bundles"] * bool(self.elsewhere)
        made += [f"{self.before:,} made before where this begins"] * bool(self.before)
        made += [f"{self.erased_since:,} not verifiable: what they were made from was erased"] * bool(self.erased_since)
        first, last = self.begins.upto + 1, self.ends.upto
        folded = f"positions {first:,} to {last:,} folded" if first <= last else "none folded"
        facts = {
            "log": f"{self.entries:,} entries, {folded}",
            "fold": span, "snapshots": compared, "decisions": "; ".join(made), "propensities": f"{self.propensities:,} the same",
            "differences": f"{self.differences.number:,}" if self.differences.number else "none",
        }  # fmt: skip
        more = self.differences.number - len(self.differences.named)
        named = [*self.differences.named, *([f"and {more:,} more"] if more else [])]
        return Table(self.store, rows=list(facts.items()), notes=named)


def replay(
    store: str | Path | Database,
    *,
    from_snapshot: bool = False,
    decisions: int | None = None,
    propensities: int = 100,
    progress: Progress | None = None,
) -> Replayed:
    """Verify a store: that its log is whole, that snapshots are what it folds to, and that decisions are those it would make.

    from_snapshot: begin with the newest snapshot instead of the origin: quick, and blind to what came before. decisions: make
    about so many again, a sample of all; every one unless said. propensities: about how many of those that were computed
    afterwards are computed again. progress: called now and then with how much is done, of how much, and what it is.

    Nothing is written. The store may be in use: what is verified is what it held when this began.
    """
    from_snapshot = validate.flag("from_snapshot", from_snapshot)
    wanted = None if decisions is None else validate.count("decisions", decisions, least=0)
    told = to_whom(progress)
    sample = validate.count("propensities", propensities, least=0)
    with opened(store) as database, database.reading() as reader:
        run = _Replay(reader, repr(database), wanted, sample, told)
        return run.run(from_snapshot)


class _Replay:
    """One run, on one state of the database."""

    def __init__(self, reader: Reader, name: str, decisions: int | None, propensities: int, progress: Progress) -> None:
        self._reader, self._progress = reader, progress
        self._found = Replayed(name, Chunk(), Chunk())
        self._total = _count(reader, "decisions WHERE erased = 0")
        computed = _count(reader, "propensities WHERE draws > 0")
        computed += _count(reader, "decisions WHERE propensity_kind = 'estimated' AND erased = 0")
        self._part = 1.0 if decisions is None else decisions / max(self._total, 1)
        self._propensity_part = propensities / max(computed, 1)
        rows = reader.execute("SELECT position, body FROM operations WHERE kind = 'erase'")
        self._erasures = [(position, json.loads(body)["decision"]) for position, body in rows]

    def run(self, from_snapshot: bool) -> Replayed:
        origin = snapshots.origin_in(self._reader)
        found, state = self._found, snapshots.newest_in(self._reader) if from_snapshot else origin
        found.begins = state.chunk
        found.entries = check_log(self._reader, origin.chunk, found.differences, self._progress)
        sql = "SELECT COUNT(*) FROM decisions WHERE version < ? AND erased = 0"
        found.before = self._reader.execute(sql, (state.chunk.version,))[0][0]
        self._fold(state)
        found.ends = state.chunk
        return found

    def _fold(self, state: State) -> None:
        """Fold chunk by chunk, and stop at every version to look at what was made of it."""
        sql = "SELECT version, writing, sha256 FROM snapshots"
        kept = {version: (writing, checksum) for version, writing, checksum in self._reader.execute(sql)}
        last = log.last_chunk(self._reader)
        total = state.chunk.version if last is None else last.version
        self._check_version(state, kept)
        for chunk in all_chunks(self._reader, state.chunk.version):
            if chunk.version != state.chunk.version + 1:
                self._say(f"nothing after version {state.chunk.version} can be folded: the next chunk is missing")
                return
            try:
                state.apply(self._reader, chunk)
            except (NeedsRebuild, ManyArmsError, AssertionError, *UNREADABLE) as error:
                self._say(f"version {chunk.version} cannot be folded: {error}")
                return
            self._check_version(state, kept)
            self._progress(chunk.version, total, f"{self._found.decisions:,} decisions made again")

    def _check_version(self, state: State, kept: dict[int, tuple[str, str]]) -> None:
        version = state.chunk.version
        if version in kept:
            self._compare(state, *kept[version])
        view: View | None = None
        for records in self._decisions_of(version):
            for record in records:
                if record.erased:
                    continue
                if is_edge(record):
                    self._found.elsewhere += 1
                elif any(where <= state.chunk.upto < position for position, where in self._erasures):
                    self._found.erased_since += 1
                elif fraction("replay", record.id) >= self._part:
                    self._found.left_out += 1
                else:
                    view = view or state.view()
                    self._decide_again(view, state.salt, record)
            if any(fraction("replayed propensity", record.id) < self._propensity_part for record in records):
                view = view or state.view()
                self._compute_again(view, state.chunk.upto, records)

    def _decisions_of(self, version: int) -> Any:
        after = 0
        sql = f"SELECT position FROM decisions WHERE version = ? AND position > ? ORDER BY position LIMIT {AT_ONCE}"
        while rows := self._reader.execute(sql, (version, after)):
            yield readable(self._reader, [position for (position,) in rows])
            after = rows[-1][0]

    def _compare(self, state: State, writing: str, checksum: str) -> None:
        name = f"the snapshot of version {state.chunk.version}"
        content = packing.read_parts(self._reader, writing)
        if packing.sha256(content) != checksum:
            self._say(f"{name} is damaged: its checksum differs")
            return
        folded = packing.pack_state(state)
        try:
            where = comparing.difference(content, folded)
        except StorageError as error:
            where = str(error)
        if where is not None:
            self._say(f"{name} is not what the log folds to: {where}")
        elif content == folded:
            self._found.identical += 1
        else:
            self._found.rounded += 1

    def _decide_again(self, view: View, salt: str, record: DecisionRecord) -> None:
        assert record.question is not None
        asked, baseline = record.question, record.details.get("baseline")
        try:
            made = decided(
                view, salt, asked, record.id, record.unit, baseline, estimate=False, active=not record.deferred
            )
        except (ManyArmsError, *UNREADABLE) as error:
            self._say(f"event {record.id!r} cannot be decided again: {error}")
            return
        for what in ("arm", "actions"):
            was, now = getattr(record, what), getattr(made, what)
            if was != now:
                self._say(f"event {record.id!r}: {what} {was} recorded, {now} when decided again")
                return
        if record.propensity_kind == "exact" and not _close(record.propensity, made.propensity):
            self._say(
                f"event {record.id!r}: propensity {record.propensity} recorded, {made.propensity} when decided again"
            )
            return
        self._found.decisions += 1

    def _compute_again(self, view: View, upto: int, records: list[DecisionRecord]) -> None:
        stored = log.propensities_of(self._reader, [record.position for record in records])
        for record in records:
            known = stored.get(record.position)
            was = known[0] if known is not None and known[4] else record.propensity
            estimated = (known is not None and known[4]) or record.propensity_kind == "estimated"
            changed = record.erased or any(where <= upto < position for position, where in self._erasures)
            if not estimated or changed or fraction("replayed propensity", record.id) >= self._propensity_part:
                continue
            try:
                now = propensities(view, record)["propensity"]
            except (ManyArmsError, *UNREADABLE) as error:
                self._say(f"event {record.id!r}: its propensity cannot be computed again: {error}")
                continue
            if _close(was, now):
                self._found.propensities += 1
            else:
                self._say(f"event {record.id!r}: propensity {was} computed before, {now} now")

    def _say(self, words: str) -> None:
        self._found.differences.add(words)


def _count(reader: Reader, which: str) -> int:
    return int(reader.execute(f"SELECT COUNT(*) FROM {which}")[0][0])


def _close(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return math.isclose(one, other, rel_tol=comparing.TOLERANCE)


__all__ = ["Replayed", "replay"]
