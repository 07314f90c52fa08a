"""Files larger than the memory there is: a process with a limit folds them chunk by chunk, and cannot hold them whole."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from manyarms.logs import LoggedData, to_parquet

pa = pytest.importorskip("pyarrow")
pytest.importorskip("resource")

ROWS, DIM = 160_000, 100  # 128 MB of contexts
BUDGET = 64 << 20

# The limit is set when everything is imported and warmed up on a small file, so that it is the log's memory that counts.
PROGRAM = """
import json, resource, sys
import numpy as np, pyarrow as pa
pa.set_memory_pool(pa.system_memory_pool())  # the default one reserves address space ahead
pa.set_cpu_count(1); pa.set_io_thread_count(1)
from manyarms.logs import open_log, collect, to_parquet
from manyarms.logs.inspection import inspect

jobs, path, small, budget = sys.argv[1].split(), sys.argv[2], sys.argv[3], int(sys.argv[4])

def run(job, path):
    if job == "fold":
        G, rows = 0.0, 0
        for chunk in open_log(path).chunks(8192):
            G = G + chunk.contexts.T @ chunk.contexts
            rows += len(chunk)
        return [rows, float(np.trace(G))]
    if job == "inspect":
        return [inspect(path, rows_per_chunk=8192).rows, 0.0]
    if job == "copy":
        to_parquet(open_log(path), path + ".copy.parquet", rows_per_group=8192)
        return [open_log(path + ".copy.parquet").row_count, 0.0]
    return [len(collect(open_log(path))), 0.0]

for job in jobs:
    run(job, small)
with open("/proc/self/status") as status:
    used = next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmData"))
resource.setrlimit(resource.RLIMIT_DATA, (used + budget, used + budget))
found = {}
for job in jobs:
    try:
        found[job] = run(job, path)
    except MemoryError:
        found[job] = "out of memory"
print(json.dumps(found))
"""

# one thread; and an allocator that gives large blocks back at once, so that it is not its habits that are measured
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1", "MALLOC_MMAP_THRESHOLD_": "131072",
    "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
}  # fmt: skip


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, float]:
    folder = tmp_path_factory.mktemp("large")
    rng = np.random.default_rng(0)
    trace = 0.0

    class Made:
        action_count, dim = 50, DIM

        def __init__(self, rows: int) -> None:
            self.rows = rows

        def chunks(self, rows: int = 0):  # type: ignore[no-untyped-def]
            nonlocal trace
            for _ in range(self.rows // 20_000):
                X = rng.integers(-8, 8, size=(20_000, DIM)).astype(np.float64)
                trace += float((X**2).sum())
                yield LoggedData(X, rng.integers(50, size=20_000), rng.random(20_000), 50, np.full(20_000, 0.02))

    to_parquet(Made(20_000), folder / "small.parquet", rows_per_group=20_000)
    trace = 0.0
    to_parquet(Made(ROWS), folder / "large.parquet", rows_per_group=20_000)
    return folder / "large.parquet", folder / "small.parquet", trace


def told(jobs: str, files: tuple[Path, Path, float]) -> object:
    answer = subprocess.run(
        [sys.executable, "-c", PROGRAM, jobs, str(files[0]), str(files[1]), str(BUDGET)],
        capture_output=True, text=True, timeout=600, env={**os.environ, **ENVIRONMENT},
    )  # fmt: skip
    assert answer.returncode == 0, answer.stderr[-2000:]
    return json.loads(answer.stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is Linux's")
def test_a_log_twice_as_large_as_the_memory_is_folded_inspected_and_copied(files: tuple[Path, Path, float]) -> None:
    assert ROWS * DIM * 8 > 1.9 * BUDGET
    whole = {"fold": [ROWS, files[2]], "inspect": [ROWS, 0.0], "copy": [ROWS, 0.0], "collect": "out of memory"}
    assert told("fold inspect copy collect", files) == whole


@pytest.mark.slow
def test_one_huge_row_group_is_read_piece_by_piece(files: tuple[Path, Path, float], tmp_path: Path) -> None:
    import pyarrow.parquet as parquet

    table = parquet.read_table(files[0])
    parquet.write_table(table, tmp_path / "one.parquet", row_group_size=ROWS)
    del table
    assert parquet.ParquetFile(tmp_path / "one.parquet").num_row_groups == 1
    if sys.platform == "linux":
        assert told("fold", (tmp_path / "one.parquet", files[1], files[2])) == {"fold": [ROWS, files[2]]}
