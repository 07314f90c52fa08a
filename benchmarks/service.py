"""The decision service over loopback, as clients see it; ends with one line of JSON, its figures by name (benchmarks/README.md).

python benchmarks/service.py                 in a temporary folder; --folder puts the store on the disk that is to be measured
python benchmarks/service.py --quick         shorter
python benchmarks/service.py --only rate     one part

The server is that of `manyarms serve`, in a process of its own, and this process is its clients: an open loop (`_load.py`), in
which an answer's time counts from the moment at which its request was due. As in live.py every fourth decision is rewarded. Every
part is bounded in time. With two cores the clients have one of them, and the server the other.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["MKL_NUM_THREADS"] = "1"

import argparse
import asyncio
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import uvloop
from _load import Outcome, Pool, open_loop
from _report import GOALS, Figures, as_json, first_line, report

import live as in_process
import manyarms as ma

GOALS |= {
    "decision_p99_ms": (True, 50.0),
    "decisions_refused": (True, 0.0),
    "serve_over_limit": (False, 0.8),
    "policy_1e6_p99_ms": (True, 150.0),
}

running = uvloop.run
"""The clients' event loop: the quickest there is, since they share the processors with the server."""


@dataclass(frozen=True)
class Sizes:
    """How large everything is."""

    actions: int = 100_000
    dim: int = 16
    rate: float = 300.0  # decisions a second that are offered
    seconds: float = 20.0  # of each loop
    trial: float = 6.0  # of each trial of a higher rate
    highest: float = 3_000.0  # rate that is ever tried
    policy_actions: int = 1_000_000
    policy_dim: int = 64
    policy_rate: float = 5.0
    policy_seconds: float = 40.0
    events: int = 100_000
    inline_rate: float = 20.0


@contextmanager
def served(agent: Path, store: str, **settings: Any) -> Iterator[tuple[Pool, int]]:
    """A server of its own process on a free port; its connections, and its process id."""
    options = {"port": 0, "log_requests": False, "log_level": "warning", "propensities": False, **settings}
    program = (
        "import json, sys\n"
        "from manyarms.service.app import create_app\n"
        "from manyarms.service.config import make_config\n"
        "from manyarms.service.running import run\n"
        "from manyarms.service.runtime import open_service\n"
        "config = make_config({}, json.loads(sys.argv[1]))\n"
        "run(create_app(open_service(config)), config, lambda address: print(address, flush=True))\n"
    )
    told = json.dumps({"agent": str(agent), "store": store, **options})
    process = subprocess.Popen([sys.executable, "-c", program, told], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        port = int(process.stdout.readline().rsplit(":", 1)[1])
        yield Pool(port), process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(60.0)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(60.0)


def saved_agent(sizes: Sizes, folder: Path) -> Path:
    """meTS that has learned a little, the one of `benchmarks/live.py`."""
    target = folder / "agent"
    if not target.exists():
        in_process.agent_of(in_process.Sizes(actions=sizes.actions, dim=sizes.dim)).save(target)
    return target


def asking(dim: int, **more: Any) -> Callable[[int], dict[str, Any]]:
    """Questions with contexts of this length."""
    X = np.random.default_rng(2).standard_normal((1_000, dim)).round(6).tolist()
    return lambda number: {"context": X[number % len(X)], **more}


async def _loop(
    pool: Pool, rate: float, seconds: float, dim: int, seed: int, rewarded: int = 4, **more: Any
) -> Outcome:
    await open_loop(pool, min(rate, 50.0), 2.0, asking(dim, **more), seed)  # the first decision builds blocks
    await open_loop(pool, rate, 3.0, asking(dim, **more), seed + 2, rewarded=rewarded)  # connections are made
    return await open_loop(pool, rate, seconds, asking(dim, **more), seed + 1, rewarded=rewarded)


def run_load(sizes: Sizes, folder: Path) -> Figures:
    """meTS, 100,000 actions, d = 16: how long 300 decisions a second take, every fourth rewarded; and then every one."""
    agent = saved_agent(sizes, folder)
    with served(agent, str(folder / "load.db")) as (pool, _):
        found = running(_loop(pool, sizes.rate, sizes.seconds, sizes.dim, 1))
    with served(agent, str(folder / "load-all.db")) as (pool, _):
        every = running(_loop(pool, sizes.rate, sizes.seconds, sizes.dim, 1, rewarded=1))
    return {
        "decision_p50_ms": found.p(0.5),
        "decision_p99_ms": found.p(0.99),
        "decisions_refused": found.refused + every.refused,
        "decisions_offered_per_s": sizes.rate,
        "all_rewarded_p50_ms": every.p(0.5),
        "all_rewarded_p99_ms": every.p(0.99),
    }


def _held(outcome: Outcome) -> bool:
    """Whether a server kept up with a rate: nothing refused, and nothing piled up."""
    return outcome.refused == 0 and outcome.p(0.99) < 500.0 and outcome.late < 1.5


def highest_rate(pool: Pool, sizes: Sizes) -> float:
    """The highest rate that is held: doubled until it is not, then halved in between, to 5 %."""

    async def search() -> float:
        await open_loop(pool, 50.0, 2.0, asking(sizes.dim), 0)
        low, high, rate = 0.0, 0.0, 100.0
        while high == 0.0 or high / max(low, 1.0) > 1.05:
            found = await open_loop(pool, rate, sizes.trial, asking(sizes.dim), int(rate))
            if _held(found):
                low = rate
            else:
                high = rate
                await asyncio.sleep(1.0)
            if low >= sizes.highest:
                break
            rate = 1.5 * rate if high == 0.0 else (low + high) / 2
            if high and rate < 5.0:
                break
        return low

    return running(search())


def run_rate(sizes: Sizes, folder: Path) -> Figures:
    """The highest rate held, on the disk and in memory, beside the store's own group commit."""
    store = in_process.run_store(in_process.Sizes(dim=sizes.dim, each=300), folder)
    agent = saved_agent(sizes, folder)
    with served(agent, str(folder / "rate.db")) as (pool, _):
        on_disk = highest_rate(pool, sizes)
    with served(agent, ":memory:") as (pool, _):
        in_memory = highest_rate(pool, sizes)
    commits = float(store["store_commits_per_s"] or 0.0)
    return {
        "decisions_per_s": on_disk,
        "decisions_in_memory_per_s": in_memory,
        "store_commits_per_s": commits,
        "serve_over_limit": on_disk / max(1e-9, min(commits, in_memory)),
    }


def run_policy(sizes: Sizes, folder: Path) -> Figures:
    """A learned policy over a million actions, d = 64: five decisions a second, propensities exact."""
    rng = np.random.default_rng(0)
    table = (rng.standard_normal((sizes.policy_actions, sizes.policy_dim)) / np.sqrt(sizes.policy_dim)).astype(
        np.float32
    )
    ma.SoftmaxPolicy(table).save(folder / "policy")
    with served(folder / "policy", str(folder / "policy.db")) as (pool, _):
        found = running(_loop(pool, sizes.policy_rate, sizes.policy_seconds, sizes.policy_dim, 3))
    return {"policy_1e6_p50_ms": found.p(0.5), "policy_1e6_p99_ms": found.p(0.99), "policy_refused": found.refused}


def resident_mb(pid: int) -> float:
    """Memory of a process that is its own."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    kilobytes = {line.split(":")[0]: int(line.split()[1]) for line in lines[1:] if line.split()[1].isdigit()}
    return (kilobytes["Private_Clean"] + kilobytes["Private_Dirty"]) / 1024


def run_memory(sizes: Sizes, folder: Path) -> Figures:
    """Memory of the server over 100,000 events, in batches, of which every seventh earns something; a small agent."""
    small = in_process.Sizes(actions=2_000, dim=sizes.dim, played=2_000)
    in_process.agent_of(small).save(folder / "small")

    async def some(pool: Pool, number: int) -> None:
        ask = asking(sizes.dim)
        for first in range(0, number, 500):
            questions = [ask(first + i) for i in range(500)]
            status, body = await pool.post("/v1/decide/batch", {"decisions": questions})
            assert status == 200, body
            rewards = [
                {"event": one["id"], "value": float(i % 7 == 0)} for i, one in enumerate(json.loads(body)["decisions"])
            ]
            status, body = await pool.post("/v1/reward/batch", {"rewards": rewards})
            assert status == 200, body

    with served(folder / "small", str(folder / "memory.db"), most_body=1 << 24) as (pool, pid):
        running(some(pool, sizes.events // 4))  # caches, pools and tables have their size
        time.sleep(3.0)
        pool = Pool(pool.port)
        before, began = resident_mb(pid), time.perf_counter()
        running(some(pool, sizes.events))
        took = time.perf_counter() - began
        time.sleep(3.0)
        grown = resident_mb(pid) - before
    return {
        "events_mb_per_1e5": grown * 1e5 / sizes.events,
        "service_memory_mb": before,
        "batched_events_per_s": sizes.events / took,
        "store_bytes_per_event": (folder / "memory.db").stat().st_size / (1.25 * sizes.events),
    }


def run_inline(sizes: Sizes, folder: Path) -> Figures:
    """Decisions that estimate their propensity at once, 20 a second."""
    with served(saved_agent(sizes, folder), str(folder / "inline.db")) as (pool, _):
        found = running(_loop(pool, sizes.inline_rate, sizes.seconds, sizes.dim, 5, propensity=True))
    return {
        "inline_propensity_p50_ms": found.p(0.5),
        "inline_propensity_p99_ms": found.p(0.99),
        "inline_offered_per_s": sizes.inline_rate,
        "inline_refused": found.refused,
    }


PARTS: dict[str, Callable[[Sizes, Path], Figures]] = {
    "load": run_load,
    "rate": run_rate,
    "policy": run_policy,
    "memory": run_memory,
    "inline": run_inline,
}


def main(arguments: list[str] | None = None, sizes: Sizes | None = None) -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=first_line(main))
    parser.add_argument("--quick", action="store_true", help="shorter")
    parser.add_argument("--only", choices=sorted(PARTS), help="one part")
    parser.add_argument("--folder", type=Path, help="where the stores are made, and removed again")
    given = parser.parse_args(arguments)
    sizes = sizes or Sizes()
    if given.quick:
        sizes = replace(sizes, seconds=6.0, trial=3.0, policy_seconds=10.0, events=20_000)
    chosen = {name: part for name, part in PARTS.items() if given.only in (None, name)}
    with tempfile.TemporaryDirectory(prefix="manyarms-service-", dir=given.folder) as scratch:
        parts = {name: lambda part=part: part(sizes, Path(scratch)) for name, part in chosen.items()}
        figures = report(parts, {name: first_line(part) for name, part in chosen.items()})
    print(as_json(figures))


if __name__ == "__main__":
    main()
