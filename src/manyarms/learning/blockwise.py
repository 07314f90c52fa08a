"""The exact softmax over many actions, block by block, without an array of rows x actions.

    pi(a|h) = exp(h^T beta_a) / Z(h),    Z(h) = sum over b of exp(h^T beta_b)

An objective sees the policy at b rows through three kinds of numbers, all computed in one pass over the blocks (`measure`):

    log pi(a_ij|h_i) at a few listed actions,
    log M_i = log of the sum of pi over the actions of one group,
    E_i     = the sum of pi(a|h_i) v_i(a), the values v given block by block.

Let c_i be the sum over j of the objective's derivatives g_ij by log pi(a_ij|h_i), m_i the one by log M_i and e_i the one by
E_i. The derivative by the score s_i(a) = h_i^T beta_a is then

    sum_j g_ij 1[a = a_ij] + pi_i(a) ( e_i (v_i(a) - E_i) + m_i (1[a in group i] / M_i - 1) - c_i ),

so a second pass (`pull`) that computes the scores again has the gradient of a block of beta as soon as it has seen the block:
whoever receives it can update the block at once, and the gradient of the whole of beta need not exist.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

SAFE = 30.0  # scores up to this size can be exponentiated in float32 as they are, summed over a billion, and divided by
NUMBERS = 1 << 19  # numbers in a block of scores
STORED = 50_000_000  # numbers that the first pass may leave for the second, on a processor
WIDEST = 1 << 12  # actions in a block: with its two moments a block of beta should stay in the cache as well

Groups = tuple[Tensor, Tensor]
"""Labels (K,) of the actions, and the one wanted label of every row (b,)."""
Values = Callable[[int, int], Tensor]
"""v(first, last) -> (b, last - first): the values of a block of actions at the batch's rows."""
Receiver = Callable[[int, int, Tensor], None]
"""Takes the gradient (last - first, l) of the rows first..last-1 of beta."""


@dataclass
class Measured:
    """What one pass over all actions finds at b rows."""

    log_z: Tensor  # (b,)
    log_mass: Tensor | None = None  # (b,) of the wanted group
    expectation: Tensor | None = None  # (b,)
    stored_from: int | None = None  # the exponentials of the scores of actions from here on are in the store


@dataclass
class Upstream:
    """An objective's derivatives by what it saw: at listed actions (sparse), by group masses and by expectations."""

    rows: Tensor  # (s,) row of every single derivative
    ids: Tensor  # (s,) its action
    singles: Tensor  # (s,) its value
    group: Tensor | None = None  # (b,)
    expectation: Tensor | None = None  # (b,)


def block_size(rows: int, actions: int, device: torch.device) -> int:
    """Actions in a block: cache-sized on a processor, as large as memory likes on a GPU."""
    if device.type != "cpu":
        return max(1, min(actions, (1 << 27) // max(1, rows)))
    return max(256, min(WIDEST, NUMBERS // max(1, rows)))


def blocks(actions: int, size: int) -> Iterator[tuple[int, int]]:
    """Bounds of consecutive blocks."""
    for first in range(0, actions, size):
        yield first, min(first + size, actions)


def are_safe(h: Tensor, largest: float) -> bool:
    """Whether no score can leave [-SAFE, SAFE]; `largest` is at least the largest norm of a row of beta."""
    return len(h) == 0 or (math.isfinite(largest) and float(h.norm(dim=1).max()) * largest <= SAFE)


def exponentiate(numbers: Tensor) -> Tensor:
    """exp in place. NumPy's is twice as fast as PyTorch's for float32 on one thread, and has no more than one."""
    if numbers.device.type == "cpu" and numbers.dtype == torch.float32 and torch.get_num_threads() == 1:
        array = numbers.numpy()
        np.exp(array, out=array)
        return numbers
    return numbers.exp_()


def scores_at(h: Tensor, beta: Tensor, ids: Tensor) -> Tensor:
    """h_i^T beta_a at ids (b, m); an id of -1 has the score -inf."""
    found = torch.einsum("bl,bml->bm", h, beta[ids.clamp(min=0)].to(h.dtype))
    return found.masked_fill(ids < 0, -math.inf)


def measure(
    h: Tensor,
    beta: Tensor,
    *,
    groups: Groups | None = None,
    values: Values | None = None,
    safe: bool = False,
    size: int | None = None,
    store: Tensor | None = None,
) -> Measured:
    """The first pass: log Z, and group masses and expectations where asked for. Sums are rescaled as larger scores appear.

    store: room for some numbers, in which the exponentials of the last blocks stay for the second pass, where none is shifted.
    """
    b, actions = len(h), len(beta)
    size = size or block_size(b, actions, h.device)
    top = h.new_zeros(b) if safe else h.new_full((b,), -math.inf)
    total, inside, above = h.new_zeros(b), h.new_zeros(b), h.new_zeros(b)
    room = h.new_empty((min(size, actions), b))
    stored_from = _stored_from(store, b, actions, size) if safe and groups is None and values is None else None
    for first, last in blocks(actions, size):
        place = room if stored_from is None or first < stored_from else _stored(store, b, stored_from, first, last)
        mass = _scores(h, beta, first, last, place)  # (k, b)
        if not safe:
            peak = torch.maximum(top, mass.amax(dim=0))
            shrink = (top - peak).exp_()
            for running in (total, inside, above):
                running.mul_(shrink)
            top = peak
            mass.sub_(top)
        exponentiate(mass)
        total += mass.sum(dim=0)
        if values is not None:
            above += torch.einsum("kb,bk->b", mass, values(first, last))
        if groups is not None:
            inside += (mass * (groups[0][first:last, None] == groups[1])).sum(dim=0)
    return Measured(
        log_z=total.log() + top,
        log_mass=None if groups is None else inside.log() - total.log(),
        expectation=None if values is None else above / total,
        stored_from=stored_from,
    )


def pull(
    h: Tensor,
    beta: Tensor,
    measured: Measured,
    upstream: Upstream,
    *,
    groups: Groups | None = None,
    values: Values | None = None,
    receive: Receiver | None = None,
    want_h: bool = False,
    safe: bool = False,
    size: int | None = None,
    store: Tensor | None = None,
) -> Tensor | None:
    """The second pass: hands the gradient of every block of beta to `receive`, and returns that of h (b, l) where wanted.

    A block's part in the gradient of h is taken before the block is handed on, since receiving it may change it.
    """
    b, actions = len(h), len(beta)
    size = size or block_size(b, actions, h.device)
    # the factor of pi that all actions share
    flat = h.new_zeros(b).index_add_(0, upstream.rows, upstream.singles).neg_()
    inner: Tensor | None = None  # log Z + log M: exp(s - inner) is pi within the group, also where M is tiny
    if groups is not None and upstream.group is not None and measured.log_mass is not None:
        flat -= upstream.group
        inner = measured.log_z + torch.where(measured.log_mass > -math.inf, measured.log_mass, math.inf)
    worth = None if values is None or measured.expectation is None else upstream.expectation
    if worth is not None and measured.expectation is not None:
        flat -= worth * measured.expectation
    plain = inner is None and worth is None
    # where that is all, it is a factor of the rows of h; and so is 1 / Z, if no exponential can leave the range of the type
    unshifted = plain and safe
    if unshifted:
        flat = flat * (-measured.log_z).exp()
    scaled = h * flat[:, None] if plain else h
    order = torch.argsort(upstream.ids, stable=True)
    ids, rows, singles = upstream.ids[order], upstream.rows[order], upstream.singles[order]
    bounds = torch.searchsorted(ids, torch.arange(0, actions + size, size, device=h.device)).tolist()
    gradient_h = h.new_zeros(h.shape) if want_h else None
    room = h.new_empty((min(size, actions), b))
    for number, (first, last) in enumerate(blocks(actions, size)):
        stored = unshifted and measured.stored_from is not None and first >= measured.stored_from
        place = _stored(store, b, measured.stored_from, first, last) if stored else room
        scores = place if stored else _scores(h, beta, first, last, room)  # (k, b)
        within: Tensor | None = None
        if inner is not None and groups is not None and upstream.group is not None:
            outside = groups[0][first:last, None] != groups[1]
            within = (scores - inner).masked_fill_(outside, -math.inf).exp_().mul_(upstream.group)
        pi = scores if stored else exponentiate(scores if unshifted else scores.sub_(measured.log_z))
        if not plain:
            pi.mul_(flat if worth is None or values is None else flat + (worth[:, None] * values(first, last)).T)
        if within is not None:
            pi += within
        mine = slice(bounds[number], bounds[number + 1])
        if gradient_h is not None:
            part = pi.T @ beta[first:last].to(h.dtype)
            gradient_h += part * flat[:, None] if plain else part
            gradient_h.index_add_(0, rows[mine], singles[mine, None] * beta[ids[mine]].to(h.dtype))
        if receive is not None:
            block = pi @ scaled
            block.index_add_(0, ids[mine] - first, singles[mine, None] * h[rows[mine]])
            receive(first, last, block)
    return gradient_h


def _scores(h: Tensor, beta: Tensor, first: int, last: int, room: Tensor) -> Tensor:
    """(k, b) scores of a block of actions: in this order both products of the second pass read along their rows."""
    return torch.mm(beta[first:last].to(h.dtype), h.T, out=room[: last - first])


def _stored_from(store: Tensor | None, rows: int, actions: int, size: int) -> int | None:
    """The first action whose block, and all after it, fit into the store."""
    if store is None or rows == 0:
        return None
    fit = store.numel() // rows  # actions that fit
    first = -(-max(0, actions - fit) // size) * size
    return first if first < actions else None


def _stored(store: Tensor | None, rows: int, stored_from: int | None, first: int, last: int) -> Tensor:
    """(k, b) of the store that belong to a block."""
    assert store is not None and stored_from is not None
    return store[(first - stored_from) * rows : (last - stored_from) * rows].view(last - first, rows)


class LogProbability(torch.autograd.Function):
    """log pi(a_ij|h_i) with gradients for h and beta, for use in any PyTorch model."""

    @staticmethod
    def forward(ctx, h: Tensor, beta: Tensor, ids: Tensor, size: int | None) -> Tensor:  # type: ignore[no-untyped-def]
        measured = measure(h, beta, size=size)
        ctx.save_for_backward(h, beta, ids, measured.log_z)
        ctx.size = size
        return scores_at(h, beta, ids) - measured.log_z[:, None]

    @staticmethod
    def backward(ctx, gradient: Tensor):  # type: ignore[no-untyped-def]
        h, beta, ids, log_z = ctx.saved_tensors
        upstream = singles_of(ids, gradient)
        out = torch.zeros_like(beta) if ctx.needs_input_grad[1] else None

        def receive(first: int, last: int, block: Tensor) -> None:
            assert out is not None
            out[first:last] = block

        for_h = pull(
            h,
            beta,
            Measured(log_z),
            upstream,
            receive=None if out is None else receive,
            want_h=ctx.needs_input_grad[0],
            size=ctx.size,
        )
        return for_h, out, None, None


def log_probability(h: Tensor, beta: Tensor, ids: Tensor, size: int | None = None) -> Tensor:
    """log of the softmax of h beta^T at ids (b, m), exact, differentiable, with memory of b x block.

    h: (b, l). beta: (K, l). ids: (b, m), -1 pads. size: actions in a block.
    """
    found: Tensor = LogProbability.apply(h, beta, ids, size)  # type: ignore[no-untyped-call]
    return found


def singles_of(ids: Tensor, gradient: Tensor) -> Upstream:
    """Derivatives at ids (b, m) as a sparse list, without padding and zeros."""
    if ids.device.type != "cpu":
        # counting what is left would stop the device: padding stays, with a derivative of zero
        rows = torch.arange(len(ids), device=ids.device)[:, None].expand_as(ids)
        return Upstream(rows.reshape(-1), ids.clamp(min=0).reshape(-1), gradient.masked_fill(ids < 0, 0.0).reshape(-1))
    rows, columns = ((ids >= 0) & (gradient != 0)).nonzero(as_tuple=True)
    return Upstream(rows, ids[rows, columns], gradient[rows, columns])


__all__ = [
    "Groups",
    "Measured",
    "Receiver",
    "Upstream",
    "Values",
    "are_safe",
    "block_size",
    "blocks",
    "log_probability",
    "measure",
    "pull",
    "scores_at",
    "singles_of",
]
