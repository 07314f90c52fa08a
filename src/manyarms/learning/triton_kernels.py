# mypy: disable-error-code="untyped-decorator,no-untyped-def"
"""The blockwise softmax as Triton kernels: nothing of size rows x actions, and no gradient of beta, ever reaches memory.

    normaliser_kernel   streams all actions past a tile of rows, in a few splits of the actions
    weigh_kernel        joins the splits to log Z, and makes derivatives of the weights of an objective linear in pi or log pi
    step_kernel         one program a block of actions: streams all rows past it, computes their scores again, adds up the
                        gradient in registers, adds the derivatives at listed actions, and steps the optimiser at once
    features_kernel     the gradient of the features: streams all actions past a tile of rows

Products are taken in the type of the table that comes in, bfloat16, or float32 in the precision "tf32" or "tf32x3" (three such
products make one that is nearly float32's own); sums are float32. How many rows there are, where they begin and how far to step
is read from the device (`launching.Plan`): a captured sequence of launches serves batches of any length and any learning rate.

BULK: the table that is streamed comes as a tensor descriptor, and the copy engine fetches its tiles. HELD: the tile that stays is
kept in registers.
"""

from __future__ import annotations

import triton
import triton.language as tl

LN2: tl.constexpr = tl.constexpr(0.6931471805599453)
LOG2E: tl.constexpr = tl.constexpr(1.4426950408889634)

# A multiprocessor has few units for exponentials and many for sums: of four neighbouring numbers one takes the longer way, by
# a polynomial of degree 4 (relative error 3e-6, far below that of bfloat16 products), and all four are ready sooner.
MIXED_EXP2: tl.constexpr = tl.constexpr("""{
    .reg .f32 whole, part, value;
    .reg .b32 power, bits;
    ex2.approx.ftz.f32 $0, $4;
    ex2.approx.ftz.f32 $1, $5;
    ex2.approx.ftz.f32 $2, $6;
    max.ftz.f32 part, $7, 0fC2FC0000;
    add.rn.ftz.f32 whole, part, 0f4B400000;
    mov.b32 power, whole;
    sub.rn.ftz.f32 whole, whole, 0f4B400000;
    sub.rn.ftz.f32 part, part, whole;
    fma.rn.ftz.f32 value, part, 0f3C1CCBDF, 0f3D650A21;
    fma.rn.ftz.f32 value, value, part, 0f3E76036E;
    fma.rn.ftz.f32 value, value, part, 0f3F31706E;
    fma.rn.ftz.f32 value, value, part, 0f3F7FFFF4;
    mov.b32 bits, value;
    shl.b32 power, power, 23;
    add.s32 bits, bits, power;
    mov.b32 $3, bits;
}""")


@triton.jit
def _exp2(s, MIXED: tl.constexpr):
    """2^s, for s below 126; mixed, numbers below 2^-126 may come out as that."""
    if MIXED:
        return tl.inline_asm_elementwise(MIXED_EXP2, "=f,=f,=f,=f,f,f,f,f", [s], dtype=tl.float32, is_pure=True, pack=4)
    else:
        return tl.exp2(s)


@triton.jit
def _rows_of(table_at, i, end, width, column, EVEN: tl.constexpr):
    """Rows i of a table (., width), zeros from `end` on and beyond the width."""
    at = table_at + i[:, None].to(tl.int64) * width + column[None, :]
    if EVEN:
        return tl.load(at, mask=i[:, None] < end, other=0.0)
    else:
        return tl.load(at, mask=(i[:, None] < end) & (column[None, :] < width), other=0.0)


@triton.jit
def _whole_rows_of(table_at, i, width, column, EVEN: tl.constexpr):
    """The same where no row lies beyond the end."""
    at = table_at + i[:, None].to(tl.int64) * width + column[None, :]
    if EVEN:
        return tl.load(at)
    else:
        return tl.load(at, mask=column[None, :] < width, other=0.0)


@triton.jit
def _held(tile, SIZE: tl.constexpr):
    """The same numbers as the result of a product: tensor units take those from registers, and loaded ones from shared memory,
    whose bandwidth is what a large step runs out of."""
    i = tl.arange(0, SIZE)
    return tl.dot((i[:, None] == i[None, :]).to(tile.dtype), tile).to(tile.dtype)


@triton.jit(do_not_specialize=["slot"])
def normaliser_kernel(
    h_at, beta_at, plan_at, limit_at, reach_at, top_at, sum_at, slot, slots, capacity, actions, width, per_split,
    SAFE: tl.constexpr, SCALED: tl.constexpr, MIXED: tl.constexpr, EVEN: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
    D: tl.constexpr, PRECISION: tl.constexpr, BULK: tl.constexpr, HELD: tl.constexpr,
):  # fmt: skip
    """Per split: the largest score (in units of log 2) of each row, and the sum of 2^(score - largest)."""
    tile, split = tl.program_id(0), tl.program_id(1)
    begin, rows = tl.load(plan_at + slot), tl.load(plan_at + slots + slot)
    if tile * BM >= rows:
        return
    i = tile * BM + tl.arange(0, BM)
    column = tl.arange(0, D)
    h = _rows_of(h_at, begin + i, begin + rows, width, column, EVEN)
    if HELD:
        h = _held(h, BM)
    first = split * per_split
    last = tl.minimum(first + per_split, actions)
    # where no score can be large, the running maximum is left out, and columns are added up only at the end
    if tl.load(limit_at) * tl.sqrt(tl.load(reach_at + slot % 2)) <= SAFE:
        masses = tl.zeros((BM, BN), dtype=tl.float32)
        whole = first + (last - first) // BN * BN
        for start in range(first, whole, BN):
            if BULK:
                b = beta_at.load([start, 0])
            else:
                b = _whole_rows_of(beta_at, start + tl.arange(0, BN), width, column, EVEN)
            s = tl.dot(h, tl.trans(b), input_precision=PRECISION)
            masses += _exp2(s if SCALED else s * LOG2E, MIXED)
        if whole < last:
            a = whole + tl.arange(0, BN)
            if BULK:
                b = beta_at.load([whole, 0])
            else:
                b = _rows_of(beta_at, a, last, width, column, EVEN)
            s = tl.dot(h, tl.trans(b), input_precision=PRECISION)
            masses += tl.where(a[None, :] < last, tl.exp2(s if SCALED else s * LOG2E), 0.0)
        total = tl.sum(masses, axis=1)
        top = tl.zeros((BM,), dtype=tl.float32)
    else:
        total = tl.zeros((BM,), dtype=tl.float32)
        top = tl.full((BM,), -float("inf"), dtype=tl.float32)
        for start in range(first, last, BN):
            a = start + tl.arange(0, BN)
            if BULK:
                b = beta_at.load([start, 0])
            else:
                b = _rows_of(beta_at, a, last, width, column, EVEN)
            s = tl.dot(h, tl.trans(b), input_precision=PRECISION)
            s = tl.where(a[None, :] < last, s if SCALED else s * LOG2E, -float("inf"))
            peak = tl.maximum(top, tl.max(s, axis=1))
            total = total * tl.exp2(top - peak) + tl.sum(tl.exp2(s - peak[:, None]), axis=1)
            top = peak
    tl.store(top_at + split * capacity + i, top, mask=i < rows)
    tl.store(sum_at + split * capacity + i, total, mask=i < rows)


@triton.jit(do_not_specialize=["slot"])
def weigh_kernel(
    h_at, beta_at, ids_at, weights_at, plan_at, pace_at, reach_at, top_at, sum_at, shift_at, sign_at, single_at, value_at,
    slot, slots, capacity, splits, width, tiles,
    LOG: tl.constexpr, BM: tl.constexpr, BS: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    """For terms weight * log pi (LOG) or weight * pi of the logged action: their sum, and their derivatives by log pi.

    The loss is minus the terms' sum over the batch's size, so the derivative g by log pi is -weight / size, times pi where terms
    are linear in pi; every action's score then has -g pi(a), which `step_kernel` takes as 2^(score + shift) times a sign.
    """
    tile = tl.program_id(0)
    begin, rows = tl.load(plan_at + slot), tl.load(plan_at + slots + slot)
    if (tile == 0) & (tl.load(plan_at + 2 * slots + slot) != 0):
        tl.store(reach_at + (slot + 1) % 2, 0.0)
    i = tile * BM + tl.arange(0, BM)
    inside = i < rows
    split = tl.arange(0, BS)
    top = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    for start in range(0, splits, BS):
        s = start + split
        at = s[:, None] * capacity + i[None, :]
        there = (s[:, None] < splits) & inside[None, :]
        tops = tl.load(top_at + at, mask=there, other=-float("inf"))
        sums = tl.load(sum_at + at, mask=there, other=0.0)
        peak = tl.maximum(top, tl.max(tops, axis=0))
        safe = tl.where(peak > -float("inf"), peak, 0.0)  # rows that are not there
        total = total * tl.exp2(top - safe) + tl.sum(sums * tl.exp2(tops - safe[None, :]), axis=0)
        top = peak
    log2_z = tl.where(inside, tl.log2(tl.where(inside, total, 1.0)) + top, 0.0)
    column = tl.arange(0, D)
    h = _rows_of(h_at, begin + i, begin + rows, width, column, False)
    ids = tl.load(ids_at + begin + i, mask=inside, other=0)
    beta = tl.load(
        beta_at + ids[:, None].to(tl.int64) * width + column[None, :],
        mask=inside[:, None] & (column[None, :] < width), other=0.0,
    )  # fmt: skip
    log_pi = tl.sum(h * beta, axis=1) - log2_z * LN2
    weight = tl.load(weights_at + begin + i, mask=inside, other=0.0)
    size = tl.load(pace_at + 2 * slots + slot)
    if LOG:
        term = weight * log_pi
        slope = weight / size
    else:
        term = weight * tl.exp(log_pi)
        slope = term / size
    tl.store(value_at + slot * tiles + tile, tl.sum(tl.where(inside, term, 0.0), axis=0))
    tl.store(shift_at + i, tl.log2(tl.abs(slope)) - log2_z, mask=inside)
    tl.store(sign_at + i, tl.where(slope < 0.0, -1.0, 1.0), mask=inside)
    tl.store(single_at + i, -slope, mask=inside)


@triton.jit(do_not_specialize=["slot"])
def step_kernel(
    h_at, full_h_at, low_at, shift_at, sign_at, starts_at, single_rows_at, single_ids_at, singles_at,
    beta_at, first_at, second_at, anchor_at, gradient_at, plan_at, pace_at, reach_at, slot, slots, actions, width, pull,
    KIND: tl.constexpr, SIGNED: tl.constexpr, PULLED: tl.constexpr, ANCHORED: tl.constexpr, LOW: tl.constexpr,
    SCALED: tl.constexpr, MIXED: tl.constexpr, EVEN: tl.constexpr, OWN: tl.constexpr, DENSE: tl.constexpr, BK: tl.constexpr,
    BM: tl.constexpr, D: tl.constexpr, PRECISION: tl.constexpr, PARTS: tl.constexpr, BULK: tl.constexpr, HELD: tl.constexpr,
):  # fmt: skip
    """The gradient of BK rows of beta, sum_i c_i pi_i(a) h_i + singles, with |c_i| / Z_i inside the exponent; then the step.

    OWN: row i has one derivative of its own, at its id, and rows come by rising id. DENSE: blocks have many of those, which join
    the probabilities in the product; otherwise they are added one by one, in full precision.
    """
    if tl.load(plan_at + 2 * slots + slot) == 0:  # a slot without a batch
        return
    begin, rows = tl.load(plan_at + slot), tl.load(plan_at + slots + slot)
    block = tl.program_id(0)
    offset = tl.arange(0, BK)
    a = block * BK + offset
    column = tl.arange(0, D)
    b = _rows_of(low_at, a, actions, width, column, EVEN)
    if HELD:
        b = _held(b, BK)
    total = tl.zeros((BK, D), dtype=tl.float32)
    for start in range(0, rows, BM):
        i = start + tl.arange(0, BM)
        if BULK:
            h = h_at.load([begin + start, 0])
        else:
            h = _rows_of(h_at, begin + i, begin + rows, width, column, EVEN)
        shift = tl.load(shift_at + i, mask=i < rows, other=-float("inf"))
        s = tl.dot(b, tl.trans(h), input_precision=PRECISION)
        mass = _exp2(s + shift[None, :] if SCALED else s * LOG2E + shift[None, :], MIXED)
        if SIGNED:
            mass = mass * tl.load(sign_at + i, mask=i < rows, other=0.0)[None, :]
        if DENSE:
            ids = tl.load(single_ids_at + begin + i, mask=i < rows, other=-1)
            mass += tl.where(
                a[:, None] == ids[None, :], tl.load(singles_at + i, mask=i < rows, other=0.0)[None, :], 0.0
            )
        total = tl.dot(mass.to(h.dtype), h, total, input_precision=PRECISION)
    if SCALED:
        total *= LN2
    if not DENSE:
        for j in range(tl.load(starts_at + block), tl.load(starts_at + block + 1)):
            if OWN:
                row, value = j, tl.load(singles_at + j - begin)
            else:
                row, value = tl.load(single_rows_at + j), tl.load(singles_at + j)
            mine = tl.load(single_ids_at + j) - block * BK
            full = tl.load(full_h_at + (row + column * 0).to(tl.int64) * width + column, mask=column < width, other=0.0)
            total += tl.where(offset[:, None] == mine, value * full[None, :], 0.0)
    rate, scale = tl.load(pace_at + slot), tl.load(pace_at + slots + slot)
    norms = _update_by_parts(
        total, block * BK, 0, beta_at, low_at, first_at, second_at, anchor_at, gradient_at, actions, width, rate, scale, pull,
        KIND, PULLED, ANCHORED, LOW, BK, D, PARTS,
    )  # fmt: skip
    if KIND != 0:
        # the largest squared norm of a row
        tl.atomic_max(reach_at + (slot + 1) % 2, tl.max(norms, axis=0))


@triton.jit
def _update_by_parts(
    gradient, block, left, beta_at, low_at, first_at, second_at, anchor_at, gradient_at, actions, width, rate, scale, pull,
    KIND: tl.constexpr, PULLED: tl.constexpr, ANCHORED: tl.constexpr, LOW: tl.constexpr, BK: tl.constexpr, D: tl.constexpr,
    PARTS: tl.constexpr,
):  # fmt: skip
    """The update by halves of the columns, and halves of those: all of beta, of both moments and of their addresses would take
    so many registers that a multiprocessor holds fewer programs at a time."""
    if PARTS == 1:
        norms = _update(
            gradient, block + tl.arange(0, BK), left + tl.arange(0, D), beta_at, low_at, first_at, second_at, anchor_at,
            gradient_at, actions, width, rate, scale, pull, KIND, PULLED, ANCHORED, LOW,
        )  # fmt: skip
    else:
        one, other = tl.split(tl.permute(tl.reshape(gradient, (BK, 2, D // 2)), (0, 2, 1)))
        norms = _update_by_parts(
            one, block, left, beta_at, low_at, first_at, second_at, anchor_at, gradient_at, actions, width, rate, scale, pull,
            KIND, PULLED, ANCHORED, LOW, BK, D // 2, PARTS // 2,
        )  # fmt: skip
        norms += _update_by_parts(
            other, block, left + D // 2, beta_at, low_at, first_at, second_at, anchor_at, gradient_at, actions, width, rate,
            scale, pull, KIND, PULLED, ANCHORED, LOW, BK, D // 2, PARTS // 2,
        )  # fmt: skip
    return norms


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
def features_kernel(
    h_at, beta_at, shift_at, sign_at, out_at, rows, actions, width, per_split,
    SIGNED: tl.constexpr, EVEN: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Per split: sum over its actions of c_i pi_i(a) beta_a, for a tile of rows."""
    tile, split = tl.program_id(0), tl.program_id(1)
    i = tile * BM + tl.arange(0, BM)
    column = tl.arange(0, D)
    h = _rows_of(h_at, i, rows, width, column, EVEN)
    shift = tl.load(shift_at + i, mask=i < rows, other=-float("inf"))
    first = split * per_split
    last = tl.minimum(first + per_split, actions)
    total = tl.zeros((BM, D), dtype=tl.float32)
    for start in range(first, last, BN):
        b = _rows_of(beta_at, start + tl.arange(0, BN), last, width, column, EVEN)
        s = tl.dot(h, tl.trans(b), input_precision=PRECISION)
        mass = tl.exp2(s * LOG2E + shift[:, None])
        total = tl.dot(mass.to(b.dtype), b, total, input_precision=PRECISION)  # rows of b beyond `last` are zero
    if SIGNED:
        total = total * tl.load(sign_at + i, mask=i < rows, other=0.0)[:, None]
    place = split.to(tl.int64) * rows * width + i[:, None] * width + column[None, :]
    tl.store(out_at + place, total, mask=(i[:, None] < rows) & (column[None, :] < width))


__all__ = ["features_kernel", "normaliser_kernel", "step_kernel", "weigh_kernel"]
