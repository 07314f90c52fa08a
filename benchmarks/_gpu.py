"""What benchmarks/softmax.py runs on a GPU: steps as `learn` takes them, and the same written plainly in PyTorch."""

from __future__ import annotations

import gc
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from _softmax import RATE, TAU, beta_of

import manyarms.estimators as objectives
from manyarms.estimators.base import Answers, Batch, Objective
from manyarms.learning.checkpoints import Checkpoints
from manyarms.learning.loop import TrainingRun
from manyarms.learning.settings import TrainingSettings
from manyarms.logs.data import LoggedData
from manyarms.policies import SoftmaxPolicy

SMALL = {"k1e4_b256": (10_000, 256), "k1e5_b1024": (100_000, 1024), "k1e6_b256": (1_000_000, 256)}
LINEAR: dict[str, Callable[[], Objective]] = {
    "ips": objectives.IPS,
    "clpi": lambda: objectives.cLPI(TAU),
    "regkl": objectives.RegKL,
}
OTHERS: dict[str, Callable[[], Objective]] = {
    "snips": objectives.SNIPS,
    "ls": lambda: objectives.LS(0.01),
    "es-beta": lambda: objectives.ESBeta(0.5),
}
OPTIMISERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "adam": lambda p: torch.optim.Adam(p, lr=RATE, fused=True),
    "sgd": lambda p: torch.optim.SGD(p, lr=RATE),
    "adagrad": lambda p: torch.optim.Adagrad(p, lr=RATE),
}


def log_of(actions: int, dim: int, rows: int) -> LoggedData:
    """Rows that all have a reward."""
    rng = np.random.default_rng(0)
    contexts = rng.standard_normal((rows, dim)) * 0.3
    return LoggedData(contexts, rng.integers(0, actions, rows), np.ones(rows), actions, rng.uniform(0.001, 0.1, rows))


def learned_ms(
    actions: int,
    dim: int,
    batch: int,
    objective: Objective,
    optimiser: str = "adam",
    precision: str = "bf16",
    steps: int = 400,
) -> float:
    """Milliseconds of a step in an epoch of `learn`, after one that set everything up."""
    settings = TrainingSettings(
        epochs=2,
        batch=batch,
        learning_rate=RATE,
        optimiser=optimiser,
        precision=precision,  # type: ignore[arg-type]
    )
    gc.collect()
    torch.cuda.empty_cache()
    start = SoftmaxPolicy(beta_of(actions, dim))
    run = TrainingRun(log_of(actions, dim, batch * steps), start, objective, settings, torch.device("cuda"))
    times: list[float] = []

    def note(moment: Any) -> None:
        if moment.batch == steps - 1:  # the epoch's line has been written: the device has finished
            times.append(time.perf_counter())

    run.go(None, None, Checkpoints(None, "", 60.0), note)
    return (times[1] - times[0]) / steps * 1e3


def plain_ms(
    actions: int,
    dim: int,
    batch: int,
    objective: Objective,
    optimiser: str = "adam",
    precision: str = "bf16",
    *,
    captured: bool = False,
    steps: int = 30,
) -> float:
    """The same step as one would write it: all scores, log_softmax, the objective, backward, PyTorch's own optimiser.

    captured: the whole step as a CUDA graph, on one batch.
    """
    gc.collect()
    torch.cuda.empty_cache()
    log = log_of(actions, dim, batch)
    objective = objective.resolved(batch)
    columns = {
        name: torch.tensor(np.asarray(column), dtype=torch.float32, device="cuda")
        for name, column in objective.prepare(log).computed(batch).columns.items()
    }
    beta = torch.nn.Parameter(torch.tensor(beta_of(actions, dim), device="cuda"))
    h = torch.tensor(log.contexts, dtype=torch.float32, device="cuda")
    ids = torch.tensor(log.actions, device="cuda")[:, None]
    if captured and optimiser == "adam":
        made: torch.optim.Optimizer = torch.optim.Adam([beta], lr=RATE, fused=True, capturable=True)
    else:
        made = OPTIMISERS[optimiser]([beta])
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"

    def step() -> None:
        made.zero_grad(set_to_none=True)
        scores = h.bfloat16() @ beta.bfloat16().T if precision == "bf16" else h @ beta.T
        log_pi = torch.log_softmax(scores.float(), dim=1).gather(1, ids)
        (-objective.value(Answers(log_pi), Batch(columns, batch))).backward()
        made.step()

    for _ in range(3):
        step()
    go: Callable[[], object] = step
    if captured:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            step()
        go = graph.replay
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(steps):
        go()
    torch.cuda.synchronize()
    spent = (time.perf_counter() - start) / steps * 1e3
    torch.backends.cuda.matmul.allow_tf32 = False
    return spent


def small_floor_ms(actions: int, dim: int, batch: int) -> float:
    """Below which no step goes: six products of batch x K x d at 784 TFLOP/s, or Adam's traffic at 4.1 TB/s."""
    products = 6 * batch * actions * dim / 784e12
    traffic = actions * dim * (6 * 4 + 3 * 2) / 4.1e12
    return max(products, traffic) * 1e3


def small_steps() -> dict[str, float | None]:
    """The slowest of IPS, cLPI and RegKL with Adam and SGD, beside plain PyTorch, the same captured, and the floor."""
    found: dict[str, float | None] = {}
    for name, (actions, batch) in SMALL.items():
        steps = 400 if actions < 1_000_000 else 200
        ours = {
            (which, optimiser): learned_ms(actions, 64, batch, make(), optimiser, steps=steps)
            for which, make in LINEAR.items()
            for optimiser in ("adam", "sgd")
        }
        clpi = objectives.cLPI(TAU)
        found |= {
            f"gpu_{name}_ms": max(ours.values()),
            f"gpu_{name}_clpi_adam_ms": ours["clpi", "adam"],
            f"gpu_{name}_floor_ms": small_floor_ms(actions, 64, batch),
            f"gpu_{name}_plain_ms": plain_ms(actions, 64, batch, clpi),
            f"gpu_{name}_plain_captured_ms": plain_ms(actions, 64, batch, clpi, captured=True),
        }
        print(f"  {name}: " + ", ".join(f"{a} {b} {ms:.3f}" for (a, b), ms in ours.items()), flush=True)
    return found


def against_eager() -> dict[str, float | None]:
    """Other objectives, optimisers and precisions against eager PyTorch in the same precision; the worst quotient."""
    worst, where = 0.0, ""
    for actions, batch in ((1_000, 256), (10_000, 256), (100_000, 1024)):
        for name, make in (LINEAR | OTHERS).items():
            for optimiser in OPTIMISERS:
                for precision in ("fp32", "bf16"):
                    if (name in LINEAR and name != "clpi") or (precision == "bf16" and optimiser == "sgd"):
                        continue
                    ours = learned_ms(actions, 64, batch, make(), optimiser, precision, steps=64)
                    plain = plain_ms(actions, 64, batch, make(), optimiser, precision, steps=15)
                    print(
                        f"  K={actions:,} batch {batch} {name} {optimiser} {precision}: {ours:.3f} ms, eager {plain:.3f}",
                        flush=True,
                    )
                    if ours / plain > worst:
                        worst, where = ours / plain, f"{name}, {optimiser}, {precision}, K={actions:,}"
    print(f"  worst: {where}")
    return {"gpu_worst_over_eager": worst}


def first_use() -> dict[str, float | None]:
    """Seconds until the first steps are done, in a process of its own: with nothing compiled yet, and with all of it kept."""
    import os
    import tempfile

    code = (
        "import time, torch, _gpu; torch.ones(1, device='cuda'); t = time.perf_counter(); "
        "_gpu.learned_ms(10_000, 64, 256, _gpu.objectives.cLPI(0.01), steps=4); print(time.perf_counter() - t)"
    )
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"TRITON_CACHE_DIR": folder, "PYTHONPATH": os.pathsep.join(sys.path)}
        seconds = [
            float(
                subprocess.run(
                    [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
                ).stdout
            )
            for _ in range(2)
        ]
    return {"gpu_first_use_s": seconds[0], "gpu_first_use_cached_s": seconds[1]}


def large_ms(actions: int, dim: int) -> float:
    """A step at batch 4,096 in an epoch of 64: long enough for the GPU to lower its clock, as under any lasting load."""
    return learned_ms(actions, dim, 4096, objectives.cLPI(TAU), steps=64)


def burst_ms(actions: int, dim: int, precision: str = "bf16", batch: int = 4096) -> tuple[float, float]:
    """A step as `learn` takes it, the mean of 24 after 8 within one epoch, and the most memory of the GPU in GiB."""
    gc.collect()
    torch.cuda.empty_cache()
    settings = TrainingSettings(batch=batch, learning_rate=RATE, precision=precision)  # type: ignore[arg-type]
    log, start = log_of(actions, dim, 32 * batch), SoftmaxPolicy(beta_of(actions, dim))
    run = TrainingRun(log, start, objectives.cLPI(TAU), settings, torch.device("cuda"))
    batches = run.window.taken(0, 32, batch)
    torch.cuda.reset_peak_memory_stats()
    run.steps.take(run.window, batches[:8], 0, 0, 0, [RATE] * 8)
    torch.cuda.synchronize()
    began = time.perf_counter()
    for first in (8, 16, 24):
        run.steps.take(run.window, batches[first : first + 8], 0, first, first, [RATE] * 8)
    torch.cuda.synchronize()
    return (time.perf_counter() - began) / 24 * 1e3, torch.cuda.max_memory_allocated() / 2**30


__all__ = ["against_eager", "burst_ms", "first_use", "large_ms", "learned_ms", "plain_ms", "small_steps"]
