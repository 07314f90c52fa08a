"""Logs folded and evaluated in one process and on a Ray runtime of this machine: worlds and clocks of distributed.py."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from _offline import peak_bytes

from manyarms._base.typing import Array, Ints
from manyarms.beliefs import Linear, belief_of
from manyarms.beliefs.partial_sums import PartialSums
from manyarms.engine import Engine, On, opened
from manyarms.evaluation import evaluate
from manyarms.logs import TableLog, open_log, shards
from manyarms.policies import SoftmaxPolicy
from manyarms.priors import MixedEffectPrior
from manyarms.rewards import BeliefModel, sdm

Columns = dict[str, list[float | int]]
EFFECTS = 5
NOISE = 0.5


@dataclass(frozen=True)
class Sizes:
    """How large everything is; the defaults are what the goal and the page speak of."""

    rows: tuple[int, ...] = (100_000, 300_000, 1_000_000, 2_000_000)
    actions: int = 100_000
    dim: int = 10
    shard_rows: tuple[int, ...] = (1_000_000, 500_000, 250_000, 100_000)
    workers: tuple[int, ...] = (1, 2, 4)
    added: tuple[int, ...] = (10_000, 30_000, 100_000)
    evaluated: int = 1_000_000
    policy_actions: int = 100
    part: int = 100_000  # rows in a file
    group: int = 50_000  # and in a row group
    turns: int = 5


# ---- worlds -----------------------------------------------------------------------------------------------------------


def popularity(actions: int) -> Array:
    """(K,): how often actions are played, by Zipf's law: the second half as often as the first, the third a third as often."""
    often = 1.0 / np.arange(1, actions + 1)
    return np.asarray(often / often.sum())


def write(folder: Path, sizes: Sizes, rows: int) -> None:
    """Rounds in files as others write them: contexts as lists of float32, actions by Zipf's law in no order."""
    import pyarrow as pa
    import pyarrow.parquet as parquet

    rng = np.random.default_rng(0)
    p, name = popularity(sizes.actions), rng.permutation(sizes.actions)
    ends = p.cumsum()
    for number, first in enumerate(range(0, rows, sizes.part)):
        n = min(sizes.part, rows - first)
        contexts = rng.standard_normal((n, sizes.dim), dtype=np.float32)
        rank = np.searchsorted(ends, rng.random(n)).clip(max=sizes.actions - 1)
        columns = {
            "context": pa.FixedSizeListArray.from_arrays(pa.array(contexts.ravel()), sizes.dim),
            "action": pa.array(name[rank]),
            "reward": pa.array(contexts[:, 0] + rng.standard_normal(n)),
            "propensity": pa.array(p[rank]),
        }
        path = folder / f"part-{number:04d}.parquet"
        parquet.write_table(pa.table(columns), path, row_group_size=sizes.group, compression="zstd")


def first_rows(folder: Path, sizes: Sizes, rows: int) -> TableLog:
    """The first so many rows of a folder, whole files of it, as a log of their own."""
    some = folder.with_name(f"{folder.name}-{rows}")
    if not some.exists():
        some.mkdir()
        for path in sorted(folder.iterdir())[: -(-rows // sizes.part)]:
            os.link(path, some / path.name)
    return open_log(some, action_count=sizes.actions)


@cache
def prior_of(sizes: Sizes) -> MixedEffectPrior:
    """Five effects, mixed with weights uniform on [-1, 1]; all covariances are multiples of the identity."""
    weights = np.random.default_rng(1).uniform(-1, 1, (sizes.actions, EFFECTS))
    effects = np.zeros((EFFECTS, sizes.dim)), 3 * np.eye(EFFECTS * sizes.dim)
    return MixedEffectPrior(weights, *effects, np.eye(sizes.dim))


# ---- clocks -----------------------------------------------------------------------------------------------------------


def timed(work: Callable[[], object]) -> float:
    """Seconds by the clock on the wall: work that others do is waited for."""
    gc.collect()
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def in_turns(turns: int, *sides: Callable[[], object]) -> Array:
    """(turns, sides) seconds: all sides work in every turn, after one turn that is not counted."""
    for side in sides:
        side()
    return np.array([[timed(side) for side in sides] for _ in range(turns)])


@contextmanager
def runtime(workers: int) -> Iterator[Engine]:
    """A Ray runtime of this machine that has started, with so many workers, each of which has imported what it needs."""
    with opened("ray", workers=workers) as engine:
        if engine.workers != workers:
            raise SystemExit(f"a Ray cluster with {engine.workers} cores runs here already: `ray stop` ends it")
        peaks(engine)
        yield engine


def _peak(_: int) -> tuple[int, float]:
    import manyarms.rewards.divided  # noqa: F401  # what a worker needs, imported before any clock runs

    time.sleep(0.3)  # so that no worker gets two of them
    return os.getpid(), peak_bytes()


def peaks(engine: Engine) -> list[float]:
    """The most bytes that each worker has held so far, shared memory that it looked at included."""
    return list(dict(found for _, found in engine.map(_peak, list(range(engine.workers)))).values())


# ---- studies ----------------------------------------------------------------------------------------------------------


def folded(log: TableLog, sizes: Sizes, on: On = "local") -> BeliefModel:
    """What is timed: sDM of a folder."""
    return sdm(log, prior_of(sizes), Linear(NOISE), on=on)


def distance(one: BeliefModel, other: BeliefModel) -> float:
    """The largest difference between posterior means, over the largest of them."""
    a, b = (np.asarray(model.weights) for model in (one, other))
    return float(np.abs(a - b).max() / np.abs(a).max())


def fold_by_rows(folder: Path, sizes: Sizes) -> Columns:
    """Seconds to fold a folder by its rows: one process, and Ray with two workers; the last is what the goal speaks of."""
    columns: Columns = {name: [] for name in ("n", "local", "local_cpu", "ray", "ray_over_local", "difference", "seen")}
    with runtime(2) as engine:
        for rows in sizes.rows:
            log = first_rows(folder, sizes, rows)
            cpu: list[float] = []

            def here(log: TableLog = log, cpu: list[float] = cpu) -> object:
                start = time.process_time()
                folded(log, sizes)
                cpu.append(time.process_time() - start)
                return None

            times = in_turns(sizes.turns, here, lambda log=log: folded(log, sizes, engine))  # type: ignore[misc]
            one, other = folded(log, sizes), folded(log, sizes, engine)
            found = {
                "n": rows,
                "local": float(np.median(times[:, 0])),
                "local_cpu": float(np.median(cpu[1:])),
                "ray": float(np.median(times[:, 1])),
                "ray_over_local": float(np.median(times[:, 1] / times[:, 0])),
                "difference": distance(one, other),
                "seen": len(other.belief.leaves.counts),
            }
            print("  " + ", ".join(f"{name} {value:,.4g}" for name, value in found.items()), flush=True)
            for name, value in found.items():
                columns[name].append(value)
    return columns


def fold_by_shards(folder: Path, sizes: Sizes) -> Columns:
    """Seconds to fold the whole folder on Ray with two workers, by the number of shards."""
    log, usual = first_rows(folder, sizes, sizes.rows[-1]), shards.ROWS_EACH
    columns: Columns = {"shards": [], "ray": []}
    with runtime(2) as engine:
        folded(log, sizes, engine)
        try:
            for rows in sizes.shard_rows:
                shards.ROWS_EACH = rows
                columns["shards"].append(len(shards.shards_of(log)))
                times = [timed(lambda: folded(log, sizes, engine)) for _ in range(max(1, sizes.turns - 2))]
                columns["ray"].append(float(np.median(times)))
        finally:
            shards.ROWS_EACH = usual
    return columns


def fold_by_workers(folder: Path, sizes: Sizes) -> Columns:
    """Seconds to fold the whole folder on Ray, by the number of workers, and the most that one of them held."""
    log = first_rows(folder, sizes, sizes.rows[-1])
    columns: Columns = {"workers": [], "ray": [], "peak_bytes": [], "idle_bytes": []}
    for workers in sizes.workers:
        with runtime(workers) as engine:
            idle = max(peaks(engine))
            folded(log, sizes, engine)
            times = [timed(lambda engine=engine: folded(log, sizes, engine)) for _ in range(max(1, sizes.turns - 2))]  # type: ignore[misc]
            found = {
                "workers": workers,
                "ray": float(np.median(times)),
                "peak_bytes": max(peaks(engine)),
                "idle_bytes": idle,
            }
        for name, value in found.items():
            columns[name].append(value)
    return columns


def add_by_actions(sizes: Sizes) -> Columns:
    """Seconds of CPU to add the sums of two shards, and to learn sums, by the actions in them."""
    rng, d = np.random.default_rng(2), sizes.dim
    columns: Columns = {"actions": [], "add": [], "learn": [], "bytes_each": []}

    def sums(ids: Ints) -> PartialSums:
        x = rng.standard_normal((len(ids), d))
        upper = np.triu_indices(d)
        G = x[:, upper[0]] * x[:, upper[1]]
        nothing = np.empty(0, dtype=np.int64)
        return PartialSums(
            d,
            ids,
            np.ones(len(ids), dtype=np.int64),
            G,
            x,
            np.einsum("nd,nd->n", x, x),
            nothing,
            nothing,
            np.empty((0, d + 1, d + 1)),
        )

    for actions in sizes.added:
        if actions > sizes.actions:
            continue
        half = [sums(np.sort(rng.choice(sizes.actions, actions, replace=False))) for _ in range(2)]
        add, learn = [], []
        for _ in range(sizes.turns):
            start = time.process_time()
            half[0].add(half[1])
            add.append(time.process_time() - start)
            belief, tables = belief_of(prior_of(sizes), Linear(NOISE)), half[0].tables()
            start = time.process_time()
            belief.learn_sums(*tables)
            learn.append(time.process_time() - start)
        held = sum(getattr(half[0], name).nbytes for name in ("ids", "counts", "G", "B", "squares"))
        for name, value in zip(
            columns, (actions, float(np.median(add)), float(np.median(learn)), held // actions), strict=True
        ):
            columns[name].append(value)
    return columns


def evaluate_by_rows(folder: Path, sizes: Sizes) -> Columns:
    """Seconds to evaluate a softmax policy on a folder, the IPS family with intervals: one process, and Ray with two workers."""
    few = Sizes(actions=sizes.policy_actions, dim=sizes.dim, part=sizes.part, group=sizes.group)
    name = folder.with_name("few")
    name.mkdir()
    write(name, few, sizes.evaluated)
    policy = SoftmaxPolicy(np.random.default_rng(3).standard_normal((few.actions, few.dim)) * 0.3)
    columns: Columns = {"n": [], "local": [], "ray": [], "ray_over_local": []}
    with runtime(2) as engine:
        for rows in (sizes.evaluated // 10, sizes.evaluated):
            log = first_rows(name, few, rows)
            times = in_turns(
                max(1, sizes.turns - 2),
                lambda log=log: evaluate(policy, log),  # type: ignore[misc]
                lambda log=log: evaluate(policy, log, on=engine),  # type: ignore[misc]
            )
            local, ray = (float(np.median(side)) for side in times.T)
            found: Sequence[Any] = (rows, local, ray, float(np.median(times[:, 1] / times[:, 0])))
            for series, value in zip(columns, found, strict=True):
                columns[series].append(value)
    return columns
