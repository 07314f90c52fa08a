"""What must be true of a live log whoever wrote it: positions without gaps, times that do not fall, records that fit together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from manyarms.live import log
from manyarms.live.progress import Progress
from manyarms.live.records import Chunk, DecisionRecord, RewardRecord, draw_number
from manyarms.live.stores.database import Reader

STEP = 4096  # positions at a time
MOST = 20  # differences that are named
UNREADABLE = (ValueError, KeyError, TypeError, AttributeError)  # what reading a damaged record may raise


@dataclass
class Differences:
    """What is wrong: how many, and the first of them in words."""

    number: int = 0
    named: list[str] = field(default_factory=list)

    def add(self, words: str) -> None:
        """Another one."""
        self.number += 1
        if len(self.named) < MOST:
            self.named.append(words)


def check_log(reader: Reader, origin: Chunk, found: Differences, progress: Progress) -> int:
    """Check everything that the store has after its origin, and what it still has of before; how many entries there are."""
    [(last, _)] = reader.execute("SELECT position, at FROM counter")
    chunks = _check_chunks(reader, origin, last, found)
    entries = _check_positions(reader, origin, last, found, progress)
    _check_decisions(reader, origin, last, chunks, found, progress)
    _check_rewards(reader, last, found, progress)
    _check_activations(reader, found)
    return entries


def all_chunks(reader: Reader, after: int) -> Iterator[Chunk]:
    """The chunks after a version, in order."""
    while some := log.chunks_after(reader, after):
        yield from some
        after = some[-1].version


def _check_chunks(reader: Reader, origin: Chunk, last: int, found: Differences) -> int:
    """Boundaries rise, nothing else falls; the newest version."""
    before = origin
    for chunk in all_chunks(reader, origin.version):
        name = f"chunk {chunk.version}"
        if chunk.version != before.version + 1:
            found.add(f"chunk {before.version + 1} is missing")
        if chunk.upto <= before.upto or chunk.upto > last:
            found.add(
                f"{name} ends at position {chunk.upto}: not between that of the one before, {before.upto}, and {last}"
            )
        if not before.due <= chunk.due <= chunk.upto:
            found.add(f"{name} settles up to {chunk.due}: less than the one before ({before.due}), or more than it has")
        if chunk.at < before.at:
            found.add(f"{name} was cut at {chunk.at}, earlier than the one before ({before.at})")
        if chunk.token < before.token:
            found.add(
                f"{name} was cut with token {chunk.token}, after one with {before.token}: by a learner without a lease"
            )
        before = chunk
    return before.version


def _check_positions(reader: Reader, origin: Chunk, last: int, found: Differences, progress: Progress) -> int:
    """Each position after the origin belongs to one entry, and times do not fall."""
    blanked = {
        position
        for operation in log.operations_between(reader, origin.upto, last)
        if operation.kind == "erase"
        for position in (*operation.body.get("rewards", ()), *operation.body.get("activations", ()))
    }
    chunks = all_chunks(reader, origin.version)
    chunk = next(chunks, None)
    after, time, entries = origin.upto, origin.at, 0
    while after < last:
        upto = min(last, after + STEP)
        rows = []
        for table in log.ENTRIES:
            sql = f"SELECT position, at FROM {table} WHERE position > ? AND position <= ?"
            rows += [(position, at, table) for position, at in reader.execute(sql, (after, upto))]
        while chunk is not None and chunk.upto <= upto:
            rows.append((chunk.upto, chunk.at, "chunks"))
            chunk = next(chunks, None)
        rows.sort()
        expected = (position for position in range(after + 1, upto + 1) if position not in blanked)
        _report_gaps([position for position, _, _ in rows], list(expected), found)
        for position, at, table in rows:
            if at < time:
                found.add(f"position {position} of {table} has the time {at}, and the one before {time}")
            time = max(time, at)
        after, entries = upto, entries + len(rows)
        progress(after, last, "positions and times")
    for table in log.ENTRIES:
        if beyond := reader.execute(f"SELECT COUNT(*) FROM {table} WHERE position > ?", (last,))[0][0]:
            found.add(f"{beyond:,} {table} have positions beyond the last one that was given out, {last}")
    return entries


def _report_gaps(came: list[int], expected: list[int], found: Differences) -> None:
    if came == expected:
        return
    seen = set(came)
    for position in expected:
        if position not in seen:
            found.add(f"position {position} is missing: nothing was decided, rewarded, activated, done or cut there")
    for position in sorted(seen - set(expected)):
        found.add(f"position {position} belongs to a reward or the activation of an event that was erased")
    for before, position in pairwise(came):
        if before == position:
            found.add(f"position {position} was given out twice")


def _check_decisions(
    reader: Reader, origin: Chunk, last: int, newest: int, found: Differences, progress: Progress
) -> None:
    after, version, made = 0, origin.version, origin.upto
    while positions := reader.execute(
        f"SELECT position FROM decisions WHERE position > ? ORDER BY position LIMIT {STEP}", (after,)
    ):
        for record in readable(reader, [position for (position,) in positions], found):
            if record.version > newest:
                found.add(f"event {record.id!r} was decided by version {record.version}, and the last one is {newest}")
            elif record.version > origin.version and record.version != version:
                chunk = log.chunk(reader, record.version)
                version, made = record.version, 0 if chunk is None else chunk.upto
            if record.version == version and made >= record.position:
                found.add(f"event {record.id!r} was decided by version {version}, which was made after it")
            if record.erased or record.question is None:
                continue
            if record.question.digest(record.unit, not record.deferred) != record.digest:
                found.add(
                    f"event {record.id!r}: context, filters, k, unit or `active` are not those asked for (its digest differs)"
                )
            if record.draw != (draw := draw_number(record.id, record.unit, record.version, record.arm)):
                found.add(f"event {record.id!r}: draw number {record.draw} recorded, {draw} expected")
        after = positions[-1][0]
        progress(after, last, "decisions")


def readable(reader: Reader, positions: list[int], found: Differences | None = None) -> list[DecisionRecord]:
    """Decisions by position, in order; one that cannot be read is a difference, and left out."""
    try:
        records = log.decisions_at(reader, positions)
        return [records[position] for position in positions if position in records]
    except UNREADABLE as error:
        if len(positions) == 1:
            if found is not None:
                found.add(f"the decision at position {positions[0]} cannot be read: {error}")
            return []
    return [record for position in positions for record in readable(reader, [position], found)]


def _check_rewards(reader: Reader, last: int, found: Differences, progress: Progress) -> None:
    after = 0
    while rows := reader.execute(
        f"SELECT {log.REWARD} FROM rewards WHERE position > ? ORDER BY position LIMIT {STEP}", (after,)
    ):
        rewards = [RewardRecord(*row) for row in rows]
        decisions = {r.position: r for r in readable(reader, sorted({reward.decision for reward in rewards}))}
        for reward in rewards:
            decision = decisions.get(reward.decision)
            if decision is None or decision.erased:
                found.add(f"the reward at position {reward.position} is of no event that there is")
            elif reward.action not in decision.actions or reward.position <= decision.position:
                found.add(
                    f"the reward at position {reward.position} is of action {reward.action} of event {decision.id!r}, whose "
                    f"actions were {decision.actions}, decided at position {decision.position}"
                )
        after = rewards[-1].position
        progress(after, last, "rewards")


def _check_activations(reader: Reader, found: Differences) -> None:
    sql = (
        "SELECT a.position FROM activations a LEFT JOIN decisions d ON d.position = a.decision "
        "WHERE d.position IS NULL OR d.erased = 1 OR d.active = 1 OR a.position <= d.position ORDER BY a.position"
    )
    for (position,) in reader.execute(sql):
        found.add(f"the activation at position {position} is of no event before it that was to be activated")


__all__ = ["Differences", "all_chunks", "check_log", "readable"]
