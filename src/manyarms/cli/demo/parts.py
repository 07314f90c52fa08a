"""What the parts of the demonstration share: tables, regret curves, and what is said where PyTorch is missing."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import util
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from manyarms._base import charts
from manyarms._base import html as report
from manyarms._base.plotting import mean_and_error
from manyarms._base.typing import Array, Ints
from manyarms.errors import MissingExtra

CLEAR = 2.0  # standard errors: a smaller difference is called none


@dataclass(frozen=True)
class Section:
    """What a part gives to the report: its answers, sentences that stand at the top of the page too, and blocks."""

    title: str
    answers: Sequence[str]
    blocks: Sequence[str]

    def html(self) -> list[str]:
        """The section, its answers under its heading."""
        return [report.heading(self.title), *(report.paragraph(answer) for answer in self.answers), *self.blocks]


@dataclass(frozen=True)
class MeanGap:
    """How much the first of two is above the second: the mean over pairs (runs, contexts), and its standard error."""

    mean: float
    error: float

    @classmethod
    def between(cls, first: Array, second: Array) -> MeanGap:
        """Of values of both for the same runs or contexts, (n,)."""
        mean, error = mean_and_error(first - second)
        return cls(float(mean), float(error))

    @property
    def sign(self) -> int:
        """1 above zero, -1 below, 0 where the mean is within two standard errors of it, or nobody knows its error."""
        return 0 if self.error == 0 or abs(self.mean) <= CLEAR * self.error else 1 if self.mean > 0 else -1


Part = Callable[[Console, int, Path], Section]
"""One job of the demonstration: called with the console, where it shows itself, the seed, and the folder for pictures."""


@contextmanager
def timed(console: Console, *lines: str) -> Iterator[None]:
    """What a part is about, and in the end how long it took."""
    started = time.monotonic()
    console.print(*lines, highlight=False, sep="\n")
    yield
    console.print(f"{time.monotonic() - started:.0f} s", style="dim", highlight=False)


def left_out(console: Console, title: str, missing: MissingExtra) -> Section:
    """The block of a part that cannot be shown here."""
    console.print(f"left out: {missing}", style="yellow", highlight=False)
    return Section(title, (), [report.warning(f"Left out: {missing}")])


def missing_torch() -> MissingExtra | None:
    """Why policies cannot be learned here, if they cannot."""
    return MissingExtra("torch", "torch", "learning policies from logs") if util.find_spec("torch") is None else None


def show_table(
    console: Console, title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[str] = ()
) -> None:
    """A table on the console; the first column and those of `left` hold words, the others numbers."""
    table = Table(title=title, title_justify="left")
    for column in columns:
        table.add_column(column, justify="left" if column in (columns[0], *left) else "right")
    for row in rows:
        table.add_row(*row)
    console.print(table)


def plus_minus(values: Array) -> str:
    """The mean over runs and its standard error."""
    mean, error = mean_and_error(values)
    return f"{mean:,.0f} ± {error:,.0f}"


def least_regret(regret: Mapping[str, Array], where: str) -> str:
    """Who lost the least, and how much the next one did, in a sentence."""
    order = sorted(regret, key=lambda name: float(regret[name][:, -1].mean()))
    first, others = order[0], [f"{plus_minus(regret[name][:, -1])} ({name})" for name in order[1:]]
    beside = f", against {', '.join(others)}" if others else ""
    return f"{where}, {first} has the least regret: {plus_minus(regret[first][:, -1])}{beside}."


def regret_figure(rounds: Ints, regret: Mapping[str, Array], title: str) -> str:
    """Curves of cumulative regret, (runs, checkpoints) by agent, as a figure of the report."""
    zero = np.zeros(1)
    series = []
    for name, values in regret.items():
        at, mean, error = (np.concatenate([zero, part]) for part in (rounds, *mean_and_error(values)))
        series.append(charts.Series(name, at, mean, error))
    runs = len(next(iter(regret.values())))
    return report.figure(
        lambda width: charts.line_chart(series, "round", "cumulative expected regret", title=title, width=width),
        f"{title}: the lower the curve, the better; one that grows flat has found what to show. Means of {runs} runs, in bands "
        "of one standard error on each side.",
    )


__all__ = [
    "MeanGap",
    "Part",
    "Section",
    "least_regret",
    "left_out",
    "missing_torch",
    "plus_minus",
    "regret_figure",
    "show_table",
    "timed",
]
