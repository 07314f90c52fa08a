"""One piece of work, as a worker process does it."""

from __future__ import annotations

import time

import numpy as np

from manyarms.errors import ManyArmsError
from manyarms_thesis.harness.results import Outcomes
from manyarms_thesis.harness.spec import Item


class WorkFailed(ManyArmsError):
    """A run met an error; one plain text, so that it travels between processes."""


def execute(item: Item) -> Outcomes:
    """Do one piece of work: its columns by run."""
    try:
        outcome = {number: item.cell.task(item.run(number)) for number in item.runs}
    except ManyArmsError as error:
        raise WorkFailed(f"{item.experiment}, {item.cell.panel}, {item.method}: {error}") from None
    return {run: {name: np.asarray(value) for name, value in columns.items()} for run, columns in outcome.items()}


def timed(item: Item) -> float:
    """The seconds that one piece of work takes."""
    start = time.perf_counter()
    execute(item)
    return time.perf_counter() - start


__all__ = ["WorkFailed", "execute", "timed"]
