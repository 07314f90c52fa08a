"""Processes that learn together, timed: what a reduction takes, what a step takes alone, apart and together, and what it sends.

Here and not in distributed.py, so that other processes can import it. All of it runs inside `engine.train`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
import torch.distributed as together
from _offline import peak_bytes

from manyarms._base.typing import Array
from manyarms.estimators import cLPI
from manyarms.learning.loop import TrainingRun
from manyarms.learning.peers import Peers
from manyarms.learning.settings import TrainingSettings
from manyarms.learning.traffic import Seen, numbers_sent
from manyarms.logs.data import LoggedData
from manyarms.policies import SoftmaxPolicy
from manyarms.policies.encoders import Projection

QUICK = 0.1  # the share of steps that are quicker than the figure


@dataclass(frozen=True)
class Case:
    """A step over K actions. encoder: whether one is learned with the table, whose gradient is sent as well."""

    actions: int
    encoder: bool = False


@dataclass(frozen=True)
class Setting:
    """What all processes are told. alone: tables that are stepped by each for itself, in place of the cases."""

    cases: tuple[Case, ...]
    alone: tuple[Case, ...] = ()
    crowded: Case | None = None  # the share of a table that all step at the same time, each for itself
    numbers: tuple[int, ...] = ()  # sizes of reductions
    dim: int = 64
    batch: int = 256
    seconds: float = 1.0  # for each case
    least: int = 5  # steps of a case
    times: int = 40  # that a reduction is repeated


@dataclass
class Found:
    """Of the first process."""

    workers: int
    alone: list[float] = field(default_factory=list)  # seconds of a step
    crowded: float = 0.0
    reductions: list[float] = field(default_factory=list)  # seconds
    steps: list[float] = field(default_factory=list)  # seconds of a step together
    reduced: list[int] = field(default_factory=list)  # numbers that a step reduced, counted
    messages: list[int] = field(default_factory=list)  # reductions of a step, counted
    modelled: list[int] = field(default_factory=list)  # numbers by `traffic.py`
    peak: float = 0.0  # bytes of the process that held most


def measure(setting: Setting) -> Found:
    """Everything that is to be measured with so many processes."""
    torch.set_num_threads(1)
    peers = Peers()
    found = Found(peers.count)
    for case in setting.alone:
        step = _stepping(case, setting, None)[0]
        found.alone.append(_quick(step, setting, None))
    if setting.crowded is not None:
        step = _stepping(setting.crowded, setting, None)[0]
        together.barrier()
        found.crowded = _crowded(step, setting, peers)
    for numbers in setting.numbers:
        found.reductions.append(_reduction(numbers, setting.times))
    for case in setting.cases:
        step, modelled = _stepping(case, setting, peers)
        step()
        before = peers.reduced
        with _Messages() as messages:
            step()
        found.reduced.append(peers.reduced - before)
        found.messages.append(messages.count)
        found.modelled.append(modelled)
        found.steps.append(_quick(step, setting, peers))
    found.peak = max(peers.by_all(peak_bytes))
    return found


def log_of(case: Case, setting: Setting) -> LoggedData:
    """A batch of rounds, all with a reward, so that all of them count."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((setting.batch, setting.dim)) * 0.3
    actions = rng.integers(0, case.actions, setting.batch)
    p = np.full(setting.batch, 1 / case.actions)
    return LoggedData(X, actions, np.ones(setting.batch), case.actions, p)


def _stepping(case: Case, setting: Setting, peers: Peers | None) -> tuple[Callable[[], object], int]:
    """A step of cLPI with Adam as `learn` takes it, and the numbers that it should reduce."""
    log, rng = log_of(case, setting), np.random.default_rng(1)
    beta = rng.standard_normal((case.actions, setting.dim), dtype=np.float32) * np.float32(0.1)
    encoder: Any = Projection(np.eye(setting.dim)) if case.encoder else None
    train: Literal["actions", "both"] = "both" if case.encoder else "actions"
    objective, settings = cLPI(0.1), TrainingSettings(optimiser="adam", train=train)
    run = TrainingRun(log, SoftmaxPolicy(beta, encoder=encoder), objective, settings, "cpu", peers)
    index = np.arange(setting.batch)
    model = numbers_sent(setting.batch, setting.dim, peers.count if peers else 1, Seen.by(objective, log), train=train)
    return lambda: float(run.step_on(index, rate=1e-3)), model.reduced


def _count(step: Callable[[], object], setting: Setting, peers: Peers | None) -> int:
    """How many steps to time. Where several processes take part, all take as many."""
    step()
    start = time.perf_counter()
    step()
    count = max(setting.least, int(setting.seconds / (time.perf_counter() - start)))
    return count if peers is None else min(peers.by_all(lambda: count))


def _quick(step: Callable[[], object], setting: Setting, peers: Peers | None) -> float:
    """Seconds of a step, of many: neighbours on the same cores make most of them longer."""
    times = np.empty(_count(step, setting, peers))
    for number in range(len(times)):
        start = time.perf_counter()
        step()
        times[number] = time.perf_counter() - start
    return float(np.quantile(times, QUICK))


def _crowded(step: Callable[[], object], setting: Setting, peers: Peers) -> float:
    """Seconds of a step while all processes take theirs, each for itself."""
    times = np.empty(_count(step, setting, peers))
    together.barrier()
    for number in range(len(times)):
        start = time.perf_counter()
        step()
        times[number] = time.perf_counter() - start
    for _ in times:  # others may be behind, and would be alone
        step()
    return float(np.quantile(times, QUICK))


def _reduction(numbers: int, times: int) -> float:
    tensor, seconds = torch.zeros(numbers), np.empty(times)
    for number in range(-3, times):
        start = time.perf_counter()
        together.all_reduce(tensor)
        if number >= 0:
            seconds[number] = time.perf_counter() - start
    return float(np.quantile(seconds, QUICK))


class _Messages:
    """Counts the reductions of a block."""

    def __enter__(self) -> _Messages:
        self.count, self._usual = 0, together.all_reduce

        def counting(*arguments: Any, **more: Any) -> Any:
            self.count += 1
            return self._usual(*arguments, **more)

        together.all_reduce = counting
        return self

    def __exit__(self, *error: object) -> None:
        together.all_reduce = self._usual


def fitted(bytes_sent: Array, seconds: Array) -> tuple[float, float]:
    """Latency and seconds for each byte: least squares of relative errors, neither below 0.

    >>> fitted(np.array([4.0, 4e3, 4e6]), 1e-4 + 1e-9 * np.array([4.0, 4e3, 4e6]))
    (0.0001, 1e-09)
    """
    from scipy.optimize import nnls

    scale = float(bytes_sent.max())
    design = np.stack([1 / seconds, bytes_sent / scale / seconds], axis=1)
    (latency, each), _ = nnls(design, np.ones(len(seconds)))
    return float(f"{latency:.6g}"), float(f"{each / scale:.6g}")
