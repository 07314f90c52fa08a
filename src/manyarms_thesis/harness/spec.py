"""Work as data: a cell of a problem and methods, the runs that it asks for, and the pieces of work that they travel in.

A function is given as itself and must be one of a module; its parameters are numbers, strings, lists and dictionaries.
That makes a piece of work printable, hashable (for resuming) and independent of the process that does it.

Seeds and keys come from the *names* of functions and from parameters, not from the modules that functions stand in: moving
code moves no result. (Version 0.1 hashed "package.module:function", so that its results differ from later ones by
Monte-Carlo noise, once.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from manyarms._base import validate
from manyarms._base.seeds import digest, seed_of
from manyarms._base.typing import Ints
from manyarms.errors import InvalidInput

# short runs travel together, so that starting a piece of work costs little beside doing it
ROUNDS_PER_ITEM = 10_000
METHOD, VARIANT = "method", "variant"  # the columns of the results that have the names of these


@dataclass(frozen=True)
class Call:
    """A function of a module, and plain parameters to call it with."""

    function: Callable[..., Any]
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, **more: Any) -> Any:
        return self.function(**self.parameters, **more)

    def plain(self) -> dict[str, Any]:
        """The call as plain data."""
        return {"function": self.function.__name__, "parameters": dict(self.parameters)}


@dataclass(frozen=True)
class Run:
    """One run of one method on one problem: what a task is given.

    All methods of a run have the same `problem_seed`, and therefore meet the same problem; `method_seed` is a method's own.
    """

    problem: Call
    method: Call
    rounds: int
    problem_seed: int
    method_seed: int

    def draw_problem(self, **more: Any) -> Any:
        """The problem of this run."""
        return self.problem(seed=self.problem_seed, **more)


Columns = Mapping[str, npt.ArrayLike]
"""What a task returns: one-dimensional arrays of a common length, and scalars that hold for all of the run."""
Task = Callable[[Run], Columns]


def solve(run: Run) -> Columns:
    """A task: the method is a function of the problem, a number of steps and a seed, and returns the columns."""
    columns: Columns = run.method(problem=run.draw_problem(), steps=run.rounds, seed=run.method_seed)
    return columns


def solve_log(run: Run) -> Columns:
    """A task: the problem has a log of `rounds` rows; the method is a function of it and a seed, and returns the columns."""
    columns: Columns = run.method(problem=run.draw_problem(rounds=run.rounds), seed=run.method_seed)
    return columns


@dataclass(frozen=True)
class Cell:
    """One panel: a problem, the methods that meet it, how long and how often.

    problem, methods    what `task` builds and lets meet: a world and agents, a log and learners, a function and optimisers
    rounds              rounds of play, rows of a log or steps of an optimiser: what progress and forecasts count in
    task                does one run
    parameters          become columns of the results
    variant             "" for a world as the thesis prints it; else in what it differs, in words
    worlds              how many different worlds the runs meet, by the problem's seed modulo this number; 0: one each. Runs in
                        the same world are not independent, and their errors say so

    The last two are no part of keys and seeds.
    """

    panel: str
    parameters: Mapping[str, Any]
    problem: Call
    methods: Mapping[str, Call]
    rounds: int
    runs: int
    task: Task
    variant: str = ""
    worlds: int = 0

    def __post_init__(self) -> None:
        validate.count("rounds", self.rounds)
        validate.count("runs", self.runs)
        if not self.methods:
            raise InvalidInput("methods", "none", f"at least one method in panel {self.panel!r}")

    @property
    def runs_per_item(self) -> int:
        """How many runs travel together; decided from the cell alone, never from the number of workers."""
        return max(1, min(self.runs, ROUNDS_PER_ITEM // self.rounds))


def variant_of(
    cell: Cell,
    variant: str,
    *,
    parameters: Mapping[str, Any] | None = None,
    problem: Call | None = None,
    methods: Mapping[str, Call] | None = None,
    task: Task | None = None,
    runs: int | None = None,
) -> Cell:
    """The panel in a world that the thesis does not print, named after the variant; what is not given stays as it is.

    An experiment judges and draws every variant by itself, with the panels under the names that they have in the thesis's.
    """
    return replace(
        cell,
        panel=f"{cell.panel}, {variant}",
        parameters={**cell.parameters, **(parameters or {})},
        problem=problem or cell.problem,
        methods=methods or cell.methods,
        task=task or cell.task,
        runs=runs or cell.runs,
        variant=variant,
    )


@dataclass(frozen=True)
class Item:
    """One piece of work: some runs of one method in one cell."""

    experiment: str
    seed: int
    cell: Cell
    method: str
    runs: tuple[int, ...]

    @property
    def rounds(self) -> int:
        """Rounds in all its runs together."""
        return self.cell.rounds * len(self.runs)

    def plain(self) -> dict[str, Any]:
        """Everything that its outcome depends on, as plain data."""
        return {
            "experiment": self.experiment,
            "seed": self.seed,
            "panel": self.cell.panel,
            "parameters": dict(self.cell.parameters),
            "task": self.cell.task.__name__,
            "problem": self.cell.problem.plain(),
            "method_name": self.method,
            "method": self.cell.methods[self.method].plain(),
            "rounds": self.cell.rounds,
            "runs": list(self.runs),
        }

    def key(self, version: str) -> str:
        """A short name of the spec and the library's version: the same work has the same key."""
        return digest({"version": version, **self.plain()})[:24]

    def run(self, number: int) -> Run:
        """One of its runs, with its seeds."""
        cell = self.cell
        where = [self.experiment, self.seed, [cell.panel, dict(cell.parameters), cell.problem.plain()]]
        return Run(
            cell.problem,
            cell.methods[self.method],
            cell.rounds,
            seed_of("problem", *where, number),
            seed_of("method", *where, self.method, number),
        )


def worlds_met(experiment: str, cells: Sequence[Cell], seed: int) -> dict[str, Ints]:
    """By panel, the number of the world that each run met, where runs share worlds."""
    met = {}
    for cell in cells:
        if cell.worlds:
            item = Item(experiment, seed, cell, next(iter(cell.methods)), tuple(range(cell.runs)))
            met[cell.panel] = np.array([item.run(run).problem_seed % cell.worlds for run in item.runs])
    return met


def items_of(experiment: str, cells: Sequence[Cell], seed: int) -> list[Item]:
    """All work of some cells, in an order that mixes cheap and dear cells so that the time left can be told."""
    items = []
    for cell in cells:
        step = cell.runs_per_item
        for method in cell.methods:
            for first in range(0, cell.runs, step):
                runs = tuple(range(first, min(first + step, cell.runs)))
                items.append(Item(experiment, seed, cell, method, runs))
    return sorted(items, key=lambda item: digest(item.plain()))


__all__ = [
    "METHOD",
    "VARIANT",
    "Call",
    "Cell",
    "Columns",
    "Item",
    "Run",
    "Task",
    "items_of",
    "solve",
    "solve_log",
    "variant_of",
    "worlds_met",
]
