"""How long an experiment will take, from a few hundred rounds of every method in every cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from manyarms.engine import Engine
from manyarms_thesis.harness.spec import Item
from manyarms_thesis.harness.work import timed

SHORT, LONG = 50, 250


def forecast(engine: Engine, pending: Sequence[Item]) -> float:
    """Seconds that the pending work will take on the engine's workers.

    Each method of each cell runs for SHORT and for LONG rounds; the two give the time to set up and the time a round
    takes, which scale up to the full length. Agents whose rounds become dearer as data arrives (a generalised linear
    model refits on an action's rows) make it an underestimate.
    """
    kinds = {(item.cell.panel, item.method): item for item in pending}
    probes = {}
    for item in kinds.values():
        for rounds in (SHORT, LONG):
            length = min(rounds, item.cell.rounds)
            probes[item.cell.panel, item.method, rounds] = replace(
                item, cell=replace(item.cell, rounds=length, runs=1), runs=(0,)
            )
    # the first call in a process pays for imports, and the first of a kind for what it prepares (pre-training): not counted
    warm_up = [probe for (_, _, rounds), probe in probes.items() if rounds == SHORT]
    for _ in engine.map(timed, warm_up):
        pass
    names = {id(probe): name for name, probe in probes.items()}
    seconds = {names[id(probe)]: took for probe, took in engine.map(timed, list(probes.values()))}
    total = 0.0
    for item in pending:
        short, long = (seconds[item.cell.panel, item.method, rounds] for rounds in (SHORT, LONG))
        a_round = max(long - short, 0.0) / (LONG - SHORT)
        one_run = long + max(item.cell.rounds - LONG, 0) * a_round
        total += one_run * len(item.runs)
    return total / engine.workers


__all__ = ["forecast"]
