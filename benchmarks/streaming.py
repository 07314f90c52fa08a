"""Learning from Parquet files that are larger than the memory allowed; ends with one line of JSON, its figures by name.

python benchmarks/streaming.py                     5,000,000 rows, 10,000 actions, contexts of length 32
python benchmarks/streaming.py --rows 200000       fewer

Each run has a process of its own, PyTorch has one thread, and the thread that reads has the other core. Streamed and in memory
take turns; both learn one epoch of the same rows in batches of the same size, and the speed is that of the epoch. Beside it are
the seconds of the whole call: a streamed run reads the files once more before the first step, and a run in memory reads them too.
On a machine that others use as well, the thread that learns waits for a core now and then, and more often where the thread that
reads takes the only free one; Linux counts these waits (schedstat). `stream_over_memory` is by the clock on the wall;
`stream_over_memory_with_cores` leaves these waits out on both sides, as if every thread had a core.
The limit is on what the process holds beyond an idle one that has imported the same: half of what the rows take in memory.
"""

from __future__ import annotations

import os

# one thread for everybody, and before numpy is loaded
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["MKL_NUM_THREADS"] = "1"

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from _offline import memory_of_this_process, peak_bytes
from _report import GOALS, Figures, as_json, report

from manyarms.learning import learn
from manyarms.logs import open_log, read_log
from manyarms.policies import SoftmaxPolicy

GOALS |= {"stream_over_memory": (False, 0.9), "stream_learn_peak_over_limit": (True, 1.0)}
PART = 500_000  # rows in a file
GROUP = 50_000  # and in a row group
CLICKS = 0.1  # the share of rows with a reward: the others cost an objective of rewards nothing
LEAST_LIMIT = 250.0  # MB: room for two windows, however small the log


@dataclass(frozen=True)
class Sizes:
    """How large everything is."""

    rows: int = 5_000_000
    actions: int = 10_000
    dim: int = 32
    batch: int = 512
    turns: int = 2
    buffer: int = 0  # rows of a window; 0 for the usual number


def write(folder: Path, sizes: Sizes) -> float:
    """The rounds in files as others write them, contexts as lists of float32; MB that they take in memory."""
    import pyarrow as pa
    import pyarrow.parquet as parquet

    rng = np.random.default_rng(0)
    for number, first in enumerate(range(0, sizes.rows, PART)):
        rows = min(PART, sizes.rows - first)
        contexts = rng.standard_normal((rows, sizes.dim), dtype=np.float32) * np.float32(0.3)
        columns = {
            "context": pa.FixedSizeListArray.from_arrays(pa.array(contexts.ravel()), sizes.dim),
            "action": pa.array(rng.integers(0, sizes.actions, rows)),
            "reward": pa.array((rng.random(rows) < CLICKS).astype(np.float64)),
            "propensity": pa.array(rng.uniform(0.001, 0.1, rows)),
        }
        path = folder / f"part-{number:04d}.parquet"
        parquet.write_table(pa.table(columns), path, row_group_size=GROUP, compression="zstd")
    return sizes.rows * (sizes.dim + 3) * 8 / 1e6


def waited_for_a_core() -> float:
    """Seconds in which this thread could have run, and no core was free; 0 where nobody counts them."""
    path = Path(f"/proc/self/task/{threading.get_native_id()}/schedstat")
    return int(path.read_text().split()[1]) / 1e9 if path.exists() else 0.0


def be_child(task: str, folder: str, sizes: Sizes) -> dict[str, float]:
    """One epoch, streamed or in memory: rows per second of the epoch, seconds of everything, and the memory that it took."""
    import torch

    from manyarms.estimators import cLPI

    torch.set_num_threads(1)
    rng = np.random.default_rng(1)
    policy = SoftmaxPolicy(rng.standard_normal((sizes.actions, sizes.dim), dtype=np.float32) * np.float32(0.1))
    small = open_log(Path(folder), action_count=sizes.actions)
    how: dict[str, Any] = {"epochs": 1, "batch": sizes.batch, "learning_rate": 1e-3, "device": "cpu"}
    first = next(small.chunks(2 * sizes.batch))
    learn(first, policy, cLPI(), **how)  # whatever is imported or made once
    waited: list[float] = []
    how["progress"] = lambda moment: (
        waited.append(waited_for_a_core()) if moment.batch in (0, moment.batches - 1) else None
    )
    idle = memory_of_this_process("VmRSS") or peak_bytes()
    start = time.perf_counter()
    if task == "stream":
        log = open_log(Path(folder), action_count=sizes.actions)
        result = learn(log, policy, cLPI(), buffer=sizes.buffer or None, **how)
    else:
        result = learn(read_log(Path(folder), action_count=sizes.actions), policy, cLPI(), **how)
    wall = sizes.rows / result.history[-1].rows_per_second
    return {
        "rows_per_second": sizes.rows / (wall - (waited[-1] - waited[0])),
        "wall_rows_per_second": sizes.rows / wall,
        "seconds": time.perf_counter() - start,
        "grown_mb": (peak_bytes() - idle) / 1e6,
        "objective": result.history[-1].objective,
    }


def child(task: str, folder: Path, sizes: Sizes) -> dict[str, float]:
    """The same in a process of its own."""
    spec = json.dumps({"task": task, "folder": str(folder), "sizes": asdict(sizes)})
    run = subprocess.run(
        [sys.executable, "-W", "ignore", __file__, "--child", spec], capture_output=True, text=True, check=False
    )
    if run.returncode != 0:
        raise RuntimeError(f"{task}: {run.stderr.strip()[-2000:]}")
    found: dict[str, float] = json.loads(run.stdout.splitlines()[-1])
    return found


def run_learn(sizes: Sizes) -> Figures:
    """An epoch of cLPI from files, under a limit of memory, against the same in memory."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        size = write(folder, sizes)
        on_disk = sum(one.stat().st_size for one in folder.iterdir()) / 1e6
        limit = max(LEAST_LIMIT, size / 2)
        turns = [(child("stream", folder, sizes), child("memory", folder, sizes)) for _ in range(sizes.turns)]
    for streamed, memory in turns:
        print(
            f"  streamed {streamed['rows_per_second']:,.0f} rows/s ({streamed['wall_rows_per_second']:,.0f} by the wall, "
            f"{streamed['seconds']:.1f} s in all, {streamed['grown_mb']:.0f} MB), in memory "
            f"{memory['rows_per_second']:,.0f} rows/s ({memory['wall_rows_per_second']:,.0f}, {memory['seconds']:.1f} s, "
            f"{memory['grown_mb']:.0f} MB)"
        )
    peak = max(streamed["grown_mb"] for streamed, _ in turns)
    print(f"  {size:.0f} MB of rows ({on_disk:.0f} MB of Parquet) with {peak:.0f} MB; the limit is {limit:.0f} MB")
    if peak > limit:
        raise RuntimeError(f"{peak:.0f} MB to learn from {size:.0f} MB of rows; at most {limit:.0f} MB were expected")

    def median(of: str, side: int) -> float:
        return float(np.median([turn[side][of] for turn in turns]))

    def ratio(of: str) -> float:
        return float(np.median([streamed[of] / memory[of] for streamed, memory in turns]))

    return {
        "stream_over_memory": ratio("wall_rows_per_second"),
        "stream_over_memory_with_cores": ratio("rows_per_second"),
        "stream_learn_rows": sizes.rows,
        "stream_learn_rows_per_second": median("rows_per_second", 0),
        "memory_learn_rows_per_second": median("rows_per_second", 1),
        "stream_learn_seconds": median("seconds", 0),
        "memory_learn_seconds": median("seconds", 1),
        "stream_learn_log_mb": size,
        "stream_learn_limit_mb": limit,
        "stream_learn_peak_mb": peak,
        "stream_learn_peak_over_limit": peak / limit,
        "memory_learn_peak_mb": max(memory["grown_mb"] for _, memory in turns),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="Learning from files larger than memory; ends with one line of JSON.")
    parser.add_argument("--child", metavar="SPEC", help=argparse.SUPPRESS)
    for name, value in asdict(Sizes()).items():
        parser.add_argument(f"--{name}", type=int, default=value)
    options = vars(parser.parse_args(arguments))
    spec = options.pop("child")
    if spec:
        told = json.loads(spec)
        print(json.dumps(be_child(told["task"], told["folder"], Sizes(**told["sizes"]))))
        return
    parts = {"learn": partial(run_learn, Sizes(**options))}
    print(as_json(report(parts, {"learn": "one epoch from Parquet files, streamed and in memory"})))


if __name__ == "__main__":
    main()
