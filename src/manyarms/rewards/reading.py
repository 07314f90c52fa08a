"""Logs as reward models and beliefs read them: rows in chunks, checked, noted in a sketch; and the schema that goes with them."""

from __future__ import annotations

from collections.abc import Iterator

from manyarms._base import validate
from manyarms.beliefs import Belief
from manyarms.beliefs.belief import Rounds
from manyarms.errors import InvalidInput
from manyarms.logs.data import CHUNK, LoggedData, LogSource
from manyarms.logs.row_sketch import RowSketch
from manyarms.logs.schema import Schema

IN_MEMORY = 1 << 24  # numbers in the contexts of a log in memory that are learned at once


def log_source(source: object, name: str = "source") -> LogSource:
    """A log, or anything that gives one in chunks."""
    return validate.instance(name, source, LogSource, "a log, or a source that gives one in chunks")


def rows_of(
    source: LogSource, belief: Belief | None = None, sketch: RowSketch | None = None, *, whole: bool = True
) -> Iterator[Rounds]:
    """The rows of a log in chunks (contexts, actions, rewards), checked against what is to learn them; noted in a sketch.

    whole: with the last row the log ends; False where the source is a part of one.
    """
    log_source(source)
    if belief is not None:
        if source.dim != belief.dim:
            raise InvalidInput(
                "source", f"contexts of length {source.dim}", f"length {belief.dim}, as the prior has it"
            )
        if source.action_count > belief.catalogue.size:
            raise InvalidInput(
                "source", f"{source.action_count} actions", f"at most {belief.catalogue.size}, the prior's number"
            )
    stored = 0
    # of a log in memory a part is no copy, and the larger it is, the more rows of an action come together
    for chunk in source.chunks(max(CHUNK, IN_MEMORY // source.dim) if isinstance(source, LoggedData) else CHUNK):
        if belief is not None:
            belief.likelihood.check(chunk.rewards)
            if belief.likelihood.noise_variance is None and not isinstance(source, LoggedData):
                # its rows are held, and then once more by action
                stored += len(chunk)
                validate.room(
                    "source", stored, 16 * (source.dim + 1), "rows, which a likelihood that is not linear keeps"
                )
            ids = validate.action_ids("actions", chunk.actions, belief.catalogue.size)
            belief.catalogue.check_rows("actions", ids, unique=False)
        if sketch is not None:
            for part in chunk.chunks(CHUNK) if len(chunk) > CHUNK else [chunk]:
                sketch.add(part)
        yield chunk.contexts, chunk.actions, chunk.rewards
    if sketch is not None and whole:
        sketch.end_of_log()


def schema_for(actions: int, source: LogSource) -> Schema:
    """The encoder and the ids of a log, for what was learned from it; ids only where they are those of all actions."""
    found = Schema.of(source)
    whole = found.catalogue is not None and len(found.catalogue) == actions
    return found if whole else Schema(found.encoder)


__all__ = ["log_source", "rows_of", "schema_for"]
