"""How far an experiment is: a live bar in a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from manyarms._base.text import duration
from manyarms_thesis.harness.spec import Item

SECONDS_BETWEEN_LINES = 5.0


class Tracker(Protocol):
    """Is told of every finished piece of work."""

    def done(self, item: Item) -> None: ...


class _Count:
    """Rounds and cells done so far."""

    def __init__(self, pending: Sequence[Item], cells: int) -> None:
        self.cells = cells
        self.rounds = 0
        self.total = sum(item.rounds for item in pending)
        self.left = Counter(item.cell.panel for item in pending)
        self.started = time.monotonic()

    def add(self, item: Item) -> None:
        self.rounds += item.rounds
        self.left[item.cell.panel] -= 1

    @property
    def cells_done(self) -> int:
        return self.cells - sum(count > 0 for count in self.left.values())

    @property
    def speed(self) -> float:
        return self.rounds / max(time.monotonic() - self.started, 1e-9)


class _Bar:
    def __init__(self, progress: Progress, name: str, count: _Count) -> None:
        self._progress, self._count = progress, count
        self._task = progress.add_task(name, total=count.total, cells=self._cells(), speed="")

    def _cells(self) -> str:
        return f"{self._count.cells_done}/{self._count.cells} cells"

    def done(self, item: Item) -> None:
        self._count.add(item)
        self._progress.update(
            self._task, completed=self._count.rounds, cells=self._cells(),
            speed=f"{self._count.speed:,.0f} rounds/s",
        )  # fmt: skip


class _Lines:
    def __init__(self, console: Console, name: str, count: _Count) -> None:
        self._console, self._name, self._count = console, name, count
        self._next = time.monotonic() + SECONDS_BETWEEN_LINES

    def done(self, item: Item) -> None:
        self._count.add(item)
        finished = self._count.rounds == self._count.total
        if time.monotonic() < self._next and not finished:
            return
        self._next = time.monotonic() + SECONDS_BETWEEN_LINES
        left = (self._count.total - self._count.rounds) / self._count.speed
        self._console.print(
            f"{self._name}: {100 * self._count.rounds / self._count.total:.0f} %, "
            f"{self._count.cells_done}/{self._count.cells} cells, {self._count.speed:,.0f} rounds/s, "
            f"{duration(left)} left",
            highlight=False,
            soft_wrap=True,
        )


@contextmanager
def tracking(console: Console, name: str, pending: Sequence[Item], cells: int) -> Iterator[Tracker]:
    """Follow some pieces of work to their end."""
    count = _Count(pending, cells)
    if not console.is_terminal:
        yield _Lines(console, name, count)
        return
    columns = (
        SpinnerColumn(), TextColumn("[bold]{task.description}"), BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"), TextColumn("{task.fields[cells]}"),
        TextColumn("{task.fields[speed]}"), TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=console) as progress:
        yield _Bar(progress, name, count)


__all__ = ["Tracker", "tracking"]
