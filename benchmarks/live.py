"""Decisions with ids, in a store, from many threads; ends with one line of JSON, its figures by name (benchmarks/README.md).

python benchmarks/live.py                    in a temporary folder; --folder puts the store on the disk that is to be measured
python benchmarks/live.py --quick            fewer decisions

The same database, on the same disk, in the same run: first the store alone (records of the same size, no agent), then the agent
alone (no store), then both. Threads decide and give rewards at once, the learner folds them behind it.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["MKL_NUM_THREADS"] = "1"

import argparse
import tempfile
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from _report import Figures, as_json, first_line, report

import manyarms as ma
from manyarms._base.typing import Array
from manyarms.agents import Agent
from manyarms.live.group_commit import GroupCommit
from manyarms.live.new_entries import NewDecision
from manyarms.live.records import DecisionRecord, Question
from manyarms.live.stores.opening import open_database
from manyarms.worlds import MixedEffect


@dataclass(frozen=True)
class Sizes:
    """How large everything is."""

    actions: int = 100_000
    dim: int = 16
    effects: int = 5
    threads: int = 16
    each: int = 1_000  # decisions of a thread
    rewarded: int = 4  # every so many decisions get a reward
    played: int = 2_000  # rows that the agent has learned before
    fold_every: float = 0.5


def agent_of(sizes: Sizes) -> Agent:
    """meTS that has learned a little."""
    world = MixedEffect(sizes.actions, sizes.effects, sizes.dim, seed=1)
    agent = ma.meTS(world.prior(), seed=0)
    X = world.contexts(sizes.played)
    actions = np.random.default_rng(0).integers(sizes.actions, size=sizes.played)
    agent.observe(X, actions, world.reward(X, actions))
    return agent


def contexts_of(sizes: Sizes) -> Array:
    """What is asked, by all threads."""
    return np.random.default_rng(2).standard_normal((sizes.each, sizes.dim))


def at_once(sizes: Sizes, call: Callable[[Array, int], None], threads: int | None = None) -> tuple[float, Array]:
    """All threads call at once: calls in a second of the clock, and how long each took (ms)."""
    X = contexts_of(sizes)
    number = sizes.threads if threads is None else threads
    took = np.empty((number, len(X)))
    start = threading.Barrier(number + 1)

    def one(thread: int) -> None:
        start.wait()
        for i, x in enumerate(X):
            before = time.perf_counter()
            call(x, i)
            took[thread, i] = time.perf_counter() - before

    workers = [threading.Thread(target=one, args=(thread,)) for thread in range(number)]
    for worker in workers:
        worker.start()
    start.wait()
    began = time.perf_counter()
    for worker in workers:
        worker.join()
    return took.size / (time.perf_counter() - began), 1e3 * took.ravel()


def run_store(sizes: Sizes, folder: Path) -> Figures:
    """The store alone: decisions that somebody else made, in transactions of whatever waits."""
    with open_database(folder / "store.db") as database:
        group = GroupCommit(database)

        def call(x: Array, i: int) -> None:
            asked = Question(x)
            record = DecisionRecord(
                uuid.uuid4().hex, None, "agent", 0, i, asked, [i], asked.digest(None),
                details={"catalogue": 0, "encoding": 0},
            )  # fmt: skip
            group.submit(NewDecision(record, made_up=True))

        rate, took = at_once(sizes, call)
        group.close()
    return {"store_commits_per_s": rate, "store_p99_ms": float(np.quantile(took, 0.99))}


def run_agent(sizes: Sizes, folder: Path) -> Figures:
    """The agent alone: decisions of its snapshot, by one thread and by all."""
    snapshot = agent_of(sizes).snapshot()
    one, _ = at_once(sizes, lambda x, i: snapshot.decide(x, draw=i) and None, threads=1)
    many, took = at_once(sizes, lambda x, i: snapshot.decide(x, draw=i) and None)
    return {
        "agent_decisions_per_s": many,
        "agent_one_thread_per_s": one,
        "agent_p99_ms": float(np.quantile(took, 0.99)),
    }


def run_live(sizes: Sizes, folder: Path) -> Figures:
    """Both together: decisions in the store when they are returned, rewards arriving, a learner behind them."""
    took: list[float] = []
    with ma.live.open(folder / "live.db", agent_of(sizes), fold_every=sizes.fold_every, propensities=False) as live:

        def call(x: Array, i: int) -> None:
            before = time.perf_counter()
            decision = live.decide(x)
            took.append(time.perf_counter() - before)
            if i % sizes.rewarded == 0:
                live.reward(decision.id, 1.0)

        began, version = time.perf_counter(), live.version
        at_once(sizes, call)
        seconds = time.perf_counter() - began
        number = sizes.threads * sizes.each
        rewards = sizes.threads * len(range(0, sizes.each, sizes.rewarded))
        folded = live.version - version
        live.sync()
        learned = live.status()["learned"]
        assert learned == rewards, f"{learned} of {rewards} rewards were learned"
    return {
        "decisions_per_s": number / seconds,
        "writes_per_s": (number + rewards) / seconds,
        "decision_p50_ms": 1e3 * float(np.quantile(took, 0.5)),
        "decision_p99_ms": 1e3 * float(np.quantile(took, 0.99)),
        "chunks_folded": folded,
    }


PARTS: dict[str, Callable[[Sizes, Path], Figures]] = {"store": run_store, "agent": run_agent, "live": run_live}


def main(arguments: list[str] | None = None, sizes: Sizes | None = None) -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=first_line(main))
    parser.add_argument("--quick", action="store_true", help="fewer decisions")
    parser.add_argument("--only", choices=sorted(PARTS), help="one part")
    parser.add_argument("--folder", type=Path, help="where the stores are made, and removed again")
    given = parser.parse_args(arguments)
    sizes = sizes or Sizes()
    if given.quick:
        sizes = replace(sizes, each=sizes.each // 5)
    chosen = {name: part for name, part in PARTS.items() if given.only in (None, name)}
    with tempfile.TemporaryDirectory(prefix="manyarms-live-", dir=given.folder) as scratch:
        parts = {name: lambda part=part: part(sizes, Path(scratch)) for name, part in chosen.items()}
        figures = report(parts, {name: first_line(part) for name, part in chosen.items()})
    if {"store", "live"} <= set(chosen):
        figures["decisions_over_commits"] = float(figures["decisions_per_s"] or 0) / float(
            figures["store_commits_per_s"] or 1
        )
    print(as_json(figures))


if __name__ == "__main__":
    main()
