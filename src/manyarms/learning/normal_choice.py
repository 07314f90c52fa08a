"""The policies of randomised parameters as differentiable functions of their scores: Gaussian and mixed-logit.

choice_probabilities is the quadrature of `manyarms.policies.normal_choice` with a gradient written out. With x_a(t) = t - z_a,
the ratio r_a(t) = phi(x_a) / Phi(x_a), whose derivative by z_a is r_a (x_a + r_a), and P(t) = h exp(L(t)), whose derivative by
z_c is -P r_c:

    pi(a) = sum over t of P(t) r_a(t)
    d/dz_c of sum over a of g_a pi(a) = sum over t of P(t) r_c(t) ( g_c (x_c(t) + r_c(t)) - S(t) )
    S(t) = sum over a of g_a r_a(t)

Nodes move with z in the forward pass, and are constants here: the integral does not depend on where they lie. All is sums over
t of r or r^2 with weights, that is a few products of small matrices. r is kept for the way back where rows x actions x nodes
numbers are few, and computed again, a few rows at a time, where they are many.

The thesis's own estimators, of S draws (thesis, Appendix E.3.2), are mixed_logit and monte_carlo_choice.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from manyarms.policies import normal_choice as exact

NUMBERS = 1 << 20  # numbers in a block; a handful of such arrays are held at once
ROOT_HALF = math.sqrt(0.5)
DENSITY = 1 / math.sqrt(2 * math.pi)  # phi(0)

_tables: dict[tuple[torch.dtype, torch.device], tuple[Tensor, Tensor, Tensor]] = {}


def choice_probabilities(z: Tensor, nodes: int = 64) -> Tensor:
    """(b, K): the probability that z_a + eps_a is the largest, eps ~ N(0, I_K), for every row of scores z (b, K).

    In float64 the error is at most policies.normal_choice.tolerance(nodes, K): 1e-8 for 64 nodes and 10,000 actions, or for 32
    nodes and 50 actions. In float32 rounding is larger than that.
    """
    return _Choice.apply(z, nodes)  # type: ignore[no-any-return, no-untyped-call]


class _Choice(torch.autograd.Function):
    """Forward and backward passes over blocks of rows."""

    @staticmethod
    def forward(ctx: Any, z: Tensor, nodes: int) -> Tensor:
        with torch.no_grad():
            gaps = z.amax(dim=1, keepdim=True) - z
            at, step = _nodes(gaps, nodes)
            blocks = _blocks(len(z), at.shape[1] * z.shape[1])
            saved: list[Tensor] = []
            out, weights = torch.empty_like(z), torch.empty_like(at)
            for part in blocks:
                ratios, logs = _ratios(gaps[part], at[part])
                weights[part] = logs.exp_().mul_(step[part])
                out[part] = _times(ratios, weights[part])
                saved = [ratios] if len(blocks) == 1 else []
            ctx.save_for_backward(gaps, at, weights, out, *saved)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor, None]:
        gaps, at, weights, out, *saved = ctx.saved_tensors
        (g,) = upstream
        if saved:
            return _pulled(saved[0], gaps, at, weights, out, g), None
        grad = torch.empty_like(g)
        for part in _blocks(len(gaps), at.shape[1] * gaps.shape[1]):
            ratios, _ = _ratios(gaps[part], at[part], logs=False)
            grad[part] = _pulled(ratios, gaps[part], at[part], weights[part], out[part], g[part])
        return grad, None


def _pulled(ratios: Tensor, gaps: Tensor, at: Tensor, weights: Tensor, out: Tensor, g: Tensor) -> Tensor:
    """The derivative by z (b, K) of the sum over a of g_a pi(a), from the ratios (b, nodes, K)."""
    seen = torch.bmm(ratios, g.unsqueeze(2)).squeeze(2)  # S, (b, nodes)
    sides = torch.bmm(torch.stack([weights * at, weights * seen], dim=1), ratios)  # (b, 2, K)
    squares = _times(ratios * ratios, weights)
    return g * (sides[:, 0] + gaps * out + squares) - sides[:, 1]


def _times(ratios: Tensor, weights: Tensor) -> Tensor:
    """(b, K): the sum over nodes of weights (b, nodes) and ratios (b, nodes, K)."""
    return torch.bmm(weights.unsqueeze(1), ratios).squeeze(1)


def _ratios(gaps: Tensor, at: Tensor, logs: bool = True) -> tuple[Tensor, Tensor]:
    """r (b, nodes, K), and L (b, nodes) where it is asked for.

    log(1 - Phi(-x)) is exact where Phi is near 1, which sums of K of them need. Where Phi is small the rounding is large beside
    it, but small beside 1, and P is at most Phi: so it is small in the result. The floor keeps float32 from 0 / 0 there.
    """
    u = torch.add(at.unsqueeze(2), gaps.unsqueeze(1)).mul_(ROOT_HALF)
    beyond = torch.erfc(u).mul_(0.5).clamp_(max=1 - torch.finfo(u.dtype).eps)
    total = beyond.neg().log1p_().sum(dim=2) if logs else at
    ratios = u.square_().neg_().exp_().mul_(DENSITY).div_(beyond.neg_().add_(1))
    return ratios, total


def _nodes(gaps: Tensor, nodes: int) -> tuple[Tensor, Tensor]:
    """Nodes (b, nodes), from the largest score, and their step (b, 1): the same as in NumPy."""
    below, above, grid = _table(gaps.dtype, gaps.device)
    place = (gaps * (1 / exact.BIN)).clamp_(max=exact.BINS).long()
    counts = gaps.new_zeros(len(gaps), exact.BINS + 1).scatter_add_(1, place, torch.ones_like(gaps))
    low = grid[((counts @ below) <= math.log(exact.MISSED)).sum(dim=1).sub_(1).clamp_(min=0)]
    high = grid[((counts @ above) > exact.MISSED).sum(dim=1).clamp_(max=len(grid) - 1)]
    step = ((high - low) / nodes).unsqueeze(1)
    return low.unsqueeze(1) + step * torch.arange(0.5, nodes, dtype=gaps.dtype, device=gaps.device), step


def _table(dtype: torch.dtype, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    key = dtype, device
    if key not in _tables:
        made = [torch.as_tensor(array, dtype=dtype, device=device) for array in (exact.LOG_BELOW, exact.ABOVE)]
        _tables[key] = made[0], made[1], torch.as_tensor(exact.GRID, dtype=dtype, device=device)
    return _tables[key]


def _blocks(count: int, numbers: int) -> list[slice]:
    """Of things that take some numbers each, so many together that a block has about NUMBERS."""
    together = max(1, NUMBERS // max(1, numbers))
    return [slice(start, start + together) for start in range(0, count, together)]


def monte_carlo_choice(z: Tensor, draws: Tensor) -> Tensor:
    """(b, K): (1/S) sum over s of prod over b != a of Phi(eps_s + z_a - z_b), for draws eps (S,): the thesis's form.

    It costs K^2 terms a draw and is here for comparison. Products are sums of logarithms. Its expectation is
    choice_probabilities(z); its rows sum to 1 in expectation only.
    """
    return _MonteCarlo.apply(z, draws)  # type: ignore[no-any-return, no-untyped-call]


class _MonteCarlo(torch.autograd.Function):
    """Keeps M_ab = -d pi(a) / d z_b for a != b, (b, K, K), from which the whole derivative follows, as rows of it sum to 0."""

    @staticmethod
    def forward(ctx: Any, z: Tensor, draws: Tensor) -> Tensor:
        with torch.no_grad():
            apart = z.unsqueeze(2) - z.unsqueeze(1)  # (b, K, K): z_a - z_b
            own = torch.special.log_ndtr(draws)  # the factor b = a, which is no factor
            out, slopes = torch.zeros_like(z), torch.zeros_like(apart)
            for part in _blocks(len(draws), apart.numel()):
                x = apart + draws[part, None, None, None]
                logs = torch.special.log_ndtr(x)
                products = logs.sum(dim=3).sub_(own[part, None, None])  # (s, b, K)
                slopes += (products.unsqueeze(3) - logs - x.square_().mul_(0.5)).exp_().sum(dim=0)
                out += products.exp_().sum(dim=0)
            slopes.mul_(DENSITY / len(draws)).diagonal(dim1=1, dim2=2).zero_()
            ctx.save_for_backward(slopes)
            return out / len(draws)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor, None]:
        (slopes,) = ctx.saved_tensors
        (g,) = upstream
        return g * slopes.sum(dim=2) - torch.bmm(g.unsqueeze(1), slopes).squeeze(1), None


def mixed_logit(scores: Tensor, spread: Tensor, noise: Tensor) -> Tensor:
    """(b, K): the mean over S draws of the softmax of scores + spread eps_s (thesis, Appendix E.3.2).

    scores (b, K): h^T mu. spread (b,): sigma ||h||, by local reparametrisation: the law of h^T theta_a needs one normal an
    action, and none a parameter. noise (S, K), the same for all rows, or (S, b, K).
    """
    drawn = noise.unsqueeze(1) if noise.dim() == 2 else noise
    return _MixedLogit.apply(scores, spread.unsqueeze(1), drawn)  # type: ignore[no-any-return, no-untyped-call]


class _MixedLogit(torch.autograd.Function):
    """With p_s the softmax of draw s and q_s = p_s (g - sum of p_s g): the derivatives are the means of q_s and of q_s eps_s."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, spread: Tensor, noise: Tensor) -> Tensor:
        with torch.no_grad():
            blocks = _blocks(len(noise), scores.numel())
            out: Tensor | None = None
            saved: list[Tensor] = []
            for part in blocks:
                p = _softmaxes(scores, spread, noise[part])
                out = p.sum(dim=0) if out is None else out.add_(p.sum(dim=0))
                saved = [p] if len(blocks) == 1 else []
            ctx.save_for_backward(scores, spread, noise, *saved)
            return torch.zeros_like(scores) if out is None else out.div_(len(noise))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor, Tensor, None]:
        scores, spread, noise, *saved = ctx.saved_tensors
        (g,) = upstream
        by_score, by_spread = torch.zeros_like(scores), torch.zeros_like(spread)
        for part in _blocks(len(noise), scores.numel()):
            p = saved[0] if saved else _softmaxes(scores, spread, noise[part])
            q = p * g
            q = torch.addcmul(q, p, q.sum(dim=2, keepdim=True), value=-1)
            by_score += q.sum(dim=0)
            by_spread += q.mul_(noise[part]).sum(dim=(0, 2)).unsqueeze(1)
        return by_score.div_(len(noise)), by_spread.div_(len(noise)), None


def _softmaxes(scores: Tensor, spread: Tensor, noise: Tensor) -> Tensor:
    return torch.softmax(torch.addcmul(scores, spread, noise), dim=2)


__all__ = ["choice_probabilities", "mixed_logit", "monte_carlo_choice"]
