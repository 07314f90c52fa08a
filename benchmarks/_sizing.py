"""What logs and catalogues need in machines, hours and network: formulas, with the costs that docs/sizing.json holds.

    folding       n s_row of CPU for rows, and for every action in a shard that is added s_add; the sums of a shard travel once
    learning      3 tables of 4 K d bytes, divided; a step takes c K / W, and m reductions: m latency + bytes / bandwidth

Nothing is measured here. Rows, actions and machines are assumptions, and stand together in `Assumed`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from _together import fitted

from manyarms.learning.traffic import Traffic

Stored = dict[str, Any]  # studies by name: a list of numbers for each series
SHARD = 1 << 18  # rows of a shard, about: manyarms.logs.shards.ROWS_EACH
YEAR = 365.25 * 24


@dataclass(frozen=True)
class Assumed:
    """The machines of the examples, and what is asked of them."""

    rows: float = 1e9
    actions: float = 1e8
    cores: int = 32
    memory: float = 128e9
    gbit: float = 10.0
    latency: float = 50e-6  # of one message between two machines
    usable: float = 0.75  # the share of memory that tables may fill
    workers: int = 8  # processes, or GPUs, that learn together
    gpu_batch: int = 4_096
    gpu_gib: int = 139  # of one H200
    kernels_gib: int = 108  # that its kernels take for 1e8 actions, d = 64

    @property
    def bytes_per_second(self) -> float:
        """Of a machine's network."""
        return self.gbit * 1e9 / 8


# ---- costs, as measured -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Line:
    """y = start + slope x, by least squares of relative errors."""

    start: float
    slope: float

    @classmethod
    def through(cls, x: list[float], y: list[float]) -> Line:
        """The line closest to some points.

        >>> Line.through([1.0, 2.0, 4.0], [3.0, 5.0, 9.0])
        Line(start=1.0, slope=2.0)
        """
        a, b = fitted(np.asarray(x, dtype=float), np.asarray(y, dtype=float))
        return cls(a, b)


@dataclass(frozen=True)
class Costs:
    """Seconds of one core of the machine that was measured."""

    row: float  # to read and fold one row, d = 10
    action_added: float  # of one action in the sums of two shards, to add them
    action_learned: float  # of one action in all sums, for the belief to learn it
    evaluated: float  # to evaluate one row
    step_action: float  # of one action, in a step of learning

    @classmethod
    def of(cls, stored: Stored) -> Costs:
        """The slopes of what was measured."""
        studies = stored["studies"]
        rows, added, judged, alone = (studies[name] for name in ("fold-rows", "add", "evaluate", "alone"))
        return cls(
            Line.through(rows["n"], rows["local_cpu"]).slope,
            Line.through(added["actions"], added["add"]).slope / 2,  # two shards have as many each
            Line.through(added["actions"], added["learn"]).slope,
            Line.through(judged["n"], judged["local"]).slope,
            Line.through(*zip(*_tables_alone(alone), strict=True)).slope,  # type: ignore[arg-type]
        )


def _tables_alone(alone: Stored) -> list[tuple[float, float]]:
    return [(k, s) for k, e, s in zip(alone["K"], alone["encoder"], alone["seconds"], strict=True) if not e]


# ---- communication, and the check of it -------------------------------------------------------------------------------


def network(stored: Stored, workers: int) -> tuple[float, float]:
    """Latency and seconds for each byte of a reduction among so many processes, as measured."""
    reduced = stored["studies"]["reduce"]
    sent = np.array([Traffic(n, workers).bytes_sent for n in reduced["numbers"]])
    return fitted(sent, np.array(reduced[f"seconds_{workers}"]))


@dataclass(frozen=True)
class Checked:
    """A step, predicted and measured."""

    workers: int
    actions: int
    encoder: bool
    own: float  # predicted: its share of the actions, with all processes on the same cores
    sending: float  # predicted
    measured: float
    bytes_sent: float

    @property
    def predicted(self) -> float:
        """Seconds of a step."""
        return self.own + self.sending

    @property
    def error(self) -> float:
        """Of the prediction, as a share of what was measured."""
        return self.predicted / self.measured - 1.0


def checks(stored: Stored) -> list[Checked]:
    """Every step that several processes took, beside what the model says of it.

    own: the time of one process alone with a table of K / W rows, times how much W processes that do not talk slow each other.
    """
    studies, out = stored["studies"], []
    alone = {
        (k, e): s for k, e, s in zip(*(studies["alone"][name] for name in ("K", "encoder", "seconds")), strict=True)
    }
    crowd, steps = studies["crowd"], studies["steps"]
    slower = {w: c / a for w, c, a in zip(crowd["workers"], crowd["seconds"], crowd["alone"], strict=True)}
    lines = zip(*(steps[name] for name in ("workers", "K", "encoder", "reduced", "messages", "seconds")), strict=True)
    for workers, actions, encoder, reduced, messages, seconds in lines:
        latency, each = network(stored, workers)
        sent = Traffic(reduced, workers).bytes_sent
        own = alone[actions // workers, encoder] * slower[workers]
        out.append(Checked(workers, actions, bool(encoder), own, messages * latency + sent * each, seconds, sent))
    return out


# ---- folding ----------------------------------------------------------------------------------------------------------


def bytes_of_sums(dim: int) -> int:
    """Of one action: its id and its number of rows, G (packed), B and the sum of squares, 8 bytes each."""
    return 8 * (dim * (dim + 1) // 2 + dim + 3)


def bytes_of_row(dim: int) -> int:
    """In a file that is not compressed: a context of float32; an action, a reward and a propensity."""
    return 4 * dim + 24


def bytes_of_belief(dim: int) -> int:
    """Of a played action: statistics and posterior (docs/costs.md)."""
    return 8 * (dim * (dim + 1) + 2 * dim)


def distinct(rows: float, actions: float) -> float:
    """How many different actions so many rows have, by Zipf's law over K actions: the sum of 1 - (1 - p_a)^rows.

    The first thousand one by one, the others as an integral over log a.

    >>> round(distinct(1.0, 1e6), 3), round(distinct(1e15, 1e4))
    (1.0, 10000)
    """
    harmonic = math.log(actions) + 0.5772156649 + 1 / (2 * actions)
    head = np.arange(1, min(actions, 1_000) + 1)
    seen = float(-np.expm1(rows * np.log1p(-1 / (head * harmonic))).sum())
    if actions > 1_000:
        edges = np.linspace(math.log(1_000.5), math.log(actions + 0.5), 4_001)
        middle = np.exp((edges[1:] + edges[:-1]) / 2)
        seen += float((-np.expm1(rows * np.log1p(-1 / (middle * harmonic))) * np.diff(edges) * middle).sum())
    return seen


@dataclass(frozen=True)
class Fold:
    """A log folded on a cluster. sums: actions in all sums that are sent, over all levels of the tree."""

    shards: int
    sums: float
    seen: float
    cpu_rows: float
    cpu_sums: float
    cpu_learn: float
    bytes_read: float
    bytes_sent: float
    bytes_held: float

    @classmethod
    def of(cls, rows: float, actions: float, dim: int, costs: Costs) -> Fold:
        """By the costs of d = 10: sums are in proportion to their numbers, and learning one is cubic in d."""
        shards = math.ceil(rows / SHARD)
        width, size, sums = shards, rows / shards, 0.0
        while width > 1:
            sums += width * distinct(size, actions)
            width, size = -(-width // 2), 2 * size
        seen, numbers = distinct(rows, actions), bytes_of_sums(dim) / bytes_of_sums(10)
        return cls(
            shards, sums, seen, rows * costs.row * numbers, sums * costs.action_added * numbers,
            seen * costs.action_learned * (dim / 10) ** 3, rows * bytes_of_row(dim), sums * bytes_of_sums(dim),
            seen * bytes_of_sums(dim),
        )  # fmt: skip

    def hours(self, machines: int, assumed: Assumed) -> tuple[float, float, float]:
        """Of computing on all cores, of the network (files and sums), and of the one process that learns the sums."""
        computing = (self.cpu_rows + self.cpu_sums) / (machines * assumed.cores)
        sending = (self.bytes_read + self.bytes_sent) / (machines * assumed.bytes_per_second)
        return computing / 3600, sending / 3600, self.cpu_learn / 3600


# ---- learning ---------------------------------------------------------------------------------------------------------


def bytes_of_table(actions: float, dim: int, tables: int = 3) -> float:
    """float32: parameters, and Adam's two moments."""
    return 4.0 * tables * actions * dim


def machines_for(held: float, assumed: Assumed) -> int:
    """How many hold so many bytes."""
    return math.ceil(held / (assumed.usable * assumed.memory))


@dataclass(frozen=True)
class Epoch:
    """All rows once, by processes that learn together."""

    steps: float
    own: float  # seconds of a step
    latency: float
    sending: float
    bytes_sent: float  # by each process, in a step

    @property
    def hours(self) -> float:
        """Of all steps."""
        return self.steps * (self.own + self.latency + self.sending) / 3600

    @classmethod
    def of(
        cls, rows: float, batch: int, own: float, reduced: int, messages: int, workers: int, assumed: Assumed
    ) -> Epoch:
        """own: seconds of a step without the others. In a ring a reduction passes 2 (W - 1) times from one to the next."""
        sent = Traffic(reduced, workers).bytes_sent
        latency = messages * 2 * (workers - 1) * assumed.latency
        return cls(rows / batch, own, latency, sent / assumed.bytes_per_second, sent)
