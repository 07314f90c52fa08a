"""Launches of the Triton kernels: which tiles they take, and what they read from the device.

    plan = Plan(slots, device)          rows, sizes and rates of the next few batches, as kernels read them
    log_normaliser, step, pull_features    of one batch whose derivatives are known, for any objective

`fused.py` launches the same kernels, for several batches at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import triton
from torch import Tensor
from triton.tools.tensor_descriptor import TensorDescriptor

from manyarms.learning import triton_kernels as kernels

TO_LOG2 = 1.4426950408889634


class Plan:
    """What the kernels are to do, slot by slot. whole: (3, slots) first row, number of rows, whether there is a batch at all;
    pace: (3, slots) learning rate, Adam's scale, size of the batch. Both are overwritten in place."""

    def __init__(self, slots: int, device: torch.device) -> None:
        self.slots = slots
        self.whole = torch.zeros((3, slots), dtype=torch.int32, device=device)
        self.pace = torch.ones((3, slots), dtype=torch.float32, device=device)

    @classmethod
    def of_one(cls, rows: int, device: torch.device) -> Plan:
        """One batch of this many rows that begin at 0."""
        plan = cls(1, device)
        plan.whole[1:] = 1
        plan.whole[1] = rows
        return plan


@dataclass(frozen=True)
class Tiles:
    """Rows and actions in a tile, warps and pipeline stages; the choices were the fastest of some hundred tried on an H200.

    scaled: features come over log 2, and not the scores. mixed: some exponentials are taken by polynomials. held: the tile that
    stays is kept in registers. bulk: the copy engine fetches the tiles that pass. parts: in which the update takes its columns.
    waves: programs of the normaliser for every multiprocessor, at most.
    """

    rows: int
    actions: int
    warps: int
    stages: int
    scaled: bool = False
    mixed: bool = False
    held: bool = False
    bulk: bool = False
    parts: int = 2
    waves: int = 12


def tiles_for(kernel: str, width: int, dtype: torch.dtype, signed: bool = False) -> Tiles:
    """Tiles that fit: float32 tables take twice the room, and signs take registers."""
    if dtype != torch.bfloat16 or width > 128:
        return Tiles(64, 64, 4 if width <= 128 else 8, 2)
    bulk = width % 8 == 0  # the copy engine wants rows of a multiple of 16 bytes
    if width <= 64:
        if kernel == "normaliser":
            return Tiles(64, 64, 4, 4, scaled=True, mixed=True, held=True, bulk=bulk, waves=28)
        return Tiles(128, 64, 4, 3, scaled=True, bulk=bulk)
    if kernel == "normaliser":
        return Tiles(64, 64, 4, 3, scaled=True, held=True, bulk=bulk, waves=36)
    if signed:
        return Tiles(64, 64, 4, 4, bulk=bulk, parts=4)
    return Tiles(128, 64, 4, 3, scaled=True, held=True, bulk=bulk, parts=4)


def streamed(table: Tensor, rows: int, tiles: Tiles) -> Any:
    """A table as a kernel streams it, this many rows at a time: as it is, or described to the copy engine."""
    return TensorDescriptor.from_tensor(table, [rows, padded(table.shape[1])]) if tiles.bulk else table


def lowered(h: Tensor, dtype: torch.dtype, scaled: bool) -> Tensor:
    """Features in the type of the products; over log 2 where scores are to come out in units of log 2."""
    return (h * TO_LOG2).to(dtype) if scaled else h.to(dtype)


def splits_of(rows: int, actions: int, tiles: Tiles, device: torch.device) -> tuple[int, int]:
    """Into how many splits the normaliser cuts the actions, and how many actions each has."""
    row_tiles = triton.cdiv(rows, tiles.rows)
    most = triton.cdiv(tiles.waves * multiprocessors(device), row_tiles)
    splits = max(1, min(triton.cdiv(actions, tiles.actions), most))
    per_split = triton.cdiv(triton.cdiv(actions, splits), tiles.actions) * tiles.actions
    return int(triton.cdiv(actions, per_split)), int(per_split)


def log_normaliser(
    h: Tensor, beta: Tensor, limit: Tensor, reach: Tensor, plan: Plan, *, safe: float = 60.0, precision: str = "tf32",
    tiles: Tiles | None = None,
) -> Tensor:  # fmt: skip
    """log Z (b,) of h (b, l) in float32 and beta (K, l) in the type of the products; no score exceeds limit * sqrt(reach[0])."""
    rows, width = h.shape
    t = tiles or tiles_for("normaliser", width, beta.dtype)
    splits, per_split = splits_of(rows, len(beta), t, h.device)
    top, total = (torch.empty((splits, rows), dtype=torch.float32, device=h.device) for _ in range(2))
    kernels.normaliser_kernel[(triton.cdiv(rows, t.rows), splits)](
        lowered(h, beta.dtype, t.scaled), streamed(beta, t.actions, t), plan.whole, limit, reach, top, total, 0, plan.slots,
        rows, len(beta), width, per_split, SAFE=safe, SCALED=t.scaled, MIXED=t.mixed, EVEN=padded(width) == width,
        BM=t.rows, BN=t.actions, D=padded(width), PRECISION=precision, BULK=t.bulk, HELD=t.held, num_warps=t.warps,
        num_stages=t.stages,
    )  # fmt: skip
    return torch.logsumexp(total.log() + top * 0.6931471805599453, dim=0)


@dataclass
class Singles:
    """Derivatives at listed actions, by rising id."""

    rows: Tensor
    ids: Tensor
    values: Tensor

    @classmethod
    def sorted(cls, rows: Tensor, ids: Tensor, values: Tensor) -> Singles:
        """In order of ids, in the types that the kernel reads."""
        order = torch.argsort(ids)
        return cls(rows[order].int(), ids[order].int(), values[order].float())

    def starts(self, actions: int, size: int) -> Tensor:
        """(blocks + 1,): where every block of `size` actions begins."""
        edges = torch.arange(0, triton.cdiv(actions, size) + 1, device=self.ids.device, dtype=torch.int32) * size
        return torch.searchsorted(self.ids, edges).int()


def step(
    h: Tensor, low: Tensor, log_z: Tensor, factor: Tensor, singles: Singles, plan: Plan, *,
    kind: int, beta: Tensor | None = None, moments: tuple[Tensor, Tensor] | None = None, anchor: Tensor | None = None,
    pull: float = 0.0, gradient: Tensor | None = None, reach: Tensor | None = None, pace: Tensor | None = None,
    signed: bool = True, precision: str = "tf32", tiles: Tiles | None = None,
) -> None:  # fmt: skip
    """Pass over all actions: gradient of beta from factor_i pi_i(a) h_i and the singles; kind 0 stores it, 1 is Adam, 2 is SGD.

    low: the table that scores are computed from; where it is not `beta` itself it is brought up to date as well. The largest
    squared norm of a row goes to reach[1].
    """
    width, actions = h.shape[1], len(low)
    t = tiles or tiles_for("step", width, low.dtype, signed)
    shift, sign = shifted(log_z, factor)
    spare: Any = h
    first, second = moments if moments is not None else (spare, spare)
    kernels.step_kernel[(triton.cdiv(actions, t.actions),)](
        streamed(lowered(h, low.dtype, t.scaled), t.rows, t), h, low, shift, sign, singles.starts(actions, t.actions),
        singles.rows, singles.ids, singles.values, spare if beta is None else beta, first, second,
        spare if anchor is None else anchor, spare if gradient is None else gradient, plan.whole,
        plan.pace if pace is None else pace, spare if reach is None else reach, 0, plan.slots, actions, width, pull,
        KIND=kind, SIGNED=signed, PULLED=pull != 0, ANCHORED=anchor is not None, LOW=beta is not None and low is not beta,
        SCALED=t.scaled, MIXED=t.mixed, EVEN=padded(width) == width, OWN=False, DENSE=False, BK=t.actions, BM=t.rows,
        D=padded(width), PRECISION=precision, PARTS=t.parts, BULK=t.bulk, HELD=t.held, num_warps=t.warps,
        num_stages=t.stages,
    )  # fmt: skip


def pull_features(
    h: Tensor, low: Tensor, log_z: Tensor, factor: Tensor, *, signed: bool = True, precision: str = "tf32",
    tiles: Tiles | None = None,
) -> Tensor:  # fmt: skip
    """sum over a of factor_i pi_i(a) beta_a, (b, l) in float32."""
    rows, width = h.shape
    actions = len(low)
    t = tiles or _feature_tiles(width, low.dtype)
    row_tiles = triton.cdiv(rows, t.rows)
    splits = max(1, min(triton.cdiv(actions, t.actions), triton.cdiv(2 * multiprocessors(h.device), row_tiles)))
    per_split = triton.cdiv(triton.cdiv(actions, splits), t.actions) * t.actions
    splits = triton.cdiv(actions, per_split)
    out = torch.empty((splits, rows, width), dtype=torch.float32, device=h.device)
    shift, sign = shifted(log_z, factor)
    kernels.features_kernel[(row_tiles, splits)](
        lowered(h, low.dtype, False), low, shift, sign, out, rows, actions, width, per_split, SIGNED=signed,
        EVEN=padded(width) == width, BM=t.rows, BN=t.actions, D=padded(width), PRECISION=precision, num_warps=t.warps,
        num_stages=t.stages,
    )  # fmt: skip
    return out.sum(dim=0)


def _feature_tiles(width: int, dtype: torch.dtype) -> Tiles:
    low = dtype == torch.bfloat16 and width <= 128
    return Tiles(128, 64, 4 if width <= 64 else 8, 3) if low else Tiles(64, 64, 4 if width <= 128 else 8, 2)


def shifted(log_z: Tensor, factor: Tensor) -> tuple[Tensor, Tensor]:
    """log2(|factor| / Z), and the sign of the factor: a row factor costs nothing inside the exponent."""
    return (factor.abs().log() - log_z) * TO_LOG2, factor.sign()


def padded(width: int) -> int:
    """The width of a tile: a power of two, at least 16."""
    return int(max(16, triton.next_power_of_2(width)))


def multiprocessors(device: torch.device) -> int:
    """Of the GPU; some number, where kernels are only interpreted."""
    if device.type != "cuda":
        return 4
    return int(torch.cuda.get_device_properties(device).multi_processor_count)


__all__ = [
    "Plan", "Singles", "Tiles", "log_normaliser", "lowered", "multiprocessors", "padded", "pull_features", "shifted",
    "splits_of", "step", "streamed", "tiles_for",
]  # fmt: skip
