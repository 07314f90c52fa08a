"""Logs in row groups: parts of a source that can be read in any order, one without the others.

A Parquet file has them, and a folder of such files (`open_log`). What is read in another order every time, as learning does,
needs them; so does a log of which some parts are held out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from inspect import getattr_static
from typing import Protocol, cast

import numpy as np

from manyarms._base import validate
from manyarms._base.tables import Shown, Table
from manyarms._base.text import counted
from manyarms._base.typing import Ints
from manyarms.errors import InvalidInput
from manyarms.logs.actions import Actions
from manyarms.logs.data import CHUNK, LoggedData, LoggingPolicy, LogSource, a_log
from manyarms.logs.encoding import Encoder

HELD_OUT = 3  # apart from whatever else is drawn from a seed
NUMBERS = "numbers of row groups"
SMALLER = "a file written with smaller row groups can be divided"
IN_GROUPS = "a Parquet file or folder (open_log)"


class GroupedLog(LogSource, Protocol):
    """A source of rounds in row groups."""

    @property
    def row_groups(self) -> tuple[int, ...] | None:
        """The rows of each, those to be left out among them; None where there are none."""

    def group_chunks(self, group: int, rows: int = CHUNK) -> Iterator[LoggedData]:
        """The rounds of one of them, in parts of at most `rows`."""


def in_row_groups(name: str, log: LogSource, expected: str = IN_GROUPS) -> GroupedLog:
    """A source that has row groups, or the reason why it cannot be read in any order."""
    a_log(name, log)
    grouped = getattr_static(log, "group_chunks", None) is not None
    if not grouped or not cast(GroupedLog, log).row_groups:
        raise InvalidInput(name, f"{validate.describe(log)}, whose rows come in one order only", expected)
    return cast(GroupedLog, log)


class RowGroups(Shown):
    """Some row groups of a source, in their order there. logging: the policy that wrote the log, for every round of it."""

    def __init__(
        self, source: GroupedLog, groups: Sequence[int] | None = None, *, logging: LoggingPolicy | None = None
    ) -> None:
        self.source = in_row_groups("source", source)
        sizes = self.source.row_groups or ()
        chosen = np.arange(len(sizes)) if groups is None else validate.integers("groups", groups, expected=NUMBERS)
        if not len(chosen) or chosen.min() < 0 or chosen.max() >= len(sizes) or len(np.unique(chosen)) < len(chosen):
            came = f"{len(chosen)} numbers" + (f" from {chosen.min()} to {chosen.max()}" if len(chosen) else "")
            raise InvalidInput("groups", came, f"{NUMBERS}: different ones below {len(sizes)}, at least one")
        self.groups: Ints = np.sort(chosen)
        if logging is not None and (
            not callable(getattr(logging, "probabilities_of", None))
            or getattr(logging, "action_count", None) != self.source.action_count
        ):
            expected = f"the policy that wrote the log, over its {self.source.action_count} actions"
            raise InvalidInput("logging", validate.describe(logging), expected)
        self.logging = logging

    def _table(self) -> Table:
        kept = f"{len(self.groups):,} of {counted(len(self.source.row_groups or ()), 'row group')}"
        facts: list[tuple[str, str | int]] = [("rows", len(self)), ("actions", self.action_count)]
        facts += [] if self.logging is None else [("logging", repr(self.logging))]
        return Table(f"{kept} of {self.source!r}", rows=facts)

    def __len__(self) -> int:
        return sum(self.row_groups)

    @property
    def action_count(self) -> int:
        """K."""
        return self.source.action_count

    @property
    def dim(self) -> int:
        """d, the length of a context."""
        return self.source.dim

    @property
    def catalogue(self) -> Actions | None:
        """The ids of the actions, where there are some."""
        return getattr(self.source, "catalogue", None)

    @property
    def encoder(self) -> Encoder | None:
        """How contexts are made of columns, where that is known."""
        return getattr(self.source, "encoder", None)

    @property
    def notes(self) -> tuple[str, ...]:
        """What was done to the log on its way here."""
        return tuple(getattr(self.source, "notes", ()))

    @property
    def row_groups(self) -> tuple[int, ...]:
        """The rows of each of them."""
        sizes = self.source.row_groups or ()
        return tuple(sizes[group] for group in self.groups)

    def group_chunks(self, group: int, rows: int = CHUNK) -> Iterator[LoggedData]:
        """The rounds of one of them, by its number here."""
        own = self.groups[validate.count("group", group, 0, len(self.groups) - 1)]
        for chunk in self.source.group_chunks(int(own), rows):
            yield self._written(chunk)

    def chunks(self, rows: int = CHUNK) -> Iterator[LoggedData]:
        """All rounds, in the order of the source."""
        rows, found = validate.count("rows", rows), False
        for group in range(len(self.groups)):
            for chunk in self.group_chunks(group, rows):
                found = True
                yield chunk
        if not found:
            raise InvalidInput("log", "no row that is complete", "at least one round")

    def split(self, share: float, seed: int) -> tuple[RowGroups, RowGroups]:
        """Whole row groups, chosen by the seed, held out until they have `share` of the rows: those that stay, and those."""
        share, seed = validate.number("share", share, above=0, below=1), validate.seed(seed)
        sizes = np.array(self.row_groups)
        if len(sizes) < 2:
            raise InvalidInput("share", f"{share:g} of a log of one row group", f"a log of two at least; {SMALLER}")
        order = np.random.default_rng([seed, 0, 0, HELD_OUT]).permutation(len(sizes))
        reached = np.cumsum(sizes[order]) >= share * sizes.sum()
        count = min(int(np.argmax(reached)) + 1, len(sizes) - 1)
        stay, held = self.groups[order[count:]], self.groups[order[:count]]
        return self._some(stay), self._some(held)

    def _some(self, groups: Ints) -> RowGroups:
        return RowGroups(self.source, groups.tolist(), logging=self.logging)

    def _written(self, chunk: LoggedData) -> LoggedData:
        """With the policy that wrote it, and with its propensities where the log has none."""
        if self.logging is None:
            return chunk
        propensities = chunk.propensities
        if propensities is None:
            propensities = self.logging.probabilities_of(chunk.contexts, chunk.actions)
        return replace(chunk, logging=self.logging, propensities=propensities)


__all__ = ["SMALLER", "GroupedLog", "RowGroups", "in_row_groups"]
