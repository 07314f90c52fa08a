"""An experiment is data: cells of worlds and agents, what the thesis says about them, and what to draw.

Everything that travels to a worker process is plain: a function is named ("package.module:function") and its
parameters are numbers, strings, lists and dictionaries. That makes a piece of work printable, hashable (for resuming)
and independent of the process that runs it.
"""

from __future__ import annotations

import hashlib
import importlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from manyarms._base import validate
from manyarms.errors import InvalidInput

if TYPE_CHECKING:
    from manyarms_thesis.harness.claims import Claim
    from manyarms_thesis.harness.results import Results

SCALES = ("smoke", "quick", "paper")
ONLINE_REGRET = "manyarms_thesis.harness.simulate:online_regret_task"

# what a page shows of every agent at its last checkpoint, unless the experiment names other columns
ONLINE_NUMBERS: Mapping[str, str] = {
    "regret": "final regret",
    "milliseconds_a_round": "ms a round",
    "agent_bytes": "agent, MB",
}

# short runs travel together, so that starting a piece of work costs little beside doing it
ROUNDS_PER_ITEM = 10_000


@dataclass(frozen=True)
class Call:
    """A function by name, and plain parameters to call it with."""

    target: str
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, **more: Any) -> Any:
        return resolve(self.target)(**self.parameters, **more)

    def plain(self) -> dict[str, Any]:
        """The call as plain data."""
        return {"target": self.target, "parameters": dict(self.parameters)}


def resolve(target: str) -> Callable[..., Any]:
    """The function that "package.module:function" names."""
    module, _, name = target.partition(":")
    try:
        found = getattr(importlib.import_module(module), name)
    except (AttributeError, ModuleNotFoundError) as error:
        raise InvalidInput("target", repr(target), "an importable 'package.module:function'") from error
    if not callable(found):
        raise InvalidInput("target", repr(target), "the name of a function")
    return found  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Cell:
    """One panel: a world, the agents that meet it, how long and how often.

    `task` names the function that does one run. It is called as
    `task(world=Call, agent=Call, rounds=int, world_seed=int, agent_seed=int)` and returns columns: one-dimensional
    arrays of a common length, and scalars that hold for the whole run. `parameters` become columns of the results.
    """

    panel: str
    parameters: Mapping[str, Any]
    world: Call
    agents: Mapping[str, Call]
    rounds: int
    runs: int
    task: str = ONLINE_REGRET

    def __post_init__(self) -> None:
        validate.count("rounds", self.rounds)
        validate.count("runs", self.runs)
        if not self.agents:
            raise InvalidInput("agents", "none", f"at least one agent in panel {self.panel!r}")

    @property
    def runs_per_item(self) -> int:
        """How many runs travel together; decided from the cell alone, never from the number of workers."""
        return max(1, min(self.runs, ROUNDS_PER_ITEM // self.rounds))


@dataclass(frozen=True)
class Item:
    """One piece of work: some runs of one agent in one cell."""

    experiment: str
    seed: int
    cell: Cell
    agent: str
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
            "task": self.cell.task,
            "world": self.cell.world.plain(),
            "agent_name": self.agent,
            "agent": self.cell.agents[self.agent].plain(),
            "rounds": self.cell.rounds,
            "runs": list(self.runs),
        }

    def key(self, version: str) -> str:
        """A short name of the spec and the library's version: the same work has the same key."""
        return digest({"version": version, **self.plain()})[:24]

    def world_seed(self, run: int) -> int:
        """The world's seed: the same for all agents of a run, which therefore meet the same world and contexts."""
        cell = [self.cell.panel, dict(self.cell.parameters), self.cell.world.plain()]
        return seed_of("world", self.experiment, self.seed, cell, run)

    def agent_seed(self, run: int) -> int:
        """The agent's own seed."""
        cell = [self.cell.panel, dict(self.cell.parameters), self.cell.world.plain()]
        return seed_of("agent", self.experiment, self.seed, cell, self.agent, run)


def digest(value: Any) -> str:
    """A hash of plain data that does not depend on the order of keys, the process or the machine."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def seed_of(*parts: Any) -> int:
    """A seed below 2^63 from plain data."""
    return int(digest(list(parts))[:16], 16) >> 1


def items_of(experiment: str, cells: Sequence[Cell], seed: int) -> list[Item]:
    """All work of some cells, in an order that mixes cheap and dear cells so that the time left can be told."""
    items = []
    for cell in cells:
        step = cell.runs_per_item
        for agent in cell.agents:
            for first in range(0, cell.runs, step):
                runs = tuple(range(first, min(first + step, cell.runs)))
                items.append(Item(experiment, seed, cell, agent, runs))
    return sorted(items, key=lambda item: digest(item.plain()))


@dataclass(frozen=True)
class Experiment:
    """A named experiment of the thesis.

    scales          plain sizes for "smoke", "quick" and "paper"
    build           sizes -> cells
    claims          results -> what the thesis states, measured
    figures         results, folder -> the files drawn (each as SVG and PNG; the SVG is returned)
    remarks         settings that the thesis leaves open
    warnings        what a reader of the results must not overlook (made-up data)
    caption         what the figures show
    numbers         columns of the results for the page's table, with their headings
    """

    name: str
    title: str
    thesis_lines: str
    scales: Mapping[str, Mapping[str, Any]]
    build: Callable[[Mapping[str, Any]], list[Cell]]
    claims: Callable[[Results], list[Claim]]
    figures: Callable[[Results, Path], list[Path]]
    remarks: Sequence[str] = ()
    warnings: Callable[[], list[str]] = list
    caption: str = "Mean over runs; the bands are one standard error wide."
    numbers: Mapping[str, str] = field(default_factory=lambda: ONLINE_NUMBERS)

    def cells(self, scale: str) -> list[Cell]:
        """The cells at a scale; every panel has its own name."""
        if scale not in self.scales:
            raise InvalidInput("scale", repr(scale), "one of " + ", ".join(self.scales))
        cells = self.build(self.scales[scale])
        panels = [cell.panel for cell in cells]
        if len(set(panels)) != len(panels):
            raise InvalidInput("cells", "two panels of the same name", "one name a panel")
        return cells


__all__ = [
    "ONLINE_NUMBERS", "ONLINE_REGRET", "SCALES", "Call", "Cell", "Experiment", "Item", "digest", "items_of", "resolve", "seed_of",
]  # fmt: skip
