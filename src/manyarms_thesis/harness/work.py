"""One piece of work, as a worker process does it."""

from __future__ import annotations

import time

import numpy as np

from manyarms.errors import ManyArmsError
from manyarms_thesis.harness.results import Outcomes
from manyarms_thesis.harness.spec import Columns, Item

# a column of every run: what it took, so that the time of an experiment that was run in pieces is known
RUN_SECONDS = "run_seconds"


class WorkFailed(ManyArmsError):
    """A run met an error; one plain text, so that it travels between processes."""


def execute(item: Item) -> Outcomes:
    """Do one piece of work: its columns by run."""
    outcome: dict[int, Columns] = {}
    try:
        for number in item.runs:
            begun = time.perf_counter()
            columns = item.cell.task(item.run(number))
            outcome[number] = {**columns, RUN_SECONDS: time.perf_counter() - begun}
    except ManyArmsError as error:
        raise WorkFailed(f"{item.experiment}, {item.cell.panel}, {item.method}: {error}") from None
    return {run: {name: np.asarray(value) for name, value in columns.items()} for run, columns in outcome.items()}


def timed(item: Item) -> float:
    """The seconds that one piece of work takes."""
    start = time.perf_counter()
    execute(item)
    return time.perf_counter() - start


__all__ = ["RUN_SECONDS", "WorkFailed", "execute", "timed"]
