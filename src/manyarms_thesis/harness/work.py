"""One piece of work, as a worker process does it."""

from __future__ import annotations

import json
import platform
import sys
import time
from collections.abc import Iterable

import numpy as np

from manyarms._base.text import in_words
from manyarms.errors import ManyArmsError
from manyarms_thesis.harness.results import Outcomes
from manyarms_thesis.harness.spec import Columns, Item

# a column of every run: what it took, so that the time of an experiment that was run in pieces is known
RUN_SECONDS = "run_seconds"
# a column of every run: the versions, and the GPU, that it was made with, since pieces may come from several machines
MADE_WITH = "made_with"


class WorkFailed(ManyArmsError):
    """A run met an error; one plain text, so that it travels between processes."""


def execute(item: Item) -> Outcomes:
    """Do one piece of work: its columns by run."""
    outcome: dict[int, Columns] = {}
    try:
        for number in item.runs:
            begun = time.perf_counter()
            columns = item.cell.task(item.run(number))
            seconds = time.perf_counter() - begun
            outcome[number] = {**columns, RUN_SECONDS: seconds, MADE_WITH: json.dumps(versions_here())}
    except ManyArmsError as error:
        raise WorkFailed(f"{item.experiment}, {item.cell.panel}, {item.method}: {error}") from None
    return {run: {name: np.asarray(value) for name, value in columns.items()} for run, columns in outcome.items()}


def versions_here() -> dict[str, str]:
    """What this process computes with: Python and numpy; torch and its GPU where a run has trained on one."""
    found = {"Python": platform.python_version(), "numpy": np.__version__}
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        found |= {"torch": str(torch.__version__), "GPU": str(torch.cuda.get_device_name())}
    return found


def versions_of(made_with: Iterable[str]) -> dict[str, str]:
    """All versions of some runs by name: "3.11.7", or "3.11.7 and 3.12.3" where they differ."""
    together: dict[str, set[str]] = {}
    for text in set(made_with):
        for name, version in json.loads(text).items():
            together.setdefault(name, set()).add(version)
    return {name: in_words(sorted(versions)) for name, versions in together.items()}


def timed(item: Item) -> float:
    """The seconds that one piece of work takes."""
    start = time.perf_counter()
    execute(item)
    return time.perf_counter() - start


__all__ = ["MADE_WITH", "RUN_SECONDS", "WorkFailed", "execute", "timed", "versions_here", "versions_of"]
