"""What a training step on a processor is measured by: its floor, plain PyTorch over a grid of sizes, threads, memory."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from _softmax import RATE, beta_of, our_step, plain_step
from _timing import alternate, clock, over

from manyarms._base.typing import Array
from manyarms.learning.products import RightFactor

BLOCK = 1024  # actions: at 256 rows a block of scores fills the cache of a core
LARGEST = 10**8  # rows x actions of the grid: plain PyTorch holds three such arrays

TABLES = """
import sys, numpy as np, torch
held = [torch.from_numpy(np.ones((int(sys.argv[1]), int(sys.argv[2])), np.float32)) for _ in range(3)]
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


def timed(step: Callable[[], object], times: int = 1) -> float:
    """CPU seconds of a step."""
    start = clock()
    for _ in range(times):
        step()
    return (clock() - start) / times


def bare_step(actions: int, dim: int, rows: int, products: int) -> Callable[[], object]:
    """Nothing but what a step cannot do without, block by block in the cache: products, powers, their sums, Adam.

    products: 3 where scores are computed again in the second pass, 2 where all powers of the first are there for nothing.
    """
    beta = torch.from_numpy(beta_of(actions, dim))
    moments = [torch.from_numpy(np.zeros((actions, dim), np.float32)) for _ in range(2)]
    h, total, count = torch.randn(rows, dim) * 0.3, torch.zeros(rows), torch.tensor(3.0)
    room, gradient = torch.empty(min(BLOCK, actions), rows), torch.empty(min(BLOCK, actions), dim)
    columns, factors = RightFactor(h.T), RightFactor(h)  # by the faster library

    def scores(part: torch.Tensor) -> torch.Tensor:
        return columns.times(part, room[: len(part)])

    def step() -> None:
        total.zero_()
        for part in torch.split(beta, BLOCK):
            total.add_(scores(part).exp2_().sum(dim=0))
        for part, first, second in zip(*(torch.split(table, BLOCK) for table in (beta, *moments)), strict=True):
            pi = scores(part).exp2_() if products == 3 else room[: len(part)]
            found = factors.times(pi, gradient[: len(part)])
            torch._fused_adam_(
                [part], [found], [first], [second], [], [count], amsgrad=False, lr=RATE * 1e-3, beta1=0.9, beta2=0.999,
                weight_decay=0.0, eps=1e-8, maximize=False,
            )  # fmt: skip

    return step


def product_speedup(dim: int = 64, rows: int = 256, times: int = 200) -> float:
    """PyTorch's own product of a block of scores over the one that steps take: 1 where that is the same."""
    block, h, room = torch.randn(BLOCK, dim), torch.randn(rows, dim), torch.empty(BLOCK, rows)
    factor = RightFactor(h.T)
    sides = (lambda: torch.mm(block, h.T, out=room)), (lambda: factor.times(block, room))
    return over(alternate(15, *(partial(timed, side, times) for side in sides)), 0, 1)


def in_turns(actions: int, rows: int, turns: int, products: int, dim: int = 64) -> Array:
    """(turns, 3): CPU seconds of a step of plain PyTorch, of ours, and of the bare products."""
    sides = plain_step(actions, dim, rows), our_step(actions, dim, rows), bare_step(actions, dim, rows, products)
    for side in sides:
        side()
    return alternate(turns, *(partial(timed, side) for side in sides))


def worst_over_plain(largest: int, dim: int = 64) -> tuple[float, str]:
    """The worst of ours over plain for 10 to `largest` actions, batches of 32, 256 and 1,024, Adam and SGD; and where it is."""
    worst = 0.0, ""
    for actions in (10**power for power in range(1, 7)):
        for rows in (32, 256, 1024):
            if actions > max(10, largest) or actions * rows > LARGEST:
                continue
            for kind in ("adam", "sgd"):
                ours, plain = our_step(actions, dim, rows, optimiser=kind), plain_step(actions, dim, rows, kind=kind)
                times = max(1, int(0.02 / timed(plain, 2)))
                turns = 7 if actions * rows < LARGEST / 20 else 2
                found = over(alternate(turns, partial(timed, plain, times), partial(timed, ours, times)), 1, 0)
                print(f"  {actions:>9,} actions, batch {rows:>5,}, {kind:<4}  ours over plain {found:.2f}", flush=True)
                worst = max(worst, (found, f"{actions} actions, batch {rows}, {kind}"))
    return worst


def floor_of_memory(actions: int, dim: int) -> float | None:
    """GB of a process that has loaded PyTorch and holds a table and its two moments, and does nothing with them."""
    if sys.platform != "linux":
        return None
    command = [sys.executable, "-c", TABLES, str(actions), str(dim)]
    return 1024 * float(subprocess.run(command, capture_output=True, text=True, check=True).stdout) / 1e9


__all__ = ["bare_step", "floor_of_memory", "in_turns", "product_speedup", "timed", "worst_over_plain"]
