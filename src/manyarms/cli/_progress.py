"""How far learning is: live bars in a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from manyarms._base.text import duration
from manyarms.learning.results import Moment

SECONDS_BETWEEN_LINES = 5.0


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
        words = [f"epoch {moment.epoch + 1}/{moment.epochs}"]
        if math.isfinite(self._objective):
            words.append(f"objective {self._objective:.4g}")
        last = moment.history[-1] if moment.history else None
        if last is not None and last.score is not None:
            words.append(f"{self._score} {last.score:.4g}")
        elif last is not None and last.validation is not None:
            words.append(f"validation {last.validation:.4g}")
        words += [f"{moment.rows_per_second:,.0f} rows/s", f"{duration(moment.seconds_left)} left"]
        done = moment.epoch * moment.batches + moment.batch + 1
        return News(self.name, done, moment.epochs * moment.batches, ", ".join(words))


class Board:
    """Shows the news of one or several runs."""

    def __init__(self, console: Console, *names: str) -> None:
        self._console = console
        self._due = dict.fromkeys(names, time.monotonic() + SECONDS_BETWEEN_LINES)
        self._tasks: dict[str, TaskID] = {}
        columns = (
            SpinnerColumn(), TextColumn("{task.description}"), BarColumn(bar_width=20),
            TextColumn("{task.fields[words]}"), TimeElapsedColumn(),
        )  # fmt: skip
        self._bars = Progress(*columns, console=console) if console.is_terminal else None

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


@contextmanager
def following(console: Console, name: str) -> Iterator[Callable[[Moment], None]]:
    """A function to be called after every batch of one run."""
    reader = Reader(name)
    with Board(console, name) as board:
        yield lambda moment: board.tell(reader(moment))


__all__ = ["Board", "News", "Reader", "following"]
