"""What benchmarks/softmax.py runs: one step over a million actions, ours and plain PyTorch's, and an epoch on small supports."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from _offline import peak_bytes

from manyarms.estimators import LPI, cLPI
from manyarms.learning.loop import TrainingRun
from manyarms.learning.settings import TrainingSettings
from manyarms.logs.data import LoggedData
from manyarms.policies import SoftmaxPolicy, SupportSoftmaxPolicy, TopSoftmaxPolicy

TAU, RATE = 0.01, 1e-3


def a_batch(actions: int, dim: int, rows: int, seed: int = 0) -> LoggedData:
    """Rows that all have a reward: none is skipped."""
    rng = np.random.default_rng(seed)
    return LoggedData(
        rng.standard_normal((rows, dim)) * 0.3,
        rng.integers(0, actions, rows),
        np.ones(rows),
        actions,
        rng.uniform(0.001, 0.1, rows),
    )


def beta_of(actions: int, dim: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Parameters of a size that makes scores of order one."""
    return np.random.default_rng(1).standard_normal((actions, dim), dtype=np.float32) * np.float32(0.1)


def our_step(
    actions: int, dim: int, rows: int, device: str = "cpu", precision: str = "fp32", optimiser: str = "adam"
) -> Callable[[], object]:
    """One step of cLPI with Adam (or SGD) on all of beta, exactly as `learn` takes it."""
    settings = TrainingSettings(batch=rows, learning_rate=RATE, precision=precision, optimiser=optimiser)  # type: ignore[arg-type]
    log = a_batch(actions, dim, rows)
    run = TrainingRun(log, SoftmaxPolicy(beta_of(actions, dim)), cLPI(TAU), settings, torch.device(device))
    index, count = np.arange(rows), iter(range(1 << 30))
    return lambda: run.step_on(index, step=next(count), rate=RATE)


def plain_step(
    actions: int, dim: int, rows: int, device: str = "cpu", how: str = "plain", kind: str = "adam"
) -> Callable[[], object]:
    """The same step written plainly: all scores, cross_entropy, backward, torch's own (fused on a GPU) Adam, or SGD.

    how: "plain"; "compile", the same through torch.compile; "chunked", torch's own linear_cross_entropy in chunks of the batch.
    """
    log = a_batch(actions, dim, rows)
    low = device != "cpu"
    beta = torch.nn.Parameter(torch.tensor(beta_of(actions, dim), device=device))
    h = torch.tensor(log.contexts, dtype=torch.float32, device=device)
    ids = torch.tensor(log.actions, device=device)
    assert log.propensities is not None
    weights = torch.tensor(1 / np.maximum(log.propensities, TAU), dtype=torch.float32, device=device)
    own = torch.optim.Adam if kind == "adam" else torch.optim.SGD
    optimiser = own([beta], lr=RATE, fused=True if low else None)

    def loss(beta: torch.Tensor) -> torch.Tensor:
        left, right = (h.bfloat16(), beta.bfloat16()) if low else (h, beta)
        if how == "chunked":
            return (chunked_entropy(left, right, ids).float() * weights).mean()
        scores = left @ right.T
        return (torch.nn.functional.cross_entropy(scores, ids, reduction="none").float() * weights).mean()

    value = torch.compile(loss) if how == "compile" else loss

    def step() -> object:
        optimiser.zero_grad(set_to_none=True)
        value(beta).backward()
        optimiser.step()
        return None

    return step


def has_chunked() -> bool:
    """Whether this PyTorch brings a cross entropy that does not hold all scores."""
    return hasattr(torch.nn.functional, "linear_cross_entropy")


def chunked_entropy(h: torch.Tensor, beta: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    """Minus log pi of every row, by torch's own function."""
    from torch.nn.modules.linear_cross_entropy_options import LinearCrossEntropyOptions

    function = torch.nn.functional.linear_cross_entropy
    return function(h, beta, ids, reduction="none", options=LinearCrossEntropyOptions())


def support_epoch(actions: int, rows: int, k0: int, dim: int, optimiser: str, batch: int) -> dict[str, float]:
    """Wall seconds of one epoch over rows whose supports hold k0 actions each."""
    rng = np.random.default_rng(0)
    support = rng.integers(0, actions // k0, (rows, k0)) * k0 + np.arange(k0)  # distinct within a row
    column = rng.integers(0, k0, rows)
    log = LoggedData(
        rng.standard_normal((rows, dim)) * 0.3,
        support[np.arange(rows), column],
        rng.uniform(0.1, 1.0, rows),
        actions,
        np.full(rows, 1 / k0),
        support=support,
    )
    beta = beta_of(actions, dim)
    policy = SupportSoftmaxPolicy(beta, TopSoftmaxPolicy(beta, k0))
    settings = TrainingSettings(batch=batch, learning_rate=0.05, optimiser=optimiser)
    run = TrainingRun(log, policy, LPI(), settings, torch.device("cpu"))
    order = rng.permutation(rows)
    start = time.perf_counter()
    for step, first in enumerate(range(0, rows, batch)):
        run.step_on(order[first : first + batch], batch=step, step=step, rate=0.05)
    return {"seconds": time.perf_counter() - start, "steps": float(step + 1)}


def peak_of_steps(actions: int, dim: int, rows: int) -> dict[str, float]:
    """The most memory of a process that takes three steps, in GB."""
    step = our_step(actions, dim, rows)
    for _ in range(3):
        step()
    return {"peak_gb": peak_bytes() / 1e9}


def seconds_of_steps(actions: int, dim: int, rows: int) -> dict[str, float]:
    """Wall seconds of a step and of a square matrix product, with the threads that this process has."""
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    square = torch.randn(2048, 2048)
    found = {}
    for name, work in (("gemm", lambda: square @ square), ("step", our_step(actions, dim, rows))):
        spent = []
        for _ in range(6):
            start = time.perf_counter()
            work()
            spent.append(time.perf_counter() - start)
        found[name] = min(spent)
    return found


CHILDREN: dict[str, Callable[..., dict[str, float]]] = {
    "support": support_epoch,
    "peak": peak_of_steps,
    "seconds": seconds_of_steps,
}


def child(name: str, threads: int, **arguments: object) -> dict[str, float]:
    """A measurement in a process of its own, so that its memory and threads are its own."""
    environment = os.environ | {"OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}
    command = [sys.executable, __file__, name, json.dumps(arguments)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


if __name__ == "__main__":
    print(json.dumps(CHILDREN[sys.argv[1]](**json.loads(sys.argv[2]))))
