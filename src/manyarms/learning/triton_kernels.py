# mypy: disable-error-code="untyped-decorator,no-untyped-def"
"""The blockwise softmax as two Triton kernels: nothing of size rows x actions, and no gradient of beta, ever reaches memory.

    log_normaliser    streams all actions past a tile of rows, in a few splits of the actions that are joined afterwards
    step              one program a block of actions: streams all rows past it, computes their scores again, adds up the block's
                      gradient in registers, adds the derivatives at listed actions, and steps the optimiser on the block at once
    pull_features     the gradient of the features: streams all actions past a tile of rows

Products are taken in the type of the table that comes in, bfloat16, or float32 in the precision "tf32" or "ieee"; sums are
float32.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

LN2: tl.constexpr = tl.constexpr(0.6931471805599453)
LOG2E: tl.constexpr = tl.constexpr(1.4426950408889634)
TO_LOG2 = 1.4426950408889634


@triton.jit
def _normaliser_kernel(
    h_at, beta_at, limit_at, top_at, sum_at, rows, actions, width, per_split,
    SAFE: tl.constexpr, SCALED: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Per split: the largest score (in units of log 2) of each row, and the sum of 2^(score - largest)."""
    tile, split = tl.program_id(0), tl.program_id(1)
    i = tile * BM + tl.arange(0, BM)
    column = tl.arange(0, D)
    h = tl.load(
        h_at + i[:, None] * width + column[None, :], mask=(i[:, None] < rows) & (column[None, :] < width), other=0.0
    )
    first = split * per_split
    last = tl.minimum(first + per_split, actions)
    # where no score can be large, the running maximum is left out, and columns are added up only at the end
    if tl.load(limit_at) <= SAFE:
        masses = tl.zeros((BM, BN), dtype=tl.float32)
        for start in range(first, last, BN):
            a = start + tl.arange(0, BN)
            b = tl.load(beta_at + a[:, None].to(tl.int64) * width + column[None, :],
                        mask=(a[:, None] < last) & (column[None, :] < width), other=0.0)  # fmt: skip
            s = tl.dot(h, tl.trans(b), input_precision=PRECISION)
            mass = tl.exp2(s if SCALED else s * LOG2E)
            if start + BN > last:
                mass = tl.where(a[None, :] < last, mass, 0.0)
            masses += mass
        total = tl.sum(masses, axis=1)
        top = tl.zeros((BM,), dtype=tl.float32)
    else:
        total = tl.zeros((BM,), dtype=tl.float32)
        top = tl.full((BM,), -float("inf"), dtype=tl.float32)
        for start in range(first, last, BN):
            a = start + tl.arange(0, BN)
            b = tl.load(beta_at + a[:, None].to(tl.int64) * width + column[None, :],
                        mask=(a[:, None] < last) & (column[None, :] < width), other=0.0)  # fmt: skip
            s = tl.dot(h, tl.trans(b), input_precision=PRECISION)
            s = s if SCALED else s * LOG2E
            s = tl.where(a[None, :] < last, s, -float("inf"))
            peak = tl.maximum(top, tl.max(s, axis=1))
            total = total * tl.exp2(top - peak) + tl.sum(tl.exp2(s - peak[:, None]), axis=1)
            top = peak
    tl.store(top_at + split * rows + i, top, mask=i < rows)
    tl.store(sum_at + split * rows + i, total, mask=i < rows)


@triton.jit
def _step_kernel(
    h_at, full_h_at, low_at, shift_at, sign_at, starts_at, single_rows_at, single_ids_at, singles_at,
    beta_at, first_at, second_at, anchor_at, gradient_at, reach_at,
    rows, actions, width, rate, scale, pull,
    KIND: tl.constexpr, SIGNED: tl.constexpr, PULLED: tl.constexpr, ANCHORED: tl.constexpr, LOW: tl.constexpr,
    SCALED: tl.constexpr, BK: tl.constexpr, BM: tl.constexpr, D: tl.constexpr, PRECISION: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    """The gradient of BK rows of beta, sum_i c_i pi_i(a) h_i + singles, with |c_i| / Z_i inside the exponent; then the step."""
    block = tl.program_id(0)
    offset = tl.arange(0, BK)
    a = block * BK + offset
    column = tl.arange(0, D)
    inside = (a[:, None] < actions) & (column[None, :] < width)
    at = a[:, None].to(tl.int64) * width + column[None, :]
    b = tl.load(low_at + at, mask=inside, other=0.0)
    total = tl.zeros((BK, D), dtype=tl.float32)
    for start in range(0, rows, BM):
        i = start + tl.arange(0, BM)
        h = tl.load(
            h_at + i[:, None] * width + column[None, :], mask=(i[:, None] < rows) & (column[None, :] < width), other=0.0
        )
        shift = tl.load(shift_at + i, mask=i < rows, other=-float("inf"))
        s = tl.dot(b, tl.trans(h), input_precision=PRECISION)
        mass = tl.exp2(s + shift[None, :] if SCALED else s * LOG2E + shift[None, :])
        if SIGNED:
            mass = mass * tl.load(sign_at + i, mask=i < rows, other=0.0)[None, :]
        total = tl.dot(mass.to(h.dtype), h, total, input_precision=PRECISION)
    if SCALED:
        total *= LN2
    for j in range(tl.load(starts_at + block), tl.load(starts_at + block + 1)):
        row = tl.load(single_rows_at + j)
        mine = tl.load(single_ids_at + j) - block * BK
        value = tl.load(singles_at + j)
        full = tl.load(full_h_at + row * width + column, mask=column < width, other=0.0)
        total += tl.where(offset[:, None] == mine, value * full[None, :], 0.0)
    # the update takes half of the columns at a time: all of beta and of both moments would not fit the registers
    norms = tl.zeros((BK,), dtype=tl.float32)
    if PARTS == 1:
        norms = _update(total, a, column, beta_at, low_at, first_at, second_at, anchor_at, gradient_at, actions, width,
                        rate, scale, pull, KIND, PULLED, ANCHORED, LOW)  # fmt: skip
    else:
        left, right = tl.split(tl.permute(tl.reshape(total, (BK, 2, D // 2)), (0, 2, 1)))
        half = tl.arange(0, D // 2)
        norms = _update(left, a, half, beta_at, low_at, first_at, second_at, anchor_at, gradient_at, actions, width,
                        rate, scale, pull, KIND, PULLED, ANCHORED, LOW)  # fmt: skip
        norms += _update(right, a, half + D // 2, beta_at, low_at, first_at, second_at, anchor_at, gradient_at, actions, width,
                         rate, scale, pull, KIND, PULLED, ANCHORED, LOW)  # fmt: skip
    if KIND != 0:
        # the largest squared norm of a row
        tl.atomic_max(reach_at, tl.max(norms, axis=0))


@triton.jit
def _update(
    gradient, a, column, beta_at, low_at, first_at, second_at, anchor_at, gradient_at, actions, width, rate, scale, pull,
    KIND: tl.constexpr, PULLED: tl.constexpr, ANCHORED: tl.constexpr, LOW: tl.constexpr,
):  # fmt: skip
    """Store the gradient (KIND 0), or step by Adam (1) or SGD (2); the squared norms of the new rows, in these columns."""
    inside = (a[:, None] < actions) & (column[None, :] < width)
    at = a[:, None].to(tl.int64) * width + column[None, :]
    norms = tl.sum(gradient * 0.0, axis=1)
    if KIND == 0:
        tl.store(gradient_at + at, gradient, mask=inside)
    else:
        beta = tl.load(beta_at + at, mask=inside, other=0.0)
        if PULLED:
            if ANCHORED:
                gradient += pull * (beta - tl.load(anchor_at + at, mask=inside, other=0.0))
            else:
                gradient += pull * beta
        if KIND == 1:
            mean = 0.9 * tl.load(first_at + at, mask=inside, other=0.0) + 0.1 * gradient
            square = 0.999 * tl.load(second_at + at, mask=inside, other=0.0) + 0.001 * gradient * gradient
            tl.store(first_at + at, mean, mask=inside)
            tl.store(second_at + at, square, mask=inside)
            beta -= rate / scale * mean / (tl.sqrt(square) + 1e-8 / scale)
        else:
            beta -= rate * gradient
        tl.store(beta_at + at, beta, mask=inside)
        if LOW:
            tl.store(low_at + at, beta.to(low_at.dtype.element_ty), mask=inside)
        norms = tl.sum(beta * beta, axis=1)
    return norms


@triton.jit
def _features_kernel(
    h_at, beta_at, shift_at, sign_at, out_at, rows, actions, width, per_split,
    SIGNED: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Per split: sum over its actions of c_i pi_i(a) beta_a, for a tile of rows."""
    tile, split = tl.program_id(0), tl.program_id(1)
    i = tile * BM + tl.arange(0, BM)
    column = tl.arange(0, D)
    h = tl.load(
        h_at + i[:, None] * width + column[None, :], mask=(i[:, None] < rows) & (column[None, :] < width), other=0.0
    )
    shift = tl.load(shift_at + i, mask=i < rows, other=-float("inf"))
    first = split * per_split
    last = tl.minimum(first + per_split, actions)
    total = tl.zeros((BM, D), dtype=tl.float32)
    for start in range(first, last, BN):
        a = start + tl.arange(0, BN)
        b = tl.load(beta_at + a[:, None].to(tl.int64) * width + column[None, :],
                    mask=(a[:, None] < last) & (column[None, :] < width), other=0.0)  # fmt: skip
        s = tl.dot(h, tl.trans(b), input_precision=PRECISION)
        mass = tl.exp2(s * LOG2E + shift[:, None])
        total = tl.dot(mass.to(b.dtype), b, total, input_precision=PRECISION)  # rows of b beyond `last` are zero
    if SIGNED:
        total = total * tl.load(sign_at + i, mask=i < rows, other=0.0)[:, None]
    place = split.to(tl.int64) * rows * width + i[:, None] * width + column[None, :]
    tl.store(out_at + place, total, mask=(i[:, None] < rows) & (column[None, :] < width))


def lowered(h: Tensor, dtype: torch.dtype, scaled: bool) -> Tensor:
    """Features in the type of the products; over log 2 where scores are to come out in units of log 2."""
    return (h * TO_LOG2).to(dtype) if scaled else h.to(dtype)


@dataclass(frozen=True)
class Tiles:
    """Rows and actions in a tile, warps, pipeline stages, and whether features are scaled beforehand or scores afterwards.

    The defaults were the fastest of those tried on an H200; the two ways of scaling differ only in what the compiler makes of
    them.
    """

    rows: int
    actions: int
    warps: int
    stages: int
    scaled: bool = False


def tiles_for(kernel: str, width: int, low: bool, signed: bool = False) -> Tiles:
    """Tiles that fit: float32 tables take twice the room, and signs take registers."""
    if not low:
        return Tiles(64, 64, 4, 2)
    if width <= 64:
        return Tiles(128, 64, 4, 3, scaled=True)
    if kernel == "step":
        return Tiles(64, 64, 4, 4) if signed else Tiles(128, 64, 4, 3)
    return Tiles(128, 64, 8, 3, scaled=kernel == "normaliser")


def log_normaliser(
    h: Tensor, beta: Tensor, limit: Tensor, *, safe: float = 60.0, precision: str = "tf32", tiles: Tiles | None = None,
    splits: int | None = None,
) -> Tensor:  # fmt: skip
    """log Z (b,) of h (b, l) in float32 and beta (K, l) in the type of the products; no score exceeds the one number `limit`."""
    rows, width = h.shape
    actions = len(beta)
    t = tiles or tiles_for("normaliser", width, beta.dtype == torch.bfloat16)
    row_tiles = triton.cdiv(rows, t.rows)
    splits = splits or max(1, min(triton.cdiv(actions, t.actions), triton.cdiv(12 * _multiprocessors(h), row_tiles)))
    per_split = triton.cdiv(triton.cdiv(actions, splits), t.actions) * t.actions
    splits = triton.cdiv(actions, per_split)
    top, total = (torch.empty((splits, rows), dtype=torch.float32, device=h.device) for _ in range(2))
    _normaliser_kernel[(row_tiles, splits)](
        lowered(h, beta.dtype, t.scaled), beta, limit, top, total, rows, actions, width, per_split, SAFE=safe, SCALED=t.scaled,
        BM=t.rows, BN=t.actions, D=_padded(width), PRECISION=precision, num_warps=t.warps, num_stages=t.stages,
    )  # fmt: skip
    return torch.logsumexp(total.log() + top * 0.6931471805599453, dim=0)


@dataclass
class Singles:
    """Derivatives at listed actions, by rising id, and where every block of `size` actions begins among them."""

    rows: Tensor
    ids: Tensor
    values: Tensor

    @classmethod
    def sorted(cls, rows: Tensor, ids: Tensor, values: Tensor) -> Singles:
        """In order of ids, in the types that the kernel reads."""
        order = torch.argsort(ids)
        return cls(rows[order].int(), ids[order].int(), values[order].float())

    def starts(self, actions: int, size: int) -> Tensor:
        """(blocks + 1,)."""
        edges = torch.arange(0, triton.cdiv(actions, size) + 1, device=self.ids.device, dtype=torch.int32) * size
        return torch.searchsorted(self.ids, edges).int()


def step(
    h: Tensor, low: Tensor, log_z: Tensor, factor: Tensor, singles: Singles, *,
    kind: int, beta: Tensor | None = None, moments: tuple[Tensor, Tensor] | None = None, anchor: Tensor | None = None,
    rate: float = 0.0, scale: float = 1.0, pull: float = 0.0, gradient: Tensor | None = None, reach: Tensor | None = None,
    signed: bool = True, precision: str = "tf32", tiles: Tiles | None = None, parts: int = 2,
) -> None:  # fmt: skip
    """Pass over all actions: gradient of beta from factor_i pi_i(a) h_i and the singles; kind 0 stores it, 1 is Adam, 2 is SGD.

    low: the table that scores are computed from; where it is not `beta` itself it is brought up to date as well.
    """
    rows, width = h.shape
    actions = len(low)
    t = tiles or tiles_for("step", width, low.dtype == torch.bfloat16, signed)
    shift, sign = shifted(log_z, factor)
    spare: Any = h
    first, second = moments if moments is not None else (spare, spare)
    _step_kernel[(triton.cdiv(actions, t.actions),)](
        lowered(h, low.dtype, t.scaled), h, low, shift, sign, singles.starts(actions, t.actions), singles.rows, singles.ids,
        singles.values,
        spare if beta is None else beta, first, second, spare if anchor is None else anchor,
        spare if gradient is None else gradient, spare if reach is None else reach, rows, actions, width, rate, scale, pull,
        KIND=kind, SIGNED=signed, PULLED=pull != 0, ANCHORED=anchor is not None, LOW=beta is not None and low is not beta,
        SCALED=t.scaled, BK=t.actions, BM=t.rows, D=_padded(width), PRECISION=precision, PARTS=parts,
        num_warps=t.warps, num_stages=t.stages,
    )  # fmt: skip


def pull_features(
    h: Tensor, low: Tensor, log_z: Tensor, factor: Tensor, *, signed: bool = True, precision: str = "tf32",
    tiles: Tiles | None = None,
) -> Tensor:  # fmt: skip
    """sum over a of factor_i pi_i(a) beta_a, (b, l) in float32."""
    rows, width = h.shape
    actions = len(low)
    t = tiles or tiles_for("features", width, low.dtype == torch.bfloat16)
    row_tiles = triton.cdiv(rows, t.rows)
    splits = max(1, min(triton.cdiv(actions, t.actions), triton.cdiv(2 * _multiprocessors(h), row_tiles)))
    per_split = triton.cdiv(triton.cdiv(actions, splits), t.actions) * t.actions
    splits = triton.cdiv(actions, per_split)
    out = torch.empty((splits, rows, width), dtype=torch.float32, device=h.device)
    shift, sign = shifted(log_z, factor)
    _features_kernel[(row_tiles, splits)](
        lowered(h, low.dtype, False), low, shift, sign, out, rows, actions, width, per_split, SIGNED=signed, BM=t.rows,
        BN=t.actions, D=_padded(width),
        PRECISION=precision, num_warps=t.warps, num_stages=t.stages,
    )  # fmt: skip
    return out.sum(dim=0)


def shifted(log_z: Tensor, factor: Tensor) -> tuple[Tensor, Tensor]:
    """log2(|factor| / Z), and the sign of the factor: a row factor costs nothing inside the exponent."""
    return (factor.abs().log() - log_z) * TO_LOG2, factor.sign()


def _padded(width: int) -> int:
    return int(max(16, triton.next_power_of_2(width)))


def _multiprocessors(tensor: Tensor) -> int:
    return int(torch.cuda.get_device_properties(tensor.device).multi_processor_count)


__all__ = ["Singles", "Tiles", "log_normaliser", "pull_features", "shifted", "step", "tiles_for"]
