"""Who reads a log: this process, chunk by chunk, or the workers of an engine, shard by shard.

A `Pass` is what is wanted of the rows: sums that are started, to which chunks are added, and which can be merged. Here that is a
loop over the log; on an engine every worker sums its shards, and sums are merged in a tree that the log alone decides
(`Engine.reduce`): what comes out is the same to the last bit for any number of workers, and equal to the loop up to rounding.

    with reader_of(log, on) as reader:
        sums = reader.read(some_pass, log)
"""

from __future__ import annotations

import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Generic, Protocol, Self, TypeVar

from manyarms.engine import IN_THIS_PROCESS, Engine, Local, On, elsewhere, opened
from manyarms.errors import InvalidInput, ManyArmsError
from manyarms.logs.data import CHUNK, LoggedData, LogSource
from manyarms.logs.shards import Shard, chunks_of, numbered_shards, shards_of


class Mergeable(Protocol):
    """Sums over some rows."""

    def merge(self, later: Self, /) -> None:
        """Those over further rows, which come after these."""


Sums = TypeVar("Sums", bound=Mergeable)


class Pass(ABC, Generic[Sums]):
    """What is wanted of the rows of a log. It is sent to workers, its sums come back."""

    @abstractmethod
    def start(self, first_row: int) -> Sums:
        """Sums over no rows; first_row: the number of the first one to come."""

    @abstractmethod
    def add(self, sums: Sums, part: LoggedData, row: int) -> None:
        """The next rows, of which the first has the number `row`."""

    def sent(self) -> list[tuple[str, object]]:
        """What is sent to other processes, each with the name of the argument that it comes from, for messages."""
        return []

    def over(self, chunks: Iterator[LoggedData], first_row: int = 0) -> Sums:
        """The sums over some chunks, in order."""
        sums, row = self.start(first_row), first_row
        for part in chunks:
            self.add(sums, part, row)
            row += len(part)
        return sums


class Reader(ABC):
    """Makes passes over a log."""

    @abstractmethod
    def read(self, wanted: Pass[Sums], log: LogSource, chunk: int = CHUNK) -> Sums:
        """What a pass finds in all rows of the log."""


class Here(Reader):
    """This process."""

    def read(self, wanted: Pass[Sums], log: LogSource, chunk: int = CHUNK) -> Sums:
        return wanted.over(log.chunks(chunk))


class Divided(Reader):
    """The workers of an engine, each with some shards of the log."""

    def __init__(self, engine: Engine, shards: Sequence[Shard]) -> None:
        self._engine, self._shards = engine, shards

    @property
    def rows(self) -> int:
        """How many rows the log has."""
        return sum(shard.rows for shard in self._shards)

    def first(self, log: LogSource) -> LoggedData:
        """The first chunk of the log, read here."""
        return next(chunks_of(log, self._shards[0]))  # no shard is empty

    def read(self, wanted: Pass[Sums], log: LogSource, chunk: int = CHUNK) -> Sums:
        common = _Common(wanted, log, chunk)
        try:
            found: Sums = self._engine.reduce(_read_shard, self._shards, _merged, common=common)
            return found
        except ManyArmsError:
            raise
        except Exception as error:
            self._complain_of_what_cannot_be_sent([*wanted.sent(), ("log", log)], error)
            raise

    def _complain_of_what_cannot_be_sent(self, arguments: Sequence[tuple[str, object]], error: Exception) -> None:
        """Was it that something could not be sent? Then which?"""
        dumps: Callable[[Any], bytes] = pickle.dumps
        if not isinstance(self._engine, Local):
            dumps = import_module("ray.cloudpickle").dumps
        for argument, value in arguments:
            try:
                dumps(value)
            except Exception as reason:
                said = str(reason).splitlines()[0] if str(reason) else type(reason).__name__
                raise InvalidInput(
                    argument, f"what cannot be sent to other processes ({said})",
                    f"functions and classes of modules, and data, where work is divided; or on={IN_THIS_PROCESS!r}",
                ) from error  # fmt: skip


@dataclass(frozen=True)
class _Common(Generic[Sums]):
    """What all shards need."""

    wanted: Pass[Sums]
    log: LogSource
    chunk: int


def _read_shard(shard: Shard, common: _Common[Sums]) -> Sums:
    return common.wanted.over(chunks_of(common.log, shard, common.chunk), shard.first_row)


def _merged(sums: Sums, later: Sums) -> Sums:
    sums.merge(later)
    return sums


@contextmanager
def reader_of(log: LogSource, on: On) -> Iterator[Reader]:
    """Who reads a log on the engine that `on` names; a log that cannot be divided is refused before an engine starts."""
    if not elsewhere(on):
        yield Here()
        return
    shards = shards_of(log)
    with opened(on) as engine:
        yield Divided(engine, numbered_shards(engine, log, shards))


__all__ = ["Divided", "Here", "Mergeable", "Pass", "Reader", "Sums", "reader_of"]
