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

On one core products are three quarters of the time, so the rest is kept small. Scores are taken in base 2, pi = 2^s / Z with
s = (h / log 2)^T beta: the factor goes into h, once a batch, and powers of two cost a quarter to a half of exponentials. A block
of scores stays in the cache until its part of the gradient is taken. Small tables keep all powers of the first pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from manyarms.learning.products import RightFactor
from manyarms.learning.rooms import Rooms

SAFE = 30.0  # scores up to this size can be exponentiated in float32 as they are, summed over a billion, and divided by
NUMBERS = 1 << 18  # numbers in a block of scores: a megabyte, what a core has to itself
WIDEST = 1 << 12  # actions in a block: with its two moments a block of beta should stay in the cache as well
TO_BASE_TWO = 1 / math.log(2)

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
    total: Tensor | None = None  # (b,) Z itself, where no score was shifted
    kept_from: int | None = None  # the powers of the scores of actions from here on are kept


@dataclass
class Sums:
    """What one pass over some of the actions adds up at b rows: sums of 2^(score - top), scores in base 2; no top is one of 0."""

    top: Tensor | None  # (b,)
    total: Tensor  # (b,) over the actions
    inside: Tensor | None  # (b,) over those of the wanted group
    above: Tensor | None  # (b,) of the powers times the values
    kept_from: int | None = None  # as of `Measured`

    def measured(self) -> Measured:
        """What they say where they are over all actions."""
        log_total = self.total.log()
        return Measured(
            log_z=log_total if self.top is None else log_total + self.top / TO_BASE_TWO,
            log_mass=None if self.inside is None else self.inside.log() - log_total,
            expectation=None if self.above is None else self.above / self.total,
            total=self.total if self.top is None else None,
            kept_from=self.kept_from,
        )


@dataclass
class Upstream:
    """An objective's derivatives by what it saw: at listed actions (sparse), by group masses and by expectations."""

    rows: Tensor  # (s,) row of every single derivative
    ids: Tensor  # (s,) its action
    singles: Tensor  # (s,) its value
    group: Tensor | None = None  # (b,)
    expectation: Tensor | None = None  # (b,)
    one_each: bool = False  # whether there is one in each row, and nothing else
    by_row: Tensor | None = None  # (b,) the sums of singles, where others have some of them


def block_size(rows: int, actions: int, device: torch.device) -> int:
    """Actions in a block: cache-sized on a processor, as large as memory likes on a GPU."""
    if device.type != "cpu":
        return max(1, min(actions, (1 << 27) // max(1, rows)))
    return max(256, min(WIDEST, NUMBERS // max(1, rows)))


def blocks(beta: Tensor, size: int) -> Iterator[tuple[int, int, Tensor]]:
    """Bounds of consecutive blocks of rows, and the rows."""
    if beta.shape[0] <= size:  # dividing nothing costs as much as dividing
        yield 0, beta.shape[0], beta
        return
    first = 0
    for part in torch.split(beta, size):
        last = first + part.shape[0]
        yield first, last, part
        first = last


def safe_norm(h: Tensor) -> float:
    """The norm of a row of beta up to which no score can leave [-SAFE, SAFE]."""
    longest = float(torch.linalg.vector_norm(h, dim=1).max()) if len(h) else 0.0
    return SAFE / longest if longest else math.inf


def scores_at(h: Tensor, beta: Tensor, ids: Tensor) -> Tensor:
    """h_i^T beta_a at ids (b, m); an id of -1 has the score -inf."""
    gathered = beta.index_select(0, ids.clamp(min=0).reshape(-1)).to(h.dtype)
    found = torch.bmm(gathered.view(*ids.shape, h.shape[1]), h[:, :, None])[:, :, 0]
    return found.masked_fill_(ids < 0, -math.inf)


def sums_of(
    h: Tensor,
    beta: Tensor,
    *,
    groups: Groups | None = None,
    values: Values | None = None,
    safe: bool = False,
    size: int | None = None,
    rooms: Rooms | None = None,
) -> Sums:
    """The first pass: sums over all rows of beta, those of groups and values where asked for, rescaled as larger scores appear.

    rooms: keep the powers of the last blocks for the second pass, where none is shifted.
    """
    b, actions = h.shape[0], beta.shape[0]
    size = size or block_size(b, actions, h.device)
    columns = in_base_two(h)
    top = None if safe else h.new_full((b,), -math.inf)
    total: Tensor | None = None
    inside = None if groups is None else h.new_zeros(b)
    above = None if values is None else h.new_zeros(b)
    rooms = rooms or Rooms()
    kept_from = rooms.kept_from(b, actions, size) if safe and groups is None and values is None else None
    kept = rooms.kept(h, kept_from if actions > size else None, actions)
    alone = kept_from is not None and actions <= size  # one block stays where the second pass looks for it
    room = rooms.take("scores", h, min(size, actions), b)
    for first, last, part in blocks(beta, size):
        place = _fitted(room, last - first)
        mass = columns.times(part.to(h.dtype), place)  # (k, b) scores
        if top is not None:
            peak = torch.maximum(top, mass.amax(dim=0))
            shrink = (top - peak).exp2_()
            for running in (total, inside, above):
                if running is not None:
                    running.mul_(shrink)
            top = peak
            mass.sub_(top)
        # products are faster where they write what is in the cache: powers are what leaves it
        stays = place if alone else kept(first, last)
        mass = mass.exp2_() if stays is None else torch.exp2(mass, out=stays)
        total = mass.sum(dim=0) if total is None else total.add_(mass.sum(dim=0))
        if values is not None and above is not None:
            # a product and a sum: einsum would turn this into a batch of tiny matrix products
            above += (mass * values(first, last).T).sum(dim=0)
        if groups is not None and inside is not None:
            inside += (mass * (groups[0][first:last, None] == groups[1])).sum(dim=0)
    assert total is not None  # there is at least one action
    return Sums(top, total, inside, above, kept_from)


def measure(
    h: Tensor,
    beta: Tensor,
    *,
    groups: Groups | None = None,
    values: Values | None = None,
    safe: bool = False,
    size: int | None = None,
    rooms: Rooms | None = None,
) -> Measured:
    """The first pass, where beta has all actions: log Z, and group masses and expectations where asked for."""
    return sums_of(h, beta, groups=groups, values=values, safe=safe, size=size, rooms=rooms).measured()


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
    rooms: Rooms | None = None,
) -> Tensor | None:
    """The second pass: hands the gradient of every block of beta to `receive`, and returns that of h (b, l) where wanted.

    A block's part in the gradient of h is taken before the block is handed on, since receiving it may change it. A gradient lies
    where the next one will lie.
    """
    b, actions = h.shape[0], beta.shape[0]
    size = size or block_size(b, actions, h.device)
    # the factor of pi that all actions share
    one_each = upstream.one_each
    if upstream.by_row is not None:
        flat = upstream.by_row
    else:
        flat = upstream.singles if one_each else h.new_zeros(b).index_add_(0, upstream.rows, upstream.singles)
    inner: Tensor | None = None  # log Z + log M: exp(s - inner) is pi within the group, also where M is tiny
    if groups is not None and upstream.group is not None and measured.log_mass is not None:
        flat = flat + upstream.group
        inner = measured.log_z + torch.where(measured.log_mass > -math.inf, measured.log_mass, math.inf)
    worth = None if values is None or measured.expectation is None else upstream.expectation
    if worth is not None and measured.expectation is not None:
        flat = flat + worth * measured.expectation
    plain = inner is None and worth is None
    # where that is all, it is a factor of the rows of h; and so is 1 / Z, if no exponential can leave the range of the type
    unshifted = plain and safe
    less = (
        -(measured.log_z.exp() if measured.total is None else measured.total) if unshifted else h.new_full((b,), -1.0)
    )
    flat = flat / less if unshifted else -flat
    scaled = h * flat[:, None] if plain else h
    log_z = measured.log_z if unshifted else measured.log_z * TO_BASE_TWO
    inner = None if inner is None else inner * TO_BASE_TWO
    order, bounds = _by_block(upstream.ids, actions, size)
    rows, ids, singles = (_taken(t, order) for t in (upstream.rows, upstream.ids, upstream.singles))
    if one_each:  # as if pi of the own action were less by one: the products do the rest
        own = _taken(less, order)
        ids = torch.add(rows, ids, alpha=b)  # where a row's own action lies in (K, b)
    else:
        own = h.index_select(0, rows).mul_(singles[:, None])  # added to the gradient of beta
    gradient_h = h.new_zeros(h.shape) if want_h else None
    rooms = rooms or Rooms()
    kept_from = measured.kept_from if unshifted else None
    kept = rooms.kept(h, kept_from if actions > size else None, actions)
    factors = RightFactor(scaled)
    columns = in_base_two(h) if kept_from != 0 else factors
    room = rooms.take("scores", h, min(size, actions), b)
    gradients = None if receive is None else rooms.take("gradients", h, min(size, actions), h.shape[1])
    for number, (first, last, part) in enumerate(blocks(beta, size)):
        within: Tensor | None = None
        if kept_from is not None and first >= kept_from:
            # one block is where the first pass left it; others are fetched, since products wait for what is not in the cache
            left = kept(first, last)
            pi = _fitted(room, last - first)
            pi = pi if left is None else pi.copy_(left)
        else:
            scores = columns.times(part.to(h.dtype), _fitted(room, last - first))  # (k, b)
            if inner is not None and groups is not None and upstream.group is not None:
                outside = groups[0][first:last, None] != groups[1]
                within = (scores - inner).masked_fill_(outside, -math.inf).exp2_().mul_(upstream.group)
            pi = (scores if unshifted else scores.sub_(log_z)).exp2_()
        if not plain:
            pi.mul_(flat if worth is None or values is None else flat + (worth[:, None] * values(first, last)).T)
        if within is not None:
            pi += within
        mine = slice(bounds[number], bounds[number + 1])
        some = bounds[number] < bounds[number + 1]
        if some and one_each:
            pi.view(-1).index_add_(0, ids[mine] - first * b if first else ids[mine], own[mine])
        if gradient_h is not None:
            added = pi.T @ part.to(h.dtype)
            gradient_h += added * flat[:, None] if plain else added
            if some and not one_each:
                gradient_h.index_add_(0, rows[mine], singles[mine, None] * beta[ids[mine]].to(h.dtype))
        if receive is not None and gradients is not None:
            block = factors.times(pi, _fitted(gradients, last - first))
            if some and not one_each:
                block.index_add_(0, ids[mine] - first if first else ids[mine], own[mine])
            receive(first, last, block)
    return gradient_h


def in_base_two(h: Tensor) -> RightFactor:
    """(l, b): what a block of beta is multiplied with for its scores in base 2, (k, b).

    In this order both products of the second pass read along their rows.
    """
    return RightFactor((h * TO_BASE_TWO).T)


def _by_block(ids: Tensor, actions: int, size: int) -> tuple[Tensor | None, list[int]]:
    """The order of ids by block, and where each block's begin; one block needs no order."""
    if actions <= size:
        return None, [0, ids.shape[0]]
    ids, order = torch.sort(ids, stable=True)
    starts = torch.arange(0, actions + size, size, device=ids.device)
    bounds: list[int] = torch.searchsorted(ids, starts).tolist()
    return order, bounds


def _taken(numbers: Tensor, order: Tensor | None) -> Tensor:
    return numbers if order is None else numbers.index_select(0, order)


def _fitted(room: Tensor, rows: int) -> Tensor:
    return room if room.shape[0] == rows else room[:rows]


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
    "Rooms",
    "Sums",
    "Upstream",
    "Values",
    "block_size",
    "blocks",
    "in_base_two",
    "log_probability",
    "measure",
    "pull",
    "safe_norm",
    "scores_at",
    "singles_of",
    "sums_of",
]
