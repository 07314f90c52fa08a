"""How far work is: live bars in a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn

from manyarms._base.text import duration
from manyarms.logs.data import LogSource

if TYPE_CHECKING:
    from manyarms.learning.results import Moment

SECONDS_BETWEEN_LINES = 5.0
WIDE = 110  # columns of a terminal that has room for both


@dataclass(frozen=True)
class News:
    """Where a run stands, in words."""

    name: str
    done: int
    total: int | None  # None: nobody knows
    words: str


class Reader:
    """Turns a run's moments into news; a GPU gives the objective only now and then, and the last one is shown."""

    def __init__(self, name: str, score: str = "score") -> None:
        self.name, self._score, self._objective = name, score, math.nan

    def __call__(self, moment: Moment) -> News:
        if math.isfinite(moment.objective):
            self._objective = moment.objective
        done = moment.epoch * moment.batches + moment.batch + 1
        if moment.doing:
            return News(self.name, done, moment.epochs * moment.batches, moment.doing)
        words = [f"epoch {moment.epoch + 1}/{moment.epochs}"]
        if math.isfinite(self._objective):
            words.append(f"objective {self._objective:.4g}")
        last = moment.history[-1] if moment.history else None
        if last is not None and last.score is not None:
            words.append(f"{self._score} {last.score:.4g}")
        elif last is not None and last.validation is not None:
            words.append(f"validation {last.validation:.4g}")
        words += [f"{moment.rows_per_second:,.0f} rows/s", f"{duration(moment.seconds_left)} left"]
        return News(self.name, done, moment.epochs * moment.batches, ", ".join(words))


class Board:
    """Shows the news of one or several runs."""

    def __init__(self, console: Console, *names: str, transient: bool = False) -> None:
        self._console = console
        self._due = dict.fromkeys(names, time.monotonic() + SECONDS_BETWEEN_LINES)
        self._tasks: dict[str, TaskID] = {}
        # in a narrow terminal words tell more than a bar
        bar = (SpinnerColumn(), BarColumn(bar_width=20)) if console.width >= WIDE else ()
        columns = (
            TextColumn("{task.description}", markup=False),
            *bar,
            TextColumn("{task.fields[words]}", markup=False),
        )
        self._bars = Progress(*columns, console=console, transient=transient) if console.is_terminal else None

    def __enter__(self) -> Board:
        if self._bars is not None:
            self._bars.start()
            self._tasks = {name: self._bars.add_task(name, total=None, words="") for name in self._due}
        return self

    def __exit__(self, *exception: Any) -> None:
        if self._bars is not None:
            self._bars.stop()

    def tell(self, news: News) -> None:
        """Show how far a run is; outside a terminal every few seconds, and at its end."""
        if self._bars is not None:
            self._bars.update(self._tasks[news.name], completed=news.done, total=news.total, words=news.words)
        elif news.done == news.total or time.monotonic() >= self._due[news.name]:
            self._due[news.name] = time.monotonic() + SECONDS_BETWEEN_LINES
            self._console.print(f"{news.name}: {news.words}", highlight=False, soft_wrap=True)


class Followed:
    """A log whose passes are followed: all that it is, and news with every chunk that was read."""

    def __init__(self, log: Any, board: Board, name: str) -> None:
        self._log, self._board, self._name, self._passes = log, board, name, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    # stated outright: whoever asks for a log's parts asks the class
    action_count = property(lambda self: self._log.action_count)
    dim = property(lambda self: self._log.dim)

    def chunks(self, *rows: int) -> Iterator[Any]:
        """The chunks of the log."""
        self._passes += 1
        done, total, started = 0, getattr(self._log, "row_count", None), time.monotonic()
        for part in self._log.chunks(*rows):
            yield part
            done += len(part)
            speed = done / max(time.monotonic() - started, 1e-9)
            known = f"{done:,}" if total is None else f"{done:,} of {total:,}"
            # never at its end: how many passes there will be is not known
            self._board.tell(News(self._name, done, None, f"pass {self._passes}, {known} rows, {speed:,.0f} rows/s"))


@contextmanager
def following_log(log: LogSource, name: str) -> Iterator[LogSource]:
    """The same log, whose passes are shown on stderr if they take a while."""
    with Board(Console(stderr=True), name, transient=True) as board:
        yield Followed(log, board, name)


@contextmanager
def following(console: Console, name: str) -> Iterator[Callable[[Moment], None]]:
    """A function to be called after every batch of one run."""
    reader = Reader(name)
    with Board(console, name) as board:
        yield lambda moment: board.tell(reader(moment))


__all__ = ["Board", "Followed", "News", "Reader", "following", "following_log"]
