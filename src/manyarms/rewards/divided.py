"""Logs folded in pieces, on an engine: each worker sums its shards by action, and sums are added in a tree.

    log ──shards──> workers: rows checked, (G_a, B_a) of the actions in the shard ──add, two at a time──> what all rows tell

What travels follows the actions that a shard has seen, and not its rows: an action that is played a million times is one sum.
Large catalogues are cut by action into parts, each added up by itself: all sums are nowhere together but in what learns them.
Actions whose rows in all are more than sums hold to enough digits (`beliefs/folding.py`) are read a second time, as triangles.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from manyarms._base import linalg
from manyarms._base.typing import Ints
from manyarms.beliefs import Belief
from manyarms.beliefs.partial_sums import PartialSums, even_ends, gathered, gathered_apart, too_much
from manyarms.beliefs.sums import Sums, batches
from manyarms.engine import On, opened
from manyarms.errors import InvalidInput
from manyarms.logs.data import CHUNK, LoggedData, LogSource
from manyarms.logs.row_sketch import RowSketch
from manyarms.logs.shards import Shard, chunks_of, numbered_shards, shards_of
from manyarms.rewards.reading import rows_of

PART = 1 << 26  # bytes of sums that are added up together


@dataclass(frozen=True, eq=False)
class ShardOfLog:
    """A shard as a log of its own."""

    log: LogSource
    shard: Shard

    @property
    def action_count(self) -> int:
        """K."""
        return self.log.action_count

    @property
    def dim(self) -> int:
        """d."""
        return self.log.dim

    def chunks(self, rows: int = CHUNK) -> Iterator[LoggedData]:
        """Its rounds."""
        return chunks_of(self.log, self.shard, rows)


@dataclass(frozen=True, eq=False)
class _Told:
    """What a shard tells of some actions. sketch: of all its rows, in the first part alone."""

    sums: PartialSums
    sketch: RowSketch | None


@dataclass(frozen=True, eq=False)
class _Setting:
    """What all shards need. belief: whose limits the rows must keep; without one sums are taken of any rows."""

    log: LogSource
    belief: Belief | None
    parts: int


def _fold_shard(shard: Shard, setting: _Setting) -> list[_Told]:
    source, sketch, belief = ShardOfLog(setting.log, shard), RowSketch(shard.first_row), setting.belief
    rows = rows_of(source, belief, sketch, whole=False)
    if belief is not None:
        sums = gathered(belief, rows)
    else:
        plain = Sums(source.dim, source.action_count)
        for some in batches(rows, source.action_count):
            plain.add(*some)
        sums = PartialSums.of(plain)
    parts = sums.cut(even_ends(source.action_count, setting.parts))
    return [_Told(part, sketch if number == 0 else None) for number, part in enumerate(parts)]


def _together(one: _Told, other: _Told) -> _Told:
    sketch = one.sketch if one.sketch is None or other.sketch is None else one.sketch.join(other.sketch)
    return _Told(one.sums.add(other.sums), sketch)


def partial_sums(
    log: LogSource, on: On, belief: Belief | None = None
) -> Iterator[tuple[PartialSums, RowSketch | None]]:
    """The sums of a log, a part of the actions after the other; with the first comes the sketch of all rows."""
    if belief is not None and (belief.memory is not None or belief.likelihood.noise_variance is None):
        which = (
            "a belief that forgets" if belief.memory is not None else f"a {type(belief.likelihood).__name__} likelihood"
        )
        raise InvalidInput(
            "on",
            f"one of several processes with {which}",
            '"local": only linear rewards, whose rows add up, are divided',
        )
    pieces = shards_of(log, argument="source")
    numbers = linalg.packing(log.dim).size + log.dim + 3
    parts = max(1, -(-8 * numbers * log.action_count // PART))
    with opened(on) as engine:
        pieces = numbered_shards(engine, log, pieces)
        setting = _Setting(log, belief, parts)
        for told in engine.reduce_parts(_fold_shard, pieces, _together, parts, common=setting):
            if told.sketch is not None:
                told.sketch.end_of_log()
            yield told.sums, told.sketch


def fold_divided(belief: Belief, log: LogSource, on: On) -> RowSketch:
    """A belief learns a log; the sketch of the log's rows. An error leaves the belief as it was."""
    with opened(on) as engine:
        # parts are learned once all are there: a shard that cannot be read must not leave half a log learned
        found = list(partial_sums(log, engine, belief))
        sketch = found[0][1]
        apart = np.concatenate([too_much(belief, sums) for sums, _ in found])
        again = (
            engine.reduce(_fold_apart, shards_of(log), PartialSums.add, common=_Apart(log, belief, apart))
            if len(apart)
            else None
        )
    while found:
        sums, _ = found.pop(0)
        belief.learn_sums(*sums.without(apart).tables())
    if again is not None:
        belief.learn_sums(*again.tables())
    assert sketch is not None
    return sketch


@dataclass(frozen=True, eq=False)
class _Apart:
    """What a second reading needs, of the actions whose rows sums cannot hold to enough digits."""

    log: LogSource
    belief: Belief
    actions: Ints


def _fold_apart(shard: Shard, setting: _Apart) -> PartialSums:
    rows = rows_of(ShardOfLog(setting.log, shard), setting.belief, whole=False)
    return gathered_apart(setting.belief, rows, setting.actions)


__all__ = ["fold_divided", "partial_sums"]
