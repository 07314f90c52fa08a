"""Memory stays flat: python -m hard_use.flat --parts online,threads,offline,learn,files --scale 1 (in tests/).

The same work over and over at a state that no longer grows: every action has been played, the log is the same file. After a
warm-up, in which caches fill and libraries load, work is counted in rounds and not by a clock, and afterwards five things may not
have grown:

  traced     bytes that Python and NumPy have allocated, by tracemalloc: at most TRACED in all, besides what the agent says that
             it holds (`nbytes`: agents of generalised linear models keep their rows). Measuring takes a few hundred bytes.
             Whatever is left behind each round, the smallest object (24 bytes) and a reference to it (8), is more than TRACED
             after 128 rounds, and an array (112 bytes besides its numbers) after 37.
  resident   the process's memory, which also sees what C libraries hold: at most RESIDENT. Allocators keep what was freed
             for the next time, up to 64 MiB above their largest need with glibc, and after they have been asked to give it back
             much less. One working array left behind a round is more in every part.
  files      open file descriptors: none
  threads    threads of the process: none
  beliefs    beliefs that are alive: none
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import os
import sys
import tempfile
import threading
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import manyarms as ma
from manyarms.beliefs import Belief

TRACED = 4 << 10
RESIDENT = 32 << 20
WARM_UP = 0.25  # of the rounds
K, D = 150, 4


@dataclass
class Work:
    """A round of work, how many rounds there are, and the bytes of state that may have grown."""

    name: str
    round: Callable[[], object]
    rounds: int
    held: Callable[[], int] = lambda: 0


@dataclass
class Reading:
    """What a process holds at a moment."""

    traced: int
    resident: int
    files: int
    threads: int
    beliefs: int

    @classmethod
    def now(cls) -> Reading:
        _forget_names()
        for _ in range(3):
            gc.collect()
        with suppress(OSError, AttributeError):  # another C library has none
            ctypes.CDLL(None).malloc_trim(0)
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        traced = tracemalloc.get_traced_memory()[0]
        files, threads = len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))
        beliefs = sum(issubclass(type(one), Belief) for one in gc.get_objects())
        resident = pages * os.sysconf("SC_PAGE_SIZE")
        return cls(traced, resident, files, max(threads, threading.active_count()), beliefs)


def _forget_names() -> None:
    """Empty the interpreter's cache of attributes by type: a table of 4,096 places, each of which keeps the name last asked for.

    Names are found in it by address. One that C code makes anew at each call, as torch does `__cuda_array_interface__`, takes
    another place every time, until all are taken: 73 bytes a place and 300 kB in all, after thousands of calls.
    """
    clear = getattr(sys, "_clear_internal_caches", None) or getattr(
        sys, "_clear_type_cache", None
    )  # Python 3.13 and before
    if clear is not None:
        clear()


def grown(work: Work) -> tuple[str, list[str]]:
    """Do the work; says what was measured, and what has grown."""
    for _ in range(max(5, int(WARM_UP * work.rounds))):
        work.round()
    snapshot, held = tracemalloc.take_snapshot(), work.held()
    before = Reading.now()
    for _ in range(work.rounds):
        work.round()
    after = Reading.now()
    more = {
        "traced": after.traced - before.traced - (work.held() - held),
        "resident": after.resident - before.resident - (work.held() - held),
        "files": after.files - before.files,
        "threads": after.threads - before.threads,
        "beliefs": after.beliefs - before.beliefs,
    }
    limits = {"traced": TRACED, "resident": RESIDENT}
    wrong = [
        f"{work.name}: {name} grew by {found:,} in {work.rounds:,} rounds, at most {limits.get(name, 0):,}"
        for name, found in more.items()
        if found > limits.get(name, 0)
    ]
    if wrong:
        wrong += [f"  {line}" for line in tracemalloc.take_snapshot().compare_to(snapshot, "lineno")[:8]]
    return f"{work.name}: {work.rounds:,} rounds, " + ", ".join(f"{n} {v:+,}" for n, v in more.items()), wrong


# ---- the work


def agents() -> dict[str, Any]:
    """One of every kind of belief and decision."""
    eye, zero = np.eye(D), np.zeros(D)
    prior = ma.ActionPrior(K, zero, eye)
    mixed = ma.MixedEffectPrior(np.random.default_rng(0).normal(size=(K, 3)), np.zeros((3, D)), np.eye(3 * D), eye)
    chain = ma.DiffusionPrior(K, D, [0.5 * eye, 0.5 * eye], [eye, eye, eye])
    return {
        "LinTS": ma.LinTS(prior, seed=1),
        "LinUCB": ma.LinUCB(prior, seed=1),
        "HierTS": ma.HierTS(ma.HierarchicalPrior(K, zero, eye, eye), seed=1),
        "meTS": ma.meTS(mixed, seed=1),
        "meTS factored": ma.meTS(mixed, factored=True, seed=1),
        "meTS logistic": ma.meTS(mixed, ma.Logistic(), seed=1),
        "dTS": ma.dTS(chain, seed=1),
    }


def online(scale: float) -> Iterator[Work]:
    """Decisions and rewards, one by one and in batches, all actions played before."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(64, D))
    for name, agent in agents().items():
        agent.observe(rng.normal(size=(K, D)), np.arange(K), rng.integers(2, size=K).astype(float))
        count = [0]

        def step(agent: Any = agent, count: list[int] = count) -> None:
            x = X[count[0] % 64]
            agent.observe(x, agent.decide(x), float(count[0] % 2))
            if count[0] % 16 == 0:
                agent.observe(X[:8], agent.decide(X[:8]), np.ones(8))
                agent.decide(x, candidates=[1, 5, 9, 11], k=2)
                agent.posterior(count[0] % K)
            count[0] += 1

        glm = "logistic" in name
        yield Work(f"online {name}", step, int(scale * (2_000 if glm else 20_000)), lambda a=agent: int(a.nbytes))


READERS, ASKED = 2, 20


def threads(scale: float) -> Iterator[Work]:
    """An agent that readers and a learner share; snapshots are taken, and dropped while it learns.

    What is in use differs from moment to moment, but after each round, when readers have left, there are the published belief and
    its twin again. The pool's threads stay: one that has just ended is still counted for a moment.
    """
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ASKED, D))
    interval = sys.getswitchinterval()
    everybody = [agents()[name] for name in ("HierTS", "meTS", "dTS")]
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(READERS + 1) as pool:
            for agent in everybody:
                yield Work(
                    f"threads {agent.name}",
                    _shared(agent, X, pool),
                    int(scale * 150),
                    lambda a=agent: 2 * int(a.nbytes),
                )
    finally:
        sys.setswitchinterval(interval)


def _shared(agent: Any, X: np.ndarray, pool: ThreadPoolExecutor) -> Callable[[], None]:
    agent.observe(np.tile(X[0], (K, 1)), np.arange(K), np.ones(K))
    held = agent._belief.enter()  # from here on readers and learners have met, and there is a twin
    agent.observe(X[0], 0, 1.0)
    agent._belief.leave(held)
    streams = [
        agent._draws.decision(0) for _ in range(READERS + 1)
    ]  # as many generators as threads can ever use at once
    for stream in streams:
        agent._draws.release(stream)
    together = threading.Barrier(READERS + 1)

    def read() -> None:
        together.wait()
        for x in X:
            frozen = agent.snapshot()
            agent.decide(x)
            frozen.decide(x)

    def learn() -> None:
        together.wait()
        for n, x in enumerate(X):
            agent.observe(x, n, 1.0)
            with suppress(ma.ManyArmsError):
                agent.observe(x, K, 1.0)

    def round() -> None:
        for done in [pool.submit(job) for job in [learn] + READERS * [read]]:
            done.result()
        for x in X[:2]:  # published and twin have both been read, and have learned the same
            agent.observe(x, 0, 1.0)
            agent.decide(x)

    return round


def a_log(rows: int, actions: int) -> Any:
    """Rounds of a uniform policy."""
    rng = np.random.default_rng(0)
    X, ids = rng.normal(size=(rows, D)), rng.integers(actions, size=rows)
    return ma.LoggedData(X, ids, rng.integers(2, size=rows).astype(float), actions, np.full(rows, 1 / actions))


def offline(scale: float) -> Iterator[Work]:
    """Evaluations, certificates and inspections, of a log in memory and of files in chunks."""
    log, actions = a_log(20_000, 1_000), 1_000
    policy = ma.SoftmaxPolicy(np.random.default_rng(1).normal(size=(actions, D)))
    yield Work("evaluate in memory", lambda: ma.evaluate(policy, log, ["ips", "snips"]), int(scale * 60))
    yield Work("certify", lambda: ma.certify(policy, log, bound="ls"), int(scale * 60))
    with tempfile.TemporaryDirectory() as folder:
        for ending, write in (("parquet", ma.logs.to_parquet), ("csv", ma.logs.to_csv)):
            path = Path(folder) / f"log.{ending}"
            write(log, path)

            def streamed(path: Path = path) -> None:
                ma.evaluate(policy, ma.open_log(path), ["snips"])
                ma.inspect(path)

            yield Work(f"evaluate and inspect {ending}", streamed, int(scale * 30))


def learn(scale: float) -> Iterator[Work]:
    """Policies learned again and again; the last one is let go."""
    log, actions = a_log(2_000, 20_000), 20_000
    start = np.random.default_rng(2).normal(size=(actions, D))

    def again() -> None:
        ma.learn(log, ma.SoftmaxPolicy(start), ma.cLPI(), epochs=1, batch=500, device="cpu")

    yield Work("learn", again, int(scale * 40))
    small = a_log(60, 20)

    def with_validation() -> None:
        policy = ma.GaussianPolicy(np.zeros((20, D)))
        ma.learn(small, policy, ma.IPS(), epochs=2, batch=25, validation=0.2, patience=1, device="cpu")

    yield Work("learn with validation", with_validation, int(scale * 300))


def files(scale: float) -> Iterator[Work]:
    """Saving and loading, and loads that are refused."""
    agent = agents()["meTS"]
    with tempfile.TemporaryDirectory() as folder:

        def keep() -> None:
            agent.save(folder)
            agent.decide(np.ones(D))
            ma.load(folder)
            with suppress(ma.ManyArmsError):
                ma.load(Path(folder) / "absent")
            with suppress(ma.ManyArmsError):
                agent.observe(np.full(D, np.nan), 1, 1.0)

        yield Work("save and load", keep, int(scale * 300))


PARTS = {"online": online, "threads": threads, "offline": offline, "learn": learn, "files": files}


def main() -> int:
    """Every part, or some; the exit code is 1 where something grew."""
    parser = argparse.ArgumentParser(description="Memory, files and threads stay as they are.")
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--scale", type=float, default=1.0, help="of the number of rounds")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    tracemalloc.start()  # before anything is made: what takes the place of something unseen would look new
    wrong: list[str] = []
    for part in options.parts.split(","):
        for work in PARTS[part](options.scale):
            told, found = grown(work)
            print(told, flush=True)
            wrong += found
    print("\n".join(["GREW", *wrong]) if wrong else "nothing grew")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
